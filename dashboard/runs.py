"""Start, pause, resume and stop: a person's wish, and the worker's answer to it.

A person changes ``desired_state`` only, the worker ``state`` only; the worker's loop reads the
wish. The words for a refused wish are here too.
"""

from __future__ import annotations

import time
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from dashboard import audit, commits, frames, groups, leases
from dashboard.models import AuditEntry, Cluster, Sandbox, SchedulerRun
from dashboard.publisher import Publisher, get_publisher

_RUNNING = SchedulerRun.DesiredState.RUNNING
_PAUSED = SchedulerRun.DesiredState.PAUSED
_STOPPED = SchedulerRun.DesiredState.STOPPED

#: action -> (desired states it may be asked in, the desired state it makes)
ACTIONS: Final[dict[str, tuple[frozenset[str], str]]] = {
    "start": (frozenset({_STOPPED}), _RUNNING),
    "pause": (frozenset({_RUNNING}), _PAUSED),
    "resume": (frozenset({_PAUSED}), _RUNNING),
    "stop": (frozenset({_RUNNING, _PAUSED}), _STOPPED),
}
_IS: Final[dict[str, str]] = {
    _RUNNING: "is running already",
    _PAUSED: "is paused",
    _STOPPED: "is stopped",
}


class InvalidTransition(Exception):
    """The action does not fit the run's state; the message says so to a person."""


def create_run(
    cluster: Cluster,
    *,
    name: str,
    config: str,
    seed: int | None = None,
    desired_state: str = _RUNNING,
    mode: str = SchedulerRun.Mode.SCHEDULE,
) -> SchedulerRun:
    """A new run of a scheduler on a cluster; the worker takes it up from there. One that is to be
    stopped waits to be started."""
    stopped = desired_state == _STOPPED
    return SchedulerRun.objects.create(
        cluster=cluster,
        name=name,
        config=config,
        seed=seed,
        desired_state=desired_state,
        state=SchedulerRun.State.STOPPED if stopped else SchedulerRun.State.PENDING,
        mode=mode,
    )


def control(run_id: int, action: str, user: Any) -> SchedulerRun:
    """Wish for another state, with an audit row.

    Raises:
        SchedulerRun.DoesNotExist: there is no such run.
        InvalidTransition: the run is not in a state that this action leaves.
    """
    allowed, wished = ACTIONS[action]
    with transaction.atomic():
        run = SchedulerRun.objects.select_for_update().get(pk=run_id)
        # A run that failed keeps its wish "running": starting it again clears the failure.
        failed = run.state == SchedulerRun.State.FAILED
        if not (run.desired_state in allowed or (failed and action in {"start", "stop"})):
            raise InvalidTransition(_refusal(run, action))
        changes: dict[str, Any] = {"desired_state": wished}
        if failed:
            revived = action == "start"
            changes["state"] = SchedulerRun.State.PENDING if revived else SchedulerRun.State.STOPPED
            changes["message"] = "" if revived else run.message
        if failed and action == "start":
            Sandbox.objects.filter(cluster=run.cluster_id, state=Sandbox.State.FAILED).update(
                state=Sandbox.State.PENDING, message=""
            )
        run = commits.next_commit(run_id, **changes)
        audit.write(user, AuditEntry.Verb(action), str(run), run=run)
        transaction.on_commit(lambda: publish(run))
    return run


def set_state(
    run_id: int,
    state: str,
    message: str = "",
    *,
    fence: leases.Fence | None = None,
    publisher: Publisher | None = None,
) -> None:
    """The worker tells what has become of the run.

    Raises:
        FencedError: the lease is another's by now; nothing was written.
    """
    changes: dict[str, Any] = {"state": state, "message": message}
    if state == SchedulerRun.State.RUNNING:
        changes |= {"started_at": timezone.now(), "stopped_at": None}
    if state in {SchedulerRun.State.STOPPED, SchedulerRun.State.FAILED}:
        changes["stopped_at"] = timezone.now()
    with transaction.atomic():
        if fence is not None:
            fence.check()
        run = commits.next_commit(run_id, **changes)
        transaction.on_commit(lambda: publish(run, publisher))


def frame(run: SchedulerRun) -> frames.RunFrame:
    """The run's frame as of now."""
    lease = leases.view(leases.run_lease(run.pk), settings.KUBESCHED_LEASE_SECONDS, time.time())
    return frames.run_frame(run, lease.fresh, lease.holder)


def publish(run: SchedulerRun, publisher: Publisher | None = None) -> None:
    """Tell the run's pages of its state; call after the commit."""
    (publisher or get_publisher()).publish(run.pk, groups.RUN, dict(frame(run)))


def _refusal(run: SchedulerRun, action: str) -> str:
    return f'Cannot {action} the run "{run.name}": it {_IS[run.desired_state]}.'
