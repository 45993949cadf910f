"""Carrying a run: what ends it, and what is said then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection

from dashboard import carriage, hosted, leases, runner, sandbox_host
from dashboard.models import SchedulerRun, SchedulingCycle
from dashboard.sandboxes import create_sandbox
from scheduler_core.cluster.remote import RemoteSandbox
from scheduler_core.testing.builders import make_node, make_pod
from tests.contract.support import eventually

pytestmark = pytest.mark.django_db(transaction=True)


def as_task(work: Callable[..., object], number: int, **more: Any) -> None:
    """As Celery does: the thread's database connection is closed when its task has ended."""
    try:
        work(number, **more)
    finally:
        connection.close()


class Owner:
    """A sandbox's owner on a thread of its own."""

    def __init__(self, cluster_id: int) -> None:
        self.stop = threading.Event()
        ready = threading.Event()
        self._thread = threading.Thread(
            target=as_task,
            args=(sandbox_host.host, cluster_id),
            kwargs={"worker": "w@here", "stop": self.stop, "on_ready": ready.set},
        )
        self._thread.start()
        assert ready.wait(20)

    def end(self) -> None:
        self.stop.set()
        self._thread.join(20)


class Carrier:
    """A run's carrier on a thread of its own."""

    def __init__(self, run_id: int) -> None:
        self.stop = threading.Event()
        self.run_id = run_id
        self._thread = threading.Thread(
            target=as_task,
            args=(runner.run, run_id),
            kwargs={"worker": "w@here", "stop": self.stop},
        )
        self._thread.start()

    @property
    def state(self) -> str:
        return str(SchedulerRun.objects.values_list("state", flat=True).get(pk=self.run_id))

    def until(self, state: str) -> None:
        deadline = time.monotonic() + 20
        while self.state != state:
            assert time.monotonic() < deadline, self.state
            time.sleep(0.02)

    def has_ended(self, seconds: float = 10.0) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()


@pytest.fixture
def run(settings: Any, tmp_path: Path) -> SchedulerRun:
    settings.KUBESCHED_RUNTIME_DIR = tmp_path / "run"
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    return create_sandbox(name="box")[1]


@pytest.fixture
def begin() -> Iterator[Callable[..., Any]]:
    """Owners and carriers, which end with the test."""
    made: list[Any] = []

    def start(kind: type[Any], number: int) -> Any:
        made.append(kind(number))
        return made[-1]

    yield start
    for one in made:
        one.stop.set()
    for one in made:
        one._thread.join(20)


def test_a_run_ends_with_its_sandbox_and_goes_on_with_the_next_owner(
    run: SchedulerRun, begin: Callable[..., Any]
) -> None:
    """Its own lease is fresh all the while: without this it would watch a closed cluster for ever,
    and nobody else could carry it."""
    owner = begin(Owner, run.cluster_id)
    first = begin(Carrier, run.pk)
    first.until("running")
    owner.end()
    assert first.has_ended()
    assert first.state == "pending"
    assert not leases.is_fresh(leases.run_lease(run.pk), 60.0, time.time())

    begin(Owner, run.cluster_id)
    begin(Carrier, run.pk).until("running")


def test_a_run_beside_its_sandbox_binds_pods_and_ends_with_it(
    run: SchedulerRun, begin: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over the socket, as in a process of its own."""
    monkeypatch.setattr(hosted, "find", lambda cluster_id: None)
    owner = begin(Owner, run.cluster_id)
    carrier = begin(Carrier, run.pk)
    carrier.until("running")
    with closing(hosted.sandbox_client(run.cluster_id)) as sandbox:
        sandbox.create_all([make_node("n1").capacity(cpu="4", pods="10").raw()])
        sandbox.create_all([make_pod(name).raw() for name in ("a", "b")])
        eventually(lambda: _bound(sandbox) >= {"a", "b"})
        eventually(lambda: _told(sandbox) >= {"a", "b"})
    owner.end()
    assert carrier.has_ended()
    assert carrier.state == "pending"
    rows = SchedulingCycle.objects.filter(run=run, bound=True)
    assert set(rows.values_list("name", flat=True)) >= {"a", "b"}

    begin(Owner, run.cluster_id)
    begin(Carrier, run.pk).until("running")


def test_nothing_is_carried_beside_a_socket_that_a_killed_owner_left(
    run: SchedulerRun, begin: Callable[..., Any]
) -> None:
    path = hosted.socket_path(run.cluster_id)
    path.parent.mkdir(mode=0o700, parents=True)
    path.touch()
    assert begin(Carrier, run.pk).has_ended()
    assert not leases.is_fresh(leases.run_lease(run.pk), 60.0, time.time())


def _bound(sandbox: RemoteSandbox) -> set[str]:
    pods = sandbox.list("Pod").items
    return {pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")}


def _told(sandbox: RemoteSandbox) -> set[str]:
    events = sandbox.list("Event").items
    return {event["regarding"]["name"] for event in events if event["reason"] == "Scheduled"}


def test_a_run_does_not_hide_that_its_sandbox_failed(
    run: SchedulerRun, begin: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(Owner, run.cluster_id)
    carrier = begin(Carrier, run.pk)
    carrier.until("running")
    SchedulerRun.objects.filter(pk=run.pk).update(state="failed", message="The sandbox failed.")
    hosted.withdraw(run.cluster_id)
    assert carrier.has_ended()
    assert carrier.state == "failed"


def test_a_database_that_is_away_is_no_failure_of_the_run(
    run: SchedulerRun, begin: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(run_id: int) -> None:
        raise OperationalError("database is locked")

    begin(Owner, run.cluster_id)
    with monkeypatch.context() as patched:
        patched.setattr(carriage, "open_waits", away)
        carrier = begin(Carrier, run.pk)
        assert carrier.has_ended()
    assert carrier.state != "failed"
    begin(Carrier, run.pk).until("running")
