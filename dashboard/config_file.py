"""A completed configuration as a file (kube-scheduler's ``--write-config-to``)."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Final

import yaml
from django.core.management.base import CommandError

from scheduler_core.config import SchedulerConfiguration

__all__ = ["add_option", "as_yaml", "write"]

_HELP: Final = "write the configuration, with every default filled in, to FILE and end"


def add_option(parser: ArgumentParser) -> None:
    parser.add_argument("--write-config-to", type=Path, metavar="FILE", help=_HELP)


def as_yaml(config: SchedulerConfiguration) -> str:
    """The completed document; it can be loaded again."""
    text: str = yaml.safe_dump(config.completed(), sort_keys=False, allow_unicode=True)
    return text


def write(config: SchedulerConfiguration, path: Path) -> str:
    """A line that says what was done.

    Raises:
        CommandError: the file cannot be written.
    """
    try:
        path.write_text(as_yaml(config), encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from error
    return f"Wrote the completed configuration to {path}."
