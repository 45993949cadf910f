"""The inbox: the one way into the scheduler thread."""

from __future__ import annotations

import queue
import threading
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """Any thread puts frozen messages in; the scheduler thread takes them out in order."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[T] = queue.SimpleQueue()
        self._wake = threading.Event()

    def put(self, message: T) -> None:
        self._queue.put(message)
        if not self._wake.is_set():  # setting it costs a lock each time, asking does not
            self._wake.set()

    def wake(self) -> None:
        """Have ``wait`` return although there is no message."""
        self._wake.set()

    def take(self) -> T | None:
        """The next message, or None where there is none."""
        try:
            return self._queue.get_nowait()
        except queue.Empty:
            return None

    def wait(self, seconds: float) -> None:
        """Until there is something to do, at most ``seconds``."""
        if not self._queue.empty():
            return
        self._wake.wait(max(0.0, seconds))
        self._wake.clear()

    def __len__(self) -> int:
        return self._queue.qsize()
