"""The plugin class of PodTopologySpread (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scheduler_core.api import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, Pod
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
    PreFilterExtensions,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Scores,
)
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.status import (
    SKIP,
    SUCCESS,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from scheduler_core.framework.types import PreFilterResult
from scheduler_core.plugins.helpers.cycle_data import read_state
from scheduler_core.plugins.pod_topology_spread import hints
from scheduler_core.plugins.pod_topology_spread.constraints import ConstraintSource
from scheduler_core.plugins.pod_topology_spread.counting import Spread, SpreadCounter, carries_keys
from scheduler_core.plugins.pod_topology_spread.scoring import SpreadScores

__all__ = ["PodTopologySpread"]

_TOO_UNEVEN: Final = unschedulable("node(s) didn't match pod topology spread constraints")
_NO_LABEL: Final = unresolvable(
    "node(s) didn't match pod topology spread constraints (missing required label)"
)
_FILTER_STATE: Final = "PreFilterPodTopologySpread"
_SCORE_STATE: Final = "PreScorePodTopologySpread"


@dataclass(slots=True)
class _PreFiltered:
    """The hard constraints of the pod and their domains."""

    spreads: list[Spread]

    def clone(self) -> _PreFiltered:
        return _PreFiltered([spread.clone() for spread in self.spreads])


class PodTopologySpread(
    EnqueueExtensions, PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin
):
    """Args (PodTopologySpreadArgs): ``defaultingType`` (System or List), ``defaultConstraints``.

    A pod may go where, afterwards, its domain has at most maxSkew more matching pods than the
    domain with the fewest (DoNotSchedule), and better goes where there are few (ScheduleAnyway).
    """

    name = "PodTopologySpread"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._source = ConstraintSource(args, handle)
        self._counter = SpreadCounter()
        self._handle = handle
        self._extensions = _Extensions()

    # -- Filter ------------------------------------------------------------------------------------

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeInfos
    ) -> tuple[PreFilterResult | None, Status]:
        """Counts the pods per domain; Skip without hard constraints."""
        try:
            constraints = self._source.constraints(pod, DO_NOT_SCHEDULE)
        except ValueError as exc:
            text = "get constraints from pod: obtaining pod's hard topology spread constraints"
            return None, error(f"{text}: {exc}")
        if not constraints:
            return None, SKIP
        self._counter.update(nodes)
        state.write(_FILTER_STATE, _PreFiltered(self._counter.spreads(pod, constraints, nodes)))
        return None, SUCCESS

    def pre_filter_extensions(self) -> PreFilterExtensions:
        return self._extensions

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        labels = node_info.node.labels if node_info.node is not None else {}
        for spread in _filter_state(state).spreads:
            constraint = spread.constraint
            value = labels.get(constraint.topology_key)
            if value is None:
                return _NO_LABEL
            after = spread.domains.get(value) + constraint.selects(pod.labels)
            if after > spread.room():
                return _TOO_UNEVEN
        return SUCCESS

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> NodeStatuses:
        statuses = NodeStatuses(len(nodes))
        for spread in _filter_state(state).spreads:
            constraint = spread.constraint
            codes = nodes.label(constraint.topology_key)
            statuses.reject(codes < 0, _NO_LABEL)
            after = spread.domains.by_code() + constraint.selects(pod.labels)
            statuses.reject((after > spread.room())[codes], _TOO_UNEVEN)
        return statuses

    # -- Score -------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Status:
        """Counts the pods per domain of feasible nodes; Skip without soft constraints."""
        try:
            constraints = self._source.constraints(pod, SCHEDULE_ANYWAY)
        except ValueError as exc:
            text = "calculating preScoreState: obtaining pod's soft topology spread constraints"
            return error(f"{text}: {exc}")
        if not constraints:
            return SKIP
        self._counter.update(nodes)
        require_all = bool(pod.topology_spread_constraints) or not self._source.system_defaulting
        scores = SpreadScores(self._counter, pod, constraints, nodes, require_all)
        state.write(_SCORE_STATE, scores)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        return _score_state(state).score(node_info, self._handle.nodes)

    def score_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Scores:
        return _score_state(state).score_nodes(nodes)

    def normalize_score(
        self, state: CycleState, pod: Pod, nodes: NodeInfos, scores: Scores
    ) -> Scores:
        return _score_state(state).normalize(nodes, scores)

    # -- events ------------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        pods = ClusterEvent(
            EventResource.POD,
            ActionType.ADD
            | ActionType.DELETE
            | ActionType.UPDATE_POD_LABEL
            | ActionType.UPDATE_POD_TOLERATION,
        )
        nodes = ClusterEvent(
            EventResource.NODE,
            ActionType.ADD
            | ActionType.DELETE
            | ActionType.UPDATE_NODE_LABEL
            | ActionType.UPDATE_NODE_TAINT,
        )
        return (
            ClusterEventWithHint(pods, self._after_pod_change),
            ClusterEventWithHint(nodes, self._after_node_change),
        )

    def _after_pod_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        constraints = self._source.constraints(pod, DO_NOT_SCHEDULE)
        return hints.after_pod_change(pod, constraints, old, new)

    def _after_node_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        constraints = self._source.constraints(pod, DO_NOT_SCHEDULE)
        return hints.after_node_change(constraints, old, new)


class _Extensions(PreFilterExtensions):
    """Pods that come or go in thought change the count of their domain. Pods that are being deleted
    are no exception here."""

    def add_pod(self, state: CycleState, pod: Pod, to_add: Pod, node_info: NodeInfo) -> Status:
        return _move(state, pod, to_add, node_info, 1)

    def remove_pod(
        self, state: CycleState, pod: Pod, to_remove: Pod, node_info: NodeInfo
    ) -> Status:
        return _move(state, pod, to_remove, node_info, -1)


def _move(state: CycleState, pod: Pod, other: Pod, node_info: NodeInfo, amount: int) -> Status:
    spreads = _filter_state(state).spreads
    node = node_info.node
    if node is None or other.namespace != pod.namespace:
        return SUCCESS
    if not carries_keys(node, (spread.constraint for spread in spreads)):
        return SUCCESS
    for spread in spreads:
        constraint = spread.constraint
        if constraint.selects(other.labels) and constraint.admits(pod, node):
            spread.domains.add(node.labels[constraint.topology_key], amount)
    return SUCCESS


def _filter_state(state: CycleState) -> _PreFiltered:
    return read_state(state, _FILTER_STATE, _PreFiltered, "reading")


def _score_state(state: CycleState) -> SpreadScores:
    return read_state(state, _SCORE_STATE, SpreadScores, "error reading")
