"""Capacity is what scheduling copies one by one gives, until none fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.api import InvalidObject
from scheduler_core.capacity import Capacity, InvalidPod, capacity_of, pod_template
from scheduler_core.config import SchedulerConfiguration, configuration_from
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.interface import FilterPlugin, PreFilterPlugin, ReservePlugin
from scheduler_core.framework.status import SUCCESS, unschedulable
from scheduler_core.library import UnknownProfile
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.records import Outcome
from scheduler_core.snapshot_file import snapshot_of
from scheduler_core.testing.builders import (
    NodeBuilder,
    PodBuilder,
    make_node,
    make_pod,
    make_priority_class,
)
from scheduler_core.testing.harness import Harness
from tests.core.extender.conftest import extender
from tests.core.extender.server import FakeExtender, keep

__all__ = ["extender"]  # a fixture

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
GPU = "example.com/gpu"
MOST = 40


def configuration(plugins: tuple[type, ...] = (), **fields: Any) -> SchedulerConfiguration:
    registry = in_tree_registry()
    for plugin in plugins:
        registry.register(plugin.name, plugin)
    return configuration_from({**HEAD, **fields}, registry)


def capacity(
    nodes: list[NodeBuilder],
    pods: list[PodBuilder],
    pod: PodBuilder,
    *,
    config: SchedulerConfiguration | None = None,
    objects: tuple[Any, ...] = (),
    **options: Any,
) -> Capacity:
    snapshot = snapshot_of([builder.raw() for builder in (*nodes, *objects, *pods)])
    return capacity_of(snapshot, pod.raw(), config or configuration(), **options)


def one_by_one(
    harness: Harness, pod: PodBuilder, most: int = MOST
) -> tuple[dict[str, int], str | None]:
    """Nodes with the number of copies that a whole scheduler put there, and what it said of the
    first copy that did not fit at once."""
    placed: dict[str, int] = {}
    for number in range(most):
        raw = pod.raw()
        raw["metadata"].update(name=f"next-{number}", uid=f"next-{number}")
        harness.create("Pod", raw)
        harness.settle()
        first = harness.cycles(f"next-{number}")[0]
        if first.outcome is not Outcome.SCHEDULED:
            return placed, first.message
        placed[first.node] = placed.get(first.node, 0) + 1
    return placed, None


# -- the promise -----------------------------------------------------------------------------------


@st.composite
def nodes(draw: st.DrawFn) -> list[NodeBuilder]:
    made = []
    for i in range(draw(st.integers(0, 5))):
        node = make_node(f"n{i}").zone(draw(st.sampled_from("ab")))
        amounts = {
            "cpu": draw(st.sampled_from(("500m", "1", "2"))),
            "memory": draw(st.sampled_from(("1Gi", "2Gi"))),
            "pods": draw(st.sampled_from(("1", "3", "6"))),
        }
        if draw(st.booleans()):
            amounts[GPU] = draw(st.sampled_from(("1", "2")))
        node.capacity(amounts)
        if draw(st.integers(0, 3)) == 0:
            node.taint(
                "dedicated", effect=draw(st.sampled_from(("NoSchedule", "PreferNoSchedule")))
            )
        if draw(st.integers(0, 5)) == 0:
            node.unschedulable()
        made.append(node)
    return made


@st.composite
def pod_like(draw: st.DrawFn, name: str) -> PodBuilder:
    pod = make_pod(name).label(app=draw(st.sampled_from(("web", "db"))))
    asked = {"cpu": draw(st.sampled_from(("0", "200m", "600m"))), "memory": "300Mi"}
    if draw(st.integers(0, 3)) == 0:
        asked[GPU] = "1"
    pod.req(asked)
    if draw(st.booleans()):
        pod.toleration("dedicated")
    extra = draw(st.integers(0, 7))
    if extra == 0:
        pod.host_port(80)
    elif extra == 1:
        pod.node_affinity_in("topology.kubernetes.io/zone", "a")
    elif extra == 2:
        pod.pod_anti_affinity("topology.kubernetes.io/zone", {"app": "web"})
    elif extra == 3:
        pod.pod_affinity("topology.kubernetes.io/zone", {"app": "web"})
    elif extra == 4:
        pod.spread("topology.kubernetes.io/zone", {"app": "web"})
    return pod


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[NodeBuilder], list[PodBuilder]]:
    made = draw(nodes())
    bound = [
        draw(pod_like(f"old-{i}")).node(draw(st.sampled_from(made)).raw()["metadata"]["name"])
        for i in range(draw(st.integers(0, 4)) if made else 0)
    ]
    return made, bound


@settings(max_examples=60)
@given(cluster=clusters(), pod=pod_like("p"), important=st.booleans())
def test_equals_scheduling_copies_one_by_one(
    cluster: tuple[list[NodeBuilder], list[PodBuilder]], pod: PodBuilder, important: bool
) -> None:
    made, bound = cluster
    classes = (make_priority_class("high", 1000),)
    template = pod.raw()
    if important:  # what may evict others is not counted: the first cycle finds no room
        template["spec"]["priorityClassName"] = "high"
    harness = Harness(nodes=made, pods=bound, objects={"PriorityClass": classes})
    placed, message = one_by_one(harness, _Raw(template))
    snapshot = snapshot_of([b.raw() for b in (*made, *classes, *bound)])
    found = capacity_of(snapshot, template, configuration(), limit=MOST)
    assert dict(found.nodes) == placed
    assert found.copies == sum(placed.values())
    if message is None:
        assert found.stopped_by == "LimitReached"
    else:
        assert found.stopped_by == "Unschedulable"
        assert message.startswith(found.message)


class _Raw:
    """A template that is JSON already, where a builder is asked for."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self._raw = raw

    def raw(self) -> dict[str, Any]:
        return {**self._raw, "metadata": {**self._raw["metadata"]}}


@pytest.mark.parametrize(
    "percentage", [pytest.param(0, id="adaptive"), pytest.param(30, id="30 percent")]
)
def test_the_sample_of_nodes_is_the_same_too(percentage: int) -> None:
    made = [make_node(f"n{i:03}").capacity(cpu="9" if i > 140 else "1") for i in range(150)]
    for node in made[::7]:
        node.unschedulable()
    pod = make_pod("p").req(cpu="400m")
    fields = {"percentageOfNodesToScore": percentage}
    placed, _ = one_by_one(Harness(nodes=made, config=fields), pod, 200)
    found = capacity(made, [], pod, config=configuration(**fields), limit=200)
    assert found.copies == 200
    assert dict(found.nodes) == placed
    everywhere = capacity(made, [], pod, limit=200)
    assert dict(everywhere.nodes) != placed, "the percentage made no difference: a useless test"


class TestExtenders:
    """A real HTTP extender; see tests/core/extender for what extenders may do wrong."""

    def config(self, fake: FakeExtender) -> SchedulerConfiguration:
        entry = {"urlPrefix": fake.url, "filterVerb": "filter", "nodeCacheCapable": True}
        return configuration(extenders=[entry])

    def test_are_asked(self, extender: Callable[..., FakeExtender]) -> None:
        made = [make_node(name).capacity(cpu="2") for name in "ab"]
        fake = extender({"filter": keep("b")})
        found = capacity(made, [], make_pod("p").req(cpu="1"), config=self.config(fake))
        assert dict(found.nodes) == {"b": 2}
        assert found.message.startswith("0/2 nodes are available: ")

    def test_one_that_is_dead_is_an_error(self, extender: Callable[..., FakeExtender]) -> None:
        fake = extender({})
        config = self.config(fake)
        fake.stop()
        found = capacity([make_node("a")], [], make_pod("p"), config=config)
        assert (found.copies, found.stopped_by) == (0, "Error")
        assert "/filter" in found.message


# -- what is said ----------------------------------------------------------------------------------


def test_where_and_what_stops_the_next_one() -> None:
    made = [
        make_node("small").capacity(cpu="1"),
        make_node("large").capacity(cpu="3"),
        make_node("tainted").capacity(cpu="8").taint("dedicated"),
    ]
    bound = [make_pod("old").req(cpu="500m").node("large")]
    found = capacity(made, bound, make_pod("p").req(cpu="700m"))
    assert found == Capacity(
        pod="default/p",
        copies=4,
        nodes={"small": 1, "large": 3},
        nodes_total=3,
        stopped_by="Unschedulable",
        message="0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu.",
        reasons={"Insufficient cpu": 2, "node(s) had untolerated taint(s)": 1},
        plugins=("NodeResourcesFit", "TaintToleration"),
    )


def test_no_nodes() -> None:
    found = capacity([], [], make_pod("p"))
    assert (found.copies, found.message) == (0, "no nodes available to schedule pods")


def test_a_pod_that_pre_filter_turns_down() -> None:
    found = capacity(
        [make_node("n")],
        [],
        make_pod("p").affinity(
            {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchFields": [
                                    {"key": "metadata.name", "operator": "In", "values": ["n"]},
                                    {"key": "metadata.name", "operator": "In", "values": ["m"]},
                                ]
                            }
                        ]
                    }
                }
            }
        ),
    )
    assert found.message == "0/1 nodes are available: pod affinity terms conflict."
    assert found.plugins == ("NodeAffinity",)


def test_the_limit() -> None:
    seen: list[int] = []
    found = capacity([make_node("n")], [], make_pod("p"), limit=3, progress=seen.append)
    assert (found.copies, found.stopped_by, found.message) == (3, "LimitReached", "")
    assert seen == [1, 2, 3]


class Broken(FilterPlugin):
    """Raises once there is a pod on the node."""

    name = "Broken"

    def __init__(self, args: Any, handle: Any) -> None: ...

    def filter(self, state: Any, pod: Any, node_info: Any) -> Any:
        if node_info.pods:
            raise RuntimeError("the disk is on fire")
        return SUCCESS


class OnePerCluster(PreFilterPlugin, ReservePlugin):
    """Gives out one thing at Reserve; a second pod is turned down there."""

    name = "OnePerCluster"

    def __init__(self, args: Any, handle: Any) -> None:
        self.holder = ""

    def pre_filter(self, state: CycleState, pod: Any, nodes: Any) -> Any:
        state.write(self.name, pod.uid)
        return None, SUCCESS

    def reserve(self, state: CycleState, pod: Any, node_name: str) -> Any:
        assert state.read(self.name, str) == pod.uid, "Reserve sees the state of its own cycle"
        if self.holder:
            return unschedulable("the only licence is taken")
        self.holder = pod.uid
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Any, node_name: str) -> None:
        if self.holder == pod.uid:
            self.holder = ""


def enabled(plugin: type) -> dict[str, Any]:
    return {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": plugin.name}]}}}]}


def test_an_error_ends_it_and_is_told() -> None:
    config = configuration((Broken,), **enabled(Broken))
    found = capacity([make_node("n")], [], make_pod("p"), config=config)
    assert (found.copies, found.stopped_by) == (1, "Error")
    assert found.message == 'running "Broken" filter plugin: the disk is on fire'


def test_what_reserve_turns_down_ends_it() -> None:
    config = configuration((OnePerCluster,), **enabled(OnePerCluster))
    found = capacity([make_node("n")], [], make_pod("p"), config=config)
    assert (found.copies, dict(found.nodes)) == (1, {"n": 1})
    assert found.message == "0/1 nodes are available: 1 the only licence is taken."
    assert found.plugins == ("OnePerCluster",)


# -- the pod ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pod, copies",
    [
        pytest.param(make_pod("p").req(cpu="1"), 3, id="a new pod"),
        pytest.param(make_pod("p").req(cpu="1").node("n"), 3, id="one that runs already"),
        pytest.param(make_pod("p").req(cpu="1").phase("Succeeded"), 3, id="one that has ended"),
        pytest.param(make_pod("p").req(cpu="1").gate("g"), 3, id="a gated pod"),
        pytest.param(make_pod("p").container(limits={"cpu": "2"}), 1, id="limits are requests"),
        pytest.param(make_pod("old-copy-0").req(cpu="1"), 3, id="a name like that of a copy"),
    ],
)
def test_copies_of(pod: PodBuilder, copies: int) -> None:
    bound = [make_pod("old").req(cpu="1").node("n")]
    assert capacity([make_node("n").capacity(cpu="4")], bound, pod).copies == copies


def test_what_is_copied_stays_in_the_cluster_and_ended_pods_take_no_room() -> None:
    node = make_node("n").capacity(cpu="4")
    web = make_pod("web").req(cpu="1").node("n")
    done = make_pod("done").req(cpu="1").node("n").phase("Succeeded")
    assert capacity([node], [web, done], web).copies == 3


def test_the_priority_is_that_of_its_class() -> None:
    classes = tuple(
        obj.obj()
        for obj in (make_priority_class("high", 9), make_priority_class("low", 3).global_default())
    )

    def priority(**spec: Any) -> int:
        pod = make_pod("p").raw()
        pod["spec"].update(spec)
        return int(pod_template(pod, classes)["spec"]["priority"])

    assert priority(priorityClassName="high") == 9
    assert priority() == 3
    assert priority(priority=5) == 5
    assert priority(priorityClassName="system-node-critical") == 2_000_001_000
    with pytest.raises(InvalidPod, match="no PriorityClass with name other was found"):
        priority(priorityClassName="other")


def test_a_template_leaves_what_it_was_made_of_alone() -> None:
    pod = make_pod("p").node("n").gate("g").raw()
    before = repr(pod)
    template = pod_template(pod)
    assert repr(pod) == before
    assert "nodeName" not in template["spec"] and "uid" not in template["metadata"]


def test_a_generated_name() -> None:
    pod = make_pod("p").raw()
    pod["metadata"] = {"generateName": "web-"}
    assert pod_template(pod)["metadata"] == {"name": "web"}


@pytest.mark.parametrize(
    "pod, text",
    [
        pytest.param({"kind": "Node"}, "a Pod is wanted, not a Node", id="another kind"),
        pytest.param({"kind": "Pod"}, "a Pod with metadata and spec is wanted", id="no spec"),
    ],
)
def test_what_is_no_pod(pod: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidPod) as raised:
        capacity_of(snapshot_of([]), pod, configuration())
    assert str(raised.value) == text


def test_a_malformed_pod_is_named() -> None:
    pod = make_pod("p").req(cpu="many").raw()
    with pytest.raises(InvalidObject, match="not a quantity"):
        capacity_of(snapshot_of([]), pod, configuration())


class TestProfiles:
    config = configuration(
        profiles=[
            {"schedulerName": "first"},
            {
                "schedulerName": "second",
                "plugins": {"filter": {"disabled": [{"name": "NodeUnschedulable"}]}},
            },
        ]
    )
    nodes = [make_node("n").capacity(cpu="4", pods="2").unschedulable()]

    def test_the_pod_names_its_profile(self) -> None:
        pod = make_pod("p")
        assert capacity(self.nodes, [], pod.scheduler_name("first"), config=self.config).copies == 0
        found = capacity(self.nodes, [], pod.scheduler_name("second"), config=self.config)
        assert found.copies == 2

    def test_without_a_name_it_is_the_first(self) -> None:
        raw = make_pod("p").raw()
        del raw["spec"]["schedulerName"]
        snapshot = snapshot_of([node.raw() for node in self.nodes])
        assert capacity_of(snapshot, raw, self.config).copies == 0

    def test_an_unknown_one_is_a_fault(self) -> None:
        with pytest.raises(UnknownProfile) as raised:
            capacity(self.nodes, [], make_pod("p").scheduler_name("third"), config=self.config)
        text = 'the configuration has no profile "third" (it has: first, second)'
        assert str(raised.value) == text
