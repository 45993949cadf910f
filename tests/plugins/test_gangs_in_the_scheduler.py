"""Gangs and approvals in the whole scheduler, with the demo's configuration, in virtual time."""

from __future__ import annotations

from pathlib import Path

import yaml

from scheduler_core.plugins.manual_approval import APPROVAL_KEY, REQUESTED_BY
from scheduler_core.records import PermitDecision, Verdict, WaitingPodRecord, WaitOutcome
from scheduler_core.testing.builders import (
    NodeBuilder,
    PodBuilder,
    make_node,
    make_pod,
    make_pod_group,
    uid_for,
)
from scheduler_core.testing.harness import Harness

DEMO = Path(__file__).parents[2] / "examples" / "demo.yaml"
PROFILE = yaml.safe_load(DEMO.read_text(encoding="utf-8"))["profiles"][0]
ASKS = {APPROVAL_KEY: "required"}
FIVE_MINUTES = 300.0


def member(name: str, cpu: str = "1") -> PodBuilder:
    return make_pod(name).pod_group("gang").req(cpu=cpu).uid(uid_for("Pod", "default", name))


def node(name: str, cpu: str) -> NodeBuilder:
    return make_node(name).capacity(cpu=cpu, memory="64Gi")


class Gang:
    """A scheduler with the demo's profile, and a gang of which all members are needed."""

    def __init__(self, size: int, *, cpu: str = "8", asks: bool = False) -> None:
        self.names = [f"m{i}" for i in range(size)]
        group = make_pod_group("gang", size)
        self.harness = Harness(
            nodes=[node("n1", cpu)],
            pods=[member(name).annotation({REQUESTED_BY: "bob"}) for name in self.names],
            objects={"PodGroup": [group.label(ASKS) if asks else group]},
            profile=PROFILE,
        )
        self.harness.settle()

    def bound(self) -> list[str]:
        return [name for name in self.names if self.harness.node_of(name)]

    def waiting(self) -> list[str]:
        return sorted(w.pod.name for w in self.harness.scheduler.waiting_pods)

    def decide(self, verdict: Verdict, *names: str) -> None:
        uids = {w.pod.name: w.pod.uid for w in self.harness.scheduler.waiting_pods}
        first = len(self.harness.observer.decisions) + 1
        self.harness.decide(
            *(
                PermitDecision(first + i, uids[name], verdict, "alice", "not now")
                for i, name in enumerate(names)
            )
        )

    def last_waits(self) -> dict[str, WaitingPodRecord]:
        return {record.pod.name: record for record in self.harness.observer.resolved}


def test_a_gang_that_fits_is_bound_at_once() -> None:
    assert Gang(4).bound() == ["m0", "m1", "m2", "m3"]


def test_an_approved_gang_is_bound() -> None:
    gang = Gang(3, asks=True)
    assert (gang.bound(), gang.waiting()) == ([], ["m0", "m1", "m2"])
    record = gang.harness.observer.waiting[-1]
    assert (record.pod_group, record.group_min_member) == ("default/gang", 3)
    assert (record.needs_approval, record.requested_by) == (True, "bob")
    gang.decide(Verdict.APPROVE, *gang.names)
    assert gang.bound() == gang.names


def test_the_pod_group_names_the_requester_for_members_that_name_nobody() -> None:
    harness = Harness(
        nodes=[node("n1", "3")],
        pods=[member("m0"), member("m1").annotation({REQUESTED_BY: "bob"})],
        objects={
            "PodGroup": [make_pod_group("gang", 2).label(ASKS).annotation({REQUESTED_BY: "eve"})]
        },
        profile=PROFILE,
    )
    harness.settle()
    found = {record.pod.name: record.requested_by for record in harness.observer.waiting}
    assert found == {"m0": "eve", "m1": "bob"}


def test_a_denied_gang_gives_its_nodes_back_and_does_not_ask_again_at_once() -> None:
    gang = Gang(3, cpu="3", asks=True)
    gang.decide(Verdict.DENY, "m1")
    assert (gang.bound(), gang.waiting()) == ([], [])
    waits = gang.last_waits()
    assert waits["m1"].message == "denied by alice: not now"
    # Its members are told as denied, and sleep until ManualApproval's own events wake them.
    assert waits["m0"].message == waits["m2"].message == "denied by alice: not now"
    gang.harness.create("Pod", make_pod("other").req(cpu="3"))
    gang.harness.advance(30.0)
    assert gang.harness.node_of("other") == "n1"
    assert gang.waiting() == []


def test_a_denied_gang_is_not_woken_by_the_count_of_its_members() -> None:
    gang = Gang(3, asks=True)
    counted = {"status": {"phase": "Scheduling"}}
    gang.harness.cluster.patch("PodGroup", "default", "gang", counted, subresource="status")
    gang.harness.settle()
    gang.decide(Verdict.DENY, *gang.names)
    gang.harness.advance(30.0)
    assert gang.waiting() == []
    gang.harness.cluster.patch("PodGroup", "default", "gang", {"spec": {"minMember": 2}})
    gang.harness.advance(30.0)
    assert gang.waiting() == gang.names


def test_a_denied_gang_asks_again_with_all_that_were_unschedulable_for_long() -> None:
    gang = Gang(3, asks=True)
    gang.decide(Verdict.DENY, *gang.names)
    for _ in range(12):
        gang.harness.advance(30.0)
    assert gang.waiting() == gang.names


def test_a_gang_nobody_decides_on_ends_after_fifteen_minutes() -> None:
    gang = Gang(2, asks=True)
    gang.harness.advance(899.0)
    assert gang.waiting() == gang.names
    gang.harness.advance(1.0)
    waits = gang.last_waits()
    assert waits["m0"].outcome is WaitOutcome.TIMED_OUT
    assert gang.bound() == []


def gang_whose_deadlines_differ(cpu: str) -> Gang:
    """m3 began to wait 10 s after the others."""
    gang = Gang(3, cpu=cpu, asks=True)
    gang.harness.advance(10.0)
    gang.names.append("m3")
    gang.harness.create("Pod", member("m3"))
    gang.harness.settle()
    assert gang.waiting() == gang.names
    return gang


def test_a_deadline_that_denies_gives_the_room_to_another_pod() -> None:
    gang = gang_whose_deadlines_differ(cpu="4")
    gang.harness.create("Pod", make_pod("other").req(cpu="4"))
    gang.harness.advance(889.0)
    assert (gang.harness.node_of("other"), gang.waiting()) == ("", gang.names)
    gang.harness.advance(1.0)
    assert gang.waiting() == [], "it does not ask again at once"
    waits = gang.last_waits()
    assert {waits[name].outcome for name in gang.names} == {WaitOutcome.TIMED_OUT}
    assert {waits[name].resolved_by for name in gang.names} == {"ManualApproval"}
    gang.harness.advance(30.0)
    assert gang.harness.node_of("other") == "n1"


def test_a_gang_that_nobody_decided_on_asks_again_after_five_minutes() -> None:
    gang = gang_whose_deadlines_differ(cpu="8")
    gang.harness.advance(890.0)
    for _ in range(9):
        gang.harness.advance(30.0)
        assert gang.waiting() == []
    for _ in range(3):
        gang.harness.advance(30.0)
    assert gang.waiting() == gang.names


def test_a_single_pod_that_nobody_decided_on_gives_its_room_too() -> None:
    single = Harness(
        nodes=[node("n1", "3")],
        pods=[make_pod("p").req(cpu="3").label(ASKS)],
        profile=PROFILE,
    )
    single.settle()
    single.create("Pod", make_pod("other").req(cpu="3"))
    single.advance(900.0)
    single.advance(30.0)
    assert single.node_of("other") == "n1"
    assert list(single.scheduler.waiting_pods) == []


def test_a_gang_without_room_holds_nothing_and_is_bound_when_there_is_some() -> None:
    gang = Gang(4, cpu="3")
    gang.harness.create("Pod", make_pod("other").req(cpu="3"))
    gang.harness.settle()
    for _ in range(5):
        gang.harness.advance(10.0)
    assert gang.bound() == []
    assert gang.harness.node_of("other") == "n1"
    gang.harness.create("Node", node("n2", "4"))
    for _ in range(3):
        gang.harness.advance(10.0)
    assert gang.bound() == gang.names


def test_a_gang_that_waits_for_its_last_member() -> None:
    late = Harness(
        nodes=[node("n1", "8")],
        pods=[member("m0"), member("m1")],
        objects={"PodGroup": [make_pod_group("gang", 3)]},
        profile=PROFILE,
    )
    late.settle()
    text = "cannot find enough sibling pods, current pods number: 2, minMember of group: 3"
    assert text in late.condition("m0")["message"]
    late.create("Pod", member("m2"))
    late.advance(10.0)
    assert [late.node_of(name) for name in ("m0", "m1", "m2")] == ["n1"] * 3


def test_a_member_deleted_while_it_waits_ends_the_wait_of_all() -> None:
    gang = Gang(3, asks=True)
    gang.harness.cluster.delete("Pod", "default", "m2", grace_period_seconds=0)
    gang.harness.settle()
    assert gang.waiting() == []
    assert gang.last_waits()["m2"].outcome is WaitOutcome.REMOVED


def test_a_gang_goes_on_waiting_after_a_restart() -> None:
    gang = Gang(2, asks=True)
    records = list({r.pod.name: r for r in gang.harness.observer.waiting}.values())
    gang.harness.clock.advance(100.0)
    again = Harness(
        profile=PROFILE, cluster=gang.harness.cluster, clock=gang.harness.clock, waiting=records
    )
    again.settle()
    gang.harness = again
    assert gang.waiting() == gang.names
    assert {w.deadline for w in again.scheduler.waiting_pods} == {r.deadline for r in records}
    gang.decide(Verdict.APPROVE, *gang.names)
    assert gang.bound() == gang.names
