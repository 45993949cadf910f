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
from scheduler_core.plugins.pod_topology_spread.constraints import HOSTNAME, Constraint
from scheduler_core.plugins.pod_topology_spread.counting import (
    SpreadCounter,
    carries_keys,
    keys_mask,
)

__all__ = ["SpreadScores"]


@dataclass(frozen=True, slots=True)
class _Part:
    """What one soft constraint contributes.

    ``counts`` are per label code, or per row of the node table for the hostname: there each node
    counts for itself.
    """

    constraint: Constraint
    weight: float
    counts: Int64

    @property
    def per_host(self) -> bool:
        return self.constraint.topology_key == HOSTNAME

    def term(self, count: int) -> float:
        """What a node scores whose domain has ``count`` matching pods."""
        return count * self.weight + float(self.constraint.max_skew - 1)

    def terms(self, nodes: NodeInfos) -> NDArray[np.float64]:
        """float64, shape (n,): ``term`` of every node; of no use where it lacks the label."""
        codes = nodes.label(self.constraint.topology_key)
        counts = nodes.gather_sums(self.counts) if self.per_host else self.counts[codes]
        floats = counts.astype(np.float64)
        terms: NDArray[np.float64] = floats * self.weight + float(self.constraint.max_skew - 1)
        return terms


class SpreadScores:
    """What PreScore finds out for Score and NormalizeScore.

    Args:
        nodes: the feasible ones.
        require_all: nodes that lack a topology key are left out of the score; False with the system
            defaults, where a cluster without zones is still spread over hosts.
    """

    def __init__(
        self,
        counter: SpreadCounter,
        pod: Pod,
        constraints: Sequence[Constraint],
        nodes: NodeInfos,
        require_all: bool,
    ) -> None:
        self._constraints = constraints
        self._require_all = require_all
        self._namespace = pod.namespace
        scored = ~self.ignored(nodes)
        carrying = keys_mask(nodes.table, constraints) if require_all else None
        self._parts: list[_Part] = []
        for c in constraints:
            if c.topology_key == HOSTNAME:
                size = int(scored.sum())
                counts = counter.per_node(pod.namespace, c.selector)
            else:
                size = _distinct_values(nodes, c.topology_key, scored)
                counts = counter.domain_totals(pod, c, nodes, carrying)
            self._parts.append(_Part(c, math.log(size + 2), counts))

    def ignored(self, nodes: NodeInfos) -> Bool:
        """bool, shape (n,): nodes that are not scored."""
        if not self._require_all:
            return np.zeros(len(nodes), dtype=bool)
        return ~keys_mask(nodes, self._constraints)

    def score(self, node_info: NodeInfo, nodes: NodeInfos) -> int:
        """Raw score of one node of the snapshot ``nodes``."""
        node = node_info.node
        if node is None or (self._require_all and not carries_keys(node, self._constraints)):
            return 0
        total = 0.0
        for part in self._parts:
            key = part.constraint.topology_key
            value = node.labels.get(key)
            if value is None:
                continue
            if part.per_host:
                counts = part.constraint.counts
                count = sum(counts(other, self._namespace) for other in node_info.pods)
            else:
                count = int(part.counts[nodes.table.label_column(key).code_of(value)])
            total += part.term(count)
        whole = math.trunc(total)
        return whole + (total - whole >= 0.5)

    def score_nodes(self, nodes: NodeInfos) -> Scores:
        total = np.zeros(len(nodes), dtype=np.float64)
        for part in self._parts:
            codes = nodes.label(part.constraint.topology_key)
            # The order of additions is the reference's: it decides the last bit.
            total = total + np.where(codes >= 0, part.terms(nodes), 0.0)
        total[self.ignored(nodes)] = 0.0
        whole = np.trunc(total)
        # Half away from zero; np.round would go to the even neighbour.
        raw: Scores = (whole + (total - whole >= 0.5)).astype(np.int64)
        return raw

    def normalize(self, nodes: NodeInfos, scores: Scores) -> Scores:
        """The fewer matching pods, the higher; nodes that are not scored get 0."""
        ignored = self.ignored(nodes)
        counted = scores[~ignored]
        highest = int(counted.max(initial=0))
        if highest == 0:
            return np.where(ignored, 0, MAX_NODE_SCORE).astype(np.int64)
        lowest = int(counted.min())
        scaled = MAX_NODE_SCORE * (highest + lowest - scores) // highest
        return np.where(ignored, 0, scaled).astype(np.int64)


def _distinct_values(nodes: NodeInfos, key: str, scored: Bool) -> int:
    """How many values of a label scored nodes have; a missing label counts as the empty value."""
    column = nodes.table.label_column(key)
    codes = nodes.label(key)[scored]
    empty = max(column.code_of(""), -1)
    return len(np.unique(np.where(codes < 0, empty, codes)))
