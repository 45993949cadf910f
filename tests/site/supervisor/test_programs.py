"""What the product's processes are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dashboard.supervisor import programs

SITE = programs.Site(
    root=Path("/srv/kubesched"), environment={"A": "1"}, loop_concurrency=7, logs=Path("/logs")
)


def test_stages_stop_beat_then_workers_then_web() -> None:
    stages = {name: programs.part(SITE, name, 3).stage for name in programs.PARTS}

    assert stages["beat"] > stages["loop"] == stages["default"] > stages["sandbox"]
    assert stages["sandbox"] > stages["web"] > programs.BROKER


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("loop", ["loop", "--pool", "threads", "--concurrency", "7"], id="loop"),
        pytest.param("sandbox", ["sandbox", "--pool", "--concurrency", "7"], id="sandbox"),
        pytest.param("default", ["default", "--pool", "threads"], id="default"),
        pytest.param("web", ["daphne", "--fd", "3"], id="web"),
        pytest.param("beat", ["celery", "beat"], id="beat"),
    ],
)  # fmt: skip
def test_commands(name: str, words: list[str]) -> None:
    command = programs.part(SITE, name, 3).command

    assert [word for word in command if word in words] == words


def test_a_loop_worker_that_is_alone_hosts_sandboxes_too() -> None:
    command = programs.part(replace(SITE, hosts_apart=False), "loop").command

    assert "loop,sandbox" in command
    assert "sandbox" not in programs.ALONE


def test_each_has_a_log_of_its_own() -> None:
    logs = {programs.part(SITE, name, 3).log for name in programs.PARTS}

    assert logs == {
        Path("/logs/web.log"),
        Path("/logs/sandbox-worker.log"),
        Path("/logs/loop-worker.log"),
        Path("/logs/default-worker.log"),
        Path("/logs/beat.log"),
    }


@pytest.mark.parametrize("name", ["web", "scheduler"])
def test_what_cannot_be_started_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match=r"socket|no such part"):
        programs.part(SITE, name)
