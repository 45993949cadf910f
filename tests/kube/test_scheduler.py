"""A whole scheduler on the sandbox's HTTP API: what it writes about pods, and its victims."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from scheduler_core.api import NATIVE_POD_GROUP
from tests.kube.world import World, opened, pod

Json = dict[str, Any]


@pytest.fixture
def world() -> Iterator[World]:
    with opened() as found:
        yield found


def eventually(condition: Callable[[], object], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def get(world: World, name: str) -> Json:
    return world.sandbox.get("Pod", "default", name)


def events(world: World, reason: str) -> list[Json]:
    return [e for e in world.sandbox.list("Event").items if e["reason"] == reason]


def test_a_pod_that_fits_nowhere_is_told_why(world: World) -> None:
    world.worker()
    world.sandbox.create("Pod", pod("big", "64"))
    eventually(lambda: get(world, "big")["status"].get("conditions"))
    (condition,) = get(world, "big")["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "False")
    assert condition["reason"] == "Unschedulable"
    assert "0/5 nodes are available: 5 Insufficient cpu" in condition["message"]
    eventually(lambda: events(world, "FailedScheduling"))
    (event,) = events(world, "FailedScheduling")
    assert event["regarding"]["name"] == "big"
    assert event["reportingController"] == "default-scheduler"


def test_a_bound_pod_has_its_event(world: World) -> None:
    world.worker()
    world.sandbox.create("Pod", pod("web"))
    eventually(lambda: events(world, "Scheduled"))
    (event,) = events(world, "Scheduled")
    node = get(world, "web")["spec"]["nodeName"]
    assert event["note"] == f"Successfully assigned default/web to {node}"


def test_victims_are_told_and_leave_and_the_pod_takes_their_place(world: World) -> None:
    world.sandbox.create("PriorityClass", {"metadata": {"name": "high"}, "value": 1000})
    for index in range(5):
        filler = pod(f"filler{index}", "8")
        filler["spec"]["terminationGracePeriodSeconds"] = 0
        world.sandbox.create("Pod", filler)
    world.worker()
    world.wait_for(5)
    seen: list[Json] = []
    world.direct.list_watch("Pod", lambda event: seen.append(event.object))
    vip = pod("vip", "8")
    vip["spec"]["priorityClassName"] = "high"
    world.sandbox.create("Pod", vip)
    eventually(lambda: get(world, "vip")["spec"].get("nodeName"))
    left = {p["metadata"]["name"] for p in world.sandbox.list("Pod").items}
    assert len(left) == 5
    reasons = {
        condition["reason"]
        for obj in seen
        for condition in obj.get("status", {}).get("conditions", ())
        if condition["type"] == "DisruptionTarget"
    }
    assert reasons == {"PreemptionByScheduler"}
    assert any(obj.get("status", {}).get("nominatedNodeName") for obj in seen)
    eventually(lambda: events(world, "Preempted"))


def test_pods_of_other_schedulers_are_load_and_left_alone(world: World) -> None:
    theirs = pod("theirs", "8")
    theirs["spec"]["schedulerName"] = "another"
    world.sandbox.create("Pod", theirs)
    for index in range(5):
        world.sandbox.create("Pod", pod(f"p{index}", "8"))
    world.sandbox.bind("default", "theirs", "", "n0")
    world.worker()
    world.wait_for(5)
    time.sleep(0.3)
    bound = [p["spec"].get("nodeName") for p in world.sandbox.list("Pod").items]
    assert sorted(filter(None, bound)) == ["n0", "n1", "n2", "n3", "n4"]
    assert bound.count(None) == 1


def with_claim(name: str) -> Json:
    found = pod(name)
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
    found["spec"]["volumes"] = [volume]
    return found


@pytest.mark.parametrize(
    ("provisioner", "volume"),
    [
        pytest.param("csi.example.com", False, id="provisioned where the pod goes"),
        pytest.param("kubernetes.io/no-provisioner", True, id="a volume that is there"),
    ],
)
def test_volumes_are_bound_through_annotations_and_objects(
    world: World, provisioner: str, volume: bool
) -> None:
    """With the controllers that the real cluster would have on the other side."""
    world.run_controllers()
    world.sandbox.create(
        "StorageClass",
        {
            "metadata": {"name": "slow"},
            "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    wanted = {"accessModes": ["ReadWriteOnce"], "storageClassName": "slow"}
    if volume:
        kept = {**wanted, "capacity": {"storage": "1Gi"}, "local": {"path": "/data"}}
        hostname = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n3"]}
        kept["nodeAffinity"] = {
            "required": {"nodeSelectorTerms": [{"matchExpressions": [hostname]}]}
        }
        world.sandbox.create("PersistentVolume", {"metadata": {"name": "v"}, "spec": kept})
    claim = {**wanted, "resources": {"requests": {"storage": "1Gi"}}}
    world.sandbox.create("PersistentVolumeClaim", {"metadata": {"name": "db"}, "spec": claim})
    world.worker()
    world.sandbox.create("Pod", with_claim("db"))
    eventually(lambda: get(world, "db")["spec"].get("nodeName"))
    node = get(world, "db")["spec"]["nodeName"]
    bound = world.sandbox.get("PersistentVolumeClaim", "default", "db")
    assert bound["status"]["phase"] == "Bound"
    if volume:
        assert (node, bound["spec"]["volumeName"]) == ("n3", "v")
        kept_for = world.sandbox.get("PersistentVolume", "", "v")["spec"]["claimRef"]
        assert kept_for["uid"] == bound["metadata"]["uid"]
    else:
        annotations = bound["metadata"]["annotations"]
        assert annotations["volume.kubernetes.io/selected-node"] == node


def test_kinds_that_the_server_lacks_hold_nothing_up(world: World) -> None:
    """Native PodGroups are served by few clusters."""
    told: list[str] = []
    world.direct.list_watch(NATIVE_POD_GROUP, lambda event: told.append(event.type))
    eventually(lambda: told)
    assert told == ["SYNCED"]
