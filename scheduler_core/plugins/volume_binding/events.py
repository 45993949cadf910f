"""What may bring a pod back that VolumeBinding turned down (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduler_core.api import Pod
from scheduler_core.api.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass
from scheduler_core.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from scheduler_core.plugins.helpers.claims import queue_if_claim_is_used
from scheduler_core.plugins.helpers.csi_migration import MIGRATED_PLUGINS
from scheduler_core.plugins.helpers.hints import queue_if

__all__ = ["EVENTS"]


def _after_class_change(_pod: Pod, old: Any, new: Any) -> QueueingHint:
    if not isinstance(old, StorageClass) or not isinstance(new, StorageClass):
        return QueueingHint.QUEUE
    return queue_if(old.allowed_topologies != new.allowed_topologies)


def _after_csi_node_change(_pod: Pod, old: Any, new: Any) -> QueueingHint:
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return QueueingHint.QUEUE
    before, now = (c.annotations.get(MIGRATED_PLUGINS, "") for c in (old, new))
    return queue_if(before != now)


def _after_driver_update(pod: Pod, old: Any, new: Any) -> QueueingHint:
    if not isinstance(old, CSIDriver) or not isinstance(new, CSIDriver):
        return QueueingHint.QUEUE
    uses_it = any(v.source == "csi" and v.spec.get("driver") == new.name for v in pod.volumes)
    return queue_if(uses_it and old.storage_capacity and not new.storage_capacity)


def _after_capacity_change(_pod: Pod, old: Any, new: Any) -> QueueingHint:
    if not isinstance(old, CSIStorageCapacity) or not isinstance(new, CSIStorageCapacity):
        return QueueingHint.QUEUE
    return queue_if(new.limit is not None and (old.limit is None or new.limit > old.limit))


_CHANGED = ActionType.ADD | ActionType.UPDATE

EVENTS: Sequence[ClusterEventWithHint] = (
    ClusterEventWithHint(ClusterEvent(EventResource.STORAGE_CLASS, _CHANGED), _after_class_change),
    ClusterEventWithHint(
        ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, _CHANGED), queue_if_claim_is_used
    ),
    ClusterEventWithHint(ClusterEvent(EventResource.PERSISTENT_VOLUME, _CHANGED)),
    ClusterEventWithHint(
        ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
    ),
    ClusterEventWithHint(ClusterEvent(EventResource.CSI_NODE, _CHANGED), _after_csi_node_change),
    ClusterEventWithHint(
        ClusterEvent(EventResource.CSI_DRIVER, ActionType.UPDATE), _after_driver_update
    ),
    ClusterEventWithHint(
        ClusterEvent(EventResource.CSI_STORAGE_CAPACITY, _CHANGED), _after_capacity_change
    ),
)
