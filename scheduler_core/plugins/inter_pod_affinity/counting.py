"""How many pods match which terms in which domains: (topology key, value) -> number.

Everything that InterPodAffinity counts is counted here. Counts are kept from cycle to cycle, by
what is counted: they follow the nodes that change (``helpers.tally``), and so do their sums by
domain.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scheduler_core.api import Pod
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.nodes import Bool, NodeTable, Rows
from scheduler_core.plugins.helpers.domain_counts import (
    DomainCounts,
    DomainSums,
    added,
    domain_counter,
    topology,
)
from scheduler_core.plugins.helpers.tally import Count, PodKind, Tally, pod_tally
from scheduler_core.plugins.inter_pod_affinity.terms import (
    ExistingTerm,
    OwnTerm,
    existing_anti_affinity,
    scoring_terms,
)
from scheduler_core.plugins.inter_pod_affinity.weights import WeightedSums

__all__ = [
    "Subject",
    "TopologyCounts",
    "count_existing_anti_affinity",
    "count_matching_all",
    "count_matching_each",
    "weighted_sums",
]


class TopologyCounts:
    """A number per (topology key, value); a pair that was never added to has 0.

    Args:
        sums: topology key -> the numbers of its values.
    """

    __slots__ = ("_by_key", "_table")

    def __init__(self, table: NodeTable, sums: Mapping[str, DomainSums]) -> None:
        self._table = table
        self._by_key = {key: DomainCounts(of_key) for key, of_key in sums.items()}

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
            counts = self._by_key[key] = DomainCounts(_nothing(self._table, key))
        counts.add(value, amount)

    def of_labels(self, labels: Mapping[str, str]) -> list[int]:
        """The numbers of all pairs that a node with these labels has."""
        return [c.get(labels[key]) for key, c in self._by_key.items() if key in labels]

    def positive(self) -> list[tuple[Rows, Bool]]:
        """For every key that something was counted for: intp, shape (n,), each node's domain, and
        bool, by domain, those with more than 0. The same arrays as long as those are the same."""
        return [(c.sums.topology.domain_of, c.positive()) for c in self._by_key.values()]

    def is_zero(self) -> bool:
        """Whether every pair has 0."""
        return all(counts.is_zero() for counts in self._by_key.values())

    def clone(self) -> TopologyCounts:
        twin = TopologyCounts(self._table, {})
        twin._by_key = {key: counts.clone() for key, counts in self._by_key.items()}
        return twin


@dataclass(frozen=True, slots=True)
class Subject:
    """The pod of whom terms of other pods may speak, and the labels of its namespace."""

    pod: Pod
    namespace_labels: Mapping[str, str]
    question: Hashable

    @classmethod
    def of(cls, pod: Pod, namespace_labels: Mapping[str, str]) -> Subject:
        labels = frozenset(pod.labels.items()), frozenset(namespace_labels.items())
        return cls(pod, namespace_labels, (pod.namespace, labels))

    def is_meant_by(self, term: ExistingTerm) -> bool:
        return term.matches(self.pod, self.namespace_labels)


# -- Filter ----------------------------------------------------------------------------------------


def count_existing_anti_affinity(subject: Subject, table: NodeTable) -> TopologyCounts:
    """Required anti-affinity terms of pods on nodes that match the pod."""
    if not table.nodes_with_required_anti_affinity:
        return TopologyCounts(table, {})
    terms = _anti_affinity_tally(table)
    terms.update()
    sums: dict[str, DomainSums] = {}
    for key in terms.groups:
        count = terms.count((subject.question, key), subject.is_meant_by, (key,))
        if count.total:
            sums[key] = domain_counter(count, table, key).sums()
    return TopologyCounts(table, sums)


def count_matching_all(terms: Sequence[OwnTerm], table: NodeTable) -> TopologyCounts:
    """Pods that match every one of ``terms``, counted once for the key of each."""
    if not terms:
        return TopologyCounts(table, {})
    count = _pods_matching(terms, table)
    return _counted([(term.topology_key, count) for term in terms], table)


def count_matching_each(terms: Sequence[OwnTerm], table: NodeTable) -> TopologyCounts:
    """Pods that match, for each of ``terms`` by itself."""
    return _counted([(t.topology_key, _pods_matching((t,), table)) for t in terms], table)


def _counted(counts: Sequence[tuple[str, Count[PodKind]]], table: NodeTable) -> TopologyCounts:
    sums: dict[str, DomainSums] = {}
    for key, count in counts:
        more = domain_counter(count, table, key).sums()
        sums[key] = added(sums[key], more) if key in sums else more
    return TopologyCounts(table, sums)


def _nothing(table: NodeTable, key: str) -> DomainSums:
    domains = topology(table, key)
    return DomainSums(domains, np.zeros(domains.size + 1, dtype=np.int64))


# -- Score -----------------------------------------------------------------------------------------


def weighted_sums(
    subject: Subject, own_terms: Sequence[OwnTerm], hard_weight: int, table: NodeTable
) -> list[WeightedSums]:
    """Preferred terms that match something in a domain: those of the pod on pods on nodes, and
    theirs on the pod; their required affinity counts ``hard_weight``.

    Empty where no term matches anything, which is not the same as weights that cancel out.
    """
    parts = []
    for term in own_terms:
        count = _pods_matching((term,), table)
        if count.total:
            sums = domain_counter(count, table, term.topology_key).sums()
            if sums.nonzero:
                parts.append(WeightedSums(term.topology_key, sums, term.weight))
    if table.nodes_with_affinity:
        parts.extend(_of_existing_terms(subject, hard_weight, table))
    return parts


def _of_existing_terms(subject: Subject, hard_weight: int, table: NodeTable) -> list[WeightedSums]:
    terms = _scoring_tally(table)
    terms.update()

    def weight(term: ExistingTerm) -> int:
        value = hard_weight if term.required else term.weight
        return value if subject.is_meant_by(term) else 0

    def counts(term: ExistingTerm) -> bool:
        return (hard_weight > 0 or not term.required) and subject.is_meant_by(term)

    parts = []
    for key in terms.groups:
        found = terms.count((subject.question, key, hard_weight > 0), counts, (key,))
        if not found.total:
            continue
        weights = terms.count((subject.question, key, "weights", hard_weight), weight, (key,))
        sums = domain_counter(weights, table, key).sums()
        if sums.nonzero or domain_counter(found, table, key).sums().nonzero:
            parts.append(WeightedSums(key, sums, 1))
    return parts


# -- tallies ---------------------------------------------------------------------------------------


def _pods_matching(terms: Sequence[OwnTerm], table: NodeTable) -> Count[PodKind]:
    """Pods that match every term."""
    pods = pod_tally(table)
    pods.update()

    def matches(kind: PodKind) -> bool:
        labels = dict(kind.labels)
        return all(term.matches(kind.namespace, labels) for term in terms)

    question = tuple((term.namespaces, term.selector) for term in terms)
    return pods.count(("InterPodAffinity", question), matches, terms[0].namespaces)


def _anti_affinity_tally(table: NodeTable) -> Tally[ExistingTerm]:
    return table.companion(
        "InterPodAffinity/requiredAntiAffinity",
        lambda: Tally(table, _with_required_anti_affinity, existing_anti_affinity, _key_of),
    )


def _scoring_tally(table: NodeTable) -> Tally[ExistingTerm]:
    return table.companion(
        "InterPodAffinity/scoring",
        lambda: Tally(table, _with_affinity, scoring_terms, _key_of),
    )


def _with_required_anti_affinity(info: NodeInfo) -> list[Pod]:
    return info.pods_with_required_anti_affinity


def _with_affinity(info: NodeInfo) -> list[Pod]:
    return info.pods_with_affinity


def _key_of(term: ExistingTerm) -> str:
    return term.topology_key
