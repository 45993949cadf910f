"""What the recorder's queue holds, and the batches it is written in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler_core.records import (
    BindingRecord,
    ClusterUsage,
    CycleRecord,
    PermitDecision,
    QueueListing,
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


@dataclass(frozen=True, slots=True)
class Told:
    """One record on its way; ``second`` is the time of day, ``dropped``: its matrix was dropped."""

    record: Record
    second: int
    dropped: bool = False


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
