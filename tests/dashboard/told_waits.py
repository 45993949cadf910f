"""Waits as a recorder writes them: through the batch writer, in a transaction of their own."""

from __future__ import annotations

import itertools
from typing import Any

from dashboard.models import RunState, SchedulerRun, WaitingPod
from dashboard.recording import BatchWriter
from dashboard.told import Batch, Told
from tests.dashboard.factory import wait

_batches = itertools.count()


def told(run: SchedulerRun, *records: Any) -> None:
    """One batch. The run's clock is the time of day afterwards, as without a worker."""
    batch = Batch(f"w:{next(_batches)}", [Told(record, 0) for record in records])
    BatchWriter(run.pk).write(batch)
    RunState.objects.filter(run=run).update(clock_at=None)


def waiting(run: SchedulerRun, name: str = "p", **fields: Any) -> WaitingPod:
    """A pod that has just begun to wait."""
    sequence = WaitingPod.objects.count() + 1
    told(run, wait(sequence, name, **fields))
    return WaitingPod.objects.get(run=run, cycle=sequence)


def gang(run: SchedulerRun, *names: str, uid: str = "pg-1", **fields: Any) -> list[WaitingPod]:
    """Pods of default/gang that have begun to wait in one batch."""
    values = {"pod_group": "default/gang", "group_min_member": len(names), "gang_uid": uid}
    first = WaitingPod.objects.count() + 1
    records = [wait(first + i, name, **{**values, **fields}) for i, name in enumerate(names)]
    told(run, *records)
    return list(WaitingPod.objects.filter(run=run, cycle__gte=first).order_by("cycle"))
