"""The processes of a round, without threads: the worker with its parts, and the web server.

The parts are the product's own: sandbox, journal, kubelet, controller, leases, ``RunLoop`` with its
``Carriage`` and scheduler, permit inbox, ``BatchWriter``, ``permits.decide``. What stands in for
threads and sockets is here: each part is asked for its next step by the round, in an order that the
seed decides.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final

import pytest
from django.db import InterfaceError, OperationalError, connection

from dashboard import (
    carriage,
    commits,
    hosted,
    lease_keeper,
    leases,
    permits,
    runner,
    runs,
    sandbox_journal,
)
from dashboard.carriage import Carriage, Surroundings
from dashboard.lease_keeper import LeaseKeeper
from dashboard.leases import FencedError
from dashboard.metrics.carried import CarriedRun
from dashboard.models import Sandbox, SchedulerRun
from dashboard.permits_inbox import DatabasePermitInbox
from dashboard.recording import BatchWriter
from dashboard.runs import set_state
from dashboard.told import Batch, DecisionApplied, Record, Told
from scheduler_core.algorithm import SeededRandom
from scheduler_core.clock import VirtualClock
from scheduler_core.cluster import sandbox as sandbox_module
from scheduler_core.cluster.commit import GroupCommit
from scheduler_core.cluster.journal import Write
from scheduler_core.cluster.kubelet import SandboxKubelet
from scheduler_core.cluster.pod_group_status import PodGroupController
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.ports import ApiError, Observer
from scheduler_core.records import BindingRecord, CycleRecord, PermitDecision, WaitingPodRecord
from scheduler_core.scheduler import Scheduler
from tests.dashboard.factory import FakePublisher
from tests.faults.injection import Faults

__all__ = ["GONE_WRONG", "LEASE_SECONDS", "POLL_SECONDS", "Surrounding", "Worker", "surroundings"]


class JournalAway(Exception):
    """The first objects of a new sandbox could not be kept; its owner tries again."""


LEASE_SECONDS: Final = 4.0
RENEW_SECONDS: Final = 1.0
POLL_SECONDS: Final = 0.5
#: What ends a worker's loop without a crash: another one goes on.
GONE_WRONG: Final = (OperationalError, InterfaceError, FencedError, JournalAway)
#: Turns of the scheduler in one step: more than any round has work for.
MOST_TURNS: Final = 500


class InlineCommit(GroupCommit):
    """Keeps each request's writes before it returns, on the caller's thread."""

    def add(self, writes: Any) -> Any:
        done = super().add(writes)
        self._commit(self._take())
        return done

    @property
    def is_own_thread(self) -> bool:
        return False

    def _run(self) -> None:
        return  # the thread that the product would leave this to ends at once


class NamingJournal(sandbox_journal.DatabaseJournal):
    """The product's, whose commits with bindings are faults' aims of their own."""

    faults: Faults

    def append(self, writes: Sequence[Write]) -> None:
        binds = any(write.verb == "bind" for write in writes)
        with self.faults.within("bind" if binds else "journal"):
            super().append(writes)


class InlineInbox(DatabasePermitInbox):
    """Looks when the round says so."""

    def start(self) -> None:
        self.look(confirm=True)


class SteppedExecutor:
    """Bindings and status writes that run when the round says so; of one pod in order."""

    def __init__(self, rng: random.Random, faults: Faults) -> None:
        self._rng = rng
        self._faults = faults
        self._tasks: dict[str, list[Callable[[], None]]] = {}
        self._is_shut_down = False

    def submit(self, key: str, task: Callable[[], None]) -> None:
        if self._is_shut_down:
            task()
            return
        self._tasks.setdefault(key, []).append(task)

    submit_quick = submit

    def waiting(self) -> list[str]:
        """Keys with a task."""
        return list(self._tasks)

    def run_one(self, key: str = "") -> bool:
        """Run the next task of a key, or of one by chance; whether there was one."""
        if not self._tasks:
            return False
        key = key or self._rng.choice(list(self._tasks))
        tasks = self._tasks[key]
        task = tasks.pop(0)
        if not tasks:
            del self._tasks[key]
        task()
        return True

    def shutdown(self, wait: bool = True) -> None:
        self._is_shut_down = True
        if self._faults.dead:
            return
        while self.run_one():
            pass


class InlineRecorder(Observer):
    """The recorder without its thread: the same batches, tried again under the same name."""

    def __init__(self, run_id: int, fence: leases.Fence, around: Surrounding) -> None:
        self._writer = BatchWriter(run_id, fence)
        self._around = around
        self._queue: list[Told] = []
        self._pending: Batch | None = None
        self._name = f"r{around.rng.getrandbits(48):x}"
        self._batches = 0
        self._told = self._kept = 0
        self._when_kept: list[tuple[int, Callable[[], None]]] = []
        self.fenced = False

    def cycle_finished(self, record: CycleRecord) -> None:
        self._tell(record)

    def binding_finished(self, record: BindingRecord) -> None:
        self._tell(record)

    def pod_waiting(self, record: WaitingPodRecord) -> None:
        self._tell(record)

    def pod_resolved(self, record: WaitingPodRecord) -> None:
        self._tell(record)

    def decision_applied(self, decision: PermitDecision, applied: bool, message: str) -> None:
        self._tell(DecisionApplied(decision, applied, message, self._around.clock.now()))

    def detached(self, error: Exception) -> None:
        raise AssertionError("the recorder raised on the scheduler's thread") from error

    def _tell(self, record: Record) -> None:
        self._queue.append(Told(record, int(self._around.clock.now())))
        self._told += 1

    def when_kept(self, then: Callable[[], None]) -> None:
        self._when_kept.append((self._told, then))
        self._tell_kept()

    def _tell_kept(self) -> None:
        while self._when_kept and self._when_kept[0][0] <= self._kept:
            self._when_kept.pop(0)[1]()

    @property
    def queued(self) -> int:
        return len(self._queue) + (len(self._pending.told) if self._pending else 0)

    def start(self) -> None:
        return

    def pump(self, most: int = 1_000) -> bool:
        """Write one batch, if there is something to write; whether all is written."""
        if self.fenced or not self.queued:
            return not self.fenced
        if self._pending is None:
            self._pending = self._next(most)
        try:
            with self._around.faults.within("record"):
                self._writer.write(self._pending)
        except FencedError:
            self.fenced = True
            return False
        except (OperationalError, InterfaceError):
            connection.close()
            return False
        self._kept += len(self._pending.told)
        self._pending = None
        self._tell_kept()
        return not self._queue

    def _next(self, most: int) -> Batch:
        told, self._queue = self._queue[:most], self._queue[most:]
        self._batches += 1
        now = self._around.clock.now()
        return Batch(
            name=f"{self._name}:{self._batches}",
            told=told,
            second=int(now),
            queued=len(self._queue),
            clock_at=now,
            wall_at=now,
            matrices=[],
        )

    def flush(self, timeout: float = 10.0) -> bool:
        """As long as the database can be reached; else the worker gives up."""
        while not self.pump():
            if self.fenced:
                return False
            if self._around.faults.away:
                raise OperationalError("the database stays away")
        return True

    def close(self, timeout: float = 10.0) -> bool:
        return any(self.pump() for _ in range(3))


class Surrounding:
    """What outlives the processes of a round: time, chance, faults, the rows' ids."""

    def __init__(
        self, clock: VirtualClock, rng: random.Random, faults: Faults, cluster_id: int, run_id: int
    ) -> None:
        self.clock, self.rng, self.faults = clock, rng, faults
        self.cluster_id, self.run_id = cluster_id, run_id
        self.publisher = FakePublisher()
        self.doorbell_rings = True
        #: Time goes on while a thread waits.
        self.waits: Callable[[float], object] = clock.advance
        #: The bell has rung since the inbox last looked.
        self.rang = False

    def ring(self, run_id: int, url: str | None = None) -> None:
        """Redis hands the message on, or is away and loses it."""
        if self.doorbell_rings:
            self.rang = True
        else:
            self.faults.note("doorbell lost")


class Worker:
    """A loop worker: it owns the sandbox and carries the run on it."""

    def __init__(self, around: Surrounding) -> None:
        self.around = around
        self.stop_event = threading.Event()
        self._keepers: list[LeaseKeeper] = []
        self._next_renewal = 0.0
        self._next_look = 0.0

    # --- life -------------------------------------------------------------------------------

    def start(self) -> bool:
        """Take the leases and begin. False: somebody else holds one.

        Raises:
            OperationalError, FencedError: it ends before it has begun.
        """
        around, faults = self.around, self.around.faults
        with faults.within("lease"):
            sandbox = LeaseKeeper.acquire(leases.sandbox_lease(around.cluster_id), "test")
            if sandbox is None:
                return False
            self._keepers.append(sandbox)
        snapshot, writes = sandbox_journal.load(around.cluster_id)
        journal = NamingJournal(around.cluster_id, sandbox.fence, lambda: None, self._pause)
        journal.faults = faults
        with faults.within("journal"):
            # Without Events, which nobody judges: three of five commits were theirs.
            try:
                self.cluster = SandboxCluster.restore(
                    snapshot, writes, around.clock, journal,
                    rng=random.Random(around.rng.getrandbits(64)), pace=0.0, events_kept=0,
                )  # fmt: skip
            except ApiError as error:
                raise JournalAway from error
        self.controllers = [SandboxKubelet(self.cluster), PodGroupController(self.cluster)]
        entry = hosted.HostedSandbox(self.cluster)
        hosted.publish(around.cluster_id, entry)
        run = SchedulerRun.objects.select_related("cluster").get(pk=around.run_id)
        self.loop = runner.RunLoop(run, entry, self.stop_event)
        with faults.within("lease"):
            keeper = LeaseKeeper.acquire(
                leases.run_lease(around.run_id), "test", self.loop.read_wishes
            )
            if keeper is None:
                return False
            self._keepers.append(keeper)
        self.keeper = keeper
        run.refresh_from_db()
        with faults.within("start"):
            set_state(run.pk, SchedulerRun.State.STARTING, fence=keeper.fence)
        self._begin(run)
        self._next_renewal = around.clock.now() + RENEW_SECONDS
        return True

    def _begin(self, run: SchedulerRun) -> None:
        """As ``RunLoop.carry`` begins."""
        around, faults = self.around, self.around.faults
        self.recorder = InlineRecorder(run.pk, self.keeper.fence, around)
        carried = CarriedRun(run.pk, run.name, run.cluster.name, self.recorder)  # type: ignore[arg-type]
        tie_breaker = SeededRandom(run.seed)
        surroundings = Surroundings(
            run.pk, self.loop._host, self.recorder, carried, around.clock, tie_breaker, run.seed
        )  # type: ignore[arg-type]
        self._surroundings = surroundings
        self.carriage: Carriage = self.loop._first(surroundings, self.keeper.fence)
        self.recorder.start()
        self.loop._tell_unfinished(self.recorder, around.clock.now())  # type: ignore[arg-type]
        with faults.within("inbox"):
            self.carriage.start()
        with faults.within("start"):
            self.loop._say_applied(self.carriage.wish, self.keeper.fence)

    def end(self) -> None:
        """It ends as ``runner.run`` does whatever the reason: what is told is written if it can be,
        leases are given back if they can be."""
        carried = getattr(self, "carriage", None)
        if carried is not None:
            carried.stop()
        if hasattr(self, "recorder"):
            self.recorder.close()
        for controller in getattr(self, "controllers", ()):
            controller.stop()
        if hasattr(self, "cluster"):
            self.cluster.close()
        hosted.withdraw(self.around.cluster_id)
        for keeper in reversed(self._keepers):
            fence = keeper.fence
            try:
                with self.around.faults.within("lease"):
                    leases.release(fence.name, fence.holder, fence.epoch)
            except (OperationalError, InterfaceError):
                connection.close()
            finally:
                lease_keeper._forget(fence.name)

    def vanish(self) -> None:
        """It was killed, or stands still for very long: others see no more of it."""
        hosted.withdraw(self.around.cluster_id)
        lease_keeper._held.clear()

    # --- steps ------------------------------------------------------------------------------

    @property
    def scheduler(self) -> Scheduler:
        return self.carriage.scheduler

    @property
    def executor(self) -> SteppedExecutor:
        return self.scheduler._executor  # type: ignore[return-value]

    @property
    def inbox(self) -> DatabasePermitInbox:
        return self.carriage._inbox

    @property
    def is_lost(self) -> bool:
        ended = self.loop._ended(self.keeper) or any(k.lost.is_set() for k in self._keepers)
        return ended or self.cluster.given_up

    def _pause(self, seconds: float) -> bool:
        """As the sandbox's host: the journal's thread waits, the leases' threads go on."""
        self.around.waits(seconds)
        self.renew()
        return any(keeper.lost.is_set() for keeper in self._keepers)

    def renew(self) -> None:
        now = self.around.clock.now()
        if now < self._next_renewal:
            return
        self._next_renewal = now + RENEW_SECONDS
        with self.around.faults.within("lease"):
            for keeper in self._keepers:
                keeper._renew()

    def look(self) -> None:
        """The inbox's thread: when the bell rings, and twice a second."""
        now, around = self.around.clock.now(), self.around
        if not around.rang and now < self._next_look:
            return
        around.rang = False
        self._next_look = now + POLL_SECONDS
        with around.faults.within("inbox"):
            self.inbox._look_if_possible()

    def turn(self) -> bool:
        """One turn of the run's loop; whether there was anything to do."""
        with self.around.faults.within("start"):
            self.loop._follow_wish(self.scheduler, self.keeper.fence)
        if self.loop._wished_version > self.loop._tried_version:
            with self.around.faults.within("start"):
                self.carriage = self.loop._next(self._surroundings, self.carriage, self.keeper)
        return self.scheduler.run_once()

    def tick_controllers(self) -> None:
        now = self.around.clock.now()
        with self.around.faults.within("journal"):
            for controller in self.controllers:
                deadline = controller.next_deadline()
                if deadline is not None and deadline <= now:
                    controller.tick(now)

    def run_binding(self, key: str = "") -> bool:
        with self.around.faults.within("journal"):
            return self.executor.run_one(key)

    def save_snapshot(self) -> None:
        with self.around.faults.within("snapshot"):
            fence = self._keepers[0].fence
            sandbox_journal.save_snapshot(self.around.cluster_id, self.cluster.snapshot(), fence)

    def turns(self) -> None:
        """What the scheduler owes at once; bindings and rows take their time."""
        for _ in range(MOST_TURNS):
            self.look()
            if not self.turn() or self.is_lost:
                return
        raise AssertionError("the scheduler does not come to rest")

    def settle(self) -> None:
        """Everything that is due now, until nothing is."""
        for _ in range(MOST_TURNS):
            self.look()
            self.tick_controllers()
            worked = self.turn()
            worked |= self.run_binding()
            if not worked:
                self.recorder.pump()  # in between it is a step of its own
            told = self.recorder.queued > 0 and not self.around.faults.away
            # What was kept lets bindings begin.
            due = worked or told or self.around.rang or self.scheduler.has_messages
            if self.is_lost or not due:
                return
        raise AssertionError("the scheduler does not come to rest")


@contextmanager
def quiet() -> Iterator[None]:
    """What fails on purpose would fill the log."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@contextmanager
def surroundings(around: Surrounding, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Time, bell, pages and threads of the product are those of the round."""
    time = SimpleNamespace(time=around.clock.now, monotonic=around.clock.now)
    executor = lambda _threads: SteppedExecutor(around.rng, around.faults)  # noqa: E731
    with patch.context() as patched, quiet():
        for module in (commits, lease_keeper):
            patched.setattr(module, "time", time)
        patched.setattr(carriage, "KeyedThreadPool", executor)
        patched.setattr(carriage, "DatabasePermitInbox", InlineInbox)
        patched.setattr(sandbox_module, "GroupCommit", InlineCommit)
        patched.setattr(permits, "ring_doorbell", around.ring)
        for module in (permits, runs):
            patched.setattr(module, "get_publisher", lambda: around.publisher)
        yield


def make_rows(name: str, seed: int, config: str) -> tuple[int, int]:
    """A sandbox and a run on it: (cluster, run)."""
    from dashboard.models import Cluster

    cluster = Cluster.objects.create(name=name)
    Sandbox.objects.create(cluster=cluster)
    run = SchedulerRun.objects.create(cluster=cluster, name=name, seed=seed, config=config)
    return cluster.pk, run.pk
