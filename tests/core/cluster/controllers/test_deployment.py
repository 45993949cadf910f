"""Deployments: rolling out, scaling, pausing, going back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.cluster.controllers.rollout import Limits, limits_of, old_sizes, size_of_new
from scheduler_core.ports import Json

from .support import World, template

REVISION = "deployment.kubernetes.io/revision"


def deployment(replicas: int = 4, image: str = "app:1", **spec: Any) -> Json:
    return {
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(image),
            **spec,
        },
    }


def change(world: World, **spec: Any) -> None:
    world.cluster.patch("Deployment", "default", "web", {"spec": spec})


def images(world: World) -> list[str]:
    return sorted(
        p["spec"]["containers"][0]["image"]
        for p in world.pods()
        if p["status"]["phase"] == "Running"
    )


def conditions(world: World) -> dict[str, tuple[str, str]]:
    found = world.get("Deployment", "web")["status"]["conditions"]
    return {c["type"]: (c["status"], c["reason"]) for c in found}


def test_it_runs_what_is_asked_for_and_says_so() -> None:
    world = World()
    world.cluster.create("Deployment", deployment())
    world.run()
    (of,) = world.sets()
    label = of["metadata"]["labels"]["pod-template-hash"]
    assert of["metadata"]["name"] == f"web-{label}"
    assert len(world.pods(f"pod-template-hash={label}")) == 4
    found = world.get("Deployment", "web")
    assert found["metadata"]["annotations"][REVISION] == "1"
    assert {k: v for k, v in found["status"].items() if k != "conditions"} == {
        "observedGeneration": 1,
        "replicas": 4,
        "updatedReplicas": 4,
        "readyReplicas": 4,
        "availableReplicas": 4,
    }
    assert conditions(world) == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }
    name = of["metadata"]["name"]
    assert world.events("ScalingReplicaSet") == [f"Scaled up replica set {name} from 0 to 4"]


def test_a_new_template_is_rolled_out_and_undone() -> None:
    world = World()
    world.cluster.create("Deployment", deployment())
    world.run()
    change(world, template=template("app:2"))
    world.run(120)
    assert images(world) == ["app:2"] * 4
    assert [s["spec"]["replicas"] for s in world.sets()].count(0) == 1
    assert world.get("Deployment", "web")["metadata"]["annotations"][REVISION] == "2"
    change(world, template=template("app:1"))
    world.run(120)
    assert images(world) == ["app:1"] * 4
    assert len(world.sets()) == 2
    assert world.get("Deployment", "web")["metadata"]["annotations"][REVISION] == "3"


def test_a_rollout_keeps_within_its_limits_at_every_moment() -> None:
    world = World()
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
    world.cluster.create("Deployment", deployment(6, strategy=rolling))
    world.run()
    change(world, template=template("app:2"))
    for _ in range(200):
        world.run(0.1)
        active = [p for p in world.pods() if p["status"]["phase"] in ("Pending", "Running")]
        active = [p for p in active if not p["metadata"].get("deletionTimestamp")]
        assert len(active) <= 7
        assert len(images(world)) >= 5
    assert images(world) == ["app:2"] * 6


def test_recreate_ends_all_old_pods_before_the_first_new_one() -> None:
    world = World()
    world.cluster.create("Deployment", deployment(3, strategy={"type": "Recreate"}))
    world.run()
    change(world, template=template("app:2"))
    seen = set()
    for _ in range(200):
        world.run(0.1)
        seen.add(tuple(sorted({p["spec"]["containers"][0]["image"] for p in world.pods()})))
    assert ("app:1", "app:2") not in seen
    assert images(world) == ["app:2"] * 3


def test_a_paused_deployment_scales_and_does_not_roll() -> None:
    world = World()
    world.cluster.create("Deployment", deployment(2))
    world.run()
    change(world, paused=True, template=template("app:2"), replicas=5)
    world.run(60)
    assert images(world) == ["app:1"] * 5
    change(world, paused=False)
    world.run(120)
    assert images(world) == ["app:2"] * 5


def test_a_rollout_that_does_not_come_on_is_told_after_its_deadline() -> None:
    world = World(bind=False)
    world.cluster.create("Deployment", deployment(1, progressDeadlineSeconds=60))
    world.run(50)
    assert conditions(world)["Progressing"] == ("True", "ReplicaSetUpdated")
    world.run(60)
    assert conditions(world)["Progressing"] == ("False", "ProgressDeadlineExceeded")
    world.bind = True
    world.run(30)
    assert conditions(world)["Progressing"] == ("True", "NewReplicaSetAvailable")


def test_old_revisions_beyond_the_limit_are_forgotten() -> None:
    world = World()
    world.cluster.create("Deployment", deployment(1, revisionHistoryLimit=1))
    for number in range(2, 6):
        world.run(60)
        change(world, template=template(f"app:{number}"))
    world.run(60)
    assert len(world.sets()) == 2


def test_what_an_orphaning_deletion_left_is_adopted_again() -> None:
    world = World()
    world.cluster.create("Deployment", deployment(2))
    world.run()
    held = {"metadata": {"finalizers": ["orphan"]}}
    world.cluster.patch("Deployment", "default", "web", held)
    world.cluster.delete("Deployment", "default", "web")
    world.run(10)
    before = {p["metadata"]["uid"] for p in world.pods()}
    assert len(before) == 2
    world.cluster.create("Deployment", deployment(2))
    world.run(30)
    assert {p["metadata"]["uid"] for p in world.pods()} == before
    assert len(world.sets()) == 1


def test_deleting_it_takes_sets_and_pods_with_it() -> None:
    world = World()
    world.cluster.create("Deployment", deployment())
    world.run()
    world.cluster.delete("Deployment", "default", "web")
    world.run(60)
    assert (list(world.sets()), list(world.pods())) == ([], [])


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "expected"),
    [
        pytest.param("25%", "25%", 10, Limits(3, 2), id="surge is rounded up, unavailable down"),
        pytest.param(0, "1%", 10, Limits(0, 1), id="it must be able to move"),
        pytest.param(5, 20, 10, Limits(5, 10), id="no more unavailable than there are"),
    ],
)
def test_limits(surge: Any, unavailable: Any, replicas: int, expected: Limits) -> None:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    assert limits_of(deployment(replicas, strategy={"rollingUpdate": rolling})) == expected


sizes = st.integers(0, 12)


@given(sizes, st.integers(0, 4), sizes, st.lists(st.tuples(sizes, sizes), max_size=4), st.data())
def test_no_step_of_a_rollout_breaks_its_limits(
    wanted: int, surge: int, new: int, old: list[tuple[int, int]], data: st.DataObject
) -> None:
    limits = Limits(surge, 1 if surge == 0 else data.draw(st.integers(0, 4)))
    old = [(size, min(size, available)) for size, available in old]
    new = min(new, wanted)
    ready = data.draw(st.integers(0, new))
    before = new + sum(size for size, _ in old)
    grown = size_of_new(wanted, limits, new, before)
    assert grown >= new
    assert grown + before - new <= max(before, wanted + surge)
    after = old_sizes(wanted, limits, (grown, ready), old)
    assert all(0 <= now <= size for now, (size, _) in zip(after, old, strict=True))
    available = ready + sum(available for _, available in old)
    left = ready + sum(min(a, now) for now, (_, a) in zip(after, old, strict=True))
    assert left >= min(available, wanted - limits.unavailable)
