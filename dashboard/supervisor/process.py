"""One child process: what to run, and starting, asking and killing it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

LAUNCHER = Path(__file__).with_name("launch.py")
LOG_BYTES = 5_000_000


@dataclass(frozen=True, slots=True)
class Program:
    """What a child is.

    ``stage`` orders start and stop: lower ones start first and are stopped last.
    ``log`` gets both outputs; without it the child shares the supervisor's.
    ``keep_fds`` stay open in the child (a listening socket).
    """

    name: str
    command: Sequence[str]
    stage: int
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    log: Path | None = None
    keep_fds: tuple[int, ...] = ()


class Child:
    """A running, or ended, process of a :class:`Program`.

    It leads a session and a process group of its own: the terminal's Ctrl-C reaches the
    supervisor alone, which then stops the children in order.

    On Linux the child dies with the *thread* that starts it, so start it in the main thread.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        with _output(program.log) as output:
            self._process = subprocess.Popen(
                [sys.executable, "-S", "-E", str(LAUNCHER), str(os.getpid()), *program.command],
                env={**os.environ, **program.environment},
                cwd=program.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT if program.log else None,
                start_new_session=True,
                pass_fds=program.keep_fds,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        """Return the exit code (negative: the signal that killed it), None while it runs."""
        return self._process.poll()

    def terminate(self) -> None:
        """Ask the process to stop (TERM)."""
        if self.poll() is None:
            self._process.terminate()

    def kill(self) -> None:
        """Kill the process and whatever it started (KILL to its group), and reap it."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=2)


class _output:  # noqa: N801 - a context manager that reads like a function
    """The log file opened for appending, or nothing where there is none."""

    def __init__(self, path: Path | None) -> None:
        self._file = None
        if path is None:
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > LOG_BYTES:
            path.replace(path.with_suffix(".1.log"))
        self._file = path.open("ab")

    def __enter__(self) -> int | None:
        return self._file.fileno() if self._file else None

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()


def describe_exit(code: int) -> str:
    """Return how a process ended, for people: ``exit code 1`` or ``killed by SIGKILL``."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
