"""What a restart may not do: wave through what nobody approved, or change the order of waits."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler_core.records import WaitingPodRecord
from scheduler_core.testing.builders import make_node, make_pod, make_pod_group
from scheduler_core.testing.harness import Harness

GANGS = {
    "plugins": {
        "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
        "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
        "permit": {"enabled": [{"name": "ManualApproval"}]},
    },
    # A member that fits nowhere leaves its siblings waiting.
    "pluginConfig": [{"name": "Coscheduling", "args": {"podGroupRejectPercentage": 100}}],
}
APPROVAL = {"kubesched.io/approval": "required"}


def restart(h: Harness) -> Harness:
    waits: Iterable[WaitingPodRecord] = {w.pod.uid: w for w in h.observer.waiting}.values()
    again = Harness(cluster=h.cluster, clock=h.clock, profile=GANGS, waiting=waits)
    again.settle()
    return again


def test_a_wait_for_siblings_is_no_approval_after_a_restart() -> None:
    """It began to ask for approval while no worker ran: a person is asked, as at a first try."""
    h = Harness(
        nodes=[make_node("n1").capacity(cpu="2", memory="4Gi", pods="9")],
        objects={"PodGroup": [make_pod_group("g").min_member(2)]},
        pods=[make_pod(name).req(cpu="2").pod_group("g") for name in ("a", "b")],
        profile=GANGS,
    )
    h.settle()  # room for one of them, which waits for the other
    (waiting,) = h.scheduler.waiting_pods
    assert waiting.pending_plugins == ("Coscheduling",)
    h.cluster.patch("PodGroup", "default", "g", {"metadata": {"labels": APPROVAL}})

    again = restart(h)
    (waiting,) = again.scheduler.waiting_pods
    assert set(waiting.pending_plugins) == {"Coscheduling", "ManualApproval"}


def test_waits_are_taken_up_in_the_order_in_which_they_began() -> None:
    h = Harness(
        nodes=[make_node("n1").capacity(cpu="9", memory="9Gi", pods="9")],
        profile=GANGS,
    )
    for name in ("c", "a", "b"):
        h.create("Pod", make_pod(name).label(**APPROVAL))
        h.advance(1.0)
    waits = sorted(h.observer.waiting, key=lambda w: w.pod.name)
    again = Harness(cluster=h.cluster, clock=h.clock, profile=GANGS, waiting=waits)
    again.settle()
    assert [w.pod.name for w in again.observer.waiting] == ["c", "a", "b"]
