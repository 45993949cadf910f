"""One supervisor per data folder, and no process left over from a killed one."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

LOCK_FILE = "demo.lock"
STATE_FILE = "demo.json"


class FolderInUseError(Exception):
    """Another supervisor holds the folder."""


class DataFolder:
    """A data folder held by this process; the kernel lets go of it however the process ends."""

    def __init__(self, path: Path) -> None:
        """Take ``path``, which is made where it is missing (0700).

        Raises:
            FolderInUseError: another process holds it; the message says which and where it serves.
            OSError: the folder cannot be made or written.
        """
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = path
        self._state: dict[str, Any] = {}
        self._lock: IO[str] = (path / LOCK_FILE).open("a")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            state = _read_state(path)
            where = f", {state['url']}" if state.get("url") else ""
            raise FolderInUseError(
                f"the demo already runs on {path} (process {state.get('pid', 'unknown')}{where}). "
                "Stop it there with Ctrl-C, or start one with data of its own: "
                "make demo DATA=FOLDER PORT=8001 (manage.py demo --data-dir FOLDER --port 8001)."
            ) from None

    def note(self, **values: Any) -> None:
        """Write down facts of this run (pid, url, children) for those who come later."""
        self._state.update(values, pid=os.getpid())
        temporary = self.path / f"{STATE_FILE}.new"
        temporary.write_text(json.dumps(self._state), encoding="utf-8")
        temporary.replace(self.path / STATE_FILE)

    def note_children(self, running: Iterable[tuple[str, int, list[str]]]) -> None:
        self.note(children=[list(child) for child in running])

    def kill_leftovers(self) -> list[str]:
        """Kill children of an earlier supervisor that died without stopping them; return names.

        A process counts as one only if its command line is the recorded one: the number may
        belong to something else by now. (On Linux the kernel has killed them already.)
        """
        killed = []
        for name, pid, command in _read_state(self.path).get("children", []):
            if not _is_same(command, _command_line(pid)):
                continue
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
                killed.append(name)
        return killed

    def release(self) -> None:
        with suppress(FileNotFoundError):
            (self.path / STATE_FILE).unlink()
        self._lock.close()


def _read_state(path: Path) -> dict[str, Any]:
    try:
        state = json.loads((path / STATE_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def _is_same(command: list[str], shown: str | None) -> bool:
    """Tell whether ``shown`` by ps is ``command``; a Redis shows its socket alone."""
    if not shown:
        return False
    sockets = [part for part in command if part.endswith(".sock")]
    return " ".join(command[1:]) in shown or any(part in shown for part in sockets)


def _command_line(pid: int) -> str | None:
    try:
        done = subprocess.run(
            ["ps", "-ww", "-o", "args=", "-p", str(pid)],  # noqa: S607
            capture_output=True, text=True, timeout=5,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
