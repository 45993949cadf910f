"""Help needs no environment: somebody who asks for it has none yet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import get_commands

from manage import is_command
from tests.servers import ROOT


def manage(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments],
        env={"KUBESCHED_DATA_DIR": str(folder), **environment},
        cwd=folder.parent, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param([], "add_cluster", id="nothing"),
        pytest.param(["help"], "add_cluster", id="help"),
        pytest.param(["--help"], "add_cluster", id="--help"),
        pytest.param(["-h"], "add_cluster", id="-h"),
        pytest.param(["--version"], "5.2", id="--version"),
        pytest.param(["serve", "--help"], "usage: manage.py serve", id="serve"),
        pytest.param(["add_cluster", "-h"], "--kubeconfig-file", id="add_cluster"),
        pytest.param(["help", "migrate"], "usage: manage.py migrate", id="help of a command"),
    ],
)
def test_help_in_any_form(tmp_path: Path, arguments: list[str], words: str) -> None:
    done = manage(tmp_path / "data", *arguments)

    assert (done.returncode, done.stderr) == (0, "")
    assert words in done.stdout
    assert not (tmp_path / "data").exists()


def test_a_typo_is_answered_with_the_command_that_was_meant(tmp_path: Path) -> None:
    done = manage(tmp_path / "data", "add_clutser", "staging")

    assert done.returncode == 1
    assert "Unknown command: 'add_clutser'. Did you mean add_cluster?" in done.stderr
    assert not (tmp_path / "data").exists()


def test_help_where_production_is_half_configured(tmp_path: Path) -> None:
    done = manage(tmp_path / "data", "serve", "--help", KUBESCHED_MODE="production", SECRET_KEY="x")

    assert done.returncode == 0, done.stderr
    assert "usage: manage.py serve" in done.stdout


def test_every_command_is_known_without_settings() -> None:
    """Otherwise it would be taken for a typo, and production's settings for the demo's."""
    assert [name for name in get_commands() if not is_command(name)] == []
