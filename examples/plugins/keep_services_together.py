"""KeepServicesTogether: the pods of a service run on nodes with the same value of a label.

The first pod of a service may go anywhere where the label is; those that follow go where it went.
Arguments, in ``pluginConfig``::

    - name: KeepServicesTogether
      args:
        label: topology.kubernetes.io/zone
        required: true      # false: other nodes are only liked less
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scheduler_core.api import Node, Pod, Service
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.errors import PluginConfigError
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
    PreFilterExtensions,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Scores,
)
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.status import SKIP, SUCCESS, Status, unresolvable, unschedulable
from scheduler_core.framework.types import PreFilterResult
from scheduler_core.plugins.helpers.normalize import default_normalize

KNOWN_ARGS = {"label", "required"}
STATE = "KeepServicesTogether"


class Home:
    """The services of the pod, and how many of their pods run at each value of the label."""

    def __init__(self, services: Sequence[Service], pods: Counter[str]) -> None:
        self.services = services
        self.pods = pods

    def clone(self) -> Home:
        """Preemption tries out what it would change, on a copy."""
        return Home(self.services, self.pods.copy())

    def change(self, other: Pod, value: str | None, by: int) -> None:
        """A pod more, or one less, on a node with this value."""
        if value is None or not _selected(self.services, other):
            return
        self.pods[value] += by
        if not self.pods[value]:
            del self.pods[value]  # nobody is left there


class KeepServicesTogether(
    EnqueueExtensions,
    PreFilterPlugin,
    PreFilterExtensions,
    FilterPlugin,
    PreScorePlugin,
    ScorePlugin,
):
    """PreFilter counts, Filter keeps pods out of other places, Score prefers where most are."""

    name = "KeepServicesTogether"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        for unknown in sorted(set(args) - KNOWN_ARGS):
            raise PluginConfigError(unknown, "there is no such argument")
        self._label = args.get("label", "")
        if not isinstance(self._label, str) or not self._label:
            raise PluginConfigError("label", "Required value: the name of a node label")
        self._required = args.get("required", True)
        if not isinstance(self._required, bool):
            raise PluginConfigError("required", "Invalid value: must be true or false")
        # Asked for here, so that the scheduler watches services.
        self._services = handle.informer("Service")
        self._missing = unresolvable(f"node(s) didn't have the label {self._label}")
        self._elsewhere = unschedulable(
            f"node(s) didn't have the {self._label} of the other pods of the service"
        )

    # -- PreFilter: what the other points need to know ---------------------------------------------

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeInfos
    ) -> tuple[PreFilterResult | None, Status]:
        services = self._services_of(pod)
        if not services:
            return None, SKIP
        home = Home(services, Counter())
        for node_info in nodes:
            value = _value(node_info, self._label)
            for other in node_info.pods:
                home.change(other, value, 1)
        state.write(STATE, home)
        return None, (SUCCESS if self._required else SKIP)

    def pre_filter_extensions(self) -> PreFilterExtensions:
        return self

    def add_pod(self, state: CycleState, pod: Pod, to_add: Pod, node_info: NodeInfo) -> Status:
        """Preemption and nominated pods ask "what if": a pod more on the node."""
        state.read(STATE, Home).change(to_add, _value(node_info, self._label), 1)
        return SUCCESS

    def remove_pod(
        self, state: CycleState, pod: Pod, to_remove: Pod, node_info: NodeInfo
    ) -> Status:
        state.read(STATE, Home).change(to_remove, _value(node_info, self._label), -1)
        return SUCCESS

    # -- Filter ------------------------------------------------------------------------------------

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Plain form: one node."""
        value = _value(node_info, self._label)
        if value is None:
            return self._missing
        home = state.read(STATE, Home).pods
        return SUCCESS if not home or value in home else self._elsewhere

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> NodeStatuses:
        """Vector form: all nodes at once."""
        codes = nodes.label(self._label)  # -1 where the node lacks the label
        statuses = NodeStatuses.from_mask(codes < 0, self._missing)
        home = state.read(STATE, Home).pods
        if home:
            here = [value in home for value in nodes.label_values(self._label)]
            statuses.reject(~np.array([*here, True])[codes], self._elsewhere)
        return statuses

    # -- Score -------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Status:
        home = state.get(STATE)
        return SUCCESS if isinstance(home, Home) and home.pods else SKIP

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """How many pods of the service run at the node's value."""
        value = _value(node_info, self._label)
        return state.read(STATE, Home).pods[value] if value is not None else 0

    def score_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Scores:
        pods = state.read(STATE, Home).pods
        counts = [pods[value] for value in nodes.label_values(self._label)]
        return np.array([*counts, 0], dtype=np.int64)[nodes.label(self._label)]

    def normalize_score(
        self, state: CycleState, pod: Pod, nodes: NodeInfos, scores: Scores
    ) -> Scores:
        return default_normalize(scores)

    # -- what may help a pod that was turned down --------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        node = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        gone = ClusterEvent(EventResource.POD, ActionType.DELETE)
        return (
            ClusterEventWithHint(node, self._after_node_change),
            ClusterEventWithHint(gone, self._after_pod_left),
        )

    def _after_node_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        before = old.labels.get(self._label) if isinstance(old, Node) else None
        after = new.labels.get(self._label) if isinstance(new, Node) else None
        changed = after is not None and after != before
        return QueueingHint.QUEUE if changed else QueueingHint.SKIP

    def _after_pod_left(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """The last pod of the service may have left: then any value will do."""
        mate = isinstance(old, Pod) and _selected(self._services_of(pod), old)
        return QueueingHint.QUEUE if mate else QueueingHint.SKIP

    def _services_of(self, pod: Pod) -> list[Service]:
        return [
            service
            for service in self._services.list()
            if service.namespace == pod.namespace and service.selects(pod.labels)
        ]


def _selected(services: Sequence[Service], pod: Pod) -> bool:
    return any(s.namespace == pod.namespace and s.selects(pod.labels) for s in services)


def _value(node_info: NodeInfo, label: str) -> str | None:
    return node_info.node.labels.get(label) if node_info.node is not None else None
