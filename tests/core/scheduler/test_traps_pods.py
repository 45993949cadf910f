"""Traps 6, 7, 13 and 14 (see ``traps``): whose pods count, affinity and spreading."""

from __future__ import annotations

import math

import pytest

from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.runtime import filtering
from scheduler_core.testing.builders import PodBuilder, make_namespace, make_node, make_pod
from tests.core.scheduler.traps import ZONE, Json, affinity, evaluate, scored, standalone

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
