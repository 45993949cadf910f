"""ReplicaSets in a sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.cluster.controllers.pods import worth_deleting_first
from scheduler_core.ports import Json

from .support import World, template


def replica_set(replicas: int = 3, **spec: Any) -> Json:
    return {
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(),
            **spec,
        },
    }


def scale(world: World, replicas: int) -> None:
    world.cluster.patch("ReplicaSet", "default", "web", {"spec": {"replicas": replicas}})


def test_it_makes_the_pods_that_are_missing_and_counts_them() -> None:
    world = World()
    world.cluster.create("ReplicaSet", replica_set())
    world.run()
    pods = world.pods()
    assert len(pods) == 3
    owner = pods[0]["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("ReplicaSet", "web", True)
    assert pods[0]["metadata"]["name"].startswith("web-")
    status = world.get("ReplicaSet", "web")["status"]
    assert status == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "observedGeneration": 1,
    }


def test_a_pod_that_goes_or_ends_is_replaced() -> None:
    world = World()
    world.cluster.create("ReplicaSet", replica_set())
    world.run()
    first, second, third = world.pods()
    world.cluster.delete("Pod", "default", first["metadata"]["name"])
    world.fail(second)
    world.run(120)
    active = [p for p in world.pods() if p["status"]["phase"] == "Running"]
    assert len(active) == 3
    names = {p["metadata"]["name"] for p in active}
    assert third["metadata"]["name"] in names
    assert first["metadata"]["name"] not in names


def test_surplus_pods_are_deleted() -> None:
    world = World()
    world.cluster.create("ReplicaSet", replica_set(5))
    world.run()
    scale(world, 2)
    world.run(60)
    assert len(world.pods()) == 2
    assert world.get("ReplicaSet", "web")["status"]["replicas"] == 2


def test_nothing_happens_twice_after_a_restart() -> None:
    world = World()
    world.cluster.create("ReplicaSet", replica_set())
    world.run()
    version = world.cluster.resource_version
    again = World.__new__(World)
    again.__dict__.update(world.__dict__)
    from scheduler_core.cluster.controllers import CONTROLLERS
    from scheduler_core.cluster.controllers.manager import ControllerManager

    again.manager = ControllerManager(world.cluster, CONTROLLERS)
    again.run()
    assert world.cluster.resource_version == version


def test_a_pod_is_available_after_min_ready_seconds() -> None:
    world = World()
    world.cluster.create("ReplicaSet", replica_set(1, minReadySeconds=20))
    world.run(10)
    assert world.get("ReplicaSet", "web")["status"].get("availableReplicas") is None
    world.run(20)
    assert world.get("ReplicaSet", "web")["status"]["availableReplicas"] == 1


def test_a_template_that_is_refused_is_told_and_tried_again() -> None:
    world = World()
    body = replica_set(1)
    body["spec"]["template"]["spec"]["priorityClassName"] = "missing"
    world.cluster.create("ReplicaSet", body)
    world.run(5)
    status = world.get("ReplicaSet", "web")["status"]
    (failure,) = status["conditions"]
    assert (failure["type"], failure["status"]) == ("ReplicaFailure", "True")
    assert "no PriorityClass with name missing was found" in failure["message"]
    assert "no PriorityClass with name missing" in world.events("FailedCreate")[0]
    world.cluster.create("PriorityClass", {"metadata": {"name": "missing"}, "value": 7})
    world.run(300)
    assert len(world.pods()) == 1
    assert "conditions" not in world.get("ReplicaSet", "web")["status"]


def test_its_pods_go_with_it() -> None:
    world = World()
    world.cluster.create("ReplicaSet", replica_set())
    world.run()
    world.cluster.delete("ReplicaSet", "default", "web")
    world.run(60)
    assert world.pods() == []


def test_pods_that_belong_to_nobody_are_adopted_before_new_ones_are_made() -> None:
    world = World()
    spec = {"containers": [{"name": "main", "image": "app"}]}
    for name, app in (("mine", "web"), ("other", "api")):
        world.cluster.create(
            "Pod", {"metadata": {"name": name, "labels": {"app": app}}, "spec": spec}
        )
    world.run(5)
    world.cluster.create("ReplicaSet", replica_set(2))
    world.run(10)
    owned = {p["metadata"]["name"]: "ownerReferences" in p["metadata"] for p in world.pods()}
    assert len(owned) == 3
    assert owned["mine"]
    assert not owned["other"]


def pod(name: str, **given: Any) -> Json:
    ready = given.get("ready", "")
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ready}] if ready else []
    return {
        "metadata": {
            "name": name,
            "creationTimestamp": given.get("created", "2027-01-01T00:00:00Z"),
            "annotations": {
                "controller.kubernetes.io/pod-deletion-cost": str(given.get("cost", 0))
            },
        },
        "spec": {"nodeName": given.get("node", "n1")},
        "status": {"phase": given.get("phase", "Running"), "conditions": conditions},
    }


EARLY, LATE = "2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"node": ""}, {}, id="one that is on no node"),
        pytest.param({"phase": "Pending"}, {}, id="one that does not run yet"),
        pytest.param({}, {"ready": EARLY}, id="one that is not ready"),
        pytest.param({"ready": EARLY, "cost": -1}, {"ready": EARLY}, id="the cheaper one"),
        pytest.param({"ready": LATE}, {"ready": EARLY}, id="the one that was ready later"),
        pytest.param(
            {"ready": EARLY, "created": LATE}, {"ready": EARLY, "created": EARLY}, id="the younger"
        ),
    ],
)
def test_which_pod_is_given_up_first(first: dict[str, Any], second: dict[str, Any]) -> None:
    pods = [pod("second", **second), pod("first", **first)]
    assert [p["metadata"]["name"] for p in worth_deleting_first(pods)] == ["first", "second"]


def test_where_more_of_the_set_are_on_one_node_one_of_those_goes_first() -> None:
    pods = [pod("alone", node="n2"), pod("a", node="n1"), pod("b", node="n1")]
    assert worth_deleting_first(pods)[-1]["metadata"]["name"] == "alone"
