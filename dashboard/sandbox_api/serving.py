"""Runs the ASGI application on a thread of its own, or in the caller's."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import uvicorn

from dashboard.sandbox_api.app import ApiApp, Door, Entry
from dashboard.sandbox_api.encoding import Encoder
from scheduler_core.cluster.api.server import ApiServer

__all__ = ["ApiThread", "Doors", "OneSandbox", "Sandbox", "token_hash"]

log = logging.getLogger(__name__)

_START_SECONDS: Final = 20.0
_STOP_SECONDS: Final = 5.0
_BACKLOG: Final = 2048


def token_hash(token: str) -> str:
    """What is kept of a token: it is random and long, so that a plain hash is enough."""
    return hashlib.sha256(token.encode()).hexdigest()


@dataclass(slots=True)
class Sandbox:
    """An `Entry`: a sandbox and the hash of the token that opens it."""

    api: ApiServer
    token_hash: str
    user: str = "sandbox-user"
    encoder: Encoder = field(default_factory=Encoder)
    closing: asyncio.Event = field(default_factory=asyncio.Event)

    def user_of(self, token: str) -> str | None:
        same = hmac.compare_digest(token_hash(token), self.token_hash)
        return self.user if token and same else None


class OneSandbox(Door):
    """A door with one sandbox behind it, at the root."""

    def __init__(self, sandbox: Entry) -> None:
        self._sandbox = sandbox

    def find(self, path: str) -> tuple[Entry, str] | None:
        return self._sandbox, path


class Doors(Door):
    """Many sandboxes, each at `/sandboxes/<id>`. Thread-safe."""

    def __init__(self) -> None:
        self._found: dict[str, Entry] = {}

    def open(self, number: int, sandbox: Entry) -> None:
        self._found[str(number)] = sandbox

    def close(self, number: int) -> None:
        self._found.pop(str(number), None)

    def __len__(self) -> int:
        return len(self._found)

    def find(self, path: str) -> tuple[Entry, str] | None:
        _, _, rest = path.partition("/sandboxes/")
        number, _, inner = rest.partition("/")
        found = self._found.get(number) if path.startswith("/sandboxes/") else None
        return None if found is None else (found, f"/{inner}")


class ApiThread:
    """A server on a thread. `port` 0 takes a free one; see `address`."""

    def __init__(
        self,
        door: Door,
        host: str = "127.0.0.1",
        port: int = 0,
        certificate: Path | None = None,
        key: Path | None = None,
    ) -> None:
        """
        Raises:
            OSError: the port is taken.
        """
        self._socket = _listener(host, port)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self.scheme = "http" if certificate is None else "https"
        self._app = ApiApp(door)
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._app,
                http="httptools",
                loop="asyncio",
                ws="none",
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                backlog=_BACKLOG,
                timeout_keep_alive=120,
                timeout_graceful_shutdown=1,
                ssl_certfile=None if certificate is None else str(certificate),
                ssl_keyfile=None if key is None else str(key),
            )
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="sandbox-api", daemon=True)

    @property
    def url(self) -> str:
        host, port = self.address
        shown = f"[{host}]" if ":" in host else host
        return f"{self.scheme}://{shown}:{port}"

    def start(self) -> None:
        """Returns when requests are taken.

        Raises:
            RuntimeError: the server did not start.
        """
        self._thread.start()
        for _ in range(int(_START_SECONDS / 0.01)):
            if self._server.started or not self._thread.is_alive():
                break
            threading.Event().wait(0.01)
        if not self._server.started:
            raise RuntimeError("the sandbox API did not start")

    def run(self) -> None:
        """Serve on this thread until `stop` is called from another."""
        self._run()

    def end_watches(self, sandbox: Sandbox) -> None:
        """The sandbox ends; the server goes on. From any thread."""
        self._on_loop(sandbox.closing.set)

    def _on_loop(self, call: Callable[[], None]) -> None:
        if self._loop is not None and self._loop.is_running():
            self._loop.call_soon_threadsafe(call)

    def stop(self) -> None:
        """End the watches, then the server."""
        self._on_loop(self._app.closing.set)
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            runner.run(self._server.serve([self._socket]))


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio switches Nagle's delay off for those sockets alone.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        # From now on clients wait until the loop runs, and are not turned away.
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    listener.set_inheritable(True)
    return listener
