"""Who should run what: finds sandboxes and runs that are wanted and that nobody carries.

The lease decides; what is sent here is only a proposal. A task that finds the lease fresh returns
at once, so sending one too many does no harm.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from celery.utils.nodenames import worker_direct
from django.conf import settings

from dashboard import hosted, leases
from dashboard.models import Cluster, Lease, Sandbox, SchedulerRun

#: A proposal that no worker has taken up after this many seconds is made anew.
PROPOSAL_SECONDS = 10

#: (task, its argument, queue or "" for the task's own)
Send = Callable[[str, int, str], None]


def ensure(send: Send) -> int:
    """Propose every loop that is wanted and not carried; how many were proposed."""
    now = time.time()
    return _ensure_sandboxes(send, now) + _ensure_runs(send, now)


def _ensure_sandboxes(send: Send, now: float) -> int:
    wanted = Sandbox.objects.filter(desired_state=Sandbox.DesiredState.RUNNING).exclude(
        state=Sandbox.State.FAILED
    )
    count = 0
    for cluster_id in wanted.values_list("cluster_id", flat=True):
        if not leases.is_fresh(leases.sandbox_lease(cluster_id), _ttl(), now):
            send("host_sandbox", cluster_id, "")
            count += 1
    return count


def _ensure_runs(send: Send, now: float) -> int:
    wanted = (
        SchedulerRun.objects.exclude(desired_state=SchedulerRun.DesiredState.STOPPED)
        .exclude(state=SchedulerRun.State.FAILED)
        .select_related("cluster")
    )
    count = 0
    for run in wanted:
        queue = _queue_of(run.cluster, now)
        if queue is None or leases.is_fresh(leases.run_lease(run.pk), _ttl(), now):
            continue
        send("run_scheduler", run.pk, queue)
        count += 1
    return count


def _queue_of(cluster: Cluster, now: float) -> str | None:
    """Of the process that shall carry the run: the one that owns its sandbox, or the loop worker
    on the same machine; "" for any; None while nobody owns the sandbox."""
    if cluster.kind != Cluster.Kind.SANDBOX:
        return ""
    name = leases.sandbox_lease(cluster.pk)
    if not leases.is_fresh(name, _ttl(), now):
        return None
    worker = Lease.objects.values_list("queue", flat=True).get(name=name)
    if not worker:
        return ""
    part, _, machine = worker.partition("@")
    if part == "sandbox" and hosted.may_be_beside(cluster):
        worker = f"loop@{machine}"
    return str(worker_direct(worker).name)


def _ttl() -> float:
    return float(settings.KUBESCHED_LEASE_SECONDS)
