"""The scoring strategies of NodeResourcesFit (kube-scheduler 1.36).

A strategy combines resources into one score: for one node from ``Share``s, for all nodes from
``ShareColumns``. The caller has left out what does not count.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from scheduler_core.framework.interface import MAX_NODE_SCORE
from scheduler_core.framework.nodes import Int64

__all__ = [
    "LeastAllocated",
    "MostAllocated",
    "RequestedToCapacityRatio",
    "ResourceScorer",
    "Share",
    "ShareColumn",
]


#: One resource of one node: weight, what is requested with the pod, capacity (> 0).
Share = tuple[int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class ShareColumn:
    """One resource of n nodes: int64, shape (n,) each. A node with capacity 0 leaves it out."""

    weight: int
    requested: Int64
    capacity: Int64


class ResourceScorer(ABC):
    """A strategy: a score per resource, and a weighted mean."""

    @abstractmethod
    def score(self, shares: Sequence[Share]) -> int:
        """One node: 0..100; 0 without shares."""

    @abstractmethod
    def scores(self, columns: Sequence[ShareColumn], size: int) -> Int64:
        """All nodes: int64, shape (size,)."""


class _WeightedMean(ResourceScorer):
    """sum(score x weight) // sum(weight), in whole numbers."""

    @abstractmethod
    def resource_score(self, requested: int, capacity: int) -> int: ...

    @abstractmethod
    def resource_scores(self, requested: Int64, capacity: Int64) -> Int64:
        """0 where capacity is 0."""

    def score(self, shares: Sequence[Share]) -> int:
        total = weights = 0
        for weight, requested, capacity in shares:
            total += self.resource_score(requested, capacity) * weight
            weights += weight
        return total // weights if weights else 0

    def scores(self, columns: Sequence[ShareColumn], size: int) -> Int64:
        total = np.zeros(size, dtype=np.int64)
        for column in columns:
            total += self.resource_scores(column.requested, column.capacity) * column.weight
        if all(column.capacity.all() for column in columns):
            return total // (sum(column.weight for column in columns) or 1)
        weights = np.zeros(size, dtype=np.int64)
        for column in columns:
            weights += (column.capacity > 0) * column.weight
        return total // np.maximum(weights, 1)


class LeastAllocated(_WeightedMean):
    """Prefers nodes with much room: the share that stays free."""

    def resource_score(self, requested: int, capacity: int) -> int:
        if requested > capacity:
            return 0
        return (capacity - requested) * MAX_NODE_SCORE // capacity

    def resource_scores(self, requested: Int64, capacity: Int64) -> Int64:
        free = np.maximum(capacity - requested, 0)
        answer: Int64 = free * MAX_NODE_SCORE // np.maximum(capacity, 1)
        return answer


class MostAllocated(_WeightedMean):
    """Prefers full nodes: the share that is taken."""

    def resource_score(self, requested: int, capacity: int) -> int:
        return min(requested, capacity) * MAX_NODE_SCORE // capacity

    def resource_scores(self, requested: Int64, capacity: Int64) -> Int64:
        return np.minimum(requested, capacity) * MAX_NODE_SCORE // np.maximum(capacity, 1)


class RequestedToCapacityRatio(ResourceScorer):
    """A broken line over the utilisation in percent.

    Args:
        points: (utilization 0..100, score 0..100), utilization strictly increasing, at least one.
    """

    def __init__(self, points: Sequence[tuple[int, int]]) -> None:
        self._points = tuple(points)
        line = [self.at(percent) for percent in range(MAX_NODE_SCORE + 1)]
        self._line = np.array(line, dtype=np.int64)

    def at(self, percent: int) -> int:
        """The line's height at a utilisation of ``percent``, truncated as Go truncates."""
        if percent <= self._points[0][0]:
            return self._points[0][1]
        for (left, low), (right, high) in pairwise(self._points):
            if percent <= right:
                return low + _truncated((high - low) * (percent - left), right - left)
        return self._points[-1][1]

    def score(self, shares: Sequence[Share]) -> int:
        total = weights = 0
        for weight, requested, capacity in shares:
            percent = 100 if requested > capacity else requested * 100 // capacity
            height = self.at(percent)
            if height > 0:
                total += height * weight
                weights += weight
        return int(total / weights + 0.5) if weights else 0

    def scores(self, columns: Sequence[ShareColumn], size: int) -> Int64:
        total = np.zeros(size, dtype=np.int64)
        weights = np.zeros(size, dtype=np.int64)
        for column in columns:
            percent = np.minimum(column.requested, column.capacity) * 100
            heights = self._line[percent // np.maximum(column.capacity, 1)]
            counted = (column.capacity > 0) & (heights > 0)
            total += np.where(counted, heights * column.weight, 0)
            weights += counted * column.weight
        return np.floor(total / np.maximum(weights, 1) + 0.5).astype(np.int64)


def _truncated(numerator: int, denominator: int) -> int:
    """Division towards zero (``denominator`` > 0)."""
    quotient = abs(numerator) // denominator
    return quotient if numerator >= 0 else -quotient
