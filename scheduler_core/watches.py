"""Watches: what a scheduler hears of its cluster, and whether it has heard everything once."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from scheduler_core.ports import Cluster, Subscription, WatchEvent

__all__ = ["Watches"]


class Watches:
    """One watch per kind.

    Args:
        post: takes every event, on whichever thread the cluster tells it.
    """

    def __init__(self, cluster: Cluster, post: Callable[[WatchEvent], None]) -> None:
        self._cluster = cluster
        self._post = post
        self._subscriptions: list[Subscription] = []
        self._listed: set[str] = set()
        self._is_watching = False

    def start(self, kinds: Iterable[str]) -> None:
        """List and watch each kind in turn."""
        for kind in kinds:
            self._subscriptions.append(self._cluster.list_watch(kind, self._post))
        self._is_watching = True

    def stop(self) -> None:
        """End them. May be called twice."""
        self._is_watching = False
        for subscription in self._subscriptions:
            subscription.stop()
        self._subscriptions.clear()

    def listed(self, kind: str) -> None:
        """The kind's first list has been taken in."""
        self._listed.add(kind)

    def all_listed(self) -> bool:
        """No kind's first list is still to come."""
        return len(self._listed) >= len(self._subscriptions)

    @property
    def are_synced(self) -> bool:
        """They go on, and every kind has been listed once; may be read from any thread, as a
        hint."""
        return self._is_watching and self.all_listed()
