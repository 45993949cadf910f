"""NodeResourcesFit, rule by rule: filter, hints and arguments. Scoring has a file of its own."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.api import Pod
from scheduler_core.framework.errors import PluginConfigError
from scheduler_core.framework.events import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    ActionType,
    ClusterEvent,
    EventResource,
)
from scheduler_core.framework.nodes import NodeTable
from scheduler_core.framework.status import SUCCESS, Status, unresolvable, unschedulable
from scheduler_core.plugins.noderesources.fit import NodeResourcesFit
from scheduler_core.testing.builders import make_node, make_pod
from tests.plugins.support import FakeHandle, filter_both, hint, info

GPU = "example.com/gpu"
SCALED_DOWN = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_SCALE_DOWN)
GROWN = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_ALLOCATABLE)


def plugin(**args: Any) -> NodeResourcesFit:
    return NodeResourcesFit(args, FakeHandle())


def used(**requests: str) -> Pod:
    return make_pod("used").req(**requests).node("n").obj()


NODE = make_node("n").allocatable({GPU: "2"}, cpu="4", memory="8Gi", ephemeral_storage="10Gi").obj()
TINY = make_node("n").allocatable(cpu="1", memory="1Gi", pods="1").obj()
NO_PODS = make_node("n").allocatable(cpu="1", memory="1Gi", pods="0").obj()


@pytest.mark.parametrize(
    "node, on_it, pod, expected",
    [
        pytest.param(NODE, (), make_pod("p").req(cpu="4", memory="8Gi"), SUCCESS, id="just-fits"),
        pytest.param(
            NODE,
            (used(cpu="3"),),
            make_pod("p").req(cpu="2"),
            unschedulable("Insufficient cpu"),
            id="others-hold-it",
        ),
        pytest.param(
            NODE,
            (),
            make_pod("p").req(cpu="4001m"),
            unresolvable("Insufficient cpu"),
            id="never-fits",
        ),
        pytest.param(
            NODE,
            (used(memory="4Gi"),),
            make_pod("p").req({GPU: "3"}, cpu="1", memory="5Gi"),
            unresolvable("Insufficient memory", f"Insufficient {GPU}"),
            id="one-hopeless-shortage-makes-all-hopeless",
        ),
        pytest.param(
            TINY,
            (used(),),
            make_pod("p").req(cpu="2", memory="2Gi", ephemeral_storage="1"),
            unresolvable(
                "Too many pods",
                "Insufficient cpu",
                "Insufficient memory",
                "Insufficient ephemeral-storage",
            ),
            id="order-of-reasons",
        ),
        pytest.param(
            NO_PODS, (), make_pod("p"), unschedulable("Too many pods"), id="too-many-is-resolvable"
        ),
        pytest.param(
            make_node("n").allocatable(cpu="1", pods="9").obj(),
            (used(cpu="3"),),
            make_pod("p").req(cpu="0"),
            SUCCESS,
            id="without-requests-even-overcommitted",
        ),
        pytest.param(
            NODE, (), make_pod("p").req({"foo": "1"}), SUCCESS, id="unknown-resource-is-ignored"
        ),
        pytest.param(
            NODE,
            (),
            make_pod("p").req({"z.com/b": "1", "z.com/a": "1"}),
            unresolvable("Insufficient z.com/a", "Insufficient z.com/b"),
            id="other-resources-by-name",
        ),
        pytest.param(
            NODE,
            (),
            make_pod("p").req(cpu="1").pod_req(cpu="5"),
            unresolvable("Insufficient cpu"),
            id="pod-level-requests-count",
        ),
    ],
)
def test_filter(node: Any, on_it: tuple[Pod, ...], pod: Any, expected: Status) -> None:
    nodes = NodeTable([info(node, *on_it)])
    assert filter_both(plugin(), pod.obj(), nodes) == [expected]


def test_statuses_of_many_nodes_share_a_short_table() -> None:
    sizes = ("1", "2", "4", "1", "2", "4")
    nodes = FakeHandle([make_node(f"n{i}").allocatable(cpu=s).obj() for i, s in enumerate(sizes)])
    pod = make_pod("p").req(cpu="3").obj()
    statuses = plugin().filter_nodes(None, pod, nodes.nodes)  # type: ignore[arg-type]
    assert statuses.feasible.tolist() == [False, False, True] * 2
    assert len(statuses.table) == 2


def test_more_shortages_than_bits() -> None:
    names = {f"example.com/r{i:02}": "1" for i in range(70)}
    nodes = FakeHandle([make_node("n").obj()]).nodes
    statuses = filter_both(plugin(), make_pod("p").req(names).obj(), nodes)
    assert statuses == [unresolvable(*(f"Insufficient {name}" for name in names))]


@pytest.mark.parametrize(
    "args, resource, ignored",
    [
        pytest.param({"ignoredResources": [GPU]}, GPU, True, id="by-name"),
        pytest.param({"ignoredResourceGroups": ["example.com"]}, GPU, True, id="by-group"),
        pytest.param({"ignoredResourceGroups": ["example"]}, GPU, False, id="not-by-prefix"),
        pytest.param({"ignoredResources": ["cpu"]}, "cpu", False, id="only-extended-resources"),
    ],
)
def test_ignored_resources(args: dict[str, Any], resource: str, ignored: bool) -> None:
    nodes = FakeHandle([make_node("n").allocatable(memory="1Gi").obj()]).nodes
    pod = make_pod("p").req({resource: "1"}).obj()
    expected = SUCCESS if ignored else unresolvable(f"Insufficient {resource}")
    assert filter_both(plugin(**args), pod, nodes) == [expected]


def test_hints() -> None:
    fit = plugin()
    pod = make_pod("p").req(cpu="2").obj()
    assert hint(fit, ASSIGNED_POD_DELETE, pod, used(cpu="1")) == "Queue"
    assert hint(fit, ASSIGNED_POD_DELETE, pod, make_pod("never-placed").obj()) == "Skip"
    assert hint(fit, SCALED_DOWN, pod, used(cpu="2"), used(cpu="1")) == "Queue"
    assert hint(fit, SCALED_DOWN, pod, used(memory="2"), used(memory="1")) == "Skip"
    pending = make_pod("other").req(cpu="1").obj()
    assert hint(fit, SCALED_DOWN, pod, make_pod("other").req(cpu="2").obj(), pending) == "Skip"
    assert hint(fit, SCALED_DOWN, pod, pod, make_pod("p").req(cpu="1").obj()) == "Queue"
    small, large = (make_node("n").allocatable(cpu=cpu).obj() for cpu in ("1", "3"))
    assert hint(fit, NODE_ADD, pod, None, small) == "Skip"
    assert hint(fit, NODE_ADD, pod, None, large) == "Queue"
    assert hint(fit, GROWN, pod, small, large) == "Queue"
    more_memory = make_node("n").allocatable(cpu="3", memory="1Gi").obj()
    assert hint(fit, GROWN, pod, large, more_memory) == "Skip"
    more_pods = make_node("n").allocatable(cpu="3", pods="200").obj()
    assert hint(fit, GROWN, pod, large, more_pods) == "Queue"


STRATEGY = "scoringStrategy"
RATIO = "requestedToCapacityRatio"
RATIO_TYPE = "RequestedToCapacityRatio"


def shape(*points: tuple[int, int]) -> dict[str, Any]:
    return {"shape": [{"utilization": u, "score": s} for u, s in points]}


@pytest.mark.parametrize(
    "args, message",
    [
        pytest.param(
            {STRATEGY: {"type": "Foo"}},
            'scoringStrategy.type: Unsupported value: "Foo": supported values: '
            '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"',
            id="unknown-type",
        ),
        pytest.param(
            {STRATEGY: {}},
            'scoringStrategy.type: Unsupported value: "": supported values: '
            '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"',
            id="no-type",
        ),
        pytest.param(
            {STRATEGY: {"type": RATIO_TYPE}},
            f"scoringStrategy.{RATIO}: Required value: must be specified when type is {RATIO_TYPE}",
            id="ratio-without-shape",
        ),
        pytest.param(
            {STRATEGY: {"type": "MostAllocated", RATIO: shape((0, 0))}},
            f"scoringStrategy.{RATIO}: Forbidden: must be nil when type is not {RATIO_TYPE}",
            id="shape-without-ratio",
        ),
        pytest.param(
            {STRATEGY: {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 101}]}},
            "scoringStrategy.resources[0].weight: Invalid value: 101: "
            "resource weight of cpu not in valid range (0, 100]",
            id="weight",
        ),
        pytest.param(
            {"ignoredResourceGroups": ["a/b"]},
            'ignoredResourceGroups[0]: Invalid value: "a/b": '
            "resource group name can't contain '/'",
            id="group",
        ),
        pytest.param(
            {STRATEGY: {"type": RATIO_TYPE, RATIO: shape()}},
            f"scoringStrategy.{RATIO}.shape: Required value: at least one point must be specified",
            id="empty-shape",
        ),
        pytest.param(
            {STRATEGY: {"type": RATIO_TYPE, RATIO: shape((5, 1), (5, 2))}},
            f"scoringStrategy.{RATIO}.shape[1].utilization: Invalid value: 5: "
            "values must be sorted in increasing order",
            id="not-increasing",
        ),
        pytest.param(
            {STRATEGY: {"type": RATIO_TYPE, RATIO: shape((-1, 11))}},
            f"[scoringStrategy.{RATIO}.shape[0].utilization: Invalid value: -1: "
            f"not in valid range [0, 100], scoringStrategy.{RATIO}.shape[0].score: "
            "Invalid value: 11: not in valid range [0, 10]]",
            id="several-faults-in-brackets",
        ),
    ],
)
def test_bad_arguments(args: dict[str, Any], message: str) -> None:
    with pytest.raises(PluginConfigError) as raised:
        plugin(**args)
    assert str(raised.value) == message
