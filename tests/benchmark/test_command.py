"""`manage.py benchmark` as a person types it."""

from __future__ import annotations

import io
import json
import pstats
import subprocess
import sys

import pytest
from django.core.management import CommandError, call_command

from scheduler_core.benchmark.flame import FlameError, flame_graph
from tests.benchmark.support import SMALLEST
from tests.servers import ROOT, clean_environment

PROMISED = [
    "workload", "nodes", "pods", "pods_per_s", "p50_ms", "p99_ms", "peak_rss_mib", "points"
]  # fmt: skip
SMALL = ("--nodes", "6", "--pods", "5")


def benchmark(*arguments):
    out = io.StringIO()
    call_command("benchmark", *arguments, stdout=out)
    return out.getvalue()


def as_typed(*arguments):
    command = [sys.executable, "manage.py", "benchmark", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=clean_environment(), capture_output=True, text=True, timeout=120
    )


def test_json_is_one_object_with_what_is_promised():
    (line,) = benchmark("core", "--json", *SMALL).splitlines()
    found = json.loads(line)

    assert list(found)[: len(PROMISED)] == PROMISED
    assert (found["workload"], found["nodes"], found["pods"]) == ("basic", 6, 5)
    assert found["outcomes"] == {"scheduled": 5}
    assert {"PreFilter", "Filter", "Score"} <= set(found["points"])
    assert found["points"]["Filter"]["plugins"]["NodeResourcesFit"] >= 0
    assert found["p99_ms"] >= found["p50_ms"] > 0
    assert found["peak_rss_mib"] > 20


def test_the_table_is_for_people():
    text = benchmark("core", "--workload", "unschedulable", *SMALL)

    assert "workload      unschedulable: 6 nodes; 5 pods" in text
    assert "outcomes      5 unschedulable" in text
    assert "  DefaultPreemption" in text


def test_several_runs_and_pods_before(tmp_path):
    found = json.loads(
        benchmark("core", "--runs", "3", "--existing-pods", "12", "--plain", "--json", *SMALL)
    )

    assert len(found["runs"]) == 3
    assert sorted(found["runs"])[1] == found["pods_per_s"]
    assert found["existing_pods"] == 12


def test_a_file_of_one_s_own_and_a_profile_of_it(tmp_path):
    file, profile = tmp_path / "mine.yaml", tmp_path / "mine.prof"
    file.write_text(SMALLEST, encoding="utf-8")
    found = json.loads(benchmark("core", "--file", str(file), "--json", "--profile", str(profile)))

    assert (found["workload"], found["nodes"], found["pods"]) == ("mine", 3, 2)
    names = {name for _, _, name in pstats.Stats(str(profile)).stats}
    assert "run_once" in names
    assert "_create_nodes" not in names, "set-up is not measured"


@pytest.mark.parametrize(
    "arguments,message",
    [
        pytest.param(
            ("core", "--file", "gone.yaml"),
            "gone.yaml: cannot be read: No such file or directory",
            id="no file",
        ),
        pytest.param(
            ("core", "--pages", "3"), "--pages is nothing for benchmark core", id="for pipeline"
        ),
        pytest.param(
            ("pipeline", "--existing-pods", "3"),
            "--existing-pods is nothing for benchmark pipeline",
            id="for core",
        ),
        pytest.param(
            ("cluster", "--workload", "spread"),
            "--workload is nothing for benchmark cluster",
            id="cluster has one workload",
        ),
        pytest.param(
            ("core", "--kubeconfig", "x"),
            "--kubeconfig is nothing for benchmark core",
            id="for cluster",
        ),
        pytest.param(
            ("core", "--profile", "/nowhere/at/all", *SMALL),
            "/nowhere/at/all cannot be written: No such file or directory",
            id="no profile",
        ),
    ],
)
def test_what_cannot_be_done_is_one_line(arguments, message):
    with pytest.raises(CommandError) as refused:
        benchmark(*arguments)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    "arguments,words",
    [
        pytest.param(("--workload", "fast"), "invalid choice: 'fast'", id="unknown workload"),
        pytest.param(("--nodes", "0"), "'0' is not a whole number from 1 on", id="no nodes"),
        pytest.param(("--pods", "many"), "'many' is not a whole number from 1 on", id="a word"),
        pytest.param(("everything",), "invalid choice: 'everything'", id="unknown benchmark"),
    ],
)
def test_what_is_typed_wrong(arguments, words):
    done = as_typed(*arguments)

    assert done.returncode == 2
    assert words in done.stderr


def test_help_helps():
    done = as_typed("--help")

    assert done.returncode == 0
    for word in ("preferred-anti-affinity", "examples:", "--existing-pods", "--pages", "pipeline"):
        assert word in done.stdout


def test_progress_stays_off_what_is_no_terminal():
    done = as_typed("core", "--json", *SMALL)

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["outcomes"] == {"scheduled": 5}


def test_a_flame_graph_that_cannot_be_drawn_says_why(tmp_path, monkeypatch):
    program = tmp_path / "py-spy"
    program.write_text("#!/bin/sh\necho 'Error: Permission denied' >&2\nexit 1\n")
    program.chmod(0o755)

    with (
        pytest.raises(FlameError, match="py-spy drew nothing: Error: Permission denied"),
        flame_graph(tmp_path / "f.svg", program=str(program)),
    ):
        pass
    monkeypatch.setattr("scheduler_core.benchmark.flame.find_py_spy", lambda: None)
    with (
        pytest.raises(FlameError, match="a flame graph needs py-spy"),
        flame_graph(tmp_path / "f.svg"),
    ):
        pass
