"""Tells observers what stands in the queue and how full the nodes are, now and then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

from scheduler_core.observers import ObserverSet
from scheduler_core.records import ClusterUsage, QueueDepths
from scheduler_core.schedule_one import Parts

#: Listing may use at most one part in this many of the loop's time.
TIME_SHARE = 50


class Listing:
    """Makes a QueueListing and a ClusterUsage when something changed, at most every ``interval``
    seconds, and less often where a listing takes long (10,000 pods: some 20 ms)."""

    def __init__(
        self,
        parts: Parts,
        observers: ObserverSet,
        interval: float,
    ) -> None:
        self._queue = parts.queue
        self._snapshot = parts.snapshot
        self._cache = parts.cache
        self._observers = observers
        self._clock = parts.clock
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
            self._observers.tell("queues_listed", replace(self._queue.list_pods(), depths=current))
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
