"""NodeStatuses: the filter outcome of every node as one id per row and a short table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from scheduler_core.framework.status import SUCCESS, Code, Status

Mask = NDArray[np.bool_]


_ABSENT_STATUS = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)


class NodeStatuses:
    """Statuses of n nodes. ``ids`` is int32, shape (n,): 0 is Success, i > 0 is ``table[i]``,
    and ``ABSENT`` marks a row that was not evaluated (it has ``absent_status``).

    Statuses are interned, so that counts are one ``bincount`` and a reason is built on demand.
    """

    __slots__ = ("_index", "_rejections", "absent_status", "ids", "table")

    ABSENT = -1

    def __init__(self, size: int) -> None:
        self.ids: NDArray[np.int32] = np.zeros(size, dtype=np.int32)
        self.table: list[Status] = [SUCCESS]
        self._index: dict[Status, int] = {SUCCESS: 0}
        self.absent_status = _ABSENT_STATUS
        self._rejections: NDArray[np.int32] | None = None

    @classmethod
    def from_mask(cls, rejected: Mask, status: Status) -> NodeStatuses:
        """``status`` where ``rejected`` (bool, shape (n,)), Success elsewhere."""
        statuses = cls(len(rejected))
        statuses.reject(rejected, status)
        return statuses

    @classmethod
    def from_list(cls, statuses: Sequence[Status]) -> NodeStatuses:
        """One status per row."""
        answer = cls(len(statuses))
        for row, status in enumerate(statuses):
            if not status.is_success:
                answer.ids[row] = answer.intern(status)
        return answer

    @classmethod
    def scattered(cls, size: int, rows: NDArray[np.intp], some: NodeStatuses) -> NodeStatuses:
        """``some`` at ``rows`` of ``size`` nodes; the others are absent."""
        every = cls(size)
        every.table, every._index = some.table, some._index
        every.ids[:] = cls.ABSENT
        every.ids[rows] = some.ids
        return every

    def patched(self, statuses: Mapping[int, Status]) -> NodeStatuses:
        """These statuses, with other ones at some rows; self where they are the same already.

        The two share their table, which only ever grows.
        """
        ids = self.ids
        for row, status in statuses.items():
            known = self.intern(status) if not status.is_success else 0
            if known != ids[row]:
                if ids is self.ids:
                    ids = ids.copy()
                ids[row] = known
        if ids is self.ids:
            return self
        twin = NodeStatuses.__new__(NodeStatuses)
        twin.ids, twin.table, twin._index = ids, self.table, self._index
        twin.absent_status = self.absent_status
        twin._rejections = None
        return twin

    def rejections(self) -> NDArray[np.int32]:
        """int32, shape (n,): position in ``table[1:]``, -1 for Success, -2 for an absent row. Made
        once, when nothing is going to change any more; not to be written to."""
        if self._rejections is None:
            self._rejections = self.ids - 1
        return self._rejections

    def taken(self, rows: NDArray[np.intp]) -> NodeStatuses:
        """The statuses of some of these nodes, in the order of ``rows``."""
        some = NodeStatuses(0)
        some.ids = self.ids[rows]
        some.table, some._index = self.table.copy(), self._index.copy()
        some.absent_status = self.absent_status
        return some

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, row: int) -> Status:
        i = int(self.ids[row])
        return self.absent_status if i == self.ABSENT else self.table[i]

    def __iter__(self) -> Iterator[Status]:
        return (self[row] for row in range(len(self.ids)))

    @property
    def feasible(self) -> Mask:
        """bool, shape (n,)."""
        mask: Mask = self.ids == 0
        return mask

    @property
    def all_success(self) -> bool:
        return len(self.table) == 1 or not self.ids.any()

    def intern(self, status: Status) -> int:
        """The id of ``status`` in the table; added if new."""
        known = self._index.get(status)
        if known is None:
            known = len(self.table)
            self.table.append(status)
            self._index[status] = known
        return known

    def reject(self, mask: Mask, status: Status) -> None:
        """Give ``status`` to the rows in ``mask`` that have passed so far."""
        if mask.any():
            self.ids[mask & (self.ids == 0)] = self.intern(status)

    def merge(self, other: NodeStatuses, plugin: str) -> None:
        """Take over ``other``'s failures for rows that have passed so far; names the plugin."""
        if other.all_success:
            return
        mapping = np.array(
            [0, *(self.intern(s.with_plugin(plugin)) for s in other.table[1:])], dtype=np.int32
        )
        passed = self.ids == 0
        self.ids[passed] = mapping[other.ids[passed]]

    def counts(self) -> list[tuple[Status, int]]:
        """(status, number of nodes) of every failure that hit a node, in table order."""
        hits = np.bincount(self.ids[self.ids > 0], minlength=len(self.table))
        return [(s, int(hits[i])) for i, s in enumerate(self.table) if i and hits[i]]

    def plugins(self) -> set[str]:
        """Names of the plugins that rejected at least one node."""
        return {status.plugin for status, _ in self.counts() if status.plugin}

    def rows_with(self, code: Code) -> NDArray[np.intp]:
        """Rows whose status has this code; absent rows have the absent status' code."""
        wanted = np.array([s.code is code for s in self.table], dtype=bool)
        mask = np.where(self.ids >= 0, wanted[self.ids], self.absent_status.code is code)
        return np.flatnonzero(mask)

    def first_error(self) -> Status | None:
        """The status of the first row whose code is neither Success nor a rejection."""
        bad = [i for i, s in enumerate(self.table) if i and not s.is_rejected]
        if not bad:
            return None
        rows = np.flatnonzero(np.isin(self.ids, bad))
        return self[int(rows[0])] if len(rows) else None

    def reason_counts(self, num_all_nodes: int) -> dict[str, int]:
        """reason -> number of nodes, of all ``num_all_nodes`` nodes of the snapshot (absent ones
        count for the absent status' reasons)."""
        answer: dict[str, int] = {}
        explicit = 0
        for status, count in self.counts():
            explicit += count
            for reason in status.reasons:
                answer[reason] = answer.get(reason, 0) + count
        if explicit < num_all_nodes:
            for reason in self.absent_status.reasons:
                answer[reason] = answer.get(reason, 0) + num_all_nodes - explicit
        return answer
