"""A cluster is removed with all that was recorded on it, by whoever types its name, and not while a
run uses it; and a cluster gets further runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard import leases
from dashboard.clusters import services
from dashboard.clusters.models import ClusterConnection
from dashboard.models import (
    AuditEntry,
    Cluster,
    CycleMatrix,
    Lease,
    RunListing,
    SchedulerRun,
    SchedulingCycle,
    WaitingPod,
)
from dashboard.recorder import Recorder
from scheduler_core.kube.access import InCluster
from tests.dashboard.factory import cycle, listing, matrix, wait

pytestmark = pytest.mark.django_db(transaction=True)

Make = Callable[..., Recorder]


@pytest.fixture
def run(keeper: User, monkeypatch: pytest.MonkeyPatch) -> SchedulerRun:
    monkeypatch.setattr(services, "_version", lambda access: "v1.36.0")
    return services.add(keeper, "staging", InCluster())


@pytest.fixture
def page(run: SchedulerRun) -> str:
    return f"/clusters/{run.cluster_id}/"


def remove(client: Client, page: str, name: str = "staging") -> Any:
    return client.post(f"{page}remove/", {"name": name})


# -- removing --------------------------------------------------------------------------------------


def test_it_goes_with_all_that_was_recorded(
    as_keeper: Client, keeper: User, run: SchedulerRun, page: str, make_recorder: Make
) -> None:
    other = services.add(keeper, "production", InCluster())
    services.add_run(keeper, run.cluster, "observe")
    for each in (run, other):
        recorder = make_recorder(each)
        recorder.cycle_finished(cycle(matrix=matrix()))
        recorder.pod_waiting(wait())
        recorder.queues_listed(listing())
        assert recorder.flush()
        recorder.close()
        assert CycleMatrix.objects.filter(run=each).exists()
        assert WaitingPod.objects.filter(run=each).exists()
    lease = leases.run_lease(run.pk)
    assert leases.acquire(lease, "a", "", 15, time.time() - 60)

    answer = remove(as_keeper, page)

    assert answer["location"] == "/"
    assert "staging is removed." in as_keeper.get("/").content.decode()
    assert [c.name for c in Cluster.objects.all()] == ["production"]
    assert [r.name for r in SchedulerRun.objects.all()] == ["production"]
    assert [c.cluster_id for c in ClusterConnection.objects.all()] == [other.cluster_id]
    for model in (SchedulingCycle, CycleMatrix, WaitingPod, RunListing):
        assert {row.run_id for row in model.objects.all()} == {other.pk}
    assert not Lease.objects.filter(name=lease).exists()
    row = AuditEntry.objects.get(verb="remove_cluster")
    assert (row.username, row.target) == ("kim", "staging")
    assert row.detail == {"runs": ["staging", "staging-observer"]}
    # What people did stays, also to runs that are gone.
    assert AuditEntry.objects.filter(verb="add_cluster", target="staging", run=None).exists()
    assert as_keeper.get(page).status_code == 404


@pytest.mark.parametrize(
    ("state", "wish", "message"),
    [
        pytest.param("running", "running", "still uses it: stop it first", id="running"),
        pytest.param("paused", "paused", "still uses it: stop it first", id="paused"),
        pytest.param("pending", "running", "still uses it: stop it first", id="waits for a worker"),
        pytest.param("running", "stopped", "still uses it: stop it first", id="is being stopped"),
        pytest.param("stopped", "running", "still uses it: stop it first", id="is being started"),
        pytest.param("failed", "running", "", id="failed"),
        pytest.param("failed", "stopped", "", id="failed, then stopped"),
        pytest.param("stopped", "stopped", "", id="stopped"),
    ],
)
def test_not_while_a_run_uses_it(
    as_keeper: Client, run: SchedulerRun, page: str, state: str, wish: str, message: str
) -> None:
    SchedulerRun.objects.update(state=state, desired_state=wish)
    shown = as_keeper.get(page).content.decode()
    answer = remove(as_keeper, page)
    if not message:
        assert "Remove for good" in shown
        assert not Cluster.objects.exists()
        return
    assert answer.status_code == 400
    assert f"“staging” {message}" in answer.content.decode()
    assert f"“staging” {message}" in shown
    assert "Remove for good" not in shown
    assert Cluster.objects.exists()
    assert not AuditEntry.objects.filter(verb="remove_cluster").exists()


def test_not_before_its_worker_has_let_go(as_keeper: Client, run: SchedulerRun, page: str) -> None:
    lease = leases.run_lease(run.pk)
    epoch = leases.acquire(lease, "a", "", 15, time.time())
    assert epoch
    assert "“staging” is ending: try again" in remove(as_keeper, page).content.decode()
    leases.release(lease, "a", epoch)
    assert remove(as_keeper, page).status_code == 302


@pytest.mark.parametrize("name", ["", "Staging", "production"])
def test_its_name_has_to_be_typed(
    as_keeper: Client, run: SchedulerRun, page: str, name: str
) -> None:
    answer = remove(as_keeper, page, name)
    assert answer.status_code == 400
    assert "Type staging to remove it." in answer.content.decode()
    assert Cluster.objects.exists()


def test_who_may(as_operator: Client, as_viewer: Client, run: SchedulerRun, page: str) -> None:
    for client in (as_operator, as_viewer):
        assert remove(client, page).status_code == 403
        assert "Remove staging" not in client.get(page).content.decode()
    assert remove(Client(), page).status_code == 302
    assert as_viewer.post(f"{page}runs/", {"mode": "observe"}).status_code == 403
    assert "Add a run" not in as_viewer.get(page).content.decode()
    assert as_operator.post(f"{page}runs/", {"mode": "observe"}).status_code == 302
    assert Cluster.objects.exists()


def test_a_sandbox_is_none(as_keeper: Client, db: None) -> None:
    sandbox = Cluster.objects.create(name="sandbox")
    assert remove(as_keeper, f"/clusters/{sandbox.pk}/", "sandbox").status_code == 404
    assert Cluster.objects.exists()


# -- further runs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "where", "config"),
    [
        pytest.param("observe", "observe/", "default-scheduler", id="observe"),
        pytest.param("schedule", "", "schedulerName: kubesched", id="schedule"),
    ],
)
def test_a_further_run_waits_to_be_started(
    as_keeper: Client, run: SchedulerRun, page: str, mode: str, where: str, config: str
) -> None:
    word = "observer" if mode == "observe" else "scheduler"
    for name in (f"staging-{word}", f"staging-{word}-2"):
        answer = as_keeper.post(f"{page}runs/", {"mode": mode})
        added = SchedulerRun.objects.get(name=name)
        assert answer["location"] == f"/runs/{added.pk}/{where}"
        assert (added.mode, added.state, added.desired_state) == (mode, "stopped", "stopped")
        assert config in added.config
        assert AuditEntry.objects.get(verb="create_run", run=added).detail == {"mode": mode}
    shown = as_keeper.get(page).content.decode()
    assert shown.index(f"staging-{word}-2") < shown.index(f"/runs/{run.pk}/")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({"mode": "schedule", "name": "staging"}, "has a run named", id="name taken"),
        pytest.param({"mode": "schedule", "name": "No Name"}, "lower-case letters", id="no name"),
        pytest.param({"mode": "sleep"}, "sleep is not one of", id="no such mode"),
        pytest.param({}, "This field is required", id="no mode"),
    ],
)
def test_runs_that_cannot_be_added(
    as_keeper: Client, run: SchedulerRun, page: str, fields: dict[str, str], message: str
) -> None:
    answer = as_keeper.post(f"{page}runs/", fields)
    assert answer.status_code == 400
    assert message in answer.content.decode()
    assert SchedulerRun.objects.count() == 1
