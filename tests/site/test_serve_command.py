"""`manage.py serve`: what it refuses to start without, and a whole production start."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.servers import ROOT, clean_environment, wait_for
from tests.site.test_settings import SECRET


def production(tmp_path: Path, redis_url: str) -> dict[str, str]:
    return clean_environment(
        SECRET_KEY=SECRET,
        DATABASE_URL=f"sqlite:///{tmp_path / 'db.sqlite3'}",
        REDIS_URL=redis_url,
        ALLOWED_HOSTS="127.0.0.1",
        KUBESCHED_DATA_DIR=str(tmp_path / "data"),
        KUBESCHED_STATIC_ROOT=str(tmp_path / "static"),
    )


def manage(environment: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *command],
        env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def refusal(environment: dict[str, str], *arguments: str) -> str:
    done = manage(environment, "serve", "--port", "0", *arguments)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


@pytest.mark.redis
@pytest.mark.slow
def test_serve_names_what_is_missing_and_then_serves(tmp_path: Path, redis_server: str) -> None:
    environment = production(tmp_path, redis_server)
    assert "run `manage.py migrate` first" in refusal(environment)

    assert manage(environment, "migrate", "-v0").returncode == 0
    assert "run `manage.py collectstatic --noinput` first" in refusal(environment)

    collected = manage(environment, "collectstatic", "--noinput", "-v0")
    assert collected.returncode == 0, collected.stderr
    away = {**environment, "REDIS_URL": "redis://127.0.0.1:1/0"}
    assert "Redis that REDIS_URL names does not answer" in refusal(away)

    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    logs = tmp_path / "logs"
    server = subprocess.Popen(
        [sys.executable, "manage.py", "serve", "--port", str(port), "--log-dir", str(logs)],
        env=environment, cwd=ROOT, start_new_session=True,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_for(lambda: _healthy(port), "the health page", seconds=60)
        for name in ("loop-worker", "default-worker"):
            log = logs / f"{name}.log"
            wait_for(lambda log=log: "ready." in log.read_text(), f"the {name}", seconds=60)
    finally:
        os.kill(server.pid, signal.SIGTERM)
        code = server.wait(timeout=25)
    assert code == 0


def _healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False
