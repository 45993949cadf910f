"""ActiveQueue: pods that wait to be scheduled, and those that are being scheduled."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from scheduler_core.api import Pod
from scheduler_core.backend.heap import KeyedHeap
from scheduler_core.backend.queue.in_flight import InFlightEvents
from scheduler_core.framework.types import QueuedPodInfo

Less = Callable[[QueuedPodInfo, QueuedPodInfo], bool]
SortKey = Callable[[QueuedPodInfo], Any]


class ActiveQueue(KeyedHeap[QueuedPodInfo]):
    """A heap in QueueSort's order by "namespace/name", with the record of pods in flight."""

    __slots__ = ("in_flight",)

    def __init__(self, less: Less, sort_key: SortKey | None = None) -> None:
        super().__init__(less, sort_key)
        self.in_flight = InFlightEvents()

    def update_pod(self, pod: Pod) -> QueuedPodInfo | None:
        """Replace a pod that is here, by key; None where it is not."""
        return replace_pod(self, pod)


def replace_pod(heap: KeyedHeap[QueuedPodInfo], pod: Pod) -> QueuedPodInfo | None:
    """Replace a pod in a heap, which may change its place; None where it is not there."""
    info = heap.get(pod.key)
    if info is None:
        return None
    before = copy.copy(info)
    info.pod = pod
    heap.fix(pod.key, before)
    return info
