"""/metrics against the table of the reference's metrics: name, type, labels and buckets."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

from dashboard.metrics import exposition, resources
from dashboard.metrics.catalog import CATALOG
from scheduler_core.api import Pod
from scheduler_core.testing.builders import make_pod
from tests.dashboard.metrics.busy import busy_metrics

TABLE = yaml.safe_load((Path(__file__).parents[2] / "data" / "metrics-1.36.yaml").read_text())


@functools.cache
def page() -> str:
    body, media_type = exposition.page(busy_metrics().samples())
    assert media_type == "text/plain; version=0.0.4; charset=utf-8"
    return body.decode()


def resources_page() -> str:
    pod = make_pod("p").req(cpu=1, memory="1Gi").node("n").raw()
    pod["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "2"}
    samples = resources.samples_of([Pod.from_dict(pod)])
    return exposition.page(samples, catalog=resources.CATALOG)[0].decode()


@functools.cache
def families() -> dict[str, Family]:
    """By the name in the table: the parser takes ``_total`` off."""
    found = {}
    for family in text_string_to_metric_families(page() + resources_page()):
        found[f"{family.name}_total" if family.type == "counter" else family.name] = family
    return found


def bounds(first: float, factor: float, count: int) -> list[float]:
    """As Go's ExponentialBuckets has them."""
    found = [first]
    while len(found) < count:
        found.append(found[-1] * factor)
    return found


def row_id(row: dict[str, Any]) -> str:
    return str(row["name"])


@pytest.mark.parametrize("row", TABLE, ids=row_id)
def test_a_metric_is_as_in_the_reference(row: dict[str, Any]) -> None:
    family = families()[row["name"]]
    stability = row.get("stability", "ALPHA")
    assert family.type == row["type"]
    assert family.documentation.startswith(f"[{stability}] ")
    if row.get("silent"):
        assert family.samples == []
        assert list(CATALOG[row["name"]].labels) == row["labels"]
        return
    assert family.samples, "nothing has happened that it counts"
    for sample in family.samples:
        assert sorted(set(sample.labels) - {"le"}) == sorted(row.get("labels", [])), sample.name
    if row["type"] == "histogram":
        of_one = [s for s in family.samples if s.name.endswith("_bucket")]
        first = {k: v for k, v in of_one[0].labels.items() if k != "le"}
        edges = [
            float(s.labels["le"])
            for s in of_one
            if {k: v for k, v in s.labels.items() if k != "le"} == first
        ]
        assert edges == [*bounds(*row["exp"]), float("inf")]


def test_nothing_else_is_called_as_the_reference_calls_its_own() -> None:
    ours = {name for name in families() if not name.startswith("kubesched_")}
    assert ours == {row["name"] for row in TABLE}
    assert {name for name in families() if name.startswith("kubesched_")} == {
        name for name in CATALOG if name.startswith("kubesched_")
    }


def test_bounds_are_written_as_go_writes_them() -> None:
    series = "scheduler_plugin_execution_duration_seconds_bucket{"
    lines = [line for line in page().splitlines() if line.startswith(series)]
    edges = [line.split('le="')[1].split('"')[0] for line in lines]
    assert edges[:3] == ["1e-05", "1.5000000000000002e-05", "2.2500000000000005e-05"]
    assert edges[20] == "+Inf"
    assert 'scheduler_preemption_victims_bucket{le="1"}' in page()
    assert 'scheduler_preemption_victims_bucket{le="64"}' in page()


def test_openmetrics_has_its_own_way_to_write_them() -> None:
    text = exposition.page(busy_metrics().samples(), "application/openmetrics-text")[0].decode()
    assert 'scheduler_preemption_victims_bucket{le="1.0"}' in text


@pytest.mark.parametrize(
    ("name", "label", "values"),
    [
        pytest.param(
            "scheduler_pending_pods",
            "queue",
            {"active", "backoff", "unschedulable", "gated"},
            id="queues",
        ),
        pytest.param(
            "scheduler_cache_size", "type", {"nodes", "pods", "assumed_pods"}, id="cache sizes"
        ),
        pytest.param(
            "scheduler_schedule_attempts_total",
            "result",
            {"scheduled", "unschedulable", "error"},
            id="results of attempts",
        ),
        pytest.param(
            "scheduler_podgroup_schedule_attempts_total",
            "result",
            {"scheduled"},
            id="results of groups",
        ),
        pytest.param(
            "scheduler_volume_scheduling_stage_error_total", "operation", {"assume"}, id="stages"
        ),
    ],
)
def test_label_values_are_the_references(name: str, label: str, values: set[str]) -> None:
    assert {sample.labels[label] for sample in families()[name].samples} == values


def test_extension_points_have_the_references_names() -> None:
    known = {
        "PreEnqueue",
        "PreFilter",
        "PreFilterExtensionAddPod",
        "PreFilterExtensionRemovePod",
        "Filter",
        "PostFilter",
        "PreScore",
        "Score",
        "ScoreExtensionNormalize",
        "Reserve",
        "Unreserve",
        "Permit",
        "PreBind",
        "PreBindPreFlight",
        "Bind",
        "PostBind",
    }
    for name in (
        "scheduler_framework_extension_point_duration_seconds",
        "scheduler_plugin_execution_duration_seconds",
        "scheduler_plugin_evaluation_total",
    ):
        assert {sample.labels["extension_point"] for sample in families()[name].samples} <= known


def test_samples_survive_the_way_between_processes() -> None:
    samples = busy_metrics().samples()
    again = exposition.from_json(json.loads(json.dumps(exposition.as_json(samples))))
    assert again == samples
