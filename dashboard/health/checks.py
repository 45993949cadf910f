"""What is checked, by process."""

from __future__ import annotations

import redis
from django.conf import settings
from django.db import connection

from dashboard.health import heartbeat
from dashboard.health.probes import Check, Probes
from dashboard.metrics import carried
from dashboard.shutdown import shutting_down

__all__ = ["BEAT_SECONDS", "LOOP_SECONDS", "default_probes", "web_probes", "worker_probes"]

#: Beat sends something every second or two.
BEAT_SECONDS = 60.0

#: A scheduling loop that has not turned for so long hangs; an extender may take a minute.
LOOP_SECONDS = 120.0


def web_probes() -> Probes:
    """Of the web process."""
    return Probes(live={"ping": ping}, ready={"database": database, "redis": broker})


def worker_probes() -> Probes:
    """Of a loop worker."""
    live: dict[str, Check] = {"ping": ping, "scheduling-loops": loops}
    ready: dict[str, Check] = {
        "shutdown": shutdown,
        "database": database,
        "redis": broker,
        "sched-handler-sync": handlers_synced,
    }
    return Probes(live=live, ready=ready)


def default_probes() -> Probes:
    """Of the worker of beat's tasks, beside beat."""
    ready: dict[str, Check] = {"shutdown": shutdown, "database": database, "redis": broker}
    return Probes(live={"ping": ping, "beat": beat}, ready=ready)


def ping() -> None:
    """The process answers."""


def database() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    finally:
        connection.close()


def broker() -> None:
    with redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=2.0, socket_connect_timeout=2.0
    ) as client:
        client.ping()


def shutdown() -> str | None:
    """Whoever sends work here should stop to."""
    return "the worker is stopping" if shutting_down.is_set() else None


def handlers_synced() -> str | None:
    """Every run has listed its cluster once."""
    missing = [
        run.name
        for run in carried.all_runs()
        if run.scheduler is not None and not run.scheduler.is_synced
    ]
    return f"not listed yet: {', '.join(missing)}" if missing else None


def beat() -> str | None:
    """What beat sends arrives and is done, or cannot arrive because Redis is away."""
    silent = heartbeat.seconds_since()
    if silent <= BEAT_SECONDS:
        return None
    try:
        broker()
    except redis.RedisError:
        return None  # a restart would not help
    return f"nothing came from beat for {silent:.0f} s"


def loops() -> str | None:
    """Every run's scheduling loop turns, or waits for a database that is away."""
    hanging = [
        run.name
        for run in carried.all_runs()
        if run.metrics.seconds_since_turn() > LOOP_SECONDS and not _waits_for_database(run)
    ]
    return f"no turn for {LOOP_SECONDS:g} s: {', '.join(hanging)}" if hanging else None


def _waits_for_database(run: carried.CarriedRun) -> bool:
    """Its rows cannot be written, and a restart would not help."""
    return run.recorder.queued >= settings.KUBESCHED_RECORDER_QUEUE
