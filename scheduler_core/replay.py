"""Runs the scheduler over recorded arrivals in virtual time, without database or threads.

It is the same ``Scheduler`` with a SandboxCluster in memory: nodes are created first; then each
arrival is created and scheduled at once, and each departure deleted, in the given order.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from scheduler_core.algorithm import SeededRandom, SmallestName
from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.sandbox import ActingView, SandboxCluster
from scheduler_core.config import SchedulerConfiguration
from scheduler_core.executor import InlineExecutor
from scheduler_core.placements import Placement
from scheduler_core.ports import NotFound, Observer, PodCondition, Subscription, WatchEvent
from scheduler_core.records import (
    BindingRecord,
    CycleRecord,
    Outcome,
    WaitingPodRecord,
    WaitOutcome,
)
from scheduler_core.scheduler import Scheduler
from scheduler_core.scheduler_options import SchedulerOptions
from scheduler_core.workloads.trace import Action, Trace, node_object, pod_object, trace_events

__all__ = ["AS_FAST_AS_POSSIBLE", "Replay", "ReplayEvent", "ReplayResult", "replay_of_trace"]

Json = dict[str, Any]

AS_FAST_AS_POSSIBLE: Final = math.inf

#: After the last event pods that back off or wait get this long, in seconds of virtual time.
_LAST_CHANCE: Final = 1_800.0
#: Longest sleep between two events, so that an interrupt is felt.
_LONGEST_SLEEP: Final = 0.5

_ACTIONS: Final[Mapping[Action, Literal["add", "delete"]]] = {
    Action.ADD: "add",
    Action.DELETE: "delete",
}


@dataclass(frozen=True, slots=True)
class ReplayEvent:
    """A pod arrives or leaves.

    Attributes:
        at: seconds since the epoch of the replay's clock; events come in this order.
        action: "add" or "delete".
        pod: the Pod to create, or one with at least the metadata of the one to delete.
    """

    at: float
    action: Literal["add", "delete"]
    pod: Json


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What came of it.

    Attributes:
        placements: one per pod, in the order in which the pods were (last) scheduled.
        cycles: scheduling cycles that were run.
        seconds: real time of the events, without creating the nodes.
        virtual_seconds: time that passed on the replay's clock.
        point_seconds: extension point -> seconds over all cycles, largest first.
    """

    placements: Sequence[Placement]
    cycles: int
    seconds: float
    virtual_seconds: float
    point_seconds: Mapping[str, float]

    @property
    def placed(self) -> int:
        return sum(1 for placement in self.placements if placement.placed)

    @property
    def not_placed(self) -> int:
        return len(self.placements) - self.placed

    @property
    def pods_per_second(self) -> float:
        return len(self.placements) / self.seconds if self.seconds > 0 else 0.0


def replay_of_trace(trace: Trace, config: SchedulerConfiguration, **options: Any) -> Replay:
    """The replay of a cluster trace; its pods ask for the first profile of ``config``.

    ``options`` are those of ``Replay``.

    Raises:
        ProfileError: a plugin refuses its arguments.
    """
    profile = config.profiles[0].scheduler_name
    events = [
        ReplayEvent(float(event.time), _ACTIONS[event.action], pod_object(event.pod, profile))
        for event in trace_events(trace.pods)
    ]
    return Replay(map(node_object, trace.nodes), events, config, **options)


class Replay:
    """One replay.

    Args:
        nodes: Node objects.
        events: arrivals and departures in order of time.
        config: profiles; a pod's ``schedulerName`` chooses one.
        seed: of random tie-breaking; None: the smallest node name wins.
        retry: pods that do not fit are tried again as the queue says; else each has one attempt.
        speed: seconds of the clock per real second.
        reuse: let work for one pod serve the next one like it; the placements are the same without.
        observers: told of everything beside the replay itself.
        sleep / perf: the real time, for speeds other than ``AS_FAST_AS_POSSIBLE``.

    Raises:
        ProfileError: a plugin refuses its arguments.
        ApiError: a node is refused.
    """

    def __init__(
        self,
        nodes: Iterable[Json],
        events: Sequence[ReplayEvent],
        config: SchedulerConfiguration,
        *,
        seed: int | None = None,
        retry: bool = False,
        speed: float = AS_FAST_AS_POSSIBLE,
        reuse: bool = True,
        observers: Iterable[Observer] = (),
        sleep: Callable[[float], None] = time.sleep,
        perf: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._events = events
        self._retry = retry
        self._perf = perf
        self._start = events[0].at if events else 0.0
        self._clock = VirtualClock(self._start)
        self._pacer = _Pacer(self._start, speed, sleep, perf)
        # Uids come from a fixed seed: two replays are alike to the last byte.
        rng = random.Random(0)  # noqa: S311 - not for secrets
        self._cluster = SandboxCluster(self._clock, rng=rng, history=1, events_kept=0, share=False)
        for node in nodes:
            self._cluster.create("Node", node)
        self._outcomes = _Outcomes()
        self._scheduler = Scheduler(
            config,
            (_WithoutKubelet if retry else _WithoutPodStatus)(self._cluster, "kube-scheduler"),
            clock=self._clock,
            executor=InlineExecutor(),
            observers=[self._outcomes, *observers],
            tie_breaker=SmallestName() if seed is None else SeededRandom(seed),
            options=SchedulerOptions(score_single_node=True, retry=retry, seed=0, reuse=reuse),
        )

    @property
    def total(self) -> int:
        """How many events there are."""
        return len(self._events)

    def run(self, progress: Callable[[int], None] = lambda done: None) -> ReplayResult:
        """Play every event; ``progress`` is told after each how many are done.

        Raises:
            ApiError: the cluster refuses a pod.
        """
        self._scheduler.start()
        self._settle()
        started = self._perf()
        self._pacer.begin()
        try:
            for done, event in enumerate(self._events, start=1):
                self._pass_time_until(event.at)
                self._apply(event)
                self._settle()
                progress(done)
            self._give_last_chance()
        finally:
            self._scheduler.stop()
        points = sorted(self._outcomes.points.items(), key=lambda item: -item[1])
        return ReplayResult(
            placements=tuple(self._outcomes.placements.values()),
            cycles=self._outcomes.cycles,
            seconds=self._perf() - started,
            virtual_seconds=self._clock.now() - self._start,
            point_seconds=dict(points),
        )

    def _apply(self, event: ReplayEvent) -> None:
        if event.action == "add":
            self._cluster.create("Pod", event.pod)
            return
        metadata = event.pod["metadata"]
        namespace = metadata.get("namespace", "default")
        # There is no kubelet here that would end a grace period. A trace may have a pod leave in
        # the second in which it arrives: departures go first, so it is not there yet, and stays.
        with suppress(NotFound):
            self._cluster.delete("Pod", namespace, metadata["name"], grace_period_seconds=0)

    def _settle(self) -> None:
        """Run the scheduler until there is nothing to do at this moment."""
        while self._scheduler.run_once():
            self._drop_rejected()
            if self._is_settled():
                return
        self._drop_rejected()

    def _is_settled(self) -> bool:
        """Another turn would find nothing: only time, or another event, brings something about."""
        if self._scheduler.has_messages:
            return False
        depths = self._scheduler.depths()
        return not (depths.active or depths.backoff or depths.in_flight or depths.waiting)

    def _drop_rejected(self) -> None:
        """Without retries a pod that lost its node again after its cycle is not tried again."""
        rejected, self._outcomes.rejected = self._outcomes.rejected, []
        if self._retry:
            return
        pods = self._scheduler.informers.informer("Pod")
        for key in rejected:
            pod = pods.get(key)
            if pod is not None:
                self._scheduler.queue.delete(pod)

    def _pass_time_until(self, moment: float) -> None:
        """Let backoffs and timeouts up to ``moment`` take effect, each at its time."""
        while True:
            due = self._next_deadline()
            if due is None or due > moment:
                break
            self._move_clock(due)
            if not self._scheduler.run_once():
                break  # nothing came of it: do not stand still for ever
            self._settle()
        self._move_clock(moment)

    def _give_last_chance(self) -> None:
        end = self._clock.now() + _LAST_CHANCE
        while True:
            depths = self._scheduler.depths()
            due = self._next_deadline()
            if not (depths.backoff or depths.waiting) or due is None or due > end:
                return
            self._pass_time_until(max(due, self._clock.now()))

    def _next_deadline(self) -> float | None:
        found = (
            self._scheduler.queue.next_deadline(),
            self._scheduler.waiting_room.next_deadline(),
        )
        return min((due for due in found if due is not None), default=None)

    def _move_clock(self, moment: float) -> None:
        if moment > self._clock.now():
            self._pacer.wait_for(moment)
            self._clock.set(moment)


class _WithoutKubelet(ActingView):
    """Whom the scheduler evicts leaves at once: nobody would end a grace period."""

    def list_watch(self, kind: str, sink: Callable[[WatchEvent], None]) -> Subscription:
        """That a pod is about to leave is not told: that it has left follows in the same breath."""

        def tell(event: WatchEvent) -> None:
            if event.type != "MODIFIED" or not _leaves_at_once(event.object["metadata"]):
                sink(event)

        return super().list_watch(kind, tell if kind == "Pod" else sink)

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        super().delete(kind, namespace, name, uid=uid, grace_period_seconds=0)


def _leaves_at_once(metadata: Mapping[str, Any]) -> bool:
    return metadata.get("deletionGracePeriodSeconds") == 0 and not metadata.get("finalizers")


class _WithoutPodStatus(_WithoutKubelet):
    """Keeps the conditions of failed attempts to itself: told of the change, the queue would take
    in anew a pod that was dropped."""

    def patch_pod_status(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        condition: PodCondition | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        return


class _Pacer:
    """Holds virtual time back to ``speed`` times real time."""

    def __init__(
        self,
        start: float,
        speed: float,
        sleep: Callable[[float], None],
        perf: Callable[[], float],
    ) -> None:
        if not speed > 0:
            raise ValueError(f"a replay's speed must be greater than 0, not {speed}")
        self._start = start
        self._speed = speed
        self._sleep = sleep
        self._perf = perf
        self._began = 0.0

    def begin(self) -> None:
        self._began = self._perf()

    def wait_for(self, moment: float) -> None:
        due = self._began + (moment - self._start) / self._speed
        while (rest := due - self._perf()) > 0:
            self._sleep(min(rest, _LONGEST_SLEEP))


@dataclass(slots=True)
class _Outcomes(Observer):
    """Keeps the last word on every pod."""

    placements: dict[str, Placement] = field(default_factory=dict)
    points: dict[str, float] = field(default_factory=dict)
    rejected: list[str] = field(default_factory=list)
    cycles: int = 0

    def cycle_finished(self, record: CycleRecord) -> None:
        self.cycles += 1
        for point, seconds in record.point_seconds.items():
            self.points[point] = self.points.get(point, 0.0) + seconds
        if record.outcome is Outcome.SKIPPED:
            return
        key = record.pod.key
        # Taken out first: a pod that is tried again moves to the end.
        self.placements.pop(key, None)
        if record.outcome in (Outcome.SCHEDULED, Outcome.WAITING):
            self.placements[key] = Placement(
                key, record.node, record.nodes_feasible, record.score, record.ties
            )
        else:
            self.placements[key] = Placement(key, message=record.message)

    def binding_finished(self, record: BindingRecord) -> None:
        if not record.bound:
            self._reject(record.pod.key, record.message)

    def pod_resolved(self, record: WaitingPodRecord) -> None:
        if record.outcome is not WaitOutcome.ALLOWED:
            self._reject(record.pod.key, record.message)

    def _reject(self, key: str, message: str) -> None:
        self.placements[key] = Placement(key, message=message)
        self.rejected.append(key)
