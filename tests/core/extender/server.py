"""A real extender on a port of this machine, which does what a test tells it."""

from __future__ import annotations

import contextlib
import http.server
import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any

Json = dict[str, Any]
#: Gets the parsed request; answers with JSON, with bytes as they are, or takes the handler over.
Answer = Callable[[Json], Any]


@dataclass
class Request:
    """One call as it came in."""

    method: str
    path: str
    headers: Message
    body: Any


@dataclass
class Takeover:
    """An answer that is written by hand."""

    write: Callable[[http.server.BaseHTTPRequestHandler], None]


class FakeExtender:
    """``answers``: verb -> what to say. ``requests``: what was asked, oldest first."""

    def __init__(self, answers: Mapping[str, Any], context: ssl.SSLContext | None = None) -> None:
        self.answers = dict(answers)
        self.requests: list[Request] = []
        self.closing = threading.Event()
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                return

            def do_POST(self) -> None:
                fake._serve(self)

            def do_GET(self) -> None:
                fake._serve(self)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                return  # clients that go away are what these tests are about

        self._server = Server(("127.0.0.1", 0), Handler)
        self.scheme = "http"
        if context is not None:
            self.scheme = "https"
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def asked(self, verb: str) -> list[Any]:
        """The bodies that came for a verb."""
        return [r.body for r in self.requests if r.path.rsplit("/", 1)[-1] == verb]

    def stop(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def _serve(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        raw = handler.rfile.read(length)
        body = json.loads(raw) if raw else None
        self.requests.append(Request(handler.command, handler.path, handler.headers, body))
        answer = self.answers.get(handler.path.rsplit("/", 1)[-1])
        if callable(answer):
            answer = answer(body)
        if isinstance(answer, Takeover):
            answer.write(handler)
            return
        status = 404 if answer is None else 200
        reply(handler, status, answer if isinstance(answer, bytes) else json.dumps(answer).encode())


def reply(handler: http.server.BaseHTTPRequestHandler, status: int, body: bytes) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


# -- good ------------------------------------------------------------------------------------------


def names_of(args: Json) -> list[str]:
    """The nodes that a filter or prioritize request speaks of."""
    if args["NodeNames"] is not None:
        return list(args["NodeNames"])
    return [item["metadata"]["name"] for item in args["Nodes"]["items"]]


def keep(*names: str, **more: Any) -> Answer:
    """Filter: leave these nodes, in the form in which they were asked about."""

    def answer(args: Json) -> Json:
        if args["NodeNames"] is not None:
            return {"NodeNames": [n for n in args["NodeNames"] if n in names], **more}
        items = [i for i in args["Nodes"]["items"] if i["metadata"]["name"] in names]
        return {"Nodes": {"metadata": {}, "items": items}, **more}

    return answer


def keep_all(args: Json) -> Json:
    return dict(keep(*names_of(args))(args))


def scores(**by_host: int) -> list[Json]:
    """Prioritize: these scores."""
    return [{"Host": host, "Score": score} for host, score in by_host.items()]


# -- bad -------------------------------------------------------------------------------------------


def status(code: int) -> Takeover:
    return Takeover(lambda handler: reply(handler, code, b"{}"))


def redirect(code: int, target: str) -> Takeover:
    def write(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        handler.send_header("Location", target)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return Takeover(write)


def late(seconds: float) -> Takeover:
    """Says nothing for a while, then hangs up."""

    def write(handler: http.server.BaseHTTPRequestHandler) -> None:
        time.sleep(seconds)
        handler.close_connection = True

    return Takeover(write)


def drip(fake: Callable[[], FakeExtender], head: bytes, piece: bytes, pause: float) -> Takeover:
    """A byte now and then, for ever."""

    def write(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        with contextlib.suppress(OSError):
            handler.wfile.write(head)
            while not fake().closing.wait(pause):
                handler.wfile.write(piece)

    return Takeover(write)


def endless(piece: bytes) -> Takeover:
    """A body that does not end, as fast as it is read."""

    def write(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        with contextlib.suppress(OSError):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
            while True:
                handler.wfile.write(piece)

    return Takeover(write)


def hang_up(handler: http.server.BaseHTTPRequestHandler) -> None:
    """Closes the connection without a word."""
    handler.close_connection = True


@dataclass
class Certificates:
    """PEM texts of a CA, of a server "extender.test" / 127.0.0.1 and of a client."""

    ca: bytes = b""
    server: bytes = b""
    server_key: bytes = b""
    client: bytes = b""
    client_key: bytes = b""
    other_ca: bytes = b""
