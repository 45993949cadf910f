"""The web server's socket, opened by the supervisor and handed to the web process.

The port is then known before anything else starts, stays ours while the web process is
restarted, and connections that arrive in that moment wait instead of being refused.
"""

from __future__ import annotations

import errno
import http.client
import socket
from contextlib import suppress

BACKLOG = 128
HIGHEST_PORT = 65535


class CannotListenError(Exception):
    """The address cannot be served; the message is for people."""


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket on ``host``:``port`` (port 0: any free one).

    Raises:
        CannotListenError: the port is taken or out of range, or the host is not this machine's.
    """
    check_port(port)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        opened = socket.socket(family, kind, protocol)
    except OSError as error:
        raise CannotListenError(f"the address {host} cannot be served ({error}).") from None
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(BACKLOG)
    except OSError as error:
        opened.close()
        raise CannotListenError(_reason(host, port, error)) from None
    return opened


def check_port(port: int) -> None:
    """
    Raises:
        CannotListenError: there is no such port.
    """
    if not 0 <= port <= HIGHEST_PORT:
        raise CannotListenError(f"{port} is no port: they go from 0 to {HIGHEST_PORT}.")


def url_host(host: str) -> str:
    """Return ``host`` as it stands in a URL that a browser on this machine opens."""
    if host in {"", "0.0.0.0", "::"}:  # noqa: S104 - compared, not bound
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def answers_http(host: str, port: int, path: str = "/healthz") -> bool:
    """Tell whether an HTTP server answers there, with whatever status below 500."""
    connection = http.client.HTTPConnection(url_host(host).strip("[]"), port, timeout=2)
    with suppress(OSError, http.client.HTTPException):
        connection.request("GET", path)
        return connection.getresponse().status < 500
    return False


def _reason(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is in use; choose another one (make demo PORT=8001)."
    if error.errno == errno.EACCES:
        return f"port {port} needs root; choose one above 1023 (make demo PORT=8000)."
    return f"{host}:{port} cannot be served ({error})."
