"""The plugin class of InterPodAffinity (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from scheduler_core.framework.interface import (
    MAX_NODE_SCORE,
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
from scheduler_core.framework.nodes import Bool, NodeInfos
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
from scheduler_core.plugins.inter_pod_affinity import hints
from scheduler_core.plugins.inter_pod_affinity.counting import AffinityCounter, TopologyCounts
from scheduler_core.plugins.inter_pod_affinity.terms import (
    OwnTerms,
    existing_anti_affinity,
    matches_all,
    parse_error,
    preferred_terms,
)

__all__ = ["InterPodAffinity"]

_NOT_NEAR: Final = unresolvable("node(s) didn't match pod affinity rules")
_TOO_NEAR: Final = unschedulable("node(s) didn't match pod anti-affinity rules")
_UNWANTED: Final = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")
_FILTER_STATE: Final = "PreFilterInterPodAffinity"
_SCORE_STATE: Final = "PreScoreInterPodAffinity"


@dataclass(slots=True)
class _PreFiltered:
    """The pod's required terms and three maps of pairs (topology key, value) -> number.

    Attributes:
        namespace_labels: labels of the pod's namespace.
        existing: required anti-affinity terms of pods on nodes that match the pod.
        affinity: pods that match all required affinity terms of the pod, per term.
        anti_affinity: pods that match a required anti-affinity term of the pod, per term.
        matches_itself: the pod matches all its required affinity terms.
    """

    own: OwnTerms
    namespace_labels: Mapping[str, str]
    existing: TopologyCounts
    affinity: TopologyCounts
    anti_affinity: TopologyCounts
    matches_itself: bool

    def clone(self) -> _PreFiltered:
        return _PreFiltered(
            self.own,
            self.namespace_labels,
            self.existing.clone(),
            self.affinity.clone(),
            self.anti_affinity.clone(),
            self.matches_itself,
        )

    def may_be_first(self) -> bool:
        """The first of pods that want to be together: nobody is there yet, and it would be wanted
        by itself."""
        return self.matches_itself and self.affinity.is_zero()


@dataclass(frozen=True, slots=True)
class _PreScored:
    """Sums of weights per pair (topology key, value)."""

    weights: TopologyCounts


class InterPodAffinity(
    EnqueueExtensions, PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin
):
    """Args (InterPodAffinityArgs): ``hardPodAffinityWeight`` (0 to 100),
    ``ignorePreferredTermsOfExistingPods``."""

    name = "InterPodAffinity"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._hard_weight = int(args.get("hardPodAffinityWeight", 1))
        self._ignore_existing = bool(args.get("ignorePreferredTermsOfExistingPods", False))
        self._namespaces = handle.informer("Namespace")
        self._counter = AffinityCounter()
        self._extensions = _Extensions()

    # -- Filter ------------------------------------------------------------------------------------

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeInfos
    ) -> tuple[PreFilterResult | None, Status]:
        """Counts what matches; Skip where nothing can keep the pod off a node."""
        problem = parse_error(pod)
        if problem:
            return None, unresolvable(f"parsing pod: {problem}")
        own = OwnTerms.of(pod, self._namespaces)
        labels = self._namespace_labels(pod)
        existing = self._counter.existing_anti_affinity(pod, labels, nodes)
        if not own.affinity and not own.anti_affinity and existing.is_zero():
            return None, SKIP
        state.write(
            _FILTER_STATE,
            _PreFiltered(
                own,
                labels,
                existing,
                self._counter.matching_all(own.affinity, nodes),
                self._counter.matching_each(own.anti_affinity, nodes),
                matches_all(own.affinity, pod),
            ),
        )
        return None, SUCCESS

    def pre_filter_extensions(self) -> PreFilterExtensions:
        return self._extensions

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        known = _filter_state(state)
        labels = node_info.node.labels if node_info.node is not None else {}
        if not _is_near(known, labels):
            return _NOT_NEAR
        for term in known.own.anti_affinity:
            value = labels.get(term.topology_key)
            if value is not None and known.anti_affinity.get(term.topology_key, value) > 0:
                return _TOO_NEAR
        if any(count > 0 for count in known.existing.of_labels(labels)):
            return _UNWANTED
        return SUCCESS

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> NodeStatuses:
        known = _filter_state(state)
        statuses = NodeStatuses(len(nodes))
        if known.own.affinity:
            statuses.reject(~_near_mask(known, nodes), _NOT_NEAR)
        for key in {term.topology_key for term in known.own.anti_affinity}:
            statuses.reject(known.anti_affinity.over(nodes, key) > 0, _TOO_NEAR)
        for key in known.existing.topology_keys:
            statuses.reject(known.existing.over(nodes, key) > 0, _UNWANTED)
        return statuses

    # -- Score -------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Status:
        """Sums up weights; Skip where no term matches anything."""
        problem = parse_error(pod)
        if problem:
            return error(f"failed to parse pod: {problem}")
        own = preferred_terms(pod, self._namespaces)
        if self._ignore_existing and not own:
            return SKIP
        labels = self._namespace_labels(pod)
        weights = self._counter.weights(pod, own, labels, self._hard_weight, nodes)
        if weights is None:
            return SKIP
        state.write(_SCORE_STATE, _PreScored(weights))
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        labels = node_info.node.labels if node_info.node is not None else {}
        return sum(_score_state(state).weights.of_labels(labels))

    def score_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Scores:
        weights = _score_state(state).weights
        total = np.zeros(len(nodes), dtype=np.int64)
        for key in weights.topology_keys:
            total += weights.over(nodes, key)
        return total

    def normalize_score(
        self, state: CycleState, pod: Pod, nodes: NodeInfos, scores: Scores
    ) -> Scores:
        """The lowest score becomes 0, the highest 100; what is between is cut off, not rounded."""
        if not len(scores):
            return scores
        lowest = int(scores.min())
        spread = int(scores.max()) - lowest
        if spread == 0:
            return np.zeros(len(scores), dtype=np.int64)
        share = (scores - lowest).astype(np.float64) / float(spread)
        normalized: Scores = (float(MAX_NODE_SCORE) * share).astype(np.int64)
        return normalized

    # -- events ------------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        pods = ClusterEvent(
            EventResource.POD,
            ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL,
        )
        nodes = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return (
            ClusterEventWithHint(pods, self._after_pod_change),
            ClusterEventWithHint(nodes, self._after_node_change),
        )

    def _after_pod_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        return hints.after_pod_change(pod, self._namespaces, old, new)

    def _after_node_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        return hints.after_node_change(pod, self._namespaces, old, new)

    def _namespace_labels(self, pod: Pod) -> Mapping[str, str]:
        """Labels of the pod's namespace; none where there is no such object."""
        namespace = self._namespaces.get(pod.namespace)
        return namespace.labels if namespace is not None else {}


def _is_near(known: _PreFiltered, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels is in the domains that the affinity terms ask for."""
    terms = known.own.affinity
    if not all(term.topology_key in labels for term in terms):
        return False
    counts = (known.affinity.get(t.topology_key, labels[t.topology_key]) for t in terms)
    return all(count > 0 for count in counts) or known.may_be_first()


def _near_mask(known: _PreFiltered, nodes: NodeInfos) -> Bool:
    """bool, shape (n,): ``_is_near`` of all nodes."""
    has_keys = np.ones(len(nodes), dtype=bool)
    pods_there = np.ones(len(nodes), dtype=bool)
    for key in {term.topology_key for term in known.own.affinity}:
        has_keys &= nodes.label(key) >= 0
        pods_there &= known.affinity.over(nodes, key) > 0
    return has_keys if known.may_be_first() else has_keys & pods_there


class _Extensions(PreFilterExtensions):
    """Pods that come or go in thought change the pairs of their node."""

    def add_pod(self, state: CycleState, pod: Pod, to_add: Pod, node_info: NodeInfo) -> Status:
        return _move(state, pod, to_add, node_info, 1)

    def remove_pod(
        self, state: CycleState, pod: Pod, to_remove: Pod, node_info: NodeInfo
    ) -> Status:
        return _move(state, pod, to_remove, node_info, -1)


def _move(state: CycleState, pod: Pod, other: Pod, node_info: NodeInfo, amount: int) -> Status:
    known = _filter_state(state)
    if node_info.node is None:
        return SUCCESS
    labels = node_info.node.labels
    for theirs in existing_anti_affinity(other):
        if theirs.matches(pod, known.namespace_labels):
            known.existing.add(theirs.topology_key, labels, amount)
    if matches_all(known.own.affinity, other):
        for term in known.own.affinity:
            known.affinity.add(term.topology_key, labels, amount)
    for term in known.own.anti_affinity:
        if term.matches(other.namespace, other.labels):
            known.anti_affinity.add(term.topology_key, labels, amount)
    return SUCCESS


def _filter_state(state: CycleState) -> _PreFiltered:
    return read_state(state, _FILTER_STATE, _PreFiltered, "error reading")


def _score_state(state: CycleState) -> _PreScored:
    return read_state(state, _SCORE_STATE, _PreScored, "failed to read")
