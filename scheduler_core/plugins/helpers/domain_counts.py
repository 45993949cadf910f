"""Counts per topology domain: per value of one node label."""

from __future__ import annotations

import numpy as np

from scheduler_core.framework.columns import InternedColumn
from scheduler_core.framework.nodes import Bool, Int64, NodeInfos

__all__ = ["DomainCounts"]


class DomainCounts:
    """A number for every domain (value of the label ``key``) that takes part.

    Made from one number per node; changed for pods that are added or removed in thought. Clones
    share the arrays and keep only their own changes, so preemption's dry run can have many.
    """

    __slots__ = ("_base", "_changed", "_column", "_exists", "key")

    def __init__(
        self, key: str, column: InternedColumn[str], base: Int64, exists: Bool | None = None
    ) -> None:
        """``base`` int64 and ``exists`` bool by label code, shape (codes,); no ``exists`` means
        that all domains take part."""
        self.key = key
        self._column = column
        self._base = base
        self._exists = exists
        #: value -> its number, where that is not the one in ``base`` any more.
        self._changed: dict[str, int] = {}

    @classmethod
    def of(
        cls, nodes: NodeInfos, key: str, per_node: Int64, admitted: Bool | None = None
    ) -> DomainCounts:
        """Sums of ``per_node`` (int64, shape (n,), of all nodes of the table) by domain. With
        ``admitted`` (bool, shape (n,)) only those nodes count, and only their domains exist."""
        column = nodes.table.label_column(key)
        size = len(column.values)
        if admitted is None:
            return cls(key, column, _sums(column.codes + 1, per_node, size))
        codes = column.codes[admitted] + 1
        exists = np.bincount(codes, minlength=size + 1)[1:] > 0
        return cls(key, column, _sums(codes, per_node[admitted], size), exists)

    def get(self, value: str) -> int:
        """The number of a domain; 0 where it takes no part."""
        known = self._changed.get(value)
        if known is not None:
            return known
        code = self._column.code_of(value)
        return int(self._base[code]) if 0 <= code < len(self._base) else 0

    def add(self, value: str, amount: int) -> None:
        """Change the number of a domain, which takes part from now on."""
        self._changed[value] = self.get(value) + amount

    def by_code(self) -> Int64:
        """int64, shape (codes + 1,): the number per label code; the last entry, for nodes without
        the label (code -1), is 0."""
        counts = np.append(self._base, 0)
        for value, count in self._changed.items():
            code = self._column.code_of(value)
            if 0 <= code < len(self._base):
                counts[code] = count
        return counts

    def is_zero(self) -> bool:
        """Whether every domain's number is 0."""
        if not self._changed:
            return not self._base.any()
        return not any(self._changed.values()) and not self.by_code().any()

    def size_and_minimum(self) -> tuple[int, int]:
        """How many domains take part, and the smallest of their numbers (0 without domains)."""
        exists = np.ones(len(self._base), dtype=bool) if self._exists is None else self._exists
        if self._changed:
            exists = exists.copy()
            codes = [self._column.code_of(value) for value in self._changed]
            exists[[code for code in codes if 0 <= code < len(exists)]] = False
        untouched = self._base[exists]
        size = len(untouched) + len(self._changed)
        lowest = [*self._changed.values()]
        if len(untouched):
            lowest.append(int(untouched.min()))
        return size, min(lowest, default=0)

    def clone(self) -> DomainCounts:
        twin = DomainCounts(self.key, self._column, self._base, self._exists)
        twin._changed = self._changed.copy()
        return twin


def _sums(codes_from_1: np.ndarray[tuple[int], np.dtype[np.int32]], x: Int64, size: int) -> Int64:
    # Whole numbers in float64 are exact up to 2**53. Slot 0 takes the nodes without the label.
    sums: Int64 = np.bincount(codes_from_1, weights=x, minlength=size + 1)[1:].astype(np.int64)
    return sums
