"""The web server's socket, and what a person reads where it cannot be had."""

from __future__ import annotations

import errno
import socket
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from dashboard.supervisor import listening
from dashboard.supervisor.listening import CannotListenError, answers_http, listen, url_host


def test_port_zero_is_any_free_port() -> None:
    with listen("127.0.0.1", 0) as opened:
        assert opened.getsockname()[1] > 0


def test_a_used_port_is_named() -> None:
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(CannotListenError, match=f"port {port} on 127.0.0.1 is in use"):
            listen("127.0.0.1", port)


@pytest.mark.parametrize(
    ("host", "port", "words"),
    [
        pytest.param("no-such-host.invalid", 0, "no-such-host.invalid cannot be", id="host"),
        pytest.param("192.0.2.1", 0, "192.0.2.1:0 cannot be served", id="not ours"),
        pytest.param("127.0.0.1", 99999, "99999 is no port", id="port out of range"),
    ],
)
def test_an_address_that_cannot_be_served_is_one_line(host: str, port: int, words: str) -> None:
    with pytest.raises(CannotListenError) as caught:
        listen(host, port)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_port_for_root_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(socket.socket):
        def bind(self, address: object) -> None:
            raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(listening.socket, "socket", Refusing)

    with pytest.raises(CannotListenError, match="port 80 needs root; choose one above 1023"):
        listen("127.0.0.1", 80)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        pytest.param("127.0.0.1", "127.0.0.1", id="address"),
        pytest.param("0.0.0.0", "127.0.0.1", id="any IPv4"),  # noqa: S104 - compared, not bound
        pytest.param("::", "127.0.0.1", id="any IPv6"),
        pytest.param("::1", "[::1]", id="IPv6"),
        pytest.param("node-1", "node-1", id="name"),
    ],
)
def test_host_in_a_url(host: str, expected: str) -> None:
    assert url_host(host) == expected


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        pytest.param(200, True, id="200"),
        pytest.param(400, True, id="400"),
        pytest.param(500, False, id="500"),
    ],
)
def test_whether_a_web_server_answers(status: int, ready: bool) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        assert answers_http("127.0.0.1", server.server_port) is ready
        thread.join()


def test_silence_is_no_answer() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        assert not answers_http("127.0.0.1", unused.getsockname()[1])
