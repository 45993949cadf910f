"""Traps 8 to 12 and 21 (see ``traps``): resources, ports and images."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.api import nonzero_requests
from scheduler_core.testing.builders import NodeBuilder, PodBuilder, make_node, make_pod
from tests.core.scheduler.traps import Json, args, evaluate, scored

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
