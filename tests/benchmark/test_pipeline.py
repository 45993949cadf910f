"""`manage.py benchmark pipeline`: the whole product, small, and nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dashboard.benchmark.figures import page_figures
from dashboard.benchmark.pages import PageLog
from dashboard.benchmark.processes import cpu_seconds, peak_rss_mib
from tests.servers import ROOT, clean_environment

OVERVIEW = ("run", "overview", "cycles")


@pytest.fixture
def temporary(monkeypatch):
    """A short folder (sockets have short names) in which to look for what is left over."""
    with tempfile.TemporaryDirectory(prefix="kb") as folder:
        yield Path(folder)


def pipeline(temporary, *arguments):
    command = [sys.executable, "manage.py", "benchmark", "pipeline", "--json", *arguments]
    environment = clean_environment(TMPDIR=str(temporary))
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=170
    )


@pytest.mark.e2e
@pytest.mark.slow
def test_every_decision_is_in_the_database_and_pages_are_live(temporary):
    done = pipeline(
        temporary, "--nodes", "20", "--rate", "20", "--backlog", "60", "--pages", "5",
        "--seconds", "4", "--run-seconds", "6",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)

    assert found["recorded"] == found["decided"] >= 60
    assert found["bound"] == found["bound_recorded"] > 0
    assert (found["lost"], found["pages"], found["pages_lost"]) == (0, 5, 0)
    assert found["frames_per_s"]["most"] > 0
    assert found["latency_ms"]["lines"] > 0
    assert {"web", "loop worker", "default worker", "beat"} <= set(found["cpu"])
    assert found["restarts"] == []
    assert list(temporary.iterdir()) == [], "nothing is left behind"


@pytest.mark.e2e
@pytest.mark.slow
def test_somebody_s_database_is_not_touched(temporary):
    folder = Path(temporary) / "site"
    folder.mkdir()
    url = f"sqlite:///{folder}/theirs.sqlite3"
    environment = clean_environment(KUBESCHED_MODE="demo", DATABASE_URL=url)
    make = "from dashboard.models import Cluster; Cluster.objects.create(name='theirs')"
    for command in (["migrate", "--verbosity", "0"], ["shell", "-c", make]):
        subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=ROOT, env=environment, check=True, capture_output=True,
        )  # fmt: skip

    done = pipeline(temporary, "--database", url, "--seconds", "1")

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "CommandError: the database has clusters in it; name one that is empty"
    ]
    assert [path.name for path in temporary.iterdir()] == ["site"]


def test_what_came_outside_the_measured_seconds_does_not_count():
    log = PageLog("overview", OVERVIEW)
    log.frames = [9.9, 10.0, 11.0, 13.9, 14.0]
    log.sizes = [(9.9, 2**20), (10.0, 2**20), (11.0, 2**20)]
    log.latencies = [(9.9, 5.0), (10.0, 0.1), (13.0, 0.3), (14.0, 9.0)]
    log.closes = [1006]
    found = page_figures([log, PageLog("overview", OVERVIEW)], 10.0, 4.0)

    assert found.frames_per_s == [0.75, 0.0]
    assert found.latencies == [0.1, 0.3]
    assert (found.pages, found.lost, found.mib_per_s) == (2, 1, 0.5)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here")
def test_a_process_s_use_is_read_from_the_kernel():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert cpu_seconds(child.pid) >= 0
        assert peak_rss_mib(child.pid) > 0
    finally:
        child.communicate(b"\n")
    assert cpu_seconds(child.pid) is None
    assert peak_rss_mib(child.pid) is None
