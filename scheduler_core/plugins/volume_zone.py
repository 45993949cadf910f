"""VolumeZone: a pod runs where its volumes' zone and region labels say (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from scheduler_core.api import Pod
from scheduler_core.api.storage import PersistentVolume, StorageClass
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import (
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
    PreFilterPlugin,
)
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import Bool, NodeInfos
from scheduler_core.framework.status import SKIP, SUCCESS, Status, unresolvable
from scheduler_core.framework.types import PreFilterResult
from scheduler_core.plugins.helpers.claims import claim_not_found, queue_if_claim_is_named
from scheduler_core.plugins.helpers.hints import queue_if
from scheduler_core.plugins.helpers.plain_volumes import has_only_plain_volumes

__all__ = ["VolumeZone"]

_REJECTED: Final = unresolvable("node(s) had no available volume zone")
_STATE: Final = "PreFilterVolumeZone"

#: A volume's label -> the label that a node may have instead.
_LABELS: Final[Mapping[str, str]] = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
_SEPARATOR: Final = "__"


@dataclass(frozen=True, slots=True)
class _Topology:
    """One label of a volume: the node's label of the same name must be one of the values."""

    key: str
    values: frozenset[str]


class VolumeZone(EnqueueExtensions, PreFilterPlugin, FilterPlugin):
    """Looks at claims that are bound; ephemeral volumes are not looked at."""

    name = "VolumeZone"

    def is_node_local(self, pod: Pod) -> bool:
        return has_only_plain_volumes(pod)

    def __init__(self, _args: Mapping[str, Any], handle: Handle) -> None:
        self._claims = handle.informer("PersistentVolumeClaim")
        self._volumes = handle.informer("PersistentVolume")
        self._classes = handle.informer("StorageClass")

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeInfos
    ) -> tuple[PreFilterResult | None, Status]:
        wanted = self._topologies_of_pod(pod)
        if isinstance(wanted, Status):
            return None, wanted
        if not wanted:
            return None, SKIP
        state.write(_STATE, wanted)
        return None, SUCCESS

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        wanted = self._wanted(state, pod)
        if isinstance(wanted, Status):
            return wanted
        labels = node_info.node.labels if node_info.node is not None else {}
        if not any(key in labels for key in _LABELS):
            return SUCCESS
        for topology in wanted:
            value = labels.get(topology.key, labels.get(_LABELS[topology.key]))
            if value not in topology.values:
                return _REJECTED
        return SUCCESS

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> NodeStatuses:
        wanted = self._wanted(state, pod)
        if isinstance(wanted, Status):
            return NodeStatuses.from_mask(np.ones(len(nodes), dtype=bool), wanted)
        rejected = np.zeros(len(nodes), dtype=bool)
        for topology in wanted:
            rejected |= ~_lies_in(nodes, topology)
        zoned = np.zeros(len(nodes), dtype=bool)
        for key in _LABELS:
            zoned |= nodes.label(key) >= 0
        return NodeStatuses.from_mask(rejected & zoned, _REJECTED)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        changed = ActionType.ADD | ActionType.UPDATE
        labelled = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        return (
            ClusterEventWithHint(
                ClusterEvent(EventResource.STORAGE_CLASS, ActionType.ADD), _after_class_add
            ),
            ClusterEventWithHint(ClusterEvent(EventResource.NODE, labelled)),
            ClusterEventWithHint(
                ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, changed),
                queue_if_claim_is_named,
            ),
            ClusterEventWithHint(
                ClusterEvent(EventResource.PERSISTENT_VOLUME, changed), _after_volume_change
            ),
        )

    def _wanted(self, state: CycleState, pod: Pod) -> list[_Topology] | Status:
        """What PreFilter found; found out now where the profile has no PreFilter of ours."""
        known: list[_Topology] | None = state.get(_STATE)
        return self._topologies_of_pod(pod) if known is None else known

    def _topologies_of_pod(self, pod: Pod) -> list[_Topology] | Status:
        wanted: list[_Topology] = []
        for volume in pod.volumes:
            if volume.source != "persistentVolumeClaim":
                continue
            found = self._topologies_of_claim(pod.namespace, volume.claim_name)
            if isinstance(found, Status):
                return found
            wanted += found
        return wanted

    def _topologies_of_claim(self, namespace: str, name: str) -> list[_Topology] | Status:
        if not name:
            return unresolvable("PersistentVolumeClaim had no name")
        claim = self._claims.get(f"{namespace}/{name}")
        if claim is None:
            return unresolvable(claim_not_found(name))
        if not claim.volume_name:
            return self._unbound(claim.storage_class_name or "")
        volume = self._volumes.get(claim.volume_name)
        if volume is None:
            return unresolvable(f'persistentvolume "{claim.volume_name}" not found')
        return _topologies(volume)

    def _unbound(self, class_name: str) -> list[_Topology] | Status:
        """Only a claim that waits for its first consumer may be unbound."""
        if not class_name:
            return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
        found = self._classes.get(class_name)
        if found is None:
            return unresolvable(f'storageclass.storage.k8s.io "{class_name}" not found')
        if found.volume_binding_mode is None:
            return unresolvable(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        return [] if found.waits_for_consumer else unresolvable("PersistentVolume had no name")


def _lies_in(nodes: NodeInfos, topology: _Topology) -> Bool:
    """bool, shape (n,): nodes whose label, or the label that replaced it, has a right value."""
    own = nodes.label(topology.key)
    other = _LABELS[topology.key]
    return np.where(
        own >= 0,
        _is_one_of(nodes, topology.key, topology.values),
        _is_one_of(nodes, other, topology.values),
    )


def _is_one_of(nodes: NodeInfos, key: str, values: frozenset[str]) -> Bool:
    right = [value in values for value in nodes.label_values(key)]
    # Code -1, "no such label", points at the last entry.
    answer: Bool = np.array([*right, False])[nodes.label(key)]
    return answer


def _topologies(volume: PersistentVolume) -> list[_Topology]:
    """A label with an empty part is ignored."""
    found = []
    for key in _LABELS:
        if key not in volume.labels:
            continue
        values = frozenset(part.strip() for part in volume.labels[key].split(_SEPARATOR))
        if "" not in values:
            found.append(_Topology(key, values))
    return found


def _after_class_add(_pod: Pod, _old: Any, new: Any) -> QueueingHint:
    return queue_if(isinstance(new, StorageClass) and new.waits_for_consumer)


def _after_volume_change(_pod: Pod, old: Any, new: Any) -> QueueingHint:
    if not isinstance(old, PersistentVolume):
        return QueueingHint.QUEUE
    return queue_if(_topologies(old) != _topologies(new))
