"""The ASGI application: reads a request, asks the sandbox's ApiServer, writes the answer.

Everything runs on one event loop. A request is answered at once, from memory; where the write has
to be kept first, the answer waits for that, not the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final, Protocol
from urllib.parse import unquote

import orjson

from dashboard.sandbox_api.encoding import Encoder
from dashboard.sandbox_api.watching import send_watch
from scheduler_core.cluster.api.messages import Answer, Request
from scheduler_core.cluster.api.server import ApiServer, refusal
from scheduler_core.cluster.api.streams import Stream
from scheduler_core.ports import ApiError

__all__ = ["ApiApp", "Door", "Entry"]

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

#: kube-apiserver's limit of a request's body
_LARGEST_BODY: Final = 3 * 1024 * 1024
#: may be asked without a token (system:public-info-viewer)
_PUBLIC: Final = ("/livez", "/readyz", "/healthz", "/version")
_BEARER: Final = "bearer "


class Entry(Protocol):
    """One sandbox as the door sees it."""

    @property
    def api(self) -> ApiServer: ...

    @property
    def encoder(self) -> Encoder: ...

    @property
    def closing(self) -> asyncio.Event:
        """Set when the sandbox ends: its watches end with it."""

    def user_of(self, token: str) -> str | None:
        """Who has this token; None for nobody."""


class Door(Protocol):
    """Finds the sandbox that a path is of."""

    def find(self, path: str) -> tuple[Entry, str] | None:
        """The sandbox and the path within it; None where there is none."""


class ApiApp:
    """ASGI 3. Give it a `Door`."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self.closing = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            await self._serve(scope, receive, send)
        except _ClientLeft:
            return

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._door.find(unquote(scope["raw_path"].decode("latin-1")))
        if found is None:
            await _send(send, Answer(404, "404 page not found\n", "text/plain; charset=utf-8"))
            return
        entry, path = found
        headers = {
            key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]
        }
        user = entry.user_of(_token(headers))
        if user is None and not path.startswith(_PUBLIC):
            await _send(send, refusal(ApiError(401, "Unauthorized", "Unauthorized")))
            return
        body = await _body(receive)
        if body is None:
            message = f"Request entity too large: limit is {_LARGEST_BODY}"
            await _send(send, refusal(ApiError(413, "RequestEntityTooLarge", message)))
            return
        query = _query(scope["query_string"])
        host = headers.get("host", "")
        request = Request(scope["method"], path, query, headers, body, user or "anonymous", host)
        answer = entry.api.answer(request)
        if isinstance(answer, Stream):
            ends = (self.closing, entry.closing)
            await send_watch(answer, entry.encoder, receive, send, ends)
            return
        await _send(send, await _certain(answer), scope["method"] == "HEAD")


class _ClientLeft(Exception):
    pass


def _token(headers: Mapping[str, str]) -> str:
    value = headers.get("authorization", "")
    return value[len(_BEARER) :].strip() if value[: len(_BEARER)].lower() == _BEARER else ""


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None where it is too large."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise _ClientLeft
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        return body if len(body) <= _LARGEST_BODY else None
    parts, size = [body], len(body)
    while message.get("more_body"):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _ClientLeft
        part = message.get("body", b"")
        size += len(part)
        if size > _LARGEST_BODY:
            return None
        parts.append(part)
    return b"".join(parts)


def _query(text: bytes) -> dict[str, str]:
    """Parameter -> its first value."""
    found: dict[str, str] = {}
    if not text:
        return found
    for pair in text.decode("latin-1").split("&"):
        key, _, value = pair.partition("=")
        if key:
            found.setdefault(_plain(key), _plain(value))
    return found


def _plain(text: str) -> str:
    return unquote(text.replace("+", " "))


async def _certain(answer: Answer) -> Answer:
    """The answer once it holds."""
    if answer.kept is None or (answer.kept.done() and answer.kept.exception() is None):
        return answer
    try:
        await asyncio.wrap_future(answer.kept)
    except ApiError as error:
        return refusal(error)
    return answer


async def _send(send: Send, answer: Answer, head: bool = False) -> None:
    body = answer.body
    if isinstance(body, str):
        content = body.encode()
    elif isinstance(body, bytes):
        content = body
    else:
        content = orjson.dumps(body)
    headers = [
        (b"content-type", answer.content_type.encode()),
        (b"content-length", str(len(content)).encode()),
        (b"cache-control", b"no-cache, private"),
    ]
    headers.extend((key.encode(), value.encode()) for key, value in answer.headers.items())
    headers.extend((b"warning", _warning(text)) for text in answer.warnings)
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else content})


def _warning(text: str) -> bytes:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'.encode("latin-1", "replace")
