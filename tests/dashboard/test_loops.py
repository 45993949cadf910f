"""Who is proposed to carry what: wanted, and carried by nobody."""

from __future__ import annotations

import threading
import time

import pytest
from celery.utils.nodenames import worker_direct
from django.db import connection

from dashboard import leases, loops, sandbox_host
from dashboard.lease_keeper import LeaseKeeper
from dashboard.models import Cluster, Sandbox, SchedulerRun
from dashboard.runs import create_run

pytestmark = pytest.mark.django_db(transaction=True)

Sent = list[tuple[str, int, str]]


@pytest.fixture
def sandbox() -> Sandbox:
    cluster = Cluster.objects.create(name="test")
    return Sandbox.objects.create(cluster=cluster)


@pytest.fixture
def run(sandbox: Sandbox) -> SchedulerRun:
    return create_run(sandbox.cluster, name="run", config="")


def ensure() -> Sent:
    sent: Sent = []
    assert loops.ensure(lambda *what: sent.append(what)) == len(sent)
    return sent


def hold(name: str, worker: str = "loop@here") -> None:
    assert leases.acquire(name, "holder", worker, 60.0, time.time()) is not None


def test_a_sandbox_without_owner_comes_before_its_runs(sandbox: Sandbox, run: SchedulerRun) -> None:
    assert ensure() == [("host_sandbox", sandbox.pk, "")]


def test_a_run_goes_to_the_process_that_owns_its_sandbox(
    sandbox: Sandbox, run: SchedulerRun
) -> None:
    hold(leases.sandbox_lease(sandbox.pk))
    assert ensure() == [("run_scheduler", run.pk, worker_direct("loop@here").name)]


@pytest.mark.parametrize(
    ("clock", "worker"),
    [
        pytest.param("realtime", "loop@here", id="beside it"),
        pytest.param("scaled", "loop@here", id="beside it, at another speed"),
        pytest.param("max", "sandbox@here", id="with it where time jumps ahead"),
    ],
)
def test_a_run_goes_to_the_machine_that_has_its_sandbox_in_a_process_of_its_own(
    sandbox: Sandbox, run: SchedulerRun, clock: str, worker: str
) -> None:
    Sandbox.objects.filter(pk=sandbox.pk).update(clock_mode=clock)
    hold(leases.sandbox_lease(sandbox.pk), "sandbox@here")
    assert ensure() == [("run_scheduler", run.pk, worker_direct(worker).name)]


def test_what_is_carried_is_not_proposed(sandbox: Sandbox, run: SchedulerRun) -> None:
    hold(leases.sandbox_lease(sandbox.pk))
    hold(leases.run_lease(run.pk))
    assert ensure() == []


def test_a_lease_that_is_not_renewed_is_proposed_again(sandbox: Sandbox) -> None:
    name = leases.sandbox_lease(sandbox.pk)
    assert leases.acquire(name, "dead", "loop@here", 60.0, time.time() - 3600) is not None
    assert ensure() == [("host_sandbox", sandbox.pk, "")]


@pytest.mark.parametrize(
    ("wish", "state"),
    [
        pytest.param("stopped", "running", id="a person stopped it"),
        pytest.param("running", "failed", id="it failed"),
    ],
)
def test_what_is_not_wanted_is_not_proposed(
    sandbox: Sandbox, run: SchedulerRun, wish: str, state: str
) -> None:
    hold(leases.sandbox_lease(sandbox.pk))
    SchedulerRun.objects.filter(pk=run.pk).update(desired_state=wish, state=state)
    assert ensure() == []


def test_a_paused_run_is_carried_all_the_same(sandbox: Sandbox, run: SchedulerRun) -> None:
    hold(leases.sandbox_lease(sandbox.pk))
    SchedulerRun.objects.filter(pk=run.pk).update(desired_state="paused")
    assert [task for task, _, _ in ensure()] == ["run_scheduler"]


def test_a_second_copy_of_a_host_returns_at_once(sandbox: Sandbox) -> None:
    hold(leases.sandbox_lease(sandbox.pk))
    assert not sandbox_host.host(sandbox.pk, worker="loop@there", stop=threading.Event())


def test_a_host_serves_until_the_worker_stops(sandbox: Sandbox) -> None:
    stop, ready = threading.Event(), threading.Event()

    def carry() -> None:
        sandbox_host.host(sandbox.pk, worker="loop@here", stop=stop, on_ready=ready.set)
        connection.close()

    host = threading.Thread(target=carry)
    host.start()
    try:
        assert ready.wait(10.0)
        row = Sandbox.objects.get(pk=sandbox.pk)
        assert row.state == Sandbox.State.RUNNING
        assert row.resource_version > 0
    finally:
        stop.set()
        host.join(10.0)
    assert not leases.is_fresh(leases.sandbox_lease(sandbox.pk), 60.0, time.time())
    assert Sandbox.objects.get(pk=sandbox.pk).state == Sandbox.State.PENDING


def test_a_workload_that_cannot_be_made_fails_the_sandbox_and_its_runs_in_words(
    sandbox: Sandbox, run: SchedulerRun
) -> None:
    Sandbox.objects.filter(pk=sandbox.pk).update(workload={"kind": "magic"})
    sandbox_host.host(sandbox.pk, worker="loop@here", stop=threading.Event())
    row = Sandbox.objects.get(pk=sandbox.pk)
    assert row.state == Sandbox.State.FAILED
    assert row.message == "Workload: {'kind': 'magic'}: unknown kind of workload 'magic'"
    run.refresh_from_db()
    assert (run.state, run.message) == (SchedulerRun.State.FAILED, row.message)


def test_a_keeper_tells_when_its_lease_is_lost(sandbox: Sandbox) -> None:
    name = leases.sandbox_lease(sandbox.pk)
    looks: list[float] = []
    keeper = LeaseKeeper.acquire(name, "loop@here", lambda: looks.append(time.time()))
    assert keeper is not None
    assert LeaseKeeper.acquire(name, "loop@here") is None
    with keeper:
        assert leases.acquire(name, "thief", "", 0.0, time.time() + 1) is not None
        assert keeper.lost.wait(10.0)
    assert leases.view(name, 60.0, time.time()).holder == "thief"
