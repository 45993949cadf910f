"""A worker's HTTP server: both sockets, TLS, and requests that are not as they should be."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dashboard.health.probes import Probes
from dashboard.worker_http import client
from dashboard.worker_http import server as server_module
from dashboard.worker_http.messages import Answer, Request, as_json, problem
from dashboard.worker_http.routes import WorkerRoutes
from dashboard.worker_http.server import TLSFiles, WorkerServer
from tests.dashboard.worker_http.certificates import Authority

Serve = Callable[..., WorkerServer]


def echo(request: Request) -> Answer:
    if request.path == "/boom":
        raise RuntimeError("secret details")
    return as_json(
        {
            "method": request.method,
            "path": request.path,
            "query": request.query,
            "body": request.content().decode(),
            "trusted": request.trusted,
        }
    )


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    servers = []

    def start(handler: Callable[[Request], Answer] = echo, **options: object) -> WorkerServer:
        made = WorkerServer(handler, tmp_path / "worker-1.sock", **options)  # type: ignore[arg-type]
        servers.append(made)
        return made

    yield start
    for made in servers:
        made.close()


def connect(made: WorkerServer) -> http.client.HTTPConnection:
    assert made.address is not None
    return http.client.HTTPConnection(*made.address, timeout=10)


def raw(made: WorkerServer, request: bytes) -> bytes:
    """What is answered to bytes."""
    assert made.address is not None
    with socket.create_connection(made.address, timeout=10) as sock:
        sock.sendall(request)
        sock.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: sock.recv(65_536), b""))


LOOPBACK = ("127.0.0.1", 0)


def test_what_comes_over_the_unix_socket_is_trusted(serve: Serve, tmp_path: Path) -> None:
    serve()
    status, body = client.ask(tmp_path / "worker-1.sock", "/x?a=1")
    assert status == 200
    assert json.loads(body) == {
        "method": "GET",
        "path": "/x",
        "query": {"a": ["1"]},
        "body": "",
        "trusted": True,
    }
    assert (tmp_path / "worker-1.sock").stat().st_mode & 0o077 == 0


def test_a_connection_is_kept_and_bodies_come_whole(serve: Serve) -> None:
    with closing(connect(serve(listen=LOOPBACK))) as connection:
        for text in ("one", "two" * 100_000):
            connection.request("POST", "/", body=text)
            found = json.loads(connection.getresponse().read())
            assert (found["body"], found["trusted"]) == (text, False)
        connection.request("POST", "/", body=iter([b"chunk ", b"by chunk"]))
        assert json.loads(connection.getresponse().read())["body"] == "chunk by chunk"


def test_a_fault_is_logged_and_not_told(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    with closing(connect(serve(listen=LOOPBACK))) as connection:
        connection.request("GET", "/boom")
        answer = connection.getresponse()
        assert answer.status == 500
        assert answer.read() == b"The request failed; the worker's log says why.\n"
        connection.request("GET", "/after")
        assert connection.getresponse().status == 200
    assert "secret details" in caplog.text


@pytest.mark.parametrize(
    ("request_bytes", "status", "text"),
    [
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
            400,
            "Content-Length is not a number",
            id="negative length",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n",
            413,
            "larger than 64 MiB",
            id="too large",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc",
            400,
            "ended early",
            id="cut off",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            400,
            "length of a chunk",
            id="no chunk",
        ),
        *(
            pytest.param(
                b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%b\r\nabc" % size,
                400,
                "length of a chunk",
                id=f"chunk of {size.decode()}",
            )
            for size in (b"-1", b"+1", b"0x3", b"1_0", b"")
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4000001\r\n",
            413,
            "larger than 64 MiB",
            id="a chunk too large",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
            400,
            "ended early",
            id="a chunk cut off",
        ),
        pytest.param(b"nonsense\r\n\r\n", 400, "Bad request", id="no HTTP"),
    ],
)
def test_requests_that_are_none(serve: Serve, request_bytes: bytes, status: int, text: str) -> None:
    answer = raw(serve(listen=LOOPBACK), request_bytes).decode()
    assert f" {status} " in answer.splitlines()[0]
    assert text in answer


def test_one_connection_too_many_is_turned_away_and_the_end_is_not_held_up(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "MAX_CONNECTIONS", 1)
    monkeypatch.setattr(server_module, "PROBE_CONNECTIONS", 0)
    made = serve(listen=LOOPBACK)
    with closing(connect(made)) as first, closing(connect(made)) as second:
        first.request("GET", "/")
        first.getresponse().read()
        with pytest.raises((http.client.HTTPException, OSError)):
            _ask(second)
        made.close()


def test_where_only_places_for_probes_are_left_others_hear_so(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "MAX_CONNECTIONS", 0)
    made = serve(listen=LOOPBACK)
    with closing(connect(made)) as connection:
        connection.request("GET", "/readyz")
        assert connection.getresponse().status == 200
    with closing(connect(made)) as connection:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("Retry-After")) == (503, "1")
        assert b"only probes are answered" in answer.read()


def test_who_sends_no_headers_is_cut_off_however_they_trickle_in(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "HEADER_SECONDS", 0.05)
    made = serve(listen=LOOPBACK)
    assert made.address is not None
    with socket.create_connection(made.address, timeout=10) as sock:
        with contextlib.suppress(OSError):
            sock.sendall(b"GET / HTTP/1.1\r\n")
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(1_024) == b""


def test_who_may_not_ask_is_told_so_before_the_body_is_read(serve: Serve) -> None:
    made = serve(lambda request: problem(401, "Send a token."), listen=LOOPBACK)
    assert made.address is not None
    with socket.create_connection(made.address, timeout=10) as sock:
        sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nbegin")
        answer = b"".join(iter(lambda: sock.recv(65_536), b"")).decode()
    assert " 401 " in answer.splitlines()[0]
    assert "Connection: close" in answer


def test_stale_sockets_go_and_live_ones_stay(serve: Serve, tmp_path: Path) -> None:
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    dead.bind(str(tmp_path / "worker-0.sock"))
    dead.close()
    serve()
    client.remove_stale(tmp_path)
    assert [path.name for path in tmp_path.glob("*.sock")] == ["worker-1.sock"]


def test_closing_takes_the_socket_away(serve: Serve, tmp_path: Path) -> None:
    made = serve()
    made.close()
    made.close()
    assert list(tmp_path.iterdir()) == []


# -- TLS -------------------------------------------------------------------------------------------


def https(made: WorkerServer, context: ssl.SSLContext) -> http.client.HTTPSConnection:
    assert made.address is not None
    return http.client.HTTPSConnection(*made.address, timeout=10, context=context)


def _ask(connection: http.client.HTTPConnection) -> bytes:
    connection.request("GET", "/")
    return connection.getresponse().read()


def test_a_client_certificate_of_the_authority_is_trusted(serve: Serve, tmp_path: Path) -> None:
    authority, stranger = Authority(tmp_path / "ca"), Authority(tmp_path / "other")
    own, friend, foe = (
        authority.issue("127.0.0.1"),
        authority.issue("kube-scheduler"),
        stranger.issue("kube-scheduler"),
    )
    files = TLSFiles(str(own.certificate), str(own.key), str(authority.certificate))
    made = serve(listen=LOOPBACK, tls=files)
    plain = ssl.create_default_context(cafile=str(authority.certificate))
    with closing(https(made, plain)) as connection:
        connection.request("GET", "/")
        assert json.loads(connection.getresponse().read())["trusted"] is False
    shown = ssl.create_default_context(cafile=str(authority.certificate))
    shown.load_cert_chain(str(friend.certificate), str(friend.key))
    with closing(https(made, shown)) as connection:
        connection.request("GET", "/")
        assert json.loads(connection.getresponse().read())["trusted"] is True
    wrong = ssl.create_default_context(cafile=str(authority.certificate))
    wrong.load_cert_chain(str(foe.certificate), str(foe.key))
    with closing(https(made, wrong)) as connection, pytest.raises(OSError):
        _ask(connection)


def test_a_certificate_that_cannot_be_read_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        WorkerServer(echo, tmp_path / "w.sock", LOOPBACK, TLSFiles("/nowhere", "/nowhere"))
    assert not (tmp_path / "w.sock").exists()


# -- routes ----------------------------------------------------------------------------------------


def ask(path: str, *, trusted: bool = True, method: str = "GET") -> Answer:
    probes = Probes(live={"ping": lambda: None}, ready={})
    return WorkerRoutes(probes)(Request(method, path, {}, {}, trusted=trusted))


@pytest.mark.parametrize(
    ("path", "trusted", "method", "status"),
    [
        pytest.param("/livez", False, "GET", 200, id="probes need no token"),
        pytest.param("/metrics", True, "GET", 200, id="metrics"),
        pytest.param("/metrics", False, "GET", 401, id="metrics need one"),
        pytest.param("/samples", False, "GET", 401, id="samples too"),
        pytest.param("/configz", False, "GET", 401, id="configurations too"),
        pytest.param("/nothing", True, "GET", 404, id="unknown"),
        pytest.param("/metrics/runs/99", True, "GET", 404, id="no such run"),
        pytest.param("/metrics", True, "POST", 405, id="another method"),
    ],
)
def test_paths(path: str, trusted: bool, method: str, status: int) -> None:
    assert ask(path, trusted=trusted, method=method).status == status
