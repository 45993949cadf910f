"""Who may approve, how many have to, and what outlives what, in the rows."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard import carriage, permits, permits_words
from dashboard.models import AuditEntry, RunState, SchedulerRun, WaitingPod
from dashboard.permits import Target
from dashboard.permits_inbox import DatabasePermitInbox
from dashboard.permits_models import Decision, GangApproval
from dashboard.recording import BatchWriter
from dashboard.rest import shapes
from dashboard.told import Batch, DecisionApplied, Told
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.plugins.manual_approval import ManualApproval
from scheduler_core.plugins.manual_approval.plugin import TERMS
from scheduler_core.records import (
    ApprovalTerms,
    NodeUse,
    PendingPlugin,
    PermitDecision,
    Verdict,
)
from scheduler_core.testing.builders import make_pod
from tests.dashboard.factory import NOW, binding, pod, resolved, wait
from tests.plugins.support import FakeHandle

pytestmark = pytest.mark.django_db(transaction=True)
_batches = iter(range(10**6))
GANG = "default/g"
TWO = ApprovalTerms(approvers=2)


def told(run: SchedulerRun, *records: Any) -> None:
    BatchWriter(run.pk).write(Batch(f"r:{next(_batches)}", [Told(record, 0) for record in records]))
    RunState.objects.filter(run=run).update(clock_at=None)


def waiting(run: SchedulerRun, name: str = "p", **fields: Any) -> WaitingPod:
    sequence = WaitingPod.objects.count() + 1
    told(run, wait(sequence, name, **fields))
    return WaitingPod.objects.get(run=run, cycle=sequence)


def say(user: User, verdict: str, row: WaitingPod) -> permits.Answer:
    (answer,) = permits.decide(user, verdict, Target.rows(row.run_id, [row.pk]))
    row.refresh_from_db()
    return answer


def say_of_gang(user: User, verdict: str, run: SchedulerRun) -> list[permits.Answer]:
    return permits.decide(user, verdict, Target.whole_gang(run.pk, GANG))


# --- how many -----------------------------------------------------------------------------------


def test_two_people_have_to_approve(
    run: SchedulerRun, operator: User, second_operator: User
) -> None:
    row = waiting(run, terms=TWO)
    first = say(operator, "approve", row)
    assert (first.code, row.state) == ("recorded", "waiting")
    assert first.message == "Approved, 1 of 2; one more person has to approve."
    assert say(operator, "approve", row).code == "already"
    second = say(second_operator, "approve", row)
    assert (second.code, row.state) == ("accepted", "sent")
    assert second.approved_by == ("olga", "otto")
    # All whose word counted are named afterwards, to people and to pipelines.
    late = say(operator, "deny", row)
    assert late.message.startswith("Already approved by olga and otto at ")
    assert [given["user"] for given in shapes.waiting_pod(row, run)["approvals"]] == [
        "olga",
        "otto",
    ]
    assert [d.username for d in Decision.objects.all()] == ["olga", "otto"]


def test_terms_that_rise_reopen_what_was_sent(
    run: SchedulerRun, operator: User, second_operator: User
) -> None:
    row = waiting(run, "a", pod_group=GANG, terms=ApprovalTerms(approvers=1))
    assert say(operator, "approve", row).code == "accepted"
    told(run, wait(row.cycle, "a", pod_group=GANG, terms=TWO))
    row.refresh_from_db()
    assert (row.state, row.decision_verdict, len(row.approvals)) == ("waiting", "", 1)
    assert say(operator, "approve", row).code == "already"
    assert say(second_operator, "approve", row).code == "accepted"
    assert (row.state, row.decision_user) == ("sent", "otto")
    assert [d.username for d in Decision.objects.all()] == ["olga", "otto"]


def test_terms_that_stay_reopen_nothing(run: SchedulerRun, operator: User) -> None:
    row = waiting(run, "a", terms=ApprovalTerms(approvers=1))
    say(operator, "approve", row)
    told(run, wait(row.cycle, "a", terms=ApprovalTerms(approvers=1)))
    row.refresh_from_db()
    assert (row.state, row.decision_user) == ("sent", "olga")


def test_two_at_once_are_two(run: SchedulerRun, operator: User, second_operator: User) -> None:
    row = waiting(run, terms=TWO)
    barrier, codes = threading.Barrier(2), []

    def click(user: User) -> None:
        try:
            barrier.wait(10)
            (answer,) = permits.decide(user, "approve", Target.rows(run.pk, [row.pk]))
            codes.append(answer.code)
        finally:
            connection.close()

    threads = [threading.Thread(target=click, args=(u,)) for u in (operator, second_operator)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    row.refresh_from_db()
    assert sorted(codes) == ["accepted", "recorded"]
    assert (row.state, len(row.approvals)) == ("sent", 2)


def test_an_approval_is_taken_back_by_its_giver_alone(
    run: SchedulerRun, operator: User, second_operator: User
) -> None:
    row = waiting(run, terms=TWO)
    say(operator, "approve", row)
    other = say(second_operator, "revoke", row)
    assert (other.code, other.message) == (
        "not_asked",
        "There is no approval of yours to take back.",
    )
    assert say(operator, "revoke", row).code == "accepted"
    assert row.approvals == []
    verbs = list(AuditEntry.objects.order_by("pk").values_list("verb", flat=True))
    assert verbs == ["approve", "revoke"]


def test_taking_back_too_late_changes_nothing(run: SchedulerRun, operator: User) -> None:
    row = waiting(run)
    say(operator, "approve", row)
    say(operator, "revoke", row)
    assert row.state == "waiting"
    said = Decision.objects.get(verdict="revoke")
    decision = PermitDecision(said.pk, row.uid, Verdict.REVOKE, "olga")
    told(run, DecisionApplied(decision, False, "no longer waits", 5.0))
    row.refresh_from_db()
    assert (row.state, row.decision_user) == ("sent", "olga")


# --- who ----------------------------------------------------------------------------------------


def test_only_members_of_the_groups_may_decide(
    run: SchedulerRun, operator: User, second_operator: User
) -> None:
    second_operator.groups.add(Group.objects.create(name="leads"))
    row = waiting(run, terms=ApprovalTerms(groups=("leads", "admins")))
    refused = say(operator, "approve", row)
    assert (refused.code, refused.ok) == ("forbidden", False)
    assert refused.message == "Only members of leads or admins may decide on default/p."
    assert say(operator, "deny", row).code == "forbidden"
    assert say(second_operator, "approve", row).ok


@pytest.mark.parametrize(
    ("groups", "allowed"),
    [
        pytest.param((), [], id="no group, no namespace"),
        pytest.param(("ml-leads",), ["ml"], id="one namespace's group"),
        pytest.param(("web-leads",), ["web"], id="the other one's"),
        pytest.param(("ml-leads", "web-leads"), ["ml", "web"], id="both"),
    ],
)
def test_who_may_is_a_group_per_namespace(
    run: SchedulerRun, operator: User, groups: tuple[str, ...], allowed: list[str]
) -> None:
    """Two policies, each with its namespace and its group, as the plugin hands them over."""
    args = {
        "policies": [
            {"name": name, "namespaces": [name], "approverGroups": [f"{name}-leads"]}
            for name in ("ml", "web")
        ]
    }
    operator.groups.set([Group.objects.create(name=name) for name in groups])
    plugin, done = ManualApproval(args, FakeHandle()), []
    for name in ("ml", "web"):
        state = CycleState()
        plugin.permit(state, make_pod(name).namespace(name).obj(), "n")
        row = waiting(run, name, pod=pod(name, name), terms=state.read(TERMS))
        if say(operator, "approve", row).ok:
            done.append(name)
    assert done == allowed


def test_a_group_alone_is_not_the_permission(run: SchedulerRun, viewer: User) -> None:
    viewer.groups.add(Group.objects.create(name="leads"))
    row = waiting(run, terms=ApprovalTerms(groups=("leads",)))
    assert say(viewer, "approve", row).code == "forbidden"


def test_the_permission_may_come_from_the_group(run: SchedulerRun, viewer: User) -> None:
    leads = Group.objects.create(name="leads")
    leads.permissions.add(Permission.objects.get(codename="decide_waitingpod"))
    viewer.groups.add(leads)
    row = waiting(run, terms=ApprovalTerms(groups=("leads",)))
    assert say(User.objects.get(pk=viewer.pk), "approve", row).ok


def test_nobody_approves_their_own_request_where_the_terms_say_so(
    run: SchedulerRun, operator: User
) -> None:
    row = waiting(run, requested_by="olga", terms=ApprovalTerms(requester_may_approve=False))
    answer = say(operator, "approve", row)
    assert (answer.code, answer.message) == (
        "own_request",
        "You asked for this pod yourself; somebody else has to approve it.",
    )
    assert Decision.objects.count() == 0
    assert say(operator, "deny", row).ok  # to withdraw it


def test_the_api_says_403_where_nothing_may_be_decided(
    run: SchedulerRun, as_operator: Client
) -> None:
    row = waiting(run, terms=ApprovalTerms(groups=("leads",)))
    answer = as_operator.post(
        f"/api/runs/{run.pk}/waiting/decide",
        {"pods": [row.pk], "verdict": "approve"},
        content_type="application/json",
    )
    assert answer.status_code == 403
    assert answer.json()["results"][0]["code"] == "forbidden"


# --- gangs --------------------------------------------------------------------------------------


def test_a_gangs_approval_covers_members_that_come_later(run: SchedulerRun, operator: User) -> None:
    waiting(run, "a", pod_group=GANG)
    say_of_gang(operator, "approve", run)
    later = waiting(run, "b", pod_group=GANG)
    assert later.state == "sent"
    assert later.approvals[0]["user"] == "olga"
    assert later.approvals[0]["gang"]
    assert Decision.objects.filter(waiting_pod=later, gang=True).count() == 1


def test_until_it_is_complete(run: SchedulerRun, operator: User) -> None:
    row = waiting(run, "a", pod_group=GANG)
    say_of_gang(operator, "approve", run)
    told(run, resolved(row.cycle, "a", pod_group=GANG))
    assert GangApproval.objects.get().state == "complete"
    assert waiting(run, "b", pod_group=GANG).state == "waiting"


def test_a_gang_that_was_given_up_asks_anew(run: SchedulerRun, operator: User) -> None:
    row = waiting(run, "a", pod_group=GANG)
    say_of_gang(operator, "approve", run)
    told(run, resolved(row.cycle, "a", outcome="timed_out", pod_group=GANG))
    assert GangApproval.objects.get().state == "ended"
    assert waiting(run, "a", pod_group=GANG, since=NOW + 60).state == "waiting"


def test_a_gang_of_which_nobody_waits_any_longer_asks_anew(
    run: SchedulerRun, operator: User
) -> None:
    first = waiting(run, "a", pod_group=GANG)
    second = waiting(run, "b", pod_group=GANG)
    say_of_gang(operator, "approve", run)
    told(run, resolved(first.cycle, "a", outcome="removed", pod_group=GANG))
    assert waiting(run, "c", pod_group=GANG).state == "sent"  # b still waits
    third = WaitingPod.objects.get(name="c")
    told(
        run,
        resolved(second.cycle, "b", outcome="removed", pod_group=GANG),
        resolved(third.cycle, "c", outcome="removed", pod_group=GANG),
    )
    assert GangApproval.objects.get().state == "ended"
    later = waiting(run, "d", pod_group=GANG, since=NOW + 86400, requested_by="mallory")
    assert (later.state, later.approvals) == ("waiting", [])


@pytest.mark.parametrize(
    ("terms", "state"),
    [
        pytest.param({"reason": "9 pods"}, "sent", id="a reason that counts the members"),
        pytest.param({"at_deadline": Verdict.APPROVE}, "sent", id="a window that opens soon"),
        pytest.param({"policy": "large"}, "waiting", id="another policy"),
        pytest.param({"approvers": 2}, "waiting", id="more people"),
        pytest.param({"requester_may_approve": False}, "waiting", id="not the requester"),
        pytest.param({"groups": ("staff",)}, "waiting", id="other people"),
    ],
)
def test_a_later_member_is_covered_under_the_terms_of_the_approval_alone(
    run: SchedulerRun, operator: User, terms: dict[str, Any], state: str
) -> None:
    operator.groups.add(Group.objects.create(name="staff"))
    waiting(run, "a", pod_group=GANG, terms=ApprovalTerms(policy="small", reason="8 pods"))
    say_of_gang(operator, "approve", run)
    given = {"policy": "small", "reason": "8 pods", **terms}
    later = waiting(run, "b", pod_group=GANG, terms=ApprovalTerms(**given))
    assert later.state == state
    assert len(later.approvals) == (state == "sent")


def test_said_again_it_stands_for_the_new_terms_too(
    run: SchedulerRun, operator: User, second_operator: User
) -> None:
    waiting(run, "a", pod_group=GANG, terms=ApprovalTerms(policy="small"))
    say_of_gang(operator, "approve", run)
    large = ApprovalTerms(policy="large")
    assert waiting(run, "b", pod_group=GANG, terms=large).state == "waiting"
    assert [answer.code for answer in say_of_gang(operator, "approve", run)] == [
        "already",
        "accepted",
    ]
    assert waiting(run, "c", pod_group=GANG, terms=large).state == "sent"
    assert GangApproval.objects.filter(state="standing").count() == 1


@pytest.mark.parametrize("verdict", ["approve", "deny", "revoke"])
def test_a_gang_that_waits_no_more_says_what_happened(
    run: SchedulerRun, as_operator: Client, verdict: str
) -> None:
    row = waiting(run, "a", pod_group=GANG, gang_uid="pg-1")
    end = {"outcome": "timed_out", "message": "nobody decided", "resolved_by": ""}
    told(run, resolved(row.cycle, "a", pod_group=GANG, gang_uid="pg-1", **end))
    path = f"/api/runs/{run.pk}/waiting/decide"
    body = {"verdict": verdict, "pod_group": GANG}
    late = as_operator.post(path, body, content_type="application/json")
    assert late.status_code == 409
    at = permits_words.moment(NOW + 9)
    assert late.json()["error"] == f"Too late: default/a has timed out at {at}: nobody decided."
    (result,) = late.json()["results"]
    assert (result["code"], result["pod"]) == ("too_late", "default/a")
    assert not GangApproval.objects.exists()
    assert not AuditEntry.objects.exists()
    other = as_operator.post(path, {**body, "gang_uid": "pg-2"}, content_type="application/json")
    assert other.status_code == 404


def test_who_decided_a_gang_that_waits_no_more_is_told(
    run: SchedulerRun, operator: User, second_operator: User
) -> None:
    row = waiting(run, "a", pod_group=GANG)
    (first,) = say_of_gang(operator, "approve", run)
    told(run, resolved(row.cycle, "a", pod_group=GANG))
    (own,) = say_of_gang(operator, "approve", run)
    (late,) = say_of_gang(second_operator, "deny", run)
    assert (own.code, late.code, late.who) == ("already", "too_late", "olga")
    at = permits_words.moment(first.when)
    assert late.message == f"Already approved by olga at {at}; it was allowed."
    assert not GangApproval.objects.filter(state="standing").exists()


def test_a_gangs_approval_is_taken_back(run: SchedulerRun, operator: User) -> None:
    waiting(run, "a", pod_group=GANG)
    say_of_gang(operator, "approve", run)
    (answer,) = say_of_gang(operator, "revoke", run)
    assert answer.code == "accepted"
    assert GangApproval.objects.get().state == "revoked"
    assert waiting(run, "b", pod_group=GANG).state == "waiting"


def test_what_is_taken_back_of_one_member_does_not_come_back(
    run: SchedulerRun, operator: User
) -> None:
    """Not with the next thing that is told of its wait, as after a restart."""
    row = waiting(run, "a", pod_group=GANG)
    waiting(run, "b", pod_group=GANG)
    say_of_gang(operator, "approve", run)
    assert say(operator, "revoke", row).code == "accepted"
    told(run, wait(row.cycle, "a", pod_group=GANG))
    row.refresh_from_db()
    assert (row.state, row.approvals) == ("waiting", [])
    assert waiting(run, "c", pod_group=GANG).state == "sent"
    assert say(operator, "approve", row).code == "accepted"


def test_a_word_on_a_gang_asks_the_database_as_often_for_many_members_as_for_few(
    run: SchedulerRun, operator: User, second_operator: User
) -> None:
    asked: dict[str, list[int]] = {"approve": [], "revoke": []}
    for members in (1, 2, 9):  # the first time the approval of the gang is made, later it is there
        three = ApprovalTerms(approvers=3)
        told(run, *(wait(100 * members + i, f"{members}-{i}", pod_group=GANG, terms=three)
                    for i in range(members)))  # fmt: skip
        say_of_gang(second_operator, "approve", run)
        for word, counts in asked.items():
            with CaptureQueriesContext(connection) as queries:
                say_of_gang(operator, word, run)
            counts.append(len(queries))
    assert {word: len(set(counts[1:])) for word, counts in asked.items()} == {
        "approve": 1,
        "revoke": 1,
    }


@pytest.mark.parametrize("whole", [False, True], ids=["of one member", "of the whole gang"])
def test_what_is_taken_back_is_covered_at_once_by_anothers_approval_of_the_gang(
    run: SchedulerRun, operator: User, second_operator: User, whole: bool
) -> None:
    """With the taking back, not when a worker comes to tell of it: its time may be over by then."""
    row = waiting(run, "a", pod_group=GANG)
    assert say(operator, "approve", row).code == "accepted"
    assert [answer.code for answer in say_of_gang(second_operator, "approve", run)] == ["already"]
    if whole:
        say_of_gang(operator, "approve", run)
        (answer,) = say_of_gang(operator, "revoke", run)
        row.refresh_from_db()
    else:
        answer = say(operator, "revoke", row)
    assert (answer.state, answer.approved_by) == ("sent", ("otto",))
    text = "Your approval is taken back; that of the whole gang by otto covers the pod."
    assert answer.message == text
    assert (row.state, row.decision_user) == ("sent", "otto")
    # The scheduler hears the words in the order of their ids.
    words = Decision.objects.filter(waiting_pod=row).order_by("pk")
    assert list(words.values_list("username", "verdict")) == [
        ("olga", "approve"),
        ("olga", "revoke"),
        ("otto", "approve"),
    ]
    said_at = GangApproval.objects.get(username="otto").at
    assert [word.at for word in words][2] == max(said_at, row.since)


def test_an_approval_of_the_gang_that_came_too_late_for_a_member_does_not_cover_it(
    run: SchedulerRun, operator: User, second_operator: User
) -> None:
    row = waiting(run, "a", pod_group=GANG, deadline=100.0, since=0.0)
    other = waiting(run, "b", pod_group=GANG, deadline=900.0, since=0.0)
    permits.decide(operator, "approve", Target.rows(run.pk, [row.pk]), now=50.0)
    permits.decide(second_operator, "approve", Target.whole_gang(run.pk, GANG), now=200.0)
    permits.decide(operator, "revoke", Target.rows(run.pk, [row.pk]), now=300.0)
    row.refresh_from_db()
    other.refresh_from_db()
    assert (row.approvals, other.decision_user) == ([], "otto")


@pytest.mark.parametrize("name", ["", "default/g"], ids=["a pod", "a gang"])
def test_nothing_is_taken_back_when_all_was_said_and_the_time_is_over(
    run: SchedulerRun, operator: User, name: str
) -> None:
    """No worker has let it go yet; what was said by then is what it ends with."""
    row = waiting(run, "a", pod_group=name, deadline=100.0, since=0.0)
    target = Target.rows(run.pk, [row.pk])
    assert permits.decide(operator, "approve", target, now=50.0)[0].ok
    assert permits.decide(operator, "revoke", target, now=100.0)[0].code == "too_late"
    assert permits.decide(operator, "revoke", target, now=99.0)[0].code == "accepted"


def test_two_standing_approvals_stand_in_as_far_as_they_are_needed(
    run: SchedulerRun, operator: User, second_operator: User, viewer: User
) -> None:
    viewer.user_permissions.add(Permission.objects.get(codename="decide_waitingpod"))
    third = User.objects.get(pk=viewer.pk)
    row = waiting(run, "a", pod_group=GANG, terms=TWO)
    say(operator, "approve", row)
    say(third, "approve", row)
    say_of_gang(second_operator, "approve", run)
    say(operator, "revoke", row)
    assert [item["user"] for item in row.approvals] == [third.username, "otto"]
    answer = say(third, "revoke", row)
    assert (answer.state, answer.approved_by) == ("waiting", ("otto",))
    assert answer.message == "Your approval is taken back; the scheduler applies it."


@pytest.mark.parametrize(
    ("refused", "state", "approved_by"),
    [
        pytest.param("olga approve", "waiting", [], id="an approval"),
        pytest.param("otto deny", "sent", ["olga"], id="a denial"),
        pytest.param("olga revoke", "sent", ["olga"], id="one that is taken back"),
    ],
)
def test_a_word_that_the_scheduler_refuses_counts_no_more(
    run: SchedulerRun,
    operator: User,
    second_operator: User,
    refused: str,
    state: str,
    approved_by: list[str],
) -> None:
    """By terms that are new, or because it came too late. Its pod is not shown as decided by it,
    and time goes on for its gang."""
    row = waiting(run, "a", pod_group=GANG)
    waiting(run, "b", pod_group=GANG)
    say(operator, "approve", row)
    if not refused.endswith("approve"):
        first = Decision.objects.get()
        told(run, answered(first, row, applied=True))
        name, verdict = refused.split()
        row.refresh_from_db()
        assert say(operator if name == "olga" else second_operator, verdict, row).ok
    told(run, answered(Decision.objects.order_by("pk").last(), row, applied=False))
    row.refresh_from_db()
    assert (row.state, [item["user"] for item in row.approvals]) == (state, approved_by)
    assert (row.decision_user, row.decision_verdict) == (
        ("olga", "approve") if approved_by else ("", "")
    )
    assert (row.decision_applied_at is not None) == bool(approved_by)


def test_a_word_that_was_refused_may_count_under_other_terms(
    run: SchedulerRun, operator: User
) -> None:
    row = waiting(run, "a", pod_group=GANG)
    say(operator, "approve", row)
    word = Decision.objects.get()
    told(run, answered(word, row, applied=False))
    told(run, answered(word, row, applied=True))
    row.refresh_from_db()
    assert (row.state, row.decision_user, len(row.approvals)) == ("sent", "olga", 1)


def answered(word: Decision | None, row: WaitingPod, *, applied: bool) -> DecisionApplied:
    """What the scheduler makes of a word."""
    assert word is not None
    decision = PermitDecision(word.pk, row.uid, Verdict(word.verdict), word.username)
    return DecisionApplied(decision, applied, "because", 5.0)


def test_a_later_member_of_the_approver_is_not_covered(run: SchedulerRun, operator: User) -> None:
    terms = ApprovalTerms(requester_may_approve=False)
    waiting(run, "a", pod_group=GANG, terms=terms)
    say_of_gang(operator, "approve", run)
    own = waiting(run, "b", pod_group=GANG, requested_by="olga", terms=terms)
    assert own.state == "waiting"


def test_who_lost_the_right_covers_nobody(run: SchedulerRun, operator: User) -> None:
    waiting(run, "a", pod_group=GANG)
    say_of_gang(operator, "approve", run)
    operator.user_permissions.clear()
    assert waiting(run, "b", pod_group=GANG).state == "waiting"


@pytest.mark.parametrize(
    ("other", "code"),
    [
        pytest.param("undecided", "accepted", id="another is undecided"),
        pytest.param("quorum", "accepted", id="the gang is not complete"),
        pytest.param("approved", "conflict", id="all is said"),
        pytest.param("gone", "conflict", id="all is said of those that are there"),
    ],
)
def test_an_approved_member_can_be_denied_until_all_of_its_gang_is_said(
    run: SchedulerRun, operator: User, second_operator: User, other: str, code: str
) -> None:
    """Also while no worker runs: what was complete first wins, and who comes later is told."""
    row = waiting(run, "a", pod_group=GANG)
    say(operator, "approve", row)
    assert say(second_operator, "deny", row).code == "conflict"
    told(run, answered(Decision.objects.get(), row, applied=True))
    pending = [PendingPlugin("Coscheduling", NOW + 900)] if other == "quorum" else []
    pending.append(PendingPlugin("ManualApproval", NOW + 900))
    second = waiting(run, "b", pod_group=GANG, pending=tuple(pending))
    if other != "undecided":
        assert say(operator, "approve", second).code == "accepted"
    if other == "gone":
        told(run, resolved(second.cycle, "b", outcome="removed", pod_group=GANG))
    row.refresh_from_db()
    answer = say(second_operator, "deny", row)
    assert (answer.code, row.decision_verdict) == (
        code,
        "deny" if code == "accepted" else "approve",
    )
    if code == "conflict":
        assert answer.message.startswith("Already approved by olga at ")


def test_one_members_deadline_is_the_gangs(run: SchedulerRun, operator: User) -> None:
    waiting(run, "a", pod_group=GANG, deadline=100.0)
    row = waiting(run, "b", pod_group=GANG, deadline=900.0)
    (answer,) = permits.decide(operator, "approve", Target.rows(run.pk, [row.pk]), now=200.0)
    assert answer.code == "too_late"


def test_an_action_on_a_gang_is_settled_when_every_member_is(
    run: SchedulerRun, operator: User
) -> None:
    for name in "ab":
        waiting(run, name, pod_group=GANG)
    say_of_gang(operator, "deny", run)
    first, second = Decision.objects.order_by("pk")
    words = [
        PermitDecision(said.pk, said.waiting_pod.uid, Verdict.DENY, "olga")
        for said in (first, second)
    ]
    told(run, DecisionApplied(words[0], True, "denied", 5.0))
    assert AuditEntry.objects.get().outcome == "sent"
    told(run, DecisionApplied(words[1], False, "it was deleted", 5.0))
    entry = AuditEntry.objects.get()
    assert entry.outcome == "applied"
    assert entry.message == "denied (1 of 2 pods; another one: it was deleted)"


# --- what outlives what -------------------------------------------------------------------------


def test_an_approved_pod_that_is_not_bound_yet_is_restored(
    run: SchedulerRun, operator: User
) -> None:
    row = waiting(run)
    say(operator, "approve", row)
    told(run, resolved(row.cycle, let_go=True))
    assert [(w.name, w.state, w.unbound) for w in permits.open_waiting(run.pk)] == [
        ("p", "allowed", True)
    ]
    told(run, binding(row.cycle))
    assert permits.open_waiting(run.pk) == []


def test_a_wait_that_is_taken_up_again_keeps_its_row_and_its_decision(
    run: SchedulerRun, operator: User
) -> None:
    row = waiting(run)
    say(operator, "approve", row)
    told(run, resolved(row.cycle, let_go=True))
    told(run, wait(7))
    again = WaitingPod.objects.get()
    assert (again.pk, again.state, again.decision_user) == (row.pk, "sent", "olga")
    told(run, resolved(7, outcome="broken", message="its node is gone"))
    again.refresh_from_db()
    assert (again.state, again.unbound) == ("broken", False)


def test_no_word_goes_to_another_pod_of_the_same_name(run: SchedulerRun, operator: User) -> None:
    row = waiting(run)
    say(operator, "approve", row)
    told(run, resolved(row.cycle, outcome="removed"))
    told(run, wait(8, pod=type(wait().pod)("another-uid", "default", "p"), since=NOW + 1))
    other = WaitingPod.objects.get(uid="another-uid")
    assert (other.state, other.approvals) == ("waiting", [])
    inbox = DatabasePermitInbox(run.pk)
    assert inbox.look() == 0


def test_the_inbox_has_heard_everything_up_to_its_look_under_the_lock(run: SchedulerRun) -> None:
    RunState.objects.update_or_create(run=run, defaults={"clock_at": None})
    inbox = DatabasePermitInbox(run.pk)
    assert inbox.heard_until(5.0) == float("-inf")
    inbox.look(confirm=True)
    assert inbox.heard_until(5.0) > 1_000_000.0


# --- what people see ----------------------------------------------------------------------------


def test_what_there_is_to_know_before_the_click(
    run: SchedulerRun, operator: User, as_operator: Client
) -> None:
    use = {"cpu": NodeUse(4000, 1000, 1500)}
    row = waiting(run, "a", pod_group=GANG, node_use=use, terms=TWO, gang_uid="g-uid")
    more = {"cpu": NodeUse(4000, 1500, 2000)}
    waiting(run, "b", pod_group=GANG, node_use=more, gang_uid="g-uid")
    waiting(run, "rival", node_use=use)
    say(operator, "approve", row)
    found = as_operator.get(f"/api/runs/{run.pk}/waiting/{row.pk}").json()
    assert found["may"] == {"approve": False, "deny": True, "revoke": True, "why": ""}
    assert [said["user"] for said in found["said"]] == ["olga"]
    assert found["gang"]["uid"] == "g-uid"
    assert found["gang"]["requests"] == {"cpu": 1000}
    assert found["nodes"][0]["use"] == {"cpu": [4000, 1000, 2000]}
    assert [other["pod"] for other in found["rivals"]["waiting"]] == ["default/rival"]
    gangs = as_operator.get(f"/api/runs/{run.pk}/waiting/gangs").json()["gangs"]
    assert [(gang["pod_group"], gang["members"]) for gang in gangs] == [(GANG, 2)]


def test_a_wait_that_is_not_there(run: SchedulerRun, as_operator: Client) -> None:
    answer = as_operator.get(f"/api/runs/{run.pk}/waiting/99")
    assert (answer.status_code, answer.json()) == (
        404,
        {"error": "There is no such wait in this run."},
    )


# --- a worker that dies between two rows of a gang ----------------------------------------------


def test_an_open_wait_was_let_go_with_the_member_of_which_that_is_written(
    run: SchedulerRun,
) -> None:
    """A gang goes as one; who began to wait after that has to be approved."""
    gang = {"pod_group": GANG, "gang_uid": "pg-1"}
    first = waiting(run, "a", **gang)
    waiting(run, "b", **gang)
    told(run, resolved(first.cycle, "a", **gang))
    waiting(run, "c", since=NOW + 60, **gang)
    waiting(run, "d", pod_group="default/other", gang_uid="pg-2")
    records = {record.pod.name: record for record in carriage.open_waits(run.pk)}
    assert {name: (r.let_go, r.resolved_at) for name, r in records.items()} == {
        "b": (True, NOW + 9),
        "c": (False, None),
        "d": (False, None),
    }
