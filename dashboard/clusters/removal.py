"""Removing a real cluster: the way to it, its runs, and all that they have recorded.

The cluster itself is not touched. Audit rows stay, without their run.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from django.conf import settings
from django.db import connection, models, transaction

from dashboard import audit, leases
from dashboard.clusters.models import ClusterConnection
from dashboard.models import (
    AuditEntry,
    Cluster,
    CycleMatrix,
    Lease,
    SchedulerRun,
    SchedulingCycle,
    SecondSample,
)
from dashboard.observe.models import ObservedPod

__all__ = ["StillUsed", "remove", "why_not"]

#: Hundreds of thousands of rows, which Django would read one by one; what refers to others first.
_MANY: Final[Sequence[type[models.Model]]] = (
    CycleMatrix,
    SchedulingCycle,
    ObservedPod,
    SecondSample,
)
_ENDED: Final = (SchedulerRun.State.STOPPED, SchedulerRun.State.FAILED)


class StillUsed(Exception):
    """Runs use the cluster; the message says which, and what to do."""


def remove(user: Any, found: ClusterConnection) -> None:
    """Forget a cluster, with its audit row.

    Raises:
        StillUsed: nothing was removed.
    """
    with transaction.atomic():
        cluster = Cluster.objects.select_for_update().get(pk=found.pk)
        runs = list(
            SchedulerRun.objects.select_for_update()
            .filter(cluster=cluster)
            .defer("config", "applied_config")
            .order_by("pk")
        )
        refusal = why_not(runs)
        if refusal:
            raise StillUsed(refusal)
        names = [run.name for run in runs]
        audit.write(user, AuditEntry.Verb.REMOVE_CLUSTER, cluster.name, detail={"runs": names})
        ids = [run.pk for run in runs]
        for model in _MANY:
            _delete(model, ids)
        Lease.objects.filter(name__in=[leases.run_lease(pk) for pk in ids]).delete()
        cluster.delete()


def why_not(runs: Sequence[SchedulerRun]) -> str:
    """What keeps a cluster with these runs from being removed, for people; "": nothing."""
    going = [run.name for run in runs if not _has_ended(run)]
    if going:
        one = len(going) == 1
        words = "still uses it: stop it first." if one else "still use it: stop them first."
        return f"{_listed(going)} {words}"
    ttl, now = float(settings.KUBESCHED_LEASE_SECONDS), time.time()
    ending = [run.name for run in runs if leases.is_fresh(leases.run_lease(run.pk), ttl, now)]
    if ending:
        words = "is ending" if len(ending) == 1 else "are ending"
        return f"{_listed(ending)} {words}: try again in a moment."
    return ""


def _has_ended(run: SchedulerRun) -> bool:
    """Nobody carries it, or will: one that has failed waits for a person, whatever was wished."""
    wished = run.desired_state == SchedulerRun.DesiredState.STOPPED
    return run.state in _ENDED and (wished or run.state == SchedulerRun.State.FAILED)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(f"“{name}”" for name in names)


def _delete(model: type[models.Model], runs: Sequence[int]) -> None:
    if not runs:
        return
    marks = ", ".join(["%s"] * len(runs))
    statement = f'DELETE FROM "{model._meta.db_table}" WHERE "run_id" IN ({marks})'  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(statement, list(runs))
