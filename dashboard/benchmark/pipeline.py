"""``benchmark pipeline``: scheduler, recorder, publisher and pages at work together.

The product runs as `manage.py serve` runs it, with a sandbox in which pods arrive faster than they
can be scheduled, or as fast as asked for. It is looked at from outside: rows, frames, CPU time.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.core.management import call_command
from django.db import DatabaseError, connection, connections
from websocket import WebSocketException

from dashboard import hosted, runs
from dashboard.benchmark.figures import CycleTimes, PipelineReport, page_figures
from dashboard.benchmark.pages import Readers
from dashboard.benchmark.processes import cpu_seconds, peak_rss_mib
from dashboard.benchmark.site import HOST, BenchmarkFailed, RunningSite, running_site
from dashboard.models import Cluster, Sandbox, SchedulerRun, SchedulingCycle
from dashboard.sandboxes import default_config
from scheduler_core.workloads.streams import Draw
from scheduler_core.workloads.synthetic import synthetic_pod

#: Set for the process that measures: the folder with its data, which it deletes.
FOLDER_VARIABLE: Final = "KUBESCHED_BENCHMARK_FOLDER"
NAME: Final = "benchmark"
#: Until everything runs and is warm.
READY_SECONDS: Final = 90.0
WARM_UP_SECONDS: Final = 5.0
#: Until the pause is felt and the recorder has written what it holds.
SETTLE_SECONDS: Final = 120.0
#: Pods that are made in one request.
BATCH: Final = 500
_STILL_SECONDS: Final = 1.0

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """
    Attributes:
        nodes: of the sandbox.
        rate: pods that arrive per second; 0: none but those that wait already.
        backlog: pods that wait when the scheduler begins.
        run_seconds: how long a pod runs on average.
        pages: websockets.
        seconds: measured, after everything is warm.
    """

    nodes: int = 1000
    rate: float = 1100.0
    backlog: int = 0
    run_seconds: float = 10.0
    pages: int = 20
    seconds: float = 60.0


def begin_in_own_folder(database: str | None, redis: str | None) -> None:
    """Start this same command again with settings of its own; does not return.

    Settings are read before a command is, and a benchmark must not touch the data of a site.

    Args:
        database / redis: URLs to use instead of SQLite and a broker in the folder.
    """
    folder = tempfile.mkdtemp(prefix="kubesched-benchmark-")
    own = ("SECRET_KEY", "DATABASE_URL", "REDIS_URL", "ALLOWED_HOSTS", "DEBUG")
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in own and not name.startswith("KUBESCHED_")
    }
    kept.update(KUBESCHED_MODE="demo", KUBESCHED_DATA_DIR=str(Path(folder, "data")))
    kept[FOLDER_VARIABLE] = folder
    kept.update({"DATABASE_URL": database} if database else {})
    kept.update({"REDIS_URL": redis} if redis else {})
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *sys.argv], kept)  # noqa: S606 - this same command


def has_own_folder() -> bool:
    return bool(os.environ.get(FOLDER_VARIABLE))


def measure(options: PipelineOptions, progress: Progress = lambda seconds: None) -> PipelineReport:
    """Run it all; the folder is gone afterwards.

    Raises:
        BenchmarkFailed: it does not run, or the database is somebody's.
    """
    folder = Path(os.environ[FOLDER_VARIABLE])
    made: list[SchedulerRun] = []
    try:
        with running_site(lambda: made.append(_prepare(options))) as site:
            (run,) = made
            _wait_for_run(site, run, options)
            with _open_pages(site, run, options.pages) as readers:
                site.wait(WARM_UP_SECONDS)
                before, began = _cpu(site), time.time()
                _let_run(site, options.seconds, progress)
                seconds, after = time.time() - began, _cpu(site)
            memory = _memory(site)
            bound = _stop_and_list(site, run)
        return _report(options, run, site, readers, began, seconds, bound, before, after, memory)
    finally:
        connections.close_all()
        shutil.rmtree(folder, ignore_errors=True)


# -- set-up ----------------------------------------------------------------------------------------


def _prepare(options: PipelineOptions) -> SchedulerRun:
    """Tables, a user, and a sandbox that is wanted as soon as a worker looks."""
    try:
        call_command("migrate", interactive=False, verbosity=0)
        if Cluster.objects.exists():
            raise BenchmarkFailed("the database has clusters in it; name one that is empty")
    except DatabaseError as error:
        raise BenchmarkFailed(f"the database cannot be used: {error}") from error
    preset = {
        "name": NAME,
        "nodes": options.nodes,
        "arrivals": options.rate,
        "run_seconds": options.run_seconds,
        # Room for what runs and as much again that waits: the queue never runs dry, nor grows.
        "most_pods": max(100, options.backlog + int(2 * options.rate * options.run_seconds)),
    }
    cluster = Cluster.objects.create(name=NAME)
    Sandbox.objects.create(
        cluster=cluster, preset=NAME, workload={"kind": "synthetic", "preset": preset}
    )
    wanted = SchedulerRun.DesiredState
    run = runs.create_run(
        cluster,
        name=NAME,
        config=default_config(),
        desired_state=wanted.PAUSED if options.backlog else wanted.RUNNING,
    )
    get_user_model().objects.create_user(NAME)
    connections.close_all()
    return run


def _wait_for_run(site: RunningSite, run: SchedulerRun, options: PipelineOptions) -> None:
    if options.backlog:
        state = SchedulerRun.State.PAUSED
        site.wait_until(lambda: _is(run, state), "the scheduler is ready", READY_SECONDS)
        _create_backlog(run, options)
        runs.control(run.pk, "resume", None)
    state = SchedulerRun.State.RUNNING
    site.wait_until(lambda: _is(run, state), "the scheduler runs", READY_SECONDS)
    site.wait_until(lambda: _last_sequence(run) > 0, "the first decision", READY_SECONDS)


def _create_backlog(run: SchedulerRun, options: PipelineOptions) -> None:
    """The same pods as the stream's, all of them before the first is scheduled."""
    draw = Draw(1)
    pods = [
        synthetic_pod(f"task-{number:07d}", draw, options.run_seconds, with_gpus=False)
        for number in range(options.backlog)
    ]
    with closing(hosted.sandbox_client(run.cluster_id)) as sandbox:
        for first in range(0, len(pods), BATCH):
            sandbox.create_all(pods[first : first + BATCH])


@contextmanager
def _open_pages(site: RunningSite, run: SchedulerRun, count: int) -> Iterator[Readers]:
    readers = Readers(HOST, site.port, run.pk, [_cookie() for _ in range(count)])
    try:
        try:
            readers.open()
        except (OSError, WebSocketException) as error:
            raise BenchmarkFailed(f"the web server takes no websocket: {error}") from error
        site.wait_until(lambda: readers.are_live, "all pages are live", READY_SECONDS)
        yield readers
    finally:
        readers.close()


def _cookie() -> str:
    """A login, as the login form leaves it."""
    user = get_user_model().objects.get(username=NAME)
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return f"{settings.SESSION_COOKIE_NAME}={session.session_key}"


# -- the measured part, and its end ----------------------------------------------------------------


def _let_run(site: RunningSite, seconds: float, progress: Progress) -> None:
    end = time.monotonic() + seconds
    while (rest := end - time.monotonic()) > 0:
        site.wait(min(1.0, rest))
        progress(seconds - max(0.0, end - time.monotonic()))


def _stop_and_list(site: RunningSite, run: SchedulerRun) -> set[str]:
    """Pause the scheduler, wait until the recorder has written it all, and ask the sandbox itself
    which pods have a node: their uids."""
    runs.control(run.pk, "pause", None)
    site.wait_until(lambda: _is(run, SchedulerRun.State.PAUSED), "the run pauses", SETTLE_SECONDS)
    site.wait_until(_stands_still(run), "the recorder has written all", SETTLE_SECONDS)
    with closing(hosted.sandbox_client(run.cluster_id)) as sandbox:
        pods = sandbox.list("Pod").items
    return {pod["metadata"]["uid"] for pod in pods if pod["spec"].get("nodeName")}


def _stands_still(run: SchedulerRun) -> Callable[[], bool]:
    """Whether nothing about decisions and bindings has been written for a moment. (Pods go on
    arriving, so the length of the queue does.)"""
    last: tuple[int, ...] = ()
    since = time.monotonic()

    def is_still() -> bool:
        nonlocal last, since
        now = SchedulerRun.objects.values_list("last_sequence", "bound", "bind_failed").get(
            pk=run.pk
        )
        if now != last:
            last, since = now, time.monotonic()
        return time.monotonic() - since > _STILL_SECONDS

    return is_still


def _is(run: SchedulerRun, state: str) -> bool:
    now, message = SchedulerRun.objects.values_list("state", "message").get(pk=run.pk)
    if now == SchedulerRun.State.FAILED:
        raise BenchmarkFailed(f"the run failed: {message}")
    return bool(now == state)


def _last_sequence(run: SchedulerRun) -> int:
    return SchedulerRun.objects.values_list("last_sequence", flat=True).get(pk=run.pk)


def _cpu(site: RunningSite) -> Mapping[str, float]:
    used = {name: cpu_seconds(pid) for name, pid in site.pids.items()}
    return {name: seconds for name, seconds in used.items() if seconds is not None}


def _memory(site: RunningSite) -> Mapping[str, float]:
    used = {name: peak_rss_mib(pid) for name, pid in site.pids.items()}
    return {name: mib for name, mib in used.items() if mib is not None}


# -- counting --------------------------------------------------------------------------------------


def _report(
    options: PipelineOptions,
    run: SchedulerRun,
    site: RunningSite,
    readers: Readers,
    began: float,
    seconds: float,
    bound: set[str],
    before: Mapping[str, float],
    after: Mapping[str, float],
    memory: Mapping[str, float],
) -> PipelineReport:
    """Everything has been stopped: what is in the database now is what was kept."""
    run.refresh_from_db()
    rows = SchedulingCycle.objects.filter(run=run)
    sequences = rows.order_by("-sequence").values_list("sequence", flat=True)
    recorded_bound = set(rows.filter(bound=True).values_list("pod_uid", flat=True))
    return PipelineReport(
        workload="synthetic",
        nodes=options.nodes,
        pages=page_figures(readers.logs, began, seconds),
        seconds=seconds,
        cycles=_cycle_times(run, began, seconds),
        decided=sequences.first() or 0,
        recorded=rows.count(),
        bound=len(bound),
        bound_recorded=len(bound & recorded_bound),
        cpu={name: (after[name] - before.get(name, 0.0)) / seconds for name in after},
        rss_mib=memory,
        back_pressure=run.back_pressure_seconds,
        matrices_dropped=run.matrices_dropped,
        database=connection.display_name,
        broker=site.broker,
        restarts=tuple(site.restarts),
    )


def _cycle_times(run: SchedulerRun, began: float, seconds: float) -> CycleTimes:
    rows = SchedulingCycle.objects.filter(
        run=run, started_at__gte=began, started_at__lt=began + seconds
    )
    durations: list[float] = []
    outcomes: Counter[str] = Counter()
    per_second = [0] * int(seconds)
    points: defaultdict[str, float] = defaultdict(float)
    plugins: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    fields = rows.values_list("started_at", "duration", "outcome", "detail")
    for at, duration, outcome, detail in fields.iterator(chunk_size=1000):
        durations.append(duration)
        outcomes[outcome] += 1
        if (second := int(at - began)) < len(per_second):
            per_second[second] += 1
        _add(detail, points, plugins)
    return CycleTimes(
        durations, per_second, _sorted(points), {p: _sorted(of) for p, of in plugins.items()},
        dict(sorted(outcomes.items())),
    )  # fmt: skip


def _add(
    detail: Mapping[str, Any],
    points: defaultdict[str, float],
    plugins: defaultdict[str, defaultdict[str, float]],
) -> None:
    for point, spent in detail.get("point_seconds", {}).items():
        points[point] += spent
    for point, plugin, spent in _plugin_seconds(detail.get("plugin_seconds", ())):
        plugins[point][plugin] += spent


def _plugin_seconds(found: Any) -> Sequence[tuple[str, str, float]]:
    return [(point, plugin, spent) for point, plugin, spent in found]


def _sorted(seconds: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(seconds.items(), key=lambda item: -item[1]))
