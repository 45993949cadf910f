"""Client-side rate limit: `clientConnection.qps` and `burst`."""

from __future__ import annotations

import threading
from typing import Final

from .timing import Timing

__all__ = ["DEFAULT_BURST", "DEFAULT_QPS", "RateLimit"]

#: what client-go takes where qps or burst is 0
DEFAULT_QPS: Final = 5.0
DEFAULT_BURST: Final = 10


class RateLimit:
    """A token bucket: ``burst`` requests at once, ``qps`` a second in the long run.

    A negative ``qps`` is no limit; 0 means client-go's defaults. Thread-safe, and fair: whoever
    asks first is served first.
    """

    def __init__(self, qps: float, burst: int, timing: Timing) -> None:
        self._timing = timing
        self._lock = threading.Lock()
        self.change(qps, burst)

    def change(self, qps: float, burst: int) -> None:
        """Another limit, from now on; with a full bucket."""
        with self._lock:
            self._qps = qps or DEFAULT_QPS
            self._burst = float(burst or DEFAULT_BURST)
            self._tokens = self._burst
            self._at = self._timing.monotonic()

    def wait(self, until: threading.Event) -> None:
        """Wait for a turn; at once where ``until`` is set."""
        pause = self._reserve()
        if pause > 0:
            self._timing.wait(pause, until)

    def _reserve(self) -> float:
        """Take a token, also one that does not exist yet: seconds until it will."""
        if self._qps < 0:
            return 0.0
        with self._lock:
            now = self._timing.monotonic()
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._qps)
            self._at = now
            self._tokens -= 1.0
            return max(0.0, -self._tokens / self._qps)
