"""The transport over real sockets: why there is no answer, and whether the request went out."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from scheduler_core.kube.access import Kubeconfig, Token
from scheduler_core.kube.connect import connect
from scheduler_core.kube.transport import Answer, NoAnswer, Transport
from tests.kube.certificates import make

Talk = Callable[[socket.socket], None]


@contextmanager
def server(talk: Talk) -> Iterator[str]:
    """Accepts connections and talks on each."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(20)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                talk(connection)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(5)


def transport(url: str) -> Transport:
    return connect(Token(url, "t")).open(2)


def answers(text: bytes) -> Talk:
    def talk(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(text)

    return talk


def says_nothing(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


def hangs_up(connection: socket.socket) -> None:
    connection.recv(65536)


@pytest.mark.parametrize(
    ("talk", "sent", "timed_out"),
    [
        pytest.param(says_nothing, True, True, id="silence"),
        pytest.param(hangs_up, True, False, id="hangs up"),
        pytest.param(
            answers(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"), True, False, id="half"
        ),
        pytest.param(answers(b"SSH-2.0-OpenSSH\r\n"), True, False, id="another protocol"),
    ],
)
def test_no_answer(talk: Talk, sent: bool, timed_out: bool) -> None:
    with server(talk) as url, pytest.raises(NoAnswer) as caught:
        transport(url).request("POST", "/x", body=b"{}", timeout=0.5)
    assert (caught.value.sent, caught.value.timed_out) == (sent, timed_out)


def test_nobody_is_there() -> None:
    with pytest.raises(NoAnswer) as caught:
        transport("http://127.0.0.1:1").request("GET", "/x", timeout=1)
    assert str(caught.value) == "[Errno 111] Connection refused"
    assert (caught.value.sent, caught.value.timed_out) == (False, False)


def test_an_answer_with_retry_after() -> None:
    text = b"HTTP/1.1 429 Too Many\r\nretry-after: 7\r\ncontent-length: 2\r\n\r\n{}"
    with server(answers(text)) as url:
        found = transport(url).request("GET", "/x", timeout=5)
    assert found == Answer(429, b"{}", 7.0)


def test_no_redirect_is_followed_with_our_token() -> None:
    asked: list[bytes] = []

    def talk(connection: socket.socket) -> None:
        asked.append(connection.recv(65536))
        connection.sendall(b"HTTP/1.1 302 Found\r\nlocation: /o\r\ncontent-length: 0\r\n\r\n")

    with server(talk) as url:
        assert transport(url).request("GET", "/x", timeout=5).status == 302
    assert len(asked) == 1


def chunked(*chunks: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)


def test_lines_are_put_together_across_chunks() -> None:
    with server(answers(chunked(b'{"a":', b"1}\n{", b'"b":2}\n\n', b""))) as url:
        stream = transport(url).stream("/x", (), silence=5)
        assert not isinstance(stream, Answer)
        assert list(stream.lines()) == [b'{"a":1}', b'{"b":2}']


def test_a_stream_that_is_cut_says_so() -> None:
    with server(answers(chunked(b'{"a":1}\n'))) as url:
        stream = transport(url).stream("/x", (), silence=5)
        assert not isinstance(stream, Answer)
        lines = stream.lines()
        assert next(lines) == b'{"a":1}'
        with pytest.raises(NoAnswer):
            next(lines)


def test_a_silent_stream_is_given_up() -> None:
    def talk(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(chunked(b'{"a":1}\n'))
        connection.recv(65536)

    with server(talk) as url:
        stream = transport(url).stream("/x", (), silence=0.3)
        assert not isinstance(stream, Answer)
        with pytest.raises(NoAnswer, match="in time"):
            list(stream.lines())


def test_a_stream_is_closed_while_its_reader_waits() -> None:
    def talk(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(chunked(b'{"a":1}\n'))
        connection.recv(65536)

    with server(talk) as url:
        stream = transport(url).stream("/x", (), silence=60)
        assert not isinstance(stream, Answer)
        read: list[bytes] = []
        reader = threading.Thread(target=lambda: read.extend(stream.lines()))  # type: ignore[union-attr]
        reader.start()
        while not read:
            time.sleep(0.01)
        stream.close()
        stream.close()
        reader.join(5)
        assert not reader.is_alive()
    assert read == [b'{"a":1}']


def test_a_refused_watch_is_an_answer() -> None:
    with server(answers(b"HTTP/1.1 410 Gone\r\ncontent-length: 2\r\n\r\n{}")) as url:
        assert transport(url).stream("/x", (), silence=5) == Answer(410, b"{}", None)


def test_a_certificate_that_nobody_vouches_for(tmp_path: Path) -> None:
    pair = make()
    (tmp_path / "both.pem").write_bytes(pair["certificate"] + pair["key"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "both.pem")

    def talk(connection: socket.socket) -> None:
        try:
            with context.wrap_socket(connection, server_side=True) as secured:
                secured.recv(65536)
                secured.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        except OSError:
            return

    with server(talk) as url:
        address = url.replace("http:", "https:")
        with pytest.raises(NoAnswer, match="certificate is not trusted") as caught:
            connect(Token(address, "t")).open(1).request("GET", "/x", timeout=5)
        assert not caught.value.sent
        trusting = connect(Token(address, "t", ca=pair["certificate"].decode())).open(1)
        assert trusting.request("GET", "/x", timeout=5).status == 200


def test_a_client_certificate_is_shown(tmp_path: Path) -> None:
    pair = make()
    (tmp_path / "both.pem").write_bytes(pair["certificate"] + pair["key"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "both.pem")
    context.load_verify_locations(cadata=pair["certificate"].decode())
    context.verify_mode = ssl.CERT_REQUIRED
    seen: list[object] = []

    def talk(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secured:
            seen.append(secured.getpeercert())
            secured.recv(65536)
            secured.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")

    with server(talk) as url:
        data = {key: base64.b64encode(value).decode() for key, value in pair.items()}
        cluster = {
            "server": url.replace("http:", "https:"),
            "certificate-authority-data": data["certificate"],
        }
        user = {
            "client-certificate-data": data["certificate"],
            "client-key-data": data["key"],
        }
        config = {
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
        }
        found = connect(Kubeconfig(yaml.safe_dump(config))).open(1)
        assert found.request("GET", "/x", timeout=5).status == 200
    assert seen
    assert seen[0]
