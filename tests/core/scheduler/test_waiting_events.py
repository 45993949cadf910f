"""``kubectl describe`` says why a pod that has a node is not bound yet."""

from __future__ import annotations

from scheduler_core.records import Verdict
from scheduler_core.testing.builders import make_pod
from tests.core.scheduler.test_approvals import bound, harness, member, pod, say


def test_a_pod_that_waits_says_where_and_for_whom() -> None:
    h = harness(pod(), make_pod("free").req(cpu="1"), timeoutSeconds=600)
    (event,) = h.events("WaitingOnPermit")
    assert (event["type"], event["action"], event["regarding"]["name"]) == (
        "Normal",
        "Scheduling",
        "p",
    )
    assert event["note"] == (
        "n0 is held for the pod, which is not bound yet: "
        "ManualApproval (waits for a person's approval), at most 10m0s"
    )
    say(h, Verdict.APPROVE)
    assert bound(h) == ["free", "p"]
    assert len(h.events("WaitingOnPermit")) == 1


def test_of_a_gang_all_plugins_are_named() -> None:
    h = harness(member("a"), member("b").req(cpu="20"), gang=2)
    (event,) = h.events("WaitingOnPermit")
    assert event["note"] == (
        "n0 is held for the pod, which is not bound yet: "
        "Coscheduling (waits for its gang default/g: 1 of 2 members have a node), at most 1m0s; "
        "ManualApproval (waits for a person's approval), at most 15m0s"
    )


def test_who_does_not_wait_costs_nothing() -> None:
    h = harness(make_pod("p").req(cpu="1"))
    assert [e["reason"] for e in h.cluster.list("Event").items] == ["Scheduled"]
