"""`manage.py serve`: the product's processes in production, under one supervisor."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection, connections
from django.db.migrations.executor import MigrationExecutor

from dashboard.runtime_dir import UnsafeFolderError, private_dir
from dashboard.supervisor import broker, programs
from dashboard.supervisor.listening import CannotListenError, listen
from dashboard.supervisor.supervisor import ChildKeepsFailingError, Supervisor

STOP_SECONDS = 20.0


class Command(BaseCommand):
    help = (
        "Serve in production: web server, sandbox, loop and default worker, and beat, with the "
        "database and the Redis that the environment names. TERM stops them in order."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to serve (%(default)s)")
        parser.add_argument("--port", type=int, default=8000, help="port to serve (%(default)s)")
        parser.add_argument(
            "--only",
            choices=programs.ALONE,
            action="append",
            help="run this part alone (may be repeated); beat must run exactly once per site",
        )
        parser.add_argument("--log-dir", metavar="FOLDER", help="log to files instead of here")

    def handle(self, *args: Any, **options: Any) -> None:
        parts = options["only"] or list(programs.PARTS)
        _check_database()
        if reason := broker.answers(settings.REDIS_URL):
            raise CommandError(f"the Redis that REDIS_URL names does not answer: {reason}")
        if "web" in parts:
            _check_static_files()
        try:
            runtime = private_dir(settings.KUBESCHED_RUNTIME_DIR)
            site = programs.Site(
                root=settings.BASE_DIR,
                environment={
                    "DJANGO_SETTINGS_MODULE": os.environ["DJANGO_SETTINGS_MODULE"],
                    "KUBESCHED_RUNTIME_DIR": str(runtime),
                },
                loop_concurrency=settings.KUBESCHED_LOOP_CONCURRENCY,
                hosts_apart="sandbox" in parts,
                logs=Path(options["log_dir"]).absolute() if options["log_dir"] else None,
            )
            self._run(site, parts, options["host"], options["port"])
        except (CannotListenError, ChildKeepsFailingError, UnsafeFolderError) as error:
            raise CommandError(str(error)) from None

    def _run(self, site: programs.Site, parts: list[str], host: str, port: int) -> None:
        with ExitStack() as stack:
            descriptor = None
            if "web" in parts:
                listening = stack.enter_context(closing(listen(host, port)))
                descriptor = listening.fileno()
                self._say(f"Serving {host}:{listening.getsockname()[1]}.")
            supervisor = stack.enter_context(Supervisor(stop_seconds=STOP_SECONDS, say=self._say))
            for name in parts:
                supervisor.start(programs.part(site, name, descriptor))
            supervisor.run()
            self._say("Stopping.")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _check_database() -> None:
    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        reason = " ".join(str(error).split())
        raise CommandError(
            f"the database that DATABASE_URL names does not answer: {reason}"
        ) from None
    finally:
        connections.close_all()
    if missing:
        raise CommandError(
            f"the database lacks {len(missing)} migrations; run `manage.py migrate` first."
        )


def _check_static_files() -> None:
    if settings.STATIC_ROOT is None:
        return  # not production: files are served from where they lie
    manifest = Path(settings.STATIC_ROOT) / "staticfiles.json"
    if not manifest.exists():
        raise CommandError(f"{manifest} is missing; run `manage.py collectstatic --noinput` first.")
