"""How many pods match which terms in which domains: (topology key, value) -> number.

Everything that InterPodAffinity counts is counted here. Per node counts come from tallies of pods
and of terms, which follow the nodes that change; domains are summed up from them once per cycle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from scheduler_core.api import Pod
from scheduler_core.framework.nodes import Bool, Int64, NodeInfos, NodeTable
from scheduler_core.plugins.helpers.domain_counts import DomainCounts
from scheduler_core.plugins.helpers.tally import PodKind, Tally, pod_tally
from scheduler_core.plugins.inter_pod_affinity.terms import (
    ExistingTerm,
    OwnTerm,
    required_anti_affinity_terms,
    scoring_terms,
)

__all__ = ["AffinityCounter", "TopologyCounts"]


class TopologyCounts:
    """A number per (topology key, value); a pair that was never added to has 0.

    Args:
        table: the snapshot's nodes, by whose label codes the arrays go.
        per_node: topology key -> number of each node of the table, int64, shape (n,). Nodes without
            the label do not count.
    """

    __slots__ = ("_by_key", "_table")

    def __init__(self, table: NodeTable, per_node: Mapping[str, Int64]) -> None:
        self._table = table
        self._by_key = {key: DomainCounts.of(table, key, n) for key, n in per_node.items()}

    def get(self, key: str, value: str) -> int:
        """The number of one pair."""
        counts = self._by_key.get(key)
        return counts.get(value) if counts is not None else 0

    def add(self, key: str, labels: Mapping[str, str], amount: int) -> None:
        """Add to the pair that a node with these labels has, if it has the key."""
        value = labels.get(key)
        if value is None:
            return
        counts = self._by_key.get(key)
        if counts is None:
            nothing = np.zeros(len(self._table), dtype=np.int64)
            counts = self._by_key[key] = DomainCounts.of(self._table, key, nothing)
        counts.add(value, amount)

    def of_labels(self, labels: Mapping[str, str]) -> list[int]:
        """The numbers of all pairs that a node with these labels has."""
        return [c.get(labels[key]) for key, c in self._by_key.items() if key in labels]

    def over(self, nodes: NodeInfos, key: str) -> Int64:
        """int64, shape (n,): the number of each node's pair; 0 without the label."""
        counts = self._by_key.get(key)
        if counts is None:
            return np.zeros(len(nodes), dtype=np.int64)
        of_each: Int64 = counts.by_code()[nodes.label(key)]
        return of_each

    @property
    def topology_keys(self) -> Sequence[str]:
        """Keys that something was counted for."""
        return [*self._by_key]

    def is_zero(self) -> bool:
        """Whether every pair has 0."""
        return all(counts.is_zero() for counts in self._by_key.values())

    def clone(self) -> TopologyCounts:
        twin = TopologyCounts(self._table, {})
        twin._by_key = {key: counts.clone() for key, counts in self._by_key.items()}
        return twin


class AffinityCounter:
    """Counts pods and terms on the nodes of the snapshot; one per plugin."""

    def __init__(self) -> None:
        self._pods = pod_tally()
        self._anti = Tally("InterPodAffinity/requiredAntiAffinity", required_anti_affinity_terms)
        self._scoring = Tally("InterPodAffinity/scoring", scoring_terms)

    def existing_anti_affinity(
        self, pod: Pod, namespace_labels: Mapping[str, str], nodes: NodeInfos
    ) -> TopologyCounts:
        """Required anti-affinity terms of pods on nodes that match ``pod``."""
        table = nodes.table
        if not table.column_required_anti_affinity.any():
            return TopologyCounts(table, {})
        self._anti.update(nodes)
        matched = _matching_terms(self._anti, pod, namespace_labels)
        keys = _keys_of(self._anti, matched)
        sums = {key: _per_node(self._anti, numbers) for key, numbers in keys.items()}
        return TopologyCounts(table, sums)

    def matching_all(self, terms: Sequence[OwnTerm], nodes: NodeInfos) -> TopologyCounts:
        """Pods that match every one of ``terms``, counted once for the key of each."""
        sums: dict[str, Int64] = {}
        if terms:
            self._pods.update(nodes)
            per_node = self._pods_matching(terms)
            for term in terms:
                _add(sums, term.topology_key, per_node)
        return TopologyCounts(nodes.table, sums)

    def matching_each(self, terms: Sequence[OwnTerm], nodes: NodeInfos) -> TopologyCounts:
        """Pods that match, for each of ``terms`` by itself."""
        sums: dict[str, Int64] = {}
        if terms:
            self._pods.update(nodes)
            for term in terms:
                _add(sums, term.topology_key, self._pods_matching((term,)))
        return TopologyCounts(nodes.table, sums)

    def weights(
        self,
        pod: Pod,
        own_terms: Sequence[OwnTerm],
        namespace_labels: Mapping[str, str],
        hard_weight: int,
        nodes: NodeInfos,
    ) -> TopologyCounts | None:
        """Sums of the weights of preferred terms that match: those of ``pod`` on pods on nodes, and
        theirs on ``pod``; their required affinity counts ``hard_weight``.

        None where no term matches anything, which is not the same as weights that cancel out.
        """
        sums: dict[str, Int64] = {}
        matched = self._add_own(sums, own_terms, nodes)
        if nodes.table.column_affinity.any():
            self._scoring.update(nodes)
            existing = _matching_terms(self._scoring, pod, namespace_labels)
            matched |= self._add_existing(sums, existing, hard_weight, nodes)
        return TopologyCounts(nodes.table, sums) if matched else None

    def _add_own(self, sums: dict[str, Int64], terms: Sequence[OwnTerm], nodes: NodeInfos) -> bool:
        """Whether any of the pod's own terms matched a pod in a domain."""
        if not terms:
            return False
        self._pods.update(nodes)
        matched = False
        for term in terms:
            per_node = self._pods_matching((term,))
            matched |= _counts_anywhere(per_node, term.topology_key, nodes.table)
            _add(sums, term.topology_key, per_node * term.weight)
        return matched

    def _add_existing(
        self, sums: dict[str, Int64], terms: Bool, hard_weight: int, nodes: NodeInfos
    ) -> bool:
        """Whether any of the matching ``terms`` (bool, by number) stands in a domain."""
        matched = False
        for key, numbers in _keys_of(self._scoring, terms).items():
            counted = [
                number
                for number in numbers
                if hard_weight > 0 or not self._scoring.kinds[number].required
            ]
            weights = [
                hard_weight if term.required else term.weight
                for term in (self._scoring.kinds[number] for number in counted)
            ]
            per_node = _per_node(self._scoring, counted)
            matched |= _counts_anywhere(per_node, key, nodes.table)
            _add(sums, key, _per_node(self._scoring, counted, weights))
        return matched

    def _pods_matching(self, terms: Sequence[OwnTerm]) -> Int64:
        """int64, shape (n,), all nodes: pods that match every term."""
        question = tuple((term.namespaces, term.selector) for term in terms)

        def matches(kind: PodKind) -> bool:
            labels = dict(kind.labels)
            return all(term.matches(kind.namespace, labels) for term in terms)

        return self._pods.totals(self._pods.answers(question, matches))


def _matching_terms(
    tally: Tally[ExistingTerm], pod: Pod, namespace_labels: Mapping[str, str]
) -> Bool:
    """bool, by number of the term: terms that match the pod."""
    question = (
        pod.namespace,
        frozenset(pod.labels.items()),
        frozenset(namespace_labels.items()),
    )
    return tally.answers(question, lambda term: term.matches(pod, namespace_labels))


def _keys_of(tally: Tally[ExistingTerm], terms: Bool) -> dict[str, list[int]]:
    """topology key -> numbers of those of ``terms`` that have it."""
    by_key: dict[str, list[int]] = {}
    for number in np.flatnonzero(terms).tolist():
        by_key.setdefault(tally.kinds[number].topology_key, []).append(number)
    return by_key


def _per_node(
    tally: Tally[ExistingTerm], numbers: Sequence[int], weights: Sequence[int] | None = None
) -> Int64:
    """int64, shape (n,), all nodes: how many of these terms are there, or their weights' sum."""
    of_each = np.zeros(len(tally.kinds), dtype=np.int64)
    of_each[numbers] = 1 if weights is None else weights
    return tally.totals(of_each)


def _add(sums: dict[str, Int64], key: str, per_node: Int64) -> None:
    sums[key] = sums[key] + per_node if key in sums else per_node


def _counts_anywhere(per_node: Int64, key: str, table: NodeTable) -> bool:
    """Whether a node with the label has any."""
    return bool((per_node * (table.label(key) >= 0)).any())
