"""The phase and counts of PodGroups."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.pod_group_status import PodGroupController
from scheduler_core.cluster.sandbox import SandboxCluster
from tests.contract.support import pod

LABEL = "scheduling.x-k8s.io/pod-group"


class World:
    def __init__(self) -> None:
        self.clock = VirtualClock(1_800_000_000.0)
        self.cluster = SandboxCluster(self.clock)
        self.controller = PodGroupController(self.cluster)
        self.cluster.create("PodGroup", {"metadata": {"name": "gang"}, "spec": {"minMember": 2}})

    def member(self, name: str, phase: str = "", group: str = "gang") -> None:
        manifest = pod(name)
        manifest["metadata"]["labels"] = {LABEL: group}
        self.cluster.create("Pod", manifest)
        if phase:
            self.set_phase(name, phase)

    def set_phase(self, name: str, phase: str) -> None:
        found = self.cluster.get("Pod", "default", name)
        if not found["spec"].get("nodeName"):
            self.cluster.bind("default", name, "", "n1")
        status = {"status": {"phase": phase}}
        self.cluster.patch("Pod", "default", name, status, subresource="status")

    @property
    def status(self) -> dict[str, Any]:
        self.controller.tick(self.clock.now())
        found: dict[str, Any] = self.cluster.get("PodGroup", "default", "gang")["status"]
        return found


@pytest.mark.parametrize(
    ("phases", "phase"),
    [
        pytest.param([], "Pending", id="no members"),
        pytest.param([""], "Pending", id="too few"),
        pytest.param(["", ""], "Scheduling", id="enough to schedule"),
        pytest.param(["Running", ""], "Scheduling", id="one runs"),
        pytest.param(["Running", "Running"], "Running", id="enough run"),
        pytest.param(["Running", "Succeeded"], "Running", id="one has ended"),
        pytest.param(["Failed", "Running"], "Failed", id="one has failed"),
        pytest.param(["Succeeded", "Succeeded"], "Finished", id="enough have ended"),
    ],
)
def test_phase(phases: list[str], phase: str) -> None:
    world = World()
    for index, of_member in enumerate(phases):
        world.member(f"m{index}", of_member)
    assert world.status["phase"] == phase


def test_counts_and_the_start_of_scheduling() -> None:
    world = World()
    world.member("m0", "Running")
    world.member("m1")
    world.member("other", "Running", group="another")
    assert world.status == {
        "phase": "Scheduling",
        "scheduled": 1,
        "running": 1,
        "succeeded": 0,
        "failed": 0,
        "scheduleStartTime": "2027-01-15T08:00:00Z",
    }


def test_a_gang_that_loses_its_members_is_pending_again() -> None:
    world = World()
    world.member("m0")
    world.member("m1")
    assert world.status["phase"] == "Scheduling"
    world.cluster.delete("Pod", "default", "m1")
    assert world.status["phase"] == "Pending"


def test_a_finished_gang_stays_finished() -> None:
    world = World()
    for name in ("m0", "m1"):
        world.member(name, "Succeeded")
    assert world.status["phase"] == "Finished"
    for name in ("m0", "m1"):
        world.cluster.delete("Pod", "default", name)
    assert world.status["phase"] == "Finished"


def test_members_are_known_before_their_gang() -> None:
    world = World()
    world.cluster.delete("PodGroup", "default", "gang")
    world.member("m0")
    world.member("m1")
    world.controller.tick(world.clock.now())
    world.cluster.create("PodGroup", {"metadata": {"name": "gang"}, "spec": {"minMember": 2}})
    assert world.status["phase"] == "Scheduling"


def test_it_comes_to_rest() -> None:
    world = World()
    world.member("m0")
    for _ in range(3):
        world.controller.tick(world.clock.now())
    assert world.controller.next_deadline() is None
