"""What owned objects do when their owners go."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.ports import Json, NotFound

from .support import World


def config(world: World, name: str, *owners: Json, **metadata: Any) -> Json:
    references = [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": True,
        }
        for owner in owners
    ]
    body: Json = {"metadata": {"name": name, "ownerReferences": references, **metadata}}
    return world.cluster.create("Service", {**body, "spec": {}})


def exists(world: World, name: str) -> bool:
    try:
        world.get("Service", name)
    except NotFound:
        return False
    return True


@pytest.fixture
def world() -> World:
    return World()


def test_what_has_lost_its_last_owner_goes(world: World) -> None:
    first, second = config(world, "first"), config(world, "second")
    config(world, "both", first, second)
    config(world, "one", first)
    world.run(1)
    world.cluster.delete("Service", "default", "first")
    world.run(1)
    assert not exists(world, "one")
    left = world.get("Service", "both")["metadata"]["ownerReferences"]
    assert [owner["name"] for owner in left] == ["second"]
    world.cluster.delete("Service", "default", "second")
    world.run(1)
    assert not exists(world, "both")


def test_an_owner_of_the_same_name_and_another_uid_is_not_the_owner(world: World) -> None:
    owner = config(world, "owner")
    fake = {**owner, "metadata": {**owner["metadata"], "uid": "0000"}}
    config(world, "child", fake)
    world.run(1)
    assert exists(world, "owner")
    assert not exists(world, "child")


def test_an_owner_of_a_kind_that_is_not_served_is_left_to_whoever_knows_it(world: World) -> None:
    owner = {"apiVersion": "example.com/v1", "kind": "Robot", "name": "r2", "uid": "42"}
    body = {"metadata": {"name": "child", "ownerReferences": [owner]}, "spec": {}}
    world.cluster.create("Service", body)
    world.run(5)
    assert exists(world, "child")


def test_foreground_the_owner_waits_for_what_it_owns(world: World) -> None:
    owner = config(world, "owner", finalizers=["foregroundDeletion"])
    config(world, "child", owner, finalizers=["mine"])
    world.run(1)
    world.cluster.delete("Service", "default", "owner")
    world.run(1)
    assert world.get("Service", "child")["metadata"]["deletionTimestamp"]
    assert exists(world, "owner")
    world.cluster.patch("Service", "default", "child", {"metadata": {"finalizers": None}})
    world.run(1)
    assert not exists(world, "child")
    assert not exists(world, "owner")


def test_orphan_what_it_owned_stays_without_it(world: World) -> None:
    owner = config(world, "owner", finalizers=["orphan"])
    config(world, "child", owner)
    world.run(1)
    world.cluster.delete("Service", "default", "owner")
    world.run(1)
    assert not exists(world, "owner")
    assert "ownerReferences" not in world.get("Service", "child")["metadata"]


def test_a_cascade_goes_all_the_way_down(world: World) -> None:
    parent = config(world, "a")
    for name in "bcdef":
        parent = config(world, name, parent)
    world.run(1)
    world.cluster.delete("Service", "default", "a")
    world.run(1)
    assert [exists(world, name) for name in "abcdef"] == [False] * 6
