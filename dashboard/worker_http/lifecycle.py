"""The server of this process, from the worker's start to its end."""

from __future__ import annotations

import logging
import os
import ssl
import threading
from pathlib import Path
from typing import Final

from django.conf import settings

from dashboard.extender_service.service import answer
from dashboard.health.checks import default_probes
from dashboard.runtime_dir import private_dir
from dashboard.worker_http import client
from dashboard.worker_http.routes import WorkerRoutes
from dashboard.worker_http.server import TLSFiles, WorkerServer

__all__ = ["CannotServe", "start", "start_probes", "stop"]

log = logging.getLogger(__name__)

_lock = threading.Lock()
_server: WorkerServer | None = None
NEEDS_BOTH: Final = (
    "KUBESCHED_WORKER_TLS_CERT and KUBESCHED_WORKER_TLS_KEY belong together; only one is set"
)


class CannotServe(Exception):
    """The address or the certificate that the environment names cannot be used; why."""


def start(*, at_address: bool = True) -> WorkerServer:
    """Serve, if this process does not yet.

    Args:
        at_address: at ``KUBESCHED_WORKER_LISTEN`` too; only one process of a machine can.

    Raises:
        CannotServe: the text names the variable.
    """
    global _server
    with _lock:
        if _server is not None:
            return _server
        folder = private_dir(Path(settings.KUBESCHED_RUNTIME_DIR))
        client.remove_stale(folder)
        listen = settings.KUBESCHED_WORKER_LISTEN if at_address else None
        try:
            _server = WorkerServer(
                WorkerRoutes(extensions={"extender": answer}),
                folder / f"worker-{os.getpid()}.sock",
                listen,
                tls_files(),
            )
        except (OSError, ssl.SSLError) as error:
            raise CannotServe(
                "metrics, probes and extender calls cannot be served"
                f" (KUBESCHED_WORKER_LISTEN, KUBESCHED_WORKER_TLS_*): {error}"
            ) from error
        if _server.address is not None:
            log.info("serving metrics, probes and extender calls at %s:%s", *_server.address)
        return _server


def start_probes(listen: tuple[str, int]) -> WorkerServer:
    """Serve the probes of the default worker, and what it takes of memory and CPU, if this process
    does not yet.

    Raises:
        CannotServe: the text names the variable.
    """
    global _server
    with _lock:
        if _server is None:
            try:
                _server = WorkerServer(WorkerRoutes(default_probes()), None, listen)
            except OSError as error:
                text = f"probes cannot be served (KUBESCHED_DEFAULT_LISTEN): {error}"
                raise CannotServe(text) from error
            log.info("serving probes at %s:%s", *listen)
        return _server


def tls_files() -> TLSFiles | None:
    """The certificate that the environment names."""
    certificate, key = settings.KUBESCHED_WORKER_TLS_CERT, settings.KUBESCHED_WORKER_TLS_KEY
    if bool(certificate) != bool(key):
        raise CannotServe(NEEDS_BOTH)
    if not certificate:
        return None
    return TLSFiles(certificate, key, settings.KUBESCHED_WORKER_CLIENT_CA)


def stop() -> None:
    """May be called without a start, and twice."""
    global _server
    with _lock:
        server, _server = _server, None
    if server is not None:
        server.close()
