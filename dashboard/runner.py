"""Composition root: makes a Scheduler of a run's configuration and the product's adapters."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Final

from django.conf import settings

from dashboard import hosted, leases, permits, runs
from dashboard.hosted import HostedSandbox
from dashboard.lease_keeper import LeaseKeeper
from dashboard.models import SchedulerRun, WaitingPod
from dashboard.recorder import Recorder
from scheduler_core.algorithm import SeededRandom
from scheduler_core.clock import RealClock
from scheduler_core.config import InvalidConfiguration, load_configuration
from scheduler_core.executor import KeyedThreadPool
from scheduler_core.framework.runtime.framework import ProfileError
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.records import PendingPlugin, PodRef, WaitingPodRecord
from scheduler_core.scheduler import Scheduler, SchedulerOptions

logger = logging.getLogger(__name__)

_RUNNING: Final = SchedulerRun.DesiredState.RUNNING
_STOPPED: Final = SchedulerRun.DesiredState.STOPPED


class RunLoop:
    """One run in this process, from lease to lease's end.

    Args:
        stop: set when the worker has to end.
    """

    def __init__(self, run: SchedulerRun, sandbox: HostedSandbox, stop: threading.Event) -> None:
        self._run = run
        self._sandbox = sandbox
        self._stop = stop
        self._fenced = threading.Event()
        self._desired = run.desired_state
        self._told_state = ""

    def read_desired_state(self) -> None:
        """Called by the lease keeper with each renewal."""
        wanted = SchedulerRun.objects.values_list("desired_state", flat=True)
        self._desired = wanted.filter(pk=self._run.pk).first() or _STOPPED

    def carry(self, keeper: LeaseKeeper) -> None:
        """Schedule until the run is not wanted, the lease is lost or the worker stops."""
        run, fence = self._run, keeper.fence
        clock = RealClock()
        recorder = Recorder(run.pk, fence=fence, clock=clock.now, on_fenced=self._fenced.set)
        inbox = permits.DatabasePermitInbox(
            run.pk, wake=lambda: scheduler.wake(), redis_url=settings.REDIS_URL
        )
        scheduler = Scheduler(
            load_configuration(run.config, in_tree_registry(), dotted_plugins=True),
            self._sandbox.cluster.as_actor("scheduler"),
            clock=clock,
            executor=KeyedThreadPool(),
            observers=[recorder],
            permit_inbox=inbox,
            tie_breaker=SeededRandom(run.seed),
            options=SchedulerOptions(first_sequence=run.last_sequence + 1),
        )
        recorder.start()
        try:
            scheduler.start(waiting=open_waits(run.pk))
            inbox.start()
            self._sandbox.is_busy = lambda: scheduler.is_busy
            scheduler.run(lambda: self._ended(keeper), lambda: self._follow_wish(scheduler, fence))
        finally:
            self._sandbox.is_busy = None
            inbox.close()
            scheduler.stop()
            recorder.close()

    def _ended(self, keeper: LeaseKeeper) -> bool:
        return (
            self._stop.is_set()
            or keeper.lost.is_set()
            or self._fenced.is_set()
            or self._desired == _STOPPED
        )

    def _follow_wish(self, scheduler: Scheduler, fence: leases.Fence) -> None:
        """Pause or resume as wished, and say so once."""
        running = self._desired == _RUNNING
        if running == scheduler.paused:
            (scheduler.resume if running else scheduler.pause)()
        state = SchedulerRun.State.RUNNING if running else SchedulerRun.State.PAUSED
        if state != self._told_state:
            runs.set_state(self._run.pk, state, fence=fence)
            self._told_state = state


def run(run_id: int, *, worker: str, stop: threading.Event) -> bool:
    """Carry a run in this process; False where another process does, or must.

    Whatever goes wrong is written on the run for people to read.
    """
    found = SchedulerRun.objects.filter(pk=run_id).select_related("cluster").first()
    if found is None or found.desired_state == _STOPPED:
        return False
    sandbox = hosted.find(found.cluster_id)
    if sandbox is None:
        return False
    loop = RunLoop(found, sandbox, stop)
    keeper = LeaseKeeper.acquire(leases.run_lease(run_id), worker, loop.read_desired_state)
    if keeper is None:
        return False
    with keeper:
        # Once more under the lease: the last holder may have written since.
        found.refresh_from_db()
        runs.set_state(run_id, SchedulerRun.State.STARTING, fence=keeper.fence)
        try:
            loop.carry(keeper)
        except (InvalidConfiguration, ProfileError) as error:
            _tell(run_id, SchedulerRun.State.FAILED, f"Configuration: {error}", keeper)
            return True
        except leases.FencedError as error:
            logger.warning("run %s: %s", run_id, error)
            return True
        except Exception as error:
            logger.exception("run %s failed", run_id)
            _tell(run_id, SchedulerRun.State.FAILED, f"Scheduler failed: {error!r}", keeper)
            raise
        _tell(run_id, *_farewell(run_id), keeper)
    return True


def _farewell(run_id: int) -> tuple[str, str]:
    wanted = SchedulerRun.objects.values_list("desired_state", flat=True).get(pk=run_id)
    if wanted == _STOPPED:
        return SchedulerRun.State.STOPPED, ""
    return SchedulerRun.State.PENDING, "The worker was stopped; the next one goes on."


def _tell(run_id: int, state: str, message: str, keeper: LeaseKeeper) -> None:
    try:
        runs.set_state(run_id, state, message, fence=keeper.fence)
    except leases.FencedError:
        logger.warning("run %s is another worker's by now", run_id)


def open_waits(run_id: int) -> Sequence[WaitingPodRecord]:
    """The waits that were open when the last worker of this run ended."""
    return [_record(row) for row in permits.open_waiting(run_id)]


def _record(row: WaitingPod) -> WaitingPodRecord:
    return WaitingPodRecord(
        cycle=row.cycle,
        pod=PodRef(row.uid, row.namespace, row.name),
        node=row.node,
        profile=row.profile,
        priority=row.priority,
        since=row.since,
        deadline=row.deadline,
        pending=tuple(
            PendingPlugin(p["plugin"], p["deadline"], p.get("reason", "")) for p in row.pending
        ),
        pod_group=row.pod_group,
        group_min_member=row.group_min_member,
        needs_approval=row.needs_approval,
        requested_by=row.requested_by,
        requests=dict(row.requests),
    )
