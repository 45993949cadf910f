"""Keeps a set of programs running until a signal says stop, then stops them in order."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Final

from dashboard.supervisor.process import Child, Program, describe_exit

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
POLL_SECONDS: Final = 0.2
STOP_POLL_SECONDS: Final = 0.02
# Kept back for every later stage, so that one that does not obey TERM leaves them time to.
STAGE_SECONDS: Final = 0.3
FIRST_DELAY: Final = 0.2
LONGEST_DELAY: Final = 5.0
# A child that ran this long was well; its next end is not one of a row.
HEALTHY_SECONDS: Final = 10.0
MOST_FAILURES: Final = 6


class StopRequested(BaseException):
    """A signal arrived while something other than :meth:`Supervisor.run` was going on."""


class ChildKeepsFailingError(Exception):
    """A program ended again and again right after its start."""

    def __init__(self, program: Program, code: int, times: int) -> None:
        where = f"; its log is {program.log}" if program.log else ""
        super().__init__(
            f"{program.name} ended {times} times in a row ({describe_exit(code)}){where}."
        )
        self.program = program


@dataclass(slots=True)
class _Slot:
    program: Program
    child: Child | None
    started_at: float
    failures: int = 0
    restart_at: float | None = None


class Supervisor:
    """Starts programs, restarts those that end, stops all of them.

    Use it as a context manager in the main thread: leaving the block stops every child, whatever
    happened inside. The first signal (INT, TERM, HUP) asks for an ordered stop, a second one
    kills at once.

    Args:
        stop_seconds: how long the ordered stop may take before what is left is killed.
        say: gets one line for people per event.
        changed: called after every start with (name, pid, command) of all running children.
    """

    def __init__(
        self,
        *,
        stop_seconds: float,
        say: Callable[[str], None],
        changed: Callable[[list[tuple[str, int, list[str]]]], None] = lambda running: None,
    ) -> None:
        self._stop_seconds = stop_seconds
        self._say = say
        self._changed = changed
        self._slots: dict[str, _Slot] = {}
        self._signals = 0
        self._interruptible = True
        self._previous: dict[int, object] = {}
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_writer, False)

    # --- signals ----------------------------------------------------------------------------
    def __enter__(self) -> Supervisor:
        for number in STOP_SIGNALS:
            self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self._interruptible = False
        try:
            self.stop()
        finally:
            for number, handler in self._previous.items():
                signal.signal(number, handler)  # type: ignore[arg-type]  # as it was found
            os.close(self._wake_reader)
            os.close(self._wake_writer)
        return kind is StopRequested

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1
        with suppress(BlockingIOError):
            os.write(self._wake_writer, b".")
        if self._interruptible:
            self._interruptible = False
            raise StopRequested

    # --- running ----------------------------------------------------------------------------
    def start(self, program: Program) -> Child:
        """Start ``program`` and watch it from now on."""
        child = Child(program)
        self._slots[program.name] = _Slot(program, child, time.monotonic())
        self._report()
        return child

    def check(self) -> None:
        """Restart what ended and is due.

        Raises:
            ChildKeepsFailingError: a program ended MOST_FAILURES times in a row, each soon
                after its start.
        """
        now = time.monotonic()
        for slot in self._slots.values():
            if slot.child is not None and (code := slot.child.poll()) is not None:
                self._ended(slot, code, now)
            if slot.restart_at is not None and now >= slot.restart_at:
                slot.child, slot.started_at = Child(slot.program), now
                slot.restart_at = None
                self._report()

    def run(self) -> None:
        """Watch the children until a signal arrives."""
        self._interruptible = False
        while not self._signals:
            self.check()
            select.select([self._wake_reader], [], [], POLL_SECONDS)

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> bool:
        """Watch the children until ``ready()``; False where that takes longer than ``seconds``."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if ready():
                return True
            self.check()
            time.sleep(0.05)
        return ready()

    def _ended(self, slot: _Slot, code: int, now: float) -> None:
        if slot.child is not None:
            slot.child.kill()  # what it started, if anything
        slot.child = None
        slot.failures = 1 if now - slot.started_at > HEALTHY_SECONDS else slot.failures + 1
        if slot.failures >= MOST_FAILURES:
            raise ChildKeepsFailingError(slot.program, code, slot.failures)
        delay = min(LONGEST_DELAY, FIRST_DELAY * 2 ** (slot.failures - 1))
        slot.restart_at = now + delay
        self._say(
            f"{slot.program.name} ended ({describe_exit(code)}); it starts again in {delay:.1f} s."
        )

    def _report(self) -> None:
        self._changed(
            [
                (slot.program.name, slot.child.pid, list(slot.program.command))
                for slot in self._slots.values()
                if slot.child is not None
            ]
        )

    # --- stopping ---------------------------------------------------------------------------
    def stop(self) -> None:
        """Stop every child, the highest stage first: TERM, and KILL where that is not enough."""
        signals_before = self._signals
        deadline = time.monotonic() + self._stop_seconds
        stages = sorted({slot.program.stage for slot in self._slots.values()})
        while stages:
            stage = stages.pop()
            children = [
                slot.child
                for slot in self._slots.values()
                if slot.program.stage == stage and slot.child is not None
            ]
            for child in children:
                child.terminate()
            reserved = STAGE_SECONDS * len(stages)
            self._wait_for_end(children, deadline - reserved, signals_before)
            for child in children:
                child.kill()
        self._slots.clear()

    def _wait_for_end(
        self, children: Iterable[Child], deadline: float, signals_before: int
    ) -> None:
        waiting = list(children)
        while waiting and time.monotonic() < deadline and self._signals <= signals_before:
            waiting = [child for child in waiting if child.poll() is None]
            if waiting:
                time.sleep(STOP_POLL_SECONDS)
