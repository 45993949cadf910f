"""Carries a run under its lease: a scheduler, and the next where its configuration changes."""

from __future__ import annotations

import logging
import threading
from typing import Final

from django.db import DatabaseError, InterfaceError, OperationalError, connection

from dashboard import configuration, hosted, interpreter, leases, runs, unfinished
from dashboard.carriage import Carriage, Surroundings
from dashboard.configuration import Wish
from dashboard.hosted import HostedSandbox
from dashboard.lease_keeper import LeaseKeeper
from dashboard.metrics import carried as metrics
from dashboard.metrics.carried import CarriedRun
from dashboard.models import SchedulerRun
from dashboard.recorder import Recorder
from scheduler_core.algorithm import SeededRandom
from scheduler_core.clock import RealClock
from scheduler_core.config import InvalidConfiguration
from scheduler_core.framework.runtime.framework import ProfileError
from scheduler_core.scheduler import Scheduler

logger = logging.getLogger(__name__)

_RUNNING: Final = SchedulerRun.DesiredState.RUNNING
_STOPPED: Final = SchedulerRun.DesiredState.STOPPED
#: Seconds between two looks whether the lease is still held, while the database is away.
_PATIENCE: Final = 1.0


class RecorderFailed(Exception):
    """The run goes no further, because nothing would be recorded of it; why."""


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
        #: Why the run must end as failed; "": it need not.
        self._failure = ""
        self._desired = run.desired_state
        self._told_state = ""
        #: The latest version that is wished for, and the latest that was tried.
        self._wished_version = self._tried_version = 0

    def read_wishes(self) -> None:
        """Called by the lease keeper with each renewal."""
        rows = SchedulerRun.objects.values_list("desired_state", "config_version")
        self._desired, self._wished_version = rows.filter(pk=self._run.pk).first() or (_STOPPED, 0)

    def carry(self, keeper: LeaseKeeper) -> None:
        """Schedule until the run is not wanted, the lease is lost or the worker stops."""
        run, clock = self._run, RealClock()
        recorder = Recorder(
            run.pk,
            fence=keeper.fence,
            clock=clock.now,
            on_fenced=self._fenced.set,
            on_failed=self._fail,
        )
        carried = CarriedRun(run.pk, run.name, run.cluster.name, recorder)
        around = Surroundings(
            run.pk, self._sandbox, recorder, carried, clock, SeededRandom(run.seed), run.seed
        )
        carriage = self._first(around, keeper.fence)
        recorder.start()
        try:
            self._tell_unfinished(recorder, clock.now())
            carriage.start()
            metrics.publish(carried)
            self._say_applied(carriage.wish, keeper.fence)
            while not self._ended(keeper):
                self._schedule(carriage.scheduler, keeper)
                carriage = self._next(around, carriage, keeper)
        finally:
            metrics.withdraw(carried)
            carriage.stop()
            recorder.close()
        if self._failure:
            raise RecorderFailed(self._failure)

    def _fail(self, reason: str) -> None:
        """Nothing is recorded any more, on whichever thread that was found out."""
        self._failure = reason

    def _tell_unfinished(self, recorder: Recorder, now: float) -> None:
        """What became of the bindings that a killed worker has left behind."""
        cycles = list(unfinished.left_open(self._run.pk))
        if not cycles:
            return
        pods = self._sandbox.cluster.list("Pod").items
        for record in unfinished.bindings(self._run.pk, cycles, pods, now):
            recorder.binding_finished(record)

    def _schedule(self, scheduler: Scheduler, keeper: LeaseKeeper) -> None:
        """Until the end, or until another configuration is wished for."""
        scheduler.run(
            lambda: self._ended(keeper) or self._wished_version > self._tried_version,
            lambda: self._follow_wish(scheduler, keeper.fence),
        )

    def _ended(self, keeper: LeaseKeeper) -> bool:
        return (
            self._stop.is_set()
            or keeper.lost.is_set()
            or self._fenced.is_set()
            or bool(self._failure)
            or self._desired == _STOPPED
            # Its owner has closed the cluster, or made another one of it: this one is deaf.
            or hosted.find(self._run.cluster_id) is not self._sandbox
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

    # -- configurations --------------------------------------------------------------------------

    def _first(self, around: Surroundings, fence: leases.Fence) -> Carriage:
        """The scheduler to begin with: of the configuration that is wished for or, where that one
        cannot be made, of the one that was used last."""
        run, sequence = self._run, self._run.last_sequence + 1
        wish = Wish(run.config_version, run.config)
        self._tried_version = wish.version
        try:
            return Carriage(around, wish, sequence)
        except Exception as error:
            before = Wish(run.applied_config_version, run.applied_config)
            if not before.version or before.text == wish.text:
                raise
            self._refuse(wish, error, fence)
            return Carriage(around, before, sequence)

    def _say_applied(self, wish: Wish, fence: leases.Fence) -> None:
        run = self._run
        if wish.version != self._tried_version:
            return  # it goes on with the one before
        if run.applied_config_version != wish.version or run.config_error:
            configuration.applied(run.pk, wish, fence=fence)

    def _next(self, around: Surroundings, current: Carriage, keeper: LeaseKeeper) -> Carriage:
        """Hand over to a scheduler of the new configuration; one that cannot be made changes
        nothing, and the page says why."""
        if self._ended(keeper):
            return current
        try:
            wish = configuration.wished(self._run.pk)
        except DatabaseError as error:
            connection.close()
            logger.warning("run %s: its configuration cannot be read: %s", self._run.pk, error)
            self._wished_version = self._tried_version  # until the keeper reads it again
            return current
        self._tried_version = wish.version
        try:
            new = Carriage(around, wish, current.scheduler.next_sequence)
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises is no reason to stop
            self._refuse(wish, error, keeper.fence)
            return current
        current.stop()
        if not self._all_recorded(around, keeper):
            return current
        return self._hand_over(around, current.wish, new, keeper.fence)

    def _hand_over(
        self, around: Surroundings, before: Wish, new: Carriage, fence: leases.Fence
    ) -> Carriage:
        """Waiting pods, cycle numbers and the recorder go on. A new scheduler that cannot start
        gives way to another one of the configuration before."""
        try:
            new.start()
            configuration.applied(self._run.pk, new.wish, fence=fence)
        except (DatabaseError, leases.FencedError):
            new.stop()
            raise
        except Exception as error:  # noqa: BLE001 - as above
            new.stop()
            self._refuse(new.wish, error, fence)
            back = Carriage(around, before, new.scheduler.next_sequence)
            back.start()
            return back
        logger.info("run %s uses version %s of its configuration", self._run.pk, new.wish.version)
        return new

    def _all_recorded(self, around: Surroundings, keeper: LeaseKeeper) -> bool:
        """The waits that the next scheduler takes up are read from the database."""
        while not around.recorder.flush(_PATIENCE):
            if self._ended(keeper):
                return False
        return True

    def _refuse(self, wish: Wish, error: Exception, fence: leases.Fence) -> None:
        expected = isinstance(error, InvalidConfiguration | ProfileError)
        text = str(error) if expected else f"{type(error).__name__}: {error}"
        logger.warning("run %s refuses configuration %s: %s", self._run.pk, wish.version, text)
        configuration.refused(self._run.pk, wish, text, fence=fence)


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
    interpreter.tune()
    loop = RunLoop(found, sandbox, stop)
    keeper = LeaseKeeper.acquire(leases.run_lease(run_id), worker, loop.read_wishes)
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
        except RecorderFailed as error:
            logger.error("run %s ends: %s", run_id, error)
            _tell(run_id, SchedulerRun.State.FAILED, f"The run was ended: {error}", keeper)
            return True
        except leases.FencedError as error:
            logger.warning("run %s: %s", run_id, error)
            return True
        except (OperationalError, InterfaceError) as error:
            # A database that is away comes back; then somebody carries the run again.
            logger.warning("run %s: database away: %s", run_id, error)
            return True
        except Exception as error:
            logger.exception("run %s failed", run_id)
            _tell(run_id, SchedulerRun.State.FAILED, f"Scheduler failed: {error!r}", keeper)
            raise
        _say_farewell(run_id, keeper)
    return True


def _say_farewell(run_id: int, keeper: LeaseKeeper) -> None:
    wanted, state = SchedulerRun.objects.values_list("desired_state", "state").get(pk=run_id)
    if wanted == _STOPPED:
        _tell(run_id, SchedulerRun.State.STOPPED, "", keeper)
    elif state != SchedulerRun.State.FAILED:  # the sandbox failed, and said so on its runs
        text = "The worker was stopped; the next one goes on."
        _tell(run_id, SchedulerRun.State.PENDING, text, keeper)


def _tell(run_id: int, state: str, message: str, keeper: LeaseKeeper) -> None:
    try:
        runs.set_state(run_id, state, message, fence=keeper.fence)
    except leases.FencedError:
        logger.warning("run %s is another worker's by now", run_id)
