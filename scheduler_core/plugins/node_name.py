"""NodeName: a pod that names its node goes there or nowhere (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import NODE_ADD, ClusterEventWithHint
from scheduler_core.framework.interface import EnqueueExtensions, FilterPlugin
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.status import SUCCESS, Status, unresolvable
from scheduler_core.plugins.helpers.stateless import StatelessPlugin

__all__ = ["NodeName"]

_REJECTED: Final = unresolvable("node(s) didn't match the requested node name")


class NodeName(StatelessPlugin, EnqueueExtensions, FilterPlugin):
    """Compares spec.nodeName, where there is one, with the node's name."""

    name = "NodeName"
    reads_pods_on_node = False

    def is_node_local(self, pod: Pod) -> bool:
        return True

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        if not pod.node_name or pod.node_name == node_info.name:
            return SUCCESS
        return _REJECTED

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> NodeStatuses:
        if not pod.node_name:
            return NodeStatuses(len(nodes))
        others = np.ones(len(nodes), dtype=bool)
        row = nodes.index_of(pod.node_name)
        if row >= 0:
            others[row] = False
        return NodeStatuses.from_mask(others, _REJECTED)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (ClusterEventWithHint(NODE_ADD),)
