"""SchedulingQueue: every pod that waits for a node, in exactly one place."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from scheduler_core.api import Pod
from scheduler_core.backend.object_changes import pod_change_events
from scheduler_core.backend.queue import listing
from scheduler_core.backend.queue.active_queue import ActiveQueue, Less, SortKey
from scheduler_core.backend.queue.backoff_queue import BackoffQueue
from scheduler_core.backend.queue.gates import Gates, GatesAsked
from scheduler_core.backend.queue.hints import HintAsked, HintMap, QueueingHints, Strategy
from scheduler_core.backend.queue.nominator import PodNominator
from scheduler_core.backend.queue.unschedulable_pods import UnschedulablePods
from scheduler_core.framework.events import (
    BACKOFF_COMPLETE,
    FORCE_ACTIVATE,
    POP_FROM_BACKOFF_Q,
    SCHEDULE_ATTEMPT_FAILURE,
    UNSCHEDULABLE_POD_ADD,
    UNSCHEDULABLE_POD_UPDATE,
    UNSCHEDULABLE_TIMEOUT,
    ClusterEvent,
)
from scheduler_core.framework.interface import Informer, PreEnqueuePlugin
from scheduler_core.framework.types import QueuedPodInfo
from scheduler_core.ports import Clock
from scheduler_core.records import QueueDepths, QueueListing

log = logging.getLogger(__name__)

#: How often pods that have been unschedulable for too long are looked for, in seconds.
SWEEP_SECONDS = 30.0

ACTIVE, BACKOFF, UNSCHEDULABLE = "active", "backoff", "unschedulable"


class SchedulingQueue:
    """Pods on their way to a node (kube-scheduler 1.36, PriorityQueue).

    activeQ in QueueSort's order; backoffQ (rejected pods and, apart, errors); unschedulable pods,
    which wait for an event that one of their rejecting plugins registered; gated pods, which a
    PreEnqueue plugin holds. A popped pod is in flight until ``done``: events are remembered for it.

    ``initial_backoff``, ``max_backoff`` and ``max_in_unschedulable`` are seconds. ``pods`` is where
    a pod's current state is looked up before it is nominated. ``sort_key``: the order of ``less``
    as values to compare, where there is such a thing. ``on_gates_asked`` and ``on_hint_asked`` hear
    how long plugins took.
    """

    def __init__(
        self,
        less: Less,
        clock: Clock,
        *,
        pre_enqueue: Mapping[str, Sequence[PreEnqueuePlugin]] | None = None,
        hints: HintMap | None = None,
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
        max_in_unschedulable: float = 300.0,
        pods: Informer | None = None,
        sort_key: SortKey | None = None,
        on_gates_asked: GatesAsked | None = None,
        on_hint_asked: HintAsked | None = None,
    ) -> None:
        self._clock = clock
        self._gates = Gates(pre_enqueue or {}, on_gates_asked)
        self._hints = QueueingHints(hints or {}, on_hint_asked)
        self._max_in_unschedulable = max_in_unschedulable
        self._active = ActiveQueue(less, sort_key)
        self._backoff = BackoffQueue(less, clock, initial_backoff, max_backoff)
        self._unschedulable = UnschedulablePods()
        self._next_sweep = clock.now() + SWEEP_SECONDS
        self.nominator = PodNominator(pods)
        #: Grows whenever what ``depths`` or ``list_pods`` answer may have changed.
        self.version = 0
        #: (queue, event) -> pods that came: ``scheduler_queue_incoming_pods_total``.
        self.incoming: Counter[tuple[str, str]] = Counter()

    # -- what is here ------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Pods in all places, without those in flight."""
        return len(self._active) + len(self._backoff) + len(self._unschedulable)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        """Pods in all places, without those in flight; in no particular order."""
        yield from self._active
        yield from self._backoff
        yield from self._unschedulable

    def place_of(self, key: str) -> str:
        """Where "namespace/name" is: active, backoff, unschedulable, gated, or ""."""
        if key in self._active:
            return ACTIVE
        if key in self._backoff:
            return BACKOFF
        info = self._unschedulable.get(key)
        if info is None:
            return ""
        return "gated" if info.gated else UNSCHEDULABLE

    def get(self, key: str) -> QueuedPodInfo | None:
        """The pod "namespace/name", wherever it waits; None if it is in flight or unknown."""
        return self._active.get(key) or self._backoff.get(key) or self._unschedulable.get(key)

    def is_in_flight(self, uid: str) -> bool:
        return uid in self._active.in_flight

    def in_flight(self) -> Iterator[str]:
        """uids of pods that were popped and are not done."""
        return iter(self._active.in_flight)

    def events_in_flight(self) -> Iterator[ClusterEvent]:
        """Events that are kept for pods in flight."""
        return self._active.in_flight.events()

    def depths(self, waiting: int = 0) -> QueueDepths:
        """How many pods are in each place. ``waiting`` at Permit is not the queue's to know."""
        gated = self._unschedulable.gated_count
        held = len(self._unschedulable) - gated
        in_flight = len(self._active.in_flight)
        return QueueDepths(len(self._active), len(self._backoff), held, gated, in_flight, waiting)

    def list_pods(self) -> QueueListing:
        """Every pod: activeQ and backoffQ as they would be popped, the others longest first."""
        held = listing.by_age(self._unschedulable)
        return QueueListing(
            at=self._clock.now(),
            depths=self.depths(),
            active=listing.lines(self._active.ordered()),
            backoff=listing.lines(self._backoff.ordered()),
            unschedulable=listing.lines(info for info in held if not info.gated),
            gated=listing.lines(info for info in held if info.gated),
        )

    # -- pods come, change and go ------------------------------------------------------------------

    def add(self, pod: Pod) -> None:
        """A pod without a node was seen for the first time."""
        self._add_new(pod, UNSCHEDULABLE_POD_ADD.label)

    def update(self, old: Pod | None, new: Pod) -> None:
        """A pod without a node changed. One that is not here is added."""
        self.version += 1
        events = pod_change_events(old, new)
        if new.uid in self._active.in_flight:
            for event in events:
                self._active.in_flight.record(event, old, new)
            return
        info = self._active.update_pod(new) or self._backoff.update_pod(new)
        if info is not None:
            self.nominator.update(old or new, new)
            return
        info = self._unschedulable.get(new.key)
        if info is None:
            self._add_new(new, UNSCHEDULABLE_POD_UPDATE.label)
            return
        info.pod = new
        self.nominator.update(old or new, new)
        for event in events:
            strategy = self._hints.strategy(info, event, old, new)
            if strategy is not Strategy.SKIP and self._move(info, strategy, event.label):
                return

    def delete(self, pod: Pod) -> None:
        """A pod was deleted, or has a node now. One in flight stays so until ``done``."""
        self.version += 1
        self.nominator.delete(pod)
        info = self.get(pod.key)
        if info is None or info.pod.uid != pod.uid:
            return
        self._remove(pod.key)

    # -- attempts ----------------------------------------------------------------------------------

    def pop(self) -> QueuedPodInfo | None:
        """The next pod to schedule, in flight from now on; None where none is ready.

        When activeQ is empty a rejected pod is taken from backoffQ before its time.
        """
        in_flight = self._active.in_flight
        while (info := self._active.pop() or self._pop_backoff()) is not None:
            self.version += 1
            if info.pod.uid not in in_flight:
                self._begin_attempt(info)
                return info
            log.error("pod %s is being scheduled already; its second entry is dropped", info.key)
        return None

    def pop_pod(self, pod: Pod) -> QueuedPodInfo | None:
        """Take one pod out of turn, whether it backs off or is unschedulable; in flight from now
        on. None where it is not here, or is held by a gate."""
        info = self.get(pod.key)
        if info is None or info.pod.uid != pod.uid or info.gated or self.is_in_flight(pod.uid):
            return None
        self.version += 1
        self._remove(pod.key)
        info.backoff_until = None
        self._begin_attempt(info)
        return info

    def done(self, uid: str) -> None:
        """A popped pod needs no more events: it is back here, or about to be bound."""
        self.version += 1
        self._active.in_flight.end(uid)

    def add_unschedulable_if_not_present(self, info: QueuedPodInfo) -> bool:
        """A popped pod comes back from a failed attempt; ``info`` says which plugins rejected it.

        Without such a plugin it was an error. Events since it was popped may move it on at once.
        False where a pod of that name is here already. It is done in any case.
        """
        self.version += 1
        uid = info.pod.uid
        try:
            if self.get(info.key) is not None:
                log.error("pod %s is in the queue already, it cannot come back", info.key)
                return False
            self._count_attempt(info)
            strategy = self._replay(info)
            self._requeue(info, strategy, SCHEDULE_ATTEMPT_FAILURE)
            return True
        finally:
            self._active.in_flight.end(uid)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Move pods to activeQ past their backoff; one in flight gets there when it comes back."""
        for pod in pods:
            if not self._activate(pod) and pod.uid in self._active.in_flight:
                self._active.in_flight.record(FORCE_ACTIVATE, None, pod)

    # -- events and time ---------------------------------------------------------------------------

    def move_all_to_active_or_backoff_queue(
        self,
        event: ClusterEvent,
        old: Any = None,
        new: Any = None,
        pre_check: Callable[[Pod], bool] | None = None,
    ) -> None:
        """Something happened: move every unschedulable pod for which a hint says Queue.

        ``pre_check`` leaves out pods that the event cannot concern.
        """
        if event.is_wildcard:
            candidates: Sequence[QueuedPodInfo] = [*self._unschedulable]
        else:
            plugins = self._hints.plugins_interested(event)
            if not plugins:
                return
            candidates = self._unschedulable.rejected_by(plugins)
        if pre_check is not None:
            candidates = [info for info in candidates if pre_check(info.pod)]
        self._move_on_event(candidates, event, old, new)

    def flush(self) -> None:
        """Move on what the time has come for: backoffs that are over, pods that waited too long."""
        for info in self._backoff.pop_completed():
            self._move_to_active(info, BACKOFF_COMPLETE, check_gates=False)
        now = self._clock.now()
        if now < self._next_sweep:
            return
        self._next_sweep += SWEEP_SECONDS * (
            math.floor((now - self._next_sweep) / SWEEP_SECONDS) + 1
        )
        limit = now - self._max_in_unschedulable
        late = [info for info in self._unschedulable if info.timestamp < limit]
        if late:
            for info in late:
                info.flushed = not info.gated
            self._move_on_event(late, UNSCHEDULABLE_TIMEOUT, None, None)

    def next_deadline(self) -> float | None:
        """The time of day at which ``flush`` will have something to do; None if never."""
        deadlines = [self._backoff.next_completion(), self._sweep_for(self._unschedulable.oldest())]
        return min((time for time in deadlines if time is not None), default=None)

    # -- internals ---------------------------------------------------------------------------------

    def _add_new(self, pod: Pod, label: str) -> None:
        self.version += 1
        if pod.uid in self._active.in_flight:
            return
        self._remove(pod.key)  # a namesake whose deletion was not seen
        info = QueuedPodInfo(pod, timestamp=self._clock.now())
        if self._move_to_active(info, label):
            self.nominator.add(pod)

    def _remove(self, key: str) -> None:
        if self._active.remove(key) is None and self._backoff.remove(key) is None:
            self._unschedulable.remove(key)

    def _pop_backoff(self) -> QueuedPodInfo | None:
        info = self._backoff.pop_early()
        if info is not None:
            self.incoming[ACTIVE, POP_FROM_BACKOFF_Q] += 1
        return info

    def _begin_attempt(self, info: QueuedPodInfo) -> None:
        info.attempts += 1
        if info.initial_attempt is None:
            info.initial_attempt = self._clock.now()
        info.unschedulable_plugins.clear()
        info.pending_plugins.clear()
        info.gating_plugin = info.gating_message = ""
        self._active.in_flight.begin(info.pod.uid)

    def _count_attempt(self, info: QueuedPodInfo) -> None:
        if info.unschedulable_plugins or info.pending_plugins:
            info.unschedulable_count += 1
            info.consecutive_errors = 0
        else:
            info.consecutive_errors += 1
        info.timestamp = self._clock.now()
        info.backoff_until = None
        info.flushed = False

    def _replay(self, info: QueuedPodInfo) -> Strategy:
        """What the events since the pod was popped mean for it."""
        uid = info.pod.uid
        if uid not in self._active.in_flight:
            return Strategy.AFTER_BACKOFF
        if not info.unschedulable_plugins and not info.pending_plugins:
            return Strategy.AFTER_BACKOFF
        answer = Strategy.SKIP
        for seen in self._active.in_flight.events_since_pop(uid):
            strategy = self._hints.strategy(info, seen.event, seen.old, seen.new)
            if strategy is Strategy.IMMEDIATELY:
                return strategy
            if strategy is Strategy.AFTER_BACKOFF:
                if not info.pending_plugins:
                    return strategy
                answer = strategy
        return answer

    def _activate(self, pod: Pod) -> bool:
        info = self._unschedulable.get(pod.key)
        from_backoff = info is None
        if info is None:
            info = self._backoff.remove(pod.key)
        if info is None:
            return False
        self.version += 1
        if self._backoff.is_backing_off(info) and not self._backoff.may_skip(info):
            self._unschedulable.remove(info.key)
            return self._move_to_backoff(info, FORCE_ACTIVATE.label)
        return self._move_to_active(info, FORCE_ACTIVATE.label, check_gates=not from_backoff)

    def _move_on_event(
        self, infos: Iterable[QueuedPodInfo], event: ClusterEvent, old: Any, new: Any
    ) -> None:
        for info in infos:
            if info.gated and not self._interests_gate(info, event):
                continue
            strategy = self._hints.strategy(info, event, old, new)
            if strategy is not Strategy.SKIP:
                self._move(info, strategy, event.label)
        self._active.in_flight.record(event, old, new)

    def _interests_gate(self, info: QueuedPodInfo, event: ClusterEvent) -> bool:
        return self._hints.interests(info.pod.scheduler_name, info.gating_plugin, event)

    def _move(self, info: QueuedPodInfo, strategy: Strategy, label: str) -> bool:
        """Put an unschedulable pod where it belongs now; False if a gate holds it."""
        self.version += 1
        self._unschedulable.remove(info.key)
        return self._requeue(info, strategy, label)

    def _requeue(self, info: QueuedPodInfo, strategy: Strategy, label: str) -> bool:
        """Put a pod that is nowhere into its place. True for activeQ and backoffQ."""
        if strategy is Strategy.SKIP:
            self._hold(info, label)
            return False
        if self._backoff.is_backing_off(info) and not (
            strategy is Strategy.IMMEDIATELY and self._backoff.may_skip(info)
        ):
            return self._move_to_backoff(info, label)
        return self._move_to_active(info, label)

    def _move_to_backoff(self, info: QueuedPodInfo, label: str) -> bool:
        self._gates.check(info)
        if info.gated:
            self._hold(info, label)
            return False
        self._backoff.add(info)
        self.incoming[BACKOFF, label] += 1
        return True

    def _move_to_active(self, info: QueuedPodInfo, label: str, *, check_gates: bool = True) -> bool:
        """``check_gates`` is False for pods from backoffQ: theirs were checked on the way in."""
        self.version += 1
        if check_gates:
            self._gates.check(info)
        if info.gated:
            self._hold(info, label)
            return False
        self._unschedulable.remove(info.key)
        if info.initial_attempt is None:
            info.initial_attempt = self._clock.now()
        self._active.add(info.key, info)
        self.incoming[ACTIVE, label] += 1
        return True

    def _hold(self, info: QueuedPodInfo, label: str) -> None:
        expires = not info.gated or self._interests_gate(info, UNSCHEDULABLE_TIMEOUT)
        if self._unschedulable.put(info, expires=expires):
            self.incoming[UNSCHEDULABLE, label] += 1

    def _sweep_for(self, timestamp: float | None) -> float | None:
        """The first sweep that finds a pod of this age too old."""
        if timestamp is None:
            return None
        limit = timestamp + self._max_in_unschedulable
        if self._next_sweep > limit:
            return self._next_sweep
        sweeps = math.floor((limit - self._next_sweep) / SWEEP_SECONDS) + 1
        return self._next_sweep + sweeps * SWEEP_SECONDS
