"""Who is told of a change: subscriptions, in order and once each."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from scheduler_core.ports import Json, WatchEvent

from .objects import name_of, with_metadata
from .selection import Selection
from .store import Change

__all__ = ["Hub", "StreamEvent", "WatchSubscription", "seen_through", "watch_event"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a watch that can be resumed.

    Attributes:
        resource_version: resume after it. For BOOKMARK all changes up to it have been told.
        object: empty for BOOKMARK.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    kind: str
    object: Json
    resource_version: int


def watch_event(change: Change) -> WatchEvent:
    """The change as someone sees it who watches all of the kind."""
    return WatchEvent(change.write.type, change.write.kind, change.write.object)


def seen_through(select: Selection, change: Change) -> StreamEvent | None:
    """The change as someone sees it who watches a selection; None if it is out of sight.

    An object that leaves the selection is DELETED there, with its last selected state.
    """
    write = change.write
    version = write.resource_version
    before = change.previous is not None and select(change.previous)
    after = write.verb != "delete" and select(write.object)
    if after:
        return StreamEvent("MODIFIED" if before else "ADDED", write.kind, write.object, version)
    if not before or change.previous is None:
        return None
    if write.verb == "delete":
        return StreamEvent("DELETED", write.kind, write.object, version)
    last = with_metadata(change.previous, resourceVersion=str(version))
    return StreamEvent("DELETED", write.kind, last, version)


class WatchSubscription:
    """One listener. Its methods are for the Hub, `stop` is for everyone."""

    def __init__(self, hub: Hub, kind: str, after: int, tell: Callable[[Change], None]) -> None:
        self.kind = kind
        self.told_up_to = after
        self._hub = hub
        self._tell = tell

    def stop(self) -> None:
        """No event is delivered after this returns. May be called twice."""
        self._hub.remove(self)

    def deliver(self, change: Change) -> None:
        if change.write.resource_version <= self.told_up_to:
            return
        self.told_up_to = change.write.resource_version
        self._tell(change)


class Hub:
    """Delivers committed changes, one after another, whoever commits them.

    A sink may read the cluster, and write to a cluster without a journal: what it writes is
    delivered after the change that it is being told of. A sink that raises is logged and dropped.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._waiting: deque[Change] = deque()
        self._subscriptions: dict[str, list[WatchSubscription]] = {}
        self._delivering = False

    def enqueue(self, changes: Iterable[Change]) -> None:
        """To be called in the order of commits (under the store's lock)."""
        self._waiting.extend(changes)

    def drain(self) -> None:
        """Deliver all that waits."""
        with self.lock:
            if self._delivering:
                return
            self._delivering = True
            try:
                while self._waiting:
                    self._deliver(self._waiting.popleft())
            finally:
                self._delivering = False

    @property
    def is_behind(self) -> bool:
        """Whether changes wait to be delivered. To be asked under the store's lock."""
        return bool(self._waiting)

    def add(self, subscription: WatchSubscription) -> None:
        """To be called with `lock` held, from the reading of the store to the first event."""
        self._subscriptions.setdefault(subscription.kind, []).append(subscription)

    def remove(self, subscription: WatchSubscription) -> None:
        with self.lock:
            listeners = self._subscriptions.get(subscription.kind, [])
            if subscription in listeners:
                listeners.remove(subscription)

    def _deliver(self, change: Change) -> None:
        listeners = self._subscriptions.get(change.write.kind, ())
        for subscription in tuple(listeners):
            if subscription not in listeners:
                continue  # stopped by a sink before it in this loop
            try:
                subscription.deliver(change)
            except Exception:
                log.exception(
                    "a watcher of %s raised at %s and is told nothing more",
                    subscription.kind,
                    name_of(change.write.object),
                )
                self.remove(subscription)
