"""Matrices that wait for their turn, and what is left of those that cannot."""

from __future__ import annotations

from dashboard import best_nodes
from dashboard.told import MatrixShelf, Told
from scheduler_core.records import CycleRecord
from tests.dashboard.factory import cycle, matrix


def held(sequence: int) -> tuple[Told, CycleRecord]:
    record = cycle(sequence, matrix=matrix(seed=sequence))
    return Told(record, 0), record


def shelf_for(number: int) -> MatrixShelf:
    """With room for so many."""
    one = matrix(seed=1)
    size = sum(column.nbytes for column in one.raw)
    size += one.normalized.nbytes + one.total.nbytes + one.rejection.nbytes
    return MatrixShelf(number * size)


def test_a_cycle_that_is_not_written_yet_keeps_what_its_row_needs() -> None:
    shelf = shelf_for(1)
    first, record = held(1)
    second, _ = held(2)
    assert record.matrix is not None
    shelf.put(first, record.matrix)
    best = best_nodes.pack(record)
    gone, written = shelf.put(second, matrix(seed=2))
    assert (gone, written) == (1, [])
    assert isinstance(first.record, CycleRecord)
    assert (first.dropped, first.record.matrix, first.best) == (True, None, best)
    assert best_nodes.unpack(best) == best_nodes.unpack(first.best)


def test_of_a_cycle_that_is_written_nothing_is_worked_out_again() -> None:
    shelf = shelf_for(1)
    first, record = held(1)
    second, _ = held(2)
    assert record.matrix is not None
    shelf.put(first, record.matrix)
    shelf.taken(first)
    assert shelf.put(second, matrix(seed=2)) == (1, [1])
    assert (first.dropped, first.best) == (False, None)
    assert first.record is record
