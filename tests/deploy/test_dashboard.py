"""The Grafana dashboard uses only metrics and labels that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from dashboard.metrics.catalog import CATALOG
from tests.deploy.manifests import DEPLOY

DASHBOARD = json.loads((DEPLOY / "grafana" / "kubesched.json").read_text())
#: prometheus-client's own, of every process.
PROCESS = {"process_resident_memory_bytes", "process_cpu_seconds_total"}
METRIC = re.compile(r"\b((?:scheduler|kubesched|process)_[a-z_]+)(?:\{([^}]*)\})?")
#: What Prometheus adds.
ADDED = {"job", "instance", "le"}


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def queries() -> Iterator[Any]:
    for panel in panels():
        for target in panel["targets"]:
            yield pytest.param(target["expr"], id=f"{panel['title']} {target['refId']}")


def base_of(name: str) -> tuple[str, str]:
    """The family, and the part of it."""
    for part in ("_bucket", "_sum", "_count"):
        family = name.removesuffix(part)
        if name.endswith(part) and family in CATALOG and CATALOG[family].type == "histogram":
            return family, part
    return name, ""


@pytest.mark.parametrize("expr", list(queries()))
def test_a_query_asks_for_what_there_is(expr: str) -> None:
    found = METRIC.findall(expr)
    assert found
    known: set[str] = set(ADDED)
    for name, matchers in found:
        family, part = base_of(name)
        if family in PROCESS:
            continue
        metric = CATALOG[family]
        assert not metric.reserved, f"{family} never has a sample"
        assert (metric.type == "histogram") == bool(part), name
        labels = set(re.findall(r"([a-z_]+)\s*[=!]", matchers))
        assert labels <= {*metric.labels, *ADDED}, name
        known |= set(metric.labels)
        if metric.type == "counter":
            assert re.search(rf"(rate|increase)\({family}", expr), f"{family} is a counter"
    for group in re.findall(r"by \(([^)]*)\)", expr):
        assert {label.strip() for label in group.split(",")} <= known


def test_parentheses_and_legends() -> None:
    for panel in panels():
        for target in panel["targets"]:
            assert target["expr"].count("(") == target["expr"].count(")")
            shown = set(re.findall(r"\{\{([a-z_]+)\}\}", target["legendFormat"]))
            grouped = set(
                re.findall(r"[a-z_]+", " ".join(re.findall(r"by \(([^)]*)\)", target["expr"])))
            )
            assert shown <= grouped | {"instance"}, panel["title"]


def test_ids_are_its_own_and_no_panel_lies_on_another() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells


def test_what_matters_most_is_on_it() -> None:
    text = json.dumps(DASHBOARD)
    for name in (
        "scheduler_pending_pods",
        "scheduler_schedule_attempts_total",
        "scheduler_pod_scheduling_sli_duration_seconds",
        "scheduler_plugin_execution_duration_seconds",
        "kubesched_waiting_pods",
        "kubesched_recorder_back_pressure_seconds_total",
    ):
        assert name in text
