"""NodePorts: two pods cannot take the same host port of one node (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from scheduler_core.api import HostPort, Pod, host_ports, ports_conflict
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import (
    NODE_ADD,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from scheduler_core.framework.interface import EnqueueExtensions, FilterPlugin, PreFilterPlugin
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import Bool, NodeInfos
from scheduler_core.framework.status import SKIP, SUCCESS, Status, unschedulable
from scheduler_core.framework.types import PreFilterResult
from scheduler_core.plugins.helpers.hints import held_a_node, queue_if
from scheduler_core.plugins.helpers.stateless import StatelessPlugin

__all__ = ["NodePorts"]

_REJECTED: Final = unschedulable("node(s) didn't have free ports for the requested pod ports")


class NodePorts(StatelessPlugin, EnqueueExtensions, PreFilterPlugin, FilterPlugin):
    """Ports of containers and sidecars count; those of other init containers do not. Conflicts
    inside the pod itself are not looked for."""

    name = "NodePorts"

    def is_node_local(self, pod: Pod) -> bool:
        return True

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeInfos
    ) -> tuple[PreFilterResult | None, Status]:
        return None, SUCCESS if host_ports(pod) else SKIP

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        return _REJECTED if ports_conflict(host_ports(pod), node_info.used_ports) else SUCCESS

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> NodeStatuses:
        taken = np.zeros(len(nodes), dtype=bool)
        for port in host_ports(pod):
            taken |= _taken(nodes, port)
        return NodeStatuses.from_mask(taken, _REJECTED)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        deleted = ClusterEvent(EventResource.POD, ActionType.DELETE)
        return (
            ClusterEventWithHint(deleted, _after_pod_delete),
            ClusterEventWithHint(NODE_ADD),
        )


def _taken(nodes: NodeInfos, port: HostPort) -> Bool:
    """bool, shape (n,): nodes on which ``port`` conflicts.

    One column per (protocol, port) holds the addresses in use, of which there are few distinct
    sets.
    """

    def addresses(info: NodeInfo) -> frozenset[str] | None:
        used = (p for p in info.used_ports if p.port == port.port and p.protocol == port.protocol)
        return frozenset(p.ip for p in used) or None

    codes, distinct = nodes.derived(f"NodePorts/{port.protocol}/{port.port}", addresses)
    if not distinct:
        return np.zeros(len(nodes), dtype=bool)
    conflicts = [
        any(port.conflicts(HostPort(ip, port.protocol, port.port)) for ip in ips)
        for ips in distinct
    ]
    # Code -1, "nothing in use", points at the last entry.
    answer: Bool = np.array([*conflicts, False])[codes]
    return answer


def _after_pod_delete(pod: Pod, old: Any, _new: Any) -> QueueingHint:
    return queue_if(held_a_node(old) and ports_conflict(host_ports(pod), host_ports(old)))
