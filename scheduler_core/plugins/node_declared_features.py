"""NodeDeclaredFeatures: nodes must say that they have what the pod needs (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from scheduler_core.api import Node, Pod
from scheduler_core.api.containers import RESTART_ALL_CONTAINERS
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from scheduler_core.framework.interface import EnqueueExtensions, FilterPlugin, PreFilterPlugin
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.status import SKIP, SUCCESS, Status, unresolvable
from scheduler_core.framework.types import PreFilterResult
from scheduler_core.plugins.helpers.hints import is_own_pod, queue_if
from scheduler_core.plugins.helpers.stateless import StatelessPlugin

__all__ = ["NodeDeclaredFeatures"]

_REJECTED: Final = unresolvable("node(s) didn't match Pod's required features")
_STATE: Final = "PreFilterNodeDeclaredFeatures"
_RESTART_ALL: Final = "RestartAllContainersOnContainerExits"
_HOST_NETWORK: Final = "UserNamespacesHostNetworkSupport"


class NodeDeclaredFeatures(StatelessPlugin, EnqueueExtensions, PreFilterPlugin, FilterPlugin):
    """Compares what the pod's spec needs with ``node.status.declaredFeatures``."""

    name = "NodeDeclaredFeatures"
    reads_pods_on_node = False

    def is_node_local(self, pod: Pod) -> bool:
        return True

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeInfos
    ) -> tuple[PreFilterResult | None, Status]:
        needed = _needed(pod)
        if not needed:
            return None, SKIP
        state.write(_STATE, needed)
        return None, SUCCESS

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        needed = state.read(_STATE, frozenset)
        declared = node_info.node.declared_features if node_info.node is not None else frozenset()
        return SUCCESS if needed <= declared else _REJECTED

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> NodeStatuses:
        needed = state.read(_STATE, frozenset)
        codes, distinct = nodes.derived("NodeDeclaredFeatures", _declared)
        lacking = [not needed <= declared for declared in distinct]
        # Code -1, "declares nothing", points at the last entry.
        return NodeStatuses.from_mask(np.array([*lacking, bool(needed)])[codes], _REJECTED)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        node = ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE
        return (
            ClusterEventWithHint(ClusterEvent(EventResource.NODE, node), _after_node_change),
            ClusterEventWithHint(
                ClusterEvent(EventResource.POD, ActionType.UPDATE), _after_pod_update
            ),
        )


def _needed(pod: Pod) -> frozenset[str]:
    """Features that the pod's spec cannot do without."""
    needed = set()
    containers = (*pod.containers, *pod.init_containers)
    if any(RESTART_ALL_CONTAINERS in c.restart_rule_actions for c in containers):
        needed.add(_RESTART_ALL)
    if pod.host_network and not pod.host_users:
        needed.add(_HOST_NETWORK)
    return frozenset(needed)


def _declared(info: NodeInfo) -> frozenset[str] | None:
    return (info.node.declared_features if info.node is not None else None) or None


def _after_node_change(_pod: Pod, old: Any, new: Any) -> QueueingHint:
    if not isinstance(old, Node) or not isinstance(new, Node):
        return QueueingHint.QUEUE
    return queue_if(old.declared_features != new.declared_features)


def _after_pod_update(pod: Pod, old: Any, new: Any) -> QueueingHint:
    if not is_own_pod(pod, new):
        return QueueingHint.SKIP
    return queue_if(not isinstance(old, Pod) or _needed(old) != _needed(new))
