"""SchedulerMetrics: counts what a Scheduler does (kube-scheduler 1.36, ``metrics.go``)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from random import Random
from time import perf_counter
from typing import Final

from scheduler_core.backend.cache import Cache
from scheduler_core.backend.queue import SchedulingQueue
from scheduler_core.framework.cycle_state import Timings
from scheduler_core.framework.runtime.framework import Framework
from scheduler_core.framework.status import Code, Status
from scheduler_core.metrics.catalog import CATALOG
from scheduler_core.metrics.evaluations import Evaluations
from scheduler_core.metrics.store import Count, Histogram, Labels, Samples, Store
from scheduler_core.observations import Observation, Verdict
from scheduler_core.pod_cycle import PodCycle
from scheduler_core.ports import Observer
from scheduler_core.records import Outcome, PermitDecision, WaitingPodRecord, WaitOutcome

__all__ = ["SchedulerMetrics"]

#: Part of the cycles whose plugins are timed one by one, as in the reference.
PLUGIN_SAMPLE: Final = 0.1
#: Least seconds between two looks at what is counted by looking, and which part of the time
#: looking may take where it takes long.
LOOK_SECONDS: Final = 1.0
LOOK_SHARE: Final = 0.01
#: From this attempt on pods are counted together.
MANY_ATTEMPTS: Final = 15

_SUCCESS: Final = "Success"
_FAILED: Final = (Outcome.UNSCHEDULABLE, Outcome.ERROR)
_PREEMPTION: Final = ("PostFilter", "DefaultPreemption")
_POINT_METRIC: Final = "scheduler_framework_extension_point_duration_seconds"
_POINT_BUCKETS: Final = CATALOG[_POINT_METRIC].buckets
#: Extension points of kube-scheduler; what extenders need is timed too, and is not one of them.
_POINTS: Final = frozenset(
    {
        "PreEnqueue",
        "PreFilter",
        "Filter",
        "PostFilter",
        "PreScore",
        "Score",
        "Reserve",
        "Unreserve",
        "Permit",
        "PreBind",
        "PreBindPreFlight",
        "Bind",
        "PostBind",
    }
)
_PLUGIN_POINTS: Final = {
    **{point: point for point in _POINTS},
    "NormalizeScore": "ScoreExtensionNormalize",
    "AddPod": "PreFilterExtensionAddPod",
    "RemovePod": "PreFilterExtensionRemovePod",
}
_PERMIT_RESULTS: Final = {
    WaitOutcome.ALLOWED: Code.SUCCESS.label,
    WaitOutcome.PREEMPTED: Code.ERROR.label,
    WaitOutcome.BROKEN: Code.ERROR.label,
}


class SchedulerMetrics(Observer):
    """Told by one Scheduler at a time, on its thread; read from any (``samples``).

    Numbers go on when another Scheduler takes over (``begin``): of another configuration, say.

    Args:
        sample: a number from [0, 1) that decides whether a cycle's plugins are timed one by one.
    """

    def __init__(self, sample: Callable[[], float] | None = None) -> None:
        self._store = Store()
        self._sample = sample or Random().random  # noqa: S311 - not for secrets
        self._evaluations = Evaluations()
        # Series that are used again and again, found by what is at hand.
        self._attempts: dict[tuple[str, str], tuple[Count, Histogram]] = {}
        self._sli: dict[int, Histogram] = {}
        self._points: dict[str, dict[str, Histogram]] = {}
        self._plugins: dict[tuple[str, str], Histogram] = {}
        self._hints: dict[tuple[str, str, str], Histogram] = {}
        self._events: dict[str, Histogram] = {}
        self._gates: dict[str, Histogram] = {}
        self._attempts_needed = self._store.histogram("scheduler_pod_scheduling_attempts")
        self._algorithm = self._store.histogram("scheduler_scheduling_algorithm_duration_seconds")
        #: (queue, event) -> pods that came; the queue counts them itself.
        self._incoming: Counter[tuple[str, str]] = Counter()
        self._bindings = 0
        self._next_look = 0.0
        self._turned_at: float | None = None

    # -- for readers -------------------------------------------------------------------------------

    def samples(self) -> Samples:
        """All numbers, from any thread."""
        found = self._store.samples()
        found["scheduler_plugin_evaluation_total"] = dict(self._evaluations.totals())
        incoming = self._incoming.copy()
        found["scheduler_queue_incoming_pods_total"] = {
            labels: float(count) for labels, count in incoming.items()
        }
        return found

    def seconds_since_turn(self) -> float:
        """How long ago the scheduling loop has turned last; 0 before the first time."""
        turned_at = self._turned_at
        return 0.0 if turned_at is None else perf_counter() - turned_at

    # -- for the scheduler -------------------------------------------------------------------------

    def begin(self, frameworks: Mapping[str, Framework], queue: SchedulingQueue) -> None:
        """A Scheduler starts to tell."""
        self._evaluations.begin(frameworks)
        self._points = {profile: {} for profile in frameworks}
        queue.incoming = self._incoming
        self._bindings = 0
        self._next_look = 0.0
        self._turned_at = None

    def cycle_done(self, cycle: PodCycle) -> None:
        """A scheduling cycle has ended, and has been recorded. Its times are taken: what comes
        later (Unreserve) is taken when the attempt ends."""
        if cycle.outcome is Outcome.SKIPPED:
            return
        self._evaluations.count(cycle)
        if cycle.algorithm_seconds:
            self._algorithm.observe(cycle.algorithm_seconds)
        if _PREEMPTION in cycle.timings.plugins:
            self._store.add("scheduler_preemption_attempts_total")
            if cycle.victims:
                victims = self._store.histogram("scheduler_preemption_victims")
                victims.observe(len(cycle.victims))
        if cycle.outcome in _FAILED:
            self._attempt_failed(cycle)
        self._take_times(cycle.framework.profile_name, cycle.timings)

    def binding_began(self) -> None:
        self._bindings += 1

    def attempt_ended(self, cycle: PodCycle, status: Status, now: float) -> None:
        """A pod's attempt has ended after its scheduling cycle: it is bound, or was turned down
        while it waited at Permit or was being bound.

        Args:
            now: on the scheduler's clock.
        """
        if cycle.binding_started:
            self._bindings -= 1
        if status.is_success:
            self._attempt_succeeded(cycle, now)
        else:
            self._attempt_failed(cycle)
        profile = cycle.framework.profile_name
        if cycle.timings.points:
            self._take_times(profile, cycle.timings)
        if cycle.binding_timings.points:
            self._take_times(profile, cycle.binding_timings)

    def group_attempt_ended(
        self, profile: str, result: str, algorithm_seconds: float, seconds: float
    ) -> None:
        """The cycle of a native pod group; ``result``: scheduled, unschedulable, error or
        waiting_on_preemption."""
        self._store.add("scheduler_podgroup_schedule_attempts_total", result, profile)
        attempts = "scheduler_podgroup_scheduling_attempt_duration_seconds"
        self._store.histogram(attempts, result, profile).observe(seconds)
        algorithm = "scheduler_podgroup_scheduling_algorithm_duration_seconds"
        self._store.histogram(algorithm).observe(algorithm_seconds)

    def event_handled(self, event: str, seconds: float) -> None:
        histogram = self._events.get(event)
        if histogram is None:
            name = "scheduler_event_handling_duration_seconds"
            histogram = self._events[event] = self._store.histogram(name, event)
        histogram.observe(seconds)

    def hint_asked(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """``hint``: Queue, QueueSkip or Error."""
        key = (plugin, event, hint)
        histogram = self._hints.get(key)
        if histogram is None:
            name = "scheduler_queueing_hint_execution_duration_seconds"
            histogram = self._hints[key] = self._store.histogram(name, plugin, event, hint)
        histogram.observe(seconds)

    def gates_asked(self, profile: str, seconds: float) -> None:
        """PreEnqueue plugins; the reference calls every answer of theirs Success."""
        histogram = self._gates.get(profile)
        if histogram is None:
            histogram = self._gates[profile] = self._point(profile, "PreEnqueue")
        histogram.observe(seconds)

    def preemption_wrote(self, seconds: float, succeeded: bool) -> None:
        """An eviction, or a nomination that was cleared."""
        result = "success" if succeeded else "error"
        self._store.add("scheduler_preemption_goroutines_execution_total", result)
        name = "scheduler_preemption_goroutines_duration_seconds"
        self._store.histogram(name, result).observe(seconds)

    def look(self, queue: SchedulingQueue, cache: Cache, waiting: int, paused: bool) -> None:
        """Count what is counted by looking, if it is time to."""
        began = self._turned_at = perf_counter()
        if began < self._next_look:
            return
        self._look_at_queue(queue)
        sizes: dict[Labels, float] = {
            ("nodes",): float(cache.node_count),
            ("pods",): float(cache.pod_count),
            ("assumed_pods",): float(cache.assumed_count),
        }
        self._store.replace("scheduler_cache_size", sizes)
        self._store.replace("scheduler_goroutines", {("binding",): float(self._bindings)})
        self._store.replace("kubesched_waiting_pods", {(): float(waiting)})
        self._store.replace("kubesched_scheduler_paused", {(): float(paused)})
        ended = perf_counter()
        self._next_look = ended + max(LOOK_SECONDS, (ended - began) / LOOK_SHARE)

    def _look_at_queue(self, queue: SchedulingQueue) -> None:
        depths = queue.depths()
        places = ("active", "backoff", "unschedulable", "gated")
        pending: dict[Labels, float] = {(place,): float(getattr(depths, place)) for place in places}
        self._store.replace("scheduler_pending_pods", pending)
        events: dict[Labels, float] = {("PodPopped",): float(depths.in_flight)}
        for event, count in Counter(queue.events_in_flight()).items():
            label = (event.label,)
            events[label] = events.get(label, 0.0) + count
        self._store.replace("scheduler_inflight_events", events)
        rejected: Counter[Labels] = Counter()
        for info in queue:
            for plugin in info.unschedulable_plugins:
                rejected[plugin, info.pod.scheduler_name] += 1
        self._store.replace("scheduler_unschedulable_pods", _floats(rejected.items()))

    # -- as an observer ----------------------------------------------------------------------------

    def pod_resolved(self, record: WaitingPodRecord) -> None:
        outcome = record.outcome
        if outcome is None or record.resolved_at is None:
            return
        self._store.add("kubesched_waits_total", outcome.value)
        result = _PERMIT_RESULTS.get(outcome, Code.UNSCHEDULABLE.label)
        waits = self._store.histogram("scheduler_permit_wait_duration_seconds", result)
        waits.observe(max(0.0, record.resolved_at - record.since))

    def decision_applied(self, decision: PermitDecision, applied: bool, message: str) -> None:
        self._store.add(
            "kubesched_decisions_total", decision.verdict.value, "true" if applied else "false"
        )

    def pod_observed(self, record: Observation) -> None:
        if record.verdict is not Verdict.PENDING:
            self._store.add("kubesched_observed_pods_total", record.verdict.value)

    # -- internals ---------------------------------------------------------------------------------

    def _attempt_succeeded(self, cycle: PodCycle, now: float) -> None:
        self._observe_attempt("scheduled", cycle)
        info = cycle.info
        self._attempts_needed.observe(info.attempts)
        first = info.initial_attempt if info.initial_attempt is not None else now
        attempts = min(info.attempts, MANY_ATTEMPTS)
        sli = self._sli.get(attempts)
        if sli is None:
            label = f"{attempts}+" if attempts == MANY_ATTEMPTS else str(attempts)
            name = "scheduler_pod_scheduling_sli_duration_seconds"
            sli = self._sli[attempts] = self._store.histogram(name, label)
        sli.observe(max(0.0, now - first))
        if info.flushed:
            self._store.add("scheduler_pod_scheduled_after_flush_total")

    def _attempt_failed(self, cycle: PodCycle) -> None:
        is_error = cycle.outcome is Outcome.ERROR
        self._observe_attempt("error" if is_error else "unschedulable", cycle)
        if is_error and cycle.status.plugin == "VolumeBinding":
            stage = "bind" if cycle.binding_started else _stage_of(cycle)
            self._store.add("scheduler_volume_scheduling_stage_error_total", stage)

    def _observe_attempt(self, result: str, cycle: PodCycle) -> None:
        labels = (result, cycle.framework.profile_name)
        found = self._attempts.get(labels)
        if found is None:
            name = "scheduler_scheduling_attempt_duration_seconds"
            count = self._store.count("scheduler_schedule_attempts_total", *labels)
            found = self._attempts[labels] = (count, self._store.histogram(name, *labels))
        found[0].value += 1
        found[1].observe(perf_counter() - cycle.started)

    def _take_times(self, profile: str, timings: Timings) -> None:
        known, statuses = self._points.setdefault(profile, {}), timings.statuses
        for point, seconds in timings.points.items():
            histogram = known.get(point)
            if histogram is None or (statuses and (point, "") in statuses):
                if point not in _POINTS:
                    continue
                histogram = self._point(profile, point, statuses.get((point, ""), _SUCCESS))
            # As ``observe`` does; this is the innermost loop.
            histogram.counts[bisect_left(_POINT_BUCKETS, seconds)] += 1
            histogram.sum += seconds
        if self._sample() < PLUGIN_SAMPLE:
            self._observe_plugins(timings)
        timings.clear()

    def _point(self, profile: str, point: str, status: str = _SUCCESS) -> Histogram:
        known = self._points.setdefault(profile, {})
        if status == _SUCCESS and point in known:
            return known[point]
        histogram = self._store.histogram(_POINT_METRIC, point, status, profile)
        if status == _SUCCESS:
            known[point] = histogram
        return histogram

    def _observe_plugins(self, timings: Timings) -> None:
        name, statuses = "scheduler_plugin_execution_duration_seconds", timings.statuses
        for key, seconds in timings.plugins.items():
            histogram = None if key in statuses else self._plugins.get(key)
            if histogram is None:
                point, plugin = key
                label = _PLUGIN_POINTS.get(point)
                if label is None:
                    continue
                status = statuses.get(key, _SUCCESS)
                histogram = self._store.histogram(name, plugin, label, status)
                if status == _SUCCESS:
                    self._plugins[key] = histogram
            histogram.observe(seconds)


def _floats(counts: Iterable[tuple[Labels, int]]) -> dict[Labels, float]:
    return {labels: float(count) for labels, count in counts}


def _stage_of(cycle: PodCycle) -> str:
    """Which stage of VolumeBinding failed before the binding cycle."""
    return "assume" if cycle.node_name else "predicate"
