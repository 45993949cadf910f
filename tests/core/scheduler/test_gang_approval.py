"""A gang that needs a person goes as one, however the clicks and the members arrive."""

from __future__ import annotations

from typing import Any

from scheduler_core.records import PermitDecision, Verdict, WaitOutcome
from scheduler_core.testing.builders import make_node, make_pod, make_pod_group
from scheduler_core.testing.harness import Harness

PROFILE = {
    "plugins": {
        "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
        "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
        "permit": {"enabled": [{"name": "ManualApproval"}]},
    },
    # A member that fits nowhere does not break up the gang: the others go on waiting for it.
    "pluginConfig": [{"name": "Coscheduling", "args": {"podGroupRejectPercentage": 100}}],
}


def member(name: str, *, asks: bool = False) -> Any:
    pod = make_pod(name).req(cpu="1").pod_group("gang")
    return pod.label(**{"kubesched.io/approval": "required"}) if asks else pod


def gang(*members: Any, size: int) -> Harness:
    h = Harness(
        nodes=[make_node("n").capacity(cpu="8", memory="8Gi", pods="10")],
        objects={"PodGroup": [make_pod_group("gang").min_member(size)]},
        pods=members,
        profile=PROFILE,
    )
    h.settle()
    return h


def decide(h: Harness, name: str, verdict: Verdict) -> None:
    uid = h.pod(name)["metadata"]["uid"]
    h.decide(PermitDecision(len(h.observer.decisions) + 1, uid, verdict, "alice"))


def bound(h: Harness) -> list[str]:
    pods = h.cluster.list("Pod").items
    return sorted(p["metadata"]["name"] for p in pods if p["spec"].get("nodeName"))


def test_members_approved_one_by_one_are_bound_together() -> None:
    h = gang(member("a", asks=True), member("b"), member("c"), size=3)
    decide(h, "a", Verdict.APPROVE)
    decide(h, "b", Verdict.APPROVE)
    assert bound(h) == []
    assert h.observer.decisions[-1][1:] == (
        True,
        "approved; it counts when the whole gang is approved",
    )
    decide(h, "c", Verdict.APPROVE)
    assert bound(h) == ["a", "b", "c"]
    assert {r.resolved_by for r in h.observer.resolved} == {"user:alice"}


def test_one_denial_after_an_approval_leaves_nobody_bound() -> None:
    h = gang(member("a", asks=True), member("b"), member("c"), size=3)
    decide(h, "a", Verdict.APPROVE)
    decide(h, "b", Verdict.DENY)
    assert bound(h) == []
    assert h.waiting_names() == []
    assert {r.outcome for r in h.observer.resolved} == {WaitOutcome.REJECTED}


def replace_c(h: Harness, builder: Any) -> None:
    """Another c, one that fits, takes the place of the one that did not."""
    h.cluster.delete("Pod", "default", "c", grace_period_seconds=0)
    h.create("Pod", builder)
    h.settle()


def test_a_member_that_asks_late_has_the_whole_gang_wait() -> None:
    h = gang(member("a"), member("b"), member("c").req(cpu="20"), size=3)
    assert h.waiting_names() == ["a", "b"]
    assert not h.observer.waiting[0].needs_approval
    replace_c(h, member("c", asks=True))
    assert bound(h) == []
    latest = {w.pod.name: w for w in h.observer.waiting}
    assert all(w.needs_approval for w in latest.values())
    assert all([p.plugin for p in w.pending] == ["ManualApproval"] for w in latest.values())
    for name in ("a", "b", "c"):
        decide(h, name, Verdict.APPROVE)
    assert bound(h) == ["a", "b", "c"]


def test_an_approval_before_the_gang_is_complete_counts_with_the_others() -> None:
    h = gang(member("a", asks=True), member("b"), member("c").req(cpu="20"), size=3)
    decide(h, "a", Verdict.APPROVE)
    decide(h, "b", Verdict.APPROVE)
    replace_c(h, member("c"))
    assert bound(h) == []
    decide(h, "c", Verdict.APPROVE)
    assert bound(h) == ["a", "b", "c"]


def test_a_gang_that_is_asked_late_still_has_a_deadline() -> None:
    h = gang(member("a"), member("b"), member("c").req(cpu="20"), size=3)
    replace_c(h, member("c", asks=True))
    assert h.waiting_names() == ["a", "b", "c"]
    h.advance(901.0)
    assert bound(h) == []
    assert WaitOutcome.TIMED_OUT in {r.outcome for r in h.observer.resolved}
