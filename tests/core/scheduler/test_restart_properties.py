"""What people say leads to the same with a worker that lives and with one that comes later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scheduler_core.records import PermitDecision, Verdict, WaitingPodRecord
from scheduler_core.testing.builders import make_node, make_pod, make_pod_group
from scheduler_core.testing.harness import Harness
from tests.core.scheduler.test_approvals import ASKS, bound, profile


@dataclass(frozen=True)
class Word:
    """``after``: seconds since the word before."""

    after: int
    pod: str
    verdict: Verdict
    user: str


@dataclass(frozen=True)
class Story:
    """Pods of a gang (or one alone), what they have to be approved by, and what is said of them.

    Attributes:
        requested: pods that alice asked for.
        heard: words that the first worker hears before it ends.
        rest: seconds after the last word.
    """

    pods: str
    min_member: int
    requested: frozenset[str]
    terms: dict[str, Any]
    words: tuple[Word, ...]
    heard: int
    rest: int


@st.composite
def stories(draw: st.DrawFn) -> Story:
    pods = "abc"[: draw(st.integers(1, 3))]
    verdicts = st.sampled_from([*[Verdict.APPROVE] * 5, Verdict.DENY, Verdict.REVOKE])
    words = st.builds(
        Word,
        st.sampled_from([0, 1, 5, 15, 30]),
        st.sampled_from(pods),
        verdicts,
        st.sampled_from(["alice", "bob", "carl"]),
    )
    said = tuple(draw(st.lists(words, min_size=1, max_size=7)))
    return Story(
        pods,
        draw(st.integers(max(1, len(pods) - 1), len(pods))) if len(pods) > 1 else 0,
        frozenset(draw(st.sets(st.sampled_from(pods)))),
        {
            "approvers": draw(st.integers(1, 2)),
            "atDeadline": draw(st.sampled_from(["Deny", "Approve"])),
            "timeoutSeconds": 60,
            "requesterMayApprove": draw(st.booleans()),
        },
        said,
        draw(st.integers(0, len(said))),
        draw(st.sampled_from([1, 40, 100])),
    )


def begin(story: Story) -> Harness:
    group = [make_pod_group("g").min_member(story.min_member)]
    h = Harness(
        nodes=[make_node("n").capacity(cpu="8", memory="8Gi", pods="20")],
        objects={"PodGroup": group} if story.min_member else {},
        profile=profile(**story.terms),
    )
    for name in story.pods:
        pod = make_pod(name).req(cpu="1").label(ASKS)
        if name in story.requested:
            pod = pod.annotation({"kubesched.io/requested-by": "alice"})
        h.create("Pod", pod.pod_group("g") if story.min_member else pod)
    h.settle()
    return h


def decisions(h: Harness, story: Story) -> list[PermitDecision]:
    at, said = h.clock.now(), []
    for number, word in enumerate(story.words, start=1):
        at += word.after
        uid = h.pod(word.pod)["metadata"]["uid"]
        said.append(PermitDecision(number, uid, word.verdict, word.user, at=at))
    return said


def hear(h: Harness, words: Sequence[PermitDecision]) -> bool:
    """Whether nobody took back what was acted on already; the web refuses that."""
    for word in words:
        assert word.at is not None
        live_until(h, word.at)
        if word.verdict is Verdict.REVOKE and bound(h):
            return False
        h.decide(word)
    return True


def live_until(h: Harness, moment: float) -> None:
    while h.clock.now() < moment:
        h.advance(min(1.0, moment - h.clock.now()))


def open_rows(h: Harness, story: Story, later: Sequence[PermitDecision]) -> list[WaitingPodRecord]:
    """As the recorder and, of the words after it, the web have left them."""
    rows = {wait.pod.uid: wait for wait in h.observer.waiting}
    for done in h.observer.resolved:
        rows.pop(done.pod.uid, None)
    approved = {p.uid: list(p.approved_by) for p in h.scheduler.waiting_room if p.uid in rows}
    for word in later:
        users = approved.get(word.pod_uid, [])
        own = word.user == "alice" and may_not_approve_own(rows, word.pod_uid, story)
        if word.verdict is Verdict.REVOKE and word.user in users:
            users.remove(word.user)
        elif word.verdict is Verdict.APPROVE and word.user not in users and not own:
            users.append(word.user)
    return [replace(row, approved_by=tuple(approved[uid])) for uid, row in rows.items()]


def may_not_approve_own(rows: dict[str, WaitingPodRecord], uid: str, story: Story) -> bool:
    row = rows.get(uid)
    may = story.terms["requesterMayApprove"]
    return row is not None and row.pod.name in story.requested and not may


@settings(max_examples=60, deadline=None)
@given(stories())
def test_who_is_bound_does_not_depend_on_when_a_worker_lives(story: Story) -> None:
    live = begin(story)
    words = decisions(live, story)
    end = words[-1].at + story.rest  # type: ignore[operator]
    assume(hear(live, words))
    live_until(live, end)

    first = begin(story)
    words = decisions(first, story)
    hear(first, words[: story.heard])
    rows = open_rows(first, story, words[story.heard :])
    first.scheduler.stop()
    assume(rows)
    first.clock.advance(max(0.0, words[-1].at + story.rest - first.clock.now()))  # type: ignore[operator]
    then = Harness(
        cluster=first.cluster, clock=first.clock, profile=profile(**story.terms), waiting=rows
    )
    waiting = {row.pod.uid for row in rows}
    then.decisions.waiting.extend(word for word in words if word.pod_uid in waiting)
    then.settle()
    then.advance(1.0)
    assert bound(then) == bound(live)
