"""A watch over HTTP: one JSON document a line, until the client leaves or the time is over."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Final

from dashboard.sandbox_api.encoding import Encoder
from scheduler_core.cluster.api.streams import Stream
from scheduler_core.ports import Json

__all__ = ["send_watch"]

log = logging.getLogger(__name__)

#: between two bookmarks (kube-apiserver: about a minute)
_BOOKMARK_SECONDS: Final = 60.0
#: events that wait for one client before its watch is ended; it goes on where it stood
_MOST_WAITING: Final = 20_000
#: bytes that are handed to the connection at a time
_CHUNK: Final = 256 * 1024


class _Mailbox:
    """Events from any thread, for one task of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._events: deque[Json] = deque()
        self._wake = asyncio.Event()
        self._woken = False
        self.overflowed = False

    def put(self, event: Json) -> None:
        if len(self._events) >= _MOST_WAITING:
            self.overflowed = True
        else:
            self._events.append(event)
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._wake.set)

    async def wait(self, seconds: float) -> bool:
        """Whether something is there; False once the time is over."""
        try:
            await asyncio.wait_for(self._wake.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def take(self, encoder: Encoder) -> bytes:
        """Some of what waits, as it is sent."""
        self._wake.clear()
        self._woken = False
        lines: list[bytes] = []
        size = 0
        while self._events and size < _CHUNK:
            line = encoder.event(self._events.popleft())
            lines.append(line)
            size += len(line)
        if self._events:
            self._woken = True
            self._wake.set()
        return b"".join(lines)


async def send_watch(
    stream: Stream,
    encoder: Encoder,
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ends: Sequence[asyncio.Event],
) -> None:
    """Run a watch to its end, which is that of the first of `ends` at the latest."""
    mailbox = _Mailbox(asyncio.get_running_loop())
    media = b"application/json"
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", media), (b"cache-control", b"no-cache, private")],
        }
    )
    # The header goes out at once: a client waits for it before it trusts the watch.
    await send({"type": "http.response.body", "body": b"", "more_body": True})
    left = asyncio.ensure_future(_until_left(receive))
    closed = [asyncio.ensure_future(event.wait()) for event in ends]
    pump = asyncio.ensure_future(_pump(stream, encoder, mailbox, send))
    stream.start(mailbox.put)
    try:
        await asyncio.wait({left, *closed, pump}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stream.stop()
        tasks: list[asyncio.Future[Any]] = [left, *closed, pump]
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, OSError):
                log.error("a watch of %s broke", stream.served.plural, exc_info=result)
    await send({"type": "http.response.body", "body": b""})


async def _pump(
    stream: Stream,
    encoder: Encoder,
    mailbox: _Mailbox,
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
) -> None:
    loop = asyncio.get_running_loop()
    ends = loop.time() + stream.seconds
    bookmark = loop.time() + _BOOKMARK_SECONDS
    while not mailbox.overflowed:
        now = loop.time()
        if now >= ends:
            return
        if now >= bookmark:
            bookmark = now + _BOOKMARK_SECONDS
            stream.bookmark()
        if await mailbox.wait(min(ends, bookmark) - now):
            body = mailbox.take(encoder)
            if body:
                await send({"type": "http.response.body", "body": body, "more_body": True})


async def _until_left(receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
