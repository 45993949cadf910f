"""Cluster events that may make a pod schedulable, and queueing hints (kube-scheduler 1.36)."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scheduler_core.api import Pod


class ActionType(enum.IntFlag):
    """What happened to an object; several bits may be set. Values follow the reference's order,
    because "event bits <= registered bits" is part of the matching rule."""

    NONE = 0
    ADD = 1
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    UPDATE_NODE_DECLARED_FEATURE = 1 << 7
    UPDATE_POD_LABEL = 1 << 8
    UPDATE_POD_SCALE_DOWN = 1 << 9
    UPDATE_POD_TOLERATION = 1 << 10
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 11
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 12
    UPDATE_OTHER = 1 << 13
    UPDATE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION
        | UPDATE_NODE_DECLARED_FEATURE
        | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_POD_GENERATED_RESOURCE_CLAIM
        | UPDATE_OTHER
    )
    ALL = ADD | DELETE | UPDATE


_ACTION_LABELS = {
    ActionType.ADD: "Add",
    ActionType.DELETE: "Delete",
    ActionType.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    ActionType.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    ActionType.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    ActionType.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    ActionType.UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    ActionType.UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    ActionType.UPDATE_POD_LABEL: "UpdatePodLabel",
    ActionType.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    ActionType.UPDATE_POD_TOLERATION: "UpdatePodToleration",
    ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
    ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "UpdatePodGeneratedResourceClaim",
    ActionType.UPDATE_OTHER: "Update",
    ActionType.UPDATE: "Update",
    ActionType.ALL: "All",
}


class EventResource(enum.StrEnum):
    """The kind of object of an event. ``AssignedPod`` and ``UnschedulablePod`` are what the event
    handlers fire for bound and for waiting pods; a plugin that registers ``Pod`` gets both."""

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULABLE_POD = "UnschedulablePod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    POD_GROUP = "scheduling.x-k8s.io/PodGroup"
    NATIVE_POD_GROUP = "scheduling.k8s.io/PodGroup"
    WILDCARD = "*"


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """Something that happened in the cluster. ``custom_label`` names events that no object change
    explains, such as ``UnschedulableTimeout``."""

    resource: EventResource
    action: ActionType
    custom_label: str = ""

    @property
    def label(self) -> str:
        """As in the metric ``scheduler_queue_incoming_pods_total``: ``NodeUpdateNodeTaint``."""
        if self.custom_label:
            return self.custom_label
        return f"{self.resource}{_ACTION_LABELS.get(self.action, str(int(self.action)))}"

    @property
    def is_wildcard(self) -> bool:
        return self.resource is EventResource.WILDCARD and self.action is ActionType.ALL

    def matched_by(self, registered: ClusterEvent) -> bool:
        """Whether a plugin that registered ``registered`` wants to hear of this event.

        kube-scheduler 1.36: same resource (``Pod`` also takes AssignedPod and UnschedulablePod,
        ``*`` takes all), overlapping action bits, and no bits above the registered ones.
        """
        if registered.is_wildcard:
            return True
        if not _same_resource(registered.resource, self.resource):
            return False
        return bool(registered.action & self.action) and self.action <= registered.action


def _same_resource(registered: EventResource, incoming: EventResource) -> bool:
    if registered in (incoming, EventResource.WILDCARD):
        return True
    pods = (EventResource.ASSIGNED_POD, EventResource.UNSCHEDULABLE_POD)
    return registered is EventResource.POD and incoming in pods


class QueueingHint(enum.Enum):
    """A plugin's answer to "may this event make this pod schedulable?"."""

    SKIP = 0
    QUEUE = 1


#: (pod, old object or None, new object or None) -> hint. An exception counts as QUEUE.
QueueingHintFn = Callable[[Pod, Any, Any], QueueingHint]


@dataclass(frozen=True, slots=True)
class ClusterEventWithHint:
    """An event that a plugin registers; no ``hint`` means "always Queue"."""

    event: ClusterEvent
    hint: QueueingHintFn | None = None


WILDCARD_EVENT = ClusterEvent(EventResource.WILDCARD, ActionType.ALL)
UNSCHEDULABLE_TIMEOUT = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "ForceActivate")
BACKOFF_COMPLETE = "BackoffComplete"
SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"
POP_FROM_BACKOFF_Q = "PopFromBackoffQ"

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_DELETE = ClusterEvent(EventResource.NODE, ActionType.DELETE)
ASSIGNED_POD_ADD = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD)
ASSIGNED_POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
UNSCHEDULABLE_POD_ADD = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.ADD)
UNSCHEDULABLE_POD_UPDATE = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_OTHER)
