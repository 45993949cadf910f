"""`manage.py demo`: everything the product needs, on this machine, with one command."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from argparse import ArgumentParser
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connections
from django.urls import reverse

from dashboard.runtime_dir import UnsafeFolderError, private_dir, remove_sockets
from dashboard.supervisor import broker as brokers
from dashboard.supervisor import programs
from dashboard.supervisor.data_folder import DataFolder, FolderInUseError
from dashboard.supervisor.listening import (
    CannotListenError,
    answers_http,
    check_port,
    listen,
    url_host,
)
from dashboard.supervisor.supervisor import ChildKeepsFailingError, Supervisor

STOP_SECONDS = 3.0
START_SECONDS = 60.0
WORKERS = 3
ANY_ADDRESS = ("0.0.0.0", "::", "")  # noqa: S104 - compared, not bound


class Command(BaseCommand):
    help = "Start the demo: broker, web server, workers and a sandbox, until Ctrl-C."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to serve (%(default)s)")
        parser.add_argument("--port", type=int, default=8000, help="0: any free one (%(default)s)")
        parser.add_argument("--trace", metavar="FOLDER", help="replay the trace in this folder")
        parser.add_argument(
            "--data-dir",
            metavar="FOLDER",
            help="where the demo keeps its data and logs (.kubesched, or KUBESCHED_DATA_DIR)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        trace = _trace_folder(options["trace"])
        try:
            check_port(options["port"])
            folder = DataFolder(settings.KUBESCHED_DATA_DIR)
        except (CannotListenError, FolderInUseError, OSError) as error:
            raise CommandError(str(error)) from None
        try:
            with closing(listen(options["host"], options["port"])) as listening:
                self._serve(folder, listening, options["host"], trace)
        except (CannotListenError, ChildKeepsFailingError, UnsafeFolderError) as error:
            raise CommandError(str(error)) from None
        finally:
            remove_sockets(settings.KUBESCHED_RUNTIME_DIR)
            folder.release()

    # --- from start to stop -----------------------------------------------------------------
    def _serve(
        self, folder: DataFolder, listening: socket.socket, host: str, trace: Path | None
    ) -> None:
        port: int = listening.getsockname()[1]
        run = secrets.token_urlsafe(16)
        folder.kill_leftovers()
        address = f"http://{url_host(host)}:{port}"
        folder.note(url=f"{address}/")
        with Supervisor(
            stop_seconds=STOP_SECONDS, say=self._say, changed=folder.note_children
        ) as supervisor:
            site, title = self._start_broker(supervisor, folder, host, address, run)
            passwords, first = self._prepare_data(trace)
            self._say("Starting the web server, three workers and beat ...")
            *first_parts, last = programs.PARTS
            for name in first_parts:
                supervisor.start(programs.part(site, name, listening.fileno()))
            if not supervisor.wait_until(lambda: answers_http(host, port), START_SECONDS):
                raise CommandError(f"the web server does not answer; see {folder.path / 'logs'}.")
            supervisor.wait_until(_workers_answer, START_SECONDS)
            # Beat only revives what has died: the workers look for their loops when they start.
            supervisor.start(programs.part(site, last))
            self._banner(_link(address, run, first), passwords, title, folder.path)
            supervisor.run()
            self._say("\nStopping ...")
        self._say("Stopped. The data is kept; `make demo` continues with it.")

    def _start_broker(
        self, supervisor: Supervisor, folder: DataFolder, host: str, address: str, run: str
    ) -> tuple[programs.Site, str]:
        environment = {
            "DJANGO_SETTINGS_MODULE": os.environ["DJANGO_SETTINGS_MODULE"],
            "KUBESCHED_MODE": "demo",
            "KUBESCHED_DATA_DIR": str(settings.KUBESCHED_DATA_DIR),
            "KUBESCHED_RUNTIME_DIR": str(private_dir(settings.KUBESCHED_RUNTIME_DIR)),
            "KUBESCHED_DEMO_RUN": run,
            # Links in webhooks lead here, unless somebody has said where else the demo is seen.
            "KUBESCHED_SITE_URL": settings.KUBESCHED_SITE_URL or address,
            "REDIS_URL": settings.REDIS_URL,
            "ALLOWED_HOSTS": ",".join(_allowed_hosts(host)),
        }
        site = programs.Site(
            root=settings.BASE_DIR,
            environment=environment,
            loop_concurrency=settings.KUBESCHED_LOOP_CONCURRENCY,
            logs=folder.path / "logs",
        )
        if os.environ.get("REDIS_URL"):
            self._say("Using the broker that REDIS_URL names ...")
            if reason := brokers.answers(settings.REDIS_URL):
                raise CommandError(f"the Redis that REDIS_URL names does not answer: {reason}")
            return site, "the one that REDIS_URL names"
        chosen = brokers.choose(settings.KUBESCHED_RUNTIME_DIR / "broker.sock")
        self._say(f"Starting the broker: {chosen.title} ...")
        supervisor.start(programs.broker(site, chosen))
        if not supervisor.wait_until(lambda: brokers.answers(chosen.url) is None, START_SECONDS):
            raise CommandError(f"the broker does not answer; see {folder.path / 'logs'}.")
        return site, chosen.title

    def _prepare_data(self, trace: Path | None) -> tuple[dict[str, str], int | None]:
        self._say("Bringing the database up to date ...")
        try:
            call_command("migrate", interactive=False, verbosity=0)
        except DatabaseError as error:
            raise CommandError(f"the database cannot be used: {error}") from None
        from dashboard.demo_users import ensure_users

        passwords = ensure_users()
        self._say(f"Preparing the sandbox{f' from {trace}' if trace else ''} ...")
        first: int | None = import_module("dashboard.demo").prepare(trace)
        connections.close_all()
        return passwords, first

    # --- words ------------------------------------------------------------------------------
    def _say(self, line: str) -> None:
        self.stdout.write(line)  # which adds a line's end where there is none
        self.stdout.flush()

    def _banner(self, link: str, passwords: dict[str, str], broker: str, folder: Path) -> None:
        from dashboard.demo_users import ADMIN, ROLES

        self._say("\nKubeSched is ready. Open this address; for one hour it logs you in:")
        self._say(f"\nURL {link}\n\n")
        for name, password in passwords.items():
            self._say(f"USER {name} PASSWORD {password} ({ROLES[name]}; shown only this once)")
        known = [name for name in ROLES if name not in passwords]
        if known:
            again = f"{sys.executable} manage.py changepassword"
            whose = f"Users {', '.join(known[:-1])} and {known[-1]} keep their passwords."
            if len(known) == 1:
                whose = f"User {known[0]} keeps its password."
            self._say(f"{whose} Forgotten? KUBESCHED_MODE=demo {again} {ADMIN}")
        self._say(f"Broker: {broker}. Data and logs: {folder}.")
        self._say("Ctrl-C stops everything.")


def _link(address: str, demo: str, run: int | None) -> str:
    """The address that logs in and opens a run's page, or the list of clusters."""
    from dashboard.demo_login import make_token
    from dashboard.demo_users import ADMIN

    path = reverse("demo-login", args=[make_token(ADMIN, demo)])
    return f"{address}{path}" if run is None else f"{address}{path}?run={run}"


def _trace_folder(given: str | None) -> Path | None:
    if not given:
        return None
    folder = Path(given).expanduser().absolute()
    if not folder.is_dir():
        raise CommandError(f"the trace folder {given} does not exist.")
    return folder


def _allowed_hosts(host: str) -> list[str]:
    """Return the names under which this machine may be addressed when it serves ``host``."""
    hosts = list(settings.ALLOWED_HOSTS)
    if host not in ANY_ADDRESS:
        return [*hosts, url_host(host)]
    name = socket.gethostname()
    try:
        own = {str(entry[4][0]) for entry in socket.getaddrinfo(name, None)}
    except OSError:
        own = set()
    return [*hosts, name, socket.getfqdn(), *sorted(url_host(address) for address in own)]


def _workers_answer() -> bool:
    """Tell whether both workers answer a ping: a click would then be acted on at once."""
    from celery import current_app

    try:
        answers = current_app.control.ping(timeout=0.3, limit=WORKERS)
    except Exception:  # noqa: BLE001 - whatever it is, it is not ready; the caller has a deadline
        return False
    return len(answers or ()) >= WORKERS
