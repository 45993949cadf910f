"""A flame graph of the measured part, drawn by py-spy, which looks at this process from outside."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

__all__ = ["FlameError", "find_py_spy", "flame_graph"]

#: Samples per second; a cycle takes less than a millisecond.
RATE: Final = 1000
_PR_SET_PTRACER: Final = 0x59616D61
_ANY: Final = -1
_PATIENCE: Final = 30.0
_SAMPLING = "Sampling process"


class FlameError(Exception):
    """There is no flame graph; the text says why."""


def find_py_spy() -> str | None:
    """The program of this Python's environment, or of the system."""
    beside = Path(sys.executable).parent / "py-spy"
    return str(beside) if beside.exists() else shutil.which("py-spy")


@contextmanager
def flame_graph(path: Path, *, program: str | None = None) -> Iterator[None]:
    """Have the block's time drawn as SVG.

    Raises:
        FlameError: py-spy is missing, may not look, or drew nothing.
    """
    program = program or find_py_spy()
    if program is None:
        raise FlameError("a flame graph needs py-spy (it is among the development requirements)")
    _let_others_look()
    command = [
        program, "record", "--pid", str(os.getpid()), "--rate", str(RATE), "--format", "flamegraph",
        "--output", str(path), "--duration", "unlimited", "--nonblocking",
    ]  # fmt: skip
    # It speaks on both; the graph goes to the file.
    spy = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert spy.stdout is not None
    said = _wait_for_sampling(spy.stdout)
    try:
        yield
    finally:
        said += _end(spy)
    if not path.exists():
        raise FlameError(f"py-spy drew nothing: {' '.join(said.split())}")
    # The command line is the picture's heading; where programs and files lie is nobody's business.
    drawn = path.read_text(encoding="utf-8")
    named = drawn.replace(str(path), path.name).replace(program, Path(program).name)
    path.write_text(named, encoding="utf-8")


def _end(spy: subprocess.Popen[str]) -> str:
    """What it says while it draws; killed where it does not end."""
    spy.send_signal(signal.SIGINT)
    try:
        return spy.communicate(timeout=_PATIENCE)[0]
    except subprocess.TimeoutExpired:
        spy.kill()
        return spy.communicate()[0]


def _wait_for_sampling(output: IO[str]) -> str:
    """What py-spy says until it samples, or until it ends."""
    said = ""
    for line in output:
        said += line
        if _SAMPLING in line:
            break
    return said


def _let_others_look() -> None:
    """Where Linux lets only ancestors look at a process (Yama), a child is allowed to."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANY, 0, 0, 0)
