"""Budgets: how many pods may be disrupted."""

from __future__ import annotations

from typing import Any

import pytest

from .support import World
from .test_deployment import deployment

NAME = "budget"


def budget(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": NAME},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }


def status(world: World) -> dict[str, Any]:
    found: dict[str, Any] = world.get("PodDisruptionBudget", NAME)["status"]
    return found


@pytest.mark.parametrize(
    ("spec", "expected", "desired", "allowed"),
    [
        pytest.param({"minAvailable": 3}, 4, 3, 1, id="a number that must stay"),
        pytest.param({"minAvailable": "50%"}, 4, 2, 2, id="a share that must stay"),
        pytest.param({"minAvailable": "51%"}, 4, 3, 1, id="shares are rounded up"),
        pytest.param({"maxUnavailable": 1}, 4, 3, 1, id="a number that may go"),
        pytest.param({"maxUnavailable": "30%"}, 4, 2, 2, id="a share that may go, rounded up"),
        pytest.param({"minAvailable": 9}, 4, 9, 0, id="more than there are"),
    ],
)
def test_counts(spec: dict[str, Any], expected: int, desired: int, allowed: int) -> None:
    world = World()
    world.cluster.create("Deployment", deployment(4))
    world.cluster.create("PodDisruptionBudget", budget(**spec))
    world.run(30)
    found = status(world)
    assert found["expectedPods"] == expected
    assert found["desiredHealthy"] == desired
    assert found["currentHealthy"] == 4
    assert found["disruptionsAllowed"] == allowed
    (condition,) = found["conditions"]
    reason = "SufficientPods" if allowed else "InsufficientPods"
    assert (condition["type"], condition["reason"]) == ("DisruptionAllowed", reason)


def test_pods_without_a_controller_have_no_share() -> None:
    world = World()
    spec = {"containers": [{"name": "main", "image": "app"}]}
    world.cluster.create(
        "Pod", {"metadata": {"name": "lone", "labels": {"app": "web"}}, "spec": spec}
    )
    world.cluster.create("PodDisruptionBudget", budget(maxUnavailable=1))
    world.run(30)
    (condition,) = status(world)["conditions"]
    assert condition["reason"] == "SyncFailed"
    assert condition["message"] == "found no controllers for pod 'lone'"
    assert status(world)["disruptionsAllowed"] == 0


def test_an_eviction_that_was_allowed_counts_until_it_happened_or_is_given_up() -> None:
    world = World()
    world.cluster.create("Deployment", deployment(2))
    world.cluster.create("PodDisruptionBudget", budget(minAvailable=1))
    world.run(30)
    name = world.pods()[0]["metadata"]["name"]
    evicted = {"status": {"disruptedPods": {name: "2027-01-15T08:00:30Z"}}}
    world.cluster.patch("PodDisruptionBudget", "default", NAME, evicted, subresource="status")
    world.run(10)
    assert status(world)["disruptionsAllowed"] == 0
    world.run(150)
    assert "disruptedPods" not in status(world)
    assert status(world)["disruptionsAllowed"] == 1
