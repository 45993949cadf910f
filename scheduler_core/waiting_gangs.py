"""Gangs among the pods that wait at Permit: who is there, and who is ready to go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from scheduler_core.plugins.helpers.gangs import GangId
from scheduler_core.waiting_record import MANUAL_APPROVAL, Parked

__all__ = ["WaitingGangs"]


@dataclass(slots=True, eq=False)
class _Gang:
    members: dict[str, Parked] = field(default_factory=dict)
    ready: set[str] = field(default_factory=set)
    min_member: int = 0


class WaitingGangs:
    """Members by gang. Whatever happens to one member costs the same in a gang of any size, but for
    letting it go, or giving it up, as a whole."""

    def __init__(self) -> None:
        self._gangs: dict[GangId, _Gang] = {}

    def join(self, parked: Parked, min_member: int) -> None:
        """A member began to wait."""
        if parked.gang is None:
            return
        gang = self._gangs.setdefault(parked.gang, _Gang())
        gang.members[parked.uid] = parked
        gang.min_member = min_member

    def leave(self, parked: Parked) -> None:
        """A member waits no more."""
        gang = self._find(parked.gang)
        if gang is None:
            return
        gang.members.pop(parked.uid, None)
        gang.ready.discard(parked.uid)
        if not gang.members and parked.gang is not None:
            del self._gangs[parked.gang]

    def mark(self, parked: Parked, ready: bool) -> None:
        """Whether a member waits for the rest of its gang alone."""
        gang = self._find(parked.gang)
        if gang is None or parked.uid not in gang.members:
            return
        if ready:
            gang.ready.add(parked.uid)
        else:
            gang.ready.discard(parked.uid)

    def all_ready(self, key: GangId) -> bool:
        """Every member that waits is ready; a gang without any is not."""
        gang = self._gangs.get(key)
        return gang is not None and 0 < len(gang.members) == len(gang.ready)

    def members(self, key: GangId | None) -> list[Parked]:
        """Who waits, in the order in which they began to."""
        gang = self._find(key)
        return list(gang.members.values()) if gang is not None else []

    def end_by_time(self, key: GangId | None) -> float:
        """When time ends the wait of all, as things stand: with the first member that is turned
        down then; where time approves each that is undecided, with the last. Infinity: never."""
        turned_down, approved = float("inf"), float("-inf")
        for member in self.members(key):
            first = member.waiting.next_wait
            if first is None:
                continue
            if first.plugin == MANUAL_APPROVAL and member.is_approved_by_time:
                approved = max(approved, first.deadline)
            else:
                turned_down = min(turned_down, first.deadline)
        if turned_down == float("inf") and approved != float("-inf"):
            return approved
        return turned_down

    def min_member(self, key: GangId) -> int:
        """What the gang needed when its last member began to wait, or was last told."""
        gang = self._gangs.get(key)
        return gang.min_member if gang is not None else 0

    def set_min_member(self, key: GangId, number: int) -> None:
        gang = self._gangs.get(key)
        if gang is not None:
            gang.min_member = number

    def __contains__(self, key: object) -> bool:
        return key in self._gangs

    def __iter__(self) -> Iterator[GangId]:
        return iter(tuple(self._gangs))

    def __len__(self) -> int:
        return len(self._gangs)

    def _find(self, key: GangId | None) -> _Gang | None:
        return self._gangs.get(key) if key is not None else None
