"""Serves HTTP/1.1 on sockets of its own, a thread per connection."""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from dashboard.worker_http.messages import TEXT, Answer, BadBody, Handler, Request, problem

__all__ = ["MAX_BODY", "TLSFiles", "WorkerServer"]

log = logging.getLogger(__name__)

#: Largest body, in bytes: 5,000 nodes of a real cluster are some 50 MB.
MAX_BODY: Final = 64 * 2**20
#: Connections at once, and those besides that get an answer to probes only, and quickly.
MAX_CONNECTIONS: Final = 64
PROBE_CONNECTIONS: Final = 16
PROBE_SECONDS: Final = 2.0
#: Seconds from a connection's beginning to the end of its first request's headers.
HEADER_SECONDS: Final = 10.0
#: Seconds that a client may be silent in a request, or between two.
SILENCE_SECONDS: Final = 60.0
#: What is thrown away of a body that nobody wanted, so that its sender reads the answer.
LINGER_BYTES: Final = 2**20
LINGER_SECONDS: Final = 1.0
_PROBES: Final = ("livez", "readyz", "healthz")
_CHUNK_LENGTH: Final = re.compile(rb"[0-9A-Fa-f]{1,16}")
_TOO_LARGE: Final = f"The body is larger than {MAX_BODY // 2**20} MiB."
MOST_TRAILERS: Final = 64
_TRAILERS: Final = f"The body has more than {MOST_TRAILERS} trailers."
_FULL: Final = "Too many connections are open; only probes are answered now."


@dataclass(frozen=True, slots=True)
class TLSFiles:
    """PEM files. With ``client_ca`` a client may show a certificate of that authority, and is
    trusted then."""

    certificate: str
    key: str
    client_ca: str = ""

    def context(self) -> ssl.SSLContext:
        """
        Raises:
            OSError: a file cannot be read; ssl.SSLError: it is not what it should be.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.certificate, self.key)
        if self.client_ca:
            context.load_verify_locations(self.client_ca)
            context.verify_mode = ssl.CERT_OPTIONAL
        return context


class WorkerServer:
    """Answers requests by ``handler`` until it is closed.

    Args:
        unix_path: a socket that only this user can open, or None; what comes over it is trusted.
        listen: a TCP address besides, or None; port 0 takes a free one.
        tls: for the TCP address.

    Raises:
        OSError: an address cannot be had, or a file of ``tls`` cannot be read.
    """

    def __init__(
        self,
        handler: Handler,
        unix_path: Path | None,
        listen: tuple[str, int] | None = None,
        tls: TLSFiles | None = None,
    ) -> None:
        self._unix_path = unix_path
        self._servers: list[_Server] = []
        context = tls.context() if tls is not None else None
        try:
            if unix_path is not None:
                unix_path.unlink(missing_ok=True)
                self._serve(_UnixServer(str(unix_path), handler, None))
                unix_path.chmod(0o600)
            self.address: tuple[str, int] | None = None
            if listen is not None:
                kind = _Server6 if ":" in listen[0] else _Server
                server = kind(listen, handler, context)
                self._serve(server)
                host, port = server.server_address[:2]
                self.address = (str(host), int(port))
        except BaseException:
            self.close()
            raise

    def _serve(self, server: _Server) -> None:
        self._servers.append(server)
        name = f"worker-http-{len(self._servers)}"
        threading.Thread(target=server.serve_forever, args=(0.2,), name=name, daemon=True).start()

    def close(self) -> None:
        """Take no more requests. May be called twice."""
        for server in self._servers:
            server.shutdown()
            server.server_close()
        self._servers.clear()
        if self._unix_path is not None:
            self._unix_path.unlink(missing_ok=True)


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    trusted = False

    def __init__(self, address: Any, handler: Handler, context: ssl.SSLContext | None) -> None:
        self.handler = handler
        self._context = context
        self._limit = MAX_CONNECTIONS
        self._places = threading.BoundedSemaphore(self._limit)
        self._probe_places = threading.BoundedSemaphore(PROBE_CONNECTIONS)
        self._lock = threading.Lock()
        #: Sockets that have a place for probes only.
        self._probing: set[Any] = set()
        #: socket -> until when its headers must be there
        self._due: dict[socket.socket, float] = {}
        super().__init__(address, _Connection)

    def process_request(self, request: Any, client_address: Any) -> None:
        """On the thread that accepts: nothing here may wait."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        elif self._probe_places.acquire(blocking=False):
            self._probing.add(request)
            super().process_request(request, client_address)
        else:
            log.warning("%s is turned away: %s connections are open", client_address, self._limit)
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        is_probe = request in self._probing
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._probing.discard(request)
            (self._probe_places if is_probe else self._places).release()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """On the connection's own thread: a slow handshake holds up nobody else."""
        is_probe = request in self._probing
        patience = PROBE_SECONDS if is_probe else HEADER_SECONDS
        request.settimeout(patience)
        made = request
        if self._context is not None:
            made = self._context.wrap_socket(
                request, server_side=True, do_handshake_on_connect=False
            )
        self.expect_headers(made, patience)
        try:
            if isinstance(made, ssl.SSLSocket):
                made.do_handshake()
            _Connection(made, client_address, self, is_probe)
        except ssl.SSLError as error:
            log.info("TLS with %s failed: %s", client_address, error)
        finally:
            self.headers_came(made)
            if made is not request:
                self.shutdown_request(made)

    # -- headers that do not come --------------------------------------------------------------

    def expect_headers(self, sock: socket.socket, seconds: float) -> None:
        """Cut the connection if they are not there in time, however they trickle in."""
        with self._lock:
            self._due[sock] = time.monotonic() + seconds

    def headers_came(self, sock: socket.socket) -> None:
        with self._lock:
            self._due.pop(sock, None)

    def service_actions(self) -> None:
        """On the thread that accepts, a few times a second."""
        now = time.monotonic()
        with self._lock:
            late = [sock for sock, until in self._due.items() if until <= now]
            for sock in late:
                del self._due[sock]
                with contextlib.suppress(OSError):
                    # Not an SSLSocket's own: its thread is in the middle of reading.
                    socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.info("a connection of %s ended early", client_address, exc_info=True)


class _Server6(_Server):
    address_family = socket.AF_INET6


class _UnixServer(_Server):
    address_family = socket.AF_UNIX
    allow_reuse_address = False
    trusted = True


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "KubeSched"
    sys_version = ""
    #: Headers and body leave in one piece.
    wbufsize = -1
    server: _Server

    def __init__(self, request: Any, address: Any, server: _Server, is_probe: bool = False) -> None:
        self._is_probe = is_probe
        self._has_asked = False
        self._is_unread = False
        super().__init__(request, address, server)

    def setup(self) -> None:
        super().setup()
        if self.server.address_family != socket.AF_UNIX:
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)

    def address_string(self) -> str:
        peer: Any = self.client_address  # "" on a unix socket
        return str(peer[0]) if peer else "unix"

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = do_GET  # noqa: N815

    def handle_one_request(self) -> None:
        if self._has_asked:
            self.server.expect_headers(self.connection, SILENCE_SECONDS + HEADER_SECONDS)
        super().handle_one_request()

    def _answer(self) -> None:
        self.server.headers_came(self.connection)
        self._has_asked = True
        self._is_unread = self._has_body()
        url = urlsplit(self.path)
        self.connection.settimeout(SILENCE_SECONDS)
        if self._is_probe:
            self.close_connection = True
            if url.path.strip("/").partition("/")[0] not in _PROBES:
                self._finish(problem(503, _FULL, Retry_After="1"))
                return
        request = Request(
            self.command,
            url.path,
            parse_qs(url.query, keep_blank_values=True),
            {name.lower(): value for name, value in self.headers.items()},
            b"",
            self.server.trusted or self._has_client_certificate(),
            self.address_string(),
            self._receive,
        )
        try:
            answer = self.server.handler(request)
        except BadBody as error:
            self._is_unread = True
            answer = error.answer
        except Exception:
            log.exception("%s %s failed", self.command, url.path)
            answer = problem(500, "The request failed; the worker's log says why.")
        self._finish(answer)

    def _finish(self, answer: Answer) -> None:
        """Where a body is left in the connection no other request can follow it."""
        self.close_connection |= self._is_unread
        self._send(answer)
        if self._is_unread:
            self._throw_away()

    def _throw_away(self) -> None:
        """A socket that is closed with bytes unread is reset, and its sender reads no answer."""
        until = time.monotonic() + LINGER_SECONDS
        left = LINGER_BYTES
        with contextlib.suppress(OSError, ValueError):
            self.connection.settimeout(LINGER_SECONDS)
            self.connection.shutdown(socket.SHUT_WR)
            while left > 0 and time.monotonic() < until:
                taken = len(self.rfile.read1(65_536))
                if not taken:
                    return
                left -= taken

    def _has_client_certificate(self) -> bool:
        return isinstance(self.connection, ssl.SSLSocket) and bool(self.connection.getpeercert())

    def _has_body(self) -> bool:
        return "Transfer-Encoding" in self.headers or self.headers.get("Content-Length", "0") != "0"

    def _receive(self) -> bytes:
        body = self._body()
        if isinstance(body, Answer):
            raise BadBody(body)
        self._is_unread = False
        return body

    def _body(self) -> bytes | Answer:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._chunks()
        text = self.headers.get("Content-Length", "0")
        if not (text.isascii() and text.isdigit()):
            return problem(400, "Content-Length is not a number.")
        if len(text) > 16 or int(text) > MAX_BODY:
            return problem(413, _TOO_LARGE)
        body = self.rfile.read(int(text))
        if len(body) < int(text):
            return problem(400, "The body ended early.")
        return body

    def _chunks(self) -> bytes | Answer:
        chunks: list[bytes] = []
        size = 0
        while True:
            length = self.rfile.readline(1_024).split(b";")[0].strip()
            if not _CHUNK_LENGTH.fullmatch(length):  # int() takes "-1", "+1", "0x1" and "1_0"
                return problem(400, "The length of a chunk is not a number.")
            count = int(length, 16)
            size += count
            if size > MAX_BODY:
                return problem(413, _TOO_LARGE)
            if not count:
                return b"".join(chunks) if self._trailers_end() else problem(400, _TRAILERS)
            chunk = self.rfile.read(count)
            if len(chunk) < count or self.rfile.readline(2) != b"\r\n":
                return problem(400, "The body ended early.")
            chunks.append(chunk)

    def _trailers_end(self) -> bool:
        return any(not self.rfile.readline(1_024).strip() for _ in range(MOST_TRAILERS))

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        headers: Mapping[str, str] = {
            "Content-Type": answer.media_type or TEXT,
            "Content-Length": str(len(answer.body)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            **answer.headers,
        }
        for name, value in headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)
        self.wfile.flush()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """For requests that are no HTTP."""
        self.close_connection = True
        self.command, self.request_version = self.command or "GET", self.protocol_version
        self._send(problem(code, message or HTTPStatus(code).phrase))

    def log_message(self, format: str, *args: Any) -> None:
        log.debug("%s %s", self.address_string(), format % args)
