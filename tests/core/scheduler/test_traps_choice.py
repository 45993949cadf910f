"""Traps 1 to 5 and 17 (see ``traps``): what is chosen, what is said of it, and preemption."""

from __future__ import annotations

from scheduler_core.algorithm import SeededRandom
from scheduler_core.testing.builders import PodBuilder, make_node, make_pod, make_priority_class
from scheduler_core.testing.harness import Harness
from tests.core.scheduler.traps import (
    CLAIMS,
    NOT_HELPFUL,
    Json,
    by_name,
    disabled,
    evaluate,
    standalone,
)

# -- 1 to 5: what is chosen and what is said -------------------------------------------------------


def test_trap_01_ties_are_random_from_a_seed_or_go_to_the_smallest_name() -> None:
    nodes = [make_node(f"n{i}") for i in range(7)]
    pod = make_pod("p").obj()
    assert standalone(nodes).schedule(pod).node_name == "n0"

    def chosen(seed: int) -> list[str]:
        cluster = standalone(nodes, tie_breaker=SeededRandom(seed))
        return [cluster.schedule(pod).node_name for _ in range(50)]

    assert chosen(1) == chosen(1)
    assert len(set(chosen(1))) == 7, "each of the best nodes has its turn"


class TestTrap02:
    """Whose words stand behind the FitError."""

    nodes = [make_node(f"n{i}").capacity(cpu="1") for i in range(2)]
    large = make_pod("p").req(cpu="2")

    def test_dynamic_resources_speaks_before_preemption(self) -> None:
        assert evaluate(self.large, *self.nodes)["message"] == (
            f"0/2 nodes are available: 2 Insufficient cpu. {CLAIMS}, "
            f"preemption: 0/2 nodes are available: 2 {NOT_HELPFUL}"
        )

    def test_without_it_preemption_alone(self) -> None:
        found = evaluate(self.large, *self.nodes, profile=disabled("DynamicResources"))
        assert found["message"] == (
            "0/2 nodes are available: 2 Insufficient cpu. "
            f"preemption: 0/2 nodes are available: 2 {NOT_HELPFUL}"
        )

    def test_a_pre_filter_that_ends_the_cycle_before_it_ends_preemption_too(self) -> None:
        found = evaluate(make_pod("p").pvc("nope"), *self.nodes)
        text = '0/2 nodes are available: persistentvolumeclaim "nope" not found. not found'
        assert found["message"] == text
        assert found["preFilter"]["code"] == "UnschedulableAndUnresolvable"


class TestTrap03:
    """The FitError's form."""

    def test_reasons_are_sorted_as_text(self) -> None:
        nodes = [make_node(f"a{i}").unschedulable() for i in range(10)]
        nodes += [make_node(f"b{i}").taint("x") for i in range(2)]
        message = evaluate(make_pod("p"), *nodes)["message"]
        assert message.startswith(
            "0/12 nodes are available: 10 node(s) were unschedulable, "
            "2 node(s) had untolerated taint(s). "
        )

    def test_nothing_is_put_behind_the_words_of_post_filter(self) -> None:
        config = disabled("DefaultPreemption")
        found = evaluate(make_pod("p"), make_node("n").unschedulable(), profile=config)
        assert found["message"].endswith(f"1 node(s) were unschedulable. {CLAIMS}")

    def test_all_nodes_count_also_those_that_were_not_looked_at(self) -> None:
        nodes = [make_node(f"n{i}").unschedulable() for i in range(3)]
        message = evaluate(make_pod("p").affinity(by_name("n1")), *nodes)["message"]
        assert message.startswith(
            "0/3 nodes are available: 1 node(s) were unschedulable, "
            "2 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
        )


def test_trap_04_a_successful_preemption_is_not_in_the_preemptors_own_message() -> None:
    victim = make_pod("victim").req(cpu="4").node("n")
    h = Harness(
        nodes=[make_node("n")],
        objects={"PriorityClass": [make_priority_class("high", 10)]},
        pods=[victim],
    )
    raw = make_pod("p").req(cpu="4").raw()
    raw["spec"]["priorityClassName"] = "high"
    cycle = h.schedule(raw)
    assert cycle.nominated_node == "n"
    assert cycle.message == "0/1 nodes are available: 1 Insufficient cpu."
    (told,) = h.events("Preempted")
    assert told["note"] == f"Preempted by pod {cycle.pod.uid} on node n"
    assert told["regarding"]["name"] == "victim"


def test_trap_05_the_event_is_cut_the_condition_is_not() -> None:
    names = [f"example.com/a-resource-that-nobody-has-{i:02}" for i in range(40)]
    pod = make_pod("p").req(dict.fromkeys(names, "1"))
    h = Harness(nodes=[make_node("n")])
    h.schedule(pod)
    message = h.condition("p")["message"]
    assert len(message) > 1024 and all(f"1 Insufficient {name}" in message for name in names)
    (event,) = h.events("FailedScheduling")
    assert event["note"] == message[:1020] + " ..."


# -- 17: preemption --------------------------------------------------------------------------------


class TestTrap17:
    node = make_node("n").capacity(cpu="4")

    def preemptor(self) -> PodBuilder:
        return make_pod("p").req(cpu="1").priority(100)

    def victims(self, *pods: PodBuilder, budget: int | None = None) -> list[str]:
        budgets = [] if budget is None else [_budget(budget)]
        found = evaluate(self.preemptor(), self.node, *pods, *budgets)
        (candidate,) = found["preemption"]["candidates"]
        return [key.removeprefix("default/") for key in candidate["victims"]]

    def pods(self, *started: float | None) -> list[PodBuilder]:
        made = []
        for i, at in enumerate(started):
            pod = make_pod(f"v{i}").req(cpu="1").label(app="web").node("n")
            made.append(pod if at is None else pod.started(at))
        return made

    def test_without_a_budget_the_youngest_goes(self) -> None:
        assert self.victims(*self.pods(1000, 2000, 3000, 4000)) == ["v3"]

    def test_the_budget_goes_to_the_most_important_and_the_others_are_spared_first(self) -> None:
        assert self.victims(*self.pods(1000, 2000, 3000, 4000), budget=1) == ["v0"]

    def test_pods_without_a_start_come_in_reverse_order(self) -> None:
        large = make_pod("p").req(cpu="4").priority(100)
        found = evaluate(large, self.node, *self.pods(None, None, None, None))
        (candidate,) = found["preemption"]["candidates"]
        assert candidate["victims"] == [f"default/v{i}" for i in (3, 2, 1, 0)]


def _budget(allowed: int) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": allowed},
    }
