"""BackoffQueue: pods that wait a while after a failed attempt."""

from __future__ import annotations

import math
from collections.abc import Iterator

from scheduler_core.api import Pod
from scheduler_core.backend.heap import KeyedHeap
from scheduler_core.backend.queue.active_queue import Less, replace_pod
from scheduler_core.framework.types import QueuedPodInfo
from scheduler_core.ports import Clock

#: Backoff ends on whole seconds, so that many pods are moved at once.
WINDOW_SECONDS = 1.0

#: How often a second one pod may go on before its backoff is over.
MAX_SKIPS = 4


class BackoffQueue:
    """Two heaps: pods that plugins rejected, and pods whose attempt ended with an error.

    Backoff (kube-scheduler 1.36): ``initial << (count - 1)``, at most ``max``, where count is the
    number of consecutive errors if there are any, else of rejections. It ends at the whole second
    at or before entry + backoff, and that second itself still belongs to it.
    """

    def __init__(self, less: Less, clock: Clock, initial: float, maximum: float) -> None:
        self._clock = clock
        self._initial = initial
        self._maximum = maximum

        def sooner(a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
            return _end(a) < _end(b)

        def sooner_then_less(a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
            end, other = _end(a), _end(b)
            return end < other if end != other else less(a, b)

        self._rejected: KeyedHeap[QueuedPodInfo] = KeyedHeap(sooner_then_less)
        self._failed: KeyedHeap[QueuedPodInfo] = KeyedHeap(sooner)

    def __len__(self) -> int:
        return len(self._rejected) + len(self._failed)

    def __contains__(self, key: str) -> bool:
        return key in self._rejected or key in self._failed

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        yield from self._rejected
        yield from self._failed

    def duration(self, info: QueuedPodInfo) -> float:
        """Seconds of backoff after the pod's attempts so far."""
        count = info.consecutive_errors or info.unschedulable_count
        if count == 0:
            return 0.0
        # As the reference: compare before shifting, so that many attempts cannot overflow.
        factor = 2.0 ** min(count - 1, 1000)
        return self._maximum if self._initial > self._maximum / factor else self._initial * factor

    def is_backing_off(self, info: QueuedPodInfo) -> bool:
        end = self._end_of(info)
        return end is not None and end >= _floor(self._clock.now())

    def add(self, info: QueuedPodInfo) -> None:
        """Take a pod in: with a plugin recorded that rejected it, or as an error without one."""
        info.backoff_until = self._end_of(info)
        heap = self._rejected if _was_rejected(info) else self._failed
        heap.add(info.key, info)

    def get(self, key: str) -> QueuedPodInfo | None:
        return self._rejected.get(key) or self._failed.get(key)

    def update_pod(self, pod: Pod) -> QueuedPodInfo | None:
        """Replace a pod that is here, by key; None where it is not."""
        return replace_pod(self._rejected, pod) or replace_pod(self._failed, pod)

    def remove(self, key: str) -> QueuedPodInfo | None:
        return _left(self._rejected.remove(key) or self._failed.remove(key))

    def pop_early(self) -> QueuedPodInfo | None:
        """The rejected pod whose backoff ends first, over or not; errors always wait."""
        info = self._rejected.peek()
        if info is None or not self.may_skip(info):
            return None
        return _left(self._rejected.pop())

    def may_skip(self, info: QueuedPodInfo) -> bool:
        """Whether a pod may go on before its backoff is over; each True is counted.

        Unlike in the reference that is so at most ``MAX_SKIPS`` times a second. A gang whose last
        member does not fit breaks up and wakes its members, again and again; without a bound an
        idle scheduler would try it thousands of times a second, for nothing.
        """
        window = _floor(self._clock.now())
        if info.skip_window != window:
            info.skip_window, info.skips = window, 0
        if info.skips >= MAX_SKIPS:
            return False
        info.skips += 1
        return True

    def pop_completed(self) -> list[QueuedPodInfo]:
        """Every pod whose backoff is over, rejected ones first."""
        answer: list[QueuedPodInfo] = []
        if not self._rejected and not self._failed:
            return answer
        now = _floor(self._clock.now())
        for heap in (self._rejected, self._failed):
            while (info := heap.peek()) is not None and _end(info) < now:
                heap.pop()
                _left(info)
                answer.append(info)
        return answer

    def next_completion(self) -> float | None:
        """When the first backoff will be over: the first whole second after its end."""
        heads = [info for heap in (self._rejected, self._failed) if (info := heap.peek())]
        return min(map(_end, heads)) + WINDOW_SECONDS if heads else None

    def ordered(self) -> list[QueuedPodInfo]:
        """All pods, the earliest end first."""
        return sorted([*self._rejected.ordered(), *self._failed.ordered()], key=_end)

    def _end_of(self, info: QueuedPodInfo) -> float | None:
        if info.backoff_until is not None:
            return info.backoff_until
        duration = self.duration(info)
        return _floor(info.timestamp + duration) if duration else None


def _floor(seconds: float) -> float:
    return float(math.floor(seconds / WINDOW_SECONDS)) * WINDOW_SECONDS


def _end(info: QueuedPodInfo) -> float:
    return -math.inf if info.backoff_until is None else info.backoff_until


def _was_rejected(info: QueuedPodInfo) -> bool:
    return bool(info.unschedulable_plugins or info.pending_plugins)


def _left(info: QueuedPodInfo | None) -> QueuedPodInfo | None:
    if info is not None:
        info.backoff_until = None
    return info
