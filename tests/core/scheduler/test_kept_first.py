"""What people allowed is kept for good before a pod is bound by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scheduler_core.records import PermitDecision, Verdict, WaitOutcome
from scheduler_core.testing.builders import make_node, make_pod, make_pod_group
from scheduler_core.testing.harness import Harness
from tests.core.scheduler.test_approvals import bound, last, member, pod, profile, say

NODE = make_node("n").capacity(cpu="8", memory="8Gi", pods="20")


class Book:
    """A ledger that keeps when the test says so, and knows what had been told by then."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], Callable[[], None]]] = []
        self.harness: Harness | None = None

    def when_kept(self, then: Callable[[], None]) -> None:
        assert self.harness is not None
        told = sorted(record.pod.name for record in self.harness.observer.resolved)
        self.asked.append((told, then))

    def keep(self) -> None:
        """Everything that was told is kept now."""
        assert self.harness is not None
        asked, self.asked = self.asked, []
        for _, then in asked:
            then()
        self.harness.settle()


def begin(*pods: Any, gang: int = 0, **options: Any) -> tuple[Harness, Book]:
    book = Book()
    h = Harness(
        nodes=[] if "cluster" in options else [NODE],
        objects={"PodGroup": [make_pod_group("g").min_member(gang)]} if gang else {},
        pods=pods,
        profile=profile(),
        ledger=book,
        **options,
    )
    book.harness = h
    h.settle()
    return h, book


def test_an_approved_pod_is_bound_when_its_approval_is_kept() -> None:
    h, book = begin(pod())
    assert say(h, Verdict.APPROVE)[0]
    assert last(h).outcome is WaitOutcome.ALLOWED
    assert (bound(h), h.scheduler.is_busy) == ([], True)
    book.keep()
    assert (bound(h), h.scheduler.is_busy) == (["p"], False)


def test_nobody_of_a_gang_is_bound_before_it_is_kept_that_all_were_let_go() -> None:
    h, book = begin(*(member(name) for name in "abc"), gang=3)
    for name in "abc":
        say(h, Verdict.APPROVE, name=name)
    assert [told for told, _ in book.asked] == [["a", "b", "c"]]
    assert bound(h) == []
    book.keep()
    assert bound(h) == ["a", "b", "c"]


def test_whom_nobody_had_to_approve_waits_for_no_ledger() -> None:
    h, book = begin(make_pod("p").req(cpu="1"), *(free(name) for name in "ab"), gang=2)
    assert bound(h) == ["a", "b", "p"]
    assert book.asked == []


def free(name: str) -> Any:
    """A member that nobody has to approve."""
    return make_pod(name).req(cpu="1").pod_group("g")


def test_a_pod_that_is_deleted_before_its_approval_is_kept_is_bound_no_more() -> None:
    h, book = begin(pod())
    say(h, Verdict.APPROVE)
    h.cluster.delete("Pod", "default", "p", grace_period_seconds=0)
    h.settle()
    book.keep()
    assert h.observer.bindings[-1].bound is False
    h.create("Pod", make_pod("q").req(cpu="8"))
    h.settle()
    assert bound(h) == ["q"]  # the room is free


@pytest.mark.parametrize("kept", [False, True], ids=["not kept", "kept, and not begun"])
def test_a_scheduler_that_stops_before_leaves_the_binding_to_the_next(kept: bool) -> None:
    h, book = begin(pod())
    say(h, Verdict.APPROVE)
    ended = last(h)
    if kept:
        book.asked[0][1]()
    h.scheduler.stop()
    (told,) = h.observer.bindings
    text = "the scheduler stopped before the binding began; the next one goes on"
    assert (told.bound, told.message, bound(h)) == (False, text, [])

    again, book = begin(cluster=h.cluster, clock=h.clock, waiting=[ended])
    assert bound(again) == []
    book.keep()
    assert bound(again) == ["p"]
    assert last(again).resolved_by == "user:alice"


def test_who_need_not_be_approved_any_more_after_a_restart_is_bound_when_that_is_kept() -> None:
    h, _ = begin(pod())
    (wait,) = h.observer.waiting
    h.cluster.patch("Pod", "default", "p", {"metadata": {"labels": {"kubesched.io/approval": ""}}})
    again, book = begin(cluster=h.cluster, clock=h.clock, waiting=[wait])
    (asked,) = book.asked
    assert (asked[0], bound(again)) == (["p"], [])
    book.keep()
    assert bound(again) == ["p"]


def test_a_word_that_comes_before_it_is_kept_is_too_late() -> None:
    h, book = begin(pod())
    say(h, Verdict.APPROVE)
    uid = h.pod("p")["metadata"]["uid"]
    h.decide(PermitDecision(9, uid, Verdict.DENY, "bob"))
    assert h.observer.decisions[-1][1:] == (False, "the pod no longer waits for a decision")
    book.keep()
    assert bound(h) == ["p"]


def changed_before_it_is_kept(change: Callable[[Harness], None], names: str) -> Harness:
    """A gang of all these is approved, and then something happens before that is kept."""
    h, book = begin(*(member(name) for name in names), gang=len(names))
    for name in names:
        say(h, Verdict.APPROVE, name=name)
    change(h)
    h.settle()
    book.keep()
    return h


def delete(kind: str, namespace: str, name: str) -> Callable[[Harness], None]:
    return lambda h: h.cluster.delete(kind, namespace, name, grace_period_seconds=0)


@pytest.mark.parametrize(
    ("change", "outcome", "message"),
    [
        pytest.param(
            delete("Node", "", "n"),
            WaitOutcome.BROKEN,
            "node n was deleted before default/a was bound",
            id="its node is deleted",
        ),
        pytest.param(
            delete("PodGroup", "default", "g"),
            WaitOutcome.REJECTED,
            "PodGroup default/g was deleted before default/a was bound",
            id="its PodGroup is deleted",
        ),
        pytest.param(
            delete("Pod", "default", "a"),
            WaitOutcome.REMOVED,
            "the pod was deleted before it was bound",
            id="a member is deleted",
        ),
    ],
)
def test_what_happens_to_a_gang_before_it_is_kept_counts_for_all_of_it(
    change: Callable[[Harness], None], outcome: WaitOutcome, message: str
) -> None:
    h = changed_before_it_is_kept(change, "abc")
    assert bound(h) == []
    assert (last(h, "a").outcome, last(h, "a").message) == (outcome, message)


def test_a_member_that_is_not_needed_takes_nobody_along() -> None:
    h, book = begin(*(member(name) for name in "abc"), gang=2)
    for name in "abc":
        say(h, Verdict.APPROVE, name=name)
    h.cluster.delete("Pod", "default", "c", grace_period_seconds=0)
    h.settle()
    book.keep()
    assert bound(h) == ["a", "b"]
    assert last(h, "c").outcome is WaitOutcome.REMOVED


def test_the_siblings_of_a_deleted_member_are_asked_anew_when_the_gang_is_complete() -> None:
    h = changed_before_it_is_kept(delete("Pod", "default", "a"), "ab")
    ended = last(h, "b")
    text = "default/a was deleted before it was bound"
    assert (ended.outcome, ended.message) == (WaitOutcome.REJECTED, text)
    h.create("Pod", member("d"))
    h.settle()
    h.advance(30.0)
    assert (bound(h), sorted(h.waiting_names())) == ([], ["b", "d"])
    assert last(h, "b").approved_by == ("alice",)  # of the wait that has ended
    assert [tuple(w.approved_by) for w in h.scheduler.waiting_room] == [(), ()]
