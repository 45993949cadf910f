"""A run on a real cluster: carried like any other, under the cluster's own lease."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.db import connection

from dashboard import runner
from dashboard.clusters import services
from dashboard.clusters.credentials import columns_of
from dashboard.clusters.hosting import HostedKube
from dashboard.clusters.models import ClusterConnection
from dashboard.models import SchedulerRun, SchedulingCycle
from scheduler_core.config import load_configuration
from scheduler_core.kube.access import Kubeconfig
from scheduler_core.plugins.registry import in_tree_registry
from tests.dashboard.clusters.conftest import Served

pytestmark = pytest.mark.django_db(transaction=True)

QUICK = """
leaderElection: {resourceName: kubesched, leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 400ms}
"""


class Carrier:
    """A worker that carries one run, on a thread of its own."""

    def __init__(self, run: SchedulerRun, worker: str = "w@here") -> None:
        self.stop = threading.Event()
        self._run = run
        self._worker = worker
        self._thread = threading.Thread(target=self._carry)
        self._thread.start()

    def _carry(self) -> None:
        try:
            runner.run(self._run.pk, worker=self._worker, stop=self.stop)
        finally:
            connection.close()

    def end(self) -> None:
        self.stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive()


@pytest.fixture(autouse=True)
def surroundings(settings: Any, tmp_path: Path) -> None:
    settings.KUBESCHED_RUNTIME_DIR = tmp_path / "run"
    settings.REDIS_URL = "unix:///nowhere/redis.sock"


@pytest.fixture
def carry() -> Iterator[Callable[[SchedulerRun], Carrier]]:
    made: list[Carrier] = []

    def begin(run: SchedulerRun) -> Carrier:
        SchedulerRun.objects.filter(pk=run.pk).update(desired_state="running", state="pending")
        made.append(Carrier(run))
        return made[-1]

    yield begin
    for carrier in made:
        carrier.end()


def config() -> str:
    found = yaml.safe_load(services.default_config())
    return yaml.safe_dump({**found, **yaml.safe_load(QUICK)})


def add(served: Served, name: str = "staging") -> SchedulerRun:
    return services.add(None, name, Kubeconfig(served.kubeconfig()), config())


def eventually(condition: Callable[[], bool], what: Callable[[], object] = lambda: "") -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, what()
        time.sleep(0.03)


def row(run: SchedulerRun) -> SchedulerRun:
    return SchedulerRun.objects.get(pk=run.pk)


def node(name: str) -> dict[str, Any]:
    room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    return {"metadata": {"name": name}, "status": {"capacity": room}}


def pod(name: str, scheduler: str = "kubesched") -> dict[str, Any]:
    container = {"name": "c", "image": "a", "resources": {"requests": {"cpu": "1"}}}
    return {
        "metadata": {"name": name},
        "spec": {"schedulerName": scheduler, "containers": [container]},
    }


def node_of(served: Served, name: str) -> str:
    return str(served.sandbox.get("Pod", "default", name)["spec"].get("nodeName", ""))


def test_pods_of_its_profiles_are_bound_and_recorded_and_others_left_alone(
    served: Served, carry: Callable[[SchedulerRun], Carrier]
) -> None:
    run = add(served)
    served.sandbox.create("Node", node("n1"))
    served.sandbox.create("Pod", pod("ours"))
    served.sandbox.create("Pod", pod("theirs", "default-scheduler"))
    carrier = carry(run)
    eventually(lambda: node_of(served, "ours") == "n1", lambda: row(run).message)
    eventually(lambda: row(run).bound == 1)
    assert node_of(served, "theirs") == ""
    assert row(run).state == "running"

    carrier.end()
    assert row(run).state == "pending"
    lease = served.sandbox.get("Lease", "kube-system", "kubesched")
    assert lease["spec"]["holderIdentity"] == ""  # given back: the next one need not wait


def test_of_two_runs_with_one_lease_one_schedules_and_the_other_waits(
    served: Served, carry: Callable[[SchedulerRun], Carrier]
) -> None:
    first, second = add(served), add(served, "copy")
    leading = carry(first)
    eventually(lambda: row(first).state == "running")
    carry(second)
    eventually(lambda: "Waits for the lease kube-system/kubesched, which" in row(second).message)
    assert row(second).state == "starting"
    served.sandbox.create("Node", node("n1"))
    leading.end()
    eventually(lambda: row(second).state == "running", lambda: row(second).message)
    served.sandbox.create("Pod", pod("ours"))
    eventually(lambda: node_of(served, "ours") == "n1")
    assert not SchedulingCycle.objects.filter(run=first).exists()


def test_a_run_that_waits_for_the_lease_can_be_stopped(
    served: Served, carry: Callable[[SchedulerRun], Carrier]
) -> None:
    first, second = add(served), add(served, "copy")
    carry(first)
    eventually(lambda: row(first).state == "running")
    waiting = carry(second)
    eventually(lambda: "Waits for the lease" in row(second).message)
    SchedulerRun.objects.filter(pk=second.pk).update(desired_state="stopped")
    waiting._thread.join(20)
    assert row(second).state == "stopped"


def test_a_cluster_that_cannot_be_reached_is_said_and_tried_again(
    served: Served, carry: Callable[[SchedulerRun], Carrier]
) -> None:
    run = add(served)
    connection_row = ClusterConnection.objects.get(cluster=run.cluster)
    text = served.kubeconfig().replace(served.url, "http://127.0.0.1:1")
    ClusterConnection.objects.filter(pk=connection_row.pk).update(**columns_of(Kubeconfig(text)))
    carry(run)
    eventually(lambda: "http://127.0.0.1:1 cannot be reached" in row(run).message)
    assert row(run).state == "pending"
    assert row(run).message.endswith("It is tried again.")


def test_credentials_that_are_refused_end_the_run_and_say_so(
    served: Served, carry: Callable[[SchedulerRun], Carrier]
) -> None:
    run = add(served)
    ClusterConnection.objects.filter(cluster=run.cluster).update(
        **columns_of(Kubeconfig(served.kubeconfig("wrong")))
    )
    carry(run)
    eventually(lambda: row(run).state == "failed")
    assert "does not accept these credentials (401 Unauthorized)." in row(run).message


def test_a_configuration_changes_the_rate_limit(
    served: Served, carry: Callable[[SchedulerRun], Carrier]
) -> None:
    run = add(served)
    host = HostedKube(run.cluster_id)
    host.open()
    host.prepare(load_configuration(config(), in_tree_registry()))
    limit = host.cluster._api.limit
    assert (limit._qps, limit._burst) == (100, 200)
    host.close()
