"""One view of both kinds of gangs: coscheduling's PodGroups and native ones."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from scheduler_core.api import NATIVE_POD_GROUP, KubeObject, NativePodGroup, Pod, PodGroup
from scheduler_core.api.native.membership import (
    SCHEDULING_GROUP_INDEX,
    group_key,
    scheduling_group_index,
)
from scheduler_core.framework.interface import Informer
from scheduler_core.plugins.coscheduling.gangs import GANG_INDEX, gang_index

__all__ = ["GangDirectory", "GangId", "quorum_plugin"]

POD_GROUP: Final = "PodGroup"


class GangId(NamedTuple):
    """Which gang: the kind of its PodGroup, and "namespace/name"."""

    kind: str
    key: str


#: Which plugin counts a gang's members.
_QUORUM_PLUGIN: Final = {POD_GROUP: "Coscheduling", NATIVE_POD_GROUP: "GangScheduling"}


def quorum_plugin(kind: str) -> str:
    """The plugin that has members of such gangs wait for each other."""
    return _QUORUM_PLUGIN[kind]


class InformerSource(Protocol):
    """Whoever has informers: a plugin's handle, or the scheduler."""

    def informer(self, kind: str) -> Informer: ...


@dataclass(frozen=True, slots=True)
class GangFacts:
    """What counts of a PodGroup for those that wait with it; its status does not."""

    uid: str
    labels: object
    annotations: object
    min_member: int


class GangDirectory:
    """Finds gangs and their members. Scheduler thread only.

    Args:
        native: schedulerNames of the profiles that have native gangs, which is those with the
            plugin GangScheduling; pods of others belong to none. Where there is none, native
            PodGroups are not watched either: a cluster need not serve them, and a watch on what
            is not served would never have its first list.
    """

    def __init__(self, source: InformerSource, native: Collection[str]) -> None:
        self._pods = source.informer("Pod")
        self._groups = {POD_GROUP: source.informer(POD_GROUP)}
        self._native = frozenset(native)
        if self._native:
            self._groups[NATIVE_POD_GROUP] = source.informer(NATIVE_POD_GROUP)
        self._indexed = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of PodGroups that are known here."""
        return tuple(self._groups)

    def gang_of(self, pod: Pod) -> GangId | None:
        """The gang that the pod names, whether its PodGroup exists or not."""
        if pod.scheduling_group and pod.scheduler_name in self._native:
            return GangId(NATIVE_POD_GROUP, group_key(pod))
        return GangId(POD_GROUP, pod.pod_group_key) if pod.pod_group_key else None

    def group(self, gang: GangId) -> KubeObject | None:
        """Its PodGroup, if it exists."""
        found = self._groups[gang.kind].get(gang.key)
        return found if isinstance(found, PodGroup | NativePodGroup) else None

    def min_member(self, gang: GangId) -> int:
        """How many members have to be placed together; 0 without a PodGroup, or where it is none
        that asks for it."""
        group = self.group(gang)
        if isinstance(group, PodGroup):
            return group.min_member
        return group.min_count if isinstance(group, NativePodGroup) else 0

    def members(self, gang: GangId) -> Collection[Pod]:
        """Pods of the gang that have not ended."""
        if not self._indexed:
            self._pods.add_indexer(GANG_INDEX, gang_index)
            self._pods.add_indexer(SCHEDULING_GROUP_INDEX, scheduling_group_index)
            self._indexed = True
        native = gang.kind == NATIVE_POD_GROUP
        found = self._pods.by_index(SCHEDULING_GROUP_INDEX if native else GANG_INDEX, gang.key)
        return [pod for pod in found if isinstance(pod, Pod)]

    def facts(self, gang: GangId) -> GangFacts | None:
        """To compare a PodGroup with what it was before."""
        group = self.group(gang)
        if group is None:
            return None
        return GangFacts(group.uid, group.labels, group.annotations, self.min_member(gang))
