"""PrioritySort: higher priority first, then who waits longer (kube-scheduler 1.36)."""

from __future__ import annotations

from scheduler_core.framework.interface import QueueSortPlugin
from scheduler_core.framework.types import QueuedPodInfo
from scheduler_core.plugins.helpers.stateless import StatelessPlugin

__all__ = ["PrioritySort"]


class PrioritySort(StatelessPlugin, QueueSortPlugin):
    """Ties go to the earlier (re)entry to the queue, not to the older pod."""

    name = "PrioritySort"

    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        if a.pod.priority != b.pod.priority:
            return a.pod.priority > b.pod.priority
        return a.timestamp < b.timestamp

    def sort_key(self, info: QueuedPodInfo) -> tuple[int, float]:
        return -info.pod.priority, info.timestamp
