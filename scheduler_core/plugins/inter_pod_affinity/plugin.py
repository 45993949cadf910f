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
from scheduler_core.framework.nodes import Bool, NodeInfos, NodeTable, Rows
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
from scheduler_core.plugins.helpers.same import same_objects
from scheduler_core.plugins.helpers.tally import Recent, kept_at_most
from scheduler_core.plugins.inter_pod_affinity import hints
from scheduler_core.plugins.inter_pod_affinity.counting import (
    TopologyCounts,
    count_existing_anti_affinity,
    count_matching_all,
    count_matching_each,
    weighted_sums,
)
from scheduler_core.plugins.inter_pod_affinity.kept import Kept
from scheduler_core.plugins.inter_pod_affinity.terms import (
    OwnTerms,
    existing_anti_affinity,
    matches_all,
)
from scheduler_core.plugins.inter_pod_affinity.weights import PairWeights, normalized

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
        existing: required anti-affinity terms of pods on nodes that match the pod.
        affinity: pods that match all required affinity terms of the pod, per term.
        anti_affinity: pods that match a required anti-affinity term of the pod, per term.
    """

    kept: Kept
    existing: TopologyCounts
    affinity: TopologyCounts
    anti_affinity: TopologyCounts

    @property
    def own(self) -> OwnTerms:
        return self.kept.own

    @property
    def namespace_labels(self) -> Mapping[str, str]:
        """Labels of the pod's namespace."""
        return self.kept.subject.namespace_labels

    def clone(self) -> _PreFiltered:
        return _PreFiltered(
            self.kept, self.existing.clone(), self.affinity.clone(), self.anti_affinity.clone()
        )

    def may_be_first(self) -> bool:
        """The first of pods that want to be together: nobody is there yet, and it would be wanted
        by itself."""
        return self.kept.matches_itself and self.affinity.is_zero()


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
        self._kept: Recent[Kept] = Recent(1)
        self._namespaces_version = -1
        self._extensions = _Extensions()

    # -- Filter ------------------------------------------------------------------------------------

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeInfos
    ) -> tuple[PreFilterResult | None, Status]:
        """Counts what matches; Skip where nothing can keep the pod off a node."""
        table = nodes.table
        if not table.nodes_with_required_anti_affinity and not _has_terms(pod):
            return None, SKIP
        kept = self._kept_for(pod, table)
        if kept.problem:
            return None, unresolvable(f"parsing pod: {kept.problem}")
        own = kept.own
        existing = count_existing_anti_affinity(kept.subject, table)
        if not own.affinity and not own.anti_affinity and existing.is_zero():
            return None, SKIP
        state.write(
            _FILTER_STATE,
            _PreFiltered(
                kept,
                existing,
                count_matching_all(own.affinity, table),
                count_matching_each(own.anti_affinity, table),
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
        """For all nodes of the table: the same object as before where nothing is otherwise."""
        known = _filter_state(state)
        kept = known.kept
        pairs = _Pairs.of(known)
        inputs = pairs.inputs()
        if not kept.statuses_from or not same_objects(kept.statuses_from, inputs):
            kept.statuses, kept.statuses_from = pairs.statuses(nodes.table), inputs
        return kept.statuses if nodes.rows is None else kept.statuses.taken(nodes.rows)

    # -- Score -------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Status:
        """Sums up weights; Skip where no term matches anything."""
        table = nodes.table
        if not _has_terms(pod) and (self._ignore_existing or not table.nodes_with_affinity):
            return SKIP
        kept = self._kept_for(pod, table)
        if kept.problem:
            return error(f"failed to parse pod: {kept.problem}")
        if self._ignore_existing and not kept.preferred:
            return SKIP
        parts = weighted_sums(kept.subject, kept.preferred, self._hard_weight, table)
        if not parts:
            return SKIP
        state.write(_SCORE_STATE, kept.pair_weights(parts))
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        labels = node_info.node.labels if node_info.node is not None else {}
        return _score_state(state).of_labels(labels)

    def score_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Scores:
        """For all nodes of the table: the same, read-only array as before where nothing is
        otherwise."""
        return _score_state(state).over(nodes)

    def normalize_score(
        self, state: CycleState, pod: Pod, nodes: NodeInfos, scores: Scores
    ) -> Scores:
        """The lowest score becomes 0, the highest 100; what is between is cut off, not rounded."""
        known: PairWeights | None = state.get(_SCORE_STATE)
        return known.normalized(scores) if known is not None else normalized(scores)

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

    def _kept_for(self, pod: Pod, table: NodeTable) -> Kept:
        """What is known of pods like this one; Namespaces count among what it follows from."""
        namespaces, kept = self._namespaces, self._kept
        if self._namespaces_version != namespaces.version:
            self._namespaces_version = namespaces.version
            kept.clear()
        kept.limit = kept_at_most(len(table), arrays=4)
        return kept.get(pod.signature, lambda: Kept(pod, namespaces))


def _has_terms(pod: Pod) -> bool:
    """Whether the pod has pod affinity or anti-affinity."""
    affinity = pod.affinity
    return affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None


def _is_near(known: _PreFiltered, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels is in the domains that the affinity terms ask for."""
    terms = known.own.affinity
    if not all(term.topology_key in labels for term in terms):
        return False
    counts = (known.affinity.get(t.topology_key, labels[t.topology_key]) for t in terms)
    return all(count > 0 for count in counts) or known.may_be_first()


#: Of each topology key: intp, shape (n,), the nodes' domains; bool, by domain, those with any.
_Positive = list[tuple[Rows, Bool]]


@dataclass(frozen=True, slots=True)
class _Pairs:
    """What Filter's answer for all nodes follows from."""

    wants_company: bool
    may_be_first: bool
    affinity: _Positive
    anti_affinity: _Positive
    existing: _Positive

    @classmethod
    def of(cls, known: _PreFiltered) -> _Pairs:
        return cls(
            bool(known.own.affinity),
            known.may_be_first(),
            known.affinity.positive(),
            known.anti_affinity.positive(),
            known.existing.positive(),
        )

    def inputs(self) -> list[object]:
        """Objects that are the same for the same answer. How many keys the pod's own terms have is
        the same for all pods with its signature."""
        pairs = (*self.affinity, *self.anti_affinity, *self.existing)
        return [self.may_be_first, *(array for pair in pairs for array in pair)]

    def statuses(self, table: NodeTable) -> NodeStatuses:
        """Of all nodes of the table."""
        statuses = NodeStatuses(len(table))
        if self.wants_company:
            statuses.reject(~self._near(len(table)), _NOT_NEAR)
        for domain_of, positive in self.anti_affinity:
            statuses.reject(positive.take(domain_of), _TOO_NEAR)
        for domain_of, positive in self.existing:
            statuses.reject(positive.take(domain_of), _UNWANTED)
        statuses.ids.setflags(write=False)  # others get the same object
        return statuses

    def _near(self, size: int) -> Bool:
        """bool, shape (n,): ``_is_near`` of all nodes."""
        near = np.ones(size, dtype=bool)
        for domain_of, positive in self.affinity:
            # The last domain is that of nodes without the label.
            near &= domain_of < len(positive) - 1 if self.may_be_first else positive.take(domain_of)
        return near


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


def _score_state(state: CycleState) -> PairWeights:
    return read_state(state, _SCORE_STATE, PairWeights, "failed to read")
