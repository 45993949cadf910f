"""ObservingScheduler: looks on while another scheduler places pods, and says what we would do.

It shares Cache, Snapshot, event handlers, profiles and algorithm with ``Scheduler``, and has
nothing that writes: no assuming, no binding, no conditions, no events. Its cluster refuses writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Final, TypeVar

from scheduler_core.algorithm import ScheduleResult, SchedulingAlgorithm, SmallestName, TieBreaker
from scheduler_core.api import Pod
from scheduler_core.backend.cache import Cache
from scheduler_core.backend.informers import Informers
from scheduler_core.backend.queue.scheduling_queue import SchedulingQueue
from scheduler_core.backend.snapshot import Snapshot
from scheduler_core.clock import RealClock
from scheduler_core.comparing import Comparison, compare, without_them
from scheduler_core.config import SchedulerConfiguration
from scheduler_core.eventhandlers import EventHandlers
from scheduler_core.extender import Extenders
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.inbox import Inbox
from scheduler_core.observation_teller import Teller, changed_mind, is_daemon
from scheduler_core.observations import Verdict
from scheduler_core.observed_pods import WaitingPod, WaitingPods
from scheduler_core.observers import ObserverSet
from scheduler_core.observing_services import services_that_write_nothing
from scheduler_core.pod_cycle import PodCycle
from scheduler_core.ports import Clock, Cluster, Observer, WatchEvent
from scheduler_core.profile import Profiles
from scheduler_core.questions import Question
from scheduler_core.read_only import ReadOnlyCluster
from scheduler_core.records import PodRef
from scheduler_core.watches import Watches

__all__ = ["ObservingScheduler", "OpenObservation"]

#: Messages taken from the inbox before a pod that waits gets looked at.
MAX_MESSAGES_PER_TURN: Final = 2_000
#: Longest sleep of an idle loop, in seconds.
MAX_IDLE: Final = 0.5

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class OpenObservation:
    """A pod that waited when the last observer of this run ended."""

    pod: PodRef
    scheduler: str
    seen_at: float


class ObservingScheduler:
    """Evaluates every pod that another scheduler is placing, and tells observers
    (``Observer.pod_observed``). Of ``Scheduler`` it has what a run's owner calls.

    What counts is the state just before the pod is seen on its node: every event before that one is
    taken in, the pod itself holds nothing yet. Pods that wait are looked at when they are first
    seen, as soon as no events wait, and again every half a minute.

    A pod is evaluated by the profile that its ``spec.schedulerName`` names, or else by the
    configuration's first one. All nodes are looked at, whatever percentageOfNodesToScore says.
    The configuration's extenders are asked (filter, prioritize), over the network.

    Args:
        cluster: only reads are passed on to it.
        tie_breaker: which of several best nodes we call ours; default: the smallest name.
        first_sequence: number of the first Observation.

    Raises:
        ProfileError: as for ``Scheduler``.
    """

    def __init__(
        self,
        config: SchedulerConfiguration,
        cluster: Cluster,
        *,
        clock: Clock | None = None,
        observers: Iterable[Observer] = (),
        tie_breaker: TieBreaker | None = None,
        first_sequence: int = 1,
    ) -> None:
        self._clock = clock or RealClock()
        self._cluster = ReadOnlyCluster(cluster)
        self._inbox: Inbox[WatchEvent | Question] = Inbox()
        self._teller = Teller(ObserverSet(observers), self._clock, self._profile_of, first_sequence)
        self._watches = Watches(self._cluster, self._inbox.put)
        self._has_begun = self._paused = False
        self._open: list[OpenObservation] = []
        self._waiting = WaitingPods()
        # State, all of it owned by the thread that calls run_once().
        self.cache = Cache()
        self.snapshot = Snapshot()
        self.informers = Informers()
        self._extenders = Extenders(config.extenders)
        services = services_that_write_nothing(
            self.snapshot,
            self.informers,
            self._cluster,
            self._clock,
            self._extenders.preemption,
        )
        self.profiles = Profiles(config, config.registry, services)
        self._first_profile = config.profiles[0].scheduler_name
        # Nobody is ever queued; what preemption has promised whom is kept beside the queue.
        queue = SchedulingQueue(
            self.profiles.queue_sort.less, self._clock, pods=self.informers.informer("Pod")
        )
        self._nominator = services.nominator = queue.nominator
        self._handlers = EventHandlers(self.cache, queue, self.informers, ())
        self._algorithm = SchedulingAlgorithm(
            tie_breaker or SmallestName(),
            score_single_node=True,
            every_node=True,
            extenders=self._extenders,
            reuse=True,
        )

    # -- life ------------------------------------------------------------------------------------

    def start(self, waiting: Iterable[OpenObservation] = ()) -> None:
        """Begin to watch. ``waiting``: pods that waited when the last observer of this run ended;
        what became of those that do not wait any more is told."""
        self._open = list(waiting)
        self._watches.start(self.watched_kinds())

    def watched_kinds(self) -> tuple[str, ...]:
        """Nodes before pods: pods that are bound want to find theirs."""
        kinds = ["Namespace", "Node", "PriorityClass"]
        kinds += [kind for kind in self.informers.kinds() if kind not in (*kinds, "Pod")]
        return (*kinds, "Pod")

    def stop(self) -> None:
        """End the watches. May be called twice."""
        self._watches.stop()
        self._extenders.close()

    def pause(self) -> None:
        """Decide nothing; what happens is taken in all the same."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False

    @property
    def paused(self) -> bool:
        return self._paused

    def wake(self) -> None:
        """From any thread: have the loop look around now."""
        self._inbox.wake()

    def ask(self, work: Callable[[], R]) -> Future[R]:
        """From any thread: run ``work`` on the observer's thread. It must be quick."""
        answer: Future[R] = Future()
        self._inbox.put(Question(work, answer))
        return answer

    def record_advice(self, cycle: PodCycle) -> None:
        """As ``Scheduler.record_advice``: also who only observes may be asked as an extender."""
        self._teller.advice(cycle)

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def cluster(self) -> Cluster:
        """Refuses writes."""
        return self._cluster

    @property
    def is_synced(self) -> bool:
        """Every kind has been listed once; may be read from any thread, as a hint."""
        return self._watches.are_synced

    @property
    def is_busy(self) -> bool:
        """Events or pods wait to be looked at; may be read from any thread, as a hint."""
        return len(self._inbox) > 0 or self._waiting.has_new

    @property
    def next_sequence(self) -> int:
        return self._teller.sequence

    def run(self, should_stop: Callable[[], bool], tick: Callable[[], None] = lambda: None) -> None:
        """Loop until ``should_stop()``; ``tick`` runs once per turn."""
        while not should_stop():
            tick()
            if not self.run_once():
                self._inbox.wait(self.idle_seconds())

    def idle_seconds(self) -> float:
        """How long nothing is due."""
        due = self._waiting.next_due()
        if self._paused or due is None:
            return MAX_IDLE
        return min(MAX_IDLE, max(0.0, due - self._clock.now()))

    # -- the loop --------------------------------------------------------------------------------

    def run_once(self) -> bool:
        """One turn; whether there was anything to do. 1. Take in what happened, deciding on each
        pod just before it is seen on its node. 2. Look at one pod that waits."""
        worked = self._drain_inbox()
        if not self.is_synced:
            return worked
        if not self._has_begun:
            self._begin()
        return self._look_at_one() or worked

    def handle(self, message: WatchEvent | Question) -> None:
        """Take one message into the state."""
        if isinstance(message, Question):
            message.settle()
        elif message.type == "SYNCED":
            self._watches.listed(message.kind)
        elif message.kind == "Pod":
            self._pod_event(message)
        else:
            self._handlers.handle(message)

    def _drain_inbox(self) -> bool:
        for count in range(MAX_MESSAGES_PER_TURN):
            message = self._inbox.take()
            if message is None:
                return count > 0
            self.handle(message)
        return True

    # -- pods ------------------------------------------------------------------------------------

    def _pod_event(self, event: WatchEvent) -> None:
        key, uid, node = _who(event)
        waiting = self._waiting.get(key)
        if waiting is not None and event.type != "DELETED" and node and uid == waiting.pod.uid:
            self._placed(waiting, node)
        before: Pod | None = self.informers.informer("Pod").get(key)
        self._handlers.handle(event)
        after: Pod | None = self.informers.informer("Pod").get(key)
        if after is not before:
            self._changed(before, after)

    def _changed(self, before: Pod | None, after: Pod | None) -> None:
        """A pod came, changed or went; the state has it already."""
        known = before is not None and after is not None and before.uid == after.uid
        if before is not None and not known:
            self._left(before)
        if after is None:
            return
        if after.is_assigned:
            was_here = known and before is not None and (before.is_assigned or not is_daemon(after))
            if self._has_begun and not was_here:
                self._teller.left_out(after)
            return
        self._nominator.delete(after)
        self._nominator.add(after)
        if not is_daemon(after):
            self._waiting.see(after, self._clock.now())

    def _left(self, pod: Pod) -> None:
        self._nominator.delete(pod)
        waiting = self._waiting.get(pod.key)
        if waiting is None or waiting.pod.uid != pod.uid:
            return
        self._waiting.forget(pod.key)
        told = waiting.told
        ours = told.ours if told is not None else ""
        would = f" We would have chosen {ours}." if ours else ""
        why = f"It went before anybody placed it.{would}"
        self._teller.waiting(waiting, Comparison(Verdict.GONE, ours, why=why))

    def _placed(self, waiting: WaitingPod, node: str) -> None:
        """Another scheduler's decision is seen: make ours, in the state before it."""
        pod = waiting.pod
        self._waiting.forget(pod.key)
        self._nominator.delete(pod)
        if self._paused or not self._has_begun:
            what = "the run was paused" if self._paused else "the cluster was being listed"
            why = f"It was placed on {node} while {what}."
            self._teller.waiting(waiting, Comparison(Verdict.MISSED, why=why), node)
            return
        began = perf_counter()
        result = self._decide(pod)
        found = compare(result, node, pod.nominated_node_name)
        found = replace(found, why=found.why + changed_mind(found, waiting, node))
        self._teller.waiting(waiting, found, node, result, perf_counter() - began)

    def _look_at_one(self) -> bool:
        """At a pod that is new, or at the one that was not looked at for longest."""
        if self._paused or len(self._inbox):
            return False
        waiting = self._waiting.take_due(self._clock.now())
        if waiting is None:
            return False
        self._look(waiting)
        return True

    def _look(self, waiting: WaitingPod) -> None:
        pod, result, began = waiting.pod, None, perf_counter()
        if pod.scheduling_gates:
            why = f"Nobody may place it yet: scheduling gates {', '.join(pod.scheduling_gates)}."
            found = Comparison(Verdict.PENDING, why=why)
        else:
            result = self._decide(pod)
            found = without_them(result, pod.nominated_node_name)
        if not waiting.was_looked_at and not pod.scheduling_gates:
            waiting.was_looked_at, waiting.first = True, found.ours
        told = waiting.told
        if told is None or (told.ours, told.why) != (found.ours, found.why):
            self._teller.waiting(waiting, found, "", result, perf_counter() - began)

    def _decide(self, pod: Pod) -> ScheduleResult:
        self.snapshot.update(self.cache)
        framework = self.profiles[self._profile_of(pod.scheduler_name)]
        return self._algorithm.schedule(framework, CycleState(), pod)

    def _profile_of(self, scheduler: str) -> str:
        return scheduler if scheduler in self.profiles else self._first_profile

    def _begin(self) -> None:
        """Everything is listed: what became of the pods that the last observer left waiting?"""
        self._has_begun = True
        for row in self._open:
            pod: Pod | None = self.informers.informer("Pod").get(row.pod.key)
            is_here = pod is not None and pod.uid == row.pod.uid
            waiting = self._waiting.get(row.pod.key)
            if is_here and waiting is not None:
                waiting.seen_at = row.seen_at
                continue
            node = pod.node_name if pod is not None and is_here else ""
            self._teller.ended_unseen(row.pod, row.scheduler, row.seen_at, node)
        self._open = []


def _who(event: WatchEvent) -> tuple[str, str, str]:
    """Key, uid and node of a pod's event, as far as they can be told from malformed JSON."""
    meta, spec = event.object.get("metadata"), event.object.get("spec")
    meta = meta if isinstance(meta, Mapping) else {}
    spec = spec if isinstance(spec, Mapping) else {}
    key = f"{meta.get('namespace') or 'default'}/{meta.get('name') or ''}"
    return key, str(meta.get("uid") or ""), str(spec.get("nodeName") or "")
