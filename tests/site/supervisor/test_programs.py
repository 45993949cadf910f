"""What the product's processes are."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.supervisor import programs

SITE = programs.Site(
    root=Path("/srv/kubesched"), environment={"A": "1"}, loop_concurrency=7, logs=Path("/logs")
)


def test_stages_stop_beat_then_workers_then_web() -> None:
    stages = {name: programs.part(SITE, name, 3).stage for name in programs.PARTS}

    assert stages["beat"] > stages["loop"] == stages["default"] > stages["web"] > programs.BROKER


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("loop", ["loop", "--pool", "threads", "--concurrency", "7"], id="loop"),
        pytest.param("default", ["default", "--pool", "threads"], id="default"),
        pytest.param("web", ["daphne", "--fd", "3"], id="web"),
        pytest.param("beat", ["celery", "beat"], id="beat"),
    ],
)  # fmt: skip
def test_commands(name: str, words: list[str]) -> None:
    command = programs.part(SITE, name, 3).command

    assert [word for word in command if word in words] == words


def test_each_has_a_log_of_its_own() -> None:
    logs = {programs.part(SITE, name, 3).log for name in programs.PARTS}

    assert logs == {
        Path("/logs/web.log"),
        Path("/logs/loop-worker.log"),
        Path("/logs/default-worker.log"),
        Path("/logs/beat.log"),
    }


@pytest.mark.parametrize("name", ["web", "scheduler"])
def test_what_cannot_be_started_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match=r"socket|no such part"):
        programs.part(SITE, name)
