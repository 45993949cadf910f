"""Tells observers what stands in the queue and how full the nodes are, now and then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

from scheduler_core.backend.cache import Cache
from scheduler_core.backend.queue.scheduling_queue import SchedulingQueue
from scheduler_core.backend.snapshot import Snapshot
from scheduler_core.framework.types import QueuedPodInfo
from scheduler_core.observers import ObserverSet
from scheduler_core.ports import Clock
from scheduler_core.records import (
    ClusterUsage,
    PodRef,
    QueueDepths,
    QueuedPod,
    QueueListing,
)

#: Listing may use at most one part in this many of the loop's time.
TIME_SHARE = 50


class Listing:
    """Makes a QueueListing and a ClusterUsage when something changed, at most every ``interval``
    seconds, and less often where a listing takes long (10,000 pods: some 20 ms)."""

    def __init__(
        self,
        queue: SchedulingQueue,
        snapshot: Snapshot,
        cache: Cache,
        observers: ObserverSet,
        clock: Clock,
        interval: float,
    ) -> None:
        self._queue = queue
        self._snapshot = snapshot
        self._cache = cache
        self._observers = observers
        self._clock = clock
        self._interval = interval
        self._due_at = 0.0
        self._told: tuple[int, int, int] | None = None

    def next_deadline(self) -> float | None:
        """When the next listing is due; None where nothing changed."""
        if not self._wanted() or self._version() == self._told:
            return None
        return self._due_at

    def tell_if_due(self, depths: Callable[[], QueueDepths]) -> None:
        now = self._clock.now()
        if now < self._due_at or not self._wanted():
            return
        current = depths()
        version = self._version(current.waiting)
        if version == self._told:
            return
        started = perf_counter()
        self._told = version
        if self._observers.wants("queues_listed"):
            self._observers.tell("queues_listed", self._list(now, current))
        if self._observers.wants("usage_changed"):
            self._snapshot.update(self._cache)
            self._observers.tell("usage_changed", self._usage(now))
        took = perf_counter() - started
        self._due_at = now + max(self._interval, took * TIME_SHARE)

    def _wanted(self) -> bool:
        return self._observers.wants("queues_listed") or self._observers.wants("usage_changed")

    def _version(self, waiting: int | None = None) -> tuple[int, int, int]:
        if waiting is None:
            waiting = self._told[2] if self._told else 0
        return (self._queue.version, self._cache.generation, waiting)

    def _list(self, now: float, depths: QueueDepths) -> QueueListing:
        pods = self._queue.list_pods()
        return QueueListing(
            at=now,
            depths=depths,
            active=_lines(pods.active),
            backoff=_lines(pods.backoff),
            unschedulable=_lines(pods.unschedulable),
            gated=_lines(pods.gated),
        )

    def _usage(self, now: float) -> ClusterUsage:
        nodes = self._snapshot.nodes
        return ClusterUsage(
            at=now,
            node_names=tuple(nodes.names),
            resources=nodes.resources,
            allocatable=nodes.allocatable.copy(),
            requested=nodes.requested.copy(),
            pods=nodes.pod_count.copy(),
            allowed_pods=nodes.allowed_pod_number.copy(),
        )


def _lines(infos: Sequence[QueuedPodInfo]) -> tuple[QueuedPod, ...]:
    return tuple(_line(info, position) for position, info in enumerate(infos, start=1))


def _line(info: QueuedPodInfo, position: int) -> QueuedPod:
    pod = info.pod
    return QueuedPod(
        pod=PodRef(pod.uid, pod.namespace, pod.name),
        position=position,
        priority=pod.priority,
        attempts=info.attempts,
        added_at=info.timestamp,
        backoff_until=info.backoff_until,
        plugin=info.gating_plugin or info.reason_plugin,
        reason=info.gating_message if info.gated else info.reason,
        pod_group=pod.pod_group_key,
    )
