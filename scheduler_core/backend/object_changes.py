"""What changed between two versions of a pod or node, as cluster events (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler_core.api import Node, Pod, assigned_requests
from scheduler_core.framework.events import ActionType, ClusterEvent, EventResource


def pod_change_events(old: Pod | None, new: Pod) -> list[ClusterEvent]:
    """One event per kind of change that scheduling may depend on; a plain update if there is none.

    The resource is AssignedPod or UnschedulablePod, by the new version's node.
    """
    resource = EventResource.ASSIGNED_POD if new.is_assigned else EventResource.UNSCHEDULABLE_POD
    actions = [] if old is None else [a for a, changed in _POD_CHANGES if changed(old, new)]
    return [ClusterEvent(resource, action) for action in actions or [ActionType.UPDATE_OTHER]]


def node_change_events(old: Node, new: Node) -> list[ClusterEvent]:
    """One event per kind of change that scheduling may depend on; none if there is no such one."""
    return [
        ClusterEvent(EventResource.NODE, action)
        for action, changed in _NODE_CHANGES
        if changed(old, new)
    ]


def _pod_labels(old: Pod, new: Pod) -> bool:
    return old.labels != new.labels


def _pod_scale_down(old: Pod, new: Pod) -> bool:
    wanted = assigned_requests(new)
    return any(wanted.get(name, 0) < amount for name, amount in assigned_requests(old).items())


def _pod_gates_eliminated(old: Pod, new: Pod) -> bool:
    return bool(old.scheduling_gates) and not new.scheduling_gates


def _pod_tolerations(old: Pod, new: Pod) -> bool:
    # The API server only lets tolerations be added, so the reference compares counts.
    return len(old.tolerations) != len(new.tolerations)


def _pod_generated_claims(old: Pod, new: Pod) -> bool:
    return bool(_claim_statuses(old) != _claim_statuses(new))


def _claim_statuses(pod: Pod) -> Any:
    return (pod.raw.get("status") or {}).get("resourceClaimStatuses")


def _node_taints(old: Node, new: Node) -> bool:
    uncordoned = old.unschedulable and not new.unschedulable
    return uncordoned or old.taints != new.taints


def _node_allocatable(old: Node, new: Node) -> bool:
    return old.allocatable != new.allocatable


def _node_labels(old: Node, new: Node) -> bool:
    return old.labels != new.labels


def _node_conditions(old: Node, new: Node) -> bool:
    return _condition_states(old) != _condition_states(new)


def _condition_states(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.conditions}


def _node_annotations(old: Node, new: Node) -> bool:
    return old.annotations != new.annotations


def _node_features(old: Node, new: Node) -> bool:
    return old.declared_features != new.declared_features


_POD_CHANGES: tuple[tuple[ActionType, Callable[[Pod, Pod], bool]], ...] = (
    (ActionType.UPDATE_POD_LABEL, _pod_labels),
    (ActionType.UPDATE_POD_SCALE_DOWN, _pod_scale_down),
    (ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, _pod_gates_eliminated),
    (ActionType.UPDATE_POD_TOLERATION, _pod_tolerations),
    (ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, _pod_generated_claims),
)

_NODE_CHANGES: tuple[tuple[ActionType, Callable[[Node, Node], bool]], ...] = (
    (ActionType.UPDATE_NODE_TAINT, _node_taints),
    (ActionType.UPDATE_NODE_ALLOCATABLE, _node_allocatable),
    (ActionType.UPDATE_NODE_LABEL, _node_labels),
    (ActionType.UPDATE_NODE_CONDITION, _node_conditions),
    (ActionType.UPDATE_NODE_ANNOTATION, _node_annotations),
    (ActionType.UPDATE_NODE_DECLARED_FEATURE, _node_features),
)
