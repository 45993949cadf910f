"""`manage.py benchmark`: how fast the scheduler is, and where its time goes."""

from __future__ import annotations

import cProfile
import json
from argparse import ArgumentParser, ArgumentTypeError
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from scheduler_core.benchmark.core import CoreBenchmark, StuckError
from scheduler_core.benchmark.report import Report, median_report
from scheduler_core.benchmark.workload import InvalidWorkload, Workload
from scheduler_core.benchmark.workload_file import (
    builtin_workloads,
    load_builtin,
    load_workload_file,
)

#: Benchmarks that are announced and not there yet.
LATER = ("cluster", "extender")


class Command(BaseCommand):
    help = (
        "Measure the scheduler: pods per second, time of a cycle, where it goes by extension point "
        "and plugin, and peak memory. `core` drives the scheduling loop with the whole default "
        "profile, every node evaluated, without database and API server."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "what", nargs="?", choices=("core", "pipeline", *LATER), default="core", help="(core)"
        )
        which = parser.add_mutually_exclusive_group()
        which.add_argument(
            "--workload",
            choices=builtin_workloads(),
            default="basic",
            metavar="NAME",
            help=f"one of {', '.join(builtin_workloads())} (%(default)s)",
        )
        which.add_argument("--file", type=Path, metavar="PATH", help="a workload file of your own")
        parser.add_argument("--nodes", type=number(1), metavar="N", help="(as the workload says)")
        parser.add_argument("--pods", type=number(1), metavar="P", help="(as the workload says)")
        parser.add_argument(
            "--existing-pods",
            type=number(0),
            default=0,
            metavar="N",
            help="pods that are bound to the nodes before (%(default)s)",
        )
        parser.add_argument(
            "--runs", type=number(1), default=1, metavar="N", help="median of N runs (%(default)s)"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument(
            "--profile", type=Path, metavar="PATH", help="write cProfile's figures of the last run"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["what"] in LATER:
            raise CommandError(
                f"benchmark {options['what']} arrives with real clusters; there is none yet.",
                returncode=2,
            )
        if options["what"] == "pipeline":
            raise CommandError("benchmark pipeline is not there yet.", returncode=2)
        report = _core(options)
        text = json.dumps(report.as_json()) if options["json"] else report.as_table()
        self.stdout.write(text)


def _core(options: dict[str, Any]) -> Report:
    try:
        workload = _workload(options["file"], options["workload"])
        reports = [_run(workload, options) for _ in range(options["runs"])]
    except (InvalidWorkload, StuckError) as error:
        raise CommandError(str(error)) from error
    return median_report(reports)


def _workload(file: Path | None, name: str) -> Workload:
    return load_builtin(name) if file is None else load_workload_file(file)


def _run(workload: Workload, options: dict[str, Any]) -> Report:
    profiler = cProfile.Profile() if options["profile"] else None
    # With None the bar shows itself on a terminal only.
    with tqdm(unit="cycle", desc=workload.name, disable=None, leave=False) as bar:

        def advance(done: int) -> None:
            bar.update(done - bar.n)

        benchmark = CoreBenchmark(
            workload,
            nodes=options["nodes"],
            pods=options["pods"],
            existing_pods=options["existing_pods"],
            progress=advance,
            measuring=lambda: profiler or nullcontext(),
        )
        report = benchmark.run()
    if profiler is not None:
        profiler.dump_stats(options["profile"])
    return report


def number(least: int) -> Any:
    """A type of whole numbers from ``least`` on."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit()) or int(text) < least:
            raise ArgumentTypeError(f"{text!r} is not a whole number from {least} on")
        return int(text)

    return read
