"""Calls are bounded in time and size, whatever the other side does."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.config.types import Extender, ExtenderTLS
from scheduler_core.extender import client as client_module
from scheduler_core.extender.client import ExtenderClient, shown_url
from scheduler_core.extender.errors import ExtenderError
from scheduler_core.extender.tls import TLSConfigError
from tests.core.extender.server import (
    Certificates,
    FakeExtender,
    Takeover,
    drip,
    endless,
    hang_up,
    late,
    redirect,
    status,
)

Start = Callable[..., FakeExtender]

#: Time that a call has, and what it may take on a machine that is busy with other things.
SHORT, SOON = 0.15, 5.0


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    pool = ThreadPoolExecutor(8)
    yield pool
    pool.shutdown(wait=True)


@pytest.fixture
def call(threads: ThreadPoolExecutor) -> Callable[..., object]:
    def make(url: str, body: bytes = b"{}", verb: str = "filter", **config: Any) -> object:
        config.setdefault("http_timeout", 5.0)
        client = ExtenderClient(Extender(url, **config), threads)
        try:
            return client.call(verb, body)
        finally:
            client.close()

    return make


# -- good ------------------------------------------------------------------------------------------


def test_posts_json_to_the_prefix_and_the_verb(
    extender: Start, call: Callable[..., object]
) -> None:
    fake = extender({"filter": {"Error": ""}})
    assert call(f"{fake.url}/scheduler/", b'{"Pod":null}') == {"Error": ""}
    (request,) = fake.requests
    assert (request.method, request.path) == ("POST", "/scheduler/filter")
    assert request.headers["Content-Type"] == "application/json"
    assert request.body == {"Pod": None}


@pytest.mark.parametrize("slashes", ["", "/", "///"])
def test_trailing_slashes_of_the_prefix_do_not_count(
    extender: Start, call: Callable[..., object], slashes: str
) -> None:
    fake = extender({"filter": {}})
    call(f"{fake.url}{slashes}")
    assert fake.requests[0].path == "/filter"


def test_a_connection_is_used_again(extender: Start, threads: ThreadPoolExecutor) -> None:
    ports: set[int] = set()

    def note(handler: Any) -> None:
        ports.add(handler.client_address[1])
        handler.send_response(200)
        handler.send_header("Content-Length", "2")
        handler.end_headers()
        handler.wfile.write(b"{}")

    fake = extender({"filter": Takeover(note)})
    client = ExtenderClient(Extender(fake.url), threads)
    for _ in range(3):
        assert client.call("filter", b"{}") == {}
    client.close()
    assert len(ports) == 1


def test_a_connection_that_the_server_closed_meanwhile_is_opened_again(
    extender: Start, threads: ThreadPoolExecutor
) -> None:
    def once(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "2")
        handler.end_headers()
        handler.wfile.write(b"{}")
        handler.close_connection = True  # without having said so

    fake = extender({"filter": Takeover(once)})
    client = ExtenderClient(Extender(fake.url), threads)
    for _ in range(2):
        assert client.call("filter", b"{}") == {}
        time.sleep(0.02)  # the other side's FIN is on its way
    client.close()


def test_what_follows_the_first_value_is_ignored(
    extender: Start, call: Callable[..., object]
) -> None:
    fake = extender({"filter": b' \n{"Error":"x"} and more'})
    assert call(fake.url) == {"Error": "x"}


def test_a_large_body_goes_out_and_a_large_answer_comes_in(
    extender: Start, call: Callable[..., object]
) -> None:
    text = "x" * 3_000_000
    fake = extender({"filter": {"Error": text}})
    body = f'{{"a":"{text}"}}'.encode()
    assert call(fake.url, body) == {"Error": text}
    assert fake.requests[0].body == {"a": text}


def test_user_and_password_of_the_url_are_sent_and_never_shown(
    extender: Start, call: Callable[..., object]
) -> None:
    fake = extender({"filter": status(500)})
    with pytest.raises(ExtenderError) as failure:
        call(fake.url.replace("://", "://me:secret@"))
    assert fake.requests[0].headers["Authorization"] == "Basic " + (
        base64.b64encode(b"me:secret").decode()
    )
    assert "secret" not in str(failure.value)
    assert shown_url("https://me:secret@host:1/p?q=1") == "https://host:1/p?q=1"


# -- redirects -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "method", "body"),
    [
        pytest.param(code, method, body, id=f"{code} becomes {method}")
        for code, method, body in (
            (301, "GET", None),
            (302, "GET", None),
            (303, "GET", None),
            (307, "POST", {"a": 1}),
            (308, "POST", {"a": 1}),
        )
    ],
)
def test_redirects_are_followed_as_gos_client_does(
    extender: Start, call: Callable[..., object], code: int, method: str, body: Any
) -> None:
    fake = extender({"filter": redirect(code, "/elsewhere/there"), "there": {"Error": "found"}})
    assert call(fake.url, b'{"a":1}') == {"Error": "found"}
    assert (fake.requests[1].method, fake.requests[1].body) == (method, body)


def test_a_circle_of_redirects_ends(extender: Start, call: Callable[..., object]) -> None:
    fake = extender({"filter": redirect(307, "/filter")})
    with pytest.raises(ExtenderError, match="stopped after 10 redirects"):
        call(fake.url)
    assert len(fake.requests) == 10


def test_a_password_does_not_follow_to_another_host(
    extender: Start, call: Callable[..., object]
) -> None:
    other = extender({"filter": {}})
    fake = extender({"filter": redirect(307, f"{other.url}/filter")})
    call(fake.url.replace("://", "://me:secret@"))
    assert "Authorization" in fake.requests[0].headers
    assert "Authorization" not in other.requests[0].headers


def test_a_redirect_leads_nowhere_but_to_http(extender: Start, call: Callable[..., object]) -> None:
    fake = extender({"filter": redirect(302, "file:///etc/hostname")})
    with pytest.raises(ExtenderError, match='unsupported protocol scheme "file"'):
        call(fake.url)


# -- dead ------------------------------------------------------------------------------------------


def test_nobody_listens(call: Callable[..., object]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ExtenderError) as failure:
        call(url)
    assert str(failure.value) == f'Post "{url}/filter": connection refused'


@pytest.mark.parametrize(
    ("url", "text"),
    [
        pytest.param("", 'Post "/filter": unsupported protocol scheme ""', id="no url"),
        pytest.param("ftp://h", 'unsupported protocol scheme "ftp"', id="another scheme"),
        pytest.param("http://", 'Post "http:/', id="no host"),
        pytest.param("http://[::1", "", id="not a url"),
    ],
)
def test_urls_that_lead_nowhere(call: Callable[..., object], url: str, text: str) -> None:
    with pytest.raises(ExtenderError) as failure:
        call(url)
    assert text in str(failure.value)


def test_a_host_that_nobody_knows(
    call: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(ExtenderError) as failure:
        call("http://extender.test")
    assert str(failure.value) == 'Post "http://extender.test/filter": no such host'


@pytest.mark.parametrize("code", [201, 204, 400, 404, 500, 503])
def test_any_status_but_200_is_a_failure(
    extender: Start, call: Callable[..., object], code: int
) -> None:
    fake = extender({"filter": status(code)})
    with pytest.raises(ExtenderError) as failure:
        call(fake.url)
    text = f"failed filter with extender at URL {fake.url}/filter, code {code}"
    assert str(failure.value) == text


def test_it_hangs_up(extender: Start, call: Callable[..., object]) -> None:
    fake = extender({"filter": Takeover(hang_up)})
    with pytest.raises(ExtenderError, match="the connection was closed before"):
        call(fake.url)


def test_an_answer_shorter_than_it_said(extender: Start, call: Callable[..., object]) -> None:
    def short(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}")
        handler.close_connection = True

    fake = extender({"filter": Takeover(short)})
    with pytest.raises(ExtenderError, match="the connection was closed before"):
        call(fake.url)


# -- not JSON --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"<html>", id="a page"),
        pytest.param(b'{"Error": ', id="cut off"),
        pytest.param(b"[" * 200_000, id="nested without end"),
        pytest.param(b"[NaN]", id="not a number"),
        pytest.param(b"[" + b"9" * 10_000 + b"]", id="a number of ten thousand digits"),
        pytest.param(b"\xff\xfe\x00", id="bytes"),
        pytest.param(b"\x1f\x8b\x08\x00", id="compressed"),
    ],
)
def test_invalid_json(extender: Start, call: Callable[..., object], body: bytes) -> None:
    fake = extender({"filter": body})
    with pytest.raises(ExtenderError, match="the answer is not valid JSON"):
        call(fake.url)


# -- slow and endless ------------------------------------------------------------------------------


def soon(url: str, call: Callable[..., object], body: bytes = b"{}") -> str:
    """The text of a call that must fail in time."""
    started = time.monotonic()
    with pytest.raises(ExtenderError) as failure:
        call(url, body, http_timeout=SHORT)
    assert time.monotonic() - started < SOON
    return str(failure.value)


def test_no_answer_in_time(extender: Start, call: Callable[..., object]) -> None:
    fake = extender({"filter": late(SOON)})
    assert soon(fake.url, call) == (
        f'Post "{fake.url}/filter": context deadline exceeded (no full answer within 150ms)'
    )


OK_HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        pytest.param(b"", b"H", id="the status line"),
        pytest.param(b"HTTP/1.1 200 OK\r\n", b"X", id="one header"),
        pytest.param(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", id="headers"),
        pytest.param(b"", b"HTTP/1.1 100 Continue\r\n\r\n", id="continue, continue"),
        pytest.param(OK_HEAD, b" ", id="the body"),
        pytest.param(CHUNKED, b"1\r\n \r\n", id="chunks"),
        pytest.param(CHUNKED, b"0", id="a chunk's length"),
    ],
)
def test_a_byte_now_and_then_does_not_keep_it_waiting(
    extender: Start,
    call: Callable[..., object],
    threads: ThreadPoolExecutor,
    head: bytes,
    piece: bytes,
) -> None:
    fake = extender({})
    fake.answers["filter"] = drip(lambda: fake, head, piece, 0.02)
    assert "context deadline exceeded" in soon(fake.url, call)
    # Nor is the thread lost: it is free soon after.
    assert_all_free(threads)


def assert_all_free(threads: ThreadPoolExecutor) -> None:
    barrier = threading.Barrier(8)
    futures = [threads.submit(barrier.wait, 2 * SOON) for _ in range(8)]
    assert sorted(f.result(2 * SOON) for f in futures) == list(range(8))


def test_a_request_that_nobody_reads(
    call: Callable[..., object], threads: ThreadPoolExecutor
) -> None:
    """The connection is accepted by the system, and that is all."""
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        assert "context deadline exceeded" in soon(url, call, b"[" + b" " * 8_000_000 + b"]")
        assert_all_free(threads)


def test_a_name_server_that_does_not_answer(
    call: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()

    def stuck(*_: Any, **__: Any) -> Any:
        released.wait(SOON * 2)
        raise socket.gaierror(socket.EAI_AGAIN, "try again")

    monkeypatch.setattr(socket, "getaddrinfo", stuck)
    try:
        assert "context deadline exceeded" in soon("http://extender.test", call)
    finally:
        released.set()


def test_an_endless_body_is_cut_off(
    extender: Start, call: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "MAX_BODY", 2**20)
    fake = extender({"filter": endless(b" " * 65_536)})
    with pytest.raises(ExtenderError, match="the answer is larger than 1 MiB"):
        call(fake.url)


def test_an_endless_body_ends_with_the_time(extender: Start, call: Callable[..., object]) -> None:
    fake = extender({"filter": endless(b" ")})
    assert "context deadline exceeded" in soon(fake.url, call)


def test_redirects_share_one_deadline(extender: Start, call: Callable[..., object]) -> None:
    def slowly(_: Any) -> Takeover:
        time.sleep(0.05)
        return redirect(307, "/filter")

    fake = extender({"filter": slowly})
    assert "context deadline exceeded" in soon(fake.url, call)


# -- TLS -------------------------------------------------------------------------------------------


@pytest.fixture
def tls_server(
    extender: Start, certificates: Certificates, tmp_path: Path
) -> Callable[..., FakeExtender]:
    def start(*, wants_client: bool = False) -> FakeExtender:
        cert, key = tmp_path / "server.pem", tmp_path / "server.key"
        cert.write_bytes(certificates.server)
        key.write_bytes(certificates.server_key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        if wants_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=certificates.ca.decode())
        return extender({"filter": {"Error": ""}}, context=context)

    return start


def b64(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


def test_a_ca_in_the_configuration(
    tls_server: Start, call: Callable[..., object], certificates: Certificates
) -> None:
    assert call(tls_server().url, tls=ExtenderTLS(ca_data=b64(certificates.ca))) == {"Error": ""}


def test_a_ca_in_a_file(
    tls_server: Start, call: Callable[..., object], certificates: Certificates, tmp_path: Path
) -> None:
    file = tmp_path / "ca.pem"
    file.write_bytes(certificates.ca)
    assert call(tls_server().url, tls=ExtenderTLS(ca_file=str(file))) == {"Error": ""}


def test_data_counts_before_a_file(
    tls_server: Start, call: Callable[..., object], certificates: Certificates, tmp_path: Path
) -> None:
    file = tmp_path / "ca.pem"
    file.write_bytes(certificates.other_ca)
    tls = ExtenderTLS(ca_data=b64(certificates.ca), ca_file=str(file))
    assert call(tls_server().url, tls=tls) == {"Error": ""}


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"tls": None}, id="the system's CAs do not know it"),
        pytest.param({"tls": "other"}, id="another CA"),
    ],
)
def test_an_unknown_certificate_is_refused(
    tls_server: Start, call: Callable[..., object], certificates: Certificates, config: Any
) -> None:
    tls = ExtenderTLS(ca_data=b64(certificates.other_ca)) if config["tls"] else None
    with pytest.raises(ExtenderError, match="tls: failed to verify certificate: "):
        call(tls_server().url, tls=tls)


def test_a_name_that_the_certificate_lacks_is_refused(
    tls_server: Start, call: Callable[..., object], certificates: Certificates
) -> None:
    tls = ExtenderTLS(ca_data=b64(certificates.ca), server_name="somebody.else")
    with pytest.raises(ExtenderError, match="tls: failed to verify certificate: "):
        call(tls_server().url, tls=tls)


def test_server_name_is_what_is_asked_for(
    tls_server: Start, call: Callable[..., object], certificates: Certificates
) -> None:
    url = tls_server().url.replace("127.0.0.1", "localhost")
    tls = ExtenderTLS(ca_data=b64(certificates.ca), server_name="extender.test")
    assert call(url, tls=tls) == {"Error": ""}


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"tls": ExtenderTLS(insecure=True)}, id="insecure"),
        pytest.param({"enable_https": True}, id="enableHTTPS without a CA"),
    ],
)
def test_certificates_are_not_checked(
    tls_server: Start, call: Callable[..., object], config: Any
) -> None:
    assert call(tls_server().url, **config) == {"Error": ""}


def test_enable_https_with_a_ca_checks(
    tls_server: Start, call: Callable[..., object], certificates: Certificates
) -> None:
    tls = ExtenderTLS(ca_data=b64(certificates.other_ca))
    with pytest.raises(ExtenderError, match="failed to verify"):
        call(tls_server().url, enable_https=True, tls=tls)


@pytest.mark.parametrize("in_files", [True, False], ids=["files", "data"])
def test_a_client_certificate(
    tls_server: Start,
    call: Callable[..., object],
    certificates: Certificates,
    tmp_path: Path,
    in_files: bool,
) -> None:
    server = tls_server(wants_client=True)
    cert, key = tmp_path / "client.pem", tmp_path / "client.key"
    cert.write_bytes(certificates.client)
    key.write_bytes(certificates.client_key)
    own = (
        {"cert_file": str(cert), "key_file": str(key)}
        if in_files
        else {"cert_data": b64(certificates.client), "key_data": b64(certificates.client_key)}
    )
    ca = b64(certificates.ca)
    assert call(server.url, tls=ExtenderTLS(ca_data=ca, **own)) == {"Error": ""}
    with pytest.raises(ExtenderError):
        call(server.url, tls=ExtenderTLS(ca_data=ca))


def test_a_tls_server_that_says_nothing(call: Callable[..., object]) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        assert "context deadline exceeded" in soon(f"https://127.0.0.1:{port}", call)


def test_http_is_not_tls(extender: Start, call: Callable[..., object]) -> None:
    fake = extender({"filter": {}})
    with pytest.raises(ExtenderError, match="tls: "):
        call(fake.url.replace("http:", "https:"), enable_https=True)


@pytest.mark.parametrize(
    ("tls", "text"),
    [
        pytest.param(
            {"insecure": True, "ca_data": "ca"},
            "specifying a root certificates file with the insecure flag is not allowed",
            id="insecure and a CA",
        ),
        pytest.param(
            {"ca_data": "noise"}, "unable to load root certificates: ", id="a CA that is none"
        ),
        pytest.param(
            {"ca_file": "/no/such/file"}, "open /no/such/file: no such file", id="no such file"
        ),
        pytest.param(
            {"cert_data": "ca", "key_data": "noise"},
            "the client certificate and its key cannot be used: ",
            id="a key that is none",
        ),
        pytest.param(
            {"cert_data": "ca", "key_data": "server_key"},
            "the client certificate and its key cannot be used: ",
            id="another's key",
        ),
    ],
)
def test_certificates_that_cannot_be_used(
    threads: ThreadPoolExecutor, certificates: Certificates, tls: dict[str, Any], text: str
) -> None:
    given = {
        name: b64(getattr(certificates, value, b"noise")) if name.endswith("_data") else value
        for name, value in tls.items()
    }
    with pytest.raises(TLSConfigError) as failure:
        ExtenderClient(Extender("https://h", tls=ExtenderTLS(**given)), threads)
    assert text in str(failure.value)
