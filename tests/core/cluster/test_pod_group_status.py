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

    def member(
        self, name: str, phase: str = "", group: str = "gang", owners: tuple[str, ...] = ()
    ) -> None:
        manifest = pod(name)
        manifest["metadata"]["labels"] = {LABEL: group}
        if owners:
            manifest["metadata"]["ownerReferences"] = [
                {"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": f"uid-{owner}"}
                for owner in owners
            ]
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


# -- occupiedBy ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("owners", "expected"),
    [
        pytest.param(("train",), "default/train", id="its owner"),
        pytest.param(("b", "a"), "default/a,default/b", id="several owners, in order"),
        pytest.param((), None, id="pods without an owner"),
    ],
)
def test_occupied_by_is_filled_when_enough_pods_are_there(
    owners: tuple[str, ...], expected: str | None
) -> None:
    world = World()
    world.member("m0", owners=owners)
    assert "occupiedBy" not in world.status
    world.member("m1", owners=("another",))
    assert world.status.get("occupiedBy") == expected


def test_occupied_by_stays() -> None:
    world = World()
    for name in ("m0", "m1"):
        world.member(name, owners=("first",))
    assert world.status["occupiedBy"] == "default/first"
    world.cluster.delete("Pod", "default", "m0")
    world.member("m2", owners=("second",))
    assert world.status["occupiedBy"] == "default/first"


# -- 48 hours ------------------------------------------------------------------------------------

TWO_DAYS = 48 * 3600.0


def test_a_group_that_is_unscheduled_for_48_hours_is_left_alone() -> None:
    world = World()
    world.member("m0")
    assert world.status["phase"] == "Pending"
    world.clock.advance(TWO_DAYS)
    world.member("m1")
    assert world.status["phase"] == "Scheduling"
    world.clock.advance(1.0)
    world.cluster.delete("Pod", "default", "m1")
    assert world.status["phase"] == "Scheduling"


def test_it_is_taken_up_again_once_a_member_runs() -> None:
    world = World()
    world.member("m0")
    world.clock.advance(TWO_DAYS + 1.0)
    world.member("m1", "Running")
    assert (world.status["phase"], world.status["running"]) == ("Scheduling", 1)
    world.set_phase("m0", "Running")
    assert world.status["phase"] == "Running"


def test_a_group_that_ran_is_never_given_up() -> None:
    world = World()
    for name in ("m0", "m1"):
        world.member(name, "Running")
    assert world.status["phase"] == "Running"
    world.clock.advance(TWO_DAYS + 1.0)
    world.cluster.delete("Pod", "default", "m0", grace_period_seconds=0)
    assert world.status["phase"] == "Pending"
