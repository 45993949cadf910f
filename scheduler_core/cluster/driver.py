"""Runs the parts of a sandbox that have deadlines, each when it is due, on one thread."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from .sandbox_clock import ScaledClock

__all__ = ["Driver", "Ticking"]

log = logging.getLogger(__name__)

_LONGEST_SLEEP = 1.0
_AFTER_A_FAULT = 1.0
_UNTIL_JUMP = 0.02
_FAULTS_TOLD = 60


class Ticking(Protocol):
    """Something that works when it is due."""

    def next_deadline(self) -> float | None:
        """A time of day of the sandbox's clock; None if nothing is planned."""

    def tick(self, now: float) -> None:
        """Do what is due."""


class Driver:
    """A thread that ticks parts of a sandbox in real time.

    Give `wake` to the parts, so that they can say that there is something to do now. A part that
    raises is logged and ticked again later: the others go on.

    At the speed `AS_FAST_AS_POSSIBLE` the clock jumps to the next deadline whenever nothing is due
    and `may_jump` says that nobody else (a scheduler) is at work.
    """

    def __init__(self, clock: ScaledClock, *, may_jump: Callable[[], bool] = lambda: True) -> None:
        self._clock = clock
        self._may_jump = may_jump
        self._parts: Sequence[Ticking] = ()
        self._woken = threading.Event()
        self._stopping = False
        self._faults = 0
        self._last_fault = ""
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Look again for something to do. From any thread, also from a watcher."""
        if not self._woken.is_set():  # setting it costs a lock each time, asking does not
            self._woken.set()

    def start(self, parts: Sequence[Ticking]) -> None:
        self._parts = tuple(parts)
        self._thread = threading.Thread(target=self._run, name="sandbox-driver", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; nothing is ticked after this returns."""
        self._stopping = True
        self._woken.set()
        if self._thread is not None:
            self._thread.join()

    def run_once(self) -> float:
        """Tick what is due; how long there is nothing to do then, in real seconds."""
        for part in self._parts:
            deadline = part.next_deadline()
            if deadline is not None and deadline <= self._clock.now():
                part.tick(self._clock.now())
        deadlines = [part.next_deadline() for part in self._parts]
        due = min((deadline for deadline in deadlines if deadline is not None), default=None)
        if due is None:
            return math.inf
        left = due - self._clock.now()
        if left <= 0:
            return 0.0
        if not math.isinf(self._clock.speed):
            return self._clock.real_seconds(left)
        if not self._may_jump():
            return _UNTIL_JUMP
        self._clock.jump_to(due)
        return 0.0

    def _run(self) -> None:
        while not self._stopping:
            self._woken.clear()
            try:
                rest = self.run_once()
            except Exception as error:  # noqa: BLE001 - one bad turn must not end all later ones
                self._tell_fault(error)
                rest = _AFTER_A_FAULT
            if rest > 0 and not self._stopping:
                # The clock may be set, or its speed changed, while this thread sleeps.
                self._woken.wait(min(rest, _LONGEST_SLEEP))

    def _tell_fault(self, error: Exception) -> None:
        """Once with its traceback; the same one again and again in a line now and then."""
        fault = repr(error)
        self._faults = self._faults + 1 if fault == self._last_fault else 1
        self._last_fault = fault
        if self._faults == 1:
            log.exception("a part of the sandbox raised; it is tried again")
        elif self._faults % _FAULTS_TOLD == 0:
            log.error("a part of the sandbox has raised %d times: %s", self._faults, fault)
