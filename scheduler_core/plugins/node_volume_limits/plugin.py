"""NodeVolumeLimits: how many volumes of each CSI driver a node can attach (kube-scheduler 1.36)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from scheduler_core.api import Pod
from scheduler_core.api.storage import CSINode, VolumeAttachment
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
from scheduler_core.framework.status import SKIP, SUCCESS, Status, unschedulable
from scheduler_core.framework.types import PreFilterResult
from scheduler_core.plugins.helpers.claims import queue_if_claim_is_used
from scheduler_core.plugins.helpers.csi_migration import driver_of_inline, is_inline_migratable
from scheduler_core.plugins.helpers.hints import held_a_node, queue_if
from scheduler_core.plugins.helpers.plain_volumes import has_only_plain_volumes
from scheduler_core.plugins.node_volume_limits.attached import (
    BY_NODE,
    AttachedVolumes,
    node_of_attachment,
)
from scheduler_core.plugins.node_volume_limits.volumes import CsiVolumes, Volumes

__all__ = ["NodeVolumeLimits"]

_REJECTED: Final = unschedulable("node(s) exceed max volume count")


class NodeVolumeLimits(EnqueueExtensions, PreFilterPlugin, FilterPlugin):
    """Counts distinct volumes of a node's pods, and what is attached beside them."""

    name = "NodeVolumeLimits"

    def is_node_local(self, pod: Pod) -> bool:
        return has_only_plain_volumes(pod)

    def __init__(self, _args: Mapping[str, Any], handle: Handle) -> None:
        self._csi_nodes = handle.informer("CSINode")
        self._attachments = handle.informer("VolumeAttachment")
        self._attachments.add_indexer(BY_NODE, node_of_attachment)
        self._volumes = CsiVolumes(handle)
        self._attached = AttachedVolumes(handle, self._volumes)

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeInfos
    ) -> tuple[PreFilterResult | None, Status]:
        return None, SUCCESS if _may_attach(pod) else SKIP

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        csi_node = self._csi_nodes.get(node_info.name)
        has_csi_node = csi_node is not None
        own = self._volumes.of_pod(pod, has_csi_node=has_csi_node, is_new=True)
        if isinstance(own, Status):
            return own
        if csi_node is None or not own or not csi_node.limits:
            return SUCCESS
        on_node: dict[str, str] = {}
        for other in node_info.pods:
            found = self._volumes.of_pod(other, has_csi_node=has_csi_node, is_new=False)
            if isinstance(found, Status):
                return found
            on_node.update(found)
        attached = Counter(on_node.values())
        for volume, driver in self._elsewhere_attached(node_info.name).items():
            attached[driver] += volume not in on_node
        new = Counter(driver for volume, driver in own.items() if volume not in on_node)
        exceeded = any(
            driver in csi_node.limits and attached[driver] + count > csi_node.limits[driver]
            for driver, count in new.items()
        )
        return _REJECTED if exceeded else SUCCESS

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> NodeStatuses:
        self._attached.refresh(nodes.table)
        statuses = NodeStatuses(len(nodes))
        has_csi_node = np.asarray(nodes.gather(self._attached.has_csi_node), dtype=bool)
        without = self._volumes.of_pod(pod, has_csi_node=False, is_new=True)
        if isinstance(without, Status):
            statuses.reject(~has_csi_node, without)
        own = self._volumes.of_pod(pod, has_csi_node=True, is_new=True)
        if isinstance(own, Status):
            statuses.reject(has_csi_node, own)
        elif own:
            self._reject_full(statuses, nodes, own)
        return statuses

    def _reject_full(self, statuses: NodeStatuses, nodes: NodeInfos, own: Volumes) -> None:
        attached = self._attached
        for row, fault in attached.faults.items():
            if attached.has_limits[row]:
                bad = np.zeros(len(nodes.table), dtype=bool)
                bad[row] = True
                statuses.reject(np.asarray(nodes.gather(bad), dtype=bool), fault)
        exceeded: Bool = np.zeros(len(nodes.table), dtype=bool)
        for driver in set(own.values()):
            volumes = [volume for volume in own if own[volume] == driver]
            new = np.full(len(nodes.table), len(volumes), dtype=np.int64)
            for volume in volumes:
                new[attached.rows_using(volume)] -= 1
            limit = attached.limit(driver)
            exceeded |= (limit >= 0) & (new > 0) & (attached.count(driver) + new > limit)
        statuses.reject(np.asarray(nodes.gather(exceeded), dtype=bool), _REJECTED)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        resource = EventResource
        return (
            ClusterEventWithHint(ClusterEvent(resource.CSI_NODE, ActionType.ADD)),
            ClusterEventWithHint(
                ClusterEvent(resource.CSI_NODE, ActionType.UPDATE), _after_csi_node_update
            ),
            ClusterEventWithHint(ClusterEvent(resource.POD, ActionType.DELETE), _after_pod_delete),
            ClusterEventWithHint(
                ClusterEvent(resource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD),
                queue_if_claim_is_used,
            ),
            ClusterEventWithHint(
                ClusterEvent(resource.VOLUME_ATTACHMENT, ActionType.DELETE), _after_detach
            ),
        )

    def _elsewhere_attached(self, node: str) -> dict[str, str]:
        """Volumes of VolumeAttachments for the node."""
        found = map(self._volumes.of_attachment, self._attachments.by_index(BY_NODE, node))
        return dict(known for known in found if known is not None)


def _may_attach(pod: Pod) -> bool:
    """Whether any volume of the pod may count."""
    return any(
        v.source in ("persistentVolumeClaim", "ephemeral") or is_inline_migratable(v)
        for v in pod.volumes
    )


def _after_csi_node_update(_pod: Pod, old: Any, new: Any) -> QueueingHint:
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return QueueingHint.QUEUE
    return queue_if(any(limit > old.limits.get(driver, 0) for driver, limit in new.limits.items()))


def _after_pod_delete(_pod: Pod, old: Any, _new: Any) -> QueueingHint:
    return queue_if(held_a_node(old) and _may_attach(old))


def _after_detach(pod: Pod, old: Any, _new: Any) -> QueueingHint:
    attacher = old.attacher if isinstance(old, VolumeAttachment) else ""
    return queue_if(
        any(
            v.source == "persistentVolumeClaim"
            or (is_inline_migratable(v) and driver_of_inline(v) == attacher)
            for v in pod.volumes
        )
    )
