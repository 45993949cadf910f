"""Evaluation: answers beyond what the recordings show."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.api import KubeObject
from scheduler_core.config import configuration_from
from scheduler_core.evaluation import Evaluation, UnknownPod
from scheduler_core.framework.errors import PluginConfigError
from scheduler_core.framework.interface import FilterPlugin
from scheduler_core.framework.runtime.framework import ProfileError
from scheduler_core.framework.status import SUCCESS, Status
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.testing.builders import make_node, make_pod


def config(*profiles: dict[str, Any], registry: Any = None) -> Any:
    without = {"plugins": {"multiPoint": {"disabled": [{"name": "DynamicResources"}]}}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": list(profiles) or [{"schedulerName": "default-scheduler", **without}],
    }
    return configuration_from(document, registry or in_tree_registry())


def node(name: str, cpu: str = "4") -> KubeObject:
    return make_node(name).capacity(cpu=cpu, memory="8Gi", pods="10").obj()


def answer(*objects: KubeObject, pod: str = "default/p", profiles: Any = None) -> dict[str, Any]:
    return Evaluation(objects, profiles or config()).evaluate(pod)


def test_the_only_node_that_fits_is_scored_too() -> None:
    found = answer(node("a"), node("b", "1"), make_pod("p").req(cpu="2").obj())
    assert (found["status"], found["feasible"], found["chosen"]) == ("Feasible", ["a"], "a")
    assert found["total"]["a"] == sum(
        found["normalized"][p]["a"] * w for p, w in found["weights"].items()
    )
    assert list(found["filtered"]) == ["b"]
    assert found["unschedulablePlugins"] == ["NodeResourcesFit"]


def test_of_several_best_nodes_the_smallest_name_is_chosen() -> None:
    found = answer(node("b"), node("a"), node("c", "1"), make_pod("p").req(cpu="500m").obj())
    assert found["best"] == ["a", "b"]
    assert found["chosen"] == "a"


def test_nothing_is_assumed_between_two_pods() -> None:
    state = Evaluation([node("a"), *(make_pod(name).req(cpu="4").obj() for name in "pq")], config())
    assert [state.evaluate(f"default/{name}")["chosen"] for name in "pq"] == ["a", "a"]


def test_a_thought_about_eviction_leaves_no_trace() -> None:
    low = make_pod("low").req(cpu="4").node("a").obj()
    boss = make_pod("p").req(cpu="4").priority(10).obj()
    state = Evaluation([node("a"), low, boss], config())
    first, second = state.evaluate("default/p"), state.evaluate("default/p")
    assert first == second
    assert first["preemption"] == {
        "status": {"code": "Success"},
        "candidates": [{"node": "a", "victims": ["default/low"], "pdbViolations": 0}],
        "nominated": "a",
    }
    assert first["message"] == "0/1 nodes are available: 1 Insufficient cpu."


def test_pods_that_have_ended_hold_nothing() -> None:
    done = make_pod("done").req(cpu="4").node("a").phase("Succeeded").obj()
    assert answer(node("a"), done, make_pod("p").req(cpu="4").obj())["chosen"] == "a"


def test_a_pod_nominated_by_its_status_keeps_its_room() -> None:
    rival = make_pod("rival").req(cpu="4").nominated("a").obj()
    found = answer(node("a"), rival, make_pod("p").req(cpu="4").obj())
    assert found["status"] == "Unschedulable"


def test_without_nodes_there_is_only_the_message() -> None:
    assert answer(make_pod("p").obj()) == {
        "pod": "default/p",
        "status": "Unschedulable",
        "message": "no nodes available to schedule pods",
    }


def test_a_broken_plugin_is_an_error() -> None:
    """TaintToleration cannot score without its PreScore."""
    profile = {"plugins": {"preScore": {"disabled": [{"name": "TaintToleration"}]}}}
    broken = {"schedulerName": "default-scheduler", **profile}
    found = answer(node("a"), make_pod("p").obj(), profiles=config(broken))
    assert found["status"] == "Error"
    assert 'plugin "TaintToleration" failed with' in found["message"]
    assert set(found) == {"pod", "status", "message"}


def test_without_post_filter_plugins_nothing_is_said_of_preemption() -> None:
    names = [{"name": "DefaultPreemption"}, {"name": "DynamicResources"}]
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"disabled": names}},
    }
    found = answer(node("a", "1"), make_pod("p").req(cpu="4").obj(), profiles=config(profile))
    assert found["message"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert "preemption" not in found


def test_each_pod_is_evaluated_by_the_profile_it_names_or_the_first() -> None:
    packing = {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu"}]}}
    profiles = config(
        {"schedulerName": "spread"},
        {
            "schedulerName": "pack",
            "pluginConfig": [{"name": "NodeResourcesFit", "args": packing}],
        },
    )
    objects = [node("a"), make_pod("x").req(cpu="1").node("a").obj(), node("b")]
    pods = [
        make_pod(name).req(cpu="1").scheduler_name(name).obj()
        for name in ("spread", "pack", "unheard-of")
    ]
    state = Evaluation([*objects, *pods], profiles)
    raw = [state.evaluate(pod.key)["raw"]["NodeResourcesFit"] for pod in pods]
    assert raw[1] == {"a": 50, "b": 25}
    assert raw[0] == raw[2] != raw[1]


def test_pending_are_all_pods_without_a_node_in_order() -> None:
    objects = [make_pod("z").obj(), make_pod("x").node("a").obj(), make_pod("b").obj()]
    assert Evaluation(objects, config()).pending == ("default/z", "default/b")


@pytest.mark.parametrize(
    ("key", "words"),
    [
        pytest.param("default/nope", "there is no pod default/nope", id="unknown"),
        pytest.param("default/x", "pod default/x runs on node a already", id="bound"),
    ],
)
def test_pods_that_cannot_be_evaluated(key: str, words: str) -> None:
    state = Evaluation([node("a"), make_pod("x").node("a").obj()], config())
    with pytest.raises(UnknownPod) as caught:
        state.evaluate(key)
    assert str(caught.value) == words


class Picky(FilterPlugin):
    """Likes no arguments."""

    name = "Picky"

    def __init__(self, args: Any, handle: Any) -> None:
        raise PluginConfigError("colour", "Required value")

    def filter(self, state: Any, pod: Any, node_info: Any) -> Status:
        return SUCCESS


def test_a_plugin_that_refuses_its_arguments_does_so_at_once() -> None:
    registry = in_tree_registry()
    registry.register("Picky", Picky)
    plugins = {"filter": {"enabled": [{"name": "Picky"}]}}
    faulty = config({"schedulerName": "x", "plugins": plugins}, registry=registry)
    with pytest.raises(ProfileError, match='initializing plugin "Picky": colour: Required value'):
        Evaluation([], faulty)
