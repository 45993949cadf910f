"""NodeResourcesFit's strategies and NodeResourcesBalancedAllocation, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.api import Node, Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.errors import PluginConfigError
from scheduler_core.framework.nodes import NodeTable
from scheduler_core.framework.status import SKIP, SUCCESS
from scheduler_core.plugins.noderesources.balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from scheduler_core.plugins.noderesources.fit import NodeResourcesFit
from scheduler_core.plugins.noderesources.scorers import RequestedToCapacityRatio
from scheduler_core.testing.builders import make_node, make_pod
from tests.plugins.support import FakeHandle, info, score_both

GPU = "example.com/gpu"
FOUR = make_node("n").allocatable(cpu="4", memory="4000Mi").obj()
WITH_GPU = make_node("n").allocatable({GPU: "4"}, cpu="4", memory="4000Mi").obj()


def fit_score(
    strategy: str, node: Node, pod: Pod, *on_it: Pod, resources: Any = (), **more: Any
) -> int:
    args = {"scoringStrategy": {"type": strategy, "resources": list(resources), **more}}
    plugin = NodeResourcesFit(args, FakeHandle())
    return score_both(plugin, pod, NodeTable([info(node, *on_it)]))[0]


def weights(**named: int) -> list[dict[str, Any]]:
    return [{"name": GPU if n == "gpu" else n, "weight": w} for n, w in named.items()]


@pytest.mark.parametrize(
    "strategy, pod, on_it, resources, expected",
    [
        pytest.param(
            "LeastAllocated",
            make_pod("p").req(cpu="1", memory="1000Mi"),
            (),
            (),
            75,
            id="least-of-an-empty-node",
        ),
        pytest.param(
            "LeastAllocated",
            make_pod("p").req(cpu="1", memory="1000Mi"),
            (make_pod("q").req(cpu="2").node("n"),),
            (),
            # cpu: 1 of 4 free; memory: q counts for 200Mi.
            (25 + 70) // 2,
            id="least-counts-others-with-defaults",
        ),
        pytest.param(
            "LeastAllocated", make_pod("p"), (), (), (97 + 95) // 2, id="least-of-a-pod-of-nothing"
        ),
        pytest.param(
            "LeastAllocated",
            make_pod("p").req(cpu="5", memory="1000Mi"),
            (),
            (),
            (0 + 75) // 2,
            id="least-beyond-capacity-is-zero",
        ),
        pytest.param(
            "LeastAllocated",
            make_pod("p").req(cpu="0", memory="0"),
            (),
            (),
            100,
            id="an-explicit-zero-stays-zero",
        ),
        pytest.param(
            "MostAllocated",
            make_pod("p").req(cpu="1", memory="2000Mi"),
            (),
            weights(cpu=3, memory=1),
            (25 * 3 + 50) // 4,
            id="most-with-weights",
        ),
        pytest.param(
            "MostAllocated",
            make_pod("p").req(cpu="9", memory="2000Mi"),
            (),
            (),
            (100 + 50) // 2,
            id="most-beyond-capacity-is-full",
        ),
        pytest.param(
            "MostAllocated",
            make_pod("p").req(cpu="1"),
            (),
            weights(cpu=1, gpu=9),
            25,
            id="a-scalar-that-is-not-asked-for-is-left-out",
        ),
        pytest.param(
            "MostAllocated",
            make_pod("p").req(cpu="1"),
            (),
            [{"name": "foo", "weight": 1}],
            0,
            id="nothing-left",
        ),
    ],
)
def test_fit_strategies(
    strategy: str, pod: Any, on_it: tuple[Any, ...], resources: Any, expected: int
) -> None:
    others = [other.obj() for other in on_it]
    assert fit_score(strategy, FOUR, pod.obj(), *others, resources=resources) == expected


def test_fit_ignores_pod_level_requests_in_scoring() -> None:
    node = make_node("n").allocatable(cpu="4", memory="32Gi").obj()
    pod = make_pod("p").pod_req(cpu="2").obj()
    # As if the one container asked for 100m and 200Mi.
    assert fit_score("LeastAllocated", node, pod) == (97 + 99) // 2
    asked = make_pod("p").req(cpu="2", memory="0").obj()
    assert fit_score("LeastAllocated", node, asked, resources=weights(cpu=1)) == 50


def test_a_resource_that_a_node_lacks_is_left_out_there_only() -> None:
    args = {"scoringStrategy": {"type": "MostAllocated", "resources": weights(cpu=1, gpu=3)}}
    plugin = NodeResourcesFit(args, FakeHandle())
    nodes = NodeTable([info(FOUR), info(WITH_GPU)])
    pod = make_pod("p").req({GPU: "2"}, cpu="1").obj()
    assert score_both(plugin, pod, nodes) == [25, (25 + 3 * 50) // 4]


def test_ratio_drops_resources_that_score_nothing() -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    pod = make_pod("p").req(cpu="0", memory="2000Mi").obj()
    score = fit_score(
        "RequestedToCapacityRatio",
        FOUR,
        pod,
        resources=weights(cpu=5, memory=1),
        requestedToCapacityRatio={"shape": shape},
    )
    assert score == 50


def test_ratio_rounds_half_away_from_zero() -> None:
    shape = [{"utilization": 0, "score": 1}, {"utilization": 100, "score": 10}]
    pod = make_pod("p").req(cpu="0", memory="400Mi").obj()
    # 10 and 10 + 90 * 10 // 100 = 19: their mean is 14.5.
    score = fit_score(
        "RequestedToCapacityRatio", FOUR, pod, requestedToCapacityRatio={"shape": shape}
    )
    assert score == 15


@pytest.mark.parametrize(
    "percent, expected",
    [
        pytest.param(0, 100, id="at-the-first-point"),
        pytest.param(33, 62, id="falling-truncates-towards-zero"),
        pytest.param(60, 30, id="at-the-last-point"),
        pytest.param(99, 30, id="beyond-the-last-point"),
    ],
)
def test_the_line_of_a_shape(percent: int, expected: int) -> None:
    assert RequestedToCapacityRatio([(0, 100), (60, 30)]).at(percent) == expected


def balanced(pod: Pod, node: Node, *on_it: Pod, **args: Any) -> int:
    plugin = NodeResourcesBalancedAllocation(args, FakeHandle())
    return score_both(plugin, pod, NodeTable([info(node, *on_it)]))[0]


THREE = [{"name": name, "weight": 1} for name in ("cpu", "memory", GPU)]


@pytest.mark.parametrize(
    "pod, node, on_it, args, expected",
    [
        pytest.param(
            make_pod("p").req(cpu="1", memory="1000Mi"), FOUR, (), {}, 75, id="even-and-empty"
        ),
        pytest.param(
            make_pod("p").req(cpu="4"),
            FOUR,
            (),
            {},
            # With: 1.0 and 0.0, deviation 0.5; without: none.
            50 + (50 + 50 - 100) // 2,
            id="as-uneven-as-can-be",
        ),
        pytest.param(
            make_pod("p").req(memory="4000Mi"),
            FOUR,
            (make_pod("q").req(cpu="4").node("n"),),
            {},
            50 + (50 + 100 - 50) // 2,
            id="evens-out",
        ),
        pytest.param(
            make_pod("p").pod_req(cpu="4"), FOUR, (), {}, 50, id="pod-level-requests-count"
        ),
        pytest.param(
            make_pod("p").req(cpu="1"),
            make_node("n").allocatable(cpu="4", memory="0").obj(),
            (),
            {},
            75,
            id="one-resource-is-always-even",
        ),
        pytest.param(
            make_pod("p").req({GPU: "4"}, cpu="4"),
            WITH_GPU,
            (),
            {"resources": THREE},
            # 1, 0, 1: the deviation from 2/3 is 0.4714.
            50 + (50 + 52 - 100) // 2,
            id="three-resources",
        ),
    ],
)
def test_balanced(
    pod: Any, node: Node, on_it: tuple[Any, ...], args: dict[str, Any], expected: int
) -> None:
    assert balanced(pod.obj(), node, *(other.obj() for other in on_it), **args) == expected


def test_balanced_skips_pods_that_ask_for_nothing() -> None:
    plugin = NodeResourcesBalancedAllocation({}, FakeHandle())
    nodes = NodeTable([info(FOUR)])
    assert plugin.pre_score(CycleState(), make_pod("p").obj(), nodes) == SKIP
    assert plugin.pre_score(CycleState(), make_pod("p").req({GPU: "1"}).obj(), nodes) == SKIP
    assert plugin.pre_score(CycleState(), make_pod("p").req(cpu="1").obj(), nodes) == SUCCESS
    assert score_both(plugin, make_pod("p").obj(), nodes) == [0]


@pytest.mark.parametrize(
    "resources, message",
    [
        pytest.param(
            [{"name": "cpu", "weight": 2}],
            "resources[0].weight: Invalid value: 2: must be 1",
            id="weight",
        ),
        pytest.param(
            [{"name": "cpu", "weight": 1}, {"name": "cpu", "weight": 1}],
            'resources[1].name: Duplicate value: "cpu"',
            id="name-twice",
        ),
    ],
)
def test_balanced_arguments(resources: Any, message: str) -> None:
    with pytest.raises(PluginConfigError) as raised:
        NodeResourcesBalancedAllocation({"resources": resources}, FakeHandle())
    assert str(raised.value) == message
