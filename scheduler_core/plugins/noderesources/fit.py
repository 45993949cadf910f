"""NodeResourcesFit: does the pod fit, and how full would the node be? (kube-scheduler 1.36)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from scheduler_core.api import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    Node,
    Pod,
    assigned_requests,
    is_extended_resource,
    pod_requests,
    scoring_requests,
)
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
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Scores,
)
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import Bool, NodeInfos
from scheduler_core.framework.status import SUCCESS, Status, unresolvable, unschedulable
from scheduler_core.framework.types import PreFilterResult
from scheduler_core.plugins.helpers.hints import held_a_node, is_own_pod, queue_if
from scheduler_core.plugins.noderesources.amounts import (
    allocatable_column,
    counts_for_scoring,
    nonzero_requested,
    nonzero_requested_column,
    offered_amount,
    requested_column,
)
from scheduler_core.plugins.noderesources.fit_args import read_fit_args
from scheduler_core.plugins.noderesources.scorers import ShareColumn

__all__ = ["NodeResourcesFit"]

TOO_MANY_PODS: Final = "Too many pods"
_PRE_FILTER: Final = "PreFilterNodeResourcesFit"
_PRE_SCORE: Final = "PreScoreNodeResourcesFit"
_FIRST: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
#: Shortages of one pod that fit into the bits of an int64, one bit left for "hopeless".
_MAX_BITS: Final = 60


class NodeResourcesFit(
    EnqueueExtensions, PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin
):
    """Filters by free resources, scores by one of three strategies.

    A resource that the pod does not ask for is not looked at, so a pod without requests fits an
    overcommitted node. Reasons come in the order pods, cpu, memory, ephemeral-storage, then the
    other resources by name (the reference's order of those is random).

    Args (NodeResourcesFitArgs): ``ignoredResources``, ``ignoredResourceGroups`` (extended resources
    that the filter leaves alone), ``scoringStrategy``.

    Raises:
        PluginConfigError: the arguments do not hold together.
    """

    name = "NodeResourcesFit"

    def is_node_local(self, pod: Pod) -> bool:
        return True

    def __init__(self, args: Mapping[str, Any], _handle: Handle) -> None:
        self._args = read_fit_args(args)

    # -- Filter ----------------------------------------------------------------------------------

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeInfos
    ) -> tuple[PreFilterResult | None, Status]:
        """Sums up once what the filter looks at."""
        state.write(_PRE_FILTER, self._checked_requests(pod))
        return None, SUCCESS

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        reasons: list[str] = []
        hopeless = False
        offers, requested = node_info.allocatable, node_info.requested
        if len(node_info.pods) + 1 > offers.get(PODS, 0):
            reasons.append(TOO_MANY_PODS)
        for resource, amount in state.get(_PRE_FILTER) or self._checked_requests(pod):
            offered = offered_amount(offers, resource)
            if amount > offered - requested.get(resource, 0):
                reasons.append(f"Insufficient {resource}")
                hopeless = hopeless or amount > offered
        return _rejection(reasons, hopeless) if reasons else SUCCESS

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> NodeStatuses:
        shortages: list[tuple[str, Bool]] = []
        hopeless = np.zeros(len(nodes), dtype=bool)
        full = nodes.pod_count >= nodes.allowed_pod_number
        if full.any():
            shortages.append((TOO_MANY_PODS, full))
        for resource, amount in self._checked_requests(pod):
            offered = allocatable_column(nodes, resource)
            short = offered - requested_column(nodes, resource) < amount
            if short.any():
                shortages.append((f"Insufficient {resource}", short))
                hopeless |= offered < amount
        if len(shortages) > _MAX_BITS:
            return NodeStatuses.from_list([self.filter(state, pod, info) for info in nodes])
        return _statuses(shortages, hopeless)

    def _checked_requests(self, pod: Pod) -> list[tuple[str, int]]:
        """(resource, amount > 0) that the filter looks at, in the order of their reasons."""
        requests = pod_requests(pod)
        known = [(name, requests[name]) for name in _FIRST if name in requests]
        if len(known) == len(requests):
            return known
        others = sorted(name for name in requests if name not in _FIRST)
        return known + [(name, requests[name]) for name in others if not self._is_ignored(name)]

    def _is_ignored(self, resource: str) -> bool:
        if not is_extended_resource(resource):
            return False
        group = resource.partition("/")[0]
        return resource in self._args.ignored_resources or group in self._args.ignored_groups

    # -- Score -----------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Status:
        """Sums up once what the pod counts for."""
        state.write(_PRE_SCORE, self._scored_requests(pod))
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        offers = node_info.allocatable
        shares = [
            (weight, nonzero_requested(node_info, name) + amount, offered)
            for name, weight, amount in state.get(_PRE_SCORE) or self._scored_requests(pod)
            if (offered := offered_amount(offers, name)) > 0
        ]
        return self._args.scorer.score(shares)

    def score_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Scores:
        columns = [
            ShareColumn(
                weight,
                nonzero_requested_column(nodes, name) + amount,
                allocatable_column(nodes, name),
            )
            for name, weight, amount in self._scored_requests(pod)
        ]
        return self._args.scorer.scores(columns, len(nodes))

    def _scored_requests(self, pod: Pod) -> list[tuple[str, int, int]]:
        """(resource, weight, the pod's amount) that are scored."""
        own = scoring_requests(pod)
        return [
            (name, weight, amount)
            for name, weight in self._args.resources
            if counts_for_scoring(name, amount := own.get(name, 0))
        ]

    # -- events ----------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        pods, node = EventResource.POD, EventResource.NODE
        deleted = ClusterEvent(pods, ActionType.DELETE)
        scaled_down = ClusterEvent(pods, ActionType.UPDATE_POD_SCALE_DOWN)
        grown = ClusterEvent(node, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE)
        return (
            ClusterEventWithHint(deleted, _after_pod_delete),
            ClusterEventWithHint(scaled_down, _after_scale_down),
            ClusterEventWithHint(grown, self._after_node_change),
        )

    def _after_node_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        if not isinstance(new, Node):
            return QueueingHint.SKIP
        if not self.filter(CycleState(), pod, NodeInfo(new)).is_success:
            return QueueingHint.SKIP
        return queue_if(not isinstance(old, Node) or _offers_more(pod, old, new))


def _rejection(reasons: Sequence[str], hopeless: bool) -> Status:
    if not reasons:
        return SUCCESS
    return unresolvable(*reasons) if hopeless else unschedulable(*reasons)


def _statuses(shortages: Sequence[tuple[str, Bool]], hopeless: Bool) -> NodeStatuses:
    """One status per distinct set of shortages. ``hopeless``: preemption cannot help there."""
    statuses = NodeStatuses(len(hopeless))
    if not shortages:
        return statuses
    rows = np.flatnonzero(np.logical_or.reduce([mask for _, mask in shortages]))
    codes = hopeless[rows].astype(np.int64)
    for bit, (_, mask) in enumerate(shortages, start=1):
        codes |= mask[rows].astype(np.int64) << bit
    patterns = np.unique(codes)
    ids = [statuses.intern(_decode(int(pattern), shortages)) for pattern in patterns]
    statuses.ids[rows] = np.array(ids, dtype=np.int32)[np.searchsorted(patterns, codes)]
    return statuses


def _decode(pattern: int, shortages: Sequence[tuple[str, Bool]]) -> Status:
    reasons = [text for bit, (text, _) in enumerate(shortages, start=1) if pattern >> bit & 1]
    return _rejection(reasons, hopeless=bool(pattern & 1))


def _after_pod_delete(_pod: Pod, old: Any, _new: Any) -> QueueingHint:
    return queue_if(held_a_node(old))


def _after_scale_down(pod: Pod, old: Any, new: Any) -> QueueingHint:
    if is_own_pod(pod, new):
        return QueueingHint.QUEUE
    if not isinstance(old, Pod) or not isinstance(new, Pod) or not new.node_name:
        return QueueingHint.SKIP
    before, after = assigned_requests(old), assigned_requests(new)
    return queue_if(any(after.get(name, 0) < before.get(name, 0) for name in pod_requests(pod)))


def _offers_more(pod: Pod, old: Node, new: Node) -> bool:
    names = ("pods", *pod_requests(pod))
    return any(new.allocatable.get(n, 0) > old.allocatable.get(n, 0) for n in names)
