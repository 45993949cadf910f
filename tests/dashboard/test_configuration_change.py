"""A changed configuration in a run that goes on: the real loop on a real sandbox, in a thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from dashboard import hosted, permits, recorder, runs
from dashboard.hosted import HostedSandbox
from dashboard.models import AuditEntry, SchedulingCycle, WaitingPod
from dashboard.permits import Target
from scheduler_core.clock import RealClock
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.testing.builders import make_node, make_pod
from tests.dashboard.factory import FakePublisher, make_run
from tests.dashboard.live_run import HEAD, Worker, only_on, until

pytestmark = pytest.mark.django_db(transaction=True)

APPROVAL = "kubesched.io/approval"


@pytest.fixture(autouse=True)
def quick(settings: Any, monkeypatch: pytest.MonkeyPatch, published: FakePublisher) -> None:
    settings.KUBESCHED_LEASE_SECONDS = 2.0
    settings.REDIS_URL = ""
    monkeypatch.setattr(recorder, "get_publisher", lambda: published)


@pytest.fixture
def make_worker(db: None) -> Iterator[Callable[..., Worker]]:
    """Workers on sandboxes with the nodes a and b."""
    workers: list[Worker] = []

    def make(config: str, **columns: Any) -> Worker:
        run = make_run(f"run-{len(workers)}", config=config, **columns)
        cluster = SandboxCluster(RealClock())
        for name in ("a", "b"):
            cluster.create("Node", make_node(name).raw())
        hosted.publish(run.cluster_id, HostedSandbox(cluster))
        worker = Worker(run, cluster)
        workers.append(worker)
        return worker

    yield make
    for worker in workers:
        worker.stop()
        hosted.withdraw(worker.run.cluster_id)
        worker.cluster.close()


def test_a_change_takes_effect_at_the_next_cycle(
    make_worker: Callable[..., Worker], operator: User
) -> None:
    worker = make_worker(only_on("a"))
    worker.start()
    first = worker.wait_for(applied_config_version=1)
    assert first.applied_config == only_on("a")
    assert [worker.place(f"before-{i}") for i in range(3)] == ["a", "a", "a"]
    worker.change(only_on("b"), operator)
    run = worker.wait_for(applied_config_version=2)
    assert (run.applied_config, run.config_error, run.state) == (only_on("b"), "", "running")
    assert [worker.place(f"after-{i}") for i in range(3)] == ["b", "b", "b"]
    until(lambda: worker.sequences() == [1, 2, 3, 4, 5, 6], "every cycle is recorded, numbered on")
    (entry,) = AuditEntry.objects.filter(run=run)
    assert (entry.verb, entry.outcome) == ("change_config", "applied")


def test_a_waiting_pod_stays_on_its_node_with_its_deadline(
    make_worker: Callable[..., Worker], operator: User
) -> None:
    worker = make_worker(only_on("a"))
    worker.start()
    worker.cluster.create("Pod", make_pod("held").label({APPROVAL: "required"}).req(cpu="1").raw())
    before = until(lambda: WaitingPod.objects.filter(run=worker.run).first(), "held waits")
    # The node stays right for it; a time that is shorter from now on is none of its business.
    worker.change(only_on("a", timeout=100), operator)
    worker.wait_for(applied_config_version=2)
    until(
        lambda: WaitingPod.objects.filter(run=worker.run, cycle__gt=before.cycle).count(), "taken"
    )
    (after,) = WaitingPod.objects.filter(run=worker.run)
    assert (after.pk, after.state, after.node) == (before.pk, "waiting", "a")
    assert (after.since, after.deadline) == (before.since, before.deadline)
    outcome = permits.decide(operator, "approve", Target.rows(worker.run.pk, [after.pk]))
    assert outcome[0].ok
    assert until(lambda: worker.node_of("held"), "held is bound") == "a"
    assert worker.place("next") == "a"
    assert worker.sequences()[:2] == [1, 2]
    after.refresh_from_db()
    assert after.state == "allowed"


def test_a_waiting_pod_whose_node_is_no_longer_right_is_tried_anew(
    make_worker: Callable[..., Worker], operator: User
) -> None:
    worker = make_worker(only_on("a"))
    worker.start()
    worker.cluster.create("Pod", make_pod("held").label({APPROVAL: "required"}).req(cpu="1").raw())
    before = until(lambda: WaitingPod.objects.filter(run=worker.run).first(), "held waits")
    worker.change(only_on("b"), operator)
    found = WaitingPod.objects.filter(run=worker.run, node="b", state="waiting")
    until(found.count, "held waits on b")
    before.refresh_from_db()
    assert before.state == "rejected"
    assert "no longer fits on a" in before.message


def test_a_paused_run_stays_paused(make_worker: Callable[..., Worker], operator: User) -> None:
    worker = make_worker(only_on("a"))
    worker.start()
    worker.place("one")
    runs.control(worker.run.pk, "pause", operator)
    worker.wait_for(state="paused")
    worker.change(only_on("b"), operator)
    worker.wait_for(applied_config_version=2)
    worker.cluster.create("Pod", make_pod("two").req(cpu="1").raw())
    time.sleep(1.0)
    assert (worker.node_of("two"), worker.sequences()) == ("", [1])
    runs.control(worker.run.pk, "resume", operator)
    assert until(lambda: worker.node_of("two"), "two is bound") == "b"


def test_a_configuration_that_cannot_be_made_here_changes_nothing(
    make_worker: Callable[..., Worker], operator: User
) -> None:
    worker = make_worker(only_on("a"))
    worker.start()
    assert worker.place("one") == "a"
    worker.force(HEAD + "percentageOfNodesToScore: 101\n")
    run = worker.wait_for(config_version=2, config_error__gt="")
    assert "percentageOfNodesToScore: Invalid value: 101" in run.config_error
    assert (run.state, run.applied_config_version, run.applied_config) == (
        "running", 1, only_on("a"),
    )  # fmt: skip
    assert worker.place("two") == "a"
    worker.change(only_on("b"), operator)
    run = worker.wait_for(applied_config_version=3)
    assert run.config_error == ""
    assert worker.place("three") == "b"
    until(lambda: worker.sequences() == [1, 2, 3], "numbers go on")


def test_the_next_worker_goes_on_with_what_was_used_last(
    make_worker: Callable[..., Worker],
) -> None:
    worker = make_worker(
        HEAD + "parallelism: 0\n",
        config_version=5,
        applied_config=only_on("b"),
        applied_config_version=4,
    )
    worker.start()
    assert worker.place("one") == "b"
    run = worker.wait_for(config_error__gt="")
    assert "parallelism: Invalid value: 0" in run.config_error
    assert (run.applied_config_version, run.state) == (4, "running")


def test_a_first_configuration_that_cannot_be_made_fails_the_run(
    make_worker: Callable[..., Worker], operator: User
) -> None:
    worker = make_worker(HEAD + "parallelism: 0\n")
    worker.start()
    run = worker.wait_for(state="failed")
    assert "Configuration: parallelism: Invalid value: 0" in run.message
    worker.change(only_on("b"), operator)
    runs.control(run.pk, "start", operator)
    again = Worker(worker.run, worker.cluster)
    again.start()
    try:
        assert again.place("one") == "b"
        assert again.wait_for(applied_config_version=2).state == "running"
    finally:
        again.stop()


class BrokenStart:
    """A cluster that answers a new scheduler's first watch with an error, once it is told to."""

    def __init__(self, cluster: SandboxCluster) -> None:
        self._cluster = cluster
        self.failures = 0

    def as_actor(self, actor: str) -> Any:
        view = self._cluster.as_actor(actor)
        if self.failures:
            self.failures -= 1
            view.list_watch = self._fail  # type: ignore[method-assign]
        return view

    @staticmethod
    def _fail(kind: str, sink: Any) -> Any:
        raise ConnectionError(f"no watch of {kind}")


def test_a_scheduler_that_cannot_start_gives_way_to_the_one_before(
    make_worker: Callable[..., Worker], operator: User
) -> None:
    worker = make_worker(only_on("a"))
    broken = BrokenStart(worker.cluster)
    hosted.publish(worker.run.cluster_id, HostedSandbox(broken))  # type: ignore[arg-type]
    worker.start()
    assert worker.place("one") == "a"
    broken.failures = 1
    worker.change(only_on("b"), operator)
    run = worker.wait_for(config_error__gt="")
    assert run.config_error == "ConnectionError: no watch of Namespace"
    assert worker.place("two") == "a"
    assert (run.applied_config_version, run.state) == (1, "running")
    until(lambda: worker.sequences() == [1, 2], "numbers go on")


def test_bindings_under_way_are_finished_first(
    make_worker: Callable[..., Worker], operator: User
) -> None:
    worker = make_worker(only_on("a"))
    worker.start()
    worker.wait_for(applied_config_version=1)
    for number in range(60):
        worker.cluster.create("Pod", make_pod(f"p{number}").req(cpu="10m").raw())
    for text in (only_on("b"), only_on("a"), only_on("b")):
        worker.change(text, operator)
        time.sleep(0.6)
    until(lambda: all(worker.node_of(f"p{n}") for n in range(60)), "all are bound")
    worker.wait_for(applied_config_version=4)
    rows = SchedulingCycle.objects.filter(run=worker.run)
    until(lambda: rows.filter(bound=True).count() == 60, "every binding is recorded")
    assert worker.sequences() == list(range(1, rows.count() + 1))
    assert not rows.filter(bound=False).exists()
