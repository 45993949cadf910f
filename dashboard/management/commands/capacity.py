"""`manage.py capacity`: how many more copies of a pod fit, where, and what stops the next one."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError
from contextlib import closing
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from dashboard.management.commands.check_config import listing
from scheduler_core.api import KINDS, InvalidObject
from scheduler_core.api.manifests import Manifest, load_manifest_file, load_manifests
from scheduler_core.capacity import (
    DEFAULT_LIMIT,
    ERROR,
    LIMIT_REACHED,
    Capacity,
    InvalidPod,
    capacity_of,
)
from scheduler_core.config import (
    InvalidConfiguration,
    SchedulerConfiguration,
    configuration_from,
    default_configuration,
    load_configuration_file,
)
from scheduler_core.framework.runtime.framework import ProfileError
from scheduler_core.library import UnknownProfile
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.ports import ApiError
from scheduler_core.snapshot_file import (
    InvalidSnapshot,
    SnapshotFile,
    load_snapshot,
    parse_snapshot,
    snapshot_of,
)

STDIN = "-"
STANDARD_INPUT = "standard input"


class Command(BaseCommand):
    help = (
        "How many more copies of a pod fit into a cluster, on which nodes, and what stops the next "
        "one. Copies are scheduled one after another until none fits; nothing is bound, and nobody "
        "is preempted. With --snapshot no database is needed."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--pod", required=True, metavar="FILE", help="the pod, YAML or JSON; - is stdin"
        )
        where = parser.add_mutually_exclusive_group(required=True)
        where.add_argument(
            "--snapshot",
            metavar="FILE",
            help="the cluster: `kubectl get nodes,pods,... -o json`, an export of "
            "kube-scheduler-simulator, or manifests; .gz is fine, - is standard input",
        )
        where.add_argument("--sandbox", metavar="NAME", help="the cluster: a running sandbox")
        parser.add_argument(
            "--config",
            metavar="FILE",
            help="KubeSchedulerConfiguration (the one in the snapshot without its extenders, or "
            "the default profile)",
        )
        parser.add_argument(
            "--max",
            type=count,
            default=DEFAULT_LIMIT,
            metavar="N",
            help="stop after so many copies (%(default)s)",
        )
        parser.add_argument(
            "--output", choices=("text", "json"), default="text", help="format (%(default)s)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["pod"] == options["snapshot"] == STDIN:
            raise CommandError("only one of --pod and --snapshot can be standard input")
        pod = _pod(options["pod"])
        if options["sandbox"] is None:
            snapshot = _snapshot(options["snapshot"])
        else:
            snapshot = _sandbox(options["sandbox"])
        found = _count_copies(snapshot, pod, _config(options["config"], snapshot), options["max"])
        if options["output"] == "json":
            self.stdout.write(json.dumps(found.as_dict(), indent=2, ensure_ascii=False))
        else:
            self.stdout.write(report(found))


def count(text: str) -> int:
    """A whole number above 0."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def report(found: Capacity) -> str:
    """The answer, for people."""
    at_least = "at least " if found.stopped_by == LIMIT_REACHED else ""
    lines = [
        f"pod         {found.pod}",
        f"copies      {at_least}{found.copies}",
        f"nodes       {len(found.nodes)} of {found.nodes_total}",
    ]
    width = max((len(name) for name in found.nodes), default=0)
    lines += [f"  {name:<{width}}  {copies}" for name, copies in found.nodes.items()]
    if found.stopped_by == LIMIT_REACHED:
        return "\n".join([*lines, "stopped by  --max"])
    error = "an error: " if found.stopped_by == ERROR else ""
    return "\n".join([*lines, f"stopped by  {error}{found.message}"])


def _count_copies(
    snapshot: SnapshotFile, pod: dict[str, Any], config: SchedulerConfiguration, limit: int
) -> Capacity:
    # With None the bar shows itself on a terminal only.
    with tqdm(unit="copy", desc="capacity", disable=None, leave=False) as bar:

        def advance(done: int) -> None:
            bar.update(done - bar.n)

        try:
            return capacity_of(snapshot, pod, config, limit=limit, progress=advance)
        except (InvalidPod, InvalidObject, UnknownProfile, ProfileError) as error:
            raise CommandError(str(error)) from error


def _pod(name: str) -> dict[str, Any]:
    try:
        found = _manifests(name)
    except InvalidObject as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror or error}") from error
    if len(found) != 1:
        raise CommandError(f"{name}: one pod is wanted, there are {len(found)} objects")
    return dict(found[0].raw)


def _manifests(name: str) -> list[Manifest]:
    if name == STDIN:
        return load_manifests(sys.stdin.read(), STANDARD_INPUT)
    return load_manifest_file(Path(name))


def _snapshot(name: str) -> SnapshotFile:
    try:
        if name == STDIN:
            return parse_snapshot(sys.stdin.read(), STANDARD_INPUT)
        return load_snapshot(name)
    except InvalidSnapshot as error:
        raise CommandError(str(error)) from error


def _config(name: str | None, snapshot: SnapshotFile) -> SchedulerConfiguration:
    registry = in_tree_registry()
    try:
        if name is not None:
            return load_configuration_file(name, registry)
        if snapshot.scheduler_config is None:
            return default_configuration(registry)
        # Perhaps somebody else's export: it neither imports what it names (plugins must be
        # installed) nor has this machine call addresses that stand in it.
        own = {k: v for k, v in snapshot.scheduler_config.items() if k != "extenders"}
        source = f"{snapshot.source}: schedulerConfig"
        return configuration_from(own, registry, source=source, dotted_plugins=False)
    except InvalidConfiguration as error:
        hint = "" if name is not None else "\n--config takes another configuration"
        raise CommandError(listing(error) + hint) from error


# -- a sandbox -------------------------------------------------------------------------------------


def _sandbox(name: str) -> SnapshotFile:
    """The objects of a running sandbox as they are now."""
    # Only here: a snapshot needs no database, and so no models.
    from dashboard import hosted

    try:
        with closing(hosted.sandbox_client(_cluster_id(name))) as client:
            kinds = [kind for kind in KINDS if kind != "Event"]
            objects = [
                {"kind": kind, "apiVersion": KINDS[kind].api_version, **item}
                for kind in tqdm(kinds, desc=name, unit="kind", disable=None, leave=False)
                for item in client.list(kind).items
            ]
    except ApiError as error:
        if error.code == 503:
            hint = "Start it on its page; `make demo` must be running."
            raise CommandError(f'the sandbox "{name}" is not running. {hint}') from error
        raise CommandError(f'the sandbox "{name}" does not answer: {error}') from error
    return snapshot_of(objects, f'sandbox "{name}"')


def _cluster_id(name: str) -> int:
    from django.db import DatabaseError

    from dashboard.models import Sandbox

    try:
        known = dict(Sandbox.objects.values_list("cluster__name", "cluster_id"))
    except DatabaseError as error:
        hint = "Has `make demo` or `manage.py migrate` been run?"
        raise CommandError(f"the database cannot be used: {error}. {hint}") from error
    if name not in known:
        there = f" There are: {', '.join(sorted(known))}." if known else " There is none."
        raise CommandError(f'there is no sandbox named "{name}".{there}')
    return int(known[name])
