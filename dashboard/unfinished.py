"""Bindings whose end nobody recorded, because the worker was killed between the two.

The cluster knows what became of them; the next worker of the run asks it and tells the recorder,
so that no decision is shown as being bound for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.conf import settings
from django.db.models import Max, Q, QuerySet

from dashboard.models import SchedulingCycle, WaitingPod
from scheduler_core.ports import Json
from scheduler_core.records import BindingRecord, PodRef

BOUND = "bound before the worker stopped; when exactly is not known"
NOT_BOUND = "the worker was stopped before the binding; the pod is tried again"
GONE = "the worker was stopped meanwhile, and the pod is gone: whether it was bound is not known"


def left_open(run_id: int) -> QuerySet[SchedulingCycle]:
    """Cycles that gave their pod a node for good and of whose binding nothing is recorded.

    A worker can have left only the last few behind: it waits when too many rows are unwritten.
    """
    rows = SchedulingCycle.objects.filter(run=run_id)
    last = rows.aggregate(last=Max("sequence"))["last"] or 0
    waits = WaitingPod.objects.filter(run=run_id, state=WaitingPod.State.ALLOWED)
    open_waits = WaitingPod.objects.filter(run=run_id, state__in=WaitingPod.OPEN)
    return rows.filter(
        Q(outcome=SchedulingCycle.Outcome.SCHEDULED)
        | Q(sequence__in=waits.values("cycle"))
        | Q(sequence__in=open_waits.values("cycle")),
        bound=None,
        sequence__gt=last - settings.KUBESCHED_RECORDER_QUEUE,
    ).order_by("sequence")


def bindings(
    run_id: int, cycles: Iterable[SchedulingCycle], pods: Iterable[Json], now: float
) -> Iterator[BindingRecord]:
    """What became of each of these cycles, by the ``pods`` of the cluster as they are now."""
    nodes = {pod["metadata"]["uid"]: pod["spec"].get("nodeName") or "" for pod in pods}
    still_waiting = set(
        WaitingPod.objects.filter(run=run_id, state__in=WaitingPod.OPEN).values_list(
            "cycle", flat=True
        )
    )
    for cycle in cycles:
        node = nodes.get(cycle.pod_uid)
        if cycle.sequence in still_waiting and not node:
            continue  # it waits on, or its wait is ended as removed
        yield BindingRecord(
            cycle=cycle.sequence,
            pod=PodRef(cycle.pod_uid, cycle.namespace, cycle.name),
            node=cycle.node,
            bound=node == cycle.node,
            finished_at=now,
            duration=0.0,
            message=GONE if node is None else BOUND if node == cycle.node else NOT_BOUND,
        )
