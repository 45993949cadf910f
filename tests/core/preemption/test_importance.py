"""Which pods matter more, whom a budget protects, and which node hurts least."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.api import Pod, PodDisruptionBudget
from scheduler_core.framework.preemption.importance import (
    best_candidate,
    most_important_first,
    split_by_budget,
)
from scheduler_core.framework.types import Candidate
from scheduler_core.testing.builders import make_pod

NOW = 10_000.0


def now() -> float:
    return NOW


def pod(name: str, priority: int = 0, started: float | None = None, **labels: str) -> Pod:
    builder = make_pod(name).priority(priority)
    if labels:
        builder = builder.label(labels)
    return (builder if started is None else builder.started(started)).obj()


def budget(allowed: int, selector: Any = None, disrupted: tuple[str, ...] = (), **more: Any) -> Any:
    raw = {
        "metadata": {"name": "budget", "namespace": more.get("namespace", "default")},
        "spec": {"selector": {"matchLabels": {"app": "web"}} if selector is None else selector},
        "status": {
            "disruptionsAllowed": allowed,
            "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
        },
    }
    if selector == "absent":
        del raw["spec"]["selector"]
    return PodDisruptionBudget.from_dict(raw)


def names(pods: Any) -> list[str]:
    return [p.name for p in pods]


@pytest.mark.parametrize(
    ("pods", "order"),
    [
        pytest.param(
            [pod("a", 1), pod("b", 3), pod("c", 2)], ["b", "c", "a"], id="higher priority first"
        ),
        pytest.param(
            [pod("a", 1, 300), pod("b", 1, 100), pod("c", 1, 200)],
            ["b", "c", "a"],
            id="longer running first",
        ),
        pytest.param(
            [pod("a", 1, 100), pod("b", 1, 100), pod("c", 1, 100)],
            ["a", "b", "c"],
            id="equals keep their order",
        ),
        pytest.param(
            [pod("a"), pod("b"), pod("c")],
            ["c", "b", "a"],
            id="without a start time: in reverse",
        ),
        pytest.param(
            [pod("a"), pod("b", 0, 100), pod("c")],
            ["b", "c", "a"],
            id="whoever has not started comes after whoever has",
        ),
        pytest.param(
            [pod("a", 0, NOW + 5), pod("b")],
            ["b", "a"],
            id="a start in the future is later than now",
        ),
    ],
)
def test_importance(pods: list[Pod], order: list[str]) -> None:
    assert names(most_important_first(pods, now)) == order


@pytest.mark.parametrize(
    ("budgets", "violating"),
    [
        pytest.param([], [], id="no budget"),
        pytest.param([budget(0)], ["a", "b", "c"], id="nothing allowed"),
        pytest.param([budget(1)], ["b", "c"], id="the first ones use it up"),
        pytest.param([budget(3)], [], id="enough"),
        pytest.param([budget(-1)], ["a", "b", "c"], id="below nothing"),
        pytest.param([budget(2), budget(1)], ["b", "c"], id="one of two is enough to break"),
        pytest.param([budget(0, namespace="other")], [], id="another namespace"),
        pytest.param([budget(0, {})], [], id="an empty selector selects nobody"),
        pytest.param([budget(0, "absent")], [], id="nor does an absent one"),
        pytest.param([budget(0, disrupted=("b",))], ["a", "c"], id="already counted by the API"),
        pytest.param(
            [budget(0, {"matchExpressions": [{"key": "app", "operator": "Bad"}]})],
            [],
            id="a selector that does not parse",
        ),
        pytest.param(
            [budget(0, {"matchExpressions": [{"key": "app", "operator": "Exists"}]})],
            ["a", "b", "c"],
            id="expressions",
        ),
    ],
)
def test_budgets(budgets: list[PodDisruptionBudget], violating: list[str]) -> None:
    pods = [pod(name, app="web") for name in "abc"]
    broken, others = split_by_budget(pods, budgets)
    assert names(broken) == violating
    assert names(others) == [name for name in "abc" if name not in violating]


def test_a_pod_without_labels_is_under_no_budget() -> None:
    everybody = budget(0, {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]})
    bare, labelled = pod("bare"), pod("labelled", tier="x")
    assert names(split_by_budget([bare, labelled], [everybody])[0]) == ["labelled"]


def candidate(node: str, *victims: Pod, violations: int = 0) -> Candidate:
    return Candidate(node, victims, violations)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        pytest.param(
            candidate("n", pod("a", 9), pod("b", 9)),
            candidate("n", pod("a", 1), violations=1),
            id="fewer broken budgets",
        ),
        pytest.param(
            candidate("n", pod("a", 1), pod("b", 1), pod("c", 1)),
            candidate("n", pod("a", 2)),
            id="less important worst victim",
        ),
        pytest.param(
            candidate("n", pod("a", 5), pod("b", 1)),
            candidate("n", pod("a", 5), pod("b", 2)),
            id="smaller sum of priorities",
        ),
        pytest.param(
            candidate("n", pod("a", -5)),
            candidate("n", pod("a", -5), pod("b", -9)),
            id="few of negative priority beat many",
        ),
        pytest.param(
            candidate("n", pod("a", 1, 200)),
            candidate("n", pod("a", 1, 100)),
            id="started later",
        ),
        pytest.param(
            candidate("n", pod("a", 5, 200), pod("b", 1, 10)),
            candidate("n", pod("a", 5, 100), pod("b", 1, 300)),
            id="only the most important victims' start counts",
        ),
        pytest.param(
            candidate("n", pod("a", 5, 150), pod("b", 5, 200)),
            candidate("n", pod("a", 5, 900), pod("b", 5, 100)),
            id="the earliest of them",
        ),
        pytest.param(
            candidate("n", pod("a", 1)), candidate("n", pod("a", 1, 100)), id="not started: now"
        ),
    ],
)
def test_the_node_that_hurts_least(better: Candidate, worse: Candidate) -> None:
    assert best_candidate([worse, better], now) is better
    assert best_candidate([better, worse], now) is better


def test_of_equals_the_first() -> None:
    first, second = candidate("x", pod("a", 1, 5)), candidate("y", pod("b", 1, 5))
    assert best_candidate([first, second], now) is first
