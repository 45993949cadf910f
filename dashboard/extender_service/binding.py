"""A binding that another kube-scheduler asks for: refused where it would pass over an approval or
over the scheduler that has the pod; an audit row says who asked, and what came of it."""

from __future__ import annotations

import logging
from typing import Any, Final

from django.db import Error as DatabaseError
from django.db import connection

from dashboard import audit
from dashboard.models import AuditEntry, SchedulerRun, WaitingPod
from scheduler_core.extender_service import BindingArgs
from scheduler_core.observing import ObservingScheduler
from scheduler_core.ports import ApiError
from scheduler_core.scheduler import Scheduler

__all__ = ["bind", "kept_by_us"]

log = logging.getLogger(__name__)

_NO_DATABASE: Final = (
    "the binding cannot be audited, so it is not done: the database does not answer"
)


def kept_by_us(scheduler: Scheduler | ObservingScheduler, args: BindingArgs) -> str:
    """Why the pod is not the other scheduler's to bind; "" where it is. On the scheduler thread.

    A pod of one of the run's own profiles may be on its way to a Permit plugin.
    """
    if isinstance(scheduler, ObservingScheduler):
        return ""  # its profiles are those of the scheduler that asks, and it binds nothing
    pod = scheduler.informers.informer("Pod").get(f"{args.namespace}/{args.name}")
    if pod is None or pod.uid != args.uid or pod.node_name:
        return ""
    if pod.scheduler_name not in scheduler.profiles:
        return ""
    return (
        f'pod "{args.namespace}/{args.name}" is scheduled by this run itself'
        f" (schedulerName {pod.scheduler_name}): it is not bound for another scheduler"
    )


def bind(run_id: int, cluster: Any, args: BindingArgs, user: Any, kept: str) -> str:
    """Bind, and write it down before and after. "" or what is wrong.

    Args:
        user: whose token asked; None for a trusted connection.
        kept: a reason to refuse that was found already, or "".
    """
    try:
        fault = kept or _waits(args)
        entry = _begin(run_id, args, user, fault)
        if fault:
            return fault
        try:
            cluster.bind(args.namespace, args.name, args.uid, args.node)
        except ApiError as error:
            fault = error.message
        _end(entry, fault)
        return fault
    except DatabaseError:
        log.exception("run %s: a binding could not be audited", run_id)
        return _NO_DATABASE
    finally:
        if not connection.in_atomic_block:
            connection.close()


def _waits(args: BindingArgs) -> str:
    """In whichever run: several may schedule one cluster."""
    if not WaitingPod.objects.filter(uid=args.uid, state__in=WaitingPod.OPEN).exists():
        return ""
    return (
        f'pod "{args.namespace}/{args.name}" waits at Permit:'
        " it is bound once it is approved, not by an extender's call"
    )


def _begin(run_id: int, args: BindingArgs, user: Any, fault: str) -> AuditEntry:
    outcome = AuditEntry.Outcome.REFUSED if fault else AuditEntry.Outcome.SENT
    return audit.write(
        user,
        AuditEntry.Verb.BIND,
        f"{args.namespace}/{args.name}",
        outcome=outcome,
        message=fault,
        detail={"node": args.node, "uid": args.uid},
        run=SchedulerRun.objects.filter(pk=run_id).first(),
    )


def _end(entry: AuditEntry, fault: str) -> None:
    """The pod is bound or not, whatever the database says now."""
    entry.outcome = AuditEntry.Outcome.REFUSED if fault else AuditEntry.Outcome.APPLIED
    entry.message = fault
    try:
        entry.save(update_fields=["outcome", "message"])
    except DatabaseError:
        log.exception("what came of the binding of %s could not be written", entry.target)
