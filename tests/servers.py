"""Real servers and programs for the tests: finding them, starting them, stopping them."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import redis

ROOT = Path(__file__).resolve().parent.parent
POSTGRES_FOLDERS = "/usr/lib/postgresql/*/bin"
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
START_SECONDS = 30
# The product's variables: a child under test must not inherit the test run's own.
OWN_VARIABLES = ("SECRET_KEY", "DATABASE_URL", "REDIS_URL", "ALLOWED_HOSTS", "DEBUG")


# --- finding -----------------------------------------------------------------------------------
def find_redis() -> str | None:
    """Return a redis-server of the system; the one in the virtual environment does not count."""
    own = Path(sys.prefix, "bin")
    folders = [f for f in os.environ.get("PATH", "").split(os.pathsep) if f and Path(f) != own]
    path = os.pathsep.join(folders)
    return shutil.which("redis-server", path=path) or shutil.which("valkey-server", path=path)


def find_postgres() -> Path | None:
    """Return the folder that holds initdb and postgres."""
    on_path = shutil.which("initdb")
    found = sorted(Path("/").glob(POSTGRES_FOLDERS.lstrip("/") + "/initdb"))
    if on_path:
        found.append(Path(on_path).resolve())
    usable = [binary.parent for binary in found if (binary.parent / "postgres").exists()]
    return usable[-1] if usable else None


def find_chromium() -> str | None:
    return next(filter(None, map(shutil.which, CHROMIUMS)), None)


def find_kubectl() -> str | None:
    """Return the kubectl that KUBECTL names, or the one on PATH."""
    return shutil.which(os.environ.get("KUBECTL") or "kubectl")


def clean_environment(**values: str) -> dict[str, str]:
    """Return this environment without anything that configures the product, plus ``values``."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in OWN_VARIABLES and not name.startswith(("KUBESCHED_", "DJANGO_", "PYTEST_"))
    }
    return {**kept, **values}


def wait_for(ready: Callable[[], bool], what: str, seconds: float = START_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if ready():
            return
        time.sleep(0.05)
    raise TimeoutError(f"{what} did not happen within {seconds} s")


# --- servers -----------------------------------------------------------------------------------
@contextmanager
def running_redis() -> Iterator[str]:
    """Run a Redis on a unix socket; give its URL."""
    binary = find_redis()
    assert binary is not None
    with tempfile.TemporaryDirectory(prefix="ks-redis-") as folder:
        socket = Path(folder) / "redis.sock"
        command = [
            binary,
            "--port",
            "0",
            "--unixsocket",
            str(socket),
            "--save",
            "",
            "--dir",
            folder,
        ]
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            url = f"unix://{socket}"
            wait_for(lambda: _redis_answers(url), "Redis' answer")
            yield url
        finally:
            process.terminate()
            process.wait(timeout=10)


def _redis_answers(url: str) -> bool:
    try:
        with redis.Redis.from_url(url) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


@contextmanager
def running_postgres() -> Iterator[str]:
    """Run a PostgreSQL cluster of its own on a unix socket; give a DATABASE_URL.

    PostgreSQL refuses to run as root, so root runs it as `postgres` or `nobody`.
    """
    binaries = find_postgres()
    assert binaries is not None
    folder = Path(tempfile.mkdtemp(prefix="ks-pg-"))
    user = _unprivileged_user() if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    data = folder / "data"
    initdb = [str(binaries / "initdb"), "-D", str(data), "-U", "kubesched", "-A", "trust"]
    subprocess.run(
        [*initdb, "-E", "UTF8", "--locale=C", "--no-sync"],
        check=True, capture_output=True, user=user, cwd=folder,
    )  # fmt: skip
    options = ["-c", "listen_addresses=", "-k", str(folder), "-c", "fsync=off"]
    server = [str(binaries / "postgres"), "-D", str(data), *options]
    process = subprocess.Popen(
        server, user=user, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for((folder / ".s.PGSQL.5432").exists, "PostgreSQL's socket")
        psql = [str(binaries / "psql"), "-h", str(folder), "-U", "kubesched", "postgres", "-qc"]
        wait_for(
            lambda: subprocess.run([*psql, "select 1"], capture_output=True).returncode == 0,
            "PostgreSQL's answer",
        )
        subprocess.run([*psql, "create database kubesched"], check=True, capture_output=True)
        yield f"postgres://kubesched@/kubesched?host={folder}"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)
        shutil.rmtree(folder, ignore_errors=True)


def _unprivileged_user() -> str:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise LookupError("there is neither a user postgres nor nobody to run PostgreSQL as")


# --- the product itself ------------------------------------------------------------------------
@dataclass(slots=True)
class Demo:
    """A running `manage.py demo`."""

    process: subprocess.Popen[bytes]
    data_dir: Path
    output_file: Path
    login_url: str = ""
    passwords: dict[str, str] = field(default_factory=dict)

    @property
    def base_url(self) -> str:
        """``http://127.0.0.1:PORT``, without a slash at the end."""
        return "/".join(self.login_url.split("/")[:3])

    @property
    def output(self) -> str:
        return self.output_file.read_text(encoding="utf-8")

    def log(self, name: str) -> str:
        """Return the log of a process: web, loop-worker, default-worker, beat, broker."""
        path = self.data_dir / "logs" / f"{name}.log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def children(self) -> dict[str, int]:
        """Return the processes' numbers by name, as the demo wrote them down."""
        import json

        state = json.loads((self.data_dir / "demo.json").read_text(encoding="utf-8"))
        return {name: pid for name, pid, _ in state["children"]}

    def stop(self, number: int = signal.SIGINT, seconds: float = 10) -> int:
        """Send the signal of a Ctrl-C; return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=seconds)


def start_demo(data_dir: Path, *arguments: str, **environment: str) -> Demo:
    """Start `manage.py demo` on a free port and wait for its banner.

    Raises:
        AssertionError: it ended, or printed no URL in time; the message holds its output.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    output_file = data_dir.parent / f"{data_dir.name}.out"
    command = [sys.executable, str(ROOT / "manage.py"), "demo", "--port", "0"]
    with output_file.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--data-dir", str(data_dir), *arguments],
            cwd=ROOT, env=clean_environment(**environment),
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    demo = Demo(process, data_dir, output_file)
    try:
        wait_for(
            lambda: "Ctrl-C stops" in demo.output or process.poll() is not None,
            "the demo's banner",
            seconds=90,
        )
    except TimeoutError:
        demo.stop()
        raise AssertionError(f"the demo printed no URL:\n{demo.output}") from None
    assert process.poll() is None, f"the demo ended:\n{demo.output}"
    for line in demo.output.splitlines():
        words = line.split()
        if line.startswith("URL "):
            demo.login_url = words[1]
        elif line.startswith("USER "):
            demo.passwords[words[1]] = words[3]
    return demo
