"""Pods that run, end and go, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.journal import MemoryJournal
from scheduler_core.cluster.kubelet import EXIT_CODE, RUN_SECONDS, SandboxKubelet
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.ports import NotFound
from tests.contract.support import node, pod

START = 1_800_000_000.0


class World:
    """A sandbox with a node, a kubelet, and time that passes from deadline to deadline."""

    def __init__(self, **kubelet: Any) -> None:
        self.clock = VirtualClock(START)
        self.cluster = SandboxCluster(self.clock)
        self.cluster.create("Node", node("n1"))
        self.kubelet = SandboxKubelet(self.cluster, **kubelet)

    def run(self, seconds: float) -> None:
        end = self.clock.now() + seconds
        while True:
            deadline = self.kubelet.next_deadline()
            if deadline is None or deadline > end:
                break
            self.clock.set(max(deadline, self.clock.now()))
            self.kubelet.tick(self.clock.now())
        self.clock.set(end)

    def bound(self, name: str = "web", run_seconds: str | None = None, **spec: Any) -> None:
        manifest = pod(name, **spec)
        if run_seconds is not None:
            manifest["metadata"]["annotations"] = {RUN_SECONDS: run_seconds}
        self.cluster.create("Pod", manifest)
        self.cluster.bind("default", name, "", "n1")

    def phase(self, name: str = "web") -> str:
        try:
            return str(self.cluster.get("Pod", "default", name)["status"]["phase"])
        except NotFound:
            return "gone"


def test_a_bound_pod_runs_after_a_moment_and_ends_when_its_time_is_over() -> None:
    world = World(start_seconds=2.0)
    world.bound(run_seconds="60")
    world.run(1.9)
    assert world.phase() == "Pending"
    world.run(0.2)
    assert world.phase() == "Running"
    status = world.cluster.get("Pod", "default", "web")["status"]
    assert status["startTime"] == "2027-01-15T08:00:02Z"
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "PodScheduled": "True",
        "Initialized": "True",
        "ContainersReady": "True",
        "Ready": "True",
    }
    assert status["containerStatuses"][0]["ready"] is True
    world.run(59)
    assert world.phase() == "Running"
    world.run(1)
    assert world.phase() == "Succeeded"


@pytest.mark.parametrize(
    ("code", "phase"),
    [
        pytest.param("0", "Succeeded", id="zero"),
        pytest.param("3", "Failed", id="an error"),
        pytest.param("many", "Succeeded", id="not a number"),
        pytest.param("256", "Succeeded", id="no exit code"),
    ],
)
def test_how_a_pod_ends_is_said_by_its_exit_code(code: str, phase: str) -> None:
    world = World()
    world.bound(run_seconds="5")
    notes = {"metadata": {"annotations": {EXIT_CODE: code}}}
    world.cluster.patch("Pod", "default", "web", notes)
    world.run(10)
    assert world.phase() == phase
    (container,) = world.cluster.get("Pod", "default", "web")["status"]["containerStatuses"]
    assert container["state"]["terminated"]["exitCode"] == (3 if phase == "Failed" else 0)


@pytest.mark.parametrize("annotation", [None, "soon", "-5", "nan", "inf"])
def test_a_pod_that_says_no_time_runs_on(annotation: str | None) -> None:
    world = World()
    world.bound(run_seconds=annotation)
    world.run(100_000)
    assert world.phase() == "Running"


def test_a_pending_pod_is_left_alone() -> None:
    world = World()
    world.cluster.create("Pod", pod())
    world.run(1000)
    assert world.phase() == "Pending"


def test_a_deleted_pod_goes_when_its_grace_period_is_over() -> None:
    world = World()
    world.bound()
    world.run(5)
    world.cluster.delete("Pod", "default", "web", grace_period_seconds=10)
    world.run(9.9)
    assert world.phase() == "Running"
    world.run(0.1)
    assert world.phase() == "gone"


def test_a_shortened_grace_period_counts() -> None:
    world = World()
    world.bound()
    world.cluster.delete("Pod", "default", "web", grace_period_seconds=100)
    world.run(1)
    world.cluster.delete("Pod", "default", "web", grace_period_seconds=5)
    world.run(5)
    assert world.phase() == "gone"


def test_containers_may_end_sooner_than_they_must() -> None:
    world = World(stop_seconds=2.0)
    world.bound()
    world.cluster.delete("Pod", "default", "web")
    world.run(2.5)
    assert world.phase() == "gone"


def test_another_pod_of_the_same_name_is_not_touched() -> None:
    world = World()
    world.bound(run_seconds="10")
    world.run(5)
    world.cluster.delete("Pod", "default", "web", grace_period_seconds=0)
    world.bound(run_seconds="1000")
    world.run(100)
    assert world.phase() == "Running"


def test_ended_pods_are_kept_up_to_a_number_the_oldest_go_first() -> None:
    world = World(keep_terminal=3)
    for index in range(8):
        world.bound(f"p{index}", run_seconds="1")
        world.run(10)
    names = [p["metadata"]["name"] for p in world.cluster.list("Pod").items]
    assert names == ["p5", "p6", "p7"]


def test_pods_of_a_lost_node_are_removed_after_a_while() -> None:
    world = World()
    world.bound()
    world.run(5)
    world.cluster.delete("Node", "", "n1")
    world.run(39)
    assert world.phase() == "Running"
    world.run(2)
    assert world.phase() == "gone"


def test_pods_of_a_node_that_came_back_stay() -> None:
    world = World()
    world.bound()
    world.run(5)
    world.cluster.delete("Node", "", "n1")
    world.run(10)
    world.cluster.create("Node", node("n1"))
    world.run(1000)
    assert world.phase() == "Running"


def test_a_new_kubelet_goes_on_where_the_last_one_stopped() -> None:
    world = World()
    world.bound("running", run_seconds="60")
    world.bound("deleted")
    world.run(10)
    world.cluster.delete("Pod", "default", "deleted", grace_period_seconds=20)
    world.bound("waiting")
    world.kubelet.stop()
    world.kubelet = SandboxKubelet(world.cluster)
    world.run(15)
    assert world.phase("waiting") == "Running"
    world.run(10)
    assert world.phase("deleted") == "gone"
    world.run(40)
    assert world.phase("running") == "Succeeded"


def test_what_the_journal_refuses_is_done_later() -> None:
    class Moody(MemoryJournal):
        fails = False

        def append(self, writes: Any) -> None:
            if self.fails:
                raise OSError("disk full")
            super().append(writes)

    journal = Moody()
    clock = VirtualClock(START)
    with SandboxCluster(clock, journal, pace=0.001) as cluster:
        cluster.create_all([node("n1"), pod()])
        cluster.bind("default", "web", "", "n1")
        kubelet = SandboxKubelet(cluster)
        kubelet.tick(clock.now())
        clock.advance(1)
        journal.fails = True
        kubelet.tick(clock.now())
        assert cluster.get("Pod", "default", "web")["status"]["phase"] == "Pending"
        journal.fails = False
        clock.advance(1)
        kubelet.tick(clock.now())
        assert cluster.get("Pod", "default", "web")["status"]["phase"] == "Running"
