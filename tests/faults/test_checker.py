"""The judge is judged: a database without fault, and one for each thing that it has to find."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from dashboard.models import Cluster, SandboxWrite, SchedulerRun, WaitingPod
from dashboard.permits_models import Decision
from tests.faults.checker import RULES, Database, Terms, check

pytestmark = pytest.mark.django_db

NOW = 1_000.0
TERMS = {"approvers": 1, "requester_may_approve": False, "at_deadline": "deny", "groups": []}
GROUP_API = "scheduling.x-k8s.io/v1alpha1"


class Hand:
    """Writes a database by hand; times are seconds after ``NOW``."""

    def __init__(self) -> None:
        self.cluster = Cluster.objects.create(name="by-hand")
        self.run = SchedulerRun.objects.create(cluster=self.cluster, name="by-hand")
        self._version = itertools.count(1)
        self._pods: dict[str, dict[str, Any]] = {}
        self.away: list[tuple[float, float]] = []
        self.ended_at = NOW + 100

    def found(self, database: Database) -> list[str]:
        """The rules that are broken."""
        terms = Terms(self.ended_at, away=self.away, timeouts=(10.0,))
        return [v.rule for v in check(database, self.cluster.pk, self.run.pk, terms)]

    # --- the write log ----------------------------------------------------------------------

    def write(self, at: float, verb: str, kind: str, name: str, uid: str, obj: Any) -> None:
        SandboxWrite.objects.create(
            cluster=self.cluster, resource_version=next(self._version), at=NOW + at, verb=verb,
            kind=kind, namespace="default", name=name, uid=uid, object=obj,
        )  # fmt: skip

    def pod(self, name: str, *, uid: str = "", group: str = "", at: float = 0.0) -> str:
        labels = {"kubesched.io/approval": "required"}
        if group:
            labels["scheduling.x-k8s.io/pod-group"] = group
        uid = uid or f"uid-{name}"
        self._pods[uid] = {"metadata": {"name": name, "labels": labels}, "spec": {}}
        self.write(at, "create", "Pod", name, uid, self._pods[uid])
        return uid

    def bind(self, uid: str, node: str = "n1", at: float = 2.0) -> None:
        self._pods[uid] = {**self._pods[uid], "spec": {"nodeName": node}}
        name = self._pods[uid]["metadata"]["name"]
        self.write(at, "bind", "Pod", name, uid, self._pods[uid])

    def delete(self, uid: str, at: float) -> None:
        self.write(at, "delete", "Pod", self._pods[uid]["metadata"]["name"], uid, self._pods[uid])

    def delete_node(self, name: str, at: float) -> None:
        self.write(at, "delete", "Node", name, f"uid-{name}", {"metadata": {"name": name}})

    def group(self, name: str, members: int, at: float = 0.0, verb: str = "create") -> None:
        obj = {"apiVersion": GROUP_API, "metadata": {"name": name}, "spec": {"minMember": members}}
        self.write(at, verb, "PodGroup", name, f"uid-{name}", obj)

    # --- rows -------------------------------------------------------------------------------

    def wait(self, uid: str, state: str = "allowed", **columns: Any) -> WaitingPod:
        """A wait from 0 to 10, over at 2."""
        name = self._pods[uid]["metadata"]["name"] if uid in self._pods else "nobody"
        group = (self._pods.get(uid) or {"metadata": {"labels": {}}})["metadata"]["labels"].get(
            "scheduling.x-k8s.io/pod-group", ""
        )
        is_open = state in WaitingPod.OPEN
        values: dict[str, Any] = {
            "namespace": "default", "name": name, "node": "n1", "profile": "default-scheduler",
            "priority": 0, "since": 0.0, "deadline": 10.0, "needs_approval": True, "cycle": 1,
            "terms": TERMS, "commit_seq": 1, "pod_group": f"default/{group}" if group else "",
            "gang_uid": f"uid-{group}" if group else "", "requested_by": "ada",
            "resolved_at": None if is_open else 2.0,
            "message": "" if is_open or state == "allowed" else "because",
        }  # fmt: skip
        values |= columns
        for moment in ("since", "deadline", "resolved_at"):
            if values[moment] is not None:
                values[moment] += NOW
        return WaitingPod.objects.create(run=self.run, uid=uid, state=state, **values)

    def word(
        self, wait: WaitingPod, user: str = "ann", verdict: str = "approve", at: float = 1.0,
        applied: bool | None = True, counts: bool = True,
    ) -> None:  # fmt: skip
        Decision.objects.create(
            run=self.run, waiting_pod=wait, verdict=verdict, username=user, at=NOW + at,
            applied=applied,
        )  # fmt: skip
        if verdict == "approve" and counts:
            said = {"user": user, "at": NOW + at, "comment": "", "gang": False}
            wait.approvals = [*wait.approvals, said]
            wait.save()

    def approved(self, name: str = "p", **pod: Any) -> WaitingPod:
        """A pod that asked, was approved and is bound."""
        uid = self.pod(name, **pod)
        wait = self.wait(uid)
        self.word(wait)
        self.bind(uid)
        return wait

    def gang(self, *bound: bool, members: int = 0) -> list[WaitingPod]:
        """A gang whose members are approved; some of them are bound."""
        self.group("g", members or len(bound))
        waits = []
        for number, is_bound in enumerate(bound):
            uid = self.pod(f"g-{number}", group="g")
            waits.append(self.wait(uid))
            self.word(waits[-1])
            if is_bound:
                self.bind(uid)
        return waits


@pytest.fixture
def hand(db: None) -> Hand:
    return Hand()


# --- nothing to find -----------------------------------------------------------------------------


def approved(hand: Hand) -> None:
    hand.approved()


def denied(hand: Hand) -> None:
    wait = hand.wait(hand.pod("p"), "rejected")
    hand.word(wait, verdict="deny")


def timed_out_in_time(hand: Hand) -> None:
    hand.wait(hand.pod("p"), "timed_out", resolved_by="ManualApproval", resolved_at=11.9)


def timed_out_when_a_worker_was_back(hand: Hand) -> None:
    hand.away = [(NOW + 9, NOW + 30)]
    hand.wait(hand.pod("p"), "timed_out", resolved_by="ManualApproval", resolved_at=31.9)


def an_approved_member_that_waited_on(hand: Hand, *, ended: float = 21.5) -> None:
    """Until time was over for the other one of its gang."""
    end = {"resolved_by": "ManualApproval", "resolved_at": ended, "gang_uid": "uid-g"}
    hand.group("g", 2)
    first, second = (hand.pod(f"g-{number}", group="g") for number in range(2))
    hand.word(hand.wait(first, "timed_out", pod_group="default/g", **end))
    hand.wait(second, "timed_out", pod_group="default/g", deadline=20.0, **end)


def an_approved_member_whose_approval_was_taken_back(
    hand: Hand, *, ended: float = 16.5, back: float = 15.0
) -> None:
    an_approved_member_that_waited_on(hand, ended=ended)
    WaitingPod.objects.filter(name="g-1").update(state="rejected", message="its gang was")
    wait = WaitingPod.objects.get(name="g-0")
    hand.word(wait, verdict="revoke", at=back)
    WaitingPod.objects.filter(name="g-0").update(approvals=[])


def let_go_by_its_terms(hand: Hand) -> None:
    uid = hand.pod("p")
    hand.wait(uid, terms={**TERMS, "at_deadline": "approve"}, resolved_at=10.5)
    hand.bind(uid, at=11.0)


def a_late_word_that_was_refused(hand: Hand) -> None:
    wait = hand.wait(hand.pod("p"), "timed_out", resolved_by="ManualApproval", resolved_at=11.0)
    hand.word(wait, at=10.5, applied=False, counts=False)


def a_whole_gang(hand: Hand) -> None:
    hand.gang(True, True)


def a_broken_gang(hand: Hand) -> None:
    _, second = hand.gang(True, False)
    second.state, second.message = "broken", "node n2 was deleted before default/g-1 was bound"
    second.node = "n2"
    hand.delete_node("n2", at=1.9)
    second.save()


def a_gang_one_of_which_its_user_took_away(hand: Hand) -> None:
    _, second = hand.gang(True, False)
    hand.delete(second.uid, at=2.0)


def a_gang_that_was_gone_before_a_worker_was_back(hand: Hand) -> None:
    """It died between two bindings, and the bound one was deleted: nobody of the gang runs."""
    hand.away = [(NOW + 2, NOW + 30)]
    first, second = hand.gang(True, False)
    hand.delete(first.uid, at=31.0)
    WaitingPod.objects.filter(pk=second.pk).update(state="rejected", message="its gang is gone")


def a_gang_that_needs_fewer(hand: Hand) -> None:
    hand.gang(True, False)
    hand.group("g", 1, at=5.0, verb="patch")
    WaitingPod.objects.filter(name="g-1").update(state="rejected", message="because")


def asked_again_when_it_had_changed(hand: Hand) -> None:
    uid = hand.pod("p")
    end = {"message": "denied by ann", "resolved_by": "user:ann", "resolved_at": 5.0}
    hand.wait(uid, "rejected", **end)
    metadata = {**hand._pods[uid]["metadata"], "labels": {"try": "again"}}
    hand.write(50.0, "patch", "Pod", "p", uid, {**hand._pods[uid], "metadata": metadata})
    hand.wait(uid, "waiting", since=99.0, deadline=109.0)


def two_pods_of_one_name(hand: Hand) -> None:
    first = hand.approved()
    hand.delete(first.uid, at=3.0)
    hand.wait(hand.pod("p", uid="uid-2", at=3.0), "waiting", since=99.0, deadline=109.0)


@pytest.mark.parametrize(
    "story",
    [
        approved, denied, timed_out_in_time, timed_out_when_a_worker_was_back, let_go_by_its_terms,
        a_late_word_that_was_refused, a_whole_gang, a_broken_gang,
        a_gang_one_of_which_its_user_took_away, a_gang_that_was_gone_before_a_worker_was_back,
        a_gang_that_needs_fewer, two_pods_of_one_name, an_approved_member_that_waited_on,
        an_approved_member_whose_approval_was_taken_back,
        asked_again_when_it_had_changed,
    ],
    ids=lambda story: story.__name__,
)  # fmt: skip
def test_nothing_is_wrong(hand: Hand, database: Database, story: Callable[[Hand], None]) -> None:
    story(hand)
    assert hand.found(database) == []


# --- one violation each --------------------------------------------------------------------------


def bound_twice(hand: Hand) -> None:
    wait = hand.approved()
    hand.bind(wait.uid, at=3.0)


def bound_to_another_node(hand: Hand) -> None:
    wait = hand.approved()
    pod = {**hand._pods[wait.uid], "spec": {"nodeName": "n2"}}
    hand.write(3.0, "update", "Pod", "p", wait.uid, pod)


def bound_unasked(hand: Hand) -> None:
    hand.bind(hand.pod("p"))


def bound_although_its_wait_was_turned_down(hand: Hand) -> None:
    uid = hand.pod("p")
    hand.wait(uid, "rejected")
    hand.bind(uid)


def bound_with_one_of_two_approvals(hand: Hand) -> None:
    wait = hand.approved()
    wait.terms = {**TERMS, "approvers": 2}
    wait.save()


def bound_with_the_same_approval_twice(hand: Hand) -> None:
    wait = hand.approved()
    hand.word(wait)
    wait.terms = {**TERMS, "approvers": 2}
    wait.save()


def bound_with_an_approval_that_was_taken_back(hand: Hand) -> None:
    wait = hand.approved()
    hand.word(wait, verdict="revoke", at=1.5)


def bound_with_an_approval_that_came_back(hand: Hand) -> None:
    bound_with_an_approval_that_was_taken_back(hand)
    hand.word(WaitingPod.objects.get(), at=1.0, counts=False)


def bound_with_the_requesters_own_approval(hand: Hand) -> None:
    wait = hand.approved()
    wait.requested_by = "ann"
    wait.save()


def an_approval_of_the_pod_that_had_the_name_before(hand: Hand) -> None:
    first = hand.approved()
    hand.delete(first.uid, at=3.0)
    second = hand.pod("p", uid="uid-2", at=3.0)
    wait = hand.wait(second, "waiting", since=99.0, deadline=109.0)
    wait.approvals = first.approvals
    wait.save()


def a_wait_of_a_pod_that_never_was(hand: Hand) -> None:
    hand.wait("uid-nobody", "rejected")


def a_word_that_counted_after_the_pod_had_gone(hand: Hand) -> None:
    uid = hand.pod("p")
    hand.delete(uid, at=0.5)
    hand.word(hand.wait(uid, "rejected"), verdict="deny", at=1.0)


def a_word_that_nobody_answered(hand: Hand) -> None:
    hand.word(hand.wait(hand.pod("p"), "rejected"), verdict="deny", applied=None)


def an_approval_in_time_that_timed_out(hand: Hand) -> None:
    wait = hand.wait(hand.pod("p"), "timed_out", resolved_by="ManualApproval", resolved_at=10.1)
    hand.word(wait, applied=False)


def a_denial_in_time_that_timed_out(hand: Hand) -> None:
    wait = hand.wait(hand.pod("p"), "timed_out", resolved_by="ManualApproval", resolved_at=10.1)
    hand.word(wait, verdict="deny", applied=False)


def a_denial_that_counted_and_yet_was_allowed(hand: Hand) -> None:
    hand.word(hand.approved(), user="bob", verdict="deny", at=1.5)


def an_approval_that_has_no_effect(hand: Hand) -> None:
    wait = hand.wait(hand.pod("p"), "sent", since=80.0, deadline=90.0)
    hand.word(wait, at=81.0)


def a_row_that_counts_less_than_was_said(hand: Hand) -> None:
    terms = {**TERMS, "approvers": 2}
    wait = hand.wait(hand.pod("p"), "waiting", since=99.0, deadline=109.0, terms=terms)
    hand.word(wait, at=99.5, counts=False)


def let_go_and_never_bound(hand: Hand) -> None:
    hand.word(hand.wait(hand.pod("p")))


def a_word_that_counted_after_the_deadline(hand: Hand) -> None:
    wait = hand.wait(hand.pod("p"), "rejected", resolved_at=11.0)
    hand.word(wait, verdict="deny", at=10.001)


def a_deadline_that_was_applied_late(hand: Hand) -> None:
    hand.wait(hand.pod("p"), "timed_out", resolved_by="ManualApproval", resolved_at=12.1)


def an_approved_member_that_waited_on_after_that(hand: Hand) -> None:
    an_approved_member_that_waited_on(hand, ended=22.5)


def a_member_whose_approval_was_taken_back_before_its_deadline(hand: Hand) -> None:
    an_approved_member_whose_approval_was_taken_back(hand, back=9.0)


def a_member_that_waited_on_after_its_approval_was_taken_back(hand: Hand) -> None:
    an_approved_member_whose_approval_was_taken_back(hand, ended=17.5)


def a_deadline_that_was_applied_early(hand: Hand) -> None:
    hand.wait(hand.pod("p"), "timed_out", resolved_by="ManualApproval", resolved_at=9.5)


def a_deadline_that_was_applied_late_after_a_return(hand: Hand) -> None:
    hand.away = [(NOW + 9, NOW + 30)]
    hand.wait(hand.pod("p"), "timed_out", resolved_by="ManualApproval", resolved_at=32.1)


def a_deadline_that_was_never_applied(hand: Hand) -> None:
    hand.wait(hand.pod("p"), "waiting")


def terms_that_let_it_go_late(hand: Hand) -> None:
    uid = hand.pod("p")
    hand.wait(uid, terms={**TERMS, "at_deadline": "approve"}, resolved_at=12.5)
    hand.bind(uid, at=13.0)


def a_restart_that_gave_more_time(hand: Hand) -> None:
    hand.wait(hand.pod("p"), "timed_out", deadline=14.0, resolved_at=14.1, resolved_by="x")


def half_a_gang(hand: Hand) -> None:
    hand.gang(True, False)
    WaitingPod.objects.filter(name="g-1").update(state="rejected", message="denied")


def half_a_gang_of_which_a_wait_broke_before(hand: Hand) -> None:
    half_a_gang(hand)
    uid = WaitingPod.objects.get(name="g-1").uid
    hand.wait(
        uid, "broken", since=-9.0, deadline=1.0, resolved_at=-8.0, message="node n1 was deleted"
    )


def half_a_gang_that_broke_although_no_node_went(hand: Hand) -> None:
    hand.gang(True, False)
    WaitingPod.objects.filter(name="g-1").update(state="broken", message="node n1 was deleted")


def half_a_gang_whose_room_others_took(hand: Hand) -> None:
    hand.gang(True, False)
    why = "its binding failed, and the pod no longer fits on n1"
    WaitingPod.objects.filter(name="g-1").update(state="broken", message=why)


def half_a_gang_that_was_deleted_after_a_worker_was_back(hand: Hand) -> None:
    hand.away = [(NOW + 2, NOW + 30)]
    first, second = hand.gang(True, False)
    hand.delete(first.uid, at=33.0)
    WaitingPod.objects.filter(pk=second.pk).update(state="rejected", message="its gang is gone")


def half_a_gang_of_which_a_part_was_deleted(hand: Hand) -> None:
    hand.away = [(NOW + 2, NOW + 30)]
    first, _, third = hand.gang(True, True, False)
    hand.delete(first.uid, at=20.0)
    WaitingPod.objects.filter(pk=third.pk).update(state="rejected", message="too few")


def half_a_gang_that_is_broken_without_a_word(hand: Hand) -> None:
    hand.gang(True, False)
    WaitingPod.objects.filter(name="g-1").update(state="broken")


def a_broken_gang_that_still_holds_a_node(hand: Hand) -> None:
    hand.gang(True, False, False)
    hand.delete_node("n1", at=1.9)
    WaitingPod.objects.filter(name="g-1").update(state="broken", message="node n1 was deleted")
    WaitingPod.objects.filter(name="g-2").update(state="waiting", deadline=NOW + 200)


def asked_again_after_a_denial(hand: Hand) -> None:
    uid = hand.pod("p")
    end = {"message": "denied by ann", "resolved_by": "user:ann", "resolved_at": 5.0}
    hand.wait(uid, "rejected", **end)
    hand.wait(uid, "waiting", since=99.0, deadline=109.0)


def a_gang_asked_again_after_its_time(hand: Hand) -> None:
    _, second = hand.gang(False, False)
    end = {"state": "timed_out", "resolved_by": "ManualApproval", "resolved_at": NOW + 10.0}
    Decision.objects.all().delete()
    WaitingPod.objects.update(**end, approvals=[], message="too late")
    hand.wait(second.uid, "waiting", since=99.0, deadline=109.0)


def a_wait_whose_pod_is_gone(hand: Hand) -> None:
    uid = hand.pod("p")
    hand.wait(uid, "waiting", since=95.0, deadline=105.0)
    hand.delete(uid, at=96.0)


def a_wait_whose_pod_is_bound(hand: Hand) -> None:
    uid = hand.pod("p")
    hand.word(hand.wait(uid))
    hand.bind(uid)
    hand.wait(uid, "waiting", since=95.0, deadline=105.0)


def an_end_without_a_reason(hand: Hand) -> None:
    hand.wait(hand.pod("p"), "rejected", message="")


VIOLATIONS: dict[str, list[Callable[[Hand], None]]] = {
    "bound twice": [bound_twice, bound_to_another_node],
    "bound without approval": [
        bound_unasked, bound_although_its_wait_was_turned_down, bound_with_one_of_two_approvals,
        bound_with_the_same_approval_twice, bound_with_an_approval_that_was_taken_back,
        bound_with_an_approval_that_came_back, bound_with_the_requesters_own_approval,
    ],
    "approved by another's word": [
        an_approval_of_the_pod_that_had_the_name_before, a_wait_of_a_pod_that_never_was,
        a_word_that_counted_after_the_pod_had_gone,
    ],
    "lost decision": [
        a_word_that_nobody_answered, an_approval_in_time_that_timed_out,
        a_denial_in_time_that_timed_out, a_denial_that_counted_and_yet_was_allowed,
        an_approval_that_has_no_effect, a_row_that_counts_less_than_was_said,
    ],
    "lost approval": [let_go_and_never_bound],
    "late word won": [a_word_that_counted_after_the_deadline],
    "deadline not applied": [
        a_deadline_that_was_applied_late, a_deadline_that_was_applied_early,
        a_deadline_that_was_applied_late_after_a_return, a_deadline_that_was_never_applied,
        terms_that_let_it_go_late, an_approved_member_that_waited_on_after_that,
        a_member_whose_approval_was_taken_back_before_its_deadline,
        a_member_that_waited_on_after_its_approval_was_taken_back,
    ],
    "deadline moved": [a_restart_that_gave_more_time],
    "gang partly bound": [
        half_a_gang, half_a_gang_that_is_broken_without_a_word,
        a_broken_gang_that_still_holds_a_node, half_a_gang_of_which_a_wait_broke_before,
        half_a_gang_that_broke_although_no_node_went, half_a_gang_whose_room_others_took,
        half_a_gang_that_was_deleted_after_a_worker_was_back,
        half_a_gang_of_which_a_part_was_deleted,
    ],
    "asked again too soon": [asked_again_after_a_denial, a_gang_asked_again_after_its_time],
    "waits for nothing": [a_wait_whose_pod_is_gone, a_wait_whose_pod_is_bound],
    "no reason": [an_end_without_a_reason],
}  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "story"),
    [
        pytest.param(rule, story, id=story.__name__)
        for rule, stories in VIOLATIONS.items()
        for story in stories
    ],
)
def test_it_is_found(
    hand: Hand, database: Database, rule: str, story: Callable[[Hand], None]
) -> None:
    story(hand)
    assert rule in hand.found(database)


def test_every_rule_has_a_case() -> None:
    assert set(VIOLATIONS) == set(RULES)


def test_it_knows_nothing_of_the_code_that_it_judges() -> None:
    from tests.faults import checker

    modules = {getattr(value, "__module__", "") or "" for value in vars(checker).values()}
    roots = {module.split(".")[0] for module in modules}
    assert roots.isdisjoint({"dashboard", "scheduler_core", "django", "kubesched_site"})
