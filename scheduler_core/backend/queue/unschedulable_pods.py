"""UnschedulablePods: pods that wait for the cluster to change, and pods that a gate holds."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from scheduler_core.framework.types import QueuedPodInfo


@dataclass(slots=True, eq=False)
class _Place:
    """A pod's place: its turn, and what it was counted under when it was put here."""

    info: QueuedPodInfo
    turn: int
    plugins: frozenset[str]
    gated: bool
    expires: bool


class UnschedulablePods:
    """Pods by "namespace/name", found by the plugins that rejected them.

    An event interests a few plugins only; looking at their pods alone is what keeps events cheap
    when thousands of pods wait.
    """

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}
        self._by_plugin: dict[str, dict[str, _Place]] = {}
        self._turns = itertools.count()
        self._gated = 0
        #: (timestamp, turn, key) of every pod that came to expire and may still be here.
        self._by_age: list[tuple[float, int, str]] = []

    def __len__(self) -> int:
        """Unschedulable and gated ones."""
        return len(self._places)

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return (place.info for place in self._places.values())

    @property
    def gated_count(self) -> int:
        return self._gated

    def get(self, key: str) -> QueuedPodInfo | None:
        place = self._places.get(key)
        return None if place is None else place.info

    def put(self, info: QueuedPodInfo, *, expires: bool) -> bool:
        """Add a pod, or take note of what changed about one that is here. True if it is new.

        ``expires``: it counts for ``oldest``.
        """
        old = self._places.get(info.key)
        if old is not None:
            self._unlist(old)
        turn = next(self._turns) if old is None else old.turn
        plugins = frozenset(info.unschedulable_plugins | info.pending_plugins)
        place = _Place(info, turn, plugins, info.gated, expires)
        self._places[info.key] = place
        self._gated += place.gated
        for plugin in plugins:
            self._by_plugin.setdefault(plugin, {})[info.key] = place
        if expires:
            heapq.heappush(self._by_age, (info.timestamp, turn, info.key))
        return old is None

    def remove(self, key: str) -> QueuedPodInfo | None:
        place = self._places.pop(key, None)
        if place is None:
            return None
        self._unlist(place)
        return place.info

    def rejected_by(self, plugins: Iterable[str]) -> list[QueuedPodInfo]:
        """Pods that at least one of these plugins rejected, in order of entry."""
        groups = [group for plugin in plugins if (group := self._by_plugin.get(plugin))]
        if len(groups) < 2:
            return [place.info for group in groups for place in group.values()]
        found = {place.turn: place.info for group in groups for place in group.values()}
        return [found[turn] for turn in sorted(found)]

    def oldest(self) -> float | None:
        """The earliest timestamp of the pods that expire."""
        ages = self._by_age
        while ages and not self._is_current(ages[0]):
            heapq.heappop(ages)
        return ages[0][0] if ages else None

    def _is_current(self, age: tuple[float, int, str]) -> bool:
        timestamp, turn, key = age
        place = self._places.get(key)
        if place is None or place.turn != turn or not place.expires:
            return False
        return place.info.timestamp == timestamp

    def _unlist(self, place: _Place) -> None:
        self._gated -= place.gated
        for plugin in place.plugins:
            group = self._by_plugin[plugin]
            del group[place.info.key]
            if not group:
                del self._by_plugin[plugin]
