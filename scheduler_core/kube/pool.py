"""`Transport` over the official client's connection pool (urllib3)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ProxyError,
    ReadTimeoutError,
    SSLError,
)

from .transport import JSON, Answer, NoAnswer, Query

__all__ = ["PoolTransport"]

#: seconds until a connection has to be there
_CONNECT: Final = 10.0
_CHUNK: Final = 1 << 16
#: a watch event or a line that is longer is not one
_LONGEST_LINE: Final = 1 << 26
_NOT_SENT: Final = (ConnectTimeoutError, NewConnectionError, NameResolutionError, ProxyError)
_AGENT: Final = "kubesched/0.1"


class PoolTransport:
    """Requests over pooled connections, none of them repeated or redirected."""

    def __init__(
        self,
        manager: urllib3.PoolManager,
        host: str,
        auth: Callable[[], dict[str, str]],
        encode: Callable[[Query], str],
    ) -> None:
        """``auth``: headers of who we are; asked for each request, since tokens are renewed."""
        self._manager = manager
        self._host = host.rstrip("/")
        self._auth = auth
        self._encode = encode

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: bytes | None = None,
        content_type: str = JSON,
        timeout: float,
    ) -> Answer:
        limit = urllib3.Timeout(connect=min(_CONNECT, timeout), read=timeout)
        response = self._open(method, path, query, body, content_type, limit, preload=True)
        return Answer(response.status, response.data, _retry_after(response))

    def stream(self, path: str, query: Query, *, silence: float) -> _PoolStream | Answer:
        limit = urllib3.Timeout(connect=_CONNECT, read=silence)
        response = self._open("GET", path, query, None, JSON, limit, preload=False)
        if response.status == 200:
            return _PoolStream(response)
        try:
            return Answer(response.status, response.read(), _retry_after(response))
        except (HTTPError, OSError) as fault:
            raise _no_answer(fault) from fault
        finally:
            response.close()

    def close(self) -> None:
        self._manager.clear()

    def _open(
        self,
        method: str,
        path: str,
        query: Query,
        body: bytes | None,
        content_type: str,
        limit: urllib3.Timeout,
        *,
        preload: bool,
    ) -> Any:
        url = f"{self._host}{path}"
        if query:
            url = f"{url}?{self._encode(query)}"
        headers = {"accept": JSON, "user-agent": _AGENT, **self._auth()}
        if body is not None:
            headers["content-type"] = content_type
        try:
            return self._manager.urlopen(
                method,
                url,
                body=body,
                headers=headers,
                timeout=limit,
                retries=False,
                redirect=False,
                preload_content=preload,
            )
        except (HTTPError, OSError) as fault:
            raise _no_answer(fault) from fault


class _PoolStream:
    def __init__(self, response: Any) -> None:
        self._response = response
        self._closed = threading.Event()

    def lines(self) -> Iterator[bytes]:
        rest = b""
        try:
            while chunk := self._response.read1(_CHUNK):
                *lines, rest = (rest + chunk).split(b"\n") if rest else chunk.split(b"\n")
                for line in lines:
                    if line:
                        yield line
                if len(rest) > _LONGEST_LINE:
                    raise NoAnswer("the server sent an endless line", sent=True)
        except (HTTPError, OSError, ValueError, AttributeError) as fault:
            # Closed under the reader it fails in one way or another.
            if not self._closed.is_set():
                raise _no_answer(fault) from fault
        finally:
            self._response.close()

    def close(self) -> None:
        if self._closed.is_set():
            return
        self._closed.set()
        try:
            self._response.shutdown()
        except (OSError, ValueError, RuntimeError):
            return  # it had ended


def _retry_after(response: Any) -> float | None:
    value = response.headers.get("retry-after")
    try:
        return max(0.0, float(value)) if value is not None else None
    except ValueError:
        return None  # a date: nobody's API server sends one


def _no_answer(fault: Exception) -> NoAnswer:
    text = str(fault).partition(") ")[2] or str(fault)
    if isinstance(fault, ReadTimeoutError):
        return NoAnswer("the server did not answer in time", sent=True, timed_out=True)
    # Also a refused connection is one of these.
    if isinstance(fault, ConnectTimeoutError) and not isinstance(fault, NewConnectionError):
        return NoAnswer("no connection in time", sent=False, timed_out=True)
    if isinstance(fault, ProxyError):
        return NoAnswer(
            f"the proxy cannot be used: {_plain(str(fault.original_error))}", sent=False
        )
    sent = not isinstance(fault, _NOT_SENT)
    if isinstance(fault, SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(fault):
        return NoAnswer(f"the server's certificate is not trusted: {_plain(text)}", sent=False)
    return NoAnswer(_plain(text), sent=sent)


def _plain(text: str) -> str:
    """Without the representation of the connection object that urllib3 puts before it."""
    return text.rpartition("Failed to establish a new connection: ")[2]
