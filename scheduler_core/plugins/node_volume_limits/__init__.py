"""NodeVolumeLimits: how many volumes of each CSI driver a node can attach (kube-scheduler 1.36)."""

from __future__ import annotations

from scheduler_core.plugins.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
