"""Open pages without a browser: websockets that acknowledge each frame, and note when it came."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
import websocket

from dashboard import groups

#: Topics of the pages that people have open, one kind after the other.
PAGES: Final[Sequence[tuple[str, tuple[str, ...]]]] = (
    ("overview", (groups.RUN, groups.OVERVIEW, groups.CYCLES)),
    ("heatmap", (groups.RUN, groups.HEATMAP)),
    ("decisions", (groups.RUN, groups.CYCLES)),
    ("queues", (groups.RUN, groups.QUEUES)),
    ("waiting", (groups.RUN, groups.WAITING)),
)
#: Where a heatmap frame has its number (dashboard.heatmap).
_SEQ: Final = struct.Struct("<I")
_SEQ_AT: Final = 8
_CONNECT_SECONDS: Final = 30.0
_CLOSE_SECONDS: Final = 5.0
_CODE: Final = struct.Struct(">H")


@dataclass(slots=True)
class PageLog:
    """What one page saw.

    Attributes:
        frames: time of day of each frame.
        sizes: (time of day, bytes) of each message.
        latencies: (time of day, seconds from the end of a scheduling cycle to its line's arrival)
            for each decision of a ``cycles`` frame, once.
        closes: codes with which the server closed the connection.
    """

    page: str
    topics: tuple[str, ...]
    frames: list[float] = field(default_factory=list)
    latencies: list[tuple[float, float]] = field(default_factory=list)
    sizes: list[tuple[float, int]] = field(default_factory=list)
    last_sequence: int = 0
    greeted: bool = False
    closes: list[int] = field(default_factory=list)


class Readers:
    """Open pages of one run, each read by a thread of its own.

    Args:
        cookies: a Cookie header for each page; its number decides how many there are.
    """

    def __init__(self, host: str, port: int, run: int, cookies: Sequence[str]) -> None:
        self.logs = [PageLog(*PAGES[index % len(PAGES)]) for index in range(len(cookies))]
        address = f"{host}:{port}"
        self._pages = [
            _Page(log, address, run, cookie) for log, cookie in zip(self.logs, cookies, strict=True)
        ]

    def open(self) -> None:
        """Connect all.

        Raises:
            OSError: the server does not take a connection.
            WebSocketException: it refuses the websocket, or is too slow.
        """
        for page in self._pages:
            page.open()

    @property
    def are_live(self) -> bool:
        """Each was greeted, and none is closed."""
        return all(log.greeted and not log.closes for log in self.logs)

    def close(self) -> None:
        for page in self._pages:
            page.close()


class _Page:
    """One websocket and its thread, which alone writes the log."""

    def __init__(self, log: PageLog, address: str, run: int, cookie: str) -> None:
        self._log = log
        self._url = f"ws://{address}/ws/runs/{run}/?topics={','.join(log.topics)}"
        self._origin = f"http://{address}"
        self._cookie = cookie
        self._socket: websocket.WebSocket | None = None
        self._is_leaving = False
        self._thread = threading.Thread(target=self._read, name=f"page {log.page}", daemon=True)

    def open(self) -> None:
        self._socket = websocket.create_connection(
            self._url,
            timeout=_CONNECT_SECONDS,
            cookie=self._cookie,
            origin=self._origin,
            # Else each byte passes through a function of Python: a fifth of a core for 20 pages,
            # which the measured programs need. orjson refuses what is not UTF-8.
            skip_utf8_validation=True,
        )
        self._socket.settimeout(None)
        self._thread.start()

    def close(self) -> None:
        self._is_leaving = True
        if self._socket is None:
            return
        # Wakes the thread, whatever it waits for.
        with suppress(OSError, websocket.WebSocketException):
            self._socket.shutdown()
        self._thread.join(_CLOSE_SECONDS)

    def _read(self) -> None:
        assert self._socket is not None
        try:
            while True:
                opcode, payload = self._socket.recv_data()
                if opcode == websocket.ABNF.OPCODE_CLOSE:
                    self._closed(_CODE.unpack_from(payload)[0] if len(payload) > 1 else 0)
                    return
                self._received(payload, opcode == websocket.ABNF.OPCODE_BINARY)
        except (OSError, websocket.WebSocketException):
            self._closed(0)

    def _closed(self, code: int) -> None:
        if not self._is_leaving:
            self._log.closes.append(code)

    def _received(self, payload: bytes, is_binary: bool) -> None:
        now = time.time()
        self._log.sizes.append((now, len(payload)))
        if is_binary:
            self._log.frames.append(now)
            self._acknowledge(groups.HEATMAP, _SEQ.unpack_from(payload, _SEQ_AT)[0])
            return
        message = orjson.loads(payload)
        if message["type"] == "hello":
            self._log.greeted = True
            return
        self._log.frames.append(now)
        if message["type"] == groups.CYCLES:
            self._note(message["cycles"], now)
        self._acknowledge(message["type"], message["seq"])

    def _acknowledge(self, topic: str, seq: int) -> None:
        assert self._socket is not None
        self._socket.send(orjson.dumps({"ack": seq, "topic": topic}))

    def _note(self, rows: Sequence[dict[str, Any]], now: float) -> None:
        """A line comes again when its pod is bound: the first time is what counts."""
        known = self._log.last_sequence
        for row in rows:
            if row["sequence"] > known:
                decided = row["started_at"] + row["duration_ms"] / 1e3
                self._log.latencies.append((now, now - decided))
                self._log.last_sequence = max(self._log.last_sequence, row["sequence"])
