"""Traps 22 to 25 (see ``traps``): queue, events, cache, sampling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scheduler_core.algorithm import num_feasible_nodes_to_find
from scheduler_core.clock import VirtualClock
from scheduler_core.framework.events import ActionType
from scheduler_core.testing.builders import make_node, make_pod
from scheduler_core.testing.harness import Harness
from tests.core.scheduler.traps import standalone


class TestTrap22:
    def test_the_last_entry_into_the_queue_counts_not_the_creation(self) -> None:
        h = Harness(nodes=[make_node("n").capacity(cpu="1").unschedulable()])
        h.create("Pod", make_pod("old"))
        h.settle()
        h.advance(1)
        h.create("Pod", make_pod("young"))
        h.advance(30)
        # "old" is tried once more and fails: now it has been in the queue for the shorter time.
        h.scheduler.queue.activate([h.scheduler.informers.informer("Pod").get("default/old")])
        h.advance(30)
        h.cluster.patch("Node", "", "n", {"spec": {"unschedulable": False}})
        before = len(h.observer.cycles)
        h.advance(30)
        assert [c.pod.name for c in h.observer.cycles[before:]] == ["young", "old"]

    def test_backoff_is_cut_to_whole_seconds(self) -> None:
        """It began at .7 and takes 1 s: its end is cut to .0, and that whole second belongs to
        it. Errors are never taken early, so that it shows."""
        h = Harness(clock=VirtualClock(1000.7))
        h.schedule(make_pod("p"))
        h.create("Node", make_node("n"))
        h.advance(1.2)
        assert h.node_of("p") == "", "1001.9"
        h.advance(0.1)
        assert h.node_of("p") == "n", "1002.0"

    def test_an_idle_scheduler_does_not_wait_for_backoff(self) -> None:
        h = Harness(nodes=[make_node("n").unschedulable()])
        h.schedule(make_pod("p"))
        h.cluster.patch("Node", "", "n", {"spec": {"unschedulable": False}})
        h.settle()
        assert h.node_of("p") == "n", "at the same moment, though it backs off for a second"

    def test_but_for_errors_it_does(self) -> None:
        h = Harness()
        h.schedule(make_pod("p"))
        h.create("Node", make_node("n"))
        h.settle()
        assert h.node_of("p") == ""
        h.advance(2.1)
        assert h.node_of("p") == "n"

    def test_a_cluster_without_nodes_is_such_an_error(self) -> None:
        h = Harness()
        cycle = h.schedule(make_pod("p"))
        assert cycle.message == "no nodes available to schedule pods"
        assert cycle.unschedulable_plugins == ()
        assert h.condition("p")["reason"] == "Unschedulable"
        assert h.scheduler.depths().backoff == 1


class TestTrap23:
    """Events that plugins did not ask for."""

    def hints(self) -> Mapping[str, Any]:
        return standalone([]).framework.events_to_register()

    def test_a_taint_may_help_whoever_waits_for_nodes(self) -> None:
        """NodeResourcesFit registers Node/Add, and hears of taints that go."""
        h = Harness(nodes=[make_node("n").capacity(cpu="1").taint("x")])
        h.schedule(make_pod("large").req(cpu="2").toleration("x"))
        h.advance(30)
        before = len(h.cycles("large"))
        assert not any(
            e.event.action & ActionType.UPDATE_NODE_TAINT for e in self.hints()["NodeResourcesFit"]
        )
        h.cluster.patch("Node", "", "n", {"spec": {"taints": []}})
        h.settle()
        assert len(h.cycles("large")) == before + 1

    def test_after_five_minutes_everybody_is_tried_again(self) -> None:
        h = Harness(nodes=[make_node("n").unschedulable()])
        h.schedule(make_pod("p"))
        h.advance(299)
        assert len(h.cycles("p")) == 1
        for _ in range(3):
            h.advance(30)
        assert len(h.cycles("p")) == 2


def test_trap_24_an_assumed_pod_stays_until_it_is_confirmed_or_forgotten() -> None:
    h = Harness(nodes=[make_node("n").capacity(cpu="1")])
    pod = make_pod("p").req(cpu="1").node("n").obj()
    h.scheduler.cache.assume_pod(pod)
    for _ in range(24):
        h.clock.advance(3600)
        h.scheduler.run_once()
    assert h.scheduler.cache.is_assumed_pod(pod)
    h.create("Pod", make_pod("q").req(cpu="1"))
    h.scheduler.run_once()
    assert h.node_of("q") == ""


class TestTrap25:
    def test_one_feasible_node_is_not_scored(self) -> None:
        h = Harness(nodes=[make_node("a"), make_node("b").unschedulable()])
        cycle = h.schedule(make_pod("p"))
        assert (cycle.node, cycle.score) == ("a", None)
        assert not {"PreScore", "Score"} & set(cycle.point_seconds)

    def test_the_start_of_the_search_is_shared_by_all_profiles(self) -> None:
        profiles = [{"schedulerName": name} for name in ("default-scheduler", "other")]
        h = Harness(
            nodes=[make_node(f"n{i:03}") for i in range(150)],
            config={"percentageOfNodesToScore": 0, "profiles": profiles},
        )
        seen = []
        for i, name in enumerate(("default-scheduler", "other")):
            cycle = h.schedule(make_pod(f"p{i}").scheduler_name(name))
            assert cycle.matrix is not None
            seen.append({row for row, why in enumerate(cycle.matrix.rejection) if why != -2})
        assert seen == [set(range(100)), {*range(100, 150), *range(50)}]

    @pytest.mark.parametrize("nodes", [100, 150, 777, 1000, 5000, 6000, 100_000])
    def test_the_size_of_the_sample(self, nodes: int) -> None:
        expected = max(100, nodes * max(5, 50 - nodes // 125) // 100)
        assert num_feasible_nodes_to_find(nodes, 0) == expected
