"""Many waiting pods are told in pieces: the first at once, the rest behind it."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard import frames, selectors, waits_view
from dashboard.models import SchedulerRun, WaitingPod
from dashboard.recording import BatchWriter
from dashboard.told import Batch, Told
from scheduler_core.records import NodeUse, QueueDepths, QueuedPod, QueueListing
from tests.dashboard.factory import NOW, pod, resolved, wait

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def waiting_run(run: SchedulerRun) -> SchedulerRun:
    """Seven pods wait, two have ended."""
    writer = BatchWriter(run.pk)
    told = [wait(number, f"p{number}") for number in range(1, 10)]
    writer.write(Batch("1", [Told(record, 0) for record in told]))
    writer.write(Batch("2", [Told(resolved(n, f"p{n}"), 0) for n in (2, 5)]))
    run.refresh_from_db()
    return run


def names(frame: dict[str, object]) -> list[str]:
    return [row["name"] for row in frame["pods"]]  # type: ignore[attr-defined]


def test_pieces_together_are_the_whole(waiting_run: SchedulerRun) -> None:
    first = selectors.waiting(waiting_run, None, limit=3)
    assert sorted(names(first)) == ["p1", "p2", "p3", "p4", "p5"], "ended ones come with the first"
    assert first["open"] == 7
    second = selectors.waiting(waiting_run, None, after=first["more"], limit=3)
    third = selectors.waiting(waiting_run, None, after=second["more"], limit=3)
    assert (names(second), names(third)) == (["p6", "p7", "p8"], ["p9"])
    assert third["more"] is None


def test_a_limit_that_is_not_reached_leaves_nothing(waiting_run: SchedulerRun) -> None:
    assert selectors.waiting(waiting_run, None, limit=7)["more"] is None


def test_changes_since_a_commit_come_in_pieces_too(waiting_run: SchedulerRun) -> None:
    before = waiting_run.commit_seq - 1
    first = selectors.waiting(waiting_run, before, limit=1)
    rest = selectors.waiting(waiting_run, before, after=first["more"], limit=1)
    assert (names(first), names(rest), rest["more"]) == (["p2"], ["p5"], None)


def test_pieces_over_http(waiting_run: SchedulerRun, client: Client) -> None:
    client.force_login(User.objects.create_user("looker"))
    path = f"/api/runs/{waiting_run.pk}/waiting"
    first = client.get(f"{path}?limit=2").json()
    rest = client.get(f"{path}?limit=50&after={first['more']}").json()
    whole = client.get(path).json()
    assert "more" not in whole
    assert {*names(first), *names(rest)} == set(names(whole))
    assert client.get(f"{path}?limit=0").status_code == 400


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="reads SQLite's plans")
def test_no_piece_walks_through_all_that_has_ended(waiting_run: SchedulerRun) -> None:
    with CaptureQueriesContext(connection) as queries:
        selectors.waiting(waiting_run, None, after=1, limit=2)
        selectors.waiting(waiting_run, 1, after=1, limit=2)
    asked = [q["sql"] for q in queries.captured_queries if '"place"' in q["sql"]]
    assert len(asked) == 2
    with connection.cursor() as cursor:
        for sql, index in zip(asked, ("waitingpod_state", "waitingpod_commit"), strict=True):
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            plan = " / ".join(row[-1] for row in cursor.fetchall())
            assert index in plan, plan


def test_rows_are_those_of_the_model(waiting_run: SchedulerRun) -> None:
    frame = selectors.waiting(waiting_run, None, limit=100)
    assert {row["id"] for row in frame["pods"]} == set(
        WaitingPod.objects.values_list("pk", flat=True)
    )


def test_usage_of_a_held_node_is_as_of_the_pod_that_was_parked_there_last(
    run: SchedulerRun,
) -> None:
    """A pod, and later another one beside it: without it the node has the other's part in use."""
    both = {"cpu": NodeUse(4000, 1000, 1500), "memory": NodeUse(64, 0, 8)}
    later = {"cpu": NodeUse(4000, 1500, 2000), "nvidia.com/gpu": NodeUse(8, 0, 1)}
    told = [
        wait(1, "asked", requests={"cpu": 500, "memory": 8}, node_use=both),
        wait(2, "beside", requests={"cpu": 500}, node_use=later, since=NOW + 1),
    ]
    BatchWriter(run.pk).write(Batch("1", [Told(record, 0) for record in told]))
    row = WaitingPod.objects.get(name="asked")

    found = waits_view.detail(run, row.pk, User.objects.create_user("looker"))

    (held,) = found["nodes"]
    assert held["use"] == {"cpu": [4000, 1500, 2000], "memory": [64, 0, 8]}
    assert [rival["pod"] for rival in found["rivals"]["waiting"]] == ["default/beside"]


@pytest.mark.parametrize(
    ("plugin", "reason", "is_told"),
    [
        pytest.param("NodeResourcesFit", "Insufficient cpu", True, id="what is held"),
        pytest.param("NodeResourcesFit", "Insufficient nvidia.com/gpu", False, id="another"),
        pytest.param("NodeResourcesFit", "Too many pods", True, id="a place for a pod"),
        pytest.param("NodeAffinity", "Insufficient cpu", False, id="no want of room"),
    ],
)
def test_who_is_queued_for_want_of_what_is_held_wants_the_room(
    run: SchedulerRun, plugin: str, reason: str, is_told: bool
) -> None:
    queued = QueuedPod(pod("big"), 1, 0, 1, NOW, plugin=plugin, reason=reason)
    listing = QueueListing(NOW, QueueDepths(unschedulable=1), (), (), (queued,), ())
    told = [Told(wait(1, "asked", requests={"cpu": 500, "memory": 8}), 0)]
    BatchWriter(run.pk).write(Batch("1", told, listing=listing))
    row = WaitingPod.objects.get(name="asked")
    rivals = waits_view.detail(run, row.pk, User.objects.create_user("looker"))["rivals"]
    assert rivals["queued_total"] == len(rivals["queued"]) == is_told
    assert [rival["reason"] for rival in rivals["queued"]] == [reason] * is_told


def test_a_decision_says_whether_the_scheduler_knows_of_it(run: SchedulerRun) -> None:
    BatchWriter(run.pk).write(Batch("1", [Told(wait(1, "p"), 0)]))
    row = WaitingPod.objects.get()
    row.decision_verdict, row.decision_user, row.decision_at = "approve", "olga", NOW
    told = frames.waiting_row(row)["decision"]
    row.decision_applied_at = NOW + 1
    assert told is not None and told["applied"] is False
    assert frames.waiting_row(row)["decision"] == {**told, "applied": True}
