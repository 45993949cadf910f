"""`manage.py import_manifests`: Kubernetes objects from files into a sandbox, all or none."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError
from tqdm import tqdm

from dashboard import hosted
from dashboard.models import Sandbox
from scheduler_core.api import InvalidObject
from scheduler_core.api.manifests import Manifest, load_manifest_file
from scheduler_core.ports import ApiError


class Command(BaseCommand):
    help = (
        "Create Kubernetes objects in a running sandbox from YAML or JSON files (several documents "
        "and Lists are fine). All of them are created, or none: a file with a fault is refused "
        "whole, with file, document, line and field of each fault."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", metavar="FILE", help="YAML or JSON")
        parser.add_argument("--sandbox", required=True, metavar="NAME", help="which sandbox")
        parser.add_argument(
            "--dry-run", action="store_true", help="check the files, create nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        manifests = _load(options["files"])
        if not manifests:
            raise CommandError("there is no object in these files.")
        if options["dry_run"]:
            self.stdout.write(f"{_count(manifests)}: no fault found; nothing was created.")
            return
        _create(options["sandbox"], manifests)
        self.stdout.write(f"{_count(manifests)} created in the sandbox {options['sandbox']}.")


def _load(files: Iterable[str]) -> list[Manifest]:
    """Every object of every file.

    Raises:
        CommandError: with each fault of each file.
    """
    manifests: list[Manifest] = []
    faults: list[str] = []
    for file in tqdm(list(files), desc="reading", disable=None, leave=False):
        try:
            manifests += load_manifest_file(Path(file))
        except InvalidObject as error:
            faults.append(str(error))
        except OSError as error:
            faults.append(f"{file}: {error.strerror}")
    if faults:
        raise CommandError("\n".join(faults))
    return manifests


def _create(name: str, manifests: list[Manifest]) -> None:
    try:
        sandbox = Sandbox.objects.filter(cluster__name=name).first()
        known = list(Sandbox.objects.values_list("cluster__name", flat=True))
    except DatabaseError as error:
        raise CommandError(f"the database cannot be used: {error}") from error
    if sandbox is None:
        there = f" There are: {', '.join(sorted(known))}." if known else " There is none."
        raise CommandError(f'there is no sandbox named "{name}".{there}')
    objects = [_without_owners(manifest.raw) for manifest in manifests]
    try:
        with closing(hosted.sandbox_client(sandbox.cluster_id)) as client:
            client.as_actor("import_manifests").create_all(objects)
    except ApiError as error:
        if error.code == 503:
            hint = "Start it on its page; `make demo` must be running."
            raise CommandError(f'the sandbox "{name}" is not running. {hint}') from error
        causes = [f"  {path}: {reason}" for path, reason in error.causes]
        raise CommandError("\n".join([f"nothing was created: {error}", *causes])) from error


def _without_owners(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The object without the uids of another cluster, which the garbage collector would act on.

    Controllers that are imported with their pods adopt them by their selectors.
    """
    metadata = {k: v for k, v in raw["metadata"].items() if k != "ownerReferences"}
    return {**raw, "metadata": metadata}


def _count(manifests: list[Manifest]) -> str:
    kinds: dict[str, int] = {}
    for manifest in manifests:
        kind = str(manifest.raw.get("kind", "object"))
        kinds[kind] = kinds.get(kind, 0) + 1
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items())
