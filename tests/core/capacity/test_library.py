"""The framework without queue or cluster, as an autoscaler uses it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.algorithm import SeededRandom
from scheduler_core.api import Pod
from scheduler_core.backend.cache import CacheError
from scheduler_core.config import configuration_from
from scheduler_core.framework.runtime.framework import ProfileError
from scheduler_core.framework.status import SUCCESS
from scheduler_core.library import UnknownNode, UnknownProfile, framework_for
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.testing.builders import make_node, make_pod
from scheduler_core.testing.harness import Harness

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
SMALL = make_node("small").capacity(cpu="1").obj()
LARGE = make_node("large").capacity(cpu="4").obj()
TAINTED = make_node("tainted").capacity(cpu="8").taint("dedicated").obj()


def named_nodes(*names: str) -> dict[str, object]:
    """Affinity to nodes by name: PreFilter leaves only these."""
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
        for name in names
    ]
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }
    }


def test_filter_answers_for_every_node() -> None:
    cluster = framework_for(
        [SMALL, LARGE, TAINTED], [make_pod("old").req(cpu="3").node("large").obj()]
    )
    statuses = cluster.filter(make_pod("p").req(cpu="2").obj())
    assert {name: statuses[i].message for i, name in enumerate(cluster.nodes.names)} == {
        "small": "Insufficient cpu",
        "large": "Insufficient cpu",
        "tainted": "node(s) had untolerated taint(s)",
    }
    assert [s.code.label for s in statuses] == [
        "UnschedulableAndUnresolvable",
        "Unschedulable",
        "UnschedulableAndUnresolvable",
    ]


def test_filter_where_pre_filter_names_the_nodes() -> None:
    cluster = framework_for([SMALL, LARGE, TAINTED])
    pod = make_pod("p").req(cpu="1").affinity(named_nodes("large", "tainted", "gone")).obj()
    assert [s.message for s in cluster.filter(pod)] == [
        "node(s) didn't satisfy plugin(s) [NodeAffinity]",
        "",
        "node(s) had untolerated taint(s)",
    ]
    assert cluster.fits(pod, "small").message == "node(s) didn't satisfy plugin(s) [NodeAffinity]"
    assert cluster.fits(pod, "large") == SUCCESS


def test_filter_where_pre_filter_turns_the_pod_down() -> None:
    cluster = framework_for([SMALL, LARGE])
    affinity = named_nodes("large")
    terms = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]  # type: ignore[index]
    fields = terms["nodeSelectorTerms"][0]["matchFields"]
    fields.append({"key": "metadata.name", "operator": "In", "values": ["small"]})
    pod = make_pod("p").affinity(affinity).obj()
    assert [s.message for s in cluster.filter(pod)] == ["pod affinity terms conflict"] * 2
    assert cluster.fits(pod, "large").message == "pod affinity terms conflict"


def test_changes_count_at_once() -> None:
    pod = make_pod("p").req(cpu="3").obj()
    cluster = framework_for([SMALL])
    assert not cluster.filter(pod).feasible.any()
    cluster.add(LARGE)
    assert cluster.fits(pod, "large") == SUCCESS
    placed = cluster.place(pod, "large")
    assert placed.node_name == "large" and pod.node_name == ""
    twin = make_pod("q").req(cpu="3").obj()
    assert cluster.fits(twin, "large").message == "Insufficient cpu"
    cluster.remove(placed)
    assert cluster.fits(twin, "large") == SUCCESS
    cluster.remove(LARGE)
    assert list(cluster.nodes.names) == ["small"]


def test_a_changed_node_replaces_the_old_one() -> None:
    cluster = framework_for([SMALL])
    cluster.add(make_node("small").capacity(cpu="2").obj())
    assert cluster.fits(make_pod("p").req(cpu="2").obj(), "small") == SUCCESS
    assert len(cluster.nodes) == 1


def test_nominated_pods_take_their_room() -> None:
    waiting = make_pod("w").req(cpu="3").priority(10).nominated("large").obj()
    cluster = framework_for([LARGE], [waiting])
    pod = make_pod("p").req(cpu="3").obj()
    assert cluster.fits(pod, "large").message == "Insufficient cpu"
    assert cluster.filter(pod)[0].message == "Insufficient cpu"
    cluster.remove(waiting)
    assert cluster.fits(pod, "large") == SUCCESS


def test_pods_without_uid_are_told_apart() -> None:
    pods = []
    for name in ("a", "b"):
        raw = make_pod(name).req(cpu="2").node("large").raw()
        raw["metadata"].pop("uid", None)
        pods.append(Pod.from_dict(raw))
    cluster = framework_for([LARGE], pods)
    assert cluster.fits(make_pod("p").req(cpu="1").obj(), "large").message == "Insufficient cpu"
    cluster.remove(pods[0])
    assert cluster.fits(make_pod("p").req(cpu="1").obj(), "large") == SUCCESS


def test_pods_that_have_ended_take_no_room() -> None:
    ended = make_pod("old").req(cpu="4").node("large").phase("Failed").obj()
    cluster = framework_for([LARGE], [ended])
    assert cluster.fits(make_pod("p").req(cpu="4").obj(), "large") == SUCCESS


def test_objects_are_there_for_plugins_that_ask() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {}}
    from scheduler_core.api import parse_object

    cluster = framework_for([SMALL], objects=[parse_object(service)])
    assert cluster.framework.informer("Service").get("default/s") is not None


def test_schedule_chooses_and_places_nothing() -> None:
    cluster = framework_for([SMALL, LARGE, TAINTED])
    pod = make_pod("p").req(cpu="1").obj()
    assert [cluster.schedule(pod).node_name for _ in range(2)] == ["large", "large"]
    assert cluster.nodes.pod_count.tolist() == [0, 0, 0]


def test_ties_as_wanted() -> None:
    nodes = [make_node(f"n{i}").obj() for i in range(8)]
    pod = make_pod("p").obj()
    assert framework_for(nodes).schedule(pod).node_name == "n0"
    cluster = framework_for(nodes, tie_breaker=SeededRandom(1))
    assert len({cluster.schedule(pod).node_name for _ in range(30)}) > 1


class TestConfigurations:
    def test_a_profile_of_several(self) -> None:
        off = {"plugins": {"filter": {"disabled": [{"name": "TaintToleration"}]}}}
        config = configuration_from(
            {**HEAD, "profiles": [{"schedulerName": "a"}, {"schedulerName": "b", **off}]},
            in_tree_registry(),
        )
        pod = make_pod("p").obj()
        rejected = "node(s) had untolerated taint(s)"
        assert framework_for([TAINTED], config=config).fits(pod, "tainted").message == rejected
        other = framework_for([TAINTED], config=config, profile="b")
        assert other.fits(pod, "tainted") == SUCCESS
        assert other.framework.profile_name == "b"
        with pytest.raises(UnknownProfile, match=r'has no profile "c" \(it has: a, b\)'):
            framework_for([TAINTED], config=config, profile="c")

    def test_a_plugin_that_refuses_its_arguments(self) -> None:
        path = "examples.plugins.prefer_node_label:PreferNodeLabel"
        config = configuration_from(
            {**HEAD, "profiles": [{"plugins": {"score": {"enabled": [{"name": path}]}}}]},
            in_tree_registry(),
        )
        with pytest.raises(ProfileError, match="label: Required value: the name of a node label"):
            framework_for([], config=config)


class TestMistakes:
    def test_a_node_that_is_not_there(self) -> None:
        with pytest.raises(UnknownNode, match="there is no node n"):
            framework_for([]).fits(make_pod("p").obj(), "n")

    def test_a_pod_twice(self) -> None:
        pod = make_pod("p").node("small").obj()
        with pytest.raises(CacheError):
            framework_for([SMALL], [pod, pod])

    def test_removing_what_is_not_there(self) -> None:
        with pytest.raises(CacheError):
            framework_for([]).remove(SMALL)
        with pytest.raises(CacheError):
            framework_for([SMALL]).remove(make_pod("p").node("small").obj())


@settings(max_examples=40)
@given(
    cpus=st.lists(st.sampled_from(("1", "2", "4")), min_size=1, max_size=5),
    asked=st.lists(st.sampled_from(("200m", "900m", "2")), min_size=1, max_size=12),
)
def test_filters_alone_agree_with_the_whole_scheduler(cpus: list[str], asked: list[str]) -> None:
    """Whatever the scheduler decided, the library says the same of the state before it."""
    nodes = [make_node(f"n{i}").capacity(cpu=cpu) for i, cpu in enumerate(cpus)]
    harness = Harness(nodes=nodes)
    cluster = framework_for([node.obj() for node in nodes])
    for i, cpu in enumerate(asked):
        pod = make_pod(f"p{i}").req(cpu=cpu)
        result = cluster.schedule(pod.obj())
        statuses = cluster.filter(pod.obj())
        for row, name in enumerate(cluster.nodes.names):
            assert cluster.fits(pod.obj(), name) == statuses[row]
        harness.create("Pod", pod)
        harness.settle()
        assert result.node_name == harness.node_of(f"p{i}")
        assert bool(result.node_name) == bool(statuses.feasible.any())
        if result.node_name:
            cluster.place(pod.obj(), result.node_name)
