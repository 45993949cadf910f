"""Frames on their way to the channel layer, at most so many a second for each group.

One background thread per process runs one asyncio loop, which keeps one connection: publishing
with ``async_to_sync`` from many threads opens one per call and is seven times slower. What arrives
faster than a group's pace is merged; what cannot be sent is dropped, because a page sees the gap
in the numbers and asks the database.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import redis
from channels.layers import get_channel_layer
from django.conf import settings

from dashboard import frames, groups, merging

logger = logging.getLogger(__name__)

#: A function is called when its frame's turn has come, on the publisher's thread: what is replaced
#: before that is never made.
Payload = frames.Frame | bytes | Callable[[], bytes]


class Publisher:
    """Sends frames to groups; every method may be called from any thread and returns at once.

    ``layer`` is asked for inside the publisher's own loop.
    """

    def __init__(
        self,
        layer: Callable[[], Any] = get_channel_layer,
        frames_per_second: float | None = None,
    ) -> None:
        self._layer = layer
        # One less than a browser gets in all: what comes a little slower than it may be sent does
        # not wait for its turn behind the frames of other topics.
        pace = frames_per_second or max(1.0, settings.KUBESCHED_FRAMES_PER_SECOND - 1.0)
        self._interval = 1.0 / pace
        self._lock = threading.Lock()
        self._pending: dict[tuple[str, str], Payload] = {}
        self._next_at: dict[tuple[str, str], float] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._timers: set[tuple[str, str]] = set()
        self._sending: set[asyncio.Task[None]] = set()
        self._failing = False
        self._closed = False

    def publish(self, run_id: int, topic: str, frame: Payload) -> None:
        """Send a frame of one topic of one run, soon and maybe merged with its neighbours."""
        self._put((groups.run_topic(run_id, topic), topic), frame)

    def close(self, timeout: float = 2.0) -> None:
        """Send what is pending and stop the thread. May be called twice."""
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
        if loop is None or thread is None or not thread.is_alive():
            return
        loop.call_soon_threadsafe(lambda: asyncio.ensure_future(self._stop(timeout)))
        thread.join(timeout + 1.0)

    def _put(self, key: tuple[str, str], frame: Payload) -> None:
        with self._lock:
            if self._closed:
                return
            known = self._pending.get(key)
            self._pending[key] = _merged(key[1], known, frame)
            loop = self._ensure_loop()
        if known is None:
            loop.call_soon_threadsafe(self._schedule, key)

    def _ensure_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._run, args=(self._loop,), name="publisher", daemon=True
            )
            self._thread.start()
        return self._loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.close()

    # --- on the loop's thread ---------------------------------------------------------------

    def _schedule(self, key: tuple[str, str]) -> None:
        if key in self._timers:
            return
        self._timers.add(key)
        loop = asyncio.get_running_loop()
        delay = max(0.0, self._next_at.get(key, 0.0) - loop.time())
        loop.call_later(delay, self._fire, key)

    def _fire(self, key: tuple[str, str]) -> None:
        self._timers.discard(key)
        task = asyncio.ensure_future(self._send(key))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, key: tuple[str, str]) -> None:
        with self._lock:
            frame = self._pending.pop(key, None)
        if frame is None:
            return
        self._next_at[key] = asyncio.get_running_loop().time() + self._interval
        group, topic = key
        try:
            if callable(frame):
                frame = frame()
            layer = self._layer()
            await layer.group_send(group, {"type": "relay.frame", "topic": topic, "frame": frame})
        except Exception as error:
            if not self._failing:
                away = isinstance(error, redis.RedisError | OSError)
                words = "frames cannot be sent; pages catch up later: %s"
                logger.warning(words, error, exc_info=not away)
            self._failing = True
            return
        self._failing = False

    async def _stop(self, timeout: float) -> None:
        with self._lock:
            keys = list(self._pending)
        try:
            async with asyncio.timeout(timeout):
                await asyncio.gather(*self._sending, *(self._send(key) for key in keys))
        except TimeoutError:
            logger.warning("frames left unsent at the end")
        finally:
            # Closing the loop closes the layer's connections (channels_redis sees to that).
            asyncio.get_running_loop().stop()


def _merged(topic: str, old: Payload | None, new: Payload) -> Payload:
    if old is None or callable(old) or callable(new):
        return new
    return merging.merge(topic, old, new)


@cache
def get_publisher() -> Publisher:
    """The publisher of this process."""
    return Publisher()
