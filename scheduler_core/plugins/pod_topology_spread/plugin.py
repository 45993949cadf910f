"""The plugin class of PodTopologySpread (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

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
from scheduler_core.framework.nodes import Bool, NodeInfos, Rows
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
from scheduler_core.plugins.helpers.tally import Recent, kept_at_most
from scheduler_core.plugins.pod_topology_spread import hints
from scheduler_core.plugins.pod_topology_spread.constraints import Constraint, ConstraintSource
from scheduler_core.plugins.pod_topology_spread.counting import Spread, carries_keys, spreads
from scheduler_core.plugins.pod_topology_spread.scoring import KeptScores, SpreadScores

__all__ = ["PodTopologySpread"]

_TOO_UNEVEN: Final = unschedulable("node(s) didn't match pod topology spread constraints")
_NO_LABEL: Final = unresolvable(
    "node(s) didn't match pod topology spread constraints (missing required label)"
)
_FILTER_STATE: Final = "PreFilterPodTopologySpread"
_SCORE_STATE: Final = "PreScorePodTopologySpread"


class _Kept:
    """What is kept for the next pod with the same signature.

    Attributes:
        constraints: whenUnsatisfiable -> the pod's own constraints.
        too_full: of each hard constraint, the nodes' domains and which domains have no room; what
            ``statuses`` follow from.
        statuses: of all nodes; never written to.
    """

    __slots__ = ("constraints", "scores", "statuses", "too_full")

    def __init__(self) -> None:
        self.constraints: dict[str, tuple[Constraint, ...]] = {}
        self.too_full: list[tuple[Rows, Bool]] = []
        self.statuses: NodeStatuses | None = None
        self.scores = KeptScores()


@dataclass(slots=True)
class _PreFiltered:
    """The hard constraints of the pod and their domains."""

    spreads: list[Spread]
    kept: _Kept

    def clone(self) -> _PreFiltered:
        return _PreFiltered([spread.clone() for spread in self.spreads], self.kept)


#: For pods without constraints, of which nothing is kept.
_NOTHING_KEPT: Final = _Kept()


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
        self._kept: Recent[_Kept] = Recent(1)
        self._handle = handle
        self._extensions = _Extensions()

    def _constraints(
        self, pod: Pod, action: str, nodes: NodeInfos
    ) -> tuple[tuple[Constraint, ...], _Kept]:
        """The pod's constraints of that action and what is kept for pods like it.

        Raises:
            ValueError: a selector does not parse.
        """
        if not pod.topology_spread_constraints:
            constraints = self._source.defaults(pod, action)
            return constraints, self._kept_for(pod, nodes) if constraints else _NOTHING_KEPT
        kept = self._kept_for(pod, nodes)
        known = kept.constraints.get(action)
        if known is None:
            known = kept.constraints[action] = self._source.constraints(pod, action)
        return known, kept

    def _kept_for(self, pod: Pod, nodes: NodeInfos) -> _Kept:
        self._kept.limit = kept_at_most(len(nodes.table), arrays=4)
        return self._kept.get(pod.signature, _Kept)

    # -- Filter ------------------------------------------------------------------------------------

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeInfos
    ) -> tuple[PreFilterResult | None, Status]:
        """Counts the pods per domain; Skip without hard constraints."""
        try:
            constraints, kept = self._constraints(pod, DO_NOT_SCHEDULE, nodes)
        except ValueError as exc:
            text = "get constraints from pod: obtaining pod's hard topology spread constraints"
            return None, error(f"{text}: {exc}")
        if not constraints:
            return None, SKIP
        state.write(_FILTER_STATE, _PreFiltered(spreads(pod, constraints, nodes.table), kept))
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
        """For all nodes of the table: the same object as before where nothing is otherwise."""
        known = _filter_state(state)
        kept = known.kept
        too_full = [(s.domains.sums.topology.domain_of, _too_full(s, pod)) for s in known.spreads]
        if kept.statuses is None or not _are_equal(kept.too_full, too_full):
            kept.statuses, kept.too_full = _statuses(known.spreads, too_full), too_full
        return kept.statuses if nodes.rows is None else kept.statuses.taken(nodes.rows)

    # -- Score -------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Status:
        """Counts the pods per domain of feasible nodes; Skip without soft constraints."""
        try:
            constraints, kept = self._constraints(pod, SCHEDULE_ANYWAY, nodes)
        except ValueError as exc:
            text = "calculating preScoreState: obtaining pod's soft topology spread constraints"
            return error(f"{text}: {exc}")
        if not constraints:
            return SKIP
        require_all = bool(pod.topology_spread_constraints) or not self._source.system_defaulting
        scores = SpreadScores(pod, constraints, nodes, require_all, kept.scores)
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


def _too_full(spread: Spread, pod: Pod) -> Bool:
    """bool, shape (size + 1,): domains that have no room for the pod."""
    constraint = spread.constraint
    after = spread.domains.by_domain() + constraint.selects(pod.labels)
    too_full: Bool = after > spread.room()
    return too_full


def _are_equal(before: list[tuple[Rows, Bool]], now: list[tuple[Rows, Bool]]) -> bool:
    return len(before) == len(now) and all(
        a[0] is b[0] and np.array_equal(a[1], b[1]) for a, b in zip(before, now, strict=True)
    )


def _statuses(spreads: list[Spread], too_full: list[tuple[Rows, Bool]]) -> NodeStatuses:
    """Of all nodes of the table."""
    size = len(too_full[0][0])
    statuses = NodeStatuses(size)
    for spread, (domain_of, full) in zip(spreads, too_full, strict=True):
        domains = spread.domains.sums.topology
        if not domains.is_everywhere:
            statuses.reject(domain_of == domains.size, _NO_LABEL)
        if full.any():
            statuses.reject(full.take(domain_of), _TOO_UNEVEN)
    statuses.ids.setflags(write=False)  # others get the same object
    return statuses


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
