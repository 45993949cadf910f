"""One number per run: every transaction that changes what pages show takes the next one."""

from __future__ import annotations

import time
from typing import Any

from django.db import transaction
from django.db.models import F, Max

from dashboard.models import RunState, SchedulerRun, WaitingPod


def next_commit(run_id: int, **changes: Any) -> SchedulerRun:
    """Take the run's next ``commit_seq`` and apply ``changes`` to its columns.

    Must be called first inside a transaction: the row lock makes the order of numbers the order
    of commits.

    Returns:
        The run as it is now.

    Raises:
        SchedulerRun.DoesNotExist: there is no such run.
    """
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError("next_commit() needs a transaction")
    SchedulerRun.objects.filter(pk=run_id).update(commit_seq=F("commit_seq") + 1, **changes)
    return SchedulerRun.objects.get(pk=run_id)


def last_waiting_commit(run_id: int) -> int:
    """The number of the last commit that changed a wait; what a new ``waiting`` frame follows."""
    found = WaitingPod.objects.filter(run=run_id).aggregate(last=Max("commit_seq"))["last"]
    return int(found or 0)


def clock_now(state: RunState | None, wall: float | None = None) -> float:
    """What the run's scheduler clock shows, as far as one can tell from outside its process."""
    wall = time.time() if wall is None else wall
    if state is None or state.clock_at is None or state.wall_at is None:
        return wall
    return state.clock_at + max(0.0, wall - state.wall_at) * state.clock_speed


def run_clock(run_id: int, wall: float | None = None) -> float:
    """``clock_now`` of a run, from the database."""
    return clock_now(RunState.objects.filter(run=run_id).first(), wall)
