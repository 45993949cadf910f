"""Approve and deny over real HTTP: statuses, words, and that a word again does no harm."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import requests
from django.contrib.auth.models import Group, User

from dashboard.models import AuditEntry, SchedulerRun, WaitingPod
from dashboard.rest.models import IdempotentAnswer
from tests.dashboard.factory import NOW, resolved
from tests.dashboard.rest.conftest import Bot
from tests.dashboard.told_waits import gang, told, waiting

pytestmark = pytest.mark.django_db(transaction=True)
BotOf = Callable[..., Bot]


@pytest.fixture
def other_bot(bot_of: BotOf, second_decider: User) -> Bot:
    """Otto's bot."""
    return bot_of(second_decider)


def test_an_approval_is_sent_and_audited_with_its_token(
    run: SchedulerRun, bot: Bot, no_redis: list[int]
) -> None:
    row = waiting(run, "web")
    response = bot.post("/waiting/uid-web/approve", json={"comment": " ship it "})
    assert response.status_code == 200
    body = response.json()
    assert (body["verdict"], body["gang"]) == ("approve", None)
    assert body["message"] == "Approved; the scheduler applies it."
    (result,) = body["results"]
    assert (result["uid"], result["wait"], result["code"]) == ("uid-web", row.pk, "accepted")
    assert (result["who"], result["state"]) == ("olga", "sent")
    row.refresh_from_db()
    assert (row.decision_user, row.decision_comment) == ("olga", "ship it")
    entry = AuditEntry.objects.get(verb="approve")
    assert entry.username == "olga"
    assert entry.detail["token"] == bot.token.split("_")[1]
    assert no_redis == [run.pk], "the scheduler is woken"


@pytest.mark.parametrize("verdict", ["approve", "deny"])
def test_the_same_again_is_no_error_and_says_who_and_when(
    run: SchedulerRun, bot: Bot, other_bot: Bot, verdict: str
) -> None:
    waiting(run, "web")
    assert bot.post(f"/waiting/uid-web/{verdict}").status_code == 200
    for again in (bot, other_bot):
        response = again.post(f"/waiting/uid-web/{verdict}")
        assert response.status_code == 200
        (result,) = response.json()["results"]
        assert (result["code"], result["who"]) == ("already", "olga")
        assert result["when"] is not None
        assert "by olga at " in result["message"]
    assert AuditEntry.objects.filter(verb=verdict).count() == 1


@pytest.mark.parametrize("verdict", ["approve", "deny"])
def test_the_same_again_after_the_end(
    run: SchedulerRun, bot: Bot, other_bot: Bot, verdict: str
) -> None:
    waiting(run, "web")
    bot.post(f"/waiting/uid-web/{verdict}")
    told(run, resolved(1, "web", "allowed" if verdict == "approve" else "rejected"))
    for again in (bot, other_bot):
        response = again.post(f"/waiting/uid-web/{verdict}")
        assert response.status_code == 200
        assert response.json()["results"][0]["who"] == "olga"


@pytest.mark.parametrize("has_ended", [False, True], ids=["under way", "has ended"])
@pytest.mark.parametrize(("first", "second"), [("approve", "deny"), ("deny", "approve")])
def test_the_other_verdict_was_first(
    run: SchedulerRun, bot: Bot, other_bot: Bot, first: str, second: str, has_ended: bool
) -> None:
    waiting(run, "web")
    bot.post(f"/waiting/uid-web/{first}")
    if has_ended:
        told(run, resolved(1, "web", "allowed" if first == "approve" else "rejected"))
    response = other_bot.post(f"/waiting/uid-web/{second}")
    assert response.status_code == 409
    problem = response.json()
    assert (problem["title"], problem["code"], problem["who"]) == ("Conflict", "conflict", "olga")
    assert problem["when"] is not None
    assert "by olga at " in problem["detail"]


def test_its_time_has_run_out(run: SchedulerRun, bot: Bot) -> None:
    waiting(run, "web", deadline=1_000_000.0)
    response = bot.post("/waiting/uid-web/approve")
    assert response.status_code == 410
    problem = response.json()
    assert problem["code"] == "too_late"
    assert problem["detail"].startswith("Too late: its time ran out at 1970-01-12 ")


@pytest.mark.parametrize("outcome", ["timed_out", "preempted", "removed", "rejected", "allowed"])
def test_a_wait_that_ended_without_a_person_is_gone(
    run: SchedulerRun, bot: Bot, outcome: str
) -> None:
    waiting(run, "web")
    told(run, resolved(1, "web", outcome, message="so it is"))
    response = bot.post("/waiting/uid-web/approve")
    assert response.status_code == 410
    assert response.json()["state"] == outcome
    assert "so it is" in response.json()["detail"]


def test_two_bots_at_once_one_wins_and_the_other_is_told_who_and_when(
    run: SchedulerRun, bot: Bot, other_bot: Bot
) -> None:
    for number in range(3):
        waiting(run, f"web-{number}")
        together = threading.Barrier(2)
        answers: dict[str, requests.Response] = {}

        def click(
            caller: Bot,
            verdict: str,
            path: str = f"/waiting/uid-web-{number}",
            together: threading.Barrier = together,
            answers: dict[str, requests.Response] = answers,
        ) -> None:
            together.wait(10)
            answers[verdict] = caller.post(f"{path}/{verdict}")

        clicks = [
            threading.Thread(target=click, args=(bot, "approve")),
            threading.Thread(target=click, args=(other_bot, "deny")),
        ]
        for thread in clicks:
            thread.start()
        for thread in clicks:
            thread.join(30)
        assert sorted(answer.status_code for answer in answers.values()) == [200, 409]
        row = WaitingPod.objects.get(name=f"web-{number}")
        assert answers[row.decision_verdict].status_code == 200
        (lost,) = (a.json() for a in answers.values() if a.status_code == 409)
        won = answers[row.decision_verdict].json()["results"][0]
        assert (lost["code"], lost["who"], lost["when"]) == ("conflict", won["who"], won["when"])
        assert lost["who"] == row.decision_user


def test_two_people(run: SchedulerRun, bot: Bot, other_bot: Bot) -> None:
    row = waiting(run, "web")
    WaitingPod.objects.filter(pk=row.pk).update(terms={"approvers": 2})
    first = bot.post("/waiting/uid-web/approve").json()["results"][0]
    assert (first["code"], first["state"], first["needed"]) == ("recorded", "waiting", 2)
    assert bot.post("/waiting/uid-web/approve").json()["results"][0]["code"] == "already"
    second = other_bot.post("/waiting/uid-web/approve").json()["results"][0]
    assert (second["code"], second["approved_by"]) == ("accepted", ["olga", "otto"])
    item = bot.get("/waiting/uid-web").json()
    assert ([a["user"] for a in item["approvals"]], item["approvals_needed"]) == (
        ["olga", "otto"],
        2,
    )


def test_not_ones_own_request_where_the_terms_say_so(run: SchedulerRun, bot: Bot) -> None:
    row = waiting(run, "web", requested_by="olga")
    WaitingPod.objects.filter(pk=row.pk).update(terms={"requester_may_approve": False})
    response = bot.post("/waiting/uid-web/approve")
    assert response.status_code == 403
    assert response.json()["code"] == "own_request"
    assert "somebody else has to approve it" in response.json()["detail"]


def test_only_the_groups_that_the_terms_name(run: SchedulerRun, bot: Bot, decider: User) -> None:
    row = waiting(run, "web")
    WaitingPod.objects.filter(pk=row.pk).update(terms={"groups": ["shop-owners"]})
    response = bot.post("/waiting/uid-web/deny")
    assert (response.status_code, response.json()["code"]) == (403, "forbidden")
    assert "Only members of shop-owners" in response.json()["detail"]
    decider.groups.add(Group.objects.create(name="shop-owners"))
    assert bot.post("/waiting/uid-web/deny").status_code == 200


def test_a_token_has_no_more_permissions_than_its_user(
    run: SchedulerRun, bot_of: BotOf, viewer: User
) -> None:
    waiting(run, "web")
    response = bot_of(viewer).post("/waiting/uid-web/approve")
    assert response.status_code == 403
    assert response.json()["detail"] == "You are not allowed to decide on waiting pods."


def test_a_pod_that_needs_nobody(run: SchedulerRun, bot: Bot) -> None:
    waiting(run, "web", needs_approval=False)
    response = bot.post("/waiting/uid-web/approve")
    assert (response.status_code, response.json()["code"]) == (409, "not_asked")


@pytest.mark.parametrize("path", ["/waiting/nobody/approve", "/gangs/nobody/deny"])
def test_what_never_waited_is_404(run: SchedulerRun, bot: Bot, path: str) -> None:
    assert bot.post(path).status_code == 404


# --- gangs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pg-1", "default:gang"])
def test_a_whole_gang(run: SchedulerRun, bot: Bot, name: str) -> None:
    gang(run, "a", "b")
    body = bot.post(f"/gangs/{name}/approve").json()
    assert body["gang"] == "default/gang"
    assert body["message"].startswith("2 of 2 waiting pods of default/gang are approved.")
    assert [result["pod"] for result in body["results"]] == ["default/a", "default/b"]


def test_a_gangs_approval_covers_a_member_that_comes_later(run: SchedulerRun, bot: Bot) -> None:
    gang(run, "a", group_min_member=2)
    bot.post("/gangs/pg-1/approve")
    gang(run, "b", group_min_member=2)
    assert {item["state"] for item in bot.get("/waiting").json()["items"]} == {"sent"}


def test_of_two_gangs_of_one_name_the_uid_says_which(run: SchedulerRun, bot: Bot) -> None:
    gang(run, "a", uid="pg-1")
    gang(run, "b", uid="pg-2")
    refused = bot.post("/gangs/default:gang/approve")
    assert (refused.status_code, refused.json()["code"]) == (409, "ambiguous")
    assert "Name one by the uid of its PodGroup." in refused.json()["detail"]
    body = bot.post("/gangs/pg-2/approve").json()
    assert [result["pod"] for result in body["results"]] == ["default/b"]
    items = bot.get("/waiting").json()["items"]
    assert {item["gang"]["uid"]: item["state"] for item in items} == {
        "pg-1": "waiting",
        "pg-2": "sent",
    }


def test_a_gang_again_also_after_its_end(run: SchedulerRun, bot: Bot, other_bot: Bot) -> None:
    rows = gang(run, "a", "b")
    bot.post("/gangs/pg-1/deny")
    assert other_bot.post("/gangs/pg-1/deny").json()["results"][0]["code"] == "already"
    told(
        run,
        *[resolved(row.cycle, row.name, "rejected", pod_group="default/gang") for row in rows],
    )
    again = other_bot.post("/gangs/default:gang/deny")
    assert again.status_code == 200
    assert again.json()["results"][0]["who"] == "olga"
    other = other_bot.post("/gangs/default:gang/approve")
    assert (other.status_code, other.json()["who"]) == (409, "olga")
    assert len(other.json()["results"]) == 1


def test_a_gang_of_which_some_are_decided_otherwise(
    run: SchedulerRun, bot: Bot, other_bot: Bot
) -> None:
    gang(run, "a", "b")
    bot.post("/waiting/uid-a/deny")
    response = other_bot.post("/gangs/pg-1/approve")
    codes = [result["code"] for result in response.json()["results"]]
    assert (response.status_code, codes) == (200, ["conflict", "accepted"])


# --- Idempotency-Key --------------------------------------------------------------------------


def test_a_key_gives_the_first_answer_again(run: SchedulerRun, bot: Bot) -> None:
    waiting(run, "web")
    headers = {"Idempotency-Key": "deploy-17"}
    first = bot.post("/waiting/uid-web/approve", json={"comment": "x"}, headers=headers)
    told(run, resolved(1, "web", "preempted"))
    again = bot.post("/waiting/uid-web/approve", json={"comment": "x"}, headers=headers)
    assert (again.status_code, again.json()) == (200, first.json())
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert bot.post("/waiting/uid-web/approve", json={"comment": "x"}).status_code == 410


def test_a_key_keeps_a_refusal_too(run: SchedulerRun, bot: Bot) -> None:
    waiting(run, "web", deadline=1.0)
    headers = {"Idempotency-Key": "k"}
    for replayed in (None, "true"):
        response = bot.post("/waiting/uid-web/deny", headers=headers)
        assert response.status_code == 410
        assert response.headers.get("Idempotency-Replayed") == replayed


def test_a_key_is_for_one_request_of_one_user(run: SchedulerRun, bot: Bot, other_bot: Bot) -> None:
    waiting(run, "web")
    headers = {"Idempotency-Key": "k"}
    bot.post("/waiting/uid-web/approve", headers=headers)
    for path, body in (("deny", None), ("approve", {"comment": "else"})):
        response = bot.post(f"/waiting/uid-web/{path}", json=body, headers=headers)
        assert (response.status_code, response.json()["code"]) == (422, "key_reused")
    other = other_bot.post("/waiting/uid-web/deny", headers=headers)
    assert other.status_code == 409, "another user's key is another key"


def test_a_key_is_forgotten_after_a_day(run: SchedulerRun, bot: Bot) -> None:
    from datetime import timedelta

    from dashboard.rest import answers

    waiting(run, "web")
    headers = {"Idempotency-Key": "k"}
    bot.post("/waiting/uid-web/approve", headers=headers)
    assert answers.prune() == 0
    row = IdempotentAnswer.objects.get()
    IdempotentAnswer.objects.update(created_at=row.created_at - timedelta(hours=25))
    assert bot.post("/waiting/uid-web/deny", headers=headers).status_code == 409
    assert answers.prune() == 0


# --- what comes in ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "status", "words"),
    [
        pytest.param({"data": "{"}, 400, "Cannot parse", id="no JSON"),
        pytest.param({"json": {"comment": "x" * 1001}}, 422, "comment", id="long comment"),
        pytest.param({"json": {"comment": 5}}, 422, "comment", id="no text"),
        pytest.param({"json": {"coment": "x"}}, 422, "coment", id="a field misspelt"),
        pytest.param({"json": {"comment": "a\x00"}}, 422, "NUL", id="NUL"),
        pytest.param({"json": []}, 422, "body", id="a list"),
        pytest.param({"data": b'{"comment": "\\ud800"}'}, 422, "comment", id="half a character"),
        pytest.param({"data": b"x" * 3_000_000}, 413, "too large", id="three megabytes"),
    ],
)
def test_bad_bodies_change_nothing(
    run: SchedulerRun, bot: Bot, sent: dict[str, Any], status: int, words: str
) -> None:
    waiting(run, "web")
    headers = {"Content-Type": "application/json"}
    response = bot.post("/waiting/uid-web/approve", headers=headers, **sent)
    assert (response.status_code, words in response.json()["detail"]) == (status, True)
    assert WaitingPod.objects.get().state == "waiting"


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        pytest.param({"comment": "x" * 1001}, "comment", id="long comment"),
        pytest.param({"coment": "x"}, "coment", id="a field misspelt"),
        pytest.param([], "body", id="a list"),
    ],
)
def test_a_field_is_named_as_it_was_sent(
    run: SchedulerRun, bot: Bot, sent: object, field: str
) -> None:
    waiting(run, "web")
    problem = bot.post("/waiting/uid-web/deny", json=sent).json()
    assert [error["field"] for error in problem["errors"]] == [field]
    assert problem["detail"].startswith(f"{field}: ")


def test_a_parameter_that_there_is_not_decides_nothing(run: SchedulerRun, bot: Bot) -> None:
    waiting(run, "web")
    response = bot.post("/waiting/uid-web/approve?runn=7")
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "runn"
    assert WaitingPod.objects.get().state == "waiting"


def test_an_approval_is_never_for_another_pod_of_the_same_name(run: SchedulerRun, bot: Bot) -> None:
    from tests.dashboard.factory import PodRef, wait

    told(run, wait(1, pod=PodRef("old-uid", "default", "web")))
    told(run, resolved(1, pod=PodRef("old-uid", "default", "web"), outcome="removed"))
    told(run, wait(2, pod=PodRef("new-uid", "default", "web"), since=NOW + 5))
    assert bot.post("/waiting/old-uid/approve").status_code == 410
    assert WaitingPod.objects.get(uid="new-uid").state == "waiting"
