"""Serves HTTP/1.1 on sockets of its own, a thread per connection."""

from __future__ import annotations

import logging
import socket
import socketserver
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from dashboard.worker_http.messages import TEXT, Answer, Handler, Request, problem

__all__ = ["MAX_BODY", "TLSFiles", "WorkerServer"]

log = logging.getLogger(__name__)

#: Largest body, in bytes: 5,000 nodes of a real cluster are some 50 MB.
MAX_BODY: Final = 64 * 2**20
#: Connections at once, and how long one more waits for its place before it is turned away.
MAX_CONNECTIONS: Final = 64
PLACE_SECONDS: Final = 1.0
#: Seconds that a client may be silent in a request, or between two.
SILENCE_SECONDS: Final = 60.0


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
        unix_path: a socket that only this user can open; what comes over it is trusted.
        listen: a TCP address besides, or None; port 0 takes a free one.
        tls: for the TCP address.

    Raises:
        OSError: an address cannot be had, or a file of ``tls`` cannot be read.
    """

    def __init__(
        self,
        handler: Handler,
        unix_path: Path,
        listen: tuple[str, int] | None = None,
        tls: TLSFiles | None = None,
    ) -> None:
        self._unix_path = unix_path
        self._servers: list[_Server] = []
        context = tls.context() if tls is not None else None
        try:
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
        super().__init__(address, _Connection)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(timeout=PLACE_SECONDS):
            super().process_request(request, client_address)
        else:
            log.warning("%s is turned away: %s connections are open", client_address, self._limit)
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """On the connection's own thread: a slow handshake holds up nobody else."""
        request.settimeout(SILENCE_SECONDS)
        if self._context is not None:
            try:
                request = self._context.wrap_socket(request, server_side=True)
            except (OSError, ssl.SSLError) as error:
                log.info("TLS with %s failed: %s", client_address, error)
                return
        super().finish_request(request, client_address)
        if self._context is not None:
            self.shutdown_request(request)

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

    def _answer(self) -> None:
        body = self._body()
        if isinstance(body, Answer):
            self.close_connection = True
            self._send(body)
            return
        url = urlsplit(self.path)
        request = Request(
            self.command,
            url.path,
            dict(parse_qsl(url.query, keep_blank_values=True)),
            {name.lower(): value for name, value in self.headers.items()},
            body,
            self.server.trusted or self._has_client_certificate(),
            self.address_string(),
        )
        try:
            answer = self.server.handler(request)
        except Exception:
            log.exception("%s %s failed", self.command, url.path)
            answer = problem(500, "The request failed; the worker's log says why.")
        self._send(answer)

    def _has_client_certificate(self) -> bool:
        return isinstance(self.connection, ssl.SSLSocket) and bool(self.connection.getpeercert())

    def _body(self) -> bytes | Answer:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._chunks()
        text = self.headers.get("Content-Length", "0")
        if not (text.isascii() and text.isdigit()):
            return problem(400, "Content-Length is not a number.")
        if int(text) > MAX_BODY:
            return problem(413, f"The body is larger than {MAX_BODY // 2**20} MiB.")
        body = self.rfile.read(int(text))
        if len(body) < int(text):
            return problem(400, "The body ended early.")
        return body

    def _chunks(self) -> bytes | Answer:
        chunks: list[bytes] = []
        size = 0
        while True:
            length = self.rfile.readline(1_024).split(b";")[0].strip()
            try:
                count = int(length, 16)
            except ValueError:
                return problem(400, "The length of a chunk is not a number.")
            size += count
            if size > MAX_BODY:
                return problem(413, f"The body is larger than {MAX_BODY // 2**20} MiB.")
            if not count:
                while self.rfile.readline(65_536).strip():
                    pass  # trailers
                return b"".join(chunks)
            chunks.append(self.rfile.read(count))
            self.rfile.readline(2)

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
