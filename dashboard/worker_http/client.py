"""The loop workers of this machine, asked over their unix sockets."""

from __future__ import annotations

import http.client
import json
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from django.conf import settings

__all__ = ["ask", "remove_stale", "samples_of_workers"]

log = logging.getLogger(__name__)

#: Seconds that a worker has for its answer: less than a scraper waits.
PATIENCE: Final = 5.0
_OK: Final = 200


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("worker", timeout=PATIENCE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(str(self._path))


def ask(path: Path, what: str) -> tuple[int, bytes]:
    """Status and body of ``GET what``.

    Raises:
        OSError: nobody answers; http.client.HTTPException: what is answered is no HTTP.
    """
    connection = _UnixConnection(path)
    try:
        connection.request("GET", what)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def samples_of_workers() -> list[dict[str, Any]]:
    """What each worker of this machine counts; one that does not answer is left out, and logged."""
    found = []
    for path in _sockets(Path(settings.KUBESCHED_RUNTIME_DIR)):
        try:
            status, body = ask(path, "/samples")
            if status == _OK:
                found.append(json.loads(body))
        except (OSError, ValueError, http.client.HTTPException) as error:
            log.warning("%s does not answer: %s", path.name, error)
    return found


def remove_stale(folder: Path) -> None:
    """Sockets that killed workers have left behind."""
    for path in _sockets(folder):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink(missing_ok=True)
            except OSError:
                continue


def _sockets(folder: Path) -> Iterator[Path]:
    return iter(sorted(folder.glob("worker-*.sock")))
