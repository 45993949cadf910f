"""A real HTTP receiver on loopback that behaves as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOCAL = ("127.0.0.0/8",)


@dataclass
class Got:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


@dataclass
class Receiver:
    """What came in, in order; ``answers`` are given out one by one, the last one for ever.

    An answer is a status, a status with headers, or a function that gets the handler.
    """

    url: str
    answers: list[Any] = field(default_factory=lambda: [204])
    got: list[Got] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def next_answer(self) -> Any:
        with self.guard:
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    @property
    def told(self) -> list[str]:
        """Type and outcome of each message, in the order of arrival."""
        return [f"{m.json['type']} {m.json['data'].get('outcome', '')}".strip() for m in self.got]


def slowly(handler: BaseHTTPRequestHandler) -> None:
    """A byte of an endless header now and then, until the test is over."""
    receiver: Receiver = handler.server.receiver  # type: ignore[attr-defined]
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not receiver.release.wait(0.02):
        handler.wfile.write(b"x")
        handler.wfile.flush()


def silent(handler: BaseHTTPRequestHandler) -> None:
    """Nothing at all."""
    handler.server.receiver.release.wait(20)  # type: ignore[attr-defined]


def endless(handler: BaseHTTPRequestHandler) -> None:
    """A good answer whose body does not end."""
    receiver: Receiver = handler.server.receiver  # type: ignore[attr-defined]
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    while not receiver.release.is_set():
        handler.wfile.write(b"y" * 65_536)


def rubbish(handler: BaseHTTPRequestHandler) -> None:
    """No HTTP."""
    handler.wfile.write(b"\x00\x01 hello\r\n\r\n")


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        receiver: Receiver = self.server.receiver  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        with receiver.guard:
            receiver.got.append(Got(self.path, headers, body))
        answer = receiver.next_answer()
        with suppress(OSError):  # the caller hangs up, as it should
            self._give(answer)

    def _give(self, answer: Any) -> None:
        if callable(answer):
            answer(self)
            return
        status, headers = answer if isinstance(answer, tuple) else (answer, {})
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def receiving(answers: Sequence[Any] = (204,)) -> Iterator[Receiver]:
    """A receiver that listens until the end of the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    port = server.server_address[1]
    receiver = Receiver(f"http://127.0.0.1:{port}/hook", list(answers))
    server.receiver = receiver  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        receiver.release.set()
        server.shutdown()
        thread.join()
        server.server_close()


Answer = int | tuple[int, dict[str, str]] | Callable[[BaseHTTPRequestHandler], None]
