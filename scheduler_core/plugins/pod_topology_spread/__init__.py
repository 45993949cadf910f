"""PodTopologySpread: keeps matching pods even over topology domains (kube-scheduler 1.36)."""

from scheduler_core.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
