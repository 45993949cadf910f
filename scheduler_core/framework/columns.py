"""Interned columns: one small code per node, one table of distinct values.

A constraint is evaluated once per distinct value and gathered by code, so that 5,000 nodes with
three zones cost three evaluations.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

V = TypeVar("V", bound=Hashable)

#: How many different questions a column remembers the answers to.
MAX_REMEMBERED = 256
#: Values that a column may keep of nodes that have gone, besides as many as there are nodes.
_FEW_VALUES = 64


class InternedColumn(Generic[V]):
    """``codes``: int32, shape (n,); -1 where the node has no value. ``values[code]`` is the value.

    Values are never forgotten while the column lives, so codes stay valid; the owner makes the
    column anew when it has too many (``move``).
    """

    __slots__ = ("__weakref__", "_answers", "_index", "codes", "values")

    def __init__(self, values_by_row: list[V | None]) -> None:
        self.values: list[V] = []
        self._index: dict[V, int] = {}
        self._answers: dict[Hashable, NDArray[np.generic]] = {}
        self.codes: NDArray[np.int32] = np.array(
            [self._code(v) for v in values_by_row], dtype=np.int32
        )

    def set(self, row: int, value: V | None) -> None:
        self.codes[row] = self._code(value)

    def move(self, rows: NDArray[np.intp]) -> bool:
        """Row i is now what row ``rows[i]`` was; where that is -1 it has no value yet. False, and
        nothing is done: too many values are of nodes that have gone, make the column anew."""
        if len(self.values) > 2 * len(rows) + _FEW_VALUES or not len(self.codes):
            return False
        self.codes = self.codes[rows]
        self.codes[rows < 0] = -1
        return True

    def code_of(self, value: V) -> int:
        """The code of a value; -2 where no node has ever had it (it equals no code)."""
        return self._index.get(value, -2)

    def evaluate(
        self, question: Hashable, answer: Callable[[V | None], bool | int], dtype: type = bool
    ) -> NDArray[np.generic]:
        """``answer(value)`` for every node, shape (n,); ``answer(None)`` where absent.

        ``question`` identifies ``answer``: its results per distinct value are kept.
        """
        return self.table(question, answer, dtype)[self.codes]

    def table(
        self, question: Hashable, answer: Callable[[V | None], bool | int], dtype: type = bool
    ) -> NDArray[np.generic]:
        """``answer`` per code, shape (len(values) + 1,); the last entry is for "absent", which is
        where code -1 points."""
        known = self._answers.get(question)
        if known is not None and len(known) == len(self.values) + 1:
            return known
        done = len(known) - 1 if known is not None else 0
        head = known[:-1] if known is not None else np.empty(0, dtype=dtype)
        fresh_values: list[V | None] = [*self.values[done:], None]
        tail: NDArray[np.generic] = np.array([answer(v) for v in fresh_values], dtype=dtype)
        fresh = np.concatenate([head, tail])
        if known is None and len(self._answers) >= MAX_REMEMBERED:
            self._answers.pop(next(iter(self._answers)))
        self._answers[question] = fresh
        return fresh

    def _code(self, value: V | None) -> int:
        if value is None:
            return -1
        code = self._index.get(value)
        if code is None:
            code = len(self.values)
            self.values.append(value)
            self._index[value] = code
        return code
