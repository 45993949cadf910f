"""The fake API server over real sockets: HTTP/1.1, keep-alive, chunked watches."""

from __future__ import annotations

import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson

from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.ports import ApiError
from tests.kube.fake import FakeServer, Request, status

TOKEN = "let-me-in"
_BOOKMARK_SECONDS = 0.5


class HttpServer:
    """Attributes:
    url: where it listens.
    sandbox: the store behind it.
    """

    def __init__(self, fake: FakeServer | None = None) -> None:
        self.fake = fake or FakeServer()
        self.sandbox: SandboxCluster = self.fake.sandbox
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.fake = self.fake
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> HttpServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._server.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    fake: FakeServer
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.stopping = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are what these tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        return

    def _serve(self) -> None:
        place = urlsplit(self.path)
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length) if length else None
        query = dict(parse_qsl(place.query))
        fake = self.server.fake
        sent = orjson.loads(body) if body else None
        request = Request(fake.timing.monotonic(), self.command, place.path, query, sent)
        if self.headers.get("authorization") != f"Bearer {TOKEN}":
            self._answer(status(401, "Unauthorized"))
        elif "watch" in query:
            self._watch(request)
        else:
            self._answer(fake.serve(request))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815

    def _answer(self, answer: Any) -> None:
        self.send_response(answer.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer.body)))
        if answer.retry_after is not None:
            self.send_header("retry-after", f"{answer.retry_after:g}")
        self.end_headers()
        self.wfile.write(answer.body)

    def _watch(self, request: Request) -> None:
        fake = self.server.fake
        fake.requests.append(request)
        events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        try:
            kind = fake._place(request.path)[0]
            version = int(request.query["resourceVersion"])
            selector = request.query.get("fieldSelector", "")
            watch = fake.sandbox.watch_from(kind.kind, version, events.put, field_selector=selector)
        except ApiError as refusal:
            self._answer(status(refusal.code, refusal.reason, refusal.message))
            return
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            while not self.server.stopping.is_set():
                self._tell(events)
                watch.bookmark()
        finally:
            watch.stop()
            self.close_connection = True

    def _tell(self, events: queue.SimpleQueue[Any]) -> None:
        try:
            found = [events.get(timeout=_BOOKMARK_SECONDS)]
            while not events.empty():
                found.append(events.get_nowait())
        except queue.Empty:
            return
        lines = b"".join(_line(event) for event in found)
        self.wfile.write(b"%x\r\n%b\r\n" % (len(lines), lines))


def _line(event: Any) -> bytes:
    obj = event.object
    if event.type == "BOOKMARK":
        obj = {"metadata": {"resourceVersion": str(event.resource_version)}}
    return orjson.dumps({"type": event.type, "object": obj}) + b"\n"
