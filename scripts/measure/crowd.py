"""Ten thousand pods that wait at once: the rate of the others, and the waiting page."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts.measure import browser, lists

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from dashboard.benchmark.site import RunningSite
    from dashboard.models import SchedulerRun
    from scheduler_core.cluster.remote import RemoteSandbox

NAME = "crowd"
#: Objects that are made in one request.
BATCH = 500
READY_SECONDS = 90.0
NEWCOMERS = 10
SCROLL_FRAMES = 120

#: Milliseconds since the address was asked for: the first rows on the screen, all rows known.
WATCH = """
  window.__painted = [];
  window.__opened = {};
  document.addEventListener("kubesched:painted", ({ detail }) => {
    if (!detail.topics?.includes("waiting")) return;
    window.__painted.push(detail.drawMs);
    const times = window.__opened;
    if (document.querySelector(".wait, .gang")) times.rows ??= performance.now();
    if (times.rows && !detail.data.waiting.loading) times.complete ??= performance.now();
  });
"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--waiting", type=int, default=10_000, help="pods that wait for a person")
    parser.add_argument("--gang-size", type=int, default=8, help="half of them are in such gangs")
    parser.add_argument("--others", type=int, default=4_000, help="pods of a backlog")
    parser.add_argument("--runs", type=int, default=3, help="the median of so many backlogs")
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--opens", type=int, default=3, help="how often the page is opened")


def run(options: Namespace) -> dict[str, Any]:
    """Rates in decisions per second, from a backlog that is there when the scheduler goes on.

    ``alone``: nobody waits; ``crowded``: ``waiting`` pods do; ``watched``: they do, and a browser
    opens their page meanwhile. ``page``: milliseconds from asking for the address; ``news_ms``:
    from the creation of a pod to the page that counts it among those that wait.
    """
    folder = Path(tempfile.mkdtemp(prefix="kubesched-crowd-"))
    try:
        _set_up(folder)
        return _measure(options)
    finally:
        from django.db import connections

        connections.close_all()
        shutil.rmtree(folder, ignore_errors=True)


def _set_up(folder: Path) -> None:
    """Settings are read once: this process uses the folder's database, as all of the product do."""
    own = ("SECRET_KEY", "DATABASE_URL", "REDIS_URL", "ALLOWED_HOSTS", "DEBUG")
    for name in [n for n in os.environ if n in own or n.startswith("KUBESCHED_")]:
        del os.environ[name]
    os.environ |= {
        "KUBESCHED_MODE": "demo",
        "KUBESCHED_DATA_DIR": str(folder / "data"),
        "DJANGO_SETTINGS_MODULE": "kubesched_site.settings",
        # The browser's driver keeps a loop in this thread; queries are made between its calls.
        "DJANGO_ALLOW_ASYNC_UNSAFE": "true",
    }
    import django

    django.setup()


def _measure(options: Namespace) -> dict[str, Any]:
    from dashboard.benchmark.site import running_site

    made: list[SchedulerRun] = []
    with browser.chromium() as chromium, running_site(lambda: made.append(_prepare())) as site:
        crowd = _Crowd(site, made[0])
        crowd.create(_nodes(options.nodes))
        crowd.schedule("warm", options.others)
        alone = crowd.median("alone", options)
        crowd.wait_for_crowd(_waiting_pods(options.waiting, options.gang_size), options.waiting)
        crowded = crowd.median("crowded", options)
        opened: list[dict[str, Any]] = []
        watched = crowd.schedule(
            "watched",
            options.others,
            lambda: opened.append(crowd.open(chromium, options.waiting, scrolls=True)),
        )
        opened += [crowd.open(chromium, options.waiting) for _ in range(options.opens)]
        with crowd.page(chromium) as page:
            _wait_for_count(page, options.waiting)
            return {
                "waiting": options.waiting,
                "nodes": options.nodes,
                "alone": alone,
                "crowded": crowded,
                "watched": watched,
                "share_of_normal": round(crowded["per_s"] / alone["per_s"], 2),
                "page_while_scheduling": opened[0],
                "page": opened[1:],
                "news_ms": browser.figures(crowd.news(page, options.waiting)),
                "draw_ms": browser.figures(page.evaluate("window.__painted")),
            }


class _Crowd:
    """The product with one sandbox in it."""

    def __init__(self, site: RunningSite, run: SchedulerRun) -> None:
        self._site, self._run = site, run
        self._wait_for_state("running")

    def create(self, objects: Sequence[dict[str, Any]]) -> None:
        with self._sandbox() as sandbox:
            for first in range(0, len(objects), BATCH):
                sandbox.create_all(objects[first : first + BATCH])

    def wait_for_crowd(self, objects: Sequence[dict[str, Any]], count: int) -> None:
        self.create(objects)
        self._until(lambda: self._open_waits() == count, f"{count} pods wait")

    def median(self, name: str, options: Namespace) -> dict[str, float]:
        """The backlog of the middle one of several rates."""
        rounds = [self.schedule(f"{name}-{n}", options.others) for n in range(options.runs)]
        return sorted(rounds, key=lambda one: one["per_s"])[len(rounds) // 2]

    def schedule(
        self, name: str, count: int, meanwhile: Callable[[], object] = lambda: None
    ) -> dict[str, float]:
        """Have the scheduler work off ``count`` pods that are all there when it goes on."""
        from dashboard import runs
        from dashboard.benchmark.processes import cpu_seconds

        runs.control(self._run.pk, "pause", None)
        self._wait_for_state("paused")
        self.create([_pod(f"{name}-{number:06d}") for number in range(count)])
        worker = self._site.pids["loop worker"]
        before = cpu_seconds(worker) or 0.0
        runs.control(self._run.pk, "resume", None)
        meanwhile()
        self._until(lambda: self._cycles(name).count() >= count, f"{count} decisions")
        cpu = (cpu_seconds(worker) or 0.0) - before
        times = list(self._cycles(name).order_by("sequence").values_list("started_at", flat=True))
        seconds = times[-1] - times[0]
        return {
            "pods": count,
            "per_s": round((count - 1) / seconds, 1),
            "worker_cpu_ms_per_decision": round(cpu / count * 1000, 3),
        }

    def open(self, chromium: Browser, waiting: int, scrolls: bool = False) -> dict[str, Any]:
        """Open the waiting page as somebody whose browser has never been here."""
        with self.page(chromium) as page:
            _wait_for_count(page, waiting)
            page.wait_for_function("() => window.__opened.complete", polling=5)
            times: dict[str, float] = page.evaluate("window.__opened")
            found: dict[str, Any] = {f"{name}_ms": round(ms, 1) for name, ms in times.items()}
            if scrolls:
                found["scroll_ms"] = lists.scroll(page, "#waiting-list", SCROLL_FRAMES)
            return found

    def news(self, page: Page, waiting: int) -> list[float]:
        times = []
        for number in range(1, NEWCOMERS + 1):
            began = time.monotonic()
            self.create([_asking(f"late-{number}")])
            _wait_for_count(page, waiting + number)
            times.append((time.monotonic() - began) * 1000)
        return times

    @contextmanager
    def page(self, chromium: Browser) -> Iterator[Page]:
        from dashboard.benchmark.site import HOST

        base = f"http://{HOST}:{self._site.port}"
        page = browser.new_page(chromium, collect=False)
        name, value = _login()
        page.context.add_cookies([{"name": name, "value": value, "url": base}])
        page.add_init_script(WATCH)
        page.goto(f"{base}/runs/{self._run.pk}/waiting/", wait_until="commit")
        yield page
        page.context.close()

    @contextmanager
    def _sandbox(self) -> Iterator[RemoteSandbox]:
        from dashboard import hosted

        with closing(hosted.sandbox_client(self._run.cluster_id)) as sandbox:
            yield sandbox

    def _cycles(self, name: str) -> Any:
        from dashboard.models import SchedulingCycle

        return SchedulingCycle.objects.filter(run=self._run, name__startswith=f"{name}-")

    def _open_waits(self) -> int:
        from dashboard.models import WaitingPod

        return WaitingPod.objects.filter(run=self._run, state=WaitingPod.State.WAITING).count()

    def _wait_for_state(self, state: str) -> None:
        def is_so() -> bool:
            self._run.refresh_from_db()
            return bool(self._run.state == state)

        self._until(is_so, f"the run is {state}")

    def _until(self, ready: Callable[[], bool], what: str) -> None:
        self._site.wait_until(ready, what, READY_SECONDS)


def _wait_for_count(page: Page, waiting: int) -> None:
    page.wait_for_function(
        "(text) => { const note = document.querySelector('#waiting-note')?.textContent ?? '';"
        " return note.startsWith(text) && !note.includes('loaded so far'); }",
        arg=f"{waiting:,} pod",
        polling=5,
    )


# -- what is made ----------------------------------------------------------------------------------


def _prepare() -> SchedulerRun:
    """Tables, somebody who may decide, and an empty sandbox with the configuration of any other."""
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.db import connections

    from dashboard.sandboxes import create_sandbox

    call_command("migrate", interactive=False, verbosity=0)
    get_user_model().objects.create_superuser(NAME)
    _, run = create_sandbox(name=NAME, preset="empty")
    connections.close_all()
    return run


def _login() -> tuple[str, str]:
    """Name and value of a cookie, as the login form leaves it."""
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.test import Client

    client = Client()
    client.force_login(get_user_model().objects.get(username=NAME))
    name = settings.SESSION_COOKIE_NAME
    return name, client.cookies[name].value


def _nodes(count: int) -> list[dict[str, Any]]:
    from scheduler_core.testing.builders import make_node

    nodes = [make_node(f"node-{n:05d}") for n in range(count)]
    return [node.capacity(cpu="32", memory="256Gi", pods="110").raw() for node in nodes]


def _pod(name: str) -> dict[str, Any]:
    from scheduler_core.testing.builders import make_pod

    return dict(make_pod(name).req(cpu="100m", memory="500Mi").raw())


def _asking(name: str, gang: str = "") -> dict[str, Any]:
    from scheduler_core.testing.builders import make_pod

    pod = make_pod(name).req(cpu="100m", memory="500Mi")
    pod.label({"kubesched.io/approval": "required"})
    return dict((pod.pod_group(gang) if gang else pod).raw())


def _waiting_pods(count: int, size: int) -> list[dict[str, Any]]:
    """Half of them alone, half in gangs of ``size``; PodGroups first."""
    from scheduler_core.testing.builders import make_pod_group

    gangs = count // 2 // size
    groups = [make_pod_group(f"gang-{n:05d}", size).raw() for n in range(gangs)]
    members = [
        _asking(f"gang-{n:05d}-{member}", f"gang-{n:05d}")
        for n in range(gangs)
        for member in range(size)
    ]
    alone = [_asking(f"alone-asking-{n:05d}") for n in range(count - len(members))]
    return [*groups, *members, *alone]
