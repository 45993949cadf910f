"""Which events wake a pod that a plugin of the default profile turned down (kube-scheduler 1.36): a
named case for each row of the plugins without volumes, domains or claims. Those have tables of
their own in tests/plugins; test_rules.py names them."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.api import Node, Pod
from scheduler_core.backend.queue.hints import QueueingHints
from scheduler_core.config import configuration_from
from scheduler_core.framework.events import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    ActionType,
    ClusterEvent,
    EventResource,
)
from scheduler_core.framework.interface import EnqueueExtensions
from scheduler_core.library import framework_for
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.testing.builders import NodeBuilder, PodBuilder, make_node, make_pod
from tests.plugins.support import hint

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
TAINT = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)
LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
ALLOCATABLE = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_ALLOCATABLE)
TOLERATION = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_TOLERATION)
GATES = ClusterEvent(
    EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
)
SCALE_DOWN = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_SCALE_DOWN)
OWN_SCALE_DOWN = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_SCALE_DOWN)


def own() -> PodBuilder:
    """The pod that waits."""
    return make_pod("own")


def other(name: str = "other") -> PodBuilder:
    return make_pod(name)


def node() -> NodeBuilder:
    return make_node("n")


def ask(plugin: str, event: ClusterEvent, pod: PodBuilder, old: Any, new: Any, **args: Any) -> str:
    """What the plugin says: Queue, Skip, or Unregistered."""
    profile = {"pluginConfig": [{"name": plugin, "args": args}]} if args else {}
    config = configuration_from({**HEAD, "profiles": [profile]}, in_tree_registry())
    found = framework_for([], config=config).framework.plugin(plugin)
    assert isinstance(found, EnqueueExtensions)
    objects: list[Node | Pod | None] = [b.obj() if b is not None else None for b in (old, new)]
    return hint(found, event, pod.obj(), *objects)


def case(name: str, *row: Any, **args: Any) -> Any:
    return pytest.param(*row, args, id=name)


def wants_ssd() -> PodBuilder:
    return own().node_selector(disk="ssd")


@pytest.mark.parametrize(
    "plugin, event, pod, old, new, answer, args",
    [
        # -- SchedulingGates
        case(
            "gates: its own last",
            "SchedulingGates", GATES, own(), own().gate("g"), own(), "Queue",
        ),
        case(
            "gates: another's",
            "SchedulingGates", GATES, own(), other().gate("g"), other(), "Skip",
        ),
        # -- NodeUnschedulable
        case("cordon: added open", "NodeUnschedulable", NODE_ADD, own(), None, node(), "Queue"),
        case(
            "cordon: added closed",
            "NodeUnschedulable", NODE_ADD, own(), None, node().unschedulable(), "Skip",
        ),
        case(
            "cordon: opened",
            "NodeUnschedulable", TAINT, own(), node().unschedulable(), node(), "Queue",
        ),
        case(
            "cordon: open as before",
            "NodeUnschedulable", TAINT, own(), node(), node().taint("x"), "Skip",
        ),
        case(
            "cordon: tolerated now",
            "NodeUnschedulable", TOLERATION, own(), own(), own().toleration(UNSCHEDULABLE), "Queue",
        ),
        case(
            "cordon: something else tolerated",
            "NodeUnschedulable", TOLERATION, own(), own(), own().toleration("x"), "Skip",
        ),
        case(
            "cordon: tolerated by another",
            "NodeUnschedulable", TOLERATION, own(), other(), other().toleration(UNSCHEDULABLE),
            "Skip",
        ),
        # -- NodeName
        case("name: any node", "NodeName", NODE_ADD, own(), None, node(), "Queue"),
        # -- TaintToleration
        case("taints: added clean", "TaintToleration", NODE_ADD, own(), None, node(), "Queue"),
        case(
            "taints: added tainted",
            "TaintToleration", NODE_ADD, own(), None, node().taint("x"), "Skip",
        ),
        case(
            "taints: added, tolerated",
            "TaintToleration", NODE_ADD, own().toleration("x"), None, node().taint("x"), "Queue",
        ),
        case("taints: gone", "TaintToleration", TAINT, own(), node().taint("x"), node(), "Queue"),
        case(
            "taints: tolerated before",
            "TaintToleration", TAINT, own(), node(), node().taint("x", effect="PreferNoSchedule"),
            "Skip",
        ),
        case(
            "taints: another one instead",
            "TaintToleration", TAINT, own(), node().taint("x"), node().taint("y"), "Skip",
        ),
        case(
            "taints: own toleration",
            "TaintToleration", TOLERATION, own(), own(), own().toleration("x"), "Queue",
        ),
        case(
            "taints: another's toleration",
            "TaintToleration", TOLERATION, own(), other(), other().toleration("x"), "Skip",
        ),
        # -- NodeAffinity
        case(
            "affinity: added, matches",
            "NodeAffinity", NODE_ADD, wants_ssd(), None, node().label(disk="ssd"), "Queue",
        ),
        case(
            "affinity: added, does not match",
            "NodeAffinity", NODE_ADD, wants_ssd(), None, node().label(disk="hdd"), "Skip",
        ),
        case(
            "affinity: matches now",
            "NodeAffinity", LABEL, wants_ssd(), node(), node().label(disk="ssd"), "Queue",
        ),
        case(
            "affinity: matched before",
            "NodeAffinity", LABEL, wants_ssd(), node().label(disk="ssd"),
            node().label(disk="ssd", x="y"), "Skip",
        ),
        case(
            "affinity: matches no more",
            "NodeAffinity", LABEL, wants_ssd(), node().label(disk="ssd"), node(), "Skip",
        ),
        case(
            "affinity: not what is enforced for all",
            "NodeAffinity", NODE_ADD, wants_ssd(), None, node().label(disk="ssd"), "Skip",
            addedAffinity={
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "team", "operator": "Exists"}]}
                    ]
                }
            },
        ),
        # -- NodePorts
        case(
            "ports: its port is free",
            "NodePorts", ASSIGNED_POD_DELETE, own().host_port(80),
            other().host_port(80).node("n"), None, "Queue",
        ),
        case(
            "ports: another port",
            "NodePorts", ASSIGNED_POD_DELETE, own().host_port(80),
            other().host_port(81).node("n"), None, "Skip",
        ),
        case(
            "ports: of a pod without a node",
            "NodePorts", ASSIGNED_POD_DELETE, own().host_port(80), other().host_port(80), None,
            "Skip",
        ),
        case(
            "ports: of a nominated pod",
            "NodePorts", ASSIGNED_POD_DELETE, own().host_port(80),
            other().host_port(80).nominated("n"), None, "Queue",
        ),
        case("ports: any node", "NodePorts", NODE_ADD, own().host_port(80), None, node(), "Queue"),
        # -- NodeResourcesFit
        case(
            "fit: a pod left its node",
            "NodeResourcesFit", ASSIGNED_POD_DELETE, own().req(cpu="1"), other().node("n"), None,
            "Queue",
        ),
        case(
            "fit: a nominated pod left",
            "NodeResourcesFit", ASSIGNED_POD_DELETE, own().req(cpu="1"), other().nominated("n"),
            None, "Queue",
        ),
        case(
            "fit: a pod left the queue",
            "NodeResourcesFit", ASSIGNED_POD_DELETE, own().req(cpu="1"), other(), None, "Skip",
        ),
        case(
            "fit: it asks for less",
            "NodeResourcesFit", OWN_SCALE_DOWN, own().req(cpu="1"), own().req(cpu="2"),
            own().req(cpu="1"), "Queue",
        ),
        case(
            "fit: a running pod asks for less of the same",
            "NodeResourcesFit", SCALE_DOWN, own().req(cpu="1"), other().req(cpu="2").node("n"),
            other().req(cpu="1").node("n"), "Queue",
        ),
        case(
            "fit: a running pod asks for less of something else",
            "NodeResourcesFit", SCALE_DOWN, own().req(cpu="1"), other().req(memory="2Gi").node("n"),
            other().req(memory="1Gi").node("n"), "Skip",
        ),
        case(
            "fit: a waiting pod asks for less",
            "NodeResourcesFit", OWN_SCALE_DOWN, own().req(cpu="1"), other().req(cpu="2"),
            other().req(cpu="1"), "Skip",
        ),
        case(
            "fit: added, large enough",
            "NodeResourcesFit", NODE_ADD, own().req(cpu="1"), None, node(), "Queue",
        ),
        case(
            "fit: added, too small",
            "NodeResourcesFit", NODE_ADD, own().req(cpu="9"), None, node(), "Skip",
        ),
        case(
            "fit: grew enough",
            "NodeResourcesFit", ALLOCATABLE, own().req(cpu="2"), node().capacity(cpu="1"),
            node().capacity(cpu="2"), "Queue",
        ),
        case(
            "fit: grew, but not enough",
            "NodeResourcesFit", ALLOCATABLE, own().req(cpu="3"), node().capacity(cpu="1"),
            node().capacity(cpu="2"), "Skip",
        ),
        case(
            "fit: something else grew",
            "NodeResourcesFit", ALLOCATABLE, own().req(cpu="1"),
            node().capacity(cpu="2", memory="1Gi"), node().capacity(cpu="2", memory="2Gi"), "Skip",
        ),
        case(
            "fit: room for more pods",
            "NodeResourcesFit", ALLOCATABLE, own().req(cpu="1"), node().capacity(cpu="2", pods="1"),
            node().capacity(cpu="2", pods="2"), "Queue",
        ),
    ],
)  # fmt: skip
def test_hint(
    plugin: str,
    event: ClusterEvent,
    pod: PodBuilder,
    old: Any,
    new: Any,
    answer: str,
    args: dict[str, Any],
) -> None:
    assert ask(plugin, event, pod, old, new, **args) == answer


def test_who_hears_of_taints_although_it_did_not_ask() -> None:
    """Whoever registers Node/Add alone. Three ask for taints themselves."""
    registered = framework_for([]).framework.events_to_register()
    hints = QueueingHints({"p": registered})
    by_itself = {"NodeUnschedulable", "TaintToleration", "PodTopologySpread"}
    for name, entries in registered.items():
        if any(entry.event.is_wildcard for entry in entries):
            continue
        adds = any(NODE_ADD.matched_by(entry.event) for entry in entries)
        asked = any(TAINT.matched_by(entry.event) for entry in entries)
        assert asked is (name in by_itself), name
        assert hints.interests("p", name, TAINT) is adds, name
