"""Which nodes are filtered (kube-scheduler 1.36): how many, from where on, and what is remembered.

percentageOfNodesToScore is 100 unless a configuration says otherwise; 0 is the adaptive sample.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from scheduler_core.algorithm import (
    ScheduleResult,
    SchedulingAlgorithm,
    SmallestName,
    num_feasible_nodes_to_find,
)
from scheduler_core.api import Pod
from scheduler_core.config import configuration_from
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.interface import FilterPlugin, PreFilterPlugin, ScorePlugin
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import NodeTable
from scheduler_core.framework.runtime import filtering
from scheduler_core.framework.status import SKIP, SUCCESS, Status, error, unschedulable
from scheduler_core.framework.types import PreFilterResult
from scheduler_core.library import framework_for
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.testing.builders import make_node, make_pod
from scheduler_core.testing.harness import Harness

#: In a ScoreMatrix.
NOT_EVALUATED = -2
HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


@pytest.mark.parametrize(
    "nodes, percentage, want",
    [
        pytest.param(0, 0, 0, id="no nodes"),
        pytest.param(1, 0, 1, id="one"),
        pytest.param(99, 0, 99, id="below 100 all are looked at"),
        pytest.param(99, 1, 99, id="below 100 all are looked at, whatever the percentage"),
        pytest.param(100, 0, 100, id="adaptive: 50 percent of 100 is less than 100"),
        pytest.param(200, 0, 100, id="adaptive: 49 percent of 200 is less than 100"),
        pytest.param(500, 0, 230, id="adaptive: 46 percent of 500"),
        pytest.param(1000, 0, 420, id="adaptive: 42 percent of 1000"),
        pytest.param(5000, 0, 500, id="adaptive: 10 percent of 5000"),
        pytest.param(5624, 0, 337, id="adaptive: 6 percent"),
        pytest.param(5625, 0, 281, id="adaptive: 5 percent from 5625 on"),
        pytest.param(20000, 0, 1000, id="adaptive: never less than 5 percent"),
        pytest.param(150, 10, 100, id="never less than 100"),
        pytest.param(1000, 30, 300, id="a percentage"),
        pytest.param(1001, 33, 330, id="rounded down"),
        pytest.param(1000, 1, 100, id="1 percent, but 100 nodes"),
        pytest.param(1000, 100, 1000, id="all"),
    ],
)
def test_how_many_feasible_nodes_are_wanted(nodes: int, percentage: int, want: int) -> None:
    assert num_feasible_nodes_to_find(nodes, percentage) == want


# -- where the search begins and ends --------------------------------------------------------------


class OnlyThese(PreFilterPlugin, FilterPlugin, ScorePlugin):
    """A pod says itself which nodes it is to meet: annotations with indices of nodes."""

    name = "OnlyThese"

    def __init__(self, args: Any, handle: Any) -> None: ...

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Any) -> Any:
        names = pod.annotations.get("restricted-to")
        return (None if names is None else PreFilterResult(_names(names)), SUCCESS)

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        if node_info.name in _names(pod.annotations.get("fails-on", "")):
            return error("the disk is on fire")
        taken = node_info.name in _names(pod.annotations.get("rejected-by", ""))
        return unschedulable("taken") if taken else SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        return 1


def _names(indices: str) -> frozenset[str]:
    return frozenset(f"n{int(i):03}" for i in indices.split())


def text(indices: Collection[int]) -> str:
    return " ".join(map(str, indices))


class Cluster:
    """150 nodes, one algorithm, one profile or two, and what each cycle looked at."""

    def __init__(self, count: int = 150, **profile: Any) -> None:
        registry = in_tree_registry()
        registry.register(OnlyThese.name, OnlyThese)
        plugins = profile or {
            "multiPoint": {
                "disabled": [{"name": "*"}],
                "enabled": [{"name": n} for n in ("PrioritySort", "DefaultBinder", "OnlyThese")],
            }
        }
        profiles = [{"schedulerName": name, "plugins": plugins} for name in ("one", "two")]
        config = configuration_from({**HEAD, "profiles": profiles}, registry)
        nodes = [make_node(f"n{i:03}").obj() for i in range(count)]
        self.frameworks = {
            name: framework_for(nodes, config=config, profile=name) for name in ("one", "two")
        }
        self.count = count
        self.algorithm = SchedulingAlgorithm(SmallestName())

    def cycle(
        self, *, percentage: int = 0, profile: str = "one", nominated: str = "", **notes: str
    ) -> ScheduleResult:
        pod = make_pod("p").annotation({k.replace("_", "-"): v for k, v in notes.items()}).obj()
        cluster = self.frameworks[profile]
        assert len(cluster.nodes) == self.count
        return self.algorithm.find_nodes_that_fit(
            cluster.framework,
            CycleState(),
            pod,
            percentage=percentage,
            preferred_node=nominated,
        )

    @property
    def start(self) -> int:
        """Where the next search will begin."""
        return self.algorithm._next_start


def indices(found: ScheduleResult) -> list[int]:
    return found.feasible.tolist()


def rejected(found: ScheduleResult) -> list[int]:
    assert found.statuses is not None
    return [row for row, i in enumerate(found.statuses.ids) if i > 0]


def absent(found: ScheduleResult) -> list[int]:
    assert found.statuses is not None
    return [row for row, i in enumerate(found.statuses.ids) if i == NodeStatuses.ABSENT]


class TestTheSearch:
    def test_ends_when_enough_nodes_are_feasible(self) -> None:
        found = Cluster().cycle()
        assert indices(found) == list(range(100))
        assert absent(found) == list(range(100, 150))
        assert found.evaluated == 100

    def test_goes_on_past_nodes_that_reject(self) -> None:
        found = Cluster().cycle(rejected_by=text(range(0, 60, 2)))
        assert len(indices(found)) == 100
        assert indices(found)[0] == 1 and indices(found)[-1] == 129
        assert rejected(found) == list(range(0, 60, 2))
        assert found.evaluated == 130

    def test_ends_at_the_first_feasible_node_too_many(self) -> None:
        """As in the reference, which notices only then; nodes that reject up to there are known."""
        found = Cluster().cycle(rejected_by=text(range(100, 110)))
        assert indices(found) == list(range(100))
        assert rejected(found) == list(range(100, 110))
        assert found.evaluated == 110

    def test_takes_what_there_is(self) -> None:
        found = Cluster().cycle(rejected_by=text(range(60)))
        assert indices(found) == list(range(60, 150))
        assert (rejected(found), absent(found)) == (list(range(60)), [])

    def test_a_hundred_percent_looks_at_every_node(self) -> None:
        found = Cluster().cycle(percentage=100)
        assert indices(found) == list(range(150))

    def test_a_percentage(self) -> None:
        assert len(indices(Cluster(400).cycle(percentage=30))) == 120

    def test_few_nodes_are_all_looked_at(self) -> None:
        assert len(indices(Cluster(99).cycle(percentage=10))) == 99

    def test_one_node_is_enough_where_nothing_scores(self) -> None:
        cluster = Cluster(score={"disabled": [{"name": "*"}]})
        for expected in (0, 1, 2):
            found = cluster.cycle(percentage=100)
            assert indices(found) == [expected], "as good as any other"

    def test_without_filter_plugins_the_first_nodes_are_taken_unseen(self) -> None:
        cluster = Cluster(
            filter={"disabled": [{"name": "*"}]}, preFilter={"disabled": [{"name": "*"}]}
        )
        assert indices(cluster.cycle()) == list(range(100))
        assert indices(cluster.cycle()) == [*range(100, 150), *range(50)]


class TestTheStart:
    def test_is_the_first_node(self) -> None:
        assert Cluster().start == 0

    def test_moves_on_by_what_was_looked_at(self) -> None:
        cluster = Cluster()
        cluster.cycle()
        assert cluster.start == 100
        assert indices(cluster.cycle()) == [*range(100, 150), *range(50)]
        assert cluster.start == 50

    def test_moves_on_by_feasible_nodes_and_by_those_that_rejected(self) -> None:
        cluster = Cluster()
        cluster.cycle(rejected_by=text(range(20)))
        assert cluster.start == 120

    def test_stays_where_every_node_was_looked_at(self) -> None:
        cluster = Cluster()
        cluster.cycle(percentage=100)
        assert cluster.start == 0

    def test_is_shared_by_all_profiles(self) -> None:
        cluster = Cluster()
        cluster.cycle(profile="one")
        assert indices(cluster.cycle(profile="two"))[0] == 100
        assert cluster.start == 50

    def test_moves_on_by_the_few_nodes_that_pre_filter_left(self) -> None:
        cluster = Cluster()
        found = cluster.cycle(restricted_to="7 8 9", rejected_by="8")
        assert (indices(found), rejected(found)) == ([7, 9], [8])
        assert cluster.start == 3

    def test_is_taken_modulo_those_that_pre_filter_left(self) -> None:
        """Of 120 nodes that are left, 100 are wanted, from the shared start on."""
        cluster = Cluster()
        cluster.cycle()
        found = cluster.cycle(restricted_to=text(range(10, 130)))
        assert indices(found) == [*range(110, 130), *range(10, 90)]
        assert cluster.start == 50

    def test_does_not_move_where_pre_filter_left_nodes_that_are_not_there(self) -> None:
        cluster = Cluster()
        found = cluster.cycle(restricted_to="900 901")
        assert found.status.is_rejected
        assert cluster.start == 0

    def test_does_not_move_after_a_nominated_node_that_fits(self) -> None:
        cluster = Cluster()
        found = cluster.cycle(nominated="n042")
        assert indices(found) == [42]
        assert cluster.start == 0

    def test_moves_on_after_a_nominated_node_that_does_not_fit(self) -> None:
        cluster = Cluster()
        found = cluster.cycle(nominated="n042", rejected_by="42")
        assert 42 not in indices(found) and len(indices(found)) == 100
        assert cluster.start == 101

    def test_moves_on_by_what_was_looked_at_before_an_error(self) -> None:
        cluster = Cluster()
        found = cluster.cycle(fails_on="30")
        assert found.status.message == 'running "OnlyThese" filter plugin: the disk is on fire'
        assert cluster.start == 30

    def test_an_error_that_the_search_does_not_reach_is_none(self) -> None:
        cluster = Cluster()
        assert cluster.cycle(fails_on="120").status == SUCCESS
        assert cluster.start == 100


def test_a_status_that_filters_may_not_give_is_an_error_that_names_the_plugin() -> None:
    """In both forms alike."""

    class Odd(FilterPlugin):
        name = "Odd"

        def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
            return SKIP

    plugin, info = Odd(), NodeInfo(make_node("n").obj())
    pod, text = make_pod("p").obj(), 'running "Odd" filter plugin: returned Skip'
    assert filtering.run_filter_one([plugin], CycleState(), pod, info).message == text
    vector = filtering.run_filter([plugin], CycleState(), pod, NodeTable([info]))[0]
    assert (vector.message, vector.code.label) == (text, "Error")


class TestTheNominatedNode:
    def test_is_not_bound_to_what_pre_filter_left(self) -> None:
        assert indices(Cluster().cycle(nominated="n042", restricted_to="1")) == [42]

    def test_its_rejection_stays_on_record_where_the_search_does_not_come(self) -> None:
        cluster = Cluster()
        found = cluster.cycle(nominated="n142", rejected_by="142")
        assert rejected(found) == [142]
        assert cluster.start == 101, "it counts as looked at"

    def test_its_error_does_not_end_the_cycle(self) -> None:
        found = Cluster().cycle(nominated="n142", fails_on="142")
        assert found.status == SUCCESS
        assert rejected(found) == []

    def test_one_that_is_gone_is_passed_over(self) -> None:
        assert len(indices(Cluster().cycle(nominated="gone"))) == 100


# -- configuration ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config, profile, evaluated",
    [
        pytest.param({}, {}, 150, id="absent is 100"),
        pytest.param({"percentageOfNodesToScore": 0}, {}, 100, id="an explicit 0 is adaptive"),
        pytest.param({"percentageOfNodesToScore": 80}, {}, 120, id="another value"),
        pytest.param(
            {"percentageOfNodesToScore": 100},
            {"percentageOfNodesToScore": 0},
            100,
            id="the profile's goes before the global one",
        ),
        pytest.param(
            {"percentageOfNodesToScore": 0},
            {"percentageOfNodesToScore": 100},
            150,
            id="also upwards",
        ),
    ],
)
def test_the_configuration_decides(
    config: dict[str, Any], profile: dict[str, Any], evaluated: int
) -> None:
    nodes = [make_node(f"n{i:03}") for i in range(150)]
    h = Harness(nodes=nodes, config=config, profile=profile)
    first = h.schedule(make_pod("first"))
    assert (first.nodes_evaluated, first.nodes_feasible) == (evaluated, evaluated)
    assert first.node == "n000"
    second = h.schedule(make_pod("second"))
    assert second.matrix is not None
    unseen = {row for row, why in enumerate(second.matrix.rejection) if why == NOT_EVALUATED}
    assert unseen == set(range(150)) - {(evaluated + i) % 150 for i in range(evaluated)}
