"""NodePorts, rule by rule."""

from __future__ import annotations

import pytest

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import ASSIGNED_POD_DELETE, NODE_ADD
from scheduler_core.framework.status import SKIP, SUCCESS, unschedulable
from scheduler_core.plugins.node_ports import NodePorts
from scheduler_core.testing.builders import make_node, make_pod
from tests.plugins.support import FakeHandle, filter_both, hint

PLUGIN = NodePorts({}, FakeHandle())
REJECTED = unschedulable("node(s) didn't have free ports for the requested pod ports")
PORT = {"containerPort": 80, "hostPort": 80}


@pytest.mark.parametrize(
    "used, wanted, free",
    [
        pytest.param((80,), (80,), False, id="same-port"),
        pytest.param((80,), (81,), True, id="other-port"),
        pytest.param((80, "UDP"), (80, "TCP"), True, id="other-protocol"),
        pytest.param((80, "TCP", "10.0.0.1"), (80, "TCP", "10.0.0.2"), True, id="other-address"),
        pytest.param((80, "TCP", "10.0.0.1"), (80,), False, id="wanted-wildcard"),
        pytest.param((80,), (80, "TCP", "10.0.0.1"), False, id="used-wildcard"),
        pytest.param((80, "TCP", "::"), (80, "TCP", "10.0.0.1"), True, id="::-is-no-wildcard"),
        pytest.param((80, "TCP", "::"), (80, "TCP", "::"), False, id="same-text"),
    ],
)
def test_conflicts(used: tuple[int, str, str], wanted: tuple[int, str, str], free: bool) -> None:
    holder = make_pod("holder").host_port(*used).node("busy").obj()
    nodes = FakeHandle([make_node("busy").obj(), make_node("idle").obj()], [holder]).nodes
    pod = make_pod("p").host_port(*wanted).obj()
    assert filter_both(PLUGIN, pod, nodes) == [SUCCESS if free else REJECTED, SUCCESS]


@pytest.mark.parametrize(
    "pod, expected",
    [
        pytest.param(make_pod("p").obj(), SKIP, id="no-ports"),
        pytest.param(make_pod("p").host_port(80).obj(), SUCCESS, id="container"),
        pytest.param(make_pod("p").init_container(ports=[PORT]).obj(), SKIP, id="init-container"),
        pytest.param(
            make_pod("p").init_container(ports=[PORT], sidecar=True).obj(), SUCCESS, id="sidecar"
        ),
    ],
)
def test_which_ports_count(pod: Pod, expected: object) -> None:
    assert PLUGIN.pre_filter(CycleState(), pod, FakeHandle().nodes) == (None, expected)


def test_a_pod_does_not_conflict_with_itself() -> None:
    pod = make_pod("p").host_port(80).host_port(80).obj()
    assert filter_both(PLUGIN, pod, FakeHandle([make_node("n").obj()]).nodes) == [SUCCESS]


def test_a_port_is_free_again_when_its_holder_is_gone() -> None:
    holder = make_pod("holder").host_port(80).node("n").obj()
    handle = FakeHandle([make_node("n").obj()], [holder])
    pod = make_pod("p").host_port(80).obj()
    assert filter_both(PLUGIN, pod, handle.nodes) == [REJECTED]
    handle.cache.remove_pod(holder)
    handle.refresh()
    assert filter_both(PLUGIN, pod, handle.nodes) == [SUCCESS]


def test_hints() -> None:
    pod = make_pod("p").host_port(80).obj()
    holder = make_pod("holder").host_port(80)
    assert hint(PLUGIN, ASSIGNED_POD_DELETE, pod, holder.obj()) == "Skip"
    assert hint(PLUGIN, ASSIGNED_POD_DELETE, pod, holder.node("n").obj()) == "Queue"
    nominated = make_pod("holder").host_port(80).nominated("n").obj()
    assert hint(PLUGIN, ASSIGNED_POD_DELETE, pod, nominated) == "Queue"
    other = make_pod("other").host_port(81).node("n").obj()
    assert hint(PLUGIN, ASSIGNED_POD_DELETE, pod, other) == "Skip"
    assert hint(PLUGIN, NODE_ADD, pod, None, make_node("n").obj()) == "Queue"
