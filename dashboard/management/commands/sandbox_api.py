"""`manage.py sandbox_api`: one empty sandbox that speaks the Kubernetes API."""

from __future__ import annotations

import os
import secrets
import signal
import sys
import threading
from argparse import ArgumentParser
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from dashboard.sandbox_api.certificates import Certificates, certificates_in
from dashboard.sandbox_api.kubeconfig import kubeconfig
from dashboard.sandbox_api.serving import ApiThread, OneSandbox, Sandbox, token_hash
from dashboard.sandbox_parts import start_controllers
from scheduler_core.clock import RealClock
from scheduler_core.cluster.api.server import ApiServer
from scheduler_core.cluster.sandbox import SandboxCluster

NAME: Final = "kubesched-sandbox"


class Command(BaseCommand):
    help = (
        "Serve one empty sandbox as a Kubernetes API: kubectl, client libraries and a stock "
        "kube-scheduler can use it. Nothing is kept when it ends; neither Celery nor a database "
        "is needed. The certificate authority is made at the first start and kept."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=0, help="0 (default) takes a free one")
        parser.add_argument(
            "--host", default="127.0.0.1", help="address to listen on (default: %(default)s)"
        )
        parser.add_argument(
            "--token",
            help="what clients have to show; without it the environment's KUBESCHED_SANDBOX_TOKEN, "
            "or a random one",
        )
        parser.add_argument(
            "--no-controllers",
            action="store_true",
            help="nothing but the API server: no kubelet, no controllers, nothing changes by "
            "itself",
        )
        parser.add_argument(
            "--kubeconfig",
            type=Path,
            metavar="FILE",
            help="where to write the kubeconfig (default: a file in the data folder, by port)",
        )
        parser.add_argument(
            "--tls-name",
            action="append",
            default=[],
            metavar="NAME",
            help="a further name or address by which clients reach this machine; may be repeated",
        )
        parser.add_argument(
            "--plain-http",
            action="store_true",
            help="no TLS, for measurements; kubectl sends no token over plain HTTP",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        token = options["token"] or os.environ.get("KUBESCHED_SANDBOX_TOKEN") or _random_token()
        folder = Path(settings.KUBESCHED_DATA_DIR) / "sandbox-api"
        certificates = None if options["plain_http"] else _certificates(folder, options)
        with ExitStack() as stack:
            cluster = stack.enter_context(SandboxCluster(RealClock()))
            if not options["no_controllers"]:
                stack.callback(start_controllers(cluster))
            server = _server(cluster, token, certificates, options)
            self._announce(server, token, certificates, folder, options)
            _serve_until_told(server)

    def _announce(
        self,
        server: ApiThread,
        token: str,
        certificates: Certificates | None,
        folder: Path,
        options: dict[str, Any],
    ) -> None:
        path: Path = options["kubeconfig"] or folder / f"{server.address[1]}.kubeconfig"
        ca_pem = None if certificates is None else certificates.ca_pem
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
                out.write(kubeconfig(server.url, token, NAME, ca_pem))
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}") from error
        self.stdout.write(f"Serving on {server.url}")
        self.stdout.write(f"Kubeconfig: {path}")
        self.stdout.write(f"Try:        kubectl --kubeconfig {path} get nodes")
        self.stdout.flush()


def _random_token() -> str:
    return secrets.token_urlsafe(24)


def _certificates(folder: Path, options: dict[str, Any]) -> Certificates:
    names = [*options["tls_name"]]
    if options["host"] not in ("0.0.0.0", "::"):  # noqa: S104 - every address is nobody's name
        names.append(options["host"])
    try:
        return certificates_in(folder, names)
    except (OSError, ValueError) as error:
        raise CommandError(f"no certificate in {folder}: {error}") from error


def _server(
    cluster: SandboxCluster,
    token: str,
    certificates: Certificates | None,
    options: dict[str, Any],
) -> ApiThread:
    door = OneSandbox(Sandbox(ApiServer(cluster), token_hash(token)))
    files = (None, None) if certificates is None else (certificates.certificate, certificates.key)
    host, port = options["host"], options["port"]
    try:
        return ApiThread(door, host, port, *files)
    except (OSError, OverflowError) as error:
        raise CommandError(f"cannot listen on {host}, port {port}: {error}") from error


def _serve_until_told(server: ApiThread) -> None:
    def stop(*_: object) -> None:
        # Not in the handler itself: the loop must go on while it ends.
        threading.Thread(target=server.stop, daemon=True).start()

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
    try:
        server.run()
    except KeyboardInterrupt:
        sys.exit(0)
