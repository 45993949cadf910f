"""Figures: percentiles, medians, JSON and the table."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from scheduler_core.benchmark.report import Report, median_report, peak_rss_mib, percentile

REPORT = Report(
    workload="basic",
    nodes=5000,
    pods=4,
    existing_pods=150000,
    seconds=2.0,
    cpu_seconds=1.5,
    cycles=5,
    durations=(0.1, 0.2, 0.3, 0.4, 0.5),
    point_seconds={"Filter": 0.25, "Score": 0.75},
    plugin_seconds={
        ("Score", "A"): 0.2,
        ("Score", "B"): 0.5,
        ("Filter", "A"): 0.1,
    },
    outcomes={"scheduled": 3, "unschedulable": 1},
    peak_rss=100.04,
    pods_per_s_of_runs=(2.0,),
)


@pytest.mark.parametrize(
    "values,percent,expected",
    [
        pytest.param([], 50, 0.0, id="none"),
        pytest.param([3.0], 99, 3.0, id="one"),
        pytest.param([4.0, 1.0, 3.0, 2.0], 50, 2.0, id="unsorted"),
        pytest.param(list(range(1, 101)), 99, 99, id="p99 of a hundred"),
        pytest.param(list(range(1, 101)), 50, 50, id="p50 of a hundred"),
        pytest.param(list(range(1, 101)), 100, 100, id="the largest"),
        pytest.param([1.0, 2.0], 0, 1.0, id="the smallest"),
    ],
)
def test_percentiles_are_values_that_occurred(values, percent, expected):
    assert percentile(values, percent) == expected


def test_json_has_what_is_promised():
    found = json.loads(json.dumps(REPORT.as_json()))

    promised = {
        "workload": "basic",
        "nodes": 5000,
        "pods": 4,
        "pods_per_s": 2.0,
        "p50_ms": 300.0,
        "p99_ms": 500.0,
        "peak_rss_mib": 100.0,
        "points": {
            "Score": {"seconds": 0.75, "plugins": {"B": 0.5, "A": 0.2}},
            "Filter": {"seconds": 0.25, "plugins": {"A": 0.1}},
        },
        "outcomes": {"scheduled": 3, "unschedulable": 1},
    }
    assert {name: found[name] for name in promised} == promised
    assert list(found)[:8] == list(promised)[:8]
    assert list(found["points"]) == ["Score", "Filter"], "largest first"


def test_the_table_names_points_plugins_and_the_rest():
    lines = REPORT.as_table().splitlines()

    assert lines[0] == ("workload      basic: 5,000 nodes, 150,000 pods on them before; 4 pods")
    assert lines[1] == "speed         2 pods/s"
    assert lines[2] == "cycle         p50 300.000 ms, p99 500.000 ms, 5 cycles"
    shares = {line[:40].strip(): line[40:].split()[1] for line in lines[8:]}
    assert shares == {
        "Score": "37.5%",
        "B": "25.0%",
        "A": "5.0%",
        "Filter": "12.5%",
        "rest of the cycles": "25.0%",
        "between cycles: queue, binding, records": "25.0%",
    }


def test_the_median_run_knows_the_others():
    runs = [replace(REPORT, seconds=s, peak_rss=r) for s, r in ((1.0, 90), (4.0, 70), (2.0, 80))]
    found = median_report(runs)

    assert (found.seconds, found.peak_rss) == (2.0, 90)
    assert found.pods_per_s_of_runs == (4.0, 1.0, 2.0)
    assert "2 pods/s (median of 4, 1, 2)" in found.as_table()
    assert found.as_json()["runs"] == [4.0, 1.0, 2.0]
    assert median_report(runs[:2]).seconds == 4.0, "of two the slower one"
    with pytest.raises(ValueError, match="no median"):
        median_report([])


def test_memory_is_this_process_s():
    assert 20 < peak_rss_mib() < 20_000
