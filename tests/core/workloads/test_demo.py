"""The demo shows everything, and stays small."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.api.validation import validate
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.workloads.demo import DemoWorkload
from scheduler_core.workloads.demo_catalog import demo_nodes
from tests.contract.support import Recorder
from tests.core.workloads.fakes import World

Json = dict[str, Any]


@pytest.fixture(scope="module")
def after_ten_minutes() -> World:
    world = World(DemoWorkload())
    world.run(600, step=2.0)
    return world


def test_nodes_of_several_kinds() -> None:
    nodes = demo_nodes()
    assert len(nodes) == 24
    assert len({n["metadata"]["name"] for n in nodes}) == 24
    zones = [n["metadata"]["labels"]["topology.kubernetes.io/zone"] for n in nodes]
    assert {zone: zones.count(zone) for zone in zones} == {
        "eu-west-1a": 8,
        "eu-west-1b": 8,
        "eu-west-1c": 8,
    }
    assert sum("nvidia.com/gpu" in n["status"]["capacity"] for n in nodes) == 3
    assert sum(bool(n["spec"].get("unschedulable")) for n in nodes) == 1
    assert {t["effect"] for n in nodes for t in n["spec"].get("taints", [])} == {
        "NoSchedule",
        "PreferNoSchedule",
    }
    assert [fault for n in nodes for fault in validate(n)] == []


def test_pages_have_something_to_show(after_ten_minutes: World) -> None:
    pods = after_ten_minutes.pods()
    running = [p for p in pods if p["status"]["phase"] == "Running"]
    pending = [p for p in pods if p["status"]["phase"] == "Pending"]
    assert len(running) > 60
    assert any(p["status"]["phase"] == "Succeeded" for p in pods)
    assert any(p["spec"].get("schedulingGates") for p in pending)
    misfits = {"video-render", "edge-cache", "pretraining", "ledger-replica"}
    assert {p["metadata"]["labels"]["app"] for p in pending} & misfits
    assert any("affinity" in p["spec"] for p in running)
    assert {p["metadata"]["namespace"] for p in pods} == {"shop", "research", "analytics"}


def test_the_cluster_is_well_used_and_not_full(after_ten_minutes: World) -> None:
    cpu = {"free": 0.0, "used": 0.0}
    for node in after_ten_minutes.cluster.list("Node").items:
        cpu["free"] += float(node["status"]["allocatable"]["cpu"])
    for pod in after_ten_minutes.pods():
        if pod["status"]["phase"] == "Running":
            asked = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
            cpu["used"] += float(asked[:-1]) / 1000 if asked.endswith("m") else float(asked)
    assert 0.3 < cpu["used"] / cpu["free"] < 0.95


def test_gangs_with_and_without_approval(after_ten_minutes: World) -> None:
    groups = after_ten_minutes.cluster.list("PodGroup").items
    assert len(groups) >= 5
    asking = [g for g in groups if g["metadata"]["labels"].get("kubesched.io/approval")]
    assert 0 < len(asking) < len(groups)
    for group in asking:
        assert group["metadata"]["labels"]["kubesched.io/approval"] == "required"
        requested_by = group["metadata"]["annotations"]["kubesched.io/requested-by"]
        assert requested_by.endswith("@demo.example")
    assert any(g["status"]["phase"] == "Finished" for g in groups)


def test_the_first_gang_asks_for_approval_at_once() -> None:
    world = World(DemoWorkload(), schedules=False)
    world.run(4)
    (group,) = world.cluster.list("PodGroup").items
    assert group["metadata"]["labels"]["kubesched.io/approval"] == "required"
    selector = f"scheduling.x-k8s.io/pod-group={group['metadata']['name']}"
    members = world.cluster.list("Pod", label_selector=selector).items
    assert len(members) == group["spec"]["minMember"]


def test_some_gang_misses_a_member_for_a_while() -> None:
    world = World(DemoWorkload(), schedules=False)
    seen = {"short": False, "whole": False}

    def sizes() -> dict[str, tuple[int, int]]:
        found = {}
        for group in world.cluster.list("PodGroup").items:
            name = group["metadata"]["name"]
            members = world.cluster.list(
                "Pod", label_selector=f"scheduling.x-k8s.io/pod-group={name}"
            ).items
            found[name] = (len(members), group["spec"]["minMember"])
        return found

    short: set[str] = set()
    for _ in range(60):
        world.run(5)
        for name, (members, needed) in sizes().items():
            if members < needed:
                short.add(name)
                seen["short"] = True
            elif name in short:
                seen["whole"] = True
    assert seen == {"short": True, "whole": True}


def test_it_stays_bounded_for_hours() -> None:
    world = World(DemoWorkload())
    most = 0
    for _ in range(8):
        world.run(900, step=10.0)
        most = max(most, len(world.pods()))
        assert len(world.cluster.list("PodGroup").items) <= 60
    assert most < 450
    assert world.scheduler is not None
    assert world.scheduler.bound > 2000


def test_it_stays_bounded_without_a_scheduler() -> None:
    world = World(DemoWorkload(), schedules=False)
    world.run(3 * 3600, step=10.0)
    assert len(world.pods()) < 350
    assert len(world.cluster.list("PodGroup").items) <= 60


def history(seconds: float, restart_at: float | None = None) -> list[tuple[str, str]]:
    workload = DemoWorkload(seed=7)
    world = World(workload, schedules=False)
    sink = Recorder()
    world.cluster.list_watch("Pod", sink)
    if restart_at is None:
        world.run(seconds)
    else:
        world.run(restart_at)
        again = DemoWorkload(seed=7)
        again.load(workload.state())
        world.runner.workload = again
        world.run(seconds - restart_at)
    return sink.seen


def test_the_same_seed_gives_the_same_pods() -> None:
    assert history(300) == history(300)


def test_a_restart_goes_on_where_it_was() -> None:
    assert [e for e in history(300, restart_at=120) if e[0] == "ADDED"] == [
        e for e in history(300) if e[0] == "ADDED"
    ]


def test_time_that_it_slept_is_not_made_up_for() -> None:
    workload = DemoWorkload()
    world = World(workload, schedules=False)
    world.run(60)
    state = workload.state()
    before = len(world.pods())
    world.clock.advance(3600)
    again = DemoWorkload()
    again.load(state)
    world.runner.workload = again
    world.run(2)
    assert len(world.pods()) - before < 5


def test_a_crash_in_the_middle_does_nothing_twice() -> None:
    """The state that is kept may be older than the objects."""
    workload = DemoWorkload()
    world = World(workload, schedules=False)
    world.run(30)
    state = workload.state()
    world.run(20)
    expected = {p["metadata"]["name"] for p in world.pods()}
    workload.load(state)
    workload._resumed = False  # the same times again, not shifted
    world.run(0.5)
    assert {p["metadata"]["name"] for p in world.pods()} == expected


@pytest.mark.parametrize(
    ("state", "message"),
    [
        pytest.param({"workload": "trace"}, "state of 'trace', not of demo", id="of another"),
        pytest.param({"workload": "demo"}, "the state of demo is damaged", id="empty"),
        pytest.param(
            {**DemoWorkload().state(), "later": 3}, "the state of demo is damaged", id="damaged"
        ),
    ],
)
def test_a_state_that_is_none(state: Json, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DemoWorkload().load(state)


def test_a_pace_that_is_none() -> None:
    with pytest.raises(ValueError, match="pace must be positive"):
        DemoWorkload(pace=0)


def test_it_acts_in_its_own_name() -> None:
    world = World(DemoWorkload(), schedules=False)
    world.run(5)
    store: Any = world.cluster
    assert isinstance(store, SandboxCluster)
    actors = {change.write.actor for change in store._store.changes_after("Pod", 0)}
    assert actors == {"workload:demo"}
