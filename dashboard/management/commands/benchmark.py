"""`manage.py benchmark`: how fast the scheduler is, and where its time goes."""

from __future__ import annotations

import cProfile
import json
from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from dashboard import interpreter
from dashboard.supervisor.listening import CannotListenError
from dashboard.supervisor.supervisor import ChildKeepsFailingError
from scheduler_core.benchmark.core import CoreBenchmark, Measure, StuckError
from scheduler_core.benchmark.flame import FlameError, flame_graph
from scheduler_core.benchmark.report import Report, median_report
from scheduler_core.benchmark.workload import InvalidWorkload, Workload
from scheduler_core.benchmark.workload_file import (
    builtin_workloads,
    load_builtin,
    load_workload_file,
)

#: What each of the benchmarks understands, beside what all do.
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "core": ("workload", "file", "pods", "existing_pods", "runs", "plain", "profile", "flame"),
    "pipeline": ("rate", "backlog", "run_seconds", "pages", "seconds", "database", "redis"),
    "cluster": ("pods", "kubeconfig", "qps", "threads"),
    "extender": ("calls",),
}

EXAMPLES = """
examples:
  manage.py benchmark core --workload spread --nodes 5000 --pods 2000
  manage.py benchmark core --file my-workload.yaml --runs 3 --json
  manage.py benchmark core --existing-pods 150000
  manage.py benchmark core --pods 20000 --flame where-time-goes.svg
  manage.py benchmark pipeline --seconds 60 --pages 20
  manage.py benchmark pipeline --rate 0 --backlog 80000
  manage.py benchmark pipeline --rate 200 --database postgres://... --redis redis://...
  manage.py benchmark cluster --nodes 1000 --pods 2000
  manage.py benchmark cluster --kubeconfig ~/.kube/config --nodes 100 --pods 1000
  manage.py benchmark extender

core      drives the scheduling loop with the whole default profile, every node evaluated, and
          reads each cycle's record; without database, broker and API server.
pipeline  starts the whole product (broker, web, workers, beat) in a folder of its own, with a
          sandbox into which pods stream and with open pages, and looks at it from outside.
cluster   a scheduler on an API server over HTTP, from end to end: a sandbox in a process of its
          own, or any server to play with (nodes and pods are made there, and taken away).
extender  calls of another scheduler to this one, over HTTP, by node names and with whole nodes.

docs/performance.md has the figures, and the format of workload files.
"""


class Command(BaseCommand):
    help = (
        "Measure the scheduler: pods per second, time of a cycle, where it goes by extension point "
        "and plugin, and peak memory."
    )
    requires_system_checks = ()

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> Any:
        kwargs.setdefault("epilog", EXAMPLES)
        kwargs.setdefault("formatter_class", RawDescriptionHelpFormatter)
        return super().create_parser(prog_name, subcommand, **kwargs)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "what",
            nargs="?",
            metavar="core|pipeline|cluster|extender",
            choices=tuple(OPTIONS),
            default="core",
            help="what is measured (%(default)s)",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument(
            "--nodes",
            type=number(1),
            metavar="N",
            help="(as the workload says; the others: 1000)",
        )
        _add_core(parser.add_argument_group("core"))
        _add_pipeline(parser.add_argument_group("pipeline"))
        _add_cluster(parser.add_argument_group("cluster"))
        _add_extender(parser.add_argument_group("extender"))

    def handle(self, *args: Any, **options: Any) -> None:
        what = options["what"]
        _refuse_others(what, options)
        report = MEASURE[what](options)
        self.stdout.write(json.dumps(report.as_json()) if options["json"] else report.as_table())


def _add_core(group: Any) -> None:
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        "--workload",
        choices=builtin_workloads(),
        metavar="NAME",
        help=f"one of {', '.join(builtin_workloads())} (basic)",
    )
    which.add_argument("--file", type=Path, metavar="PATH", help="a workload file of your own")
    group.add_argument(
        "--pods", type=number(1), metavar="P", help="(as the workload says; cluster: 2000)"
    )
    group.add_argument(
        "--existing-pods",
        type=number(0),
        metavar="N",
        help="pods that are bound to the nodes before (0)",
    )
    group.add_argument("--runs", type=number(1), metavar="N", help="the median of N runs (1)")
    group.add_argument(
        "--plain",
        action="store_const",
        const=True,
        help="every cycle on its own: work for one pod does not serve the next one like it",
    )
    how = group.add_mutually_exclusive_group()
    how.add_argument(
        "--profile", type=Path, metavar="PATH", help="write cProfile's figures of the last run"
    )
    how.add_argument(
        "--flame", type=Path, metavar="SVG", help="draw a flame graph of the last run (py-spy)"
    )


def _add_pipeline(group: Any) -> None:
    group.add_argument(
        "--rate", type=number(0), metavar="R", help="pods that arrive a second (1100)"
    )
    group.add_argument(
        "--backlog", type=number(0), metavar="N", help="pods that wait when it begins (0)"
    )
    group.add_argument(
        "--run-seconds", type=number(1), metavar="S", help="how long a pod runs on average (10)"
    )
    group.add_argument("--pages", type=number(0), metavar="P", help="open pages (20)")
    group.add_argument(
        "--seconds",
        type=number(1),
        metavar="S",
        help="how long decisions are counted (60); the start, the five seconds before, and writing "
        "down what is left once the run is paused come on top, and are not in the rate",
    )
    group.add_argument("--database", metavar="URL", help="an empty database (SQLite in the folder)")
    group.add_argument("--redis", metavar="URL", help="a Redis (the embedded broker)")


def _add_cluster(group: Any) -> None:
    group.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="a server to play with (a sandbox)"
    )
    group.add_argument(
        "--qps", type=number(1), metavar="N", help="requests a second, and at once (5000)"
    )
    group.add_argument(
        "--threads", type=number(1), metavar="N", help="bindings under way at once (32)"
    )


def _add_extender(group: Any) -> None:
    group.add_argument("--calls", type=number(1), metavar="N", help="of each kind (50)")


def _refuse_others(what: str, options: dict[str, Any]) -> None:
    for name in dict.fromkeys(name for names in OPTIONS.values() for name in names):
        if name not in OPTIONS[what] and options[name] is not None:
            raise CommandError(f"--{name.replace('_', '-')} is nothing for benchmark {what}")


# -- core ------------------------------------------------------------------------------------------


def _core(options: dict[str, Any]) -> Report:
    interpreter.tune()  # as in every process that schedules
    try:
        workload = _workload(options["file"], options["workload"] or "basic")
        reports = [_run(workload, options, nullcontext) for _ in range((options["runs"] or 1) - 1)]
        reports.append(_run(workload, options, _measuring(options)))
    except (FlameError, InvalidWorkload, StuckError) as error:
        raise CommandError(str(error)) from error
    return median_report(reports)


def _workload(file: Path | None, name: str) -> Workload:
    return load_builtin(name) if file is None else load_workload_file(file)


def _run(workload: Workload, options: dict[str, Any], measuring: Measure) -> Report:
    # With None the bar shows itself on a terminal only.
    with tqdm(unit="cycle", desc=workload.name, disable=None, leave=False) as bar:

        def advance(done: int) -> None:
            bar.update(done - bar.n)

        benchmark = CoreBenchmark(
            workload,
            nodes=options["nodes"],
            pods=options["pods"],
            existing_pods=options["existing_pods"] or 0,
            plain=bool(options["plain"]),
            measuring=measuring,
            progress=advance,
        )
        return benchmark.run()


@contextmanager
def _profile(path: Path) -> Iterator[None]:
    with cProfile.Profile() as profiler:
        yield
    try:
        profiler.dump_stats(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror or error}") from error


def _measuring(options: dict[str, Any]) -> Measure:
    """What looks at the last run."""
    if options["profile"]:
        return lambda: _profile(options["profile"])
    if options["flame"]:
        return lambda: flame_graph(options["flame"])
    return nullcontext


# -- pipeline --------------------------------------------------------------------------------------


def _pipeline(options: dict[str, Any]) -> Any:
    # Loads the dashboard's models and a websocket client, which `core` does not need.
    try:
        from dashboard.benchmark import pipeline, site
    except ModuleNotFoundError as error:
        if error.name != "websocket":
            raise
        raise CommandError(
            "benchmark pipeline opens pages with websocket-client, which is not installed: "
            "python -m pip install -r requirements/runtime.txt"
        ) from error

    if not pipeline.has_own_folder():
        pipeline.begin_in_own_folder(options["database"], options["redis"])
    names = ("nodes", "rate", "backlog", "run_seconds", "pages", "seconds")
    given = {name: options[name] for name in names if options[name] is not None}
    wanted = pipeline.PipelineOptions(**given)
    with tqdm(total=wanted.seconds, unit="s", desc="pipeline", disable=None, leave=False) as bar:

        def advance(seconds: float) -> None:
            bar.update(round(seconds - bar.n, 1))

        try:
            return pipeline.measure(wanted, advance)
        except (site.BenchmarkFailed, CannotListenError, ChildKeepsFailingError) as error:
            raise CommandError(str(error)) from error


# -- cluster ---------------------------------------------------------------------------------------


def _cluster(options: dict[str, Any]) -> Any:
    from dashboard.benchmark import kube, site

    names = ("nodes", *OPTIONS["cluster"])
    given = {name: options[name] for name in names if options[name] is not None}
    wanted = kube.ClusterOptions(**given)
    with tqdm(total=wanted.pods, unit="pod", desc="cluster", disable=None, leave=False) as bar:
        try:
            return kube.measure(wanted, lambda done: _advance(bar, done))
        except site.BenchmarkFailed as error:
            raise CommandError(str(error)) from error


def _advance(bar: Any, done: int) -> None:
    bar.update(done - bar.n)


# -- extender --------------------------------------------------------------------------------------


def _extender(options: dict[str, Any]) -> Any:
    from dashboard.benchmark import extender

    names = ("nodes", *OPTIONS["extender"])
    given = {name: options[name] for name in names if options[name] is not None}
    wanted = extender.ExtenderOptions(**given)
    total = wanted.all_calls
    with tqdm(total=total, unit="call", desc="extender", disable=None, leave=False) as bar:
        return extender.measure(wanted, bar.update)


MEASURE: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "core": _core,
    "pipeline": _pipeline,
    "cluster": _cluster,
    "extender": _extender,
}


def number(least: int) -> Callable[[str], int]:
    """A type of whole numbers from ``least`` on."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit()) or int(text) < least:
            raise ArgumentTypeError(f"{text!r} is not a whole number from {least} on")
        return int(text)

    return read
