"""The product in a folder of its own: what `manage.py serve` runs, for as long as a benchmark."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from django.conf import settings

from dashboard.runtime_dir import private_dir, remove_sockets
from dashboard.supervisor import broker as brokers
from dashboard.supervisor import programs
from dashboard.supervisor.listening import answers_http, listen
from dashboard.supervisor.supervisor import Supervisor

HOST = "127.0.0.1"
START_SECONDS = 60.0
STOP_SECONDS = 20.0


class BenchmarkFailed(Exception):
    """The benchmark cannot go on; the text is for people."""


@dataclass(slots=True)
class RunningSite:
    """The processes: ``port`` of the web server, ``pids`` by the program's name."""

    port: int
    broker: str
    supervisor: Supervisor
    pids: dict[str, int] = field(default_factory=dict)
    restarts: list[str] = field(default_factory=list)

    def wait(self, seconds: float) -> None:
        """Let it run; processes that end are started again, and noted."""
        self.supervisor.wait_until(lambda: False, seconds)

    def wait_until(self, ready: Callable[[], bool], what: str, seconds: float) -> None:
        """
        Raises:
            BenchmarkFailed: it was not within ``seconds``.
        """
        if not self.supervisor.wait_until(ready, seconds):
            logs = settings.KUBESCHED_DATA_DIR / "logs"
            raise BenchmarkFailed(f"not within {seconds:.0f} s: {what}; see {logs}")


@contextmanager
def running_site(before_workers: Callable[[], object]) -> Iterator[RunningSite]:
    """Broker (unless REDIS_URL names one), web server, workers and beat.

    Everything has been stopped, in order, when the block is left. ``before_workers`` is called
    before any of them looks at the database.

    Raises:
        BenchmarkFailed: it does not come up.
        ChildKeepsFailingError: a process ends again and again.
    """
    runtime = private_dir(settings.KUBESCHED_RUNTIME_DIR)
    site = programs.Site(
        root=settings.BASE_DIR,
        environment=_environment(str(runtime)),
        loop_concurrency=settings.KUBESCHED_LOOP_CONCURRENCY,
        logs=settings.KUBESCHED_DATA_DIR / "logs",
    )
    try:
        with closing(listen(HOST, 0)) as listening:
            pids: dict[str, int] = {}
            notes: list[str] = []
            with Supervisor(
                stop_seconds=STOP_SECONDS,
                say=notes.append,
                changed=lambda running: pids.update({name: pid for name, pid, _ in running}),
            ) as supervisor:
                port: int = listening.getsockname()[1]
                running = RunningSite(port, "", supervisor, pids, notes)
                running.broker = _start_broker(running, site)
                before_workers()
                for name in programs.PARTS:
                    supervisor.start(programs.part(site, name, listening.fileno()))
                running.wait_until(
                    lambda: answers_http(HOST, port), "the web server answers", START_SECONDS
                )
                yield running
    finally:
        remove_sockets(settings.KUBESCHED_RUNTIME_DIR)


def _start_broker(running: RunningSite, site: programs.Site) -> str:
    if os.environ.get("REDIS_URL"):
        if reason := brokers.answers(settings.REDIS_URL):
            raise BenchmarkFailed(f"the Redis that is named does not answer: {reason}")
        return "the Redis that is named"
    chosen = brokers.choose(settings.KUBESCHED_RUNTIME_DIR / "broker.sock")
    running.supervisor.start(programs.broker(site, chosen))
    running.wait_until(
        lambda: brokers.answers(chosen.url) is None, "the broker answers", START_SECONDS
    )
    return chosen.title


def _environment(runtime: str) -> Mapping[str, str]:
    """What the children need beyond this process's own environment."""
    return {
        "DJANGO_SETTINGS_MODULE": os.environ["DJANGO_SETTINGS_MODULE"],
        "KUBESCHED_MODE": "demo",
        "KUBESCHED_DATA_DIR": str(settings.KUBESCHED_DATA_DIR),
        "KUBESCHED_RUNTIME_DIR": runtime,
        "REDIS_URL": settings.REDIS_URL,
    }
