"""VolumeRestrictions: disks and claims for one pod at a time (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from scheduler_core.api import Pod, Volume
from scheduler_core.api.storage import PersistentVolumeClaim
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import (
    NODE_ADD,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from scheduler_core.framework.interface import (
    EnqueueExtensions,
    FilterPlugin,
    Handle,
    PreFilterExtensions,
    PreFilterPlugin,
)
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.status import SKIP, SUCCESS, Status, unresolvable, unschedulable
from scheduler_core.framework.types import PreFilterResult
from scheduler_core.plugins.helpers.claims import claim_not_found, queue_if_claim_is_named
from scheduler_core.plugins.helpers.hints import queue_if
from scheduler_core.plugins.helpers.plain_volumes import has_only_plain_volumes

__all__ = ["VolumeRestrictions"]

_NO_DISK: Final = unschedulable("node(s) had no available disk")
_CLAIM_IN_USE: Final = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)
_STATE: Final = "PreFilterVolumeRestrictions"
_ONE_POD: Final = "ReadWriteOncePod"
_COLUMN: Final = "VolumeRestrictions/disks"


@dataclass(frozen=True, slots=True)
class _Disk:
    """A disk that a pod mounts directly. Those with a common address are the same disk."""

    kind: str
    addresses: frozenset[tuple[str, ...]]
    read_only: bool = False

    def conflicts(self, other: _Disk) -> bool:
        if self.kind != other.kind or self.addresses.isdisjoint(other.addresses):
            return False
        return not (self.read_only and other.read_only)


@dataclass(slots=True)
class _State:
    """The pod's claims that allow one pod only, and how often others use them."""

    claims: frozenset[str]
    in_use: int

    def clone(self) -> _State:
        return _State(self.claims, self.in_use)

    def count(self, pod: Pod, sign: int) -> None:
        # By name alone: kube-scheduler does not compare namespaces here.
        self.in_use += sign * sum(volume.claim_name in self.claims for volume in pod.volumes)


class VolumeRestrictions(EnqueueExtensions, PreFilterPlugin, FilterPlugin, PreFilterExtensions):
    """One writer per cloud disk and node; one pod per ReadWriteOncePod claim anywhere."""

    name = "VolumeRestrictions"

    def is_node_local(self, pod: Pod) -> bool:
        return has_only_plain_volumes(pod)

    def __init__(self, _args: Mapping[str, Any], handle: Handle) -> None:
        self._claims = handle.informer("PersistentVolumeClaim")

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeInfos
    ) -> tuple[PreFilterResult | None, Status]:
        exclusive = set()
        for volume in pod.volumes:
            if volume.source != "persistentVolumeClaim":
                continue
            claim = self._claims.get(f"{pod.namespace}/{volume.claim_name}")
            if claim is None:
                return None, unresolvable(claim_not_found(volume.claim_name))
            if isinstance(claim, PersistentVolumeClaim) and _ONE_POD in claim.access_modes:
                exclusive.add(claim.name)
        used = nodes.table.used_pvcs
        in_use = sum(f"{pod.namespace}/{name}" in used for name in exclusive)
        if not in_use and not any(volume.source in _DISKS for volume in pod.volumes):
            return None, SKIP
        state.write(_STATE, _State(frozenset(exclusive), in_use))
        return None, SUCCESS

    def pre_filter_extensions(self) -> PreFilterExtensions:
        return self

    def add_pod(self, state: CycleState, pod: Pod, to_add: Pod, node_info: NodeInfo) -> Status:
        state.read(_STATE, _State).count(to_add, 1)
        return SUCCESS

    def remove_pod(
        self, state: CycleState, pod: Pod, to_remove: Pod, node_info: NodeInfo
    ) -> Status:
        state.read(_STATE, _State).count(to_remove, -1)
        return SUCCESS

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        if _share_a_disk(pod, node_info.pods):
            return _NO_DISK
        return _CLAIM_IN_USE if state.read(_STATE, _State).in_use > 0 else SUCCESS

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> NodeStatuses:
        statuses = NodeStatuses(len(nodes))
        own = _disks(pod)
        if own:
            codes, distinct = nodes.derived(_COLUMN, _mounted)
            taken = [any(a.conflicts(b) for a in own for b in mounted) for mounted in distinct]
            # Code -1, "nothing mounted", points at the last entry.
            statuses.reject(np.array([*taken, False])[codes], _NO_DISK)
        if state.read(_STATE, _State).in_use > 0:
            statuses.reject(np.ones(len(nodes), dtype=bool), _CLAIM_IN_USE)
        return statuses

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        deleted = ClusterEvent(EventResource.POD, ActionType.DELETE)
        added = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)
        return (
            ClusterEventWithHint(deleted, _after_pod_delete),
            ClusterEventWithHint(NODE_ADD),
            ClusterEventWithHint(added, queue_if_claim_is_named),
        )


def _after_pod_delete(pod: Pod, old: Any, _new: Any) -> QueueingHint:
    if not isinstance(old, Pod) or old.namespace != pod.namespace:
        return QueueingHint.SKIP
    claims = {volume.claim_name for volume in pod.volumes if volume.claim_name}
    shares_claim = any(volume.claim_name in claims for volume in old.volumes)
    return queue_if(shares_claim or _share_a_disk(pod, (old,)))


def _share_a_disk(pod: Pod, others: Sequence[Pod]) -> bool:
    own = _disks(pod)
    return bool(own) and any(a.conflicts(b) for other in others for b in _disks(other) for a in own)


def _mounted(info: NodeInfo) -> frozenset[_Disk] | None:
    """All disks of the pods on a node."""
    return frozenset(disk for pod in info.pods for disk in _disks(pod)) or None


def _disks(pod: Pod) -> list[_Disk]:
    return [_DISKS[v.source](v) for v in pod.volumes if v.source in _DISKS]


def _read_only(volume: Volume) -> bool:
    return volume.spec.get("readOnly") is True


def _one(volume: Volume, field: str) -> frozenset[tuple[str, ...]]:
    return frozenset({(str(volume.spec.get(field) or ""),)})


def _gce(volume: Volume) -> _Disk:
    return _Disk("gcePersistentDisk", _one(volume, "pdName"), _read_only(volume))


def _ebs(volume: Volume) -> _Disk:
    """Two pods never share one, not even for reading."""
    return _Disk("awsElasticBlockStore", _one(volume, "volumeID"))


def _iscsi(volume: Volume) -> _Disk:
    return _Disk("iscsi", _one(volume, "iqn"), _read_only(volume))


def _rbd(volume: Volume) -> _Disk:
    """The same image if one monitor is common to both."""
    spec = volume.spec
    image = (str(spec.get("pool") or "rbd"), str(spec.get("image") or ""))
    monitors = spec.get("monitors")
    known = monitors if isinstance(monitors, list) else []
    return _Disk("rbd", frozenset((str(m), *image) for m in known), _read_only(volume))


_DISKS: Final[Mapping[str, Callable[[Volume], _Disk]]] = {
    "gcePersistentDisk": _gce,
    "awsElasticBlockStore": _ebs,
    "iscsi": _iscsi,
    "rbd": _rbd,
}
