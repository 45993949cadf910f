"""Events that happened while pods were being scheduled."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scheduler_core.framework.events import ClusterEvent


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event with the objects that it was fired with."""

    event: ClusterEvent
    old: Any
    new: Any


class InFlightEvents:
    """Popped pods that are not done, and the events since the first of them was popped.

    One list serves all pods: each knows how many events there had been when it was popped.
    """

    __slots__ = ("_events", "_first", "_since")

    def __init__(self) -> None:
        self._events: deque[RecordedEvent] = deque()
        #: The number of the first event that is kept.
        self._first = 0
        #: uid -> number of the first event after the pod was popped; ascending.
        self._since: dict[str, int] = {}

    def __len__(self) -> int:
        """How many pods are in flight."""
        return len(self._since)

    def __contains__(self, uid: str) -> bool:
        return uid in self._since

    def __iter__(self) -> Iterator[str]:
        return iter(self._since)

    def events(self) -> Iterator[ClusterEvent]:
        """All that are kept."""
        return (recorded.event for recorded in self._events)

    @property
    def event_count(self) -> int:
        return len(self._events)

    def begin(self, uid: str) -> None:
        self._since[uid] = self._first + len(self._events)

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Keep an event for whoever is in flight."""
        if self._since:
            self._events.append(RecordedEvent(event, old, new))

    def events_since_pop(self, uid: str) -> Iterator[RecordedEvent]:
        return itertools.islice(self._events, self._since[uid] - self._first, None)

    def end(self, uid: str) -> None:
        """A pod is done; events that nobody else waits for are dropped."""
        if self._since.pop(uid, None) is None:
            return
        if not self._since:
            self._first += len(self._events)
            self._events.clear()
            return
        needed = next(iter(self._since.values()))
        while self._first < needed:
            self._events.popleft()
            self._first += 1
