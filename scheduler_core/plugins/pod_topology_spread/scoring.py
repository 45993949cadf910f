"""Raw and normalised scores of PodTopologySpread (kube-scheduler 1.36)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler_core.api import Pod
from scheduler_core.framework.interface import MAX_NODE_SCORE, Scores
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.nodes import Bool, Int64, NodeInfos
from scheduler_core.plugins.helpers.domain_counts import DomainSums, Topology, topology
from scheduler_core.plugins.helpers.same import same_objects
from scheduler_core.plugins.pod_topology_spread.constraints import HOSTNAME, Constraint
from scheduler_core.plugins.pod_topology_spread.counting import (
    carries_keys,
    domain_totals,
    keys_mask,
    matching_pods,
)

__all__ = ["KeptScores", "SpreadScores"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Part:
    """What one soft constraint contributes.

    ``counts`` are per domain, or per row of the node table for the hostname: there each node counts
    for itself.
    """

    constraint: Constraint
    weight: float
    topology: Topology
    counts: Int64

    @property
    def per_host(self) -> bool:
        return self.constraint.topology_key == HOSTNAME

    def term(self, count: int) -> float:
        """What a node scores whose domain has ``count`` matching pods."""
        return count * self.weight + float(self.constraint.max_skew - 1)

    def of_domains(self) -> Floats:
        """float64, shape (size + 1,): ``term`` of every domain; 0 without the label."""
        terms = self._terms(self.counts)
        terms[-1] = 0.0
        return terms

    def of_nodes(self, nodes: NodeInfos) -> Floats:
        """float64, shape (n,): what every node scores; 0 where it lacks the label."""
        if not self.per_host:
            return self.of_domains().take(self.topology.domains_of(nodes))
        terms = self._terms(nodes.gather_sums(self.counts))  # type: ignore[arg-type]
        labelled = self.topology.has_label(nodes)
        return terms if labelled is None else np.where(labelled, terms, 0.0)

    def _terms(self, counts: Int64) -> Floats:
        terms: Floats = counts.astype(np.float64) * self.weight
        terms += float(self.constraint.max_skew - 1)
        return terms


class KeptScores:
    """The last scores over a whole table, for as long as nothing that they follow from changes."""

    __slots__ = ("inputs", "normalized", "raw", "weights")

    def __init__(self) -> None:
        self.inputs: tuple[object, ...] = ()
        self.weights: tuple[float, ...] = ()
        self.raw: Scores | None = None
        self.normalized: Scores | None = None


class SpreadScores:
    """What PreScore finds out for Score and NormalizeScore.

    Args:
        nodes: the feasible ones.
        require_all: nodes that lack a topology key are left out of the score; False with the system
            defaults, where a cluster without zones is still spread over hosts.
        kept: scores of pods like this one.
    """

    def __init__(
        self,
        pod: Pod,
        constraints: Sequence[Constraint],
        nodes: NodeInfos,
        require_all: bool,
        kept: KeptScores,
    ) -> None:
        self._constraints = constraints
        self._require_all = require_all
        self._namespace = pod.namespace
        self._kept = kept
        self._nodes = nodes
        self._scored = keys_mask(nodes, constraints) if require_all else None
        keys = tuple(c.topology_key for c in constraints) if require_all else ()
        self._parts = [self._part(pod, c, keys) for c in constraints]

    def _part(self, pod: Pod, constraint: Constraint, keys: tuple[str, ...]) -> _Part:
        nodes, scored = self._nodes, self._scored
        table = nodes.table
        domains = topology(table, constraint.topology_key)
        if constraint.topology_key == HOSTNAME:
            size = len(nodes) if scored is None else int(np.count_nonzero(scored))
            counts = matching_pods(table, pod.namespace, constraint.selector).per_node
        else:
            size = domains.count_used(nodes, scored)
            counts = _totals(domain_totals(pod, constraint, table, keys))
        return _Part(constraint, math.log(size + 2), domains, counts)

    def scored(self, nodes: NodeInfos) -> Bool | None:
        """bool, shape (n,): nodes that are scored; None: all of them."""
        if nodes is self._nodes:
            return self._scored
        return keys_mask(nodes, self._constraints) if self._require_all else None

    def score(self, node_info: NodeInfo, nodes: NodeInfos) -> int:
        """Raw score of one node of the snapshot ``nodes``."""
        node = node_info.node
        if node is None or (self._require_all and not carries_keys(node, self._constraints)):
            return 0
        total = 0.0
        for part in self._parts:
            value = node.labels.get(part.constraint.topology_key)
            if value is None:
                continue
            if part.per_host:
                counts = part.constraint.counts
                count = sum(counts(other, self._namespace) for other in node_info.pods)
            else:
                count = int(part.counts[part.topology.domain(value)])
            total += part.term(count)
        whole = math.trunc(total)
        return whole + (total - whole >= 0.5)

    def score_nodes(self, nodes: NodeInfos) -> Scores:
        """The same array as before where the scores of all nodes are the same; it is read-only."""
        if nodes is not nodes.table:
            return self._score_nodes(nodes)
        kept = self._kept
        weights = tuple(part.weight for part in self._parts)
        inputs = [array for p in self._parts for array in (p.counts, p.topology.domain_of)]
        if kept.raw is None or kept.weights != weights or not same_objects(kept.inputs, inputs):
            kept.raw = self._score_nodes(nodes)
            kept.raw.setflags(write=False)
            kept.inputs, kept.weights, kept.normalized = tuple(inputs), weights, None
        return kept.raw

    def _score_nodes(self, nodes: NodeInfos) -> Scores:
        scored, first = self.scored(nodes), self._parts[0]
        if scored is None and len(self._parts) == 1 and not first.per_host:
            return _rounded(first.of_domains()).take(first.topology.domains_of(nodes))
        # The order of additions is the reference's: it decides the last bit.
        total = first.of_nodes(nodes)
        for part in self._parts[1:]:
            total = total + part.of_nodes(nodes)
        return _rounded(total if scored is None else np.where(scored, total, 0.0))

    def normalize(self, nodes: NodeInfos, scores: Scores) -> Scores:
        """The fewer matching pods, the higher; nodes that are not scored get 0. The same array as
        before for the same array of scores of all nodes; it is read-only."""
        kept = self._kept
        if scores is not kept.raw or nodes is not nodes.table:
            return self._normalize(nodes, scores)
        if kept.normalized is None:
            kept.normalized = self._normalize(nodes, scores)
            kept.normalized.setflags(write=False)
        return kept.normalized

    def _normalize(self, nodes: NodeInfos, scores: Scores) -> Scores:
        scored = self.scored(nodes)
        counted = scores if scored is None else scores[scored]
        highest = int(counted.max(initial=0))
        if highest == 0:
            normalized: Scores = np.full(len(scores), MAX_NODE_SCORE, dtype=np.int64)
        else:
            lowest = int(counted.min())
            normalized = MAX_NODE_SCORE * (highest + lowest - scores) // highest
        return normalized if scored is None else np.where(scored, normalized, 0)


def _totals(sums: DomainSums) -> Int64:
    """int64, shape (size + 1,), by domain; nodes without the label share the domain of the empty
    value, if there is one."""
    empty, unlabelled = sums.topology.domain(""), sums.topology.size
    if empty == unlabelled:
        return sums.numbers
    totals = sums.numbers.copy()
    totals[[empty, unlabelled]] = totals[empty] + totals[unlabelled]
    return totals


def _rounded(total: Floats) -> Scores:
    """Half away from zero; np.round would go to the even neighbour."""
    whole = np.trunc(total)
    rounded: Scores = (whole + (total - whole >= 0.5)).astype(np.int64)
    return rounded
