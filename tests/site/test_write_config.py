"""`--write-config-to`: what a scheduler would be started with, as a file that can be loaded."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from scheduler_core.config import load_configuration_file
from scheduler_core.plugins.registry import in_tree_registry

CONFIG = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: careful
"""


@pytest.fixture
def given(tmp_path: Path) -> Path:
    path = tmp_path / "given.yaml"
    path.write_text(CONFIG)
    return path


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


@pytest.mark.django_db
@pytest.mark.parametrize("command", ["check_config", "add_cluster"])
def test_the_completed_configuration_is_written_and_nothing_else_done(
    command: str, given: Path, tmp_path: Path
) -> None:
    written = tmp_path / "completed.yaml"
    arguments = (
        ("check_config", str(given))
        if command == "check_config"
        else ("add_cluster", "staging", "--in-cluster", "--config", str(given))
    )
    said = run(*arguments, "--write-config-to", str(written))
    assert said == f"Wrote the completed configuration to {written}.\n"
    text = written.read_text()
    assert "schedulerName: careful" in text
    assert "podMaxBackoffSeconds: 10" in text and "name: NodeResourcesFit" in text
    again = load_configuration_file(str(written), in_tree_registry())
    assert again.completed() == load_configuration_file(str(given), in_tree_registry()).completed()


@pytest.mark.django_db
def test_without_a_file_it_is_what_a_new_cluster_gets(tmp_path: Path) -> None:
    written = tmp_path / "completed.yaml"
    run("add_cluster", "staging", "--in-cluster", "--write-config-to", str(written))
    assert load_configuration_file(str(written), in_tree_registry()).profiles


def test_a_folder_that_is_not_there(given: Path) -> None:
    with pytest.raises(CommandError, match="No such file or directory"):
        run("check_config", str(given), "--write-config-to", "/nowhere/x.yaml")
