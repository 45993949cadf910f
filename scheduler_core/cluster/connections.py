"""Connections to a sandbox's socket: one document a line, one question at a time on each."""

from __future__ import annotations

import logging
import os
import select
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from scheduler_core.ports import ApiError, Json

from .errors import unavailable
from .wire import LONGEST_LINE, decode, encode, error_of, not_running

__all__ = ["Connections", "Line"]

log = logging.getLogger(__name__)

T = TypeVar("T")


class Line:
    """One connection."""

    def __init__(self, path: Path, timeout: float) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(os.fspath(path))
        except OSError as error:
            self._socket.close()
            raise not_running() from error
        self._reader: BinaryIO = self._socket.makefile("rb")

    def send(self, document: Json) -> None:
        self._socket.sendall(encode(document))

    def receive(self) -> Json:
        """Raises:
        OSError: the other side went away, or says nothing for too long (TimeoutError).
        """
        line = self._reader.readline(LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise ConnectionResetError("the sandbox closed the connection")
        return decode(line)

    def silence(self, seconds: float | None) -> None:
        """How long the other side may say nothing from now on; None: for ever."""
        self._socket.settimeout(seconds)

    @property
    def is_idle(self) -> bool:
        """Still open, as far as it can be told; an idle line has nothing to read."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            log.debug("the connection was gone already")
        self._reader.close()
        self._socket.close()


class Connections:
    """Idle connections, and how to ask one question over one of them."""

    def __init__(self, path: Path, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._lock = threading.Lock()
        self._idle: list[Line] = []

    def open(self) -> Line:
        return Line(self._path, self._timeout)

    def call(self, request: Json, read: Callable[[Line, Any], T]) -> T:
        """`read` makes the result of what was answered, and of what comes after it."""
        line = self._take()
        try:
            line.send(request)
            answer = line.receive()
            result = None if "error" in answer else read(line, answer.get("ok"))
        except TimeoutError as error:
            line.close()
            why = f"the sandbox did not answer within {self._timeout:g} s"
            raise ApiError(504, "Timeout", why) from error
        except OSError as error:
            line.close()
            # It went away in the middle: whether the request was carried out is not known.
            raise unavailable(f"the connection to the sandbox broke: {error}") from error
        except BaseException:
            line.close()
            raise
        with self._lock:
            self._idle.append(line)
        if "error" in answer:
            raise error_of(answer["error"])
        return cast(T, result)

    def close(self) -> None:
        with self._lock:
            lines, self._idle = self._idle, []
        for line in lines:
            line.close()

    def _take(self) -> Line:
        while True:
            with self._lock:
                line = self._idle.pop() if self._idle else None
            if line is None:
                return self.open()
            if line.is_idle:
                return line
            line.close()
