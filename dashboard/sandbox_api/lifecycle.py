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
from dashboard.sandbox_api.ports import on_the_same_port
from dashboard.sandbox_api.serving import ApiThread, Doors, Sandbox, token_hash
from scheduler_core.cluster.api.server import ApiServer
from scheduler_core.cluster.sandbox import SandboxCluster

__all__ = ["OpenSandbox", "served"]

log = logging.getLogger(__name__)

_OWN: Final = "127.0.0.1"
_EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 - compared, and listened on where asked for

_lock = threading.Lock()
_doors = Doors()
_server: ApiThread | None = None
_certificates: Certificates | None = None
_notice = ""


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
        server, certificates, notice = _running()
        entry = Sandbox(ApiServer(cluster), token_hash(access.token_of(row) or ""))
        _doors.open(sandbox_id, entry)
        address = f"{_base(server)}/sandboxes/{sandbox_id}"
        _tell(sandbox_id, url=address, ca_pem=certificates.ca_pem.decode(), problem=notice)
    except (OSError, ValueError, RuntimeError) as error:
        log.error("sandbox %s does not speak the Kubernetes API: %s", sandbox_id, error)
        _tell(sandbox_id, url="", ca_pem="", problem=str(error))
    try:
        yield OpenSandbox(sandbox_id, entry)
    finally:
        _doors.close(sandbox_id)
        if entry is not None and _server is not None:
            _server.end_watches(entry)
        _tell(sandbox_id, url="", **({} if entry is None else {"problem": ""}))


def _running() -> tuple[ApiThread, Certificates, str]:
    """The server, and what people have to know of its port; started by the first sandbox, it ends
    with the process.

    Raises:
        OSError, ValueError, RuntimeError: it cannot be.
    """
    global _server, _certificates, _notice
    with _lock:
        if _server is None or _certificates is None:
            folder = Path(settings.KUBESCHED_DATA_DIR) / "sandbox-api"
            server, _certificates, _notice = _prepared(folder)
            server.start()
            _server = server
        return _server, _certificates, _notice


def _prepared(folder: Path) -> tuple[ApiThread, Certificates, str]:
    chosen: tuple[str, int] | None = settings.KUBESCHED_SANDBOX_API_LISTEN
    host = chosen[0] if chosen else _OWN
    certificates = certificates_in(folder, _names(host))

    def make(port: int) -> ApiThread:
        return ApiThread(_doors, host, port, certificates.certificate, certificates.key)

    if chosen:
        return make(chosen[1]), certificates, ""
    server, notice = on_the_same_port(folder, make)
    return server, certificates, notice


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
