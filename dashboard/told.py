"""What the recorder's queue holds, and the batches it is written in."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from dashboard import best_nodes
from scheduler_core.observations import Observation
from scheduler_core.records import (
    BindingRecord,
    ClusterUsage,
    CycleRecord,
    PermitDecision,
    QueueListing,
    ScoreMatrix,
    WaitingPodRecord,
)


@dataclass(frozen=True, slots=True)
class DecisionApplied:
    """What the scheduler made of a person's decision; ``at`` is its clock."""

    decision: PermitDecision
    applied: bool
    message: str
    at: float


Record = CycleRecord | BindingRecord | WaitingPodRecord | DecisionApplied | Observation


@dataclass(slots=True, eq=False)
class Told:
    """One record on its way.

    Attributes:
        second: the time of day.
        dropped: its matrix was dropped, before its row was written.
        best: its best nodes as its row keeps them, where they were worked out for that.
    """

    record: Record
    second: int
    dropped: bool = False
    best: best_nodes.Packed | None = None

    def drop_matrix(self) -> None:
        """Let go of the record's arrays; what its row takes from them is worked out before."""
        if isinstance(self.record, CycleRecord):
            self.best = best_nodes.pack(self.record)
            rejections = tuple(self.record.rejections)
            self.record = replace(self.record, matrix=None, best=(), rejections=rejections)
            self.dropped = True


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction writes. ``name`` is unique among the batches of a run.

    Attributes:
        matrices: the cycles whose matrices are stored: of this batch, or of an earlier one whose
            matrices had to wait. None: those of all cycles told.
        dropped: sequence numbers of cycles of earlier batches whose matrices were dropped since.
        rows_refused: rows that the database would not take, since the last batch.
    """

    name: str
    told: Sequence[Told] = ()
    listing: QueueListing | None = None
    usage: ClusterUsage | None = None
    second: int = 0
    queued: int = 0
    matrices_dropped: int = 0
    back_pressure_seconds: float = 0.0
    clock_at: float = 0.0
    wall_at: float = 0.0
    clock_speed: float = 1.0
    matrices: Sequence[CycleRecord] | None = None
    dropped: Sequence[int] = ()
    rows_refused: int = 0

    @property
    def stored_matrices(self) -> list[CycleRecord]:
        """The cycles whose matrices this batch stores."""
        if self.matrices is not None:
            return [record for record in self.matrices if record.matrix is not None]
        records = [told.record for told in self.told]
        return [r for r in records if isinstance(r, CycleRecord) and r.matrix is not None]


class MatrixShelf:
    """Matrices that are not stored yet, oldest first, up to a number of bytes.

    First their cycles wait to be written (``put``), then, once those are on their way (``taken``),
    they wait for their own turn (``newest``, ``oldest``). When a new one does not fit, the oldest
    go: what people look at is the latest. An array that two cycles share counts once. Not
    thread-safe.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._queued: deque[tuple[Told, int]] = deque()
        self._ready: deque[tuple[Told, int]] = deque()
        self._bytes = 0
        self._last: tuple[NDArray[Any], ...] = ()

    def put(self, told: Told, matrix: ScoreMatrix) -> tuple[int, list[int]]:
        """Hold one more; how many others had to go, and which of these were ``taken``."""
        size = self._size(matrix)
        gone = 0
        written: list[int] = []
        while self._bytes + size > self._most and (self._ready or self._queued):
            is_ready = bool(self._ready)
            oldest, freed = (self._ready if is_ready else self._queued).popleft()
            if is_ready:
                written.append(_sequence(oldest))
            else:
                oldest.drop_matrix()
            self._bytes -= freed
            gone += 1
        self._queued.append((told, size))
        self._bytes += size
        return gone, written

    def taken(self, told: Told) -> None:
        """The record has left the queue, in the order in which it came."""
        if self._queued and self._queued[0][0] is told:
            self._ready.append(self._queued.popleft())

    def newest(self, most: int) -> list[CycleRecord]:
        """Take the newest that are ready, newest first."""
        return [self._take(self._ready.pop()) for _ in range(min(most, len(self._ready)))]

    def oldest(self, most: int) -> list[CycleRecord]:
        """Take the oldest that are ready, oldest first."""
        return [self._take(self._ready.popleft()) for _ in range(min(most, len(self._ready)))]

    def forget(self, sequence: int) -> None:
        """Let go of those up to this cycle: they would be thrown away as soon as stored."""
        while self._ready and _sequence(self._ready[0][0]) <= sequence:
            self._bytes -= self._ready.popleft()[1]

    @property
    def ready(self) -> int:
        """How many wait for their own turn."""
        return len(self._ready)

    def clear(self) -> None:
        """The queue was emptied."""
        self._queued.clear()
        self._ready.clear()
        self._bytes, self._last = 0, ()

    def _take(self, held: tuple[Told, int]) -> CycleRecord:
        self._bytes -= held[1]
        assert isinstance(held[0].record, CycleRecord)
        return held[0].record

    def _size(self, matrix: ScoreMatrix) -> int:
        arrays: tuple[NDArray[Any], ...] = (
            *matrix.raw,
            matrix.normalized,
            matrix.total,
            matrix.rejection,
        )
        known = {id(array) for array in self._last}
        self._last = arrays
        return sum(array.nbytes for array in arrays if id(array) not in known)


def _sequence(told: Told) -> int:
    assert isinstance(told.record, CycleRecord)
    return told.record.sequence
