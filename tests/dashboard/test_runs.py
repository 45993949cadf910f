from __future__ import annotations

import time
from typing import Any

import pytest
from django.contrib.auth.models import User

from dashboard import leases, runs, sandboxes
from dashboard.leases import Fence, FencedError
from dashboard.models import AuditEntry, Cluster, Sandbox, SchedulerRun
from tests.dashboard.factory import FakePublisher, make_run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("desired", "action", "after"),
    [
        pytest.param("running", "pause", "paused", id="pause"),
        pytest.param("paused", "resume", "running", id="resume"),
        pytest.param("running", "stop", "stopped", id="stop"),
        pytest.param("paused", "stop", "stopped", id="stop while paused"),
        pytest.param("stopped", "start", "running", id="start"),
    ],
)
def test_a_wish(
    operator: User, published: FakePublisher, desired: str, action: str, after: str
) -> None:
    run = make_run(desired_state=desired)
    runs.control(run.pk, action, operator)
    run.refresh_from_db()
    assert (run.desired_state, run.commit_seq) == (after, 1)
    entry = AuditEntry.objects.get(run=run)
    assert (entry.verb, entry.username, entry.outcome) == (action, "olga", "done")
    (frame,) = published.of("run")
    assert (frame["seq"], frame["desired_state"]) == (1, after)
    assert frame["lease"] == {"fresh": False, "holder": ""}


@pytest.mark.parametrize(
    ("desired", "action", "message"),
    [
        pytest.param("running", "start", "it is running already", id="start twice"),
        pytest.param("running", "resume", "it is running already", id="resume a running one"),
        pytest.param("paused", "start", "it is paused", id="start a paused one"),
        pytest.param("paused", "pause", "it is paused", id="pause twice"),
        pytest.param("stopped", "pause", "it is stopped", id="pause a stopped one"),
        pytest.param("stopped", "stop", "it is stopped", id="stop twice"),
    ],
)
def test_a_wish_that_does_not_fit(operator: User, desired: str, action: str, message: str) -> None:
    run = make_run(desired_state=desired)
    with pytest.raises(runs.InvalidTransition, match=f"Cannot {action} the run.*{message}"):
        runs.control(run.pk, action, operator)
    run.refresh_from_db()
    assert (run.desired_state, run.commit_seq) == (desired, 0)
    assert AuditEntry.objects.count() == 0


@pytest.mark.parametrize(
    ("action", "state", "message"),
    [
        pytest.param("start", "pending", "", id="start"),
        pytest.param("stop", "stopped", "broken", id="stop"),
    ],
)
def test_a_failed_run_can_be_started_again_or_stopped(
    operator: User, action: str, state: str, message: str
) -> None:
    run = make_run(state="failed", message="broken")
    runs.control(run.pk, action, operator)
    run.refresh_from_db()
    assert (run.state, run.message) == (state, message)


def test_the_worker_tells_its_state(run: SchedulerRun, published: FakePublisher) -> None:
    name = leases.run_lease(run.pk)
    leases.acquire(name, "w1", "loop", 4.0, time.time())
    runs.set_state(run.pk, "running", fence=Fence(name, "w1", 1))
    run.refresh_from_db()
    assert run.state == "running"
    assert run.started_at is not None
    assert published.of("run")[-1]["lease"] == {"fresh": True, "holder": "w1"}
    with pytest.raises(FencedError):
        runs.set_state(run.pk, "failed", "late", fence=Fence(name, "w0", 0))
    runs.set_state(run.pk, "stopped")
    run.refresh_from_db()
    assert (run.state, run.message) == ("stopped", "")
    assert run.stopped_at is not None


def test_a_sandbox_is_made_with_its_run(operator: User) -> None:
    cluster, run = sandboxes.create_sandbox(
        name="my-sandbox", preset="small", speed="2", user=operator, config="kind: X"
    )
    sandbox = Sandbox.objects.get(cluster=cluster)
    assert (sandbox.preset, sandbox.clock_mode, sandbox.speed) == ("small", "scaled", 2.0)
    assert (run.cluster, run.config, run.desired_state) == (cluster, "kind: X", "running")
    assert cluster.created_by == operator
    entry = AuditEntry.objects.get()
    assert (entry.verb, entry.target, entry.run) == ("create_sandbox", "my-sandbox", run)


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        pytest.param({"name": ""}, "name", "Give the sandbox a name.", id="no name"),
        pytest.param({"name": 5}, "name", "Give the sandbox a name.", id="a number as name"),
        pytest.param({"name": "A b"}, "name", "Use at most 63 lower-case", id="odd letters"),
        pytest.param({"name": "a\n"}, "preset", "Choose one of", id="name is trimmed"),
        pytest.param({"name": "a" * 64}, "name", "Use at most 63 lower-case", id="long"),
        pytest.param({"name": "taken"}, "name", 'named "taken" exists already', id="taken"),
        pytest.param({"preset": "huge"}, "preset", "Choose one of demo", id="preset"),
        pytest.param({"preset": ["demo"]}, "preset", "Choose one of", id="preset as list"),
        pytest.param({"speed": 0}, "speed", 'from 0.1 to 1000, or "max"', id="no speed"),
        pytest.param({"speed": "fast"}, "speed", 'from 0.1 to 1000, or "max"', id="a word"),
        pytest.param({"speed": True}, "speed", 'from 0.1 to 1000, or "max"', id="a truth"),
        pytest.param({"speed": float("nan")}, "speed", "from 0.1", id="not a number"),
        pytest.param({"speed": 10**400}, "speed", "from 0.1", id="far too large"),
        pytest.param({"speed": None}, "speed", "from 0.1", id="nothing"),
    ],
)
def test_a_sandbox_that_cannot_be_made(given: dict[str, Any], field: str, message: str) -> None:
    Cluster.objects.create(name="taken")
    wrong_preset = {"preset": "none"} if given == {"name": "a\n"} else {}
    with pytest.raises(sandboxes.InvalidSandbox) as caught:
        sandboxes.create_sandbox(**{"name": "fine", "config": "", **given, **wrong_preset})
    assert list(caught.value.errors) == [field]
    assert message in caught.value.errors[field][0]
    assert Cluster.objects.count() == 1


def test_the_fastest_clock() -> None:
    cluster, _ = sandboxes.create_sandbox(name="quick", preset="empty", speed="max", config="")
    assert cluster.sandbox.clock_mode == "max"
