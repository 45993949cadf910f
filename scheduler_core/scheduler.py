"""Scheduler: owns Cache, SchedulingQueue, Snapshot and waiting pods, and runs the loop.

One thread calls ``run_once``; watches, binding threads and people's decisions reach it through the
inbox, so that nothing in here needs a lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from random import Random
from typing import TypeVar

from scheduler_core.after_permit import AfterPermit
from scheduler_core.algorithm import SchedulingAlgorithm, SeededRandom, TieBreaker
from scheduler_core.api_writer import ApiWriter
from scheduler_core.backend.cache import Cache
from scheduler_core.backend.informers import Informers
from scheduler_core.backend.queue.scheduling_queue import SchedulingQueue
from scheduler_core.backend.snapshot import Snapshot
from scheduler_core.background_work import BackgroundDone, BackgroundWork
from scheduler_core.binding_cycle import BindingCycle, BindingDone
from scheduler_core.clock import RealClock
from scheduler_core.config import SchedulerConfiguration
from scheduler_core.eventhandlers import EventHandlers
from scheduler_core.executor import InlineExecutor
from scheduler_core.extender import Extenders
from scheduler_core.failure_handler import FailureHandler
from scheduler_core.framework.runtime.framework import Services
from scheduler_core.framework.runtime.waiting_pods import WaitingPodsMap
from scheduler_core.gang_deadlock import GangDeadlocks
from scheduler_core.gangs_bound_in_part import GangsBoundInPart
from scheduler_core.held_bindings import Backoff
from scheduler_core.inbox import Inbox
from scheduler_core.kept_first import Kept
from scheduler_core.listing import Listing
from scheduler_core.metrics import SchedulerMetrics
from scheduler_core.observers import ObserverSet
from scheduler_core.pod_cycle import PodCycle
from scheduler_core.ports import (
    Clock,
    Cluster,
    Executor,
    Ledger,
    Observer,
    PermitInbox,
    WatchEvent,
)
from scheduler_core.profile import Profiles
from scheduler_core.questions import Question
from scheduler_core.records import (
    QueueDepths,
    Rest,
    WaitingPodRecord,
)
from scheduler_core.restoring_waits import RestoringWaits
from scheduler_core.schedule_one import Parts, SchedulingCycle
from scheduler_core.schedule_one_podgroup import pod_group_cycle
from scheduler_core.scheduler_options import SchedulerOptions
from scheduler_core.scheduling_attempts import SchedulingAttempts
from scheduler_core.watches import Watches

#: Messages taken from the inbox before the next pod gets its turn.
MAX_MESSAGES_PER_TURN = 2_000
#: Longest sleep of an idle loop, in seconds.
MAX_IDLE = 0.5

R = TypeVar("R")
Message = WatchEvent | BindingDone | Kept | BackgroundDone | Question


class Scheduler:
    """kube-scheduler's loop over the framework.

    Args:
        config: profiles with their plugins, extenders, backoffs.
        cluster: the API to watch and to write to.
        observers: who is told; see ``ports.Observer``.
        permit_inbox: where people's decisions come from.
        ledger: keeps what observers are told; default: nobody does.
        metrics: counts what is done; default: nobody counts.
        tie_breaker: which of several best nodes is taken; default: random.
        executor: where binding cycles run; default: inline.

    Raises:
        ProfileError: the configuration names plugins that do not exist or refuse their arguments,
            or certificates of an extender that cannot be used.
    """

    def __init__(
        self,
        config: SchedulerConfiguration,
        cluster: Cluster,
        *,
        clock: Clock | None = None,
        executor: Executor | None = None,
        observers: Iterable[Observer] = (),
        permit_inbox: PermitInbox | None = None,
        ledger: Ledger | None = None,
        metrics: SchedulerMetrics | None = None,
        tie_breaker: TieBreaker | None = None,
        options: SchedulerOptions | None = None,
    ) -> None:
        self._clock = clock or RealClock()
        self._options = options or SchedulerOptions()
        self._cluster = cluster
        self._inbox: Inbox[Message] = Inbox()
        self._observers = ObserverSet(observers)
        self._metrics = metrics
        if metrics is not None:
            self._observers.attach(metrics)
        self._permit_inbox = permit_inbox
        self._watches = Watches(cluster, self._inbox.put)
        self._paused = False
        self._idle = False
        executor = executor or InlineExecutor()
        self._executor = executor
        self._background = BackgroundWork(executor, self._inbox.put, metrics)
        # State, all of it owned by the thread that calls run_once().
        self.cache = Cache()
        self.snapshot = Snapshot()
        self.informers = Informers()
        self.waiting_pods = WaitingPodsMap()
        self._writer = ApiWriter(cluster, executor)
        self._extenders = Extenders(config.extenders)
        services = self._services = Services(
            snapshot=self.snapshot,
            informers=self.informers,
            waiting_pods=self.waiting_pods,
            cluster=cluster,
            clock=self._clock,
            activate=lambda pods: self.queue.activate(pods.values()),
            emit_event=self._writer.emit_event,
            background=self._background.run,
            preemption_extenders=self._extenders.preemption,
            random=Random(self._options.seed),  # noqa: S311 - not for secrets
        )
        self.profiles = Profiles(config, config.registry, services)
        self.queue = SchedulingQueue(
            self.profiles.queue_sort.less,
            self._clock,
            pre_enqueue=self.profiles.pre_enqueue_plugins(),
            hints={
                name: {**hints, **self._extenders.queueing_hints()}
                for name, hints in self.profiles.queueing_hints().items()
            },
            initial_backoff=config.pod_initial_backoff_seconds,
            max_backoff=config.pod_max_backoff_seconds,
            pods=self.informers.informer("Pod"),
            sort_key=self.profiles.queue_sort.sort_key,
            on_gates_asked=metrics.gates_asked if metrics is not None else None,
            on_hint_asked=metrics.hint_asked if metrics is not None else None,
        )
        services.nominator = self.queue.nominator
        failures = FailureHandler(self.queue, self.informers.informer("Pod"), self._writer)
        parts = Parts(
            self.cache,
            self.snapshot,
            self.queue,
            self.informers,
            self.profiles,
            self._writer,
            failures,
            self._clock,
        )
        algorithm = SchedulingAlgorithm(
            tie_breaker or SeededRandom(),
            score_single_node=self._options.score_single_node,
            extenders=self._extenders,
            reuse=self._options.reuse,
        )
        self._binding = BindingCycle(executor, self._inbox.put, services.pre_binds, self._extenders)
        self._after_permit = AfterPermit(
            parts,
            self._binding,
            self.waiting_pods,
            self._observers,
            ledger,
            self._inbox.put,
            metrics,
            Backoff(config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds),
            undo=lambda cycle, status: self._scheduling.undo(cycle, status),
        )
        self.waiting_room = self._after_permit.waiting_room
        self._kept_first = self._after_permit.kept_first
        self._held = self._after_permit.held
        self._deadlocks = GangDeadlocks(
            self.waiting_room, self.cache, lambda: self.snapshot.update(self.cache)
        )
        self._scheduling = SchedulingCycle(
            parts, algorithm, self._after_permit.start_binding, self.waiting_room.park
        )
        self._attempts = SchedulingAttempts(
            parts,
            self._scheduling,
            pod_group_cycle(
                parts,
                algorithm,
                self._scheduling,
                cluster,
                executor,
                self.waiting_room.carried,
                metrics.group_attempt_ended if metrics is not None else None,
            ),
            self.waiting_room,
            self._observers,
            metrics,
            self.depths,
            retry=self._options.retry,
            sequence=self._options.first_sequence,
        )
        self._restoring = RestoringWaits(
            parts, self._scheduling, self._attempts, self._after_permit
        )
        self._gangs_bound_in_part = GangsBoundInPart(
            parts, self.waiting_room.directory, self._attempts
        )
        self._handlers = EventHandlers(
            self.cache,
            self.queue,
            self.informers,
            tuple(self.profiles),
            on_waiting_pod_deleted=self._after_permit.waiting_pod_deleted,
            on_pod_bound=self._after_permit.pod_bound,
            on_node_deleted=self._after_permit.node_deleted,
            on_pod_group_changed=self.waiting_room.group_changed,
            on_handled=metrics.event_handled if metrics is not None else None,
        )
        self._listing = Listing(parts, self._observers, self._options.listing_interval)

    # -- life ------------------------------------------------------------------------------------

    def start(self, waiting: Sequence[WaitingPodRecord] = (), resting: Sequence[Rest] = ()) -> None:
        """Begin to watch. ``waiting``: waits that were open when the last scheduler of this run
        ended; each pod is put back on its node, with its old deadline, before others are tried.
        ``resting``: what had been turned down by then, and rests on."""
        if self._metrics is not None:
            self._metrics.begin(self.profiles, self.queue)
        self._restoring.begin(waiting, resting)
        self._watches.start(self.watched_kinds())

    def watched_kinds(self) -> tuple[str, ...]:
        """Nodes first: pods that are bound want to find theirs."""
        kinds = ["Namespace", "Node", "PodGroup", "PriorityClass"]
        kinds += [k for k in self.informers.kinds() if k not in (*kinds, "Pod")]
        return (*kinds, "Pod")

    def stop(self) -> None:
        """End watches and wait for bindings under way. Waiting pods stay as they are: they are
        taken up by the next scheduler of this run."""
        self._watches.stop()
        self._services.is_stopping = True
        self._after_permit.begin_no_more()
        self._executor.shutdown(wait=True)
        self._binding.wait()
        self._extenders.close()
        while self._drain_inbox() or self.waiting_room.settle():
            pass  # what ends now may end more: a gang's last member takes the others along
        self._after_permit.give_up()

    def pause(self) -> None:
        """Take no more pods from the queue; events, deadlines and decisions go on."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False

    @property
    def paused(self) -> bool:
        return self._paused

    def wake(self) -> None:
        """From any thread: look at the permit inbox now."""
        self._inbox.wake()

    def ask(self, work: Callable[[], R]) -> Future[R]:
        """From any thread: run ``work`` on the scheduler thread, between two pods. It may look at
        everything, and must be quick."""
        answer: Future[R] = Future()
        self._inbox.put(Question(work, answer))
        return answer

    def record_advice(self, cycle: PodCycle) -> None:
        """On the scheduler thread: tell of a decision that was made for another scheduler."""
        self._attempts.record_advice(cycle)

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def cluster(self) -> Cluster:
        return self._cluster

    @property
    def is_synced(self) -> bool:
        """Every kind has been listed once; may be read from any thread, as a hint."""
        return self._watches.are_synced

    @property
    def is_busy(self) -> bool:
        """Messages, pods or bindings are under way; may be read from any thread, as a hint."""
        return self.has_messages or not self._idle

    @property
    def has_messages(self) -> bool:
        """Something that happened has not been taken in yet; may be read from any thread."""
        return len(self._inbox) > 0

    @property
    def next_sequence(self) -> int:
        return self._attempts.sequence

    def run(self, should_stop: Callable[[], bool], tick: Callable[[], None] = lambda: None) -> None:
        """Loop until ``should_stop()``; ``tick`` runs once per turn (lease, desired state)."""
        while not should_stop():
            tick()
            if not self.run_once():
                self._inbox.wait(self.idle_seconds())

    def idle_seconds(self) -> float:
        """How long nothing is due."""
        deadlines = (
            self.queue.next_deadline(),
            self.waiting_room.next_deadline(),
            self._held.next_deadline(),
            self._listing.next_deadline(),
        )
        due = min((d for d in deadlines if d is not None), default=float("inf"))
        return min(MAX_IDLE, max(0.0, due - self._clock.now()))

    # -- the loop --------------------------------------------------------------------------------

    def run_once(self) -> bool:
        """One turn; whether there was anything to do.

        1. Take what happened from the inbox. 2. Apply people's decisions, then deadlines; release
        a gang that holds up another one and is held up by it; try bindings again. 3. Move
        pods whose backoff has ended. 4. Schedule one pod. 5. Act on waits that ended.
        """
        worked = self._drain_inbox()
        now = self._clock.now()
        heard = self._heard_until(now)
        worked |= self._apply_decisions()
        worked |= self.waiting_room.expire(now, heard)
        worked |= self._held.turn(now)
        self.queue.activate(self._restoring.rests.over(now).values())
        worked |= self._deadlocks.look(now)
        worked |= self.waiting_room.settle()
        self.queue.flush()
        if self._watches.all_listed():  # before that nothing is scheduled
            worked |= self._restoring.restore_one() or (not self._paused and self._schedule_one())
        worked |= self.waiting_room.settle()
        self._kept_first.ask()
        self._listing.tell_if_due(self.depths)
        if self._metrics is not None:
            self._metrics.look(self.queue, self.cache, len(self.waiting_pods), self._paused)
        self._idle = not worked and not self._has_work()
        return worked

    def _schedule_one(self) -> bool:
        return self._gangs_bound_in_part.schedule_one() or self._attempts.schedule_next()

    def handle(self, message: Message) -> None:
        """Take one message into the state."""
        if isinstance(message, BindingDone):
            self._after_permit.finish_binding(message)
            return
        if isinstance(message, Kept):
            self._after_permit.begin_kept(message)
            return
        if isinstance(message, BackgroundDone):
            self._background.finish(message)
            return
        if isinstance(message, Question):
            message.settle()
            return
        if message.type == "SYNCED":
            self._watches.listed(message.kind)
            return
        self._handlers.handle(message)

    def depths(self) -> QueueDepths:
        """Pods in each place."""
        return self.queue.depths(len(self.waiting_pods))

    def _has_work(self) -> bool:
        depths = self.queue.depths()
        return (
            depths.active > 0
            or self._background.under_way > 0
            or self.cache.assumed_count > len(self.waiting_pods) + len(self._held)
        )

    def _drain_inbox(self) -> bool:
        for count in range(MAX_MESSAGES_PER_TURN):
            message = self._inbox.take()
            if message is None:
                return count > 0
            self.handle(message)
        return True

    def _apply_decisions(self) -> bool:
        if self._permit_inbox is None:
            return False
        decisions = self._permit_inbox.poll()
        for decision in decisions:
            self.waiting_room.decide(decision)
        return bool(decisions)

    def _heard_until(self, now: float) -> float:
        """Up to when people have been heard, once their words are taken from the inbox."""
        if self._permit_inbox is None or not self.waiting_room.is_due(now):
            return now
        return self._permit_inbox.heard_until(now)
