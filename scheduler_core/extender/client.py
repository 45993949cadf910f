"""Calls over HTTP, bounded in time and size whatever the other side does."""

from __future__ import annotations

import os
import re
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit

import urllib3
from urllib3 import exceptions as http

from scheduler_core.config.durations import format_duration
from scheduler_core.config.types import Extender
from scheduler_core.extender import wire
from scheduler_core.extender.deadline import DeadlinePool, TLSDeadlinePool
from scheduler_core.extender.errors import ExtenderError
from scheduler_core.extender.tls import is_insecure, tls_context

__all__ = ["MAX_BODY", "Call", "ExtenderClient", "shown_url"]

#: Largest answer, in bytes. 5,000 nodes of a real cluster are some 50 MB.
MAX_BODY: Final = 64 * 2**20
MAX_REDIRECTS: Final = 10
DEFAULT_TIMEOUT: Final = 5.0
#: Longer ones are cut to this, in seconds: it is waited for with a scheduler standing still.
LONGEST_TIMEOUT: Final = 3_600.0
#: Connections that are kept open between calls.
KEPT_CONNECTIONS: Final = 8

_CHUNK: Final = 2**16
_USER: Final = re.compile(r"//[^/]*@")
_OK: Final = 200
_AS_GET: Final = frozenset({301, 302, 303})
_AS_IS: Final = frozenset({307, 308})


def shown_url(url: str) -> str:
    """The URL without the user and password that it may hold."""
    return _USER.sub("//", url, count=1)


@dataclass(frozen=True, slots=True)
class Call:
    """A call under way."""

    future: Future[object]
    deadline: float
    too_late: str

    def result(self) -> object:
        """The parsed answer; waits until the deadline at most.

        Raises:
            ExtenderError: there is none, or it is not one.
        """
        try:
            return self.future.result(max(0.0, self.deadline - time.monotonic()))
        except FutureTimeout:
            self.future.cancel()
            raise ExtenderError(self.too_late) from None


class ExtenderClient:
    """POSTs JSON to one extender (kube-scheduler 1.36).

    Each call runs on ``threads``: not even looking up a name in the DNS can keep the caller longer
    than the timeout. The thread itself is free again soon after: connecting, sending and reading
    have deadlines of their own.

    Raises:
        TLSConfigError: certificates or keys cannot be used.
    """

    def __init__(self, config: Extender, threads: Executor) -> None:
        timeout = config.http_timeout if config.http_timeout > 0 else DEFAULT_TIMEOUT
        self._timeout = min(timeout, LONGEST_TIMEOUT)
        self._threads = threads
        prefix = config.url_prefix
        self._prefix = shown_url(prefix).rstrip("/")
        self._headers = {"Content-Type": "application/json", **_credentials(prefix)}
        server_name = config.tls.server_name if config.tls else ""
        self._pools = urllib3.PoolManager(
            maxsize=KEPT_CONNECTIONS,
            ssl_context=tls_context(config),
            server_hostname=server_name or None,
            assert_hostname=False if is_insecure(config) else None,
        )
        self._pools.pool_classes_by_scheme = {"http": DeadlinePool, "https": TLSDeadlinePool}

    def start(self, verb: str, body: bytes) -> Call:
        """Begin a call; its time runs from now."""
        url = f"{self._prefix}/{verb}"
        deadline = time.monotonic() + self._timeout
        shown = format_duration(round(self._timeout * 10**9))
        too_late = f'Post "{url}": context deadline exceeded (no full answer within {shown})'
        future = self._threads.submit(self._exchange, verb, url, body, deadline, too_late)
        return Call(future, deadline, too_late)

    def call(self, verb: str, body: bytes) -> object:
        """The parsed answer.

        Raises:
            ExtenderError: there is none, or it is not one.
        """
        return self.start(verb, body).result()

    def close(self) -> None:
        """Close the connections that nobody uses."""
        self._pools.clear()

    # -- on a thread of its own ----------------------------------------------------------------

    def _exchange(self, verb: str, url: str, body: bytes, deadline: float, too_late: str) -> object:
        try:
            return wire.parse(self._post(verb, url, body, deadline))
        except ExtenderError as exc:
            raise ExtenderError(f'Post "{url}": {exc}') from exc
        except _Refused as exc:
            raise ExtenderError(str(exc)) from None
        except http.NewConnectionError as exc:  # to urllib3 it is a timeout
            raise ExtenderError(f'Post "{url}": {_why(exc)}') from exc
        except (http.TimeoutError, TimeoutError) as exc:
            raise ExtenderError(too_late) from exc
        except Exception as exc:
            raise ExtenderError(f'Post "{url}": {_why(exc)}') from exc

    def _post(self, verb: str, url: str, body: bytes, deadline: float) -> bytes:
        """The body of the answer; redirects are followed as Go's client follows them."""
        method, payload, headers, at = "POST", body, self._headers, url
        for _ in range(MAX_REDIRECTS):
            response = self._send(method, at, payload, headers, deadline)
            try:
                target = _redirected(response, at)
                if target is None:
                    if response.status != _OK:
                        text = f"failed {verb} with extender at URL {url}, code {response.status}"
                        raise _Refused(text)
                    answer = _read(response)
                    response.release_conn()  # read to its end: the next call may have it
                    return answer
                if response.status in _AS_GET:
                    method, payload = "GET", b""
            finally:
                response.close()  # whose connection was not given back loses it
            if urlsplit(target).netloc != urlsplit(at).netloc:
                headers = {"Content-Type": "application/json"}  # no password for others
            at = target
        raise ExtenderError(f"stopped after {MAX_REDIRECTS} redirects")

    def _send(
        self, method: str, url: str, body: bytes, headers: dict[str, str], deadline: float
    ) -> urllib3.BaseHTTPResponse:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if urlsplit(url).scheme not in ("http", "https"):
            raise ExtenderError(f'unsupported protocol scheme "{urlsplit(url).scheme}"')
        return self._pools.urlopen(
            method,
            url,
            body=body or None,
            headers=headers,
            timeout=urllib3.Timeout(total=left),
            redirect=False,
            retries=False,
            preload_content=False,
            decode_content=False,
        )


class _Refused(Exception):
    """The answer's status is not 200."""


def _credentials(url: str) -> dict[str, str]:
    """User and password of a URL, as a header."""
    user = _USER.search(url)
    if user is None:
        return {}
    name, _, password = user[0][2:-1].partition(":")
    pair = f"{unquote(name)}:{unquote(password)}"
    return dict(urllib3.make_headers(basic_auth=pair))


def _redirected(response: urllib3.BaseHTTPResponse, url: str) -> str | None:
    """Where a redirect leads, or None where it is none."""
    if response.status not in _AS_GET | _AS_IS:
        return None
    location = response.headers.get("Location")
    return urljoin(url, location) if location else None


def _read(response: urllib3.BaseHTTPResponse) -> bytes:
    chunks, size = [], 0
    while chunk := response.read(_CHUNK):
        size += len(chunk)
        if size > MAX_BODY:
            raise ExtenderError(f"the answer is larger than {MAX_BODY // 2**20} MiB")
        chunks.append(chunk)
    return b"".join(chunks)


def _why(exc: BaseException) -> str:
    """What happened, for a person; without the addresses of objects that are in urllib3's texts."""
    for cause in _causes(exc):
        if isinstance(cause, http.NameResolutionError):
            return "no such host"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"tls: failed to verify certificate: {cause.verify_message}"
        if isinstance(cause, ssl.SSLError):
            return f"tls: {(cause.reason or str(cause)).replace('_', ' ').lower()}"
        if isinstance(cause, ConnectionError | OSError) and cause.errno:
            return os.strerror(cause.errno).lower()
    if isinstance(exc, http.ProtocolError):
        return "the connection was closed before the answer was complete"
    return str(exc) or type(exc).__name__


def _causes(exc: BaseException) -> Iterator[BaseException]:
    """The exception and what led to it."""
    current: BaseException | None = exc
    for _ in range(10):
        if current is None:
            return
        yield current
        nested = current.args[0] if current.args else None
        current = (
            current.__cause__
            or current.__context__
            or (nested if isinstance(nested, BaseException) else None)
        )
