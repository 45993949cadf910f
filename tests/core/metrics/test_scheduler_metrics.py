"""What a scheduler counts, in the whole scheduler and in virtual time; a named case for each
metric's rule (scheduler-facts.md, sections 4.7, 5.4 and 9)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scheduler_core.framework.interface import EnqueueExtensions
from scheduler_core.framework.status import SUCCESS, unschedulable, wait
from scheduler_core.metrics import CATALOG, HistogramValue, SchedulerMetrics, add_up
from scheduler_core.metrics.store import Labels, Store
from scheduler_core.records import PermitDecision, Verdict
from scheduler_core.scheduler_options import SchedulerOptions
from scheduler_core.testing.builders import make_node, make_pod, make_priority_class
from scheduler_core.testing.harness import Harness
from tests.core.scheduler.fakes import enabled, make_spy

DEFAULT = "default-scheduler"
EVENTS = "scheduler_event_handling_duration_seconds"


def harness(**options: Any) -> tuple[Harness, SchedulerMetrics]:
    """Every cycle's plugins are timed."""
    metrics = SchedulerMetrics(sample=lambda: 0.0)
    return Harness(metrics=metrics, **options), metrics


def numbers(metrics: SchedulerMetrics, name: str) -> Mapping[Labels, float]:
    found = metrics.samples()[name]
    return {labels: value for labels, value in found.items() if isinstance(value, float)}


def observed(metrics: SchedulerMetrics, name: str) -> dict[Labels, int]:
    """Series of a histogram -> observations."""
    found = metrics.samples()[name]
    return {
        labels: sum(value.counts)
        for labels, value in found.items()
        if isinstance(value, HistogramValue)
    }


def look(h: Harness, metrics: SchedulerMetrics) -> None:
    """Gauges are looked at once a second of real time: now."""
    metrics._next_look = 0.0
    h.scheduler.run_once()


def test_an_attempt_is_counted_when_the_pod_is_bound() -> None:
    h, metrics = harness(nodes=[make_node("n").capacity(cpu="2")], pods=[make_pod("p").req(cpu=1)])
    h.settle()
    assert numbers(metrics, "scheduler_schedule_attempts_total") == {("scheduled", DEFAULT): 1.0}
    name = "scheduler_scheduling_attempt_duration_seconds"
    assert observed(metrics, name) == {("scheduled", DEFAULT): 1}
    assert observed(metrics, "scheduler_scheduling_algorithm_duration_seconds") == {(): 1}
    assert observed(metrics, "scheduler_pod_scheduling_attempts") == {(): 1}
    assert observed(metrics, "scheduler_pod_scheduling_sli_duration_seconds") == {("1",): 1}


def test_a_pod_that_fits_nowhere_is_unschedulable_and_then_needs_two_attempts() -> None:
    h, metrics = harness(nodes=[make_node("n").capacity(cpu="1")], pods=[make_pod("p").req(cpu=2)])
    h.settle()
    assert numbers(metrics, "scheduler_schedule_attempts_total") == {
        ("unschedulable", DEFAULT): 1.0
    }
    look(h, metrics)
    assert numbers(metrics, "scheduler_unschedulable_pods") == {("NodeResourcesFit", DEFAULT): 1.0}
    pending = numbers(metrics, "scheduler_pending_pods")
    assert pending == {("active",): 0, ("backoff",): 0, ("unschedulable",): 1, ("gated",): 0}
    h.create("Node", make_node("big").capacity(cpu="4"))
    h.advance(30)
    h.settle()
    assert h.node_of("p") == "big"
    assert numbers(metrics, "scheduler_schedule_attempts_total")["scheduled", DEFAULT] == 1.0
    needed = metrics.samples()["scheduler_pod_scheduling_attempts"][()]
    assert isinstance(needed, HistogramValue) and needed.sum == 2.0
    assert observed(metrics, "scheduler_pod_scheduling_sli_duration_seconds") == {("2",): 1}
    look(h, metrics)
    assert numbers(metrics, "scheduler_unschedulable_pods") == {}


def test_a_pod_that_only_a_time_limit_brought_back_is_counted_when_it_is_bound() -> None:
    answers = {"filter": unschedulable("not yet")}
    spy = make_spy("Fussy", [], answers)
    # It registers no event, so that nothing but time wakes the pod again.
    quiet = type("Quiet", (EnqueueExtensions, spy), {"events_to_register": lambda self: ()})
    h, metrics = harness(
        nodes=[make_node("n")], pods=[make_pod("p")], profile=enabled("Fussy"), plugins=[quiet]
    )
    h.settle()
    answers["filter"] = SUCCESS
    h.advance(400)
    h.settle()
    assert h.node_of("p") == "n"
    assert numbers(metrics, "scheduler_pod_scheduled_after_flush_total") == {(): 1.0}


def test_points_and_plugins_are_timed_with_what_they_answered() -> None:
    nodes = [make_node("a").capacity(cpu="4"), make_node("b").capacity(cpu="4")]
    h, metrics = harness(nodes=nodes, pods=[make_pod("p").req(cpu=1), make_pod("q").req(cpu=9)])
    h.settle()
    points = observed(metrics, "scheduler_framework_extension_point_duration_seconds")
    assert points["PreFilter", "Success", DEFAULT] == 2
    # Success also where it turns every node down, as in the reference.
    assert points["Filter", "Success", DEFAULT] == 2
    for point in ("PreScore", "Score", "Reserve", "Permit", "Bind", "PostBind"):
        assert points[point, "Success", DEFAULT] == 1, point
    assert points["PreEnqueue", "Success", DEFAULT] >= 2
    rejected = [labels for labels in points if labels[0] == "PostFilter"]
    assert rejected and "Success" not in rejected[0]
    plugins = observed(metrics, "scheduler_plugin_execution_duration_seconds")
    assert plugins["NodeResourcesFit", "Filter", "Success"] == 2
    assert plugins["NodeAffinity", "PreFilter", "Skip"] == 2
    assert plugins["TaintToleration", "ScoreExtensionNormalize", "Success"] == 1
    assert {point for _, point, _ in plugins} <= {*_POINTS}


_POINTS = (
    "PreFilter",
    "Filter",
    "PostFilter",
    "PreScore",
    "Score",
    "ScoreExtensionNormalize",
    "Reserve",
    "Permit",
    "PreBind",
    "Bind",
)


def test_nine_of_ten_cycles_time_no_plugins() -> None:
    draws = iter([0.1, 0.99] * 50)
    metrics = SchedulerMetrics(sample=lambda: next(draws))
    h = Harness(nodes=[make_node("n")], pods=[make_pod("p")], metrics=metrics)
    h.settle()
    assert observed(metrics, "scheduler_plugin_execution_duration_seconds") == {}


@pytest.mark.parametrize("reuse", [True, False], ids=["classes", "plain"])
def test_evaluations_are_counted_as_if_nodes_were_asked_one_by_one(reuse: bool) -> None:
    nodes = [make_node(f"n{i}").capacity(cpu="4") for i in range(3)]
    nodes.append(make_node("closed").capacity(cpu="4").unschedulable())
    options = SchedulerOptions(listing_interval=0.0, reuse=reuse)
    h, metrics = harness(nodes=nodes, options=options)
    for name in ("p", "q"):
        h.create("Pod", make_pod(name).req(cpu=1))
        h.settle()
    asked = numbers(metrics, "scheduler_plugin_evaluation_total")
    assert asked["NodeUnschedulable", "Filter", DEFAULT] == 8
    # The closed node was out before NodeResourcesFit's turn.
    assert asked["NodeResourcesFit", "Filter", DEFAULT] == 6
    assert asked["NodeResourcesFit", "Score", DEFAULT] == 6
    assert asked["NodeResourcesFit", "PreFilter", DEFAULT] == 2
    assert asked["NodeResourcesFit", "PreScore", DEFAULT] == 2
    assert asked["NodeAffinity", "PreFilter", DEFAULT] == 0  # it skipped


def test_waits_at_permit() -> None:
    spy = make_spy("A", [], {"permit": (wait(), 60.0)})
    h, metrics = harness(
        nodes=[make_node("n")], pods=[make_pod("p")], profile=enabled("A"), plugins=[spy]
    )
    h.settle()
    look(h, metrics)
    assert numbers(metrics, "kubesched_waiting_pods") == {(): 1.0}
    assert numbers(metrics, "scheduler_schedule_attempts_total") == {}
    points = observed(metrics, "scheduler_framework_extension_point_duration_seconds")
    assert points["Permit", "Wait", DEFAULT] == 1
    h.advance(61)
    waits = metrics.samples()["scheduler_permit_wait_duration_seconds"]
    value = waits[("Unschedulable",)]
    assert isinstance(value, HistogramValue) and value.sum == pytest.approx(60, abs=1.5)
    assert numbers(metrics, "kubesched_waits_total") == {("timed_out",): 1.0}
    attempts = numbers(metrics, "scheduler_schedule_attempts_total")
    assert attempts["unschedulable", DEFAULT] >= 1.0
    points = observed(metrics, "scheduler_framework_extension_point_duration_seconds")
    assert points["Unreserve", "Success", DEFAULT] == 1


def test_a_decision_is_counted_with_whether_it_came_in_time() -> None:
    h, metrics = harness(nodes=[make_node("n")], pods=[make_pod("p")])
    h.settle()
    h.decide(PermitDecision(1, "nobody", Verdict.APPROVE, "ann"))
    h.settle()
    assert numbers(metrics, "kubesched_decisions_total") == {("approve", "false"): 1.0}


def test_preemption_is_counted_with_its_victims() -> None:
    node = make_node("n").capacity(cpu="2")
    classes = {"PriorityClass": [make_priority_class("high", 10)]}
    h, metrics = harness(nodes=[node], objects=classes, pods=[make_pod("low").req(cpu=2)])
    h.settle()
    high = make_pod("high").req(cpu=2).raw()
    high["spec"]["priorityClassName"] = "high"
    h.create("Pod", high)
    h.settle()
    assert numbers(metrics, "scheduler_preemption_attempts_total") == {(): 1.0}
    assert observed(metrics, "scheduler_preemption_victims") == {(): 1}
    done = numbers(metrics, "scheduler_preemption_goroutines_execution_total")
    assert done["success",] >= 1.0


def test_events_hints_and_what_came_to_the_queues() -> None:
    h, metrics = harness(nodes=[make_node("n").capacity(cpu="1")])
    h.create("Pod", make_pod("p").req(cpu=2))
    h.settle()
    h.create("Node", make_node("small").capacity(cpu="1"))
    h.settle()
    events = observed(metrics, "scheduler_event_handling_duration_seconds")
    assert events["NodeAdd",] == 2 and events["UnschedulablePodAdd",] == 1
    hints = observed(metrics, "scheduler_queueing_hint_execution_duration_seconds")
    assert hints["NodeResourcesFit", "NodeAdd", "QueueSkip"] == 1
    came = numbers(metrics, "scheduler_queue_incoming_pods_total")
    assert came["active", "UnschedulablePodAdd"] == 1.0
    assert came["unschedulable", "ScheduleAttemptFailure"] == 1.0


def test_events_are_called_as_kube_scheduler_calls_them() -> None:
    h, metrics = harness(nodes=[make_node("n").capacity(cpu="4")])
    h.create("Pod", make_pod("p").req(cpu=1), make_pod("gated").gate("g"))
    h.create("Pod", make_pod("other").scheduler_name("other"), make_pod("theirs").node("n"))
    h.settle()  # p is bound
    h.cluster.patch("Node", "", "n", {"metadata": {"labels": {"disk": "ssd"}}})
    h.cluster.patch("Pod", "default", "theirs", {"metadata": {"labels": {"app": "web"}}})
    h.cluster.patch("Pod", "default", "gated", {"spec": {"schedulingGates": None}})
    h.settle()  # gated is bound too
    for name in ("other", "p"):
        h.cluster.delete("Pod", "default", name, grace_period_seconds=0)
    h.settle()
    events = {label: n for (label,), n in observed(metrics, EVENTS).items()}
    assert events == {
        "NodeAdd": 1,
        "NodeUpdateNodeLabel": 1,
        "UnschedulablePodAdd": 2,
        "UnschedulablePodUpdate": 1,
        "UnschedulablePodUpdatePodSchedulingGatesEliminated": 1,
        "UnschedulablePodDelete": 2,  # bound: out of the queue
        "AssignedPodAdd": 3,
        "AssignedPodUpdate": 3,  # the label; and p ends, which is once more "nothing that matters"
        "AssignedPodUpdatePodLabel": 1,
        "AssignedPodDelete": 1,
    }


def test_nothing_to_do_before_binding_is_a_skip_and_prebind_is_over() -> None:
    h, metrics = harness(nodes=[make_node("n")], pods=[make_pod("p")])
    h.settle()
    points = observed(metrics, "scheduler_framework_extension_point_duration_seconds")
    found = {labels[:2]: n for labels, n in points.items() if labels[0].startswith("PreBind")}
    assert found == {("PreBindPreFlight", "Skip"): 1, ("PreBind", "Success"): 1}


def test_the_cache_is_looked_at() -> None:
    h, metrics = harness(nodes=[make_node("n")], pods=[make_pod("p")])
    h.settle()
    look(h, metrics)
    sizes = numbers(metrics, "scheduler_cache_size")
    assert sizes == {("nodes",): 1.0, ("pods",): 1.0, ("assumed_pods",): 0.0}
    assert numbers(metrics, "scheduler_inflight_events") == {("PodPopped",): 0.0}
    assert numbers(metrics, "scheduler_goroutines") == {("binding",): 0.0}


def test_a_gated_pod_is_pending_and_counts_for_its_plugin() -> None:
    h, metrics = harness(nodes=[make_node("n")], pods=[make_pod("p").gate("later")])
    h.settle()
    look(h, metrics)
    assert numbers(metrics, "scheduler_pending_pods")["gated",] == 1.0
    assert numbers(metrics, "scheduler_unschedulable_pods") == {("SchedulingGates", DEFAULT): 1.0}


def test_numbers_go_on_with_the_next_scheduler() -> None:
    h, metrics = harness(nodes=[make_node("n")], pods=[make_pod("p")])
    h.settle()
    h.scheduler.stop()
    again = Harness(cluster=h.cluster, clock=h.clock, metrics=metrics)
    again.create("Pod", make_pod("q"))
    again.settle()
    attempts = numbers(metrics, "scheduler_schedule_attempts_total")
    assert attempts == {("scheduled", DEFAULT): 2.0}
    asked = numbers(metrics, "scheduler_plugin_evaluation_total")
    assert asked["NodeName", "Filter", DEFAULT] == 2.0
    assert numbers(metrics, "scheduler_queue_incoming_pods_total")[
        "active", "UnschedulablePodAdd"
    ] == pytest.approx(2.0)


def test_schedulers_add_up() -> None:
    one, other = Store(), Store()
    one.add("scheduler_schedule_attempts_total", "scheduled", "a")
    other.add("scheduler_schedule_attempts_total", "scheduled", "a")
    other.histogram("scheduler_preemption_victims").observe(3)
    total = add_up([one.samples(), other.samples()])
    assert total["scheduler_schedule_attempts_total"] == {("scheduled", "a"): 2.0}
    victims = total["scheduler_preemption_victims"][()]
    assert victims == HistogramValue((0, 0, 1, 0, 0, 0, 0, 0), 3.0)
    assert set(total) == set(CATALOG)
