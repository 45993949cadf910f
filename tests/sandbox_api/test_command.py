"""`manage.py sandbox_api`, as a person starts it: no database, no Celery."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import requests
import yaml

from tests import servers

SECONDS = 60


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "manage.py", "sandbox_api", *arguments],
        cwd=servers.ROOT,
        env=servers.clean_environment(KUBESCHED_DATA_DIR=str(folder)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_it_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    config = tmp_path / "my.kubeconfig"
    process = start(tmp_path, "--token", "secret-of-mine", "--kubeconfig", str(config))
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        assert str(config) in process.stdout.readline()
        found = yaml.safe_load(config.read_text())
        assert found["clusters"][0]["cluster"]["server"] == url
        assert found["users"][0]["user"]["token"] == "secret-of-mine"
        answer = requests.get(
            f"{url}/api/v1/namespaces",
            headers={"Authorization": "Bearer secret-of-mine"},
            verify=str(tmp_path / "sandbox-api" / "ca.crt"),
            timeout=SECONDS,
        )
        names = [item["metadata"]["name"] for item in answer.json()["items"]]
        assert names == ["default", "kube-system"]
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert process.returncode == 0, told
    assert config.stat().st_mode & 0o077 == 0
    assert "secret-of-mine" not in told


def test_a_port_that_is_taken_is_said_in_words(tmp_path: Path) -> None:
    process = start(tmp_path, "--port", "70000")
    _, told = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert "cannot listen on 127.0.0.1, port 70000" in told
