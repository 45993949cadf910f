"""VolumeBinding: finds, reserves and binds the volumes of a pod (kube-scheduler 1.36)."""

from __future__ import annotations

from scheduler_core.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
