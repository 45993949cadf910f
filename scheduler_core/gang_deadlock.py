"""Gangs that each hold what another one needs: found, and one of them released.

A gang is *blocked* when fewer of its members without a node fit somewhere, each on its own, than it
still needs: it cannot be completed as things are, in whatever order its members are tried. It
*waits for* another blocked gang when it could be completed if that one's waiting members left: a
place is found for each missing member, one after another. A *deadlock* is a circle of such gangs.
Of each circle one gang is released: the one with the lowest priority; among equals the youngest
PodGroup; among those the last by name.

So a gang that could be completed on its own is never released, nor is one whose leaving helps
nobody. Gangs that are blocked for other reasons keep what they hold until their deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from scheduler_core.api import Pod
from scheduler_core.backend.cache import Cache
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.runtime.framework import Framework
from scheduler_core.plugins.helpers.gangs import GangId, quorum_plugin
from scheduler_core.waiting_record import Parked
from scheduler_core.waiting_room import WaitingRoom

__all__ = ["INTERVAL", "RESOLVED_BY", "GangDeadlocks"]

#: Seconds between two looks.
INTERVAL: Final = 1.0
#: Gangs that are compared in one look: those that have waited longest.
MOST_GANGS: Final = 16
RESOLVED_BY: Final = "gang deadlock"


@dataclass(slots=True, eq=False)
class _Gang:
    """A gang that waits for members."""

    id: GangId
    holders: Sequence[Parked]
    missing: Sequence[Pod]
    needed: int
    rank: tuple[int, float, str]
    waits_for: set[GangId] = field(default_factory=set)

    @property
    def framework(self) -> Framework:
        return self.holders[0].cycle.framework


class GangDeadlocks:
    """Looks from time to time, and only when something on the nodes has changed.

    Args:
        refresh: brings the snapshot that the frameworks see up to date.
    """

    def __init__(self, room: WaitingRoom, cache: Cache, refresh: Callable[[], None]) -> None:
        self._room = room
        self._cache = cache
        self._refresh = refresh
        self._next_look = float("-inf")
        self._seen = -1

    def look(self, now: float) -> bool:
        """Release one gang of every circle; whether there was one."""
        if now < self._next_look or len(self._room.gangs) < 2:
            return False
        self._next_look = now + INTERVAL
        if self._cache.generation == self._seen:
            return False
        self._seen = self._cache.generation
        incomplete = [gang for key in self._room.gangs if (gang := self._incomplete(key))]
        if len(incomplete) < 2:
            return False
        self._refresh()
        oldest = sorted(incomplete, key=lambda gang: gang.holders[0].cycle.waiting_since)
        blocked = [gang for gang in oldest[:MOST_GANGS] if _is_blocked(gang)]
        circles = _circles(blocked)
        for circle in circles:
            self._release(circle)
        return bool(circles)

    def _incomplete(self, key: GangId) -> _Gang | None:
        """The gang as it stands, if members of it wait for others."""
        plugin, directory = quorum_plugin(key.kind), self._room.directory
        holders = self._room.gangs.members(key)
        waiting = [p for p in holders if plugin in p.waiting.pending_plugins]
        group = directory.group(key)
        if not waiting or group is None or any(p.waiting.status is not None for p in holders):
            return None
        members = directory.members(key)
        missing = [p for p in members if not p.node_name and not self._cache.is_assumed_pod(p)]
        needed = directory.min_member(key) - (len(members) - len(missing))
        priority = max(p.waiting.pod.priority for p in holders)
        age = group.creation_timestamp or 0.0
        return _Gang(key, holders, missing, needed, (-priority, age, key.key))

    def _release(self, circle: Sequence[_Gang]) -> None:
        loser = max(circle, key=lambda gang: gang.rank)
        others = sorted(gang.id.key for gang in circle if gang is not loser)
        names = " and ".join(sorted(gang.id.key for gang in circle))
        text = (
            f"gangs {names} each hold what the other needs; {loser.id.key} was released, "
            f"{_why(loser, circle)}, so that {' and '.join(others)} can go on"
        )
        for parked in loser.holders:
            parked.waiting.reject(quorum_plugin(loser.id.kind), text)
            parked.waiting.resolved_by = RESOLVED_BY


def _why(loser: _Gang, circle: Iterable[_Gang]) -> str:
    others = [gang.rank for gang in circle if gang is not loser]
    if all(rank[0] < loser.rank[0] for rank in others):
        return "which has the lowest priority"
    if all(rank[:2] < loser.rank[:2] for rank in others):
        return "the youngest"
    return "the last by name"


def _is_blocked(gang: _Gang) -> bool:
    """Fewer members fit somewhere, each on its own, than are needed."""
    room = _Room(gang.framework)
    fitting = sum(room.place(pod) != "" for pod in gang.missing)
    return fitting < gang.needed


def _could_go_on(gang: _Gang, without: _Gang) -> bool:
    """A place is found for every missing member, one after another, once the other one has left."""
    room = _Room(gang.framework)
    for parked in without.holders:
        room.remove(parked.waiting.pod)
    found = 0
    for pod in gang.missing:
        node = room.place(pod)
        if node:
            room.add(pod.with_node_name(node))
            found += 1
        if found >= gang.needed:
            return True
    return False


def _circles(blocked: Sequence[_Gang]) -> list[list[_Gang]]:
    """Gangs that wait for each other, directly or through others."""
    for gang in blocked:
        others = [other for other in blocked if other is not gang]
        gang.waits_for = {other.id for other in others if _could_go_on(gang, other)}
    by_id = {gang.id: gang for gang in blocked}
    reach = {gang.id: _reachable(gang, by_id) for gang in blocked}
    circles: list[list[_Gang]] = []
    seen: set[GangId] = set()
    for gang in blocked:
        if gang.id in seen or gang.id not in reach[gang.id]:
            continue
        circle = [by_id[key] for key in reach[gang.id] if gang.id in reach[key]]
        seen.update(member.id for member in circle)
        circles.append(circle)
    return circles


def _reachable(gang: _Gang, by_id: Mapping[GangId, _Gang]) -> set[GangId]:
    found: set[GangId] = set()
    todo = list(gang.waits_for)
    while todo:
        key = todo.pop()
        if key not in found:
            found.add(key)
            todo.extend(by_id[key].waits_for)
    return found


class _Room:
    """The snapshot's nodes as they would be without some pods and with others."""

    def __init__(self, framework: Framework) -> None:
        self._framework = framework
        self._changed: dict[str, NodeInfo] = {}
        self._removed: list[Pod] = []
        self._added: list[Pod] = []

    def remove(self, pod: Pod) -> None:
        node = self._node(pod.node_name)
        if node is not None and node.remove_pod(pod):
            self._removed.append(pod)

    def add(self, pod: Pod) -> None:
        node = self._node(pod.node_name)
        if node is not None:
            node.add_pod(pod)
            self._added.append(pod)

    def place(self, pod: Pod) -> str:
        """A node that the pod fits on, or ""."""
        framework, state = self._framework, CycleState()
        outcome = framework.run_pre_filter(state, pod)
        if not outcome.status.is_success:
            return ""
        wanted = outcome.result.node_names
        for other in self._removed:
            node = self._changed[other.node_name]
            framework.run_pre_filter_extension_remove_pod(state, pod, other, node)
        for other in self._added:
            node = self._changed[other.node_name]
            framework.run_pre_filter_extension_add_pod(state, pod, other, node)
        for name, node in self._changed.items():
            if wanted is not None and name not in wanted:
                continue
            if framework.run_filter_plugins_with_nominated_pods(state, pod, node).is_success:
                return name
        nodes = framework.nodes
        for row in np.flatnonzero(framework.run_filter(state, pod, nodes).feasible):
            name = nodes.names[int(row)]
            if name not in self._changed and (wanted is None or name in wanted):
                return name
        return ""

    def _node(self, name: str) -> NodeInfo | None:
        found = self._changed.get(name)
        if found is None:
            node = self._framework.nodes.get(name)
            if node is None:
                return None
            found = self._changed[name] = node.clone()
        return found
