"""Carries a run under its lease: a scheduler, and the next where its configuration changes."""

from __future__ import annotations

import logging
import threading
from typing import Final

from django.db import DatabaseError, InterfaceError, OperationalError, connection

from dashboard import configuration, hosted, interpreter, leases, runs, unfinished
from dashboard.carriage import Carriage, Surroundings
from dashboard.clusters.hosting import HostedKube, Unreachable
from dashboard.configuration import Wish
from dashboard.hosted import Host
from dashboard.lease_keeper import LeaseKeeper
from dashboard.metrics import carried as metrics
from dashboard.metrics.carried import CarriedRun
from dashboard.models import Cluster, SchedulerRun
from dashboard.observe.carriage import ObservingCarriage
from dashboard.recorder import Recorder
from dashboard.redacted import in_text_without_userinfo
from scheduler_core.algorithm import SeededRandom
from scheduler_core.clock import RealClock
from scheduler_core.config import InvalidConfiguration
from scheduler_core.framework.runtime.framework import ProfileError
from scheduler_core.observing import ObservingScheduler
from scheduler_core.ports import ApiError
from scheduler_core.scheduler import Scheduler

logger = logging.getLogger(__name__)

_RUNNING: Final = SchedulerRun.DesiredState.RUNNING
_STOPPED: Final = SchedulerRun.DesiredState.STOPPED
#: Seconds between two looks whether the lease is still held, while the database is away.
_PATIENCE: Final = 1.0
#: Seconds after which a cluster that cannot be reached is tried again.
_BEFORE_NEXT_TRY: Final = 5.0


AnyCarriage = Carriage | ObservingCarriage


class RecorderFailed(Exception):
    """The run goes no further, because nothing would be recorded of it; why."""


class RunLoop:
    """One run in this process, from lease to lease's end.

    Args:
        stop: set when the worker has to end.
    """

    def __init__(self, run: SchedulerRun, host: Host, stop: threading.Event) -> None:
        self._run = run
        self._host = host
        self._stop = stop
        self._fenced = threading.Event()
        #: Why the run must end as failed; "": it need not.
        self._failure = ""
        self._desired = run.desired_state
        self._told = ("", "")
        #: The latest version that is wished for, and the latest that was tried.
        self._wished_version = self._tried_version = 0

    def read_wishes(self) -> None:
        """Called by the lease keeper with each renewal."""
        rows = SchedulerRun.objects.values_list("desired_state", "config_version")
        self._desired, self._wished_version = rows.filter(pk=self._run.pk).first() or (_STOPPED, 0)

    def carry(self, keeper: LeaseKeeper) -> None:
        """Schedule until the run is not wanted, the lease is lost or the worker stops."""
        self._host.open()
        try:
            self._carry(keeper)
        finally:
            self._host.close()

    def _carry(self, keeper: LeaseKeeper) -> None:
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
            run.pk, self._host, recorder, carried, clock, SeededRandom(run.seed), run.seed
        )
        carriage = self._first(around, keeper.fence)
        recorder.start()
        try:
            if self._leads(carriage, keeper):
                self._tell_unfinished(recorder, clock.now())
                carriage.start()
                metrics.publish(carried)
                self._say_applied(carriage.wish, keeper.fence)
            while carriage.is_started and not self._ended(keeper):
                self._schedule(carriage.scheduler, keeper)
                carriage = self._next(around, carriage, keeper)
        finally:
            metrics.withdraw(carried)
            self._host.hurry()
            carriage.stop()
            recorder.close()
        if self._failure:
            raise RecorderFailed(self._failure)

    def _leads(self, carriage: AnyCarriage, keeper: LeaseKeeper) -> bool:
        """Wait until the cluster lets this process write; False where the run ended before. Who
        only observes writes nothing, and needs nobody's leave."""
        if self._observes:
            return True

        def tell(text: str) -> None:
            self._tell_state(SchedulerRun.State.STARTING, text, keeper.fence)

        return self._host.lead(carriage.config, lambda: self._is_unwanted(keeper), tell)

    def _tell_state(self, state: str, message: str, fence: leases.Fence) -> None:
        """On the run, once."""
        if (state, message) != self._told:
            runs.set_state(self._run.pk, state, message, fence=fence)
            self._told = (state, message)

    def _fail(self, reason: str) -> None:
        """Nothing is recorded any more, on whichever thread that was found out."""
        self._failure = reason

    def _tell_unfinished(self, recorder: Recorder, now: float) -> None:
        """What became of the bindings that a killed worker has left behind."""
        cycles = list(unfinished.left_open(self._run.pk))
        if not cycles:
            return
        pods = self._host.cluster.list("Pod").items
        for record in unfinished.bindings(self._run.pk, cycles, pods, now):
            recorder.binding_finished(record)

    def _schedule(self, scheduler: Scheduler | ObservingScheduler, keeper: LeaseKeeper) -> None:
        """Until the end, or until another configuration is wished for."""
        scheduler.run(
            lambda: self._ended(keeper) or self._wished_version > self._tried_version,
            lambda: self._follow_wish(scheduler, keeper.fence),
        )

    def _ended(self, keeper: LeaseKeeper) -> bool:
        return self._is_unwanted(keeper) or self._host.is_gone(self._run.cluster_id)

    def _is_unwanted(self, keeper: LeaseKeeper) -> bool:
        return (
            self._stop.is_set()
            or keeper.lost.is_set()
            or self._fenced.is_set()
            or bool(self._failure)
            or self._desired == _STOPPED
        )

    def _follow_wish(self, scheduler: Scheduler | ObservingScheduler, fence: leases.Fence) -> None:
        """Pause or resume as wished, and say so once."""
        running = self._desired == _RUNNING
        if running == scheduler.paused:
            (scheduler.resume if running else scheduler.pause)()
        state = SchedulerRun.State.RUNNING if running else SchedulerRun.State.PAUSED
        self._tell_state(state, self._host.trouble(), fence)

    @property
    def _observes(self) -> bool:
        return self._run.mode == SchedulerRun.Mode.OBSERVE

    # -- configurations --------------------------------------------------------------------------

    def _first(self, around: Surroundings, fence: leases.Fence) -> AnyCarriage:
        """The scheduler to begin with: of the configuration that is wished for or, where that one
        cannot be made, of the one that was used last."""
        run, sequence = self._run, self._run.last_sequence + 1
        wish = Wish(run.config_version, run.config)
        self._tried_version = wish.version
        try:
            return self._made(around, wish, sequence)
        except Exception as error:
            before = Wish(run.applied_config_version, run.applied_config)
            if not before.version or before.text == wish.text:
                raise
            self._refuse(wish, error, fence)
            return self._made(around, before, sequence)

    def _made(self, around: Surroundings, wish: Wish, sequence: int) -> AnyCarriage:
        return (ObservingCarriage if self._observes else Carriage)(around, wish, sequence)

    def _say_applied(self, wish: Wish, fence: leases.Fence) -> None:
        run = self._run
        if wish.version != self._tried_version:
            return  # it goes on with the one before
        if run.applied_config_version != wish.version or run.config_error:
            configuration.applied(run.pk, wish, fence=fence)

    def _next(self, around: Surroundings, current: AnyCarriage, keeper: LeaseKeeper) -> AnyCarriage:
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
            new = self._made(around, wish, current.scheduler.next_sequence)
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises is no reason to stop
            self._refuse(wish, error, keeper.fence)
            return current
        current.stop()
        if not self._all_recorded(around, keeper):
            return current
        return self._hand_over(around, current.wish, new, keeper.fence)

    def _hand_over(
        self, around: Surroundings, before: Wish, new: AnyCarriage, fence: leases.Fence
    ) -> AnyCarriage:
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
            back = self._made(around, before, new.scheduler.next_sequence)
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
        text = in_text_without_userinfo(text)
        logger.warning("run %s refuses configuration %s: %s", self._run.pk, wish.version, text)
        configuration.refused(self._run.pk, wish, text, fence=fence)


def run(run_id: int, *, worker: str, stop: threading.Event) -> bool:
    """Carry a run in this process; False where another process does, or must.

    Whatever goes wrong is written on the run for people to read.
    """
    found = SchedulerRun.objects.filter(pk=run_id).select_related("cluster").first()
    if found is None or found.desired_state == _STOPPED:
        return False
    host = _host_of(found)
    if host is None:
        return False
    interpreter.tune()
    loop = RunLoop(found, host, stop)
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
            text = in_text_without_userinfo(f"Configuration: {error}")
            _tell(run_id, SchedulerRun.State.FAILED, text, keeper)
            return True
        except (Unreachable, ApiError) as error:
            _tell_unreachable(run_id, error, keeper, stop)
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
        _say_farewell(run_id, keeper, host)
    return True


def _host_of(run: SchedulerRun) -> Host | None:
    """Where the run's cluster is; None: not in this process."""
    if run.cluster.kind == Cluster.Kind.KUBE:
        return HostedKube(run.cluster_id)
    return hosted.find(run.cluster_id) or hosted.beside(run.cluster)


def _tell_unreachable(
    run_id: int, error: Exception, keeper: LeaseKeeper, stop: threading.Event
) -> None:
    logger.warning("run %s: %s", run_id, error)
    if _is_final(error):
        _tell(run_id, SchedulerRun.State.FAILED, str(error), keeper)
        return
    _tell(run_id, SchedulerRun.State.PENDING, f"{error} It is tried again.", keeper)
    stop.wait(_BEFORE_NEXT_TRY)  # else it would be proposed again at once


def _is_final(error: Exception) -> bool:
    if isinstance(error, Unreachable):
        return error.final
    return isinstance(error, ApiError) and error.code in (401, 403)


def _say_farewell(run_id: int, keeper: LeaseKeeper, host: Host) -> None:
    wanted, state = SchedulerRun.objects.values_list("desired_state", "state").get(pk=run_id)
    if wanted == _STOPPED:
        _tell(run_id, SchedulerRun.State.STOPPED, "", keeper)
    elif state != SchedulerRun.State.FAILED:  # the sandbox failed, and said so on its runs
        text = host.farewell() or "The worker was stopped; the next one goes on."
        _tell(run_id, SchedulerRun.State.PENDING, text, keeper)


def _tell(run_id: int, state: str, message: str, keeper: LeaseKeeper) -> None:
    try:
        runs.set_state(run_id, state, message, fence=keeper.fence)
    except leases.FencedError:
        logger.warning("run %s is another worker's by now", run_id)
