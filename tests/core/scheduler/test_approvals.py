"""People's words in the whole scheduler: how many, whose, until when, and what outlives what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scheduler_core.api import NATIVE_POD_GROUP
from scheduler_core.ports import ApiError
from scheduler_core.records import PermitDecision, Verdict, WaitingPodRecord, WaitOutcome
from scheduler_core.testing.builders import make_node, make_pod, make_pod_group
from scheduler_core.testing.harness import Harness
from tests.core.scheduler.native_gang import gang_harness
from tests.core.scheduler.native_gang import member as native_member
from tests.core.scheduler.native_gang import profile as native_profile

ASKS = {"kubesched.io/approval": "required"}


def profile(**args: Any) -> dict[str, Any]:
    return {
        "plugins": {
            "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
            "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
            "permit": {"enabled": [{"name": "ManualApproval"}]},
        },
        "pluginConfig": [
            {"name": "Coscheduling", "args": {"podGroupRejectPercentage": 100}},
            {"name": "ManualApproval", "args": args},
        ],
    }


def harness(*pods: Any, gang: int = 0, nodes: int = 1, **args: Any) -> Harness:
    objects = {"PodGroup": [make_pod_group("g").min_member(gang)]} if gang else {}
    h = Harness(
        nodes=[make_node(f"n{i}").capacity(cpu="8", memory="8Gi", pods="20") for i in range(nodes)],
        objects=objects,
        pods=pods,
        profile=profile(**args),
    )
    h.settle()
    return h


def pod(name: str = "p", **annotations: str) -> Any:
    return make_pod(name).req(cpu="1").label(ASKS).annotation(annotations)


def member(name: str) -> Any:
    return pod(name).pod_group("g")


def native_gang(names: str, min_count: int = 2) -> Harness:
    return gang_harness(
        nodes=[make_node("n").capacity(cpu="8", memory="8Gi", pods="20")],
        pods=[native_member(name).label(ASKS) for name in names],
        profile=native_profile("ManualApproval"),
        min_count=min_count,
    )


def say(
    h: Harness, verdict: Verdict, user: str = "alice", name: str = "p", at: float | None = None
) -> tuple[bool, str]:
    """Whether a word counted, and what came of it."""
    uid = h.pod(name)["metadata"]["uid"]
    h.decide(PermitDecision(len(h.observer.decisions) + 1, uid, verdict, user, at=at))
    return h.observer.decisions[-1][1:]


def bound(h: Harness) -> list[str]:
    pods = h.cluster.list("Pod").items
    return sorted(p["metadata"]["name"] for p in pods if p["spec"].get("nodeName"))


def last(h: Harness, name: str = "p") -> WaitingPodRecord:
    """The last that was told of a pod's wait."""
    told = [r for r in (*h.observer.waiting, *h.observer.resolved) if r.pod.name == name]
    return next((r for r in reversed(h.observer.resolved) if r.pod.name == name), told[-1])


def restart(
    h: Harness, *decisions: PermitDecision, args: dict[str, Any] | None = None, **changes: Any
) -> Harness:
    waits = {w.pod.uid: w for w in h.observer.waiting}
    for done in h.observer.resolved:
        waits.pop(done.pod.uid, None)
    again = Harness(
        cluster=h.cluster,
        clock=h.clock,
        profile=profile(**(args or {})) if args is not None else profile(),
        waiting=[replace(w, **changes) for w in waits.values()],
    )
    again.decisions.waiting.extend(decisions)
    again.settle()
    return again


class TestTwoPersonRule:
    def test_two_different_people_let_it_go(self) -> None:
        h = harness(pod(), approvers=2)
        assert h.observer.waiting[-1].pending[0].reason == "waits for 2 approvals"
        assert say(h, Verdict.APPROVE, "alice") == (True, "approved by 1 of 2")
        assert bound(h) == []
        assert say(h, Verdict.APPROVE, "bob") == (True, "approved")
        assert bound(h) == ["p"]
        assert last(h).approved_by == ("alice", "bob")

    def test_the_same_person_twice_counts_once(self) -> None:
        h = harness(pod(), approvers=2)
        say(h, Verdict.APPROVE, "alice")
        assert say(h, Verdict.APPROVE, "alice") == (True, "approved by 1 of 2")
        assert bound(h) == []

    def test_one_denial_ends_it(self) -> None:
        h = harness(pod(), approvers=2)
        say(h, Verdict.APPROVE, "alice")
        assert say(h, Verdict.DENY, "bob") == (True, "denied")
        assert (last(h).outcome, last(h).message) == (WaitOutcome.REJECTED, "denied by bob")

    def test_the_requesters_own_word_does_not_count_where_the_terms_say_so(self) -> None:
        h = harness(pod(**{"kubesched.io/requested-by": "alice"}), requesterMayApprove=False)
        assert say(h, Verdict.APPROVE, "alice") == (
            False,
            "alice asked for the pod; somebody else has to approve it",
        )
        assert say(h, Verdict.APPROVE, "bob")[0]
        assert bound(h) == ["p"]

    def test_an_approval_is_taken_back(self) -> None:
        h = harness(pod(), approvers=2)
        say(h, Verdict.APPROVE, "alice")
        assert say(h, Verdict.REVOKE, "alice") == (True, "taken back")
        say(h, Verdict.APPROVE, "bob")
        assert bound(h) == []
        assert say(h, Verdict.REVOKE, "carol") == (False, "there is no approval to take back")


class TestDeadline:
    def test_nobody_decides_and_it_is_denied(self) -> None:
        h = harness(pod(), timeoutSeconds=60)
        h.advance(60.0)
        assert last(h).outcome is WaitOutcome.TIMED_OUT

    def test_nobody_decides_and_it_is_approved_where_the_terms_say_so(self) -> None:
        h = harness(pod(), timeoutSeconds=60, atDeadline="Approve")
        h.advance(59.0)
        assert bound(h) == []
        h.advance(1.0)
        assert bound(h) == ["p"]
        assert last(h).message == "nobody decided in time, which approves it here"

    def test_a_window_that_opens_lets_it_go(self) -> None:
        # The harness begins at 1970-01-12 13:46:40 UTC, a Monday.
        window = {"days": ["Mon"], "from": "13:50", "to": "14:00", "timeZone": "UTC"}
        h = harness(pod(), autoApprove=[window])
        assert h.observer.waiting[-1].deadline == 1_000_000.0 + 200
        h.advance(200.0)
        assert bound(h) == ["p"]

    def test_while_a_window_is_open_nobody_is_asked(self) -> None:
        h = harness(pod(), autoApprove=[{"from": "13:00", "to": "14:00"}])
        assert (bound(h), h.observer.waiting) == (["p"], [])

    @pytest.mark.parametrize("verdict", [Verdict.APPROVE, Verdict.DENY])
    def test_a_word_after_the_deadline_never_counts(self, verdict: Verdict) -> None:
        h = harness(pod(), timeoutSeconds=60)
        late = h.clock.now() + 60.0
        assert say(h, verdict, at=late) == (False, "given after the deadline")
        assert say(h, Verdict.APPROVE, at=late - 0.1)[0]

    def test_what_was_decided_in_time_counts_however_late_it_is_heard(self) -> None:
        h = harness(pod(), timeoutSeconds=60)
        deadline = h.clock.now() + 60.0
        h.decisions.heard_until = lambda now: deadline - 1.0  # type: ignore[method-assign]
        h.advance(61.0)
        assert h.waiting_names() == ["p"]
        assert say(h, Verdict.APPROVE, at=deadline - 0.5)[0]
        assert bound(h) == ["p"]

    def test_it_runs_out_as_soon_as_people_have_been_heard_up_to_then(self) -> None:
        h = harness(pod(), timeoutSeconds=60)
        deadline = h.clock.now() + 60.0
        h.decisions.heard_until = lambda now: deadline - 1.0  # type: ignore[method-assign]
        h.advance(61.0)
        h.decisions.heard_until = lambda now: deadline  # type: ignore[method-assign]
        h.settle()
        assert last(h).outcome is WaitOutcome.TIMED_OUT


class TestAnotherWaitOfTheSamePod:
    @pytest.mark.parametrize("verdict", list(Verdict))
    def test_a_word_counts_for_the_wait_that_it_was_said_of(self, verdict: Verdict) -> None:
        h = harness(pod(), nodes=2)
        first = h.observer.waiting[-1]
        h.cluster.delete("Node", "", first.node)
        h.settle()
        h.advance(15.0)
        assert h.waiting_names() == ["p"]
        word = PermitDecision(1, first.pod.uid, verdict, "alice", since=first.since)
        h.decide(word)
        said = "it was said of an earlier wait of this pod, which has ended"
        assert h.observer.decisions[-1][1:] == (False, said)
        assert (h.waiting_names(), bound(h)) == (["p"], [])


class TestGangs:
    def test_a_denied_gang_does_not_ask_again_at_once(self) -> None:
        h = harness(*(member(n) for n in "abc"), gang=3)
        say(h, Verdict.DENY, name="b")
        assert {r.message for r in h.observer.resolved} == {"denied by alice"}
        for _ in range(20):
            h.advance(5.0)
        assert h.waiting_names() == []
        assert h.condition("a")["reason"] == "Unschedulable"

    def test_a_denied_gang_asks_again_when_its_pod_group_changes(self) -> None:
        h = harness(*(member(n) for n in "abc"), gang=3)
        say(h, Verdict.DENY, name="b")
        h.cluster.patch("PodGroup", "default", "g", {"metadata": {"labels": {"try": "again"}}})
        h.advance(30.0)
        assert sorted(h.waiting_names()) == ["a", "b", "c"]

    def test_a_denied_gang_is_tried_again_after_five_minutes(self) -> None:
        h = harness(*(member(n) for n in "abc"), gang=3)
        say(h, Verdict.DENY, name="b")
        h.advance(290.0)
        assert h.waiting_names() == []
        for _ in range(4):
            h.advance(30.0)
        assert sorted(h.waiting_names()) == ["a", "b", "c"]

    def test_an_approved_member_waits_on_without_a_deadline_of_its_own(self) -> None:
        h = harness(member("a"), member("b"), gang=2, timeoutSeconds=100)
        say(h, Verdict.APPROVE, name="a")
        h.advance(99.0)
        say(h, Verdict.APPROVE, name="b")
        assert bound(h) == ["a", "b"]

    @pytest.mark.parametrize("word", [Verdict.DENY, Verdict.REVOKE])
    @pytest.mark.parametrize("end", ["Deny", "Approve"])
    def test_a_word_on_it_that_comes_when_time_has_ended_the_gangs_wait_is_too_late(
        self, word: Verdict, end: str
    ) -> None:
        """Whoever lived by then: a worker that was away goes by when it was said."""
        h = harness(member("a"), member("b"), gang=2, timeoutSeconds=100, atDeadline=end)
        began = h.clock.now()
        say(h, Verdict.APPROVE, name="a")
        h.clock.advance(102.0)
        assert say(h, word, name="a", at=began + 100.0) == (False, "given after the deadline")
        assert bound(h) == ([] if end == "Deny" else ["a", "b"])
        ends = WaitOutcome.TIMED_OUT if end == "Deny" else WaitOutcome.ALLOWED
        assert {last(h, name).outcome for name in "ab"} == {ends}

    def test_a_member_that_is_approved_shows_the_deadline_that_counts_now(self) -> None:
        h = harness(member("a"), gang=2, timeoutSeconds=10)
        h.create("Pod", member("b").req(cpu="20"))  # the sibling that Coscheduling waits for
        h.settle()
        asked = h.observer.waiting[-1].deadline
        say(h, Verdict.APPROVE, name="a")
        quorum = next(p for p in h.observer.waiting[-1].pending if p.plugin == "Coscheduling")
        assert h.observer.waiting[-1].deadline == quorum.deadline > asked
        say(h, Verdict.REVOKE, name="a")
        assert h.observer.waiting[-1].deadline == asked

    def test_a_gang_that_grows_over_a_limit_needs_more_people(self) -> None:
        policy = {"name": "large", "moreThanPods": 2, "approvers": 2}
        h = harness(member("a"), member("b"), gang=2, policies=[policy])
        h.create("Pod", member("c"))
        h.settle()
        assert {w.terms.approvers for w in h.observer.waiting[-3:] if w.terms} == {2}
        for name in "abc":
            say(h, Verdict.APPROVE, "alice", name)
        assert bound(h) == []
        for name in "abc":
            say(h, Verdict.APPROVE, "bob", name)
        assert bound(h) == ["a", "b", "c"]


class TestWhatHappensAround:
    def test_a_pod_that_is_deleted_waits_no_more(self) -> None:
        h = harness(pod())
        h.cluster.delete("Pod", "default", "p", grace_period_seconds=0)
        h.settle()
        assert (last(h).outcome, last(h).message) == (WaitOutcome.REMOVED, "the pod was deleted")
        assert h.waiting_names() == []

    def test_a_deleted_member_takes_its_coscheduling_gang_along_which_is_asked_anew(self) -> None:
        """Coscheduling's Unreserve does so, whatever the reason (reference section 2)."""
        h = harness(member("a"), member("b"), member("c"), gang=2)
        for name in "ab":
            say(h, Verdict.APPROVE, name=name)
        h.cluster.delete("Pod", "default", "c", grace_period_seconds=0)
        h.settle()
        assert {r.pod.name: r.outcome for r in h.observer.resolved} == {
            "a": WaitOutcome.REJECTED,
            "b": WaitOutcome.REJECTED,
            "c": WaitOutcome.REMOVED,
        }
        assert last(h, "a").message == "rejection in Unreserve"
        h.create("Pod", member("d"))
        h.advance(15.0)
        assert (bound(h), sorted(h.waiting_names())) == ([], ["a", "b", "d"])

    def test_a_native_gang_that_is_complete_without_the_deleted_member_goes_on(self) -> None:
        h = native_gang("abc", min_count=2)
        for name in "ab":
            say(h, Verdict.APPROVE, name=name)
        h.cluster.delete("Pod", "default", "c", grace_period_seconds=0)
        h.settle()
        assert last(h, "c").message == "the pod was deleted"
        assert bound(h) == ["a", "b"]

    def test_another_pod_of_the_same_name_is_asked_for_anew(self) -> None:
        h = harness(pod())
        first = h.observer.waiting[-1].pod.uid
        h.cluster.delete("Pod", "default", "p", grace_period_seconds=0)
        h.create("Pod", pod())
        h.settle()
        h.decide(PermitDecision(1, first, Verdict.APPROVE, "alice"))
        said = "the pod no longer waits for a decision"
        assert h.observer.decisions[-1][1:] == (False, said)
        assert (h.waiting_names(), bound(h)) == (["p"], [])

    def test_a_native_pod_group_that_is_deleted_ends_the_waits(self) -> None:
        h = native_gang("ab")
        assert h.waiting_names() == ["a", "b"]
        h.cluster.delete(NATIVE_POD_GROUP, "default", "g")
        h.settle()
        assert {r.message for r in h.observer.resolved} == {"PodGroup default/g was deleted"}
        assert (h.waiting_names(), bound(h)) == ([], [])

    def test_a_node_that_is_deleted_ends_the_wait_and_the_pod_is_tried_again(self) -> None:
        h = harness(pod(), nodes=2)
        held = h.observer.waiting[-1].node
        h.cluster.delete("Node", "", held)
        h.settle()
        assert (last(h).outcome, last(h).message) == (
            WaitOutcome.BROKEN,
            f"its node {held} was deleted",
        )
        h.advance(15.0)
        assert h.waiting_names() == ["p"]
        assert h.observer.waiting[-1].node != held

    def test_the_node_of_one_member_breaks_the_whole_gang(self) -> None:
        h = harness(
            make_pod("a").req(cpu="5").label(ASKS).pod_group("g"),
            make_pod("b").req(cpu="5").label(ASKS).pod_group("g"),
            gang=2,
            nodes=2,
        )
        held = {w.pod.name: w.node for w in h.observer.waiting}
        h.cluster.delete("Node", "", held["b"])
        h.settle()
        assert {r.outcome for r in h.observer.resolved} == {WaitOutcome.BROKEN}
        assert last(h, "a").message == f"node {held['b']}, which default/b held, was deleted"
        assert bound(h) == []

    def test_a_pod_group_that_is_deleted_ends_the_waits(self) -> None:
        h = harness(member("a"), member("b"), gang=2)
        h.cluster.delete("PodGroup", "default", "g")
        h.settle()
        assert {r.message for r in h.observer.resolved} == {"PodGroup default/g was deleted"}
        assert h.waiting_names() == []

    def test_a_lower_min_member_makes_the_gang_complete(self) -> None:
        h = harness(member("a"), member("b"), member("c").req(cpu="20"), gang=3)
        assert {p.plugin for p in h.observer.waiting[-1].pending} == {
            "Coscheduling",
            "ManualApproval",
        }
        h.cluster.patch("PodGroup", "default", "g", {"spec": {"minMember": 2}})
        h.settle()
        for name in "ab":
            say(h, Verdict.APPROVE, name=name)
        assert bound(h) == ["a", "b"]

    def test_a_higher_min_member_has_the_gang_tried_anew(self) -> None:
        h = harness(member("a"), member("b"), gang=2)
        h.cluster.patch("PodGroup", "default", "g", {"spec": {"minMember": 3}})
        h.settle()
        assert {r.message for r in h.observer.resolved} == {
            "PodGroup default/g needs 3 members now, 2 hold a node"
        }
        assert bound(h) == []


class TestBindingsThatFail:
    def failing(self, h: Harness, times: int, error: ApiError) -> None:
        bind, left = h.cluster.bind, [times]

        def refuse(namespace: str, name: str, uid: str, node: str) -> None:
            if left[0]:
                left[0] -= 1
                raise error
            bind(namespace, name, uid, node)

        h.cluster.bind = refuse  # type: ignore[method-assign]

    def test_an_approval_outlives_a_binding_that_fails(self) -> None:
        h = harness(pod())
        self.failing(h, 1, ApiError(503, "ServiceUnavailable", "the store is away"))
        say(h, Verdict.APPROVE)
        assert bound(h) == []
        h.advance(15.0)
        assert bound(h) == ["p"]
        assert [r.outcome for r in h.observer.resolved] == [WaitOutcome.ALLOWED] * 2

    def test_of_a_gang_too(self) -> None:
        h = harness(member("a"), member("b"), gang=2)
        self.failing(h, 1, ApiError(503, "ServiceUnavailable", "the store is away"))
        for name in "ab":
            say(h, Verdict.APPROVE, name=name)
        h.advance(15.0)
        assert bound(h) == ["a", "b"]

    def test_a_gang_whose_node_is_deleted_after_the_approval_is_broken(self) -> None:
        h = harness(
            make_pod("a").req(cpu="5").label(ASKS).pod_group("g"),
            make_pod("b").req(cpu="5").label(ASKS).pod_group("g"),
            gang=2,
            nodes=2,
        )
        held = {w.pod.name: w.node for w in h.observer.waiting}
        bind = h.cluster.bind

        def lose_the_node(namespace: str, name: str, uid: str, node: str) -> None:
            if name == "b":
                h.cluster.delete("Node", "", node)
                raise ApiError(404, "NotFound", f'nodes "{node}" not found')
            bind(namespace, name, uid, node)

        h.cluster.bind = lose_the_node  # type: ignore[method-assign]
        for name in "ab":
            say(h, Verdict.APPROVE, name=name)
        assert bound(h) == ["a"]
        assert last(h, "b").outcome is WaitOutcome.BROKEN
        assert last(h, "b").message == f"node {held['b']} was deleted before default/b was bound"


class TestRestart:
    def word(self, h: Harness, verdict: Verdict, user: str, name: str = "p") -> PermitDecision:
        uid = h.pod(name)["metadata"]["uid"]
        return PermitDecision(99, uid, verdict, user, at=h.clock.now())

    def test_one_of_two_approvals_is_still_one(self) -> None:
        h = harness(pod(), approvers=2)
        first = self.word(h, Verdict.APPROVE, "alice")
        again = restart(h, first, args={"approvers": 2})
        assert (again.waiting_names(), bound(again)) == (["p"], [])
        say(again, Verdict.APPROVE, "bob")
        assert bound(again) == ["p"]

    def test_an_approval_in_time_counts_although_the_deadline_passed_meanwhile(self) -> None:
        h = harness(member("a"), member("b"), gang=2, timeoutSeconds=60)
        words = [self.word(h, Verdict.APPROVE, "alice", name) for name in "ab"]
        h.clock.advance(120.0)
        assert bound(restart(h, *words)) == ["a", "b"]

    def test_a_denial_counts_although_nobody_need_approve_any_more(self) -> None:
        h = harness(make_pod("p").req(cpu="1"), selector={})
        denial = self.word(h, Verdict.DENY, "alice")
        again = restart(h, denial, args={})
        assert (bound(again), again.waiting_names()) == ([], [])
        assert last(again).message == "denied by alice"
        assert again.observer.decisions[-1][1] is True
        again.advance(60.0)
        assert bound(again) == []

    def test_who_need_not_be_approved_any_more_is_bound(self) -> None:
        h = harness(make_pod("p").req(cpu="1"), selector={})
        again = restart(h, args={})
        assert bound(again) == ["p"]
        assert last(again).message == "after a restart no plugin has the pod wait any more"

    def test_the_terms_are_those_of_the_new_configuration(self) -> None:
        h = harness(pod(), approvers=2)
        again = restart(h, self.word(h, Verdict.APPROVE, "alice"), args={"approvers": 1})
        assert bound(again) == ["p"]

    def test_an_approval_that_was_acted_on_before_the_binding_still_counts(self) -> None:
        h = harness(pod())
        again = restart(h, let_go=True, approved_by=("alice",))
        assert bound(again) == ["p"]
        assert last(again).resolved_by == "user:alice"

    def test_what_was_let_go_keeps_its_terms_although_the_configuration_asks_for_more(self) -> None:
        h = harness(pod(), approvers=1)
        again = restart(h, args={"approvers": 2}, let_go=True, approved_by=("alice",))
        assert bound(again) == ["p"]
        terms = last(again).terms
        assert terms is not None
        assert terms.approvers == 1

    @pytest.mark.parametrize(
        ("by", "message"),
        [
            pytest.param("user:alice", "", id="by a person"),
            pytest.param(
                "ManualApproval",
                "nobody decided in time, which approves it here",
                id="by its deadline",
            ),
        ],
    )
    @pytest.mark.parametrize("bound_before", [False, True])
    def test_by_whom_and_when_it_was_let_go_stays(
        self, by: str, message: str, bound_before: bool
    ) -> None:
        """Whatever the next worker would ask for: a new deadline would be none that it had, and who
        was one of two did not let it go alone."""
        h = harness(pod(), timeoutSeconds=60, approvers=2)
        (wait,) = h.observer.waiting
        let_go = {"let_go": True, "resolved_by": by, "message": message, "pending": ()}
        let_go |= {"resolved_at": wait.deadline + 1.0, "approved_by": ("bob",)}
        h.clock.advance(90.0)
        if bound_before:
            h.cluster.bind("default", "p", h.pod("p")["metadata"]["uid"], wait.node)
        again = restart(h, args={"timeoutSeconds": 500, "approvers": 3}, **let_go)
        assert bound(again) == ["p"]
        told = last(again)
        assert (told.outcome, told.resolved_by) == (WaitOutcome.ALLOWED, by)
        assert (told.deadline, told.resolved_at) == (wait.deadline, wait.deadline + 1.0)
        assert told.terms == wait.terms
        assert told.message == (
            "bound to n0 before the worker stopped" if bound_before else message
        )

    @pytest.mark.parametrize(
        ("said", "found", "last_word"),
        [
            pytest.param([], (["a", "b"], []), True, id="nothing more"),
            pytest.param([Verdict.DENY], (["a", "b"], []), False, id="all was approved before"),
            pytest.param([Verdict.REVOKE], (["a"], ["b"]), True, id="it is taken back"),
            pytest.param([Verdict.REVOKE, Verdict.DENY], (["a"], []), True, id="and then denied"),
        ],
    )
    def test_what_is_said_of_a_member_counts_although_somebody_bound_another(
        self, said: list[Verdict], found: tuple[list[str], list[str]], last_word: bool
    ) -> None:
        """That the other is bound does not mean that they were let go: the scheduler binds nobody
        before a row says so."""
        h = harness(member("a"), member("b"), gang=2)
        uids = [h.pod(name)["metadata"]["uid"] for name in "ab"]
        verdicts = [Verdict.APPROVE, Verdict.APPROVE, *said]
        words = [
            PermitDecision(number, uids[min(number, 1)], verdict, "alice", at=h.clock.now())
            for number, verdict in enumerate(verdicts)
        ]
        h.scheduler.stop()
        h.cluster.bind("default", "a", uids[0], h.observer.waiting[0].node)
        again = restart(h, *words)
        assert (bound(again), again.waiting_names()) == found
        assert again.observer.decisions[-1][:2] == (words[-1], last_word)

    @pytest.mark.parametrize(
        ("approved", "node"),
        [
            pytest.param("", "held", id="nobody approved"),
            pytest.param("a", "held", id="only the bound one was approved"),
            pytest.param("bc", "held", id="only the others were approved"),
            pytest.param("abc", "other", id="bound elsewhere"),
        ],
    )
    def test_a_member_bound_by_another_is_no_approval_of_its_gang(
        self, approved: str, node: str
    ) -> None:
        h = harness(*map(member, "abc"), gang=3, nodes=2)
        words = [self.word(h, Verdict.APPROVE, "alice", name) for name in approved]
        held = next(w.node for w in h.observer.waiting if w.pod.name == "a")
        where = held if node == "held" else {"n0": "n1", "n1": "n0"}[held]
        h.scheduler.stop()
        h.cluster.bind("default", "a", h.pod("a")["metadata"]["uid"], where)
        again = restart(h, *words)
        ended = last(again, "a")
        assert (ended.outcome, ended.message) == (
            WaitOutcome.REMOVED,
            f"bound by another to {where}",
        )
        if "bc" in approved:
            assert bound(again) == ["a", "b", "c"]  # by the words on b and c
            return
        assert (bound(again), again.waiting_names()) == (["a"], ["b", "c"])

    def test_a_pod_bound_by_another_was_not_approved(self) -> None:
        h = harness(pod())
        h.cluster.bind("default", "p", h.pod("p")["metadata"]["uid"], "n0")
        assert last(restart(h)).outcome is WaitOutcome.REMOVED

    def test_a_gang_that_nobody_had_to_approve_is_asked_although_a_member_was_bound(self) -> None:
        """The policy is new; what was bound by hand meanwhile is no answer to it."""
        h = harness(
            *(make_pod(n).req(cpu=c).pod_group("g") for n, c in (("a", 1), ("b", 1), ("c", 20))),
            gang=3,
        )
        assert h.waiting_names() == ["a", "b"]
        h.cluster.bind("default", "a", h.pod("a")["metadata"]["uid"], "n0")
        h.cluster.patch("PodGroup", "default", "g", {"metadata": {"labels": ASKS}})
        again = restart(h)
        assert (bound(again), again.waiting_names()) == (["a"], ["b"])
        assert last(again, "b").needs_approval

    def test_a_member_that_asks_later_is_asked_although_others_were_let_go(self) -> None:
        h = harness(member("a"), member("b"), member("c"), gang=2)
        let_go = h.clock.now() - 5.0
        c = next(w for w in h.observer.waiting if w.pod.name == "c")
        uid = h.pod("a")["metadata"]["uid"]
        h.cluster.bind("default", "a", uid, h.observer.waiting[0].node)
        waits = [
            replace(w, let_go=w.pod.name != "c", since=w.since - (0 if w is c else 10),
                    resolved_at=None if w is c else let_go)
            for w in {w.pod.uid: w for w in h.observer.waiting}.values()
        ]  # fmt: skip
        again = Harness(cluster=h.cluster, clock=h.clock, profile=profile(), waiting=waits)
        again.settle()
        assert (bound(again), again.waiting_names()) == (["a", "b"], ["c"])

    def test_a_node_that_went_meanwhile_breaks_the_gang(self) -> None:
        h = harness(
            make_pod("a").req(cpu="5").label(ASKS).pod_group("g"),
            make_pod("b").req(cpu="5").label(ASKS).pod_group("g"),
            gang=2,
            nodes=2,
        )
        held = {w.pod.name: w.node for w in h.observer.waiting}
        h.cluster.delete("Node", "", held["a"])
        again = restart(h)
        assert last(again, "a").outcome is WaitOutcome.BROKEN
        assert last(again, "b").outcome is WaitOutcome.BROKEN
        assert bound(again) == []


def test_a_gang_that_is_approved_in_part_waits_for_all_also_after_a_restart() -> None:
    """Live nobody goes as long as c waits, although two are enough. Waits are taken up one by one:
    when a and b are here again, c is not yet."""
    h = harness(*(member(name) for name in "abc"), gang=2)
    words = [
        PermitDecision(number, h.pod(name)["metadata"]["uid"], Verdict.APPROVE, "alice")
        for number, name in enumerate("ab", start=1)
    ]
    for word in words:
        h.decide(word)
    assert (bound(h), h.waiting_names()) == ([], ["a", "b", "c"])
    again = restart(h, *words)
    assert (bound(again), again.waiting_names()) == ([], ["a", "b", "c"])
    assert say(again, Verdict.DENY, "bob", "c")[0]
    assert bound(again) == []


def test_the_rest_of_a_gang_goes_when_the_last_cannot_be_taken_up_again() -> None:
    h = harness(*(member(name) for name in "abc"), gang=2)
    uids = {name: h.pod(name)["metadata"]["uid"] for name in "abc"}
    words = [
        PermitDecision(number, uids[name], Verdict.APPROVE, "alice")
        for number, name in enumerate("ab", start=1)
    ]
    for word in words:
        h.decide(word)
    h.cluster.bind("default", "c", uids["c"], "n0")
    again = restart(h, *words)
    assert bound(again) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("verdict", "waits"), [(Verdict.DENY, []), (Verdict.REVOKE, ["b"])], ids=["deny", "revoke"]
)
def test_who_was_let_go_with_members_that_are_gone_can_be_decided_about(
    verdict: Verdict, waits: list[str]
) -> None:
    """All were let go, a was bound and is deleted while no worker ran: b waits for another member,
    which has no room, and is not on its way to its node."""
    h = harness(member("a"), member("b"), gang=2)
    h.scheduler.stop()
    h.cluster.delete("Pod", "default", "a", grace_period_seconds=0)
    h.cluster.create("Pod", member("d").req(cpu="99").raw())
    again = restart(h, let_go=True, approved_by=("alice",))
    assert again.waiting_names() == ["b"]
    assert say(again, verdict, "alice", "b")[0]
    assert again.waiting_names() == waits
    again.cluster.create("Node", make_node("big").capacity(cpu="128", memory="8Gi").raw())
    again.settle()
    assert bound(again) == []
