"""`manage.py import_trace`: a sandbox in which a cluster trace happens again."""

from __future__ import annotations

import math
import re
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError
from tqdm import tqdm

from dashboard.management.commands.check_config import listing
from dashboard.sandboxes import InvalidSandbox, create_trace_sandbox
from scheduler_core.config import InvalidConfiguration, load_configuration_file
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.workloads.trace import (
    Timeline,
    Trace,
    TraceError,
    load_trace,
    trace_events,
)

LONGEST_NAME = 63
FIT = "fit"


class Command(BaseCommand):
    help = (
        "Make a sandbox of a cluster trace: its nodes, and its tasks as pods that come and go at "
        "their time. A file with a fault is refused whole, and nothing of it remains."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--nodes", required=True, metavar="CSV", help="the table of nodes")
        parser.add_argument("--pods", required=True, metavar="CSV", help="the table of pods")
        parser.add_argument(
            "--name", help="of the sandbox (trace- and the name of the table of pods)"
        )
        parser.add_argument(
            "--speed",
            type=speed,
            metavar="N|fit",
            help="N: so many times as fast as it happened, long idle times shortened "
            "(fit: a few minutes in all)",
        )
        parser.add_argument(
            "--config",
            metavar="FILE",
            help="KubeSchedulerConfiguration of its run (examples/demo.yaml)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        config = _config(options["config"])
        name = options["name"] or name_of(options["pods"])
        steps = ("reading", "storing")
        with tqdm(total=len(steps), desc=steps[0], disable=None, leave=False) as bar:
            trace = _load(options["nodes"], options["pods"])
            bar.update()
            bar.set_description(steps[1])
            cluster_id, run_id = _store(name, trace, options["speed"], config)
            bar.update()
        self.stdout.write(summary(trace, options["speed"]))
        self.stdout.write(f"sandbox   {name} (cluster {cluster_id}, run {run_id})")


def speed(text: str) -> float | None:
    """A number above 0; None for "fit"."""
    if text == FIT:
        return None
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise ArgumentTypeError(f"{text!r} is neither a number above 0 nor fit")
    return found


def name_of(pods: str) -> str:
    """A sandbox's name from a file's: ``a_pods.csv`` becomes ``trace-a-pods``."""
    words = re.sub(r"[^a-z0-9]+", "-", Path(pods).stem.lower()).strip("-")
    return f"trace-{words}"[:LONGEST_NAME].rstrip("-")


def summary(trace: Trace, factor: float | None) -> str:
    """What was read, for people."""
    events = trace_events(trace.pods)
    timeline = Timeline([event.time for event in events], factor)
    minutes, seconds = divmod(round(timeline.duration), 60)
    return "\n".join(
        [
            f"nodes     {len(trace.nodes)} ({sum(node.gpus for node in trace.nodes)} GPUs)",
            f"pods      {len(trace.pods)}",
            f"events    {len(events)}",
            f"replay    {minutes} min {seconds} s, {timeline.speed:,.0f} times as fast",
        ]
    )


def _config(name: str | None) -> str | None:
    """The text of a configuration that has been checked."""
    if name is None:
        return None
    try:
        load_configuration_file(name, in_tree_registry())
        return Path(name).read_text(encoding="utf-8-sig")
    except InvalidConfiguration as error:
        raise CommandError(listing(error)) from error


def _load(nodes: str, pods: str) -> Trace:
    try:
        return load_trace(nodes, pods)
    except TraceError as error:
        raise CommandError(f"the trace is refused:\n{error}") from error


def _store(name: str, trace: Trace, factor: float | None, config: str | None) -> tuple[int, int]:
    try:
        cluster, run = create_trace_sandbox(name=name, trace=trace, speed=factor, config=config)
    except InvalidSandbox as error:
        raise CommandError(str(error)) from error
    except DatabaseError as error:
        raise CommandError(
            f"the database does not take it: {error}. Has `manage.py migrate` been run?"
        ) from error
    return cluster.pk, run.pk
