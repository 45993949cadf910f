"""The API server of this process: one for all sandboxes that it hosts."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from django.conf import settings

from dashboard.sandbox_api import access
from dashboard.sandbox_api.certificates import Certificates, certificates_in
from dashboard.sandbox_api.models import SandboxAccess
from dashboard.sandbox_api.serving import ApiThread, Doors, Sandbox, token_hash
from scheduler_core.cluster.api.server import ApiServer
from scheduler_core.cluster.sandbox import SandboxCluster

__all__ = ["OpenSandbox", "served"]

log = logging.getLogger(__name__)

_EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 - compared, and listened on where asked for

_lock = threading.Lock()
_doors = Doors()
_server: ApiThread | None = None
_certificates: Certificates | None = None


class OpenSandbox:
    """A sandbox that is served. `refresh` follows its row."""

    def __init__(self, sandbox_id: int, entry: Sandbox | None) -> None:
        self._id = sandbox_id
        self._entry = entry

    def refresh(self) -> None:
        """Take over a token that was made meanwhile."""
        row = SandboxAccess.objects.filter(pk=self._id).first()
        token = None if row is None else access.token_of(row)
        if self._entry is not None and token is not None:
            self._entry.token_hash = token_hash(token)


@contextmanager
def served(sandbox_id: int, cluster: SandboxCluster) -> Iterator[OpenSandbox]:
    """Serve a sandbox. A port that is taken does not stop it: its page says so instead."""
    row = access.ensure(sandbox_id)
    entry: Sandbox | None = None
    try:
        server, certificates = _running()
        entry = Sandbox(ApiServer(cluster), token_hash(access.token_of(row) or ""))
        _doors.open(sandbox_id, entry)
        address = f"{_base(server)}/sandboxes/{sandbox_id}"
        _tell(sandbox_id, url=address, ca_pem=certificates.ca_pem.decode(), problem="")
    except (OSError, ValueError, RuntimeError) as error:
        log.error("sandbox %s does not speak the Kubernetes API: %s", sandbox_id, error)
        _tell(sandbox_id, url="", ca_pem="", problem=str(error))
    try:
        yield OpenSandbox(sandbox_id, entry)
    finally:
        _doors.close(sandbox_id)
        if entry is not None and _server is not None:
            _server.end_watches(entry)
        _tell(sandbox_id, url="")


def _running() -> tuple[ApiThread, Certificates]:
    """The server; started by the first sandbox, it ends with the process.

    Raises:
        OSError, ValueError, RuntimeError: it cannot be.
    """
    global _server, _certificates
    with _lock:
        if _server is None or _certificates is None:
            host, port = settings.KUBESCHED_SANDBOX_API_LISTEN or ("127.0.0.1", 0)
            folder = Path(settings.KUBESCHED_DATA_DIR) / "sandbox-api"
            _certificates = certificates_in(folder, _names(host))
            server = ApiThread(_doors, host, port, _certificates.certificate, _certificates.key)
            server.start()
            _server = server
        return _server, _certificates


def _names(host: str) -> list[str]:
    """Names and addresses by which clients reach this process."""
    names = [*settings.KUBESCHED_SANDBOX_API_NAMES]
    if host in _EVERYWHERE:
        names += [socket.gethostname()]
    else:
        names += [host]
    return list(dict.fromkeys(names))


def _base(server: ApiThread) -> str:
    host, port = server.address
    names = settings.KUBESCHED_SANDBOX_API_NAMES
    if names:
        host = names[0]
    elif host in _EVERYWHERE:
        host = socket.gethostname()
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _tell(sandbox_id: int, **fields: str) -> None:
    SandboxAccess.objects.filter(pk=sandbox_id).update(**fields)
