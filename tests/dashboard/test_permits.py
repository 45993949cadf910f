from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from django.contrib.auth.models import User
from django.db import connection

from dashboard import commits, groups, permits
from dashboard.models import AuditEntry, RunState, SchedulerRun, WaitingPod
from dashboard.permits import Target
from dashboard.permits_inbox import DatabasePermitInbox
from dashboard.permits_models import Decision
from dashboard.recording import BatchWriter
from dashboard.told import Batch, DecisionApplied, Told
from scheduler_core.records import ApprovalTerms, PendingPlugin, PermitDecision, Verdict
from tests.dashboard.factory import FakePublisher, make_run, resolved, wait

pytestmark = pytest.mark.django_db(transaction=True)
_batches = iter(range(10**6))


def told(run: SchedulerRun, *records: Any) -> None:
    batch = Batch(f"t:{next(_batches)}", [Told(record, 0) for record in records])
    BatchWriter(run.pk).write(batch)
    RunState.objects.filter(run=run).update(clock_at=None)


def waiting(run: SchedulerRun, name: str = "p", **fields: Any) -> WaitingPod:
    sequence = WaitingPod.objects.count() + 1
    told(run, wait(sequence, name, **fields))
    return WaitingPod.objects.get(run=run, cycle=sequence)


def said_of(row: WaitingPod) -> PermitDecision:
    """The last word on a wait, as the inbox hands it out."""
    said = row.decisions.latest("pk")
    verdict = Verdict(said.verdict)
    user, comment, at = said.username, said.comment, said.at
    return PermitDecision(said.pk, row.uid, verdict, user, comment, at, row.since)


# --- decide -----------------------------------------------------------------------------------


def test_an_approval_is_sent_with_its_audit_row(
    run: SchedulerRun, operator: User, published: FakePublisher, no_redis: list[int]
) -> None:
    row = waiting(run)
    before = SchedulerRun.objects.get(pk=run.pk).commit_seq
    outcome = permits.decide(operator, "approve", Target.rows(run.pk, [row.pk]), comment="go")
    row.refresh_from_db()
    assert [answer.as_json() for answer in outcome] == [
        {
            "id": row.pk,
            "uid": "uid-p",
            "pod": "default/p",
            "ok": True,
            "code": "accepted",
            "state": "sent",
            "who": "olga",
            "when": row.decision_at,
            "approved_by": ["olga"],
            "needed": 1,
            "message": "Approved; the scheduler applies it.",
        }
    ]
    assert (row.state, row.decision_verdict, row.decision_user, row.decision_comment) == (
        "sent",
        "approve",
        "olga",
        "go",
    )
    assert row.commit_seq == before + 1
    entry = AuditEntry.objects.get(waiting_pod=row)
    assert (entry.verb, entry.username, entry.target, entry.comment, entry.outcome) == (
        "approve",
        "olga",
        "default/p",
        "go",
        "sent",
    )
    (frame,) = published.of("waiting")
    assert (frame["from"], frame["seq"]) == (before, before + 1)
    assert frame["pods"][0]["decision"]["user"] == "olga"
    assert no_redis == [run.pk]


def test_a_whole_gang(run: SchedulerRun, operator: User) -> None:
    for name in ("a", "b"):
        waiting(run, name, pod_group="default/gang")
    waiting(run, "c", pod_group="default/other")
    outcome = permits.decide(operator, "deny", Target.whole_gang(run.pk, "default/gang"))
    assert [answer.pod for answer in outcome] == ["default/a", "default/b"]
    states = dict(WaitingPod.objects.values_list("name", "state"))
    assert states == {"a": "sent", "b": "sent", "c": "waiting"}
    entry = AuditEntry.objects.get()  # one action, with the gang as its object
    assert (entry.verb, entry.outcome, entry.target) == ("deny", "sent", "default/gang")
    assert entry.detail["pods"] == ["default/a", "default/b"]
    assert Decision.objects.filter(verdict="deny", gang=True, audit=entry).count() == 2


def test_the_same_word_twice_does_no_harm(
    run: SchedulerRun, operator: User, second_operator: User, no_redis: list[int]
) -> None:
    row = waiting(run)
    permits.decide(operator, "approve", Target.rows(run.pk, [row.pk]))
    again = permits.decide(second_operator, "approve", Target.rows(run.pk, [row.pk]))
    (again,) = again
    assert (again.ok, again.changed, again.code) == (True, False, "already")
    assert again.message.startswith("Already approved by olga at ")
    assert AuditEntry.objects.count() == 1
    assert no_redis == [run.pk]


@pytest.mark.parametrize(
    ("verdict", "end", "audited"),
    [
        pytest.param("approve", "timed_out", "too_late", id="time ran out first"),
        pytest.param("deny", "removed", "too_late", id="the pod went first"),
        pytest.param("approve", "rejected", "too_late", id="its gang was given up first"),
        pytest.param("approve", "allowed", "applied", id="applied, then the worker died"),
    ],
)
def test_a_decision_that_is_never_reported_is_settled_when_the_wait_ends(
    run: SchedulerRun, operator: User, verdict: str, end: str, audited: str
) -> None:
    row = waiting(run)
    permits.decide(operator, verdict, Target.rows(run.pk, [row.pk]))
    told(run, resolved(1, outcome=end, message="so it ended"))
    entry = AuditEntry.objects.get(waiting_pod=row)
    assert (entry.outcome, entry.message) == (audited, "so it ended")


def test_the_other_word_is_refused_with_who_and_when(
    run: SchedulerRun, operator: User, second_operator: User
) -> None:
    row = waiting(run)
    permits.decide(operator, "approve", Target.rows(run.pk, [row.pk]))
    other = permits.decide(second_operator, "deny", Target.rows(run.pk, [row.pk]))
    (other,) = other
    assert (other.ok, other.code, other.who) == (False, "conflict", "olga")
    row.refresh_from_db()
    assert row.decision_verdict == "approve"
    moment = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(row.decision_at))
    assert other.message == f"Already approved by olga at {moment}."


@pytest.mark.parametrize(
    ("outcome", "fields", "message"),
    [
        pytest.param(
            "timed_out",
            {"message": "timed out after 15m0s", "resolved_by": "ManualApproval"},
            "Too late: default/p has timed out by ManualApproval at 2027-01-15 08:00:09 UTC:"
            " timed out after 15m0s.",
            id="timed out",
        ),
        pytest.param(
            "removed",
            {"resolved_by": "", "resolved_at": None},
            "Too late: default/p is gone.",
            id="gone",
        ),
    ],
)
def test_a_wait_that_ended_says_how(
    run: SchedulerRun, operator: User, outcome: str, fields: dict[str, Any], message: str
) -> None:
    row = waiting(run)
    told(run, resolved(row.cycle, outcome=outcome, **fields))
    found = permits.decide(operator, "approve", Target.rows(run.pk, [row.pk]))
    (found,) = found
    assert (found.ok, found.code) == (False, "too_late")
    assert (found.state, found.message) == (outcome, message)
    assert AuditEntry.objects.count() == 0


def test_the_deadline_ends_it_even_before_the_scheduler_says_so(
    run: SchedulerRun, operator: User
) -> None:
    row = waiting(run, deadline=time.time() - 1)
    found = permits.decide(operator, "approve", Target.rows(run.pk, [row.pk]))
    (found,) = found
    assert (found.ok, found.code) == (False, "too_late")
    assert found.message.startswith("Too late: its time ran out at ")
    row.refresh_from_db()
    assert row.state == "waiting"


@pytest.mark.parametrize("word", ["deny", "revoke"])
@pytest.mark.parametrize(
    ("others", "is_late"),
    [
        pytest.param({"deny": -1}, True, id="the undecided one is turned down"),
        pytest.param({"deny": -1, "approve": 60}, True, id="one of two is turned down"),
        pytest.param({"deny": 60, "approve": -1}, False, id="only the other is approved by time"),
        pytest.param({"approve": -1}, True, id="the undecided one is approved by time"),
        pytest.param({"approve": 60}, False, id="it has time left"),
        pytest.param({"quorum": -1}, True, id="the quorum of an approved one was not reached"),
        pytest.param({"quorum": 60}, False, id="it may be reached"),
        pytest.param({"quorum": -1, "deny": 60}, True, id="though another has time left"),
    ],
)
def test_an_approved_member_has_until_time_ends_the_wait_of_its_gang(
    run: SchedulerRun, operator: User, word: str, others: dict[str, float], is_late: bool
) -> None:
    at, gang = time.time(), {"pod_group": "default/g", "gang_uid": "u"}
    approved = waiting(run, "a", **gang, deadline=at + 60)
    undecided = []
    for end, left in others.items():
        terms = ApprovalTerms(at_deadline=Verdict("approve" if end == "approve" else "deny"))
        pending = [PendingPlugin("ManualApproval", at + 60)]
        if end == "quorum":
            pending.append(PendingPlugin("Coscheduling", at + left))
        row = waiting(run, end, **gang, deadline=at + 60, terms=terms, pending=tuple(pending))
        if end == "quorum":
            early = Target.rows(run.pk, [row.pk])
            assert permits.decide(operator, "approve", early, now=at - 5)[0].ok
        else:
            undecided.append((row, left))
    early = Target.rows(run.pk, [approved.pk])
    assert permits.decide(operator, "approve", early, now=at - 5)[0].ok
    text = "approved; it counts when the whole gang is approved"
    told(run, DecisionApplied(said_of(approved), True, text, at))
    WaitingPod.objects.filter(pk=approved.pk).update(deadline=at - 1)
    for row, left in undecided:
        WaitingPod.objects.filter(pk=row.pk).update(deadline=at + left)

    (found,) = permits.decide(operator, word, Target.rows(run.pk, [approved.pk]))

    assert (found.ok, found.code) == ((False, "too_late") if is_late else (True, "accepted"))
    assert found.message.startswith("Too late: its time ran out at ") is is_late
    for row, _ in undecided:
        row.refresh_from_db()
        assert row.state == "waiting"


def test_the_deadline_is_the_schedulers_clock(run: SchedulerRun, operator: User) -> None:
    row = waiting(run, deadline=100.0)
    RunState.objects.filter(run=run).update(clock_at=50.0, wall_at=time.time(), clock_speed=1.0)
    assert permits.decide(operator, "approve", Target.rows(run.pk, [row.pk]))[0].ok
    late = waiting(run, "q", deadline=100.0)
    RunState.objects.filter(run=run).update(
        clock_at=50.0, wall_at=time.time() - 10, clock_speed=10.0
    )
    assert not permits.decide(operator, "approve", Target.rows(run.pk, [late.pk]))[0].ok


def test_some_of_many(run: SchedulerRun, operator: User) -> None:
    done, row = waiting(run, "a"), waiting(run, "b")
    told(run, resolved(done.cycle, "a"))
    outcome = permits.decide(operator, "approve", Target.rows(run.pk, [done.pk, row.pk]))
    assert [answer.ok for answer in outcome] == [False, True]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        pytest.param({"ids": [10**9]}, "No such waiting pod in this run.", id="unknown id"),
        pytest.param({"gang": "a/b"}, 'No pod of the group "a/b" waits.', id="unknown gang"),
    ],
)
def test_nothing_there(
    run: SchedulerRun, operator: User, target: dict[str, Any], message: str
) -> None:
    with pytest.raises(permits.UnknownWaitingPod, match=message):
        permits.decide(operator, "approve", Target(run.pk, **target))
    assert SchedulerRun.objects.get(pk=run.pk).commit_seq == 0


def test_a_pod_of_another_run_is_not_there(run: SchedulerRun, operator: User) -> None:
    row = waiting(make_run("other"))
    with pytest.raises(permits.UnknownWaitingPod):
        permits.decide(operator, "approve", Target.rows(run.pk, [row.pk]))


def test_two_at_once_one_wins(run: SchedulerRun, operator: User, second_operator: User) -> None:
    for number in range(5):
        row = waiting(run, f"p{number}")
        barrier = threading.Barrier(2)
        outcomes: dict[str, permits.Answer] = {}

        def click(
            user: User,
            verdict: str,
            row: WaitingPod = row,
            barrier: threading.Barrier = barrier,
            outcomes: dict[str, permits.Answer] = outcomes,
        ) -> None:
            try:
                barrier.wait(10)
                (outcomes[verdict],) = permits.decide(user, verdict, Target.rows(run.pk, [row.pk]))
            finally:
                connection.close()

        clicks = [
            threading.Thread(target=click, args=(operator, "approve")),
            threading.Thread(target=click, args=(second_operator, "deny")),
        ]
        for thread in clicks:
            thread.start()
        for thread in clicks:
            thread.join(30)
        assert sorted(answer.changed for answer in outcomes.values()) == [False, True]
        row.refresh_from_db()
        assert outcomes[row.decision_verdict].changed
        (loser,) = (answer for answer in outcomes.values() if not answer.changed)
        given = {"approve": "approved", "deny": "denied"}[row.decision_verdict]
        assert f"Already {given} by {row.decision_user}" in loser.message
        assert AuditEntry.objects.filter(waiting_pod=row).count() == 1


def test_the_timeout_may_win_the_race(run: SchedulerRun, operator: User) -> None:
    """Sent in time, but the scheduler's clock was first: the page learns both."""
    row = waiting(run)
    permits.decide(operator, "approve", Target.rows(run.pk, [row.pk]))
    decision = said_of(row)
    told(
        run,
        resolved(row.cycle, outcome="timed_out", message="timed out"),
        DecisionApplied(decision, False, "the pod had timed out", 5.0),
    )
    row.refresh_from_db()
    assert (row.state, row.decision_verdict) == ("timed_out", "approve")
    entry = AuditEntry.objects.get(waiting_pod=row)
    assert (entry.outcome, entry.message) == ("too_late", "timed out")


# --- restart ----------------------------------------------------------------------------------


def test_open_waits_are_there_for_a_restart(run: SchedulerRun, operator: User) -> None:
    sent = waiting(run, "sent", since=1.0)
    ended = waiting(run, "ended", since=2.0)
    waiting(run, "open", since=0.5)
    permits.decide(operator, "approve", Target.rows(run.pk, [sent.pk]))
    told(run, resolved(ended.cycle, "ended"))
    assert [row.name for row in permits.open_waiting(run.pk)] == ["open", "sent"]


def test_a_decision_on_a_wait_that_was_forgotten_is_too_late(
    run: SchedulerRun, operator: User
) -> None:
    row = waiting(run, since=1.0)
    permits.decide(operator, "approve", Target.rows(run.pk, [row.pk]))
    told(run, wait(9, since=2.0))
    row.refresh_from_db()
    assert (row.state, row.message) == ("removed", "Scheduled again in cycle 9.")
    assert AuditEntry.objects.get(waiting_pod=row).outcome == "too_late"


# --- inbox ------------------------------------------------------------------------------------


@pytest.fixture
def inbox(run: SchedulerRun) -> Iterator[DatabasePermitInbox]:
    made = DatabasePermitInbox(run.pk)
    yield made
    made.close()


def test_decisions_are_handed_out_once(
    run: SchedulerRun, operator: User, inbox: DatabasePermitInbox
) -> None:
    first, second = waiting(run, "a"), waiting(run, "b")
    assert inbox.look() == 0
    permits.decide(operator, "approve", Target.rows(run.pk, [first.pk]), comment="ok")
    assert inbox.look() == 1
    permits.decide(operator, "deny", Target.rows(run.pk, [second.pk]))
    assert inbox.look() == 1
    assert inbox.poll() == [
        said_of(first),
        said_of(second),
    ]
    assert inbox.look() == 0
    assert inbox.poll() == []


def test_a_new_inbox_gets_what_was_decided_meanwhile(
    run: SchedulerRun, operator: User, inbox: DatabasePermitInbox
) -> None:
    row = waiting(run)
    permits.decide(operator, "approve", Target.rows(run.pk, [row.pk]))
    decision = said_of(row)
    told(run, DecisionApplied(decision, True, "", 5.0))  # applied, then the worker died
    assert inbox.look() == 1
    told(run, resolved(row.cycle))
    assert DatabasePermitInbox(run.pk).look() == 0


def test_a_word_on_a_wait_that_has_ended_is_not_said_of_the_next_one(
    run: SchedulerRun, operator: User
) -> None:
    row = waiting(run)
    permits.decide(operator, "approve", Target.rows(run.pk, [row.pk]))
    told(run, resolved(row.cycle))
    inbox = DatabasePermitInbox(run.pk)
    assert [inbox.look(), inbox.look()] == [0, 0]
    again = waiting(run, "again")
    permits.decide(operator, "deny", Target.rows(run.pk, [again.pk]))
    assert inbox.look() == 1
    assert inbox.poll() == [said_of(again)]


def test_what_was_decided_in_time_is_there_before_the_scheduler_looks_at_deadlines(
    run: SchedulerRun, operator: User, inbox: DatabasePermitInbox
) -> None:
    row = waiting(run)
    permits.decide(operator, "approve", Target.rows(run.pk, [row.pk]))
    inbox.start()
    assert [decision.decision_id for decision in inbox.poll()] == [said_of(row).decision_id]


def test_it_polls_by_itself(run: SchedulerRun, operator: User) -> None:
    woken = threading.Event()
    inbox = DatabasePermitInbox(run.pk, wake=woken.set, interval=0.02)
    inbox.start()
    try:
        row = waiting(run)
        permits.decide(operator, "approve", Target.rows(run.pk, [row.pk]))
        assert woken.wait(10)
        assert [decision.decision_id for decision in inbox.poll()] == [said_of(row).decision_id]
    finally:
        inbox.close()
        inbox.close()


def test_the_doorbell_wakes_it_at_once(
    run: SchedulerRun, operator: User, redis_server: str
) -> None:
    woken = threading.Event()
    inbox = DatabasePermitInbox(run.pk, wake=woken.set, redis_url=redis_server, interval=60.0)
    inbox.start()
    try:
        row = waiting(run)
        with redis.Redis.from_url(redis_server) as client:
            channel = groups.permit_doorbell(run.pk)
            deadline = time.monotonic() + 10
            while not client.pubsub_numsub(channel)[0][1] and time.monotonic() < deadline:
                time.sleep(0.01)
            permits.decide(operator, "approve", Target.rows(run.pk, [row.pk]))
            client.publish(channel, b"1")
        assert woken.wait(10)
    finally:
        inbox._interval = 0.01
        inbox._stop.set()
        with redis.Redis.from_url(redis_server) as client:
            client.publish(groups.permit_doorbell(run.pk), b"1")
        inbox.close(5)


def test_without_redis_it_still_polls(run: SchedulerRun, operator: User) -> None:
    inbox = DatabasePermitInbox(run.pk, redis_url="unix:///nonexistent/redis.sock", interval=0.02)
    inbox.start()
    try:
        row = waiting(run)
        permits.decide(operator, "deny", Target.rows(run.pk, [row.pk]))
        deadline = time.monotonic() + 10
        while not inbox._arrived and time.monotonic() < deadline:
            time.sleep(0.01)
        assert [decision.verdict for decision in inbox.poll()] == [Verdict.DENY]
    finally:
        inbox.close()


def test_numbers_need_a_transaction(run: SchedulerRun) -> None:
    with pytest.raises(RuntimeError, match="needs a transaction"):
        commits.next_commit(run.pk)
