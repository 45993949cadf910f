"""`manage.py benchmark cluster`: a scheduler and an API server in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from dashboard.benchmark.kube import ClusterReport
from tests.servers import ROOT, clean_environment


def as_typed(tmp_path, *arguments):
    command = [sys.executable, "manage.py", "benchmark", "cluster", *arguments]
    environment = clean_environment(TMPDIR=str(tmp_path), KUBESCHED_DATA_DIR=str(tmp_path))
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )


@pytest.mark.slow
def test_every_pod_is_bound_and_nothing_is_left(tmp_path):
    done = as_typed(tmp_path, "--nodes", "5", "--pods", "30", "--json")

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found)[:7] == [
        "workload",
        "nodes",
        "pods",
        "pods_per_s",
        "p50_ms",
        "p99_ms",
        "peak_rss_mib",
    ]
    assert (found["nodes"], found["pods"]) == (5, 30)
    assert found["pods_per_s"] > 0
    assert found["server_cpu_seconds"] > 0
    assert not list(tmp_path.glob("kubesched-bench-*"))


@pytest.mark.parametrize(
    "kubeconfig,message",
    [
        pytest.param(None, "Invalid kube-config file. No configuration found.", id="no file"),
        pytest.param("{}", "current-context", id="empty"),
        pytest.param(
            "{current-context: x, contexts: [{name: x, context: {cluster: c}}], "
            "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]}",
            "GET /version: ",
            id="nobody answers",
        ),
    ],
)
def test_a_server_that_cannot_be_used_is_one_line(tmp_path, kubeconfig, message, monkeypatch):
    path = tmp_path / "kubeconfig"
    if kubeconfig is not None:
        path.write_text(kubeconfig)
    done = as_typed(tmp_path, "--kubeconfig", str(path))

    assert done.returncode == 1
    assert done.stderr.startswith("CommandError: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_table_is_for_people():
    report = ClusterReport(
        "http://127.0.0.1:1, v1.36.0", 10, 20, 0.5, [0.001], [0.02], 0.4, 0.2, 99.0, 0, 300.0
    )
    table = report.as_table()
    assert "10 nodes, 20 pods" in table
    assert "40 pods/s" in table
    assert "0.40 s of the scheduler's process, 0.20 s of the server's" in table
