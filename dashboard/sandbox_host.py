"""Owns one sandbox: its store, its kubelet and controllers, its workload and its socket."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, Final

from django.db import Error as DatabaseError
from django.db import InterfaceError, OperationalError

from dashboard import hosted, interpreter, leases, runs, sandbox_journal
from dashboard.hosted import HostedSandbox
from dashboard.lease_keeper import LeaseKeeper
from dashboard.models import Sandbox, SchedulerRun
from dashboard.sandbox_api import lifecycle as sandbox_api
from dashboard.sandbox_journal import DatabaseJournal
from dashboard.sandbox_parts import make_controllers
from dashboard.workload_specs import InvalidWorkload, make_workload
from scheduler_core.clock import RealClock
from scheduler_core.cluster.driver import Driver
from scheduler_core.cluster.errors import unavailable
from scheduler_core.cluster.remote import SandboxServer
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.cluster.sandbox_clock import AS_FAST_AS_POSSIBLE, ScaledClock
from scheduler_core.ports import ApiError
from scheduler_core.workloads.base import WorkloadRunner

logger = logging.getLogger(__name__)

#: A snapshot is taken when a restart would have to replay more writes than this, and than the store
#: has objects (replaying a write costs about as much as reading an object of the snapshot), unless
#: taking them would cost more than one part in ``SNAPSHOT_TIME_SHARE`` of the time.
SNAPSHOT_EVERY: Final = 5_000
SNAPSHOT_TIME_SHARE: Final = 50
#: How often the owner looks whether it is still wanted, in seconds.
LOOK_SECONDS: Final = 0.2

_STOPPED: Final = Sandbox.DesiredState.STOPPED


class SandboxHost:
    """One sandbox in this process, from lease to lease's end."""

    def __init__(self, sandbox: Sandbox, stop: threading.Event) -> None:
        self._sandbox = sandbox
        self._id = sandbox.cluster_id
        self._stop = stop
        self._desired = sandbox.desired_state
        #: How far the workload has come. Replaced, never changed: the journal's thread reads it.
        self._workload_state: dict[str, Any] | None = None
        self._snapshot_at = 0
        self._no_snapshot_before = 0.0
        self._access: sandbox_api.OpenSandbox | None = None

    def read_desired_state(self) -> None:
        """Called by the lease keeper with each renewal."""
        wanted = Sandbox.objects.values_list("desired_state", flat=True)
        self._desired = wanted.filter(pk=self._id).first() or _STOPPED
        if self._access is not None:
            self._access.refresh()

    def own(self, keeper: LeaseKeeper, on_ready: Callable[[], object]) -> None:
        """Serve the sandbox until it is not wanted, the lease is lost or the worker stops."""
        with ExitStack() as stack:
            cluster, clock = self._restore(keeper)
            stack.callback(cluster.close)
            entry = HostedSandbox(cluster)
            self._start_parts(cluster, clock, entry, stack)
            server = SandboxServer(cluster, hosted.socket_path(self._id))
            stack.callback(server.close)
            hosted.publish(self._id, entry)
            stack.callback(hosted.withdraw, self._id)
            self._access = stack.enter_context(sandbox_api.served(self._id, cluster))
            set_state(self._id, Sandbox.State.RUNNING)
            on_ready()
            while not self._ended(keeper):
                self._stop.wait(LOOK_SECONDS)
                self._snapshot_if_due(cluster, keeper.fence)
                if cluster.given_up and not self._ended(keeper):
                    raise unavailable("what the sandbox has kept is unknown; it is read again")

    def _pause(self, keeper: LeaseKeeper, seconds: float) -> bool:
        """Wait on another thread; whether the sandbox ends."""
        return keeper.lost.wait(seconds) or self._ended(keeper)

    def _ended(self, keeper: LeaseKeeper) -> bool:
        return self._stop.is_set() or keeper.lost.is_set() or self._desired == _STOPPED

    def _restore(self, keeper: LeaseKeeper) -> tuple[SandboxCluster, ScaledClock]:
        snapshot, writes = sandbox_journal.load(self._id)
        journal = DatabaseJournal(
            self._id, keeper.fence, lambda: self._workload_state, partial(self._pause, keeper)
        )
        last = writes[-1].at if writes else (snapshot.at if snapshot is not None else None)
        clock = make_clock(self._sandbox, last)
        cluster = SandboxCluster.restore(snapshot, writes, clock, journal)
        self._snapshot_at = snapshot.resource_version if snapshot is not None else 0
        return cluster, clock

    def _start_parts(
        self,
        cluster: SandboxCluster,
        clock: ScaledClock,
        entry: HostedSandbox,
        stack: ExitStack,
    ) -> None:
        driver = Driver(clock, may_jump=entry.is_quiet)
        controllers = make_controllers(cluster, driver.wake)
        parts = list(controllers)
        row = self._sandbox
        workload = make_workload(self._id, row.workload, row.workload_state)
        if workload is not None:
            self._remember(workload.state())
            parts.append(WorkloadRunner(workload, cluster, self._remember))
        for controller in controllers:
            stack.callback(controller.stop)
        stack.callback(driver.stop)
        driver.start(parts)

    def _remember(self, state: dict[str, Any]) -> None:
        self._workload_state = state

    def _snapshot_if_due(self, cluster: SandboxCluster, fence: leases.Fence) -> None:
        began = time.monotonic()
        writes = cluster.resource_version - self._snapshot_at
        if writes < SNAPSHOT_EVERY or began < self._no_snapshot_before:
            return
        if writes < cluster.object_count:
            return
        snapshot = cluster.snapshot()
        try:
            sandbox_journal.save_snapshot(self._id, snapshot, fence)
        except DatabaseError as error:
            logger.warning("sandbox %s: no snapshot for now: %s", self._id, error)
        self._snapshot_at = snapshot.resource_version
        ended = time.monotonic()
        self._no_snapshot_before = ended + SNAPSHOT_TIME_SHARE * (ended - began)


def make_clock(sandbox: Sandbox, last: float | None) -> ScaledClock:
    """The sandbox's clock, going on from the last write (``last``, time of day) after a restart.

    In real time it shows the real time again; a scaled clock goes on from where it stood.
    """
    real = RealClock()
    if sandbox.clock_mode == Sandbox.ClockMode.MAX:
        return ScaledClock(real, AS_FAST_AS_POSSIBLE, last)
    if sandbox.clock_mode == Sandbox.ClockMode.SCALED:
        return ScaledClock(real, sandbox.speed, last)
    return ScaledClock(real, 1.0, max(real.now(), last or 0.0))


def set_state(cluster_id: int, state: str, message: str = "") -> None:
    """What has become of the sandbox, for its pages."""
    Sandbox.objects.filter(pk=cluster_id).update(state=state, message=message)


def _fail(cluster_id: int, message: str) -> None:
    """Nothing will run on this sandbox until a person starts it again: say so on its runs too."""
    set_state(cluster_id, Sandbox.State.FAILED, message)
    wanted = SchedulerRun.objects.filter(cluster=cluster_id)
    for run in wanted.exclude(desired_state=SchedulerRun.DesiredState.STOPPED):
        runs.set_state(run.pk, SchedulerRun.State.FAILED, message)


def host(
    cluster_id: int,
    *,
    worker: str,
    stop: threading.Event,
    on_ready: Callable[[], object] = lambda: None,
) -> bool:
    """Own a sandbox in this process; False where another process does, or nobody shall.

    ``on_ready`` is called once pages and schedulers can use it.
    """
    sandbox = Sandbox.objects.filter(pk=cluster_id).first()
    if sandbox is None or sandbox.desired_state == _STOPPED:
        return False
    interpreter.tune()
    owner = SandboxHost(sandbox, stop)
    keeper = LeaseKeeper.acquire(leases.sandbox_lease(cluster_id), worker, owner.read_desired_state)
    if keeper is None:
        return False
    with keeper:
        # Once more under the lease: the last owner may have written since.
        sandbox.refresh_from_db()
        set_state(cluster_id, Sandbox.State.STARTING)
        started = time.monotonic()
        try:
            owner.own(keeper, on_ready)
        except InvalidWorkload as error:
            _fail(cluster_id, f"Workload: {error}")
            return True
        except OSError as error:
            # The socket of a last owner that is still ending; it is tried again.
            logger.warning("sandbox %s cannot be served yet: %s", cluster_id, error)
            set_state(cluster_id, Sandbox.State.PENDING, str(error))
            return True
        except leases.FencedError as error:
            # Another process owns it by now, and says how it is.
            logger.warning("sandbox %s: %s", cluster_id, error)
            return True
        except (OperationalError, InterfaceError, ApiError) as error:
            # A database that is away comes back; then somebody owns the sandbox again. The sandbox
            # itself refuses (503) to be new while its first objects cannot be kept.
            logger.warning("sandbox %s: database away: %s", cluster_id, error)
            return True
        except Exception as error:
            logger.exception("sandbox %s failed", cluster_id)
            _fail(cluster_id, f"The sandbox failed: {error!r}")
            raise
        if not keeper.lost.is_set():
            wanted = sandbox.desired_state if stop.is_set() else _STOPPED
            state = Sandbox.State.STOPPED if wanted == _STOPPED else Sandbox.State.PENDING
            set_state(cluster_id, state)
        logger.info("sandbox %s served for %.0f s", cluster_id, time.monotonic() - started)
    return True
