"""What a re-implementation of kube-scheduler 1.36 gets wrong first: a named case for each trap.

Each goes through the whole scheduler, or through everything that decides about one pod, so that it
holds whatever the parts look like. The parts have tables of their own, next to each plugin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from scheduler_core.algorithm import SeededRandom, num_feasible_nodes_to_find
from scheduler_core.api import Pod, nonzero_requests, parse_object
from scheduler_core.clock import VirtualClock
from scheduler_core.config import InvalidConfiguration, configuration_from
from scheduler_core.evaluation import Evaluation
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import ActionType
from scheduler_core.framework.runtime import filtering
from scheduler_core.library import StandaloneFramework, framework_for
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.records import Outcome
from scheduler_core.testing.builders import (
    NodeBuilder,
    PodBuilder,
    make_namespace,
    make_node,
    make_pod,
    make_priority_class,
)
from scheduler_core.testing.harness import Harness
from tests.core.extender.conftest import extender
from tests.core.extender.server import FakeExtender, keep_all

__all__ = ["extender"]  # a fixture

Json = dict[str, Any]

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
#: What the default profile adds to the FitError of a pod for which nobody can make way.
NOT_HELPFUL = "Preemption is not helpful for scheduling."
CLAIMS = "no new claims to deallocate"


def configuration(profile: Mapping[str, Any] | None = None, **fields: Any) -> Any:
    return configuration_from({**HEAD, "profiles": [profile or {}], **fields}, in_tree_registry())


def evaluate(
    pod: PodBuilder | Json,
    *objects: Any,
    profile: Mapping[str, Any] | None = None,
) -> Json:
    """Everything that the default profile says about one pod: scores, reasons, victims."""
    raw = [pod, *objects]
    parsed = [parse_object(obj.raw() if hasattr(obj, "raw") else obj) for obj in raw]
    assert isinstance(parsed[0], Pod)
    evaluation = Evaluation(parsed, configuration(profile))
    answer: Json = evaluation.evaluate(parsed[0].key)
    return answer


def scored(pod: PodBuilder, plugin: str, *objects: Any, **options: Any) -> dict[str, int]:
    """node -> raw score of one plugin."""
    found: dict[str, int] = evaluate(pod, *objects, **options)["raw"][plugin]
    return found


def standalone(
    nodes: Iterable[NodeBuilder], pods: Iterable[PodBuilder] = (), **options: Any
) -> StandaloneFramework:
    return framework_for([n.obj() for n in nodes], [p.obj() for p in pods], **options)


def affinity(**parts: Any) -> Json:
    """required terms: ``podAffinity=[...]``, ``podAntiAffinity=[...]``."""
    return {part: {REQUIRED: terms} for part, terms in parts.items()}


def by_name(*names: str) -> Json:
    """Node affinity with one term: metadata.name in ``names``."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}]}
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}


def enabled(point: str, *names: str) -> Json:
    return {"plugins": {point: {"enabled": [{"name": name} for name in names]}}}


def disabled(*names: str) -> Json:
    return {"plugins": {"multiPoint": {"disabled": [{"name": name} for name in names]}}}


def args(plugin: str, **values: Any) -> Json:
    return {"pluginConfig": [{"name": plugin, "args": values}]}


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


# -- 6 and 7: whose pods count ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "operator, fits",
    [
        pytest.param("DoesNotExist", True, id="DoesNotExist matches every namespace"),
        pytest.param("NotIn", True, id="NotIn matches every namespace"),
        pytest.param("Exists", True, id="Exists matches the labelled one"),
        pytest.param("In", False, id="In, another value"),
    ],
)
def test_trap_06_a_selector_of_namespaces_is_asked_once_more_without_labels(
    operator: str, fits: bool
) -> None:
    values = {"values": ["other" if operator == "In" else "red"]}
    requirement = {"key": "colour", "operator": operator}
    if operator in ("In", "NotIn"):
        requirement |= values
    term = {
        "topologyKey": ZONE,
        "labelSelector": {"matchLabels": {"app": "db"}},
        "namespaceSelector": {"matchExpressions": [requirement]},
    }
    there = make_pod("db").namespace("red").label(app="db").node("n")
    found = evaluate(
        make_pod("p").affinity(affinity(podAffinity=[term])),
        make_node("n").zone("a"),
        make_namespace("red").label(colour="red"),
        make_namespace("default"),
        there,
    )
    assert (found["status"] == "Feasible") is fits


class TestTrap07:
    nodes = [make_node("a").zone("a"), make_node("b").zone("b")]
    existing = [make_pod(f"w{i}").label(app="web").node("a") for i in range(3)]

    def pod(self, selector: Json) -> PodBuilder:
        return make_pod("p").label(app="web").spread(ZONE, {}, labelSelector=selector)

    def rejected(self, pod: PodBuilder, *existing: PodBuilder) -> list[str]:
        return sorted(evaluate(pod, *self.nodes, *existing).get("filtered", {}))

    def test_a_selector_that_selects(self) -> None:
        pod = self.pod({"matchLabels": {"app": "web"}})
        assert self.rejected(pod, *self.existing) == ["a"]

    def test_an_empty_selector_counts_nobody(self) -> None:
        assert self.rejected(self.pod({}), *self.existing) == []

    def test_pods_that_are_leaving_do_not_count(self) -> None:
        leaving = [make_pod(f"w{i}").label(app="web").node("a").terminating() for i in range(3)]
        assert self.rejected(self.pod({"matchLabels": {"app": "web"}}), *leaving) == []

    def test_they_do_where_pods_are_added_in_thought(self) -> None:
        cluster = standalone(self.nodes)
        pod = self.pod({"matchLabels": {"app": "web"}}).obj()
        state, node = CycleState(), cluster.nodes.get("a")
        assert node is not None
        cluster.framework.run_pre_filter(state, pod)
        leaving = make_pod("w").label(app="web").node("a").terminating().obj()
        cluster.framework.run_pre_filter_extension_add_pod(state, pod, leaving, node)
        status = filtering.run_filter_one(cluster.framework.filter_plugins, state, pod, node)
        assert status.plugin == "PodTopologySpread"


# -- 8 to 12: resources ----------------------------------------------------------------------------


class TestTrap08:
    node = make_node("n").capacity(cpu="4", memory="4Gi")
    pod = make_pod("p").pod_req(cpu="2")
    only_cpu = args(
        "NodeResourcesFit",
        scoringStrategy={"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 1}]},
    )

    def test_scoring_does_not_see_requests_of_the_pod_as_a_whole(self) -> None:
        assert scored(self.pod, "NodeResourcesFit", self.node, profile=self.only_cpu) == {"n": 97}
        usual = make_pod("p").req(cpu="2")
        assert scored(usual, "NodeResourcesFit", self.node, profile=self.only_cpu) == {"n": 50}

    def test_the_filter_does(self) -> None:
        found = evaluate(make_pod("p").pod_req(cpu="5"), self.node)
        assert found["filtered"]["n"]["reasons"] == ["Insufficient cpu"]

    def test_balanced_allocation_does(self) -> None:
        # 2 of 4 cpus and no memory: |0.5 - 0| / 2 is 0.25 off balance.
        found = scored(self.pod, "NodeResourcesBalancedAllocation", self.node)
        assert found == {"n": 50 + (50 + 75 - 100) // 2}


@pytest.mark.parametrize(
    "pod, expected",
    [
        pytest.param(make_pod("p"), (100, 200 * 2**20), id="200 MiB, not 200 MB"),
        pytest.param(make_pod("p").req().req(), (200, 400 * 2**20), id="for each container"),
        pytest.param(
            make_pod("p").req(cpu="1m", memory="1").init_container("i"),
            (100, 200 * 2**20),
            id="for init containers too",
        ),
        pytest.param(make_pod("p").req(cpu="0", memory="0"), (0, 0), id="an explicit 0 stays 0"),
    ],
)
def test_trap_09_what_containers_without_requests_count_for(
    pod: PodBuilder, expected: tuple[int, int]
) -> None:
    assert nonzero_requests(pod.obj()) == expected


class TestTrap10:
    plugin = "NodeResourcesBalancedAllocation"
    node = make_node("n").capacity(cpu="4", memory="4Gi")

    def test_an_even_pod_on_an_empty_node_gets_75(self) -> None:
        assert scored(make_pod("p").req(cpu="1", memory="1Gi"), self.plugin, self.node) == {"n": 75}

    def test_a_pod_that_evens_a_node_out_gets_more(self) -> None:
        lopsided = make_pod("old").req(cpu="2").node("n")  # off balance by a quarter
        found = scored(make_pod("p").req(memory="2Gi"), self.plugin, self.node, lopsided)
        assert found == {"n": 50 + (50 + 100 - 75) // 2}

    def test_only_what_was_asked_for_counts(self) -> None:
        """Pods without requests on the node are nothing here, though they are to LeastAllocated."""
        quiet = [make_pod(f"q{i}").node("n") for i in range(5)]
        pod = make_pod("p").req(cpu="1", memory="1Gi")
        assert scored(pod, self.plugin, self.node, *quiet) == {"n": 75}

    def test_pods_that_ask_for_nothing_are_skipped(self) -> None:
        assert self.plugin not in evaluate(make_pod("p"), self.node)["raw"]


class TestTrap11:
    def score(self, points: list[tuple[int, int]], cpu: str, **more: Any) -> int:
        strategy = {
            "type": "RequestedToCapacityRatio",
            "resources": more.get("resources", [{"name": "cpu", "weight": 1}]),
            "requestedToCapacityRatio": {
                "shape": [{"utilization": u, "score": s} for u, s in points]
            },
        }
        profile = args("NodeResourcesFit", scoringStrategy=strategy)
        node = make_node("n").capacity(cpu="100", memory="100Mi")
        pod = make_pod("p").req(cpu=cpu, memory=more.get("memory", "0"))
        return scored(pod, "NodeResourcesFit", node, profile=profile)["n"]

    def test_the_slope_is_cut_towards_zero(self) -> None:
        # 100 + trunc((30 - 100) * 33 / 60) = 100 - 38; a floor would give 61.
        assert self.score([(0, 10), (60, 3)], "33") == 62

    def test_a_resource_with_score_0_has_no_weight(self) -> None:
        two = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 3}]
        shape = [(0, 0), (100, 10)]
        assert self.score(shape, "40", resources=two, memory="0") == 40
        assert self.score(shape, "40", resources=two, memory="20Mi") == (40 + 3 * 20) // 4

    def test_the_mean_is_rounded_half_away_from_zero(self) -> None:
        two = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
        assert self.score([(0, 0), (100, 10)], "40", resources=two, memory="45Mi") == 43


class TestTrap12:
    def status(self, pod: PodBuilder, node: NodeBuilder, *bound: PodBuilder) -> Json:
        found: Json = evaluate(pod, node, *bound)["filtered"]["n"]
        return found

    def test_too_little_is_free(self) -> None:
        node, old = make_node("n").capacity(cpu="4"), make_pod("old").req(cpu="3").node("n")
        found = self.status(make_pod("p").req(cpu="2"), node, old)
        assert (found["code"], found["reasons"]) == ("Unschedulable", ["Insufficient cpu"])

    def test_too_little_is_there_at_all(self) -> None:
        found = self.status(make_pod("p").req(cpu="5"), make_node("n").capacity(cpu="4"))
        assert found["code"] == "UnschedulableAndUnresolvable"

    def test_too_many_pods_never_is(self) -> None:
        found = self.status(make_pod("p"), make_node("n").capacity(cpu="4", pods="0"))
        assert (found["code"], found["reasons"]) == ("Unschedulable", ["Too many pods"])

    def test_a_pod_without_requests_fits_an_overcommitted_node(self) -> None:
        node, old = make_node("n").capacity(cpu="1"), make_pod("old").req(cpu="9").node("n")
        assert evaluate(make_pod("p"), node, old)["status"] == "Feasible"


# -- 13 and 14: affinity and spreading -------------------------------------------------------------


class TestTrap13:
    nodes = [make_node(name).zone(name) for name in "abc"]

    def prefers(self, *terms: tuple[int, str], part: str = "podAffinity") -> PodBuilder:
        pod = make_pod("p")
        for weight, app in terms:
            method = pod.pod_affinity if part == "podAffinity" else pod.pod_anti_affinity
            method(ZONE, {"app": app}, weight=weight)
        return pod

    def test_29_of_100_is_28(self) -> None:
        pod = self.prefers((100, "x"), (29, "y"))
        pods = [make_pod("x").label(app="x").node("a"), make_pod("y").label(app="y").node("b")]
        found = evaluate(pod, *self.nodes, *pods)
        assert found["raw"]["InterPodAffinity"] == {"a": 100, "b": 29, "c": 0}
        assert found["normalized"]["InterPodAffinity"] == {"a": 100, "b": 28, "c": 0}

    def test_raw_scores_may_be_negative(self) -> None:
        pod = self.prefers((5, "x"), part="podAntiAffinity")
        found = evaluate(pod, *self.nodes, make_pod("x").label(app="x").node("a"))
        assert found["raw"]["InterPodAffinity"] == {"a": -5, "b": 0, "c": 0}
        assert found["normalized"]["InterPodAffinity"] == {"a": 0, "b": 100, "c": 100}

    def test_one_pod_has_to_match_all_terms(self) -> None:
        pod = make_pod("p").pod_affinity(ZONE, {"app": "x"}).pod_affinity(ZONE, {"tier": "y"})
        apart = [make_pod("x").label(app="x").node("a"), make_pod("y").label(tier="y").node("a")]
        assert evaluate(pod, *self.nodes, *apart)["status"] == "Unschedulable"
        both = make_pod("both").label(app="x", tier="y").node("a")
        assert evaluate(pod, *self.nodes, *apart, both)["feasible"] == ["a"]


def test_trap_14_default_spreading_counts_a_missing_zone_as_one() -> None:
    """System constraints: hostname with maxSkew 3 and zone with maxSkew 5. The zone's size is 2,
    "a" and "", although one node has none; a node without the key takes no part in that sum."""
    nodes = [make_node("n0").zone("a"), make_node("n1").zone("a"), make_node("n2")]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"selector": {"app": "web"}},
    }
    mates = [make_pod(f"w{i}").label(app="web").node("n0") for i in range(3)]
    found = scored(make_pod("p").label(app="web"), "PodTopologySpread", *nodes, service, *mates)
    host, zone = math.log(3 + 2), math.log(2 + 2)
    assert found == {
        "n0": math.floor(3 * host + 2 + 3 * zone + 4 + 0.5),
        "n1": math.floor(0 * host + 2 + 3 * zone + 4 + 0.5),
        "n2": 2,
    }


# -- 15 and 16: Skip -------------------------------------------------------------------------------


class TestTrap15:
    """A nominated pod with anti-affinity, and plugins that took themselves out of the cycle."""

    node = make_node("n").zone("a").capacity(cpu="4")
    nominated = (
        make_pod("first")
        .req(cpu="1")
        .priority(10)
        .nominated("n")
        .pod_anti_affinity(ZONE, {"app": "web"})
    )

    def test_a_plugin_that_skipped_does_not_see_it(self) -> None:
        cluster = standalone([self.node], [self.nominated])
        assert cluster.fits(make_pod("p").label(app="web").obj(), "n").is_success

    def test_one_that_did_not_skip_does(self) -> None:
        cluster = standalone([self.node], [self.nominated])
        pod = make_pod("p").label(app="web").pod_anti_affinity(ZONE, {"app": "other"}).obj()
        text = "node(s) didn't satisfy existing pods anti-affinity rules"
        assert cluster.fits(pod, "n").message == text

    def test_its_room_is_taken(self) -> None:
        cluster = standalone([self.node], [self.nominated])
        assert cluster.fits(make_pod("p").req(cpu="4").obj(), "n").message == "Insufficient cpu"

    def test_it_is_never_scored(self) -> None:
        pod = make_pod("p").req(cpu="1")
        assert evaluate(pod, self.node, self.nominated)["raw"] == evaluate(pod, self.node)["raw"]


def test_trap_16_a_score_plugin_that_skipped_is_not_in_the_sum() -> None:
    nodes = [make_node("a"), make_node("b")]
    found = evaluate(make_pod("p"), *nodes, profile=disabled("PodTopologySpread"))
    present = ["TaintToleration", "NodeResourcesFit", "DynamicResources", "ImageLocality"]
    assert sorted(found["raw"]) == sorted(present), "NodeAffinity and others have skipped"
    assert found["normalized"]["TaintToleration"] == {"a": 100, "b": 100}
    assert found["total"] == {
        name: sum(found["normalized"][p][name] * found["weights"][p] for p in present)
        for name in ("a", "b")
    }


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


# -- 18 and 19: node names and configuration -------------------------------------------------------


class TestTrap18:
    nodes = [make_node("n1"), make_node("n2"), make_node("n3")]

    def test_two_names_in_one_list_match_nothing(self) -> None:
        found = evaluate(make_pod("p").affinity(by_name("n1", "n2")), *self.nodes)
        reason = "node(s) didn't match Pod's node affinity/selector"
        assert {name: s["reasons"] for name, s in found["filtered"].items()} == {
            "n1": [reason],
            "n2": [reason],
        }
        assert "preFilter" not in found, "PreFilter has let them pass"

    def test_a_plugin_that_names_nodes_counts_as_one_that_rejected(self) -> None:
        found = evaluate(make_pod("p").affinity(by_name("n1")), *self.nodes)
        assert found["status"] == "Feasible"
        assert found["unschedulablePlugins"] == ["NodeAffinity"]


class TestTrap19:
    nodes = [make_node("n").capacity(cpu="1").taint("x")]

    def test_a_default_plugin_that_is_enabled_at_a_point_goes_to_its_front(self) -> None:
        pod = make_pod("p").req(cpu="2")
        usual = evaluate(pod, *self.nodes)["filtered"]["n"]
        assert usual["plugin"] == "TaintToleration"
        moved = evaluate(pod, *self.nodes, profile=enabled("filter", "NodeResourcesFit"))
        assert moved["filtered"]["n"]["plugin"] == "NodeResourcesFit"

    def test_enabled_again_without_a_weight_it_weighs_1(self) -> None:
        pod, node = make_pod("p"), make_node("n")
        usual = evaluate(pod, node)["weights"]["TaintToleration"]
        again = evaluate(pod, node, profile=enabled("score", "TaintToleration"))
        assert (usual, again["weights"]["TaintToleration"]) == (3, 1)

    def test_score_alone_lacks_what_pre_score_would_have_kept(self) -> None:
        profile = {"plugins": {"preScore": {"disabled": [{"name": "TaintToleration"}]}}}
        found = evaluate(make_pod("p"), make_node("n"), profile=profile)
        assert found["status"] == "Error"
        assert found["message"].endswith(
            'plugin "TaintToleration" failed with: '
            'failed to read "PreScoreTaintToleration" from cycleState: not found'
        )

    def test_a_strategy_without_a_type_is_refused(self) -> None:
        strategy = {"resources": [{"name": "cpu", "weight": 1}]}
        with pytest.raises(InvalidConfiguration, match=r"scoringStrategy\.type: Unsupported value"):
            configuration(args("NodeResourcesFit", scoringStrategy=strategy))


# -- 20: extenders ---------------------------------------------------------------------------------


class TestTrap20:
    nodes = [make_node("idle").capacity(cpu="4"), make_node("busy").capacity(cpu="4")]
    old = make_pod("old").req(cpu="3").node("busy")

    def cycle(self, fake: FakeExtender, **entry: Any) -> tuple[Harness, Any]:
        entry = {"urlPrefix": fake.url, "filterVerb": "filter", **entry}
        h = Harness(nodes=self.nodes, pods=[self.old], config={"extenders": [entry]})
        return h, h.schedule(make_pod("p").req(cpu="1"))

    def least_allocated(self, cycle: Any) -> list[int]:
        row = cycle.matrix.plugins.index("NodeResourcesFit")
        names = list(cycle.matrix.node_names)
        return [int(cycle.matrix.raw[row][names.index(name)]) for name in ("idle", "busy")]

    def test_nodes_that_come_back_whole_are_scored_without_their_pods(
        self, extender: Callable[..., FakeExtender]
    ) -> None:
        _, cycle = self.cycle(extender({"filter": keep_all}))
        idle, busy = self.least_allocated(cycle)
        assert busy == idle

    def test_names_are_scored_as_they_are(self, extender: Callable[..., FakeExtender]) -> None:
        _, cycle = self.cycle(extender({"filter": keep_all}), nodeCacheCapable=True)
        idle, busy = self.least_allocated(cycle)
        assert busy < idle

    def test_requests_are_capitalised_with_explicit_nulls(
        self, extender: Callable[..., FakeExtender]
    ) -> None:
        fake = extender({"filter": keep_all})
        self.cycle(fake, nodeCacheCapable=True)
        (asked,) = fake.asked("filter")
        assert list(asked) == ["Pod", "Nodes", "NodeNames"]
        assert asked["Nodes"] is None

    def test_replies_are_read_in_any_case_and_scores_count_times_weight_times_ten(
        self, extender: Callable[..., FakeExtender]
    ) -> None:
        scores = [{"host": "busy", "SCORE": 7}]
        fake = extender({"prioritize": lambda asked: scores})
        verbs = {"filterVerb": "", "prioritizeVerb": "prioritize", "weight": 3}
        _, with_it = self.cycle(fake, **verbs)
        without = Harness(nodes=self.nodes, pods=[self.old]).schedule(make_pod("p").req(cpu="1"))
        names = list(with_it.matrix.node_names)
        gained = with_it.matrix.total - without.matrix.total
        assert dict(zip(names, gained.tolist(), strict=True)) == {"idle": 0, "busy": 7 * 3 * 10}

    def test_errors_of_prioritize_are_ignored(self, extender: Callable[..., FakeExtender]) -> None:
        fake = extender({})  # 404
        _, cycle = self.cycle(fake, filterVerb="", prioritizeVerb="prioritize", weight=1)
        assert cycle.outcome is Outcome.SCHEDULED
        assert fake.asked("prioritize")


# -- 21: ports and images --------------------------------------------------------------------------


class TestTrap21:
    @pytest.mark.parametrize(
        "wanted, fits",
        [
            pytest.param("::", True, id=":: is an address like any other"),
            pytest.param("0.0.0.0", False, id="0.0.0.0 is every address"),  # noqa: S104
        ],
    )
    def test_addresses(self, wanted: str, fits: bool) -> None:
        old = make_pod("old").host_port(80, ip="10.0.0.1").node("n")
        found = evaluate(make_pod("p").host_port(80, ip=wanted), make_node("n"), old)
        assert (found["status"] == "Feasible") is fits

    @pytest.mark.parametrize(
        "sidecar, fits",
        [
            pytest.param(False, True, id="an init container's port is not taken"),
            pytest.param(True, False, id="a sidecar's is"),
        ],
    )
    def test_init_containers(self, sidecar: bool, fits: bool) -> None:
        port = {"containerPort": 80, "hostPort": 80}
        old = make_pod("old").init_container("i", ports=[port], sidecar=sidecar).req().node("n")
        found = evaluate(make_pod("p").host_port(80), make_node("n"), old)
        assert (found["status"] == "Feasible") is fits

    def test_an_image_has_the_size_that_was_reported_first(self) -> None:
        first, second = 500 * 2**20, 900 * 2**20
        nodes = [
            make_node("a").image("app:1", size=first),
            make_node("b").image("app:1", size=second),
        ]
        pod = make_pod("p").container("c", image="app:1")
        low, high = 23 * 2**20, 1000 * 2**20
        score = 100 * (first - low) // (high - low)
        assert scored(pod, "ImageLocality", *nodes) == {"a": score, "b": score}


# -- 22 to 25: queue, events, cache, sampling ------------------------------------------------------


class TestTrap22:
    def test_the_last_entry_into_the_queue_counts_not_the_creation(self) -> None:
        h = Harness(nodes=[make_node("n").capacity(cpu="1").unschedulable()])
        h.create("Pod", make_pod("old"))
        h.settle()
        h.advance(1)
        h.create("Pod", make_pod("young"))
        h.advance(30)
        # "old" is tried once more and fails: now it has been in the queue for the shorter time.
        h.scheduler.queue.activate([h.scheduler.informers.informer("Pod").get("default/old")])
        h.advance(30)
        h.cluster.patch("Node", "", "n", {"spec": {"unschedulable": False}})
        before = len(h.observer.cycles)
        h.advance(30)
        assert [c.pod.name for c in h.observer.cycles[before:]] == ["young", "old"]

    def test_backoff_is_cut_to_whole_seconds(self) -> None:
        """It began at .7 and takes 1 s: its end is cut to .0, and that whole second belongs to
        it. Errors are never taken early, so that it shows."""
        h = Harness(clock=VirtualClock(1000.7))
        h.schedule(make_pod("p"))
        h.create("Node", make_node("n"))
        h.advance(1.2)
        assert h.node_of("p") == "", "1001.9"
        h.advance(0.1)
        assert h.node_of("p") == "n", "1002.0"

    def test_an_idle_scheduler_does_not_wait_for_backoff(self) -> None:
        h = Harness(nodes=[make_node("n").unschedulable()])
        h.schedule(make_pod("p"))
        h.cluster.patch("Node", "", "n", {"spec": {"unschedulable": False}})
        h.settle()
        assert h.node_of("p") == "n", "at the same moment, though it backs off for a second"

    def test_but_for_errors_it_does(self) -> None:
        h = Harness()
        h.schedule(make_pod("p"))
        h.create("Node", make_node("n"))
        h.settle()
        assert h.node_of("p") == ""
        h.advance(2.1)
        assert h.node_of("p") == "n"

    def test_a_cluster_without_nodes_is_such_an_error(self) -> None:
        h = Harness()
        cycle = h.schedule(make_pod("p"))
        assert cycle.message == "no nodes available to schedule pods"
        assert cycle.unschedulable_plugins == ()
        assert h.condition("p")["reason"] == "Unschedulable"
        assert h.scheduler.depths().backoff == 1


class TestTrap23:
    """Events that plugins did not ask for."""

    def hints(self) -> Mapping[str, Any]:
        return standalone([]).framework.events_to_register()

    def test_a_taint_may_help_whoever_waits_for_nodes(self) -> None:
        """NodeResourcesFit registers Node/Add, and hears of taints that go."""
        h = Harness(nodes=[make_node("n").capacity(cpu="1").taint("x")])
        h.schedule(make_pod("large").req(cpu="2").toleration("x"))
        h.advance(30)
        before = len(h.cycles("large"))
        assert not any(
            e.event.action & ActionType.UPDATE_NODE_TAINT for e in self.hints()["NodeResourcesFit"]
        )
        h.cluster.patch("Node", "", "n", {"spec": {"taints": []}})
        h.settle()
        assert len(h.cycles("large")) == before + 1

    def test_after_five_minutes_everybody_is_tried_again(self) -> None:
        h = Harness(nodes=[make_node("n").unschedulable()])
        h.schedule(make_pod("p"))
        h.advance(299)
        assert len(h.cycles("p")) == 1
        for _ in range(3):
            h.advance(30)
        assert len(h.cycles("p")) == 2


def test_trap_24_an_assumed_pod_stays_until_it_is_confirmed_or_forgotten() -> None:
    h = Harness(nodes=[make_node("n").capacity(cpu="1")])
    pod = make_pod("p").req(cpu="1").node("n").obj()
    h.scheduler.cache.assume_pod(pod)
    for _ in range(24):
        h.clock.advance(3600)
        h.scheduler.run_once()
    assert h.scheduler.cache.is_assumed_pod(pod)
    h.create("Pod", make_pod("q").req(cpu="1"))
    h.scheduler.run_once()
    assert h.node_of("q") == ""


class TestTrap25:
    def test_one_feasible_node_is_not_scored(self) -> None:
        h = Harness(nodes=[make_node("a"), make_node("b").unschedulable()])
        cycle = h.schedule(make_pod("p"))
        assert (cycle.node, cycle.score) == ("a", None)
        assert not {"PreScore", "Score"} & set(cycle.point_seconds)

    def test_the_start_of_the_search_is_shared_by_all_profiles(self) -> None:
        profiles = [{"schedulerName": name} for name in ("default-scheduler", "other")]
        h = Harness(
            nodes=[make_node(f"n{i:03}") for i in range(150)],
            config={"percentageOfNodesToScore": 0, "profiles": profiles},
        )
        seen = []
        for i, name in enumerate(("default-scheduler", "other")):
            cycle = h.schedule(make_pod(f"p{i}").scheduler_name(name))
            assert cycle.matrix is not None
            seen.append({row for row, why in enumerate(cycle.matrix.rejection) if why != -2})
        assert seen == [set(range(100)), {*range(100, 150), *range(50)}]

    @pytest.mark.parametrize("nodes", [100, 150, 777, 1000, 5000, 6000, 100_000])
    def test_the_size_of_the_sample(self, nodes: int) -> None:
        expected = max(100, nodes * max(5, 50 - nodes // 125) // 100)
        assert num_feasible_nodes_to_find(nodes, 0) == expected
