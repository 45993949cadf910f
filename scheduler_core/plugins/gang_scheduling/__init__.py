"""GangScheduling: native gangs of Kubernetes 1.36, all members or none."""

from scheduler_core.plugins.gang_scheduling.plugin import GangScheduling

__all__ = ["GangScheduling"]
