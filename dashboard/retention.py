"""What is thrown away: matrices and rows of older cycles, samples of older seconds, and writes to a
sandbox that no restart needs.

Small batches, each in a transaction of its own, so that nobody waits long for the database.
Waiting and audit rows stay.
"""

from __future__ import annotations

import time
from typing import Any, Final

from django.conf import settings
from django.db.models import Exists, Min, OuterRef, QuerySet

from dashboard import bulk, frames
from dashboard.models import (
    CycleMatrix,
    NodeNames,
    RunListing,
    Sandbox,
    SandboxSnapshot,
    SandboxWrite,
    SchedulerRun,
    SchedulingCycle,
    SecondSample,
)
from dashboard.observe.models import ObservedPod

BATCH: Final = 200
#: Of rows without much in them.
LARGE_BATCH: Final = 1_000
SAMPLE_SECONDS: Final = 24 * 3600


def prune_matrices(run_id: int, limit: int = BATCH, keep: int | None = None) -> int:
    """Delete at most ``limit`` matrices that are neither pinned nor among the latest cycles."""
    keep = settings.KUBESCHED_MATRIX_CYCLES if keep is None else keep
    last = SchedulerRun.objects.values_list("last_sequence", flat=True).get(pk=run_id)
    old = CycleMatrix.objects.filter(
        run=run_id, pin=CycleMatrix.Pin.LATEST, sequence__lte=last - keep
    )
    return _delete(old.order_by("sequence"), limit)


def prune_cycles(run_id: int, limit: int = LARGE_BATCH, keep: int | None = None) -> int:
    """Delete at most ``limit`` rows of cycles that are not among the latest ``keep``; those whose
    matrix is pinned stay with it."""
    keep = settings.KUBESCHED_CYCLES_KEPT if keep is None else keep
    last = SchedulerRun.objects.values_list("last_sequence", flat=True).get(pk=run_id)
    old = SchedulingCycle.objects.filter(run=run_id, sequence__lte=last - keep)
    old = old.exclude(Exists(CycleMatrix.objects.filter(cycle=OuterRef("pk"))))
    ids = list(old.order_by("sequence").values_list("pk", flat=True)[:limit])
    with bulk.write_turn():
        bulk.delete(SchedulingCycle, ids)
    return len(ids)


def prune_observed(run_id: int, limit: int = LARGE_BATCH, keep: int | None = None) -> int:
    """Delete at most ``limit`` rows of observed pods that are not among the latest ``keep``; pods
    that still wait stay, the totals know the others."""
    keep = settings.KUBESCHED_CYCLES_KEPT if keep is None else keep
    last = SchedulerRun.objects.values_list("last_sequence", flat=True).get(pk=run_id)
    old = ObservedPod.objects.filter(run=run_id, sequence__lte=last - keep)
    old = old.exclude(verdict=ObservedPod.Verdict.PENDING)
    return _delete(old.order_by("sequence"), limit)


def release_matrices(run_id: int) -> int:
    """Keep the last failed attempt of a pod that has left the queue no longer than its neighbours:
    it has a node by now, or is gone. How many there were."""
    listing = RunListing.objects.filter(run=run_id, topic=RunListing.Topic.QUEUES).first()
    if listing is None:
        return 0
    told = frames.unpack(bytes(listing.blob))
    queued = {row["uid"] for name in frames.QUEUES for row in told[name]}
    pinned = CycleMatrix.objects.filter(run=run_id, pin=CycleMatrix.Pin.LAST_FAILED)
    # An attempt that the listing has not seen yet may have put its pod back since.
    seen = pinned.filter(cycle__commit_seq__lt=listing.commit_seq)
    gone = [pk for pk, uid in seen.values_list("pk", "pod_uid") if uid not in queued]
    for start in range(0, len(gone), BATCH):
        rows = CycleMatrix.objects.filter(pk__in=gone[start : start + BATCH])
        rows.update(pin=CycleMatrix.Pin.LATEST)
    return len(gone)


def prune_writes(cluster_id: int, limit: int = LARGE_BATCH, keep: int | None = None) -> int:
    """Delete at most ``limit`` writes that are not among the latest ``keep`` of a sandbox, and that
    the older one of its snapshots holds already."""
    keep = settings.KUBESCHED_WRITES_KEPT if keep is None else keep
    snapshots = SandboxSnapshot.objects.filter(cluster=cluster_id).order_by("-resource_version")
    versions = list(snapshots.values_list("resource_version", flat=True)[:2])
    if len(versions) < 2:
        return 0
    newest = Sandbox.objects.values_list("resource_version", flat=True).get(pk=cluster_id)
    until = min(versions[1], newest - keep)
    rows = SandboxWrite.objects.filter(cluster=cluster_id)
    first = rows.aggregate(first=Min("resource_version"))["first"]
    if first is None or first > until:
        return 0
    # Numbers follow on each other. A range with both ends is looked up in the index at all times;
    # "the first thousand" PostgreSQL sorts out of the whole table as long as it has not analysed
    # it, and at thousands of writes a second that took all of a core.
    upper = min(until, first + limit - 1)
    with bulk.write_turn():
        deleted, _ = rows.filter(resource_version__range=(first, upper)).delete()
    return deleted


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
        release_matrices(run_id)
        while count := prune_matrices(run_id):
            gone += count
        while count := prune_cycles(run_id):
            gone += count
        while count := prune_observed(run_id):
            gone += count
        while count := prune_samples(run_id, now):
            gone += count
    for cluster_id in Sandbox.objects.values_list("pk", flat=True):
        while count := prune_writes(cluster_id):
            gone += count
    return gone + prune_node_names()


def _delete(rows: QuerySet[Any], limit: int) -> int:
    ids = list(rows.values_list("pk", flat=True)[:limit])
    if not ids:
        return 0
    model = rows.model
    deleted, _ = model._default_manager.filter(pk__in=ids).delete()
    return deleted
