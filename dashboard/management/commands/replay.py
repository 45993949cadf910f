"""`manage.py replay`: a cluster trace through the scheduler, in virtual time."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from dashboard import interpreter
from dashboard.management.commands.check_config import listing
from scheduler_core.config import (
    InvalidConfiguration,
    SchedulerConfiguration,
    default_configuration,
    load_configuration_file,
)
from scheduler_core.framework.runtime.framework import ProfileError
from scheduler_core.placements import Writable, open_placements, write_placements
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.ports import ApiError
from scheduler_core.replay import AS_FAST_AS_POSSIBLE, Replay, ReplayResult, replay_of_trace
from scheduler_core.workloads.trace import Trace, TraceError, load_trace

STDOUT = "-"


class Command(BaseCommand):
    help = (
        "Replay a cluster trace with the same scheduler, without database, broker or workers, and "
        "write where every pod was placed."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--nodes", required=True, metavar="CSV", help="the table of nodes")
        parser.add_argument("--pods", required=True, metavar="CSV", help="the table of pods")
        parser.add_argument(
            "--config", metavar="FILE", help="KubeSchedulerConfiguration (the default profile)"
        )
        parser.add_argument(
            "--speed",
            type=speed,
            default=AS_FAST_AS_POSSIBLE,
            metavar="N|max",
            help="N: so many times as fast as it happened (max: as fast as possible)",
        )
        parser.add_argument(
            "--seed",
            type=seed,
            metavar="S",
            help="break ties at random from this seed (the smallest node name wins)",
        )
        parser.add_argument(
            "--retry",
            action="store_true",
            help="try pods that do not fit again, as the queue does (each has one attempt)",
        )
        parser.add_argument(
            "--output",
            metavar="FILE",
            help="write the placements as CSV; .gz compresses, - is standard output",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        interpreter.tune()
        config = _config(options["config"])
        try:
            replay = replay_of_trace(
                _trace(options["nodes"], options["pods"]),
                config,
                seed=options["seed"],
                retry=options["retry"],
                speed=options["speed"],
            )
            with self._output(options["output"]) as file:
                result = self._run(replay)
                if file is not None:
                    write_placements(file, result.placements)
        except (ProfileError, ApiError) as error:
            raise CommandError(str(error)) from error
        to = self.stderr if options["output"] == STDOUT else self.stdout
        to.write(summary(result))
        if options["output"] not in (None, STDOUT):
            to.write(f"placements         {options['output']}")

    def _run(self, replay: Replay) -> ReplayResult:
        # With None the bar shows itself on a terminal only.
        with tqdm(total=replay.total, unit="event", desc="replay", disable=None) as bar:

            def advance(done: int) -> None:
                bar.update(done - bar.n)

            return replay.run(advance)

    @contextmanager
    def _output(self, name: str | None) -> Iterator[Writable | None]:
        """Where the table goes; known to take it before the replay begins."""
        if name is None:
            yield None
        elif name == STDOUT:
            yield self.stdout
        else:
            try:
                with open_placements(Path(name)) as file:
                    yield file
            except OSError as error:
                reason = error.strerror or error
                raise CommandError(f"{name} cannot be written: {reason}") from error


def speed(text: str) -> float:
    """A number above 0, or max."""
    if text == "max":
        return AS_FAST_AS_POSSIBLE
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise ArgumentTypeError(f"{text!r} is neither a number above 0 nor max")
    return found


def seed(text: str) -> int:
    """A whole number that is not negative."""
    if not (text.isascii() and text.isdigit()):
        raise ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def summary(result: ReplayResult) -> str:
    """What came of it, for people."""
    rate = f"{result.pods_per_second:,.0f} pods/s"
    lines = [
        f"pods               {len(result.placements)}",
        f"placed             {result.placed}",
        f"not placed         {result.not_placed}",
        f"scheduling cycles  {result.cycles}",
        f"time               {result.seconds:.2f} s ({rate})",
        f"time of the trace  {result.virtual_seconds:,.0f} s",
    ]
    lines += [f"  {point:<16} {seconds:.3f} s" for point, seconds in result.point_seconds.items()]
    return "\n".join(lines)


def _config(name: str | None) -> SchedulerConfiguration:
    registry = in_tree_registry()
    if name is None:
        return default_configuration(registry)
    try:
        return load_configuration_file(name, registry)
    except InvalidConfiguration as error:
        raise CommandError(listing(error)) from error


def _trace(nodes: str, pods: str) -> Trace:
    try:
        return load_trace(nodes, pods)
    except TraceError as error:
        raise CommandError(f"the trace is refused:\n{error}") from error
