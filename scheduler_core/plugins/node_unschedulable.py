"""NodeUnschedulable: keeps pods off cordoned nodes (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from scheduler_core.api import TAINT_UNSCHEDULABLE, Node, Pod, tolerates
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from scheduler_core.framework.interface import EnqueueExtensions, FilterPlugin
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.status import SUCCESS, Status, unresolvable
from scheduler_core.plugins.helpers.hints import is_own_pod, queue_if
from scheduler_core.plugins.helpers.stateless import StatelessPlugin

__all__ = ["NodeUnschedulable"]

_REJECTED: Final = unresolvable("node(s) were unschedulable")


class NodeUnschedulable(StatelessPlugin, EnqueueExtensions, FilterPlugin):
    """A pod that tolerates the taint of cordoned nodes may go there all the same."""

    name = "NodeUnschedulable"
    reads_pods_on_node = False

    def is_node_local(self, pod: Pod) -> bool:
        return True

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        node = node_info.node
        if node is None or not node.unschedulable:
            return SUCCESS
        return SUCCESS if tolerates(pod.tolerations, TAINT_UNSCHEDULABLE) else _REJECTED

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> NodeStatuses:
        if tolerates(pod.tolerations, TAINT_UNSCHEDULABLE):
            return NodeStatuses(len(nodes))
        return NodeStatuses.from_mask(nodes.unschedulable, _REJECTED)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        node = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)
        toleration = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION)
        return (
            ClusterEventWithHint(node, _after_node_change),
            ClusterEventWithHint(toleration, _after_toleration_change),
        )


def _after_node_change(_pod: Pod, old: Any, new: Any) -> QueueingHint:
    opened = isinstance(new, Node) and not new.unschedulable
    was_closed = not isinstance(old, Node) or old.unschedulable
    return queue_if(opened and was_closed)


def _after_toleration_change(pod: Pod, _old: Any, new: Any) -> QueueingHint:
    return queue_if(is_own_pod(pod, new) and tolerates(new.tolerations, TAINT_UNSCHEDULABLE))
