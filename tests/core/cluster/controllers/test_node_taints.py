"""Taints that follow from a node's state, and whom they drive away."""

from __future__ import annotations

from typing import Any

import pytest

from .support import World


def taints(world: World) -> list[tuple[str, str]]:
    found = world.cluster.get("Node", "", "n1")["spec"].get("taints") or []
    return [(t["key"].removeprefix("node.kubernetes.io/"), t["effect"]) for t in found]


def say(world: World, kind: str, status: str) -> None:
    condition = {"conditions": [{"type": kind, "status": status}]}
    world.cluster.patch("Node", "", "n1", {"status": condition}, subresource="status")


def pod(world: World, name: str = "web", **spec: Any) -> None:
    body = {"containers": [{"name": "main", "image": "app"}], **spec}
    world.cluster.create("Pod", {"metadata": {"name": name}, "spec": body})


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        pytest.param("Ready", "True", [], id="ready"),
        pytest.param(
            "Ready",
            "False",
            [("not-ready", "NoSchedule"), ("not-ready", "NoExecute")],
            id="not ready",
        ),
        pytest.param(
            "Ready",
            "Unknown",
            [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")],
            id="not heard of",
        ),
        pytest.param(
            "MemoryPressure", "True", [("memory-pressure", "NoSchedule")], id="short of memory"
        ),
        pytest.param("DiskPressure", "True", [("disk-pressure", "NoSchedule")], id="short of disk"),
        pytest.param("PIDPressure", "True", [("pid-pressure", "NoSchedule")], id="short of pids"),
        pytest.param(
            "NetworkUnavailable",
            "True",
            [("network-unavailable", "NoSchedule")],
            id="without network",
        ),
    ],
)
def test_conditions_become_taints_and_go_again(
    kind: str, status: str, expected: list[tuple[str, str]]
) -> None:
    world = World()
    say(world, kind, status)
    world.run(1)
    assert taints(world) == expected
    say(world, kind, "True" if kind == "Ready" else "False")
    world.run(1)
    assert taints(world) == []


def test_a_cordoned_node_has_its_taint_and_keeps_those_of_others() -> None:
    world = World()
    mine = {"key": "team", "value": "a", "effect": "NoSchedule"}
    world.cluster.patch("Node", "", "n1", {"spec": {"taints": [mine], "unschedulable": True}})
    world.run(1)
    assert taints(world) == [("team", "NoSchedule"), ("unschedulable", "NoSchedule")]
    world.cluster.patch("Node", "", "n1", {"spec": {"unschedulable": None}})
    world.run(1)
    assert taints(world) == [("team", "NoSchedule")]


def test_pods_leave_a_node_that_is_not_ready_after_what_they_tolerate() -> None:
    world = World()
    pod(world, "usual")
    pod(world, "patient", tolerations=[{"operator": "Exists"}])
    short = {
        "key": "node.kubernetes.io/not-ready",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 10,
    }
    pod(world, "hasty", tolerations=[short])
    world.run(5)
    say(world, "Ready", "False")
    world.bind = False
    gone: dict[str, int] = {}
    for second in range(400):
        world.run(1)
        left = {p["metadata"]["name"] for p in world.pods()}
        for name in ("usual", "patient", "hasty"):
            if name not in left:
                gone.setdefault(name, second)
    assert gone["hasty"] in range(9, 13)
    assert gone["usual"] in range(298, 303)
    assert "patient" not in gone
    assert world.events("TaintManagerEviction")


def test_a_taint_that_is_not_tolerated_drives_out_at_once_and_says_why() -> None:
    world = World()
    pod(world)
    world.run(5)
    stop = {"spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]}}
    world.cluster.patch("Node", "", "n1", stop)
    world.manager.tick(world.clock.now())
    (leaving,) = world.pods()
    assert leaving["metadata"]["deletionTimestamp"]
    (reason,) = [c for c in leaving["status"]["conditions"] if c["type"] == "DisruptionTarget"]
    assert reason["reason"] == "DeletionByTaintManager"
