"""fakeredis on a unix socket: ``python -m dashboard.supervisor.fake_broker SOCKET``.

The broker of machines without any Redis. Slower than one (some 2,600 messages a second) and
the same protocol, so nothing else in the product knows the difference.
"""

from __future__ import annotations

import signal
import socket
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

from fakeredis import TcpFakeServer
from fakeredis._clients._tcp_server import TCPFakeRequestHandler
from redis.exceptions import ResponseError

# What redis-server's scripts and clients of today expect.
SERVER_VERSION = (7, 0)


class KeepConnection:
    """Wraps a client of the fake server so that an error is an answer like any other.

    Left alone, the server hangs up after one. A client that tries a script by its hash and means
    to send the script where that fails, as redis-py does, would lose its connection.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def read_response(self) -> Any:
        try:
            return self._client.read_response()
        except ResponseError as error:
            return error


class Handler(TCPFakeRequestHandler):
    def setup(self) -> None:
        super().setup()
        client: Any = KeepConnection(self.current_client)
        self.current_client = client


class UnixFakeServer(TcpFakeServer):
    """fakeredis' TCP server on a unix socket."""

    address_family = socket.AF_UNIX

    def __init__(self, path: Path) -> None:
        self._numbers = count(1)
        with suppress(FileNotFoundError):
            path.unlink()
        address: Any = str(path)  # what an AF_UNIX server takes in place of (host, port)
        super().__init__(address, server_version=SERVER_VERSION)
        # The process must be able to end while clients are connected.
        self.daemon_threads = True
        self.RequestHandlerClass = Handler
        path.chmod(0o700)

    def get_request(self) -> tuple[Any, Any]:
        # A unix client has no address, and the server tells its clients apart by that.
        request, _ = super().get_request()
        return request, ("unix", next(self._numbers))


def main() -> None:
    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, leave)
    path = Path(sys.argv[1])
    try:
        UnixFakeServer(path).serve_forever(poll_interval=0.1)
    finally:
        with suppress(FileNotFoundError):
            path.unlink()


if __name__ == "__main__":
    main()
