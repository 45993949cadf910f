"""`manage.py evaluate FILE`: what the scheduler would do with each pod, and why."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from dashboard.management.commands.check_config import listing
from scheduler_core.config import (
    InvalidConfiguration,
    SchedulerConfiguration,
    load_configuration_file,
)
from scheduler_core.evaluation import Evaluation, UnknownPod
from scheduler_core.evaluation_table import evaluation_table
from scheduler_core.framework.runtime.framework import ProfileError
from scheduler_core.placements import Writable, open_placements
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.scenarios import InvalidScenario, Scenario, ScenarioReader, text_lines

STDIN = "-"
#: As a shell tells of SIGPIPE.
READER_LEFT = 141

Results = list[dict[str, Any]]


class Command(BaseCommand):
    help = (
        "Evaluate pods against a state of a cluster, without changing anything: every node's "
        "verdict and scores, and whom preemption would evict. Prints one JSON document per "
        "scenario. Needs no database."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file",
            metavar="FILE",
            help="scenarios (JSON Lines), `kubectl get nodes,pods,... -o json`, or an export of "
            "kube-scheduler-simulator; .gz is fine, - is plain text on standard input",
        )
        parser.add_argument(
            "--output", metavar="FILE", help="write there; .gz compresses (standard output)"
        )
        parser.add_argument(
            "--pod",
            type=pod_key,
            metavar="NAMESPACE/NAME",
            help="evaluate this pod alone (every pod that is asked for, or that has no node)",
        )
        parser.add_argument(
            "--format",
            choices=("json", "table"),
            default="json",
            help="JSON, or a table for a person (%(default)s)",
        )
        parser.add_argument(
            "--config",
            metavar="FILE",
            help="KubeSchedulerConfiguration (the one in the file without its extenders, or "
            "the default profile)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self._pod: str | None = options["pod"]
        reader = ScenarioReader(in_tree_registry(), _config(options["config"]))
        started = perf_counter()
        scenarios = pods = 0
        try:
            found = _scenarios(reader, options["file"])
            with self._output(options["output"]) as to:
                # With None the bar shows itself on a terminal only.
                for scenario in tqdm(found, unit="scenario", desc="evaluate", disable=None):
                    results = self._results(scenario)
                    to.write(_text(scenario.name, results, options["format"]))
                    scenarios, pods = scenarios + 1, pods + len(results)
        except InvalidScenario as error:
            raise CommandError(str(error)) from error
        except BrokenPipeError:
            _leave_quietly()
        seconds = perf_counter() - started
        self.stderr.write(
            f"{_count(scenarios, 'scenario')}, {_count(pods, 'pod')}, {seconds:.1f} s"
        )

    def _results(self, scenario: Scenario) -> Results:
        try:
            with closing(Evaluation(scenario.snapshot.objects, scenario.config)) as evaluation:
                if self._pod is not None:
                    wanted: tuple[str, ...] = (self._pod,)
                else:
                    wanted = evaluation.pending if scenario.pending is None else scenario.pending
                return [evaluation.evaluate(key) for key in wanted]
        except (UnknownPod, ProfileError) as error:
            raise CommandError(f"{scenario.where}: {error}") from error

    @contextmanager
    def _output(self, name: str | None) -> Iterator[Writable]:
        if name is None:
            yield self.stdout
            return
        try:
            with open_placements(Path(name)) as file:
                yield file
        except OSError as error:
            reason = error.strerror or error
            raise CommandError(f"{name} cannot be written: {reason}") from error


def _leave_quietly() -> NoReturn:
    """Whoever read the output has seen enough; nor is there anybody to tell at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(READER_LEFT)


def pod_key(text: str) -> str:
    """ "namespace/name"; a name alone is in the namespace default."""
    namespace, slash, name = text.rpartition("/")
    if not name or (slash and not namespace) or "/" in namespace:
        raise ArgumentTypeError(f"{text!r} is not NAMESPACE/NAME")
    return f"{namespace or 'default'}/{name}"


def _scenarios(reader: ScenarioReader, name: str) -> Iterator[Scenario]:
    if name == STDIN:
        return reader.read(sys.stdin, "standard input")
    return reader.read(text_lines(Path(name)), name)


def _text(name: str, results: Results, form: str) -> str:
    if form == "table":
        return f"{evaluation_table(name, results)}\n\n"
    return json.dumps({"name": name, "results": results}) + "\n"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _config(name: str | None) -> SchedulerConfiguration | None:
    if name is None:
        return None
    try:
        return load_configuration_file(name, in_tree_registry())
    except InvalidConfiguration as error:
        raise CommandError(listing(error)) from error
