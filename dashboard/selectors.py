"""Questions to the database, answered as the frames and rows of docs/design/002.

Each answer carries the ``seq`` it is true for: the run's number is read before the rows, so that
rows of a later commit may be in it, but none of an earlier one is missing.
"""

from __future__ import annotations

import time
from typing import Any, Final

from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.urls import reverse

from dashboard import best_nodes, commits, frames, groups, heatmap, leases, matrices, runs
from dashboard.models import (
    Cluster,
    CycleMatrix,
    NodeNames,
    RunListing,
    RunState,
    SchedulerRun,
    SchedulingCycle,
    SecondSample,
    WaitingPod,
)
from dashboard.observe import selectors as observe_selectors
from scheduler_core.records import ScoreMatrix

#: Ended waits that a page gets when it opens.
ENDED_WAITS: Final = 200
MOST_CYCLES: Final = 500
MOST_ATTEMPTS: Final = 100
MOST_QUEUE_ROWS: Final = 1000


def get_run(run_id: int) -> SchedulerRun:
    """The run, without its blobs.

    Raises:
        SchedulerRun.DoesNotExist: there is no such run.
    """
    return SchedulerRun.objects.select_related("cluster").get(pk=run_id)


# --- topics ---------------------------------------------------------------------------------


def overview(run: SchedulerRun) -> frames.Frame:
    """The whole overview: ten minutes of seconds, totals, usage, the recorder."""
    samples = list(SecondSample.objects.filter(run=run).order_by("-second")[: frames.SECONDS_KEPT])
    state = RunState.objects.filter(run=run).first()
    usage = _listing(run, RunListing.Topic.USAGE)
    queued = state.recorder_queued if state is not None else 0
    return frames.overview_frame(run, 0, samples[::-1], usage, queued)


def queues(run: SchedulerRun) -> frames.Frame:
    """The first lines of each place of the queue."""
    return frames.queues_frame(run.pk, run.commit_seq, _queues(run))


def queue_page(run: SchedulerRun, queue: str, offset: int, limit: int) -> dict[str, Any]:
    """Some lines of one place of the queue."""
    listing = _queues(run)
    rows = listing[queue]
    return {
        "seq": run.commit_seq,
        "at": listing["at"],
        "depths": listing["depths"],
        "queue": queue,
        "total": len(rows),
        "rows": rows[offset : offset + min(limit, MOST_QUEUE_ROWS)],
    }


def waiting(
    run: SchedulerRun, since: int | None, *, after: int | None = None, limit: int | None = None
) -> frames.Frame:
    """Waits that changed after ``since``; without it all open ones and the latest ended ones.

    ``limit`` cuts the answer: ``more`` is then the id to give as ``after`` for the rest, None where
    there is none, and ``open`` how many waits are open. The rest only adds rows: what the whole is
    true for is the ``seq`` of the first answer.
    """
    rows = WaitingPod.objects.filter(run=run)
    open_rows = rows.filter(state__in=WaitingPod.OPEN)
    chosen = open_rows if since is None else rows.filter(commit_seq__gt=since)
    # Not the key itself: SQLite would walk through all rows of the run, ended ones included.
    chosen = chosen.annotate(place=F("pk") + 0).filter(place__gt=after or 0).order_by("place")
    found: list[WaitingPod] = list(chosen if limit is None else chosen[: limit + 1])
    cut = limit is not None and len(found) > limit
    found = found[:limit]
    more = found[-1].pk if cut else None
    if since is None and after is None:
        ended = rows.exclude(state__in=WaitingPod.OPEN).order_by("-commit_seq", "-pk")
        found = [*reversed(list(ended[:ENDED_WAITS])), *found]
    frame = frames.waiting_frame(
        run.pk, since or 0, run.commit_seq, commits.run_clock(run.pk), found
    )
    if limit is not None:
        frame |= {"more": more, "open": open_rows.count()}
    return frame


def cycles(
    run: SchedulerRun,
    *,
    since: int | None = None,
    before: int | None = None,
    limit: int = frames.CYCLES_PER_FRAME,
    outcome: str = "",
    query: str = "",
    latest: bool = False,
) -> frames.Frame:
    """The newest ``limit`` cycles that fit, newest last.

    ``since``: of a later commit; ``before``: with a smaller sequence number; ``query``:
    "namespace/name", or a part of a pod's, pod group's or node's name; ``latest``: only the newest
    attempt of each pod, so that with an outcome it finds the pods that stand there now.
    ``skipped`` is how many more were committed after ``since``.
    """
    rows = SchedulingCycle.objects.filter(run=run)
    if since is not None:
        rows = rows.filter(commit_seq__gt=since)
    if outcome:
        rows = rows.filter(outcome=outcome)
    if query:
        rows = rows.filter(_matches(query))
    if latest:
        rows = rows.filter(~Exists(_later_attempts(run)))
    if before is not None:
        rows = rows.filter(sequence__lt=before)
    limit = max(1, min(limit, MOST_CYCLES))
    # Lists show neither of these, and they are most of a row.
    light = _with_matrix(rows).defer("detail", "binding")
    newest = list(light.order_by("-sequence")[:limit])
    skipped = 0
    if since is not None and len(newest) == limit:
        skipped = rows.count() - limit
    return {
        "type": groups.CYCLES,
        "run": run.pk,
        "from": since or 0,
        "seq": run.commit_seq,
        "cycles": [frames.cycle_row(row, row.kept) for row in reversed(newest)],
        "skipped": max(0, skipped),
    }


# --- one cycle ------------------------------------------------------------------------------


def cycle(run: SchedulerRun, sequence: int) -> dict[str, Any]:
    """One cycle in full.

    Raises:
        SchedulingCycle.DoesNotExist: there is no such cycle.
    """
    rows = _with_matrix(SchedulingCycle.objects.filter(run=run))
    row = rows.get(sequence=sequence)
    attempts = rows.filter(pod_uid=row.pod_uid).defer("detail").order_by("-sequence")
    detail = row.detail
    return {
        **frames.cycle_row(row, row.kept),
        "run": run.pk,
        "nodes_evaluated": row.nodes_evaluated,
        "point_seconds": detail.get("point_seconds", {}),
        "plugin_seconds": detail.get("plugin_seconds", []),
        "rejections": detail.get("rejections", []),
        "best": best_nodes.unpack(detail.get("best")),
        "weights": best_nodes.weights(detail.get("best")),
        "unschedulable_plugins": detail.get("unschedulable_plugins", []),
        "nominated_node": detail.get("nominated_node", ""),
        "victims": detail.get("victims", []),
        "depths": detail.get("depths", {}),
        "binding": row.binding,
        "attempts": [
            frames.cycle_row(attempt, attempt.kept)
            for attempt in reversed(attempts[:MOST_ATTEMPTS])
        ],
        "matrix": matrix_state(row, row.kept),
    }


def matrix_state(row: SchedulingCycle, kept: bool) -> str:
    """``kept``; ``dropped`` under pressure; ``expired``; ``none``: no node was looked at."""
    if kept:
        return "kept"
    if row.matrix_dropped:
        return "dropped"
    return "expired" if row.has_nodes else "none"


def stored_matrix(run: SchedulerRun, sequence: int | None) -> CycleMatrix | None:
    """The matrix of a cycle, or of the newest cycle that has one (None)."""
    rows = CycleMatrix.objects.filter(run=run).select_related("cycle", "node_names")
    rows = rows.defer("cycle__detail")
    if sequence is None:
        return rows.order_by("-sequence").first()
    return rows.filter(sequence=sequence).first()


def decoded(stored: CycleMatrix) -> ScoreMatrix:
    """The matrix itself."""
    return matrices.decode(bytes(stored.blob), matrices.decode_names(bytes(stored.node_names.blob)))


def heatmap_of(stored: CycleMatrix) -> heatmap.Heatmap:
    """The matrix as a heatmap."""
    row = stored.cycle
    return heatmap.from_matrix(
        decoded(stored),
        seq=row.commit_seq,
        run=stored.run_id,
        sequence=row.sequence,
        pod=f"{row.namespace}/{row.name}",
        outcome=row.outcome,
        node=row.node,
        names_hash=stored.node_names.hash,
    )


def node_names(names_hash: str) -> tuple[str, ...] | None:
    """The names behind a heatmap's ``names_hash``; None where they are gone."""
    blob = NodeNames.objects.filter(hash=names_hash).values_list("blob", flat=True).first()
    return None if blob is None else matrices.decode_names(bytes(blob))


# --- clusters -------------------------------------------------------------------------------


def clusters() -> list[dict[str, Any]]:
    """Every cluster with its newest run that schedules, or else the newest that observes."""
    now = time.time()
    newest: dict[int, SchedulerRun] = {}
    for run in SchedulerRun.objects.defer("config").order_by("pk"):
        known = newest.get(run.cluster_id)
        if known is None or run.mode == run.Mode.SCHEDULE or known.mode == run.Mode.OBSERVE:
            newest[run.cluster_id] = run
    return [
        _cluster_row(cluster, newest.get(cluster.pk), now)
        for cluster in Cluster.objects.select_related("sandbox")
    ]


def _cluster_row(cluster: Cluster, run: SchedulerRun | None, now: float) -> dict[str, Any]:
    sandbox = getattr(cluster, "sandbox", None)
    row: dict[str, Any] = {
        "id": cluster.pk,
        "name": cluster.name,
        "kind": cluster.kind,
        "created_at": cluster.created_at.timestamp(),
        "preset": sandbox.preset if sandbox else "",
        "clock_mode": sandbox.clock_mode if sandbox else "",
        "speed": sandbox.speed if sandbox else 1.0,
        "message": sandbox.message if sandbox else "",
        "run": None,
        "state": sandbox.state if sandbox else "",
        "url": "",
        "page": reverse("cluster", args=[cluster.pk]) if cluster.kind == Cluster.Kind.KUBE else "",
    }
    if run is None:
        return row
    lease = leases.view(leases.run_lease(run.pk), settings.KUBESCHED_LEASE_SECONDS, now)
    row |= {
        "run": run.pk,
        "run_name": run.name,
        "mode": run.mode,
        "state": run.state,
        "desired_state": run.desired_state,
        "message": run.message or row["message"],
        "lease": {"fresh": lease.fresh, "holder": lease.holder},
        "totals": frames.totals(run),
        "url": reverse("overview", args=[run.pk]),
    }
    return row


def topic(run: SchedulerRun, name: str, since: int | None = None) -> frames.Frame:
    """The latest frame of a JSON topic."""
    if name == groups.OVERVIEW:
        return overview(run)
    if name == groups.QUEUES:
        return queues(run)
    if name == groups.WAITING:
        return waiting(run, since)
    if name == groups.CYCLES:
        limit = MOST_CYCLES if since is not None else frames.CYCLES_PER_FRAME
        return cycles(run, since=since, limit=limit)
    if name == groups.OBSERVE:
        return observe_selectors.observed(run, since=since)
    return dict(runs.frame(run))


# --- helpers --------------------------------------------------------------------------------


def _listing(run: SchedulerRun, topic: RunListing.Topic) -> dict[str, Any] | None:
    blob = RunListing.objects.filter(run=run, topic=topic).values_list("blob", flat=True).first()
    return None if blob is None else frames.unpack(bytes(blob))


def _queues(run: SchedulerRun) -> dict[str, Any]:
    return _listing(run, RunListing.Topic.QUEUES) or frames.empty_listing(commits.run_clock(run.pk))


def _with_matrix(rows: QuerySet[SchedulingCycle]) -> QuerySet[Any]:
    return rows.annotate(kept=Exists(CycleMatrix.objects.filter(cycle=OuterRef("pk"))))


def _later_attempts(run: SchedulerRun) -> QuerySet[SchedulingCycle]:
    """For use inside a question about cycles: what the same pod tried later."""
    return SchedulingCycle.objects.filter(
        run=run, pod_uid=OuterRef("pod_uid"), sequence__gt=OuterRef("sequence")
    )


def _matches(query: str) -> Q:
    namespace, slash, name = query.partition("/")
    if slash and namespace:
        return Q(namespace=namespace, name__startswith=name) | Q(pod_group__startswith=query)
    return Q(name__icontains=query) | Q(pod_group__icontains=query) | Q(node=query)
