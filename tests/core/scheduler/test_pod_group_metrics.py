"""Metrics of native pod groups (gang.md, section 3), in the whole scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.metrics import HistogramValue, SchedulerMetrics
from scheduler_core.testing.harness import Harness
from tests.core.scheduler.native_gang import gang_harness, member, node, profile

DEFAULT = "default-scheduler"


def observations(metrics: SchedulerMetrics, name: str) -> dict[tuple[str, ...], int]:
    found = metrics.samples()[f"scheduler_podgroup_{name}"]
    return {
        labels: sum(value.counts)
        for labels, value in found.items()
        if isinstance(value, HistogramValue)
    }


def counted(**harness: Any) -> tuple[Harness, SchedulerMetrics]:
    metrics = SchedulerMetrics()
    return gang_harness(metrics=metrics, **harness), metrics


OTHER = [{"schedulerName": name, **profile()} for name in (DEFAULT, "other")]


@pytest.mark.parametrize(
    "harness, result",
    [
        pytest.param(
            {"nodes": [node("n", "2")], "pods": [member("a"), member("b")]},
            "scheduled",
            id="scheduled",
        ),
        pytest.param(
            {"nodes": [node("n", "1")], "pods": [member("a"), member("b")]},
            "unschedulable",
            id="unschedulable",
        ),
        pytest.param(
            {
                "nodes": [node("n", "9")],
                "pods": [member("a"), member("b").scheduler_name("other")],
                "config": {"profiles": OTHER},
            },
            "error",
            id="error",
        ),
    ],
)
def test_a_cycle_of_a_group_is_counted_by_how_it_ended(
    harness: dict[str, Any], result: str
) -> None:
    _, metrics = counted(**harness)
    attempts = metrics.samples()["scheduler_podgroup_schedule_attempts_total"]
    assert attempts == {(result, DEFAULT): 1.0}
    assert observations(metrics, "scheduling_attempt_duration_seconds") == {(result, DEFAULT): 1}
    assert observations(metrics, "scheduling_algorithm_duration_seconds") == {(): 1}
