"""NodeTree: the order in which nodes are looked at, one zone after the other."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler_core.api import Node


class NodeTree:
    """Node names by zone (kube-scheduler 1.36, node tree).

    Zones keep the order in which they were first seen, nodes inside a zone the order in which they
    came. A node that changes zone goes to the end of the new one; an emptied zone is forgotten.
    """

    __slots__ = ("_zone_of", "_zones", "version")

    def __init__(self) -> None:
        self._zones: dict[str, dict[str, None]] = {}
        self._zone_of: dict[str, str] = {}
        #: Grows whenever ``order`` may have changed.
        self.version = 0

    def __len__(self) -> int:
        return len(self._zone_of)

    def __contains__(self, name: str) -> bool:
        return name in self._zone_of

    @property
    def zones(self) -> Mapping[str, dict[str, None]]:
        """zone key -> names (a dict used as an ordered set)."""
        return self._zones

    def put(self, node: Node) -> None:
        """Add a node, or take note of its new zone."""
        zone = node.zone_key
        if self._zone_of.get(node.name) == zone:
            return
        if node.name in self._zone_of:
            self.remove(node.name)
        self._zones.setdefault(zone, {})[node.name] = None
        self._zone_of[node.name] = zone
        self.version += 1

    def remove(self, name: str) -> bool:
        """Forget a node; False where it is not known."""
        zone = self._zone_of.pop(name, None)
        if zone is None:
            return False
        names = self._zones[zone]
        del names[name]
        if not names:
            del self._zones[zone]
        self.version += 1
        return True

    def order(self) -> list[str]:
        """First node of each zone, second of each, and so on."""
        answer: list[str] = []
        iterators = [iter(names) for names in self._zones.values()]
        while iterators:
            remaining = []
            for names in iterators:
                name = next(names, None)
                if name is not None:
                    answer.append(name)
                    remaining.append(names)
            iterators = remaining
        return answer
