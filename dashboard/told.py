"""What the recorder's queue holds, and the batches it is written in."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

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


Record = CycleRecord | BindingRecord | WaitingPodRecord | DecisionApplied


@dataclass(slots=True, eq=False)
class Told:
    """One record on its way; ``second`` is the time of day, ``dropped``: its matrix was dropped."""

    record: Record
    second: int
    dropped: bool = False

    def drop_matrix(self) -> None:
        """Let go of the record's matrix; everything else stays."""
        if isinstance(self.record, CycleRecord):
            self.record = replace(self.record, matrix=None)
            self.dropped = True


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction writes. ``name`` is unique among the batches of a run."""

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


class MatrixShelf:
    """The matrices that wait in a recorder's queue, oldest first, up to a number of bytes.

    When a new one does not fit, the oldest go: what people look at is the latest. Not thread-safe.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._held: deque[tuple[Told, int]] = deque()
        self._bytes = 0

    def put(self, told: Told, matrix: ScoreMatrix) -> int:
        """Hold one more; how many others had to go."""
        size = sum(
            array.nbytes
            for array in (*matrix.raw, matrix.normalized, matrix.total, matrix.rejection)
        )
        gone = 0
        while self._held and self._bytes + size > self._most:
            oldest, freed = self._held.popleft()
            oldest.drop_matrix()
            self._bytes -= freed
            gone += 1
        self._held.append((told, size))
        self._bytes += size
        return gone

    def taken(self, told: Told) -> None:
        """The record has left the queue, in the order in which it came."""
        if self._held and self._held[0][0] is told:
            self._bytes -= self._held.popleft()[1]

    def clear(self) -> None:
        """The queue was emptied."""
        self._held.clear()
        self._bytes = 0
