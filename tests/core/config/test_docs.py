"""What docs/configuration.md shows is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scheduler_core.config import load_configuration
from scheduler_core.plugins.registry import in_tree_registry

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def blocks(language):
    return [m[1] for m in re.finditer(rf"^ *```{language}\n(.*?)^ *```", TEXT, re.S | re.M)]


@pytest.mark.parametrize("code", blocks("python"))
def test_python(code, monkeypatch):
    monkeypatch.chdir(ROOT)
    exec(compile(code, "docs/configuration.md", "exec"), {})  # noqa: S102 - our own page


@pytest.mark.parametrize("text", blocks("yaml"))
def test_yaml(text):
    """Each example is a whole configuration, a list of profiles, or a part of one profile."""
    if text.startswith("profiles:"):
        text = HEAD + text
    elif not text.startswith("apiVersion"):
        text = f"{HEAD}profiles:\n- schedulerName: default-scheduler\n" + _indented(text)
    assert load_configuration(text, in_tree_registry()).profiles


def _indented(text):
    lines = text.splitlines()
    margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "".join(f"  {line[margin:]}\n" for line in lines)
