"""`manage.py check_config FILE`: is this a KubeSchedulerConfiguration, and what does it come to?"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from dashboard import config_file
from scheduler_core.config import (
    InvalidConfiguration,
    SchedulerConfiguration,
    load_configuration,
    load_configuration_file,
)
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.trial import try_to_make

STDIN = "-"


class Command(BaseCommand):
    help = (
        "Check a KubeSchedulerConfiguration. Prints it with every default filled in, or lists "
        "everything that is wrong with it and ends with 1. Needs no database."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="YAML or JSON; - reads standard input")
        parser.add_argument(
            "--output", choices=("yaml", "json"), default="yaml", help="format (%(default)s)"
        )
        config_file.add_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            config = read(options["file"])
            try_to_make(config)
        except InvalidConfiguration as error:
            self.stderr.write(listing(error))
            raise SystemExit(1) from None
        if options["write_config_to"] is not None:
            self.stdout.write(config_file.write(config, options["write_config_to"]))
            return
        if options["output"] == "json":
            text = json.dumps(config.completed(), indent=2, ensure_ascii=False)
        else:
            text = config_file.as_yaml(config)
        self.stdout.write(text.rstrip("\n"))


def listing(error: InvalidConfiguration) -> str:
    """Every fault on a line of its own."""
    lines = error.lines()
    count = "1 fault" if len(lines) == 1 else f"{len(lines)} faults"
    return "\n".join([f"{error.source}: {count}", *(f"  {line}" for line in lines)])


def read(name: str) -> SchedulerConfiguration:
    """The configuration in a file, or on standard input.

    Raises:
        InvalidConfiguration: with every fault.
    """
    registry = in_tree_registry()
    if name == STDIN:
        return load_configuration(sys.stdin.read(), registry, source="standard input")
    return load_configuration_file(name, registry)
