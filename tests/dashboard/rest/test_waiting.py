"""GET /api/v1/waiting and /api/v1/waiting/{uid}, over real HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from dashboard.models import SchedulerRun, WaitingPod
from tests.dashboard.factory import NOW, make_run, pod, resolved
from tests.dashboard.rest.conftest import Bot
from tests.dashboard.told_waits import gang, told, waiting

pytestmark = pytest.mark.django_db(transaction=True)


def names(answer: dict[str, Any]) -> list[str]:
    return [item["name"] for item in answer["items"]]


def test_a_wait_as_a_bot_sees_it(run: SchedulerRun, bot: Bot) -> None:
    row = waiting(run, "web", requested_by="alice", requests={"cpu": 500, "memory": 1024})
    (item,) = bot.get("/waiting").json()["items"]
    assert item["uid"] == "uid-web"
    assert item["wait"] == row.pk
    assert item["run"] == {"id": run.pk, "name": "run", "cluster": "c-run"}
    assert (item["namespace"], item["name"], item["node"]) == ("default", "web", "node-2")
    assert item["requests"] == {"cpu": 500, "memory": 1024}
    assert item["requested_by"] == "alice"
    assert item["since"].startswith("2027-01-15T08:00:00")
    assert item["state"] == "waiting"
    assert (item["needs_approval"], item["approvals_needed"], item["approvals"]) == (True, 1, [])
    assert item["pending"][0]["plugin"] == "ManualApproval"
    assert item["links"]["approve"] == f"/api/v1/waiting/uid-web/approve?run={run.pk}"
    assert item["links"]["page"] == f"/runs/{run.pk}/waiting/"


def test_one_wait_says_who_said_what_and_how_full_the_node_is(run: SchedulerRun, bot: Bot) -> None:
    row = waiting(run, "web")
    row.node_use = {"cpu": [4000, 1000, 1500]}
    row.save()
    assert bot.post("/waiting/uid-web/approve", json={"comment": "go"}).status_code == 200
    detail = bot.get("/waiting/uid-web").json()
    assert detail["node_use"] == {"cpu": {"allocatable": 4000, "before": 1000, "after": 1500}}
    (said,) = detail["said"]
    assert (said["verdict"], said["user"], said["comment"]) == ("approve", "olga", "go")
    assert detail["decision"]["user"] == "olga"
    assert detail["state"] == "sent"


@pytest.fixture
def five(run: SchedulerRun) -> dict[str, Any]:
    """Five waits of two runs: a gang, another namespace, one that needs nobody, one that ended."""
    other = make_run("other")
    gang(run, "a1", "a2")
    told(run, *[_in("shop", "b", 3, needs_approval=False, requested_by="olga")])
    waiting(other, "c", requested_by="bob")
    waiting(run, "d")
    told(run, resolved(WaitingPod.objects.get(name="d").cycle, "d", "preempted"))
    return {"run": run.pk, "other": other.pk}


def _in(namespace: str, name: str, cycle: int, **fields: Any) -> Any:
    from tests.dashboard.factory import wait

    return wait(cycle, name, **{"pod": pod(name, namespace), **fields})


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param({}, ["a1", "a2", "b", "c"], id="open by default"),
        pytest.param({"state": "ended"}, ["d"], id="ended"),
        pytest.param({"state": "all"}, ["a1", "a2", "b", "c", "d"], id="all"),
        pytest.param({"state": "preempted"}, ["d"], id="one state"),
        pytest.param({"run": "run"}, ["a1", "a2", "b"], id="run"),
        pytest.param({"cluster": "c-other"}, ["c"], id="cluster"),
        pytest.param({"namespace": "shop"}, ["b"], id="namespace"),
        pytest.param({"gang": "default/gang"}, ["a1", "a2"], id="gang by name"),
        pytest.param({"gang": "pg-1"}, ["a1", "a2"], id="gang by uid"),
        pytest.param({"needs_approval": "false"}, ["b"], id="needs nobody"),
        pytest.param({"needs_approval": "true"}, ["a1", "a2", "c"], id="needs a person"),
        pytest.param({"requested_by": "bob"}, ["c"], id="requested by"),
        pytest.param({"mine": "true"}, ["b"], id="the caller's own"),
        pytest.param({"mine": "true", "namespace": "default"}, [], id="all must match"),
    ],
)
def test_filters(five: dict[str, Any], bot: Bot, query: dict[str, str], expected: Any) -> None:
    query = {name: str(five.get(value, value)) for name, value in query.items()}
    assert names(bot.get("/waiting", params=query).json()) == expected


def test_pages_follow_the_order_in_which_waits_began(run: SchedulerRun, bot: Bot) -> None:
    for number in range(5):
        waiting(run, f"p{number}")
    first = bot.get("/waiting", params={"limit": 2}).json()
    assert names(first) == ["p0", "p1"]
    # A wait that ends and one that begins meanwhile: nothing is shown twice, nothing is left out.
    told(run, resolved(1, "p0"))
    waiting(run, "p5")
    second = bot.get("/waiting", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert names(second) == ["p2", "p3"]
    third = bot.get("/waiting", params={"limit": 2, "cursor": second["next_cursor"]}).json()
    assert names(third) == ["p4", "p5"]
    assert third["next_cursor"] is None


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param({"limit": "0"}, "limit", id="limit too small"),
        pytest.param({"limit": "201"}, "limit", id="limit too large"),
        pytest.param({"limit": "ten"}, "limit", id="limit is no number"),
        pytest.param({"run": str(2**63)}, "run", id="a run that no column holds"),
        pytest.param({"state": "asleep"}, "state", id="no such state"),
        pytest.param({"cursor": "x" * 12}, "cursor", id="not our cursor"),
        pytest.param({"cursor": "ÿ"}, "cursor", id="not ASCII"),
        pytest.param({"namespace": "a\x00b"}, "namespace", id="NUL"),
        pytest.param({"needs_approval": "maybe"}, "needs_approval", id="no truth value"),
        pytest.param({"namespce": "shop"}, "namespce", id="no such filter"),
    ],
)
def test_a_bad_question_names_the_field(bot: Bot, query: dict[str, str], field: str) -> None:
    response = bot.get("/waiting", params=query)
    assert response.status_code == 422
    (error,) = response.json()["errors"]
    assert error["field"] == field
    assert error["message"]


def test_a_filter_that_there_is_not_is_refused_by_name(bot: Bot) -> None:
    problem = bot.get("/waiting", params={"namespce": "shop", "Limit": "3", "run": "1"}).json()
    assert [error["field"] for error in problem["errors"]] == ["namespce", "Limit"]
    assert problem["detail"].startswith("namespce, Limit: There is no such parameter here. Known:")
    assert "namespace, gang, needs_approval" in problem["detail"]


def test_an_unknown_pod_is_404(run: SchedulerRun, bot: Bot) -> None:
    response = bot.get("/waiting/nobody")
    assert response.status_code == 404
    assert response.json()["detail"] == "No such pod waits, or has waited."


def test_a_uid_that_two_runs_know_needs_the_run(run: SchedulerRun, bot: Bot) -> None:
    other = make_run("other")
    waiting(run, "twin")
    waiting(other, "twin")
    response = bot.get("/waiting/uid-twin")
    assert response.status_code == 409
    assert f"({run.pk}, {other.pk})" in response.json()["detail"]
    assert bot.get(f"/waiting/uid-twin?run={other.pk}").json()["run"]["name"] == "other"
    told(run, resolved(WaitingPod.objects.get(run=run).cycle, "twin"))
    assert bot.get("/waiting/uid-twin").json()["run"]["name"] == "other"


def test_the_latest_wait_of_a_pod_that_waits_no_more(run: SchedulerRun, bot: Bot) -> None:
    waiting(run, "web")
    told(run, resolved(1, "web", "timed_out", message="its time ran out"))
    again = waiting(run, "web", since=NOW + 50)
    told(run, resolved(again.cycle, "web", "preempted", since=NOW + 50))
    detail = bot.get("/waiting/uid-web").json()
    assert (detail["wait"], detail["state"]) == (again.pk, "preempted")


def test_text_of_the_cluster_is_passed_on_as_it_is(run: SchedulerRun, bot: Bot) -> None:
    waiting(run, "web", requested_by='<script>alert("x")</script> ü')
    (item,) = bot.get("/waiting").json()["items"]
    assert item["requested_by"] == '<script>alert("x")</script> ü'


def test_everyone_who_may_log_in_may_look(run: SchedulerRun, bot_of: Any, viewer: User) -> None:
    waiting(run, "web")
    assert names(bot_of(viewer, "read").get("/waiting").json()) == ["web"]
