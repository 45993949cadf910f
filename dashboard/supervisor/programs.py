"""The product's processes, the same ones in the demo and in production."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dashboard.supervisor.broker import Broker
from dashboard.supervisor.process import Program

# Stages: started in this order and stopped in the opposite one.
# Sandboxes outlive the schedulers that bind pods in them.
BROKER, WEB, SANDBOXES, WORKERS, BEAT = range(5)

PARTS = ("web", "sandbox", "loop", "default", "beat")
# What can be started alone. Schedulers reach a sandbox of another process by a unix socket: a loop
# worker that is alone on its machine (in its container) hosts sandboxes, too.
ALONE = ("web", "loop", "default", "beat")
# Webhooks take four of them at most; the rest keeps runs alive.
DEFAULT_CONCURRENCY = 8
# A worker's own system checks load every page's code, and `serve` has made the same checks.
_ALL = {"PYTHONUNBUFFERED": "1", "CELERY_SKIP_CHECKS": "1"}


@dataclass(frozen=True, slots=True)
class Site:
    """What the programs have in common.

    Attributes:
        logs: the folder of one log file per program; without it they write to the terminal.
        hosts_apart: sandboxes have a worker of their own here.
    """

    root: Path
    environment: Mapping[str, str]
    loop_concurrency: int
    log_level: str = "INFO"
    logs: Path | None = None
    hosts_apart: bool = True

    def program(self, name: str, stage: int, *command: str, fds: tuple[int, ...] = ()) -> Program:
        return Program(
            name=name,
            command=command,
            stage=stage,
            environment={**self.environment, **_ALL},
            folder=self.root,
            log=self.logs / f"{name.replace(' ', '-')}.log" if self.logs else None,
            keep_fds=fds,
        )

    def python(self, name: str, stage: int, *command: str, fds: tuple[int, ...] = ()) -> Program:
        return self.program(name, stage, sys.executable, "-m", *command, fds=fds)


def broker(site: Site, chosen: Broker) -> Program:
    return site.program("broker", BROKER, *chosen.command)


def part(site: Site, name: str, listening: int | None = None) -> Program:
    """Return the program of one of PARTS; ``listening`` is the web server's open socket."""
    if name == "web":
        return _web(site, listening)
    if name == "sandbox":
        return _worker(site, "sandbox worker", "sandbox", site.loop_concurrency, stage=SANDBOXES)
    if name == "loop":
        more = () if site.hosts_apart else ("sandbox",)
        return _worker(site, "loop worker", "loop", site.loop_concurrency, *more)
    if name == "default":
        return _worker(site, "default worker", "default", DEFAULT_CONCURRENCY)
    if name == "beat":
        return site.python("beat", BEAT, *_celery("beat", site), "--pidfile=")
    raise ValueError(f"no such part: {name}")


def _web(site: Site, listening: int | None) -> Program:
    if listening is None:
        raise ValueError("the web server needs an open socket")
    # Websockets that are open must not hold up the stop.
    command = ("daphne", "--fd", str(listening), "--verbosity", "0", "--no-server-name")
    patience = ("--application-close-timeout", "1")
    application = "kubesched_site.asgi:application"
    return site.python("web", WEB, *command, *patience, application, fds=(listening,))


def _worker(
    site: Site, name: str, queue: str, concurrency: int, *more: str, stage: int = WORKERS
) -> Program:
    # Threads: TERM reaches the tasks, and a loop task lives as long as its run.
    return site.python(
        name, stage, *_celery("worker", site),
        "--queues", ",".join((queue, *more)), "--hostname", f"{queue}@%h",
        "--pool", "threads", "--concurrency", str(concurrency),
        "--without-gossip", "--without-mingle",
    )  # fmt: skip


def _celery(command: str, site: Site) -> tuple[str, ...]:
    return ("celery", "--app", "kubesched_site", "--quiet", command, "--loglevel", site.log_level)
