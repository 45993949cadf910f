"""Every metric of a scheduler: name, type, labels, buckets (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["CATALOG", "Metric", "exponential"]

Type = Literal["counter", "gauge", "histogram"]
Stability = Literal["STABLE", "BETA", "ALPHA"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One family. ``buckets``: upper bounds without +Inf, ascending; only for histograms.

    ``reserved``: the reference has it and it belongs to something that this scheduler does not do,
    or does not do on its own: it is announced, and never has a sample.
    """

    name: str
    type: Type
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    stability: Stability = "ALPHA"
    reserved: bool = False


def exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    """``count`` bounds: first, first x factor, ... by repeated multiplication, which is how the
    reference gets its last digits."""
    bounds, bound = [], first
    for _ in range(count):
        bounds.append(bound)
        bound *= factor
    return tuple(bounds)


_MILLISECONDS: Final = exponential(0.001, 2, 15)
_POINT: Final = exponential(0.0001, 2, 12)
_PLUGIN: Final = exponential(0.00001, 1.5, 20)
_HINT: Final = exponential(0.00001, 2, 12)
_LONG: Final = exponential(0.01, 2, 20)


def _counter(
    name: str, help: str, *labels: str, stability: Stability = "ALPHA", reserved: bool = False
) -> Metric:
    return Metric(f"scheduler_{name}", "counter", help, labels, (), stability, reserved)


def _gauge(name: str, help: str, *labels: str, stability: Stability = "ALPHA") -> Metric:
    return Metric(f"scheduler_{name}", "gauge", help, labels, (), stability)


def _histogram(
    name: str,
    help: str,
    buckets: tuple[float, ...],
    *labels: str,
    stability: Stability = "ALPHA",
    reserved: bool = False,
) -> Metric:
    return Metric(f"scheduler_{name}", "histogram", help, labels, buckets, stability, reserved)


_ALL: Final = (
    # attempts and pods
    _counter(
        "schedule_attempts_total",
        "Attempts to schedule pods, by how they ended: unschedulable is a pod that fits nowhere, "
        "error a fault of the scheduler.",
        "result",
        "profile",
        stability="STABLE",
    ),
    _histogram(
        "scheduling_attempt_duration_seconds",
        "From pop to the end of the attempt, algorithm and binding, waits at Permit included.",
        _MILLISECONDS,
        "result",
        "profile",
        stability="STABLE",
    ),
    _histogram(
        "scheduling_algorithm_duration_seconds",
        "From pop to the choice of a node, or to the end of PostFilter.",
        _MILLISECONDS,
    ),
    _histogram(
        "pod_scheduling_sli_duration_seconds",
        "From a pod's first entry to activeQ until it is bound, over all of its attempts.",
        _LONG,
        "attempts",
        stability="BETA",
    ),
    _histogram(
        "pod_scheduling_attempts",
        "Attempts that a pod needed until it was bound.",
        exponential(1, 2, 5),
        stability="STABLE",
    ),
    _counter(
        "pod_scheduled_after_flush_total",
        "Pods that were bound after a time limit, and no event, had brought them back to the "
        "queue: a sign of a missing queueing hint.",
    ),
    # plugins
    _histogram(
        "framework_extension_point_duration_seconds",
        "Time of all plugins of an extension point in one cycle.",
        _POINT,
        "extension_point",
        "status",
        "profile",
        stability="STABLE",
    ),
    _histogram(
        "plugin_execution_duration_seconds",
        "Time of one plugin at one extension point, of every tenth cycle; Filter and Score: for "
        "all nodes of the cycle together.",
        _PLUGIN,
        "plugin",
        "extension_point",
        "status",
    ),
    _counter(
        "plugin_evaluation_total",
        "How often plugins were asked: Filter and Score once per node.",
        "plugin",
        "extension_point",
        "profile",
        stability="BETA",
    ),
    # events and queue
    _histogram(
        "event_handling_duration_seconds",
        "Time that the cache and the queue need for one event of the cluster.",
        _POINT,
        "event",
    ),
    _histogram(
        "queueing_hint_execution_duration_seconds",
        "Time of one queueing hint.",
        _PLUGIN,
        "plugin",
        "event",
        "hint",
    ),
    _gauge(
        "inflight_events",
        "Events that are remembered for pods being scheduled; PodPopped: those pods.",
        "event",
    ),
    _gauge(
        "pending_pods",
        "Pods that wait: in activeQ, in backoffQ, unschedulable, or gated.",
        "queue",
        stability="STABLE",
    ),
    _counter(
        "queue_incoming_pods_total",
        "Pods that came to a queue, by what brought them.",
        "queue",
        "event",
        stability="STABLE",
    ),
    _gauge(
        "unschedulable_pods",
        "Pods that a plugin has rejected and that have not been tried again since.",
        "plugin",
        "profile",
        stability="BETA",
    ),
    # state
    _gauge("cache_size", "Nodes, pods and assumed pods in the cache.", "type"),
    _gauge(
        "goroutines", "Pieces of work under way beside the loop.", "operation", stability="BETA"
    ),
    _histogram(
        "permit_wait_duration_seconds",
        "How long pods waited at Permit.",
        _MILLISECONDS,
        "result",
        stability="BETA",
    ),
    # preemption
    _histogram(
        "preemption_victims",
        "Pods that had to go for one pod.",
        exponential(1, 2, 7),
        stability="STABLE",
    ),
    _counter(
        "preemption_attempts_total",
        "Cycles in which preemption was tried.",
        stability="STABLE",
    ),
    _histogram(
        "preemption_goroutines_duration_seconds",
        "Time of one write of a preemption: an eviction, or a nomination that is cleared.",
        _LONG,
        "result",
    ),
    _counter("preemption_goroutines_execution_total", "Writes of preemptions.", "result"),
    # gangs
    _counter(
        "podgroup_schedule_attempts_total",
        "Attempts to schedule native pod groups as a whole, by how they ended.",
        "result",
        "profile",
    ),
    _histogram(
        "podgroup_scheduling_attempt_duration_seconds",
        "Time of the cycle of a native pod group.",
        _MILLISECONDS,
        "result",
        "profile",
    ),
    _histogram(
        "podgroup_scheduling_algorithm_duration_seconds",
        "Time in which places were looked for, for all members of a native pod group.",
        _MILLISECONDS,
    ),
    # volumes
    _counter(
        "volume_scheduling_stage_error_total",
        "Errors of VolumeBinding, by stage: predicate, assume or bind.",
        "operation",
    ),
    _counter(
        "volume_binder_cache_requests_total",
        "Announced by the reference too, and never counted there either.",
        "operation",
        reserved=True,
    ),
    # What the reference has for things that this scheduler does in another way, or not at all.
    _counter(
        "batch_attempts_total",
        "Pods scheduled by a batching hint; here equivalence classes do that work.",
        "profile",
        "result",
        reserved=True,
    ),
    _counter(
        "batch_cache_flushed_total",
        "Batching hints that were dropped; there are none here.",
        "profile",
        "reason",
        reserved=True,
    ),
    _histogram(
        "get_node_hint_duration_seconds",
        "Time to get a batching hint; there are none here.",
        _HINT,
        "hinted",
        "profile",
        reserved=True,
    ),
    _histogram(
        "store_schedule_results_duration_seconds",
        "Time to keep a batching hint; there are none here.",
        _HINT,
        "profile",
        reserved=True,
    ),
    _counter(
        "resourceclaim_creates_total",
        "ResourceClaims made for extended resources backed by devices; not done here.",
        "status",
        reserved=True,
    ),
    _counter(
        "dra_bindingconditions_allocations_total",
        "Waits for binding conditions of devices; not done here.",
        "profile",
        "driver",
        "status",
        reserved=True,
    ),
    _histogram(
        "dra_bindingconditions_wait_duration_seconds",
        "Time of waits for binding conditions of devices; not done here.",
        exponential(0.1, 2, 14),
        "profile",
        "driver",
        "status",
        reserved=True,
    ),
)

#: What only this scheduler has.
_OWN: Final = (
    Metric(
        "kubesched_waiting_pods",
        "gauge",
        "Pods that wait at Permit.",
    ),
    Metric(
        "kubesched_waits_total",
        "counter",
        "Waits at Permit that ended, by outcome.",
        ("outcome",),
    ),
    Metric(
        "kubesched_decisions_total",
        "counter",
        "Words of people on waiting pods; applied: whether they came in time.",
        ("verdict", "applied"),
    ),
    Metric(
        "kubesched_observed_pods_total",
        "counter",
        "Pods that another scheduler has placed while this one observed, by how both compare.",
        ("verdict",),
    ),
    Metric(
        "kubesched_scheduler_paused",
        "gauge",
        "1 for a scheduler that takes no pods from its queue.",
    ),
)

#: By name, in the order in which they are shown.
CATALOG: Final[Mapping[str, Metric]] = {metric.name: metric for metric in (*_ALL, *_OWN)}
