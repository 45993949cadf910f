"""The example plugin with arguments and several extension points."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.plugins.keep_services_together import STATE, Home, KeepServicesTogether
from scheduler_core.api import Pod, Service
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.errors import PluginConfigError
from scheduler_core.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    ActionType,
    ClusterEvent,
    EventResource,
)
from scheduler_core.framework.status import SKIP, SUCCESS
from scheduler_core.testing.builders import NodeBuilder, PodBuilder, make_node, make_pod
from scheduler_core.testing.harness import Harness
from tests.plugins.support import FakeHandle, filter_both, hint, score_both

ZONE = "topology.kubernetes.io/zone"
MISSING = f"node(s) didn't have the label {ZONE}"
ELSEWHERE = f"node(s) didn't have the {ZONE} of the other pods of the service"
NODES = (
    make_node("a1").zone("a"),
    make_node("a2").zone("a"),
    make_node("b1").zone("b"),
    make_node("none"),
)


def service(name: str = "web", namespace: str = "default", **selector: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": selector or {"app": "web"}},
    }


def web(name: str, node: str = "") -> PodBuilder:
    pod = make_pod(name).label(app="web")
    return pod.node(node) if node else pod


class Scene:
    """A plugin, its nodes and services, and PreFilter done for one pod."""

    def __init__(
        self,
        pod: PodBuilder,
        *bound: PodBuilder,
        nodes: tuple[NodeBuilder, ...] = NODES,
        services: tuple[dict[str, Any], ...] = (service(),),
        **args: Any,
    ) -> None:
        self.handle = FakeHandle([n.obj() for n in nodes], [p.obj() for p in bound])
        self.handle.watch(*(Service.from_dict(raw) for raw in services))
        self.plugin = KeepServicesTogether({"label": ZONE, **args}, self.handle)  # type: ignore[arg-type]
        self.pod: Pod = pod.obj()
        self.state = CycleState()
        _, self.status = self.plugin.pre_filter(self.state, self.pod, self.handle.nodes)

    def rejected(self) -> dict[str, str]:
        """Both forms: node -> reason."""
        nodes = self.handle.nodes
        statuses = filter_both(self.plugin, self.pod, nodes, self.state)
        return {n: s.message for n, s in zip(nodes.names, statuses, strict=True) if s.message}

    def scores(self) -> dict[str, int]:
        """Both forms, raw."""
        nodes = self.handle.nodes
        raw = score_both(self.plugin, self.pod, nodes, self.state)
        return dict(zip(nodes.names, raw, strict=True))


class TestFilter:
    def test_the_first_pod_goes_anywhere_where_the_label_is(self) -> None:
        assert Scene(web("p")).rejected() == {"none": MISSING}

    def test_the_next_goes_where_the_first_went(self) -> None:
        found = Scene(web("p"), web("old", "a1")).rejected()
        assert found == {"b1": ELSEWHERE, "none": MISSING}

    def test_where_they_are_apart_already_both_places_are_fine(self) -> None:
        assert Scene(web("p"), web("x", "a1"), web("y", "b1")).rejected() == {"none": MISSING}

    @pytest.mark.parametrize(
        "bound",
        [
            pytest.param(make_pod("db").label(app="db").node("a1"), id="another service's"),
            pytest.param(web("w", "a1").namespace("other"), id="of another namespace"),
            pytest.param(web("w", "none"), id="on a node without the label"),
        ],
    )
    def test_pods_that_do_not_count(self, bound: PodBuilder) -> None:
        assert Scene(web("p"), bound).rejected() == {"none": MISSING}

    def test_two_services_of_one_pod_are_one_group(self) -> None:
        both = (service(), service("tier", tier="front"))
        mate = make_pod("mate").label(tier="front").node("b1")
        pod = make_pod("p").label(app="web", tier="front")
        assert Scene(pod, mate, services=both).rejected() == {
            "a1": ELSEWHERE,
            "a2": ELSEWHERE,
            "none": MISSING,
        }

    @pytest.mark.parametrize(
        "pod, services",
        [
            pytest.param(make_pod("p"), (service(),), id="no service selects it"),
            pytest.param(web("p"), (), id="there is no service"),
            pytest.param(web("p"), (service(namespace="other"),), id="in another namespace"),
        ],
    )
    def test_pods_without_service_are_left_alone(
        self, pod: PodBuilder, services: tuple[dict[str, Any], ...]
    ) -> None:
        assert Scene(pod, web("old", "a1"), services=services).status == SKIP

    def test_not_required(self) -> None:
        scene = Scene(web("p"), web("old", "a1"), required=False)
        assert scene.status == SKIP, "Filter is not asked"
        assert scene.plugin.pre_score(scene.state, scene.pod, scene.handle.nodes) == SUCCESS
        assert scene.scores() == {"a1": 1, "a2": 1, "b1": 0, "none": 0}


class TestScore:
    def test_more_pods_of_the_service_are_better(self) -> None:
        scene = Scene(web("p"), web("x", "a1"), web("y", "b1"), web("z", "a2"))
        assert scene.plugin.pre_score(scene.state, scene.pod, scene.handle.nodes) == SUCCESS
        assert scene.scores() == {"a1": 2, "a2": 2, "b1": 1, "none": 0}
        nodes = scene.handle.nodes
        raw = scene.plugin.score_nodes(scene.state, scene.pod, nodes)
        normal = scene.plugin.normalize_score(scene.state, scene.pod, nodes, raw)
        found = dict(zip(nodes.names, normal.tolist(), strict=True))
        assert found == {"a1": 100, "a2": 100, "b1": 50, "none": 0}

    @pytest.mark.parametrize(
        "pod",
        [pytest.param(web("p"), id="the first"), pytest.param(make_pod("p"), id="no service")],
    )
    def test_nothing_to_score(self, pod: PodBuilder) -> None:
        scene = Scene(pod)
        assert scene.plugin.pre_score(scene.state, scene.pod, scene.handle.nodes) == SKIP


class TestWhatIf:
    """Pods added and removed in thought, as preemption and nominated pods want it."""

    def test_removing_the_last_one_opens_every_place(self) -> None:
        old = web("old", "a1")
        scene = Scene(web("p"), old)
        twin = scene.state.clone()
        node = scene.handle.nodes.get("a1")
        assert node is not None
        assert scene.plugin.remove_pod(twin, scene.pod, old.obj(), node) == SUCCESS
        assert twin.read(STATE, Home).pods == {}
        assert scene.rejected()["b1"] == ELSEWHERE, "the state itself has not changed"
        assert scene.plugin.add_pod(twin, scene.pod, old.obj(), node) == SUCCESS
        assert twin.read(STATE, Home).pods == {"a": 1}

    def test_others_do_not_count_here_either(self) -> None:
        scene = Scene(web("p"))
        node = scene.handle.nodes.get("a1")
        assert node is not None
        scene.plugin.add_pod(scene.state, scene.pod, make_pod("db").obj(), node)
        assert scene.state.read(STATE, Home).pods == {}


def _node(zone: str = "", **more: str) -> Any:
    node = make_node("n").label(more)
    return (node.zone(zone) if zone else node).obj()


@pytest.mark.parametrize(
    "event, old, new, answer",
    [
        pytest.param(NODE_ADD, None, _node("a"), "Queue", id="a node with the label"),
        pytest.param(NODE_ADD, None, _node(), "Skip", id="a node without it"),
        pytest.param("label", _node(), _node("a"), "Queue", id="the label came"),
        pytest.param("label", _node("a"), _node("b"), "Queue", id="its value changed"),
        pytest.param("label", _node("a"), _node("a", x="y"), "Skip", id="another label changed"),
        pytest.param("label", _node("a"), _node(), "Skip", id="the label went"),
        pytest.param(ASSIGNED_POD_DELETE, web("w", "a1").obj(), None, "Queue", id="a mate left"),
        pytest.param(ASSIGNED_POD_DELETE, make_pod("x").obj(), None, "Skip", id="a stranger left"),
        pytest.param(
            ASSIGNED_POD_ADD, None, web("w", "a1").obj(), "Unregistered", id="a mate came"
        ),
    ],
)
def test_what_wakes_a_pod_up(event: Any, old: Any, new: Any, answer: str) -> None:
    if event == "label":
        event = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
    scene = Scene(web("p"))
    assert hint(scene.plugin, event, scene.pod, old, new) == answer


@pytest.mark.parametrize(
    "args, message",
    [
        pytest.param({}, "label: Required value: the name of a node label", id="no label"),
        pytest.param(
            {"label": 3}, "label: Required value: the name of a node label", id="a number"
        ),
        pytest.param(
            {"label": "z", "required": "no"},
            "required: Invalid value: must be true or false",
            id="no boolean",
        ),
        pytest.param({"label": "z", "zone": "a"}, "zone: there is no such argument", id="unknown"),
    ],
)
def test_bad_arguments(args: dict[str, Any], message: str) -> None:
    with pytest.raises(PluginConfigError) as raised:
        KeepServicesTogether(args, FakeHandle())  # type: ignore[arg-type]
    assert str(raised.value) == message


zones = st.sampled_from(("", "a", "b"))
apps = st.sampled_from(("web", "db"))


@given(
    node_zones=st.lists(zones, min_size=1, max_size=6),
    bound=st.lists(st.tuples(apps, st.integers(0, 5)), max_size=6),
    missing_is_a_value=st.booleans(),
)
def test_both_forms_agree(
    node_zones: list[str], bound: list[tuple[str, int]], missing_is_a_value: bool
) -> None:
    nodes = []
    for i, zone in enumerate(node_zones):
        node = make_node(f"n{i}")
        nodes.append(node.label({ZONE: zone}) if zone or missing_is_a_value else node)
    pods = [
        make_pod(f"p{i}").label(app=app).node(f"n{row % len(nodes)}")
        for i, (app, row) in enumerate(bound)
    ]
    scene = Scene(web("p"), *pods, nodes=tuple(nodes))
    scene.rejected()
    scene.scores()


class TestInTheScheduler:
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": "KeepServicesTogether", "weight": 3}]}},
        "pluginConfig": [{"name": "KeepServicesTogether", "args": {"label": ZONE}}],
    }

    def harness(self, *pods: PodBuilder) -> Harness:
        return Harness(
            nodes=[node.capacity(cpu="2") for node in NODES],
            pods=pods,
            objects={"Service": [service()]},
            profile=self.profile,
            plugins=[KeepServicesTogether],
        )

    def test_a_service_stays_in_one_zone_until_it_is_full(self) -> None:
        h = self.harness(*(web(f"w{i}").req(cpu="1") for i in range(5)))
        h.settle()
        assert [h.node_of(f"w{i}") for i in range(5)] == ["a1", "a2", "a1", "a2", ""]
        said = h.condition("w4")["message"]
        assert "0/4 nodes are available: " in said
        assert f"1 {ELSEWHERE}" in said and f"1 {MISSING}" in said

    def test_it_may_move_once_the_last_pod_has_gone(self) -> None:
        h = self.harness(web("w0").req(cpu="2"))
        h.settle()
        assert h.node_of("w0") == "a1"
        h.create("Pod", make_pod("x").req(cpu="2").node("a2"), web("w1").req(cpu="2"))
        h.settle()
        assert h.node_of("w1") == ""
        h.create("Pod", make_pod("y").req(cpu="1").node("a1"))  # so that w1 will not fit there
        h.cluster.delete("Pod", "default", "w0", grace_period_seconds=0)
        h.advance(10)
        assert h.node_of("w1") == "b1"

    def test_the_plugin_says_so_in_the_decision(self) -> None:
        h = self.harness(web("w0").req(cpu="1"), web("w1").req(cpu="1"))
        h.settle()
        cycle = h.cycle("w1")
        assert cycle.matrix is not None
        assert "KeepServicesTogether" in cycle.matrix.plugins


def test_preemption_may_help_elsewhere_but_not_where_the_label_is_missing() -> None:
    scene = Scene(web("p"), web("old", "a1"))
    nodes = scene.handle.nodes
    statuses = scene.plugin.filter_nodes(scene.state, scene.pod, nodes)
    codes = {name: status.code.label for name, status in zip(nodes.names, statuses, strict=True)}
    assert codes["b1"] == "Unschedulable"
    assert codes["none"] == "UnschedulableAndUnresolvable"
