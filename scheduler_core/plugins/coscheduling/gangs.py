"""What Coscheduling knows of each gang: its PodGroup, its members, and how it fared so far."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from scheduler_core.api import Pod, PodGroup
from scheduler_core.framework.interface import Handle

__all__ = ["GANG_INDEX", "Gang", "Gangs", "Stall", "gang_index"]

#: Index of the pod informer: "namespace/name" of a PodGroup -> its members.
GANG_INDEX: Final = "pod-group"

#: Remembered gangs before those that are gone are looked for.
_FIRST_SWEEP: Final = 64


class Stall(enum.Enum):
    """Why PreFilter turned a gang down for a reason that time or room can mend."""

    NONE = enum.auto()
    RESOURCE_GAP = enum.auto()
    BACKOFF = enum.auto()


@dataclass(slots=True)
class Gang:
    """The memory of one gang. Times are times of day.

    Attributes:
        placed: uid -> node of members that passed Permit and were not unreserved since. They
            count for the quorum while they wait, also for other plugins, and while they bind.
        failed_at: when the gang last failed; None after a quorum.
        backoff_until: the gang is not tried before.
        fits_until: until then minResources need not be looked at again.
    """

    placed: dict[str, str] = field(default_factory=dict)
    failed_at: float | None = None
    backoff_until: float = 0.0
    fits_until: float = 0.0
    stall: Stall = Stall.NONE


def gang_index(pod: Pod) -> Iterable[str]:
    """Values of ``GANG_INDEX``: pods that have ended belong to no gang any more."""
    return (pod.pod_group_key,) if pod.pod_group_key and not pod.is_terminal else ()


class Gangs:
    """All gangs of one profile. Scheduler thread only."""

    def __init__(self, handle: Handle) -> None:
        self._groups = handle.informer("PodGroup")
        self._pods = handle.informer("Pod")
        self._pods.add_indexer(GANG_INDEX, gang_index)
        self._gangs: dict[str, Gang] = {}
        self._sweep_at = _FIRST_SWEEP

    def group_of(self, pod: Pod) -> PodGroup | None:
        """The PodGroup that the pod's label names, if it exists."""
        key = pod.pod_group_key
        found = self._groups.get(key) if key else None
        return found if isinstance(found, PodGroup) else None

    def members(self, key: str) -> list[Pod]:
        """Pods with the gang's label in its namespace that have not ended."""
        return [pod for pod in self._pods.by_index(GANG_INDEX, key) if isinstance(pod, Pod)]

    def known(self, key: str) -> Gang | None:
        """The gang's memory, if there is any."""
        return self._gangs.get(key)

    def memory(self, key: str) -> Gang:
        """The gang's memory, made when there is none."""
        gang = self._gangs.get(key)
        if gang is None:
            self._sweep()
            gang = self._gangs[key] = Gang()
        return gang

    def placed_nodes(self, key: str) -> dict[str, str]:
        """uid -> node of every member that holds a node: bound, binding or waiting."""
        gang = self.memory(key)
        members = self.members(key)
        living = {pod.uid for pod in members}
        gang.placed = {uid: node for uid, node in gang.placed.items() if uid in living}
        return {**gang.placed, **{pod.uid: pod.node_name for pod in members if pod.node_name}}

    def place(self, key: str, pod: Pod, node_name: str) -> int:
        """Count a member in; how many hold a node then."""
        others = self.placed_nodes(key)
        self.memory(key).placed[pod.uid] = node_name
        return len({*others, pod.uid})

    def _sweep(self) -> None:
        """Forget gangs that have neither a PodGroup nor members, from time to time."""
        if len(self._gangs) < self._sweep_at:
            return
        self._gangs = {
            key: gang
            for key, gang in self._gangs.items()
            if self._groups.get(key) is not None or self.members(key)
        }
        self._sweep_at = max(_FIRST_SWEEP, 2 * len(self._gangs))
