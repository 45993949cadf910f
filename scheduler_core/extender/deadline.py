"""HTTP connections on which a request and its answer together have one deadline.

urllib3's timeouts are per read: a server that sends a byte now and then keeps a reader for ever.
Here every read gets what is left of the time.
"""

from __future__ import annotations

import io
import socket
import time
from http.client import HTTPResponse
from typing import Any, Final, cast

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

__all__ = ["DeadlinePool", "TLSDeadlinePool"]

#: Bytes that are sent before the clock is looked at again.
_PIECE: Final = 65_536


def _left(deadline: float) -> float:
    """Seconds until then; TimeoutError where none are left."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left


class _DeadlineReader(io.RawIOBase):
    """Reads a socket until a moment of ``time.monotonic``."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        super().__init__()
        self._sock = sock
        self._deadline = deadline
        # It also keeps the socket open when the connection lets go of it.
        self._raw = cast(io.RawIOBase, sock.makefile("rb", buffering=0))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_left(self._deadline))
        return cast("int | None", self._raw.readinto(buffer))

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


class _DeadlineResponse(HTTPResponse):
    """An answer, headers and all, that is read within the socket's timeout as it is now: that is
    what urllib3 has left of the total."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        deadline = time.monotonic() + (sock.gettimeout() or 0.0)
        self.fp.close()
        self.fp = io.BufferedReader(_DeadlineReader(sock, deadline))


class _SendsInTime(HTTPConnection):
    """Sends a request, body and all, within the connection's timeout."""

    response_class = _DeadlineResponse
    _deadline = 0.0

    def request(self, *args: Any, **kwargs: Any) -> None:
        self._deadline = time.monotonic() + (self.timeout or 0.0)
        super().request(*args, **kwargs)

    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()
        assert self.sock is not None
        view = memoryview(data)
        for start in range(0, len(view), _PIECE):
            self.sock.settimeout(_left(self._deadline))
            super().send(view[start : start + _PIECE])


class _TLSConnection(_SendsInTime, HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        # Where certificates are not checked, the configuration says so and the log has said so:
        # urllib3 need not warn at every call.
        self.is_verified = True


class DeadlinePool(HTTPConnectionPool):
    ConnectionCls = _SendsInTime


class TLSDeadlinePool(HTTPSConnectionPool):
    ConnectionCls = _TLSConnection
