"""The sandbox's time of day: real time, N times as fast, or as fast as there is something to do."""

from __future__ import annotations

import math
import threading

from scheduler_core.ports import Clock

__all__ = ["AS_FAST_AS_POSSIBLE", "ScaledClock"]

#: a speed: time stands still, and whoever drives the sandbox jumps to the next deadline
AS_FAST_AS_POSSIBLE = math.inf

#: real seconds: the speed may be changed while somebody sleeps
_LONGEST_SLEEP = 0.05
#: seconds that are not worth sleeping, and that a sum of floats may never reach
_NO_TIME = 1e-6


class ScaledClock:
    """Time that passes `speed` times as fast as another clock's, from `start` on.

    It never goes back, whatever the other clock does and however the speed is changed.
    Thread-safe.
    """

    def __init__(self, real: Clock, speed: float = 1.0, start: float | None = None) -> None:
        """
        Args:
            speed: seconds here per second there; 0 stands still; `AS_FAST_AS_POSSIBLE` moves by
                `jump_to` alone.
            start: time of day now; the other clock's if None.

        Raises:
            ValueError: the speed is negative or not a number.
        """
        self._real = real
        self._lock = threading.Lock()
        self._speed = _checked(speed)
        self._real_anchor = real.now()
        self._anchor = self._real_anchor if start is None else float(start)
        self._latest = self._anchor

    @property
    def speed(self) -> float:
        return self._speed

    def now(self) -> float:
        with self._lock:
            return self._now()

    def set_speed(self, speed: float) -> None:
        """Go on from now at another speed.

        Raises:
            ValueError: the speed is negative or not a number.
        """
        checked = _checked(speed)
        with self._lock:
            self._anchor = self._now()
            self._real_anchor = self._real.now()
            self._speed = checked

    def jump_to(self, moment: float) -> None:
        """Let the time up to `moment` pass at once; a moment that is past changes nothing."""
        with self._lock:
            self._anchor = max(self._now(), moment)
            self._latest = self._anchor
            self._real_anchor = self._real.now()

    def sleep(self, seconds: float) -> None:
        """Return when `seconds` of this clock have passed.

        A clock that only jumps lets them pass itself, a moment later: whoever sleeps waits for
        something, and nobody else need have a deadline to jump to.
        """
        due = self.now() + seconds
        while (left := due - self.now()) > _NO_TIME:
            self._real.sleep(min(self.real_seconds(left), _LONGEST_SLEEP))
            if math.isinf(self._speed):
                self.jump_to(due)

    def real_seconds(self, seconds: float) -> float:
        """How long `seconds` here take on the other clock; infinite while this one stands still."""
        speed = self._speed
        if speed == 0 or math.isinf(speed):
            return math.inf
        return seconds / speed

    def _now(self) -> float:
        if not math.isinf(self._speed):
            passed = (self._real.now() - self._real_anchor) * self._speed
            self._latest = max(self._latest, self._anchor + passed)
        return self._latest


def _checked(speed: float) -> float:
    if math.isnan(speed) or speed < 0:
        raise ValueError(f"a clock's speed is 0 or more, not {speed}")
    return float(speed)
