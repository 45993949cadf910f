"""Clocks: the real one, and one that stands still until it is told to go on."""

from __future__ import annotations

import time


class RealClock:
    """The time of day."""

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class VirtualClock:
    """A clock for tests and replays: time passes only through ``advance`` and ``set``."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = float(start)

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        """Time passes at once: nothing else could let it pass while the caller waits."""
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass.

        Raises:
            ValueError: ``seconds`` is negative.
        """
        self.set(self._now + seconds)

    def set(self, now: float) -> None:
        """It is ``now`` (seconds since the epoch).

        Raises:
            ValueError: that lies in the past.
        """
        if now < self._now:
            raise ValueError(f"a clock cannot go back from {self._now} to {now}")
        self._now = float(now)
