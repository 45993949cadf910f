"""Runs that observe, carried by the worker's real loop on a real sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dashboard import hosted, recorder
from dashboard.hosted import HostedSandbox
from dashboard.models import SchedulerRun
from dashboard.observe.models import ObservedPod
from dashboard.observe.services import default_config
from scheduler_core.clock import RealClock
from scheduler_core.cluster.journal import MemoryJournal
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.testing.builders import make_node, make_pod
from tests.dashboard.factory import FakePublisher, make_run
from tests.dashboard.live_run import Worker, until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quick(settings: Any, monkeypatch: pytest.MonkeyPatch, published: FakePublisher) -> None:
    settings.KUBESCHED_LEASE_SECONDS = 2.0
    settings.REDIS_URL = ""
    monkeypatch.setattr(recorder, "get_publisher", lambda: published)


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()


@pytest.fixture
def cluster(journal: MemoryJournal) -> Iterator[SandboxCluster]:
    with SandboxCluster(RealClock(), journal, pace=0.001) as made:
        for name, cpu in (("big", "16"), ("small", "4")):
            made.create("Node", make_node(name).capacity(cpu=cpu, memory="16Gi").raw())
        yield made


@pytest.fixture
def run(db: None, cluster: SandboxCluster) -> Iterator[SchedulerRun]:
    made = make_run("w", mode=SchedulerRun.Mode.OBSERVE, config=default_config("observe"))
    hosted.publish(made.cluster_id, HostedSandbox(cluster))
    yield made
    hosted.withdraw(made.cluster_id)


def verdict(run: SchedulerRun, name: str) -> str:
    row = ObservedPod.objects.filter(run=run, name=name).first()
    return "" if row is None else row.verdict


def place(cluster: SandboxCluster, name: str, node: str) -> None:
    uid = cluster.get("Pod", "default", name)["metadata"]["uid"]
    cluster.as_actor("other").bind("default", name, uid, node)


def test_a_run_observes_and_goes_on_after_a_restart(
    run: SchedulerRun, cluster: SandboxCluster, journal: MemoryJournal
) -> None:
    worker = Worker(run, cluster)
    worker.start()
    worker.wait_for(state="running")
    for name in ("now", "later", "while-away", "never"):
        cluster.create("Pod", make_pod(name).req(cpu="1").raw())
    until(
        lambda: ObservedPod.objects.filter(run=run, verdict="pending").count() == 4,
        "all are looked at",
    )
    place(cluster, "now", "small")
    until(lambda: verdict(run, "now") == "differs", "the difference is recorded")
    worker.stop()
    place(cluster, "while-away", "big")
    run.refresh_from_db()
    last = run.last_sequence

    # The next worker takes up what was left.
    worker = Worker(run, cluster)
    worker.start()
    until(lambda: verdict(run, "while-away") == "missed", "what was missed is said so")
    place(cluster, "later", "big")
    until(lambda: verdict(run, "later") == "agree", "the next pod is judged")
    worker.stop()
    assert verdict(run, "never") == "pending"
    assert ObservedPod.objects.get(run=run, name="later").sequence > last
    assert ObservedPod.objects.get(run=run, name="now").ours == "big"
    # It has left no trace in the cluster.
    assert "observer" not in {write.actor for write in journal.writes}
    assert not cluster.list("Event").items


def test_another_configuration_judges_the_next_pods(
    run: SchedulerRun, cluster: SandboxCluster
) -> None:
    packing = (
        default_config("observe")
        + """\
    pluginConfig:
      - name: NodeResourcesFit
        args:
          scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}
"""
    )
    worker = Worker(run, cluster)
    worker.start()
    try:
        worker.wait_for(state="running")
        cluster.create("Pod", make_pod("one").req(cpu="1").raw())
        until(lambda: verdict(run, "one"), "it is looked at")
        place(cluster, "one", "big")
        until(lambda: verdict(run, "one") == "agree", "room is preferred")
        worker.change(packing)
        worker.wait_for(applied_config_version=2)
        cluster.create("Pod", make_pod("two").req(cpu="1").raw())
        until(lambda: verdict(run, "two"), "it is looked at")
        place(cluster, "two", "big")
        until(lambda: verdict(run, "two") == "differs", "what is full is preferred")
    finally:
        worker.stop()
    assert ObservedPod.objects.get(run=run, name="two").ours == "small"
