"""Time as this package sees it, handed in so that tests run in virtual time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

__all__ = ["Backoff", "RealTiming", "Timing"]

#: a number from 0 to 1, without 1
Random = Callable[[], float]


class Timing(Protocol):
    """A monotonic clock, and a way to wait on it."""

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back, whatever is done to the time of day."""

    def wait(self, seconds: float, until: threading.Event) -> bool:
        """Wait for ``seconds``, or less if ``until`` is set; whether it is set."""


class RealTiming:
    """The process's own."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, seconds: float, until: threading.Event) -> bool:
        return until.wait(max(0.0, seconds))


_GROWTH: Final = 2.0


class Backoff:
    """Pauses between tries: they double, and each is spread over half to one and a half of it."""

    def __init__(self, first: float, longest: float, random: Random) -> None:
        """``first`` and ``longest`` in seconds."""
        self._first = first
        self._longest = longest
        self._random = random
        self._next = first

    def pause(self) -> float:
        """Seconds to wait before the next try."""
        pause = self._next
        self._next = min(self._next * _GROWTH, self._longest)
        return pause * (0.5 + self._random())

    def reset(self) -> None:
        """It worked."""
        self._next = self._first
