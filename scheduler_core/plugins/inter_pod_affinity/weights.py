"""Raw and normalised scores of InterPodAffinity: sums of the weights of terms that match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scheduler_core.framework.interface import MAX_NODE_SCORE, Scores
from scheduler_core.framework.nodes import Int64, NodeInfos, NodeTable
from scheduler_core.plugins.helpers.domain_counts import DomainSums, added

__all__ = ["PairWeights", "WeightedSums", "normalized"]


@dataclass(frozen=True, slots=True)
class WeightedSums:
    """Numbers by domain of one topology key, and what one counts."""

    key: str
    sums: DomainSums
    weight: int


class PairWeights:
    """Sums of weights per pair (topology key, value)."""

    __slots__ = ("_by_key", "_normalized", "_over_table")

    def __init__(self, parts: Sequence[WeightedSums]) -> None:
        self._by_key: dict[str, DomainSums] = {}
        self._over_table: Int64 | None = None
        self._normalized: Scores | None = None
        for part in parts:
            more = part.sums
            if part.weight != 1:
                more = DomainSums(more.topology, more.numbers * part.weight)
            known = self._by_key.get(part.key)
            self._by_key[part.key] = more if known is None else added(known, more)

    def of_labels(self, labels: Mapping[str, str]) -> int:
        """The sum over all pairs that a node with these labels has."""
        return sum(sums.get(labels[key]) for key, sums in self._by_key.items() if key in labels)

    def over(self, nodes: NodeInfos) -> Int64:
        """int64, shape (n,): the sum over all pairs of each node; read-only for a whole table."""
        if self._over_table is None:
            self._over_table = self._total(nodes.table)
        return self._over_table if nodes.rows is None else self._over_table.take(nodes.rows)

    def normalized(self, scores: Scores) -> Scores:
        """``normalized`` scores; the same, read-only array as before for those of a whole table."""
        if scores is not self._over_table:
            return normalized(scores)
        if self._normalized is None:
            self._normalized = normalized(scores)
            self._normalized.setflags(write=False)
        return self._normalized

    def _total(self, table: NodeTable) -> Int64:
        total: Int64 | None = None
        for sums in self._by_key.values():
            of_nodes = sums.over_table()
            total = of_nodes if total is None else total + of_nodes
        if total is None:
            total = np.zeros(len(table), dtype=np.int64)
        total.setflags(write=False)
        return total


def normalized(scores: Scores) -> Scores:
    """NormalizeScore: int64, shape (n,) -> int64, shape (n,), 0 to 100."""
    if not len(scores):
        return scores
    lowest = int(scores.min())
    spread = int(scores.max()) - lowest
    if spread == 0:
        return np.zeros(len(scores), dtype=np.int64)
    share = (scores - lowest).astype(np.float64) / float(spread)
    shares: Scores = (float(MAX_NODE_SCORE) * share).astype(np.int64)
    return shares
