"""Coscheduling: gangs of scheduling.x-k8s.io, all members or none."""

from scheduler_core.plugins.coscheduling.plugin import Coscheduling

__all__ = ["Coscheduling"]
