"""InterPodAffinity: keeps pods near to or away from other pods (kube-scheduler 1.36)."""

from scheduler_core.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
