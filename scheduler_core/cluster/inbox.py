"""Watch events that wait for a part of the sandbox that works in its own time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from scheduler_core.ports import Cluster, Subscription, WatchEvent

__all__ = ["WatchInbox", "no_wake"]


def no_wake() -> None:
    """For parts that are ticked by hand."""


class WatchInbox:
    """Puts the events of some kinds into one queue. Adding and taking may be different threads."""

    def __init__(self, wake: Callable[[], None] = no_wake) -> None:
        """`wake` is called whenever something was added."""
        self._events: deque[WatchEvent] = deque()
        self._wake = wake
        self._subscriptions: list[Subscription] = []

    def watch(self, cluster: Cluster, *kinds: str) -> None:
        for kind in kinds:
            self._subscriptions.append(cluster.list_watch(kind, self._add))

    def stop(self) -> None:
        for subscription in self._subscriptions:
            subscription.stop()
        self._subscriptions.clear()

    def take(self) -> Iterator[WatchEvent]:
        """All events that wait, oldest first."""
        while self._events:
            yield self._events.popleft()

    def __bool__(self) -> bool:
        return bool(self._events)

    def _add(self, event: WatchEvent) -> None:
        self._events.append(event)
        self._wake()
