"""What is thrown away: whole matrices of older cycles, samples of older seconds.

Small batches, each in a transaction of its own, so that nobody waits long for the database.
Cycle, waiting and audit rows stay.
"""

from __future__ import annotations

import time
from typing import Any, Final

from django.conf import settings
from django.db.models import QuerySet

from dashboard.models import CycleMatrix, NodeNames, SchedulerRun, SecondSample

BATCH: Final = 200
SAMPLE_SECONDS: Final = 24 * 3600


def prune_matrices(run_id: int, limit: int = BATCH, keep: int | None = None) -> int:
    """Delete at most ``limit`` matrices that are neither pinned nor among the latest cycles."""
    keep = settings.KUBESCHED_MATRIX_CYCLES if keep is None else keep
    last = SchedulerRun.objects.values_list("last_sequence", flat=True).get(pk=run_id)
    old = CycleMatrix.objects.filter(
        run=run_id, pin=CycleMatrix.Pin.LATEST, sequence__lte=last - keep
    )
    return _delete(old.order_by("sequence"), limit)


def prune_samples(run_id: int, now: float, limit: int = BATCH) -> int:
    """Delete at most ``limit`` samples of seconds that are more than a day old."""
    old = SecondSample.objects.filter(run=run_id, second__lt=int(now) - SAMPLE_SECONDS)
    return _delete(old.order_by("second"), limit)


def prune_node_names() -> int:
    """Delete lists of node names that no matrix has any more."""
    used = CycleMatrix.objects.values("node_names")
    return _delete(NodeNames.objects.exclude(pk__in=used), BATCH)


def prune(now: float | None = None) -> int:
    """Everything of every run, batch by batch; how many rows went."""
    now = time.time() if now is None else now
    gone = 0
    for run_id in SchedulerRun.objects.values_list("pk", flat=True):
        while count := prune_matrices(run_id):
            gone += count
        while count := prune_samples(run_id, now):
            gone += count
    return gone + prune_node_names()


def _delete(rows: QuerySet[Any], limit: int) -> int:
    ids = list(rows.values_list("pk", flat=True)[:limit])
    if not ids:
        return 0
    model = rows.model
    deleted, _ = model._default_manager.filter(pk__in=ids).delete()
    return deleted
