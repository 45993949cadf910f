"""What becomes of a native pod group that cannot be scheduled, and the PodGroup's condition
(gang.md, section 3); a named case for each rule."""

from __future__ import annotations

import pytest

from scheduler_core.api import NATIVE_POD_GROUP
from scheduler_core.pod_group_attempt import GROUP_UNSCHEDULABLE, WAITING_ON_PREEMPTION
from scheduler_core.records import (
    Outcome,
)
from scheduler_core.testing.builders import make_native_pod_group, make_pod
from scheduler_core.testing.harness import Harness
from tests.core.scheduler.native_gang import (
    VERSIONS,
    WAITS,
    gang_harness,
    group_condition,
    high,
    last,
    member,
    node,
    nodes_of,
    place,
    profile,
    with_class,
)

# -- what is said of a group that failed ---------------------------------------------------------


def test_each_member_has_a_record_that_says_why_its_group_failed() -> None:
    harness = gang_harness(
        nodes=[node("n", "2")], pods=[member(name) for name in "abc"], min_count=3
    )
    why = "pod group default/g: 2 of minCount 3 pods have a place"
    shortage = "0/1 nodes are available: 1 Insufficient cpu"
    for name in "ab":
        record = last(harness, name)
        assert (record.outcome, record.plugin) == (Outcome.UNSCHEDULABLE, "GangScheduling")
        assert record.message == f"{WAITS}. {why}; c: {shortage}"
        assert record.pod_group == "default/g"
        assert record.matrix is not None and record.node == "n"
    blocker = last(harness, "c")
    assert blocker.message.startswith(f"{shortage}.")
    assert blocker.message.endswith(f". {why}")
    assert [(r.plugin, r.nodes) for r in blocker.rejections] == [("NodeResourcesFit", 1)]
    assert harness.condition("a")["message"] == last(harness, "a").message


def test_failed_members_back_off_and_no_event_hints_wake_them() -> None:
    harness = gang_harness(
        nodes=[node("n", "1")], pods=[member("a"), member("b", cpu="7"), member("c")], min_count=3
    )
    assert [place(harness, name) for name in "abc"] == ["backoff"] * 3
    harness.create("Node", node("large", "9"))
    harness.settle()
    assert nodes_of(harness, "a", "b", "c") == ["", "", ""]
    harness.advance(2.0)
    assert "" not in nodes_of(harness, "a", "b", "c")


def test_backoff_grows_with_every_failure() -> None:
    harness = gang_harness(nodes=[node("n", "1")], pods=[member("a"), member("b")])
    for _ in range(120):
        harness.advance(1.0)
    assert 10 <= len(harness.cycles("a")) <= 18


# -- the condition -------------------------------------------------------------------------------


@pytest.mark.parametrize("version, type_", VERSIONS.items())
def test_the_condition_of_a_group_that_is_scheduled(version: str, type_: str) -> None:
    harness = gang_harness(
        nodes=[node("n", "9")],
        pods=[member("a"), member("b")],
        group=make_native_pod_group("g").api_version(version).gang(2),
    )
    assert group_condition(harness) == {
        "type": type_,
        "status": "True",
        "reason": "Scheduled",
        "message": "",
        "observedGeneration": 1,
        "lastTransitionTime": "1970-01-12T13:46:40Z",
    }


@pytest.mark.parametrize("version, type_", VERSIONS.items())
def test_the_condition_of_a_group_that_is_not(version: str, type_: str) -> None:
    harness = gang_harness(
        nodes=[node("n", "1")],
        pods=[member("a"), member("b")],
        group=make_native_pod_group("g").api_version(version).gang(2),
    )
    found = group_condition(harness)
    assert (found["type"], found["status"], found["reason"]) == (type_, "False", "Unschedulable")
    assert found["message"] == (
        f"{GROUP_UNSCHEDULABLE}: 1 of minCount 2 pods have a place; "
        "b: 0/1 nodes are available: 1 Insufficient cpu"
    )
    harness.advance(30.0)
    assert group_condition(harness) == found  # lastTransitionTime stays
    harness.create("Node", node("n2", "1"))
    harness.advance(15.0)
    again = group_condition(harness)
    assert (again["status"], again["lastTransitionTime"]) == ("True", "1970-01-12T13:47:25Z")


def test_the_condition_never_goes_back_to_false() -> None:
    harness = gang_harness(nodes=[node("n", "2")], pods=[member("a"), member("b")])
    harness.create("Pod", member("extra"))
    harness.advance(30.0)
    assert last(harness, "extra").outcome is Outcome.UNSCHEDULABLE
    assert group_condition(harness)["status"] == "True"


def test_conditions_of_others_stay() -> None:
    harness = gang_harness(nodes=[node("n", "1")], pods=[member("a"), member("b")])
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    conditions = [group_condition(harness), target]
    harness.cluster.patch(
        NATIVE_POD_GROUP,
        "default",
        "g",
        {"status": {"conditions": conditions}},
        subresource="status",
    )
    harness.create("Node", node("n2", "1"))
    harness.advance(15.0)
    found = harness.cluster.get(NATIVE_POD_GROUP, "default", "g")["status"]["conditions"]
    assert [(c["type"], c["status"]) for c in found] == [
        ("PodGroupScheduled", "True"),
        ("DisruptionTarget", "True"),
    ]


def test_what_else_is_in_the_status_stays() -> None:
    harness = gang_harness(nodes=[node("n", "1")], pods=[member("a"), member("b")])
    claims = [{"name": "gpus", "resourceClaimName": "g-gpus"}]
    status = {"status": {"resourceClaimStatuses": claims}}
    harness.cluster.patch(NATIVE_POD_GROUP, "default", "g", status, subresource="status")
    harness.create("Node", node("n2", "1"))
    harness.advance(15.0)
    assert group_condition(harness)["status"] == "True"
    found = harness.cluster.get(NATIVE_POD_GROUP, "default", "g")["status"]
    assert found["resourceClaimStatuses"] == claims


# -- topology: the gate TopologyAwareWorkloadScheduling is off -------------------------------------


def test_topology_constraints_do_nothing_while_their_gate_is_off() -> None:
    """Two zones with room for one each: with the gate the gang would need one zone for both."""
    group = make_native_pod_group("g", 2).raw()
    group["spec"]["schedulingConstraints"] = {"topology": [{"key": "zone"}]}
    harness = gang_harness(
        nodes=[node(f"n{zone}", "1").label(zone=zone) for zone in "ab"],
        pods=[member("a"), member("b")],
        group=group,  # type: ignore[arg-type]  # as JSON: the builder has no words for it
    )
    assert sorted(nodes_of(harness, "a", "b")) == ["na", "nb"]


# -- preemption ----------------------------------------------------------------------------------


def eviction_harness(low_cpu: str, *, min_count: int = 2) -> Harness:
    low = make_pod("low").req(cpu=low_cpu).raw()
    low["spec"]["terminationGracePeriodSeconds"] = 0
    harness = Harness(
        nodes=[node("n", "2")],
        pods=[low],
        objects={
            "PriorityClass": [high()],
            NATIVE_POD_GROUP: [make_native_pod_group("g", min_count)],
        },
        profile=profile(),
    )
    harness.settle()
    assert harness.node_of("low") == "n"
    harness.create("Pod", with_class("a"), with_class("b"))
    return harness


def test_a_group_that_needs_room_waits_for_preemption() -> None:
    harness = eviction_harness("1")
    while not harness.cycles("b"):
        harness.scheduler.run_once()
    records = {name: harness.cycles(name)[0] for name in "ab"}
    text = f"{GROUP_UNSCHEDULABLE}, {WAITING_ON_PREEMPTION}"
    # The first fits, and keeps its place; the second needs the room of the low pod.
    assert records["a"].message.startswith(text)
    assert (records["a"].nominated_node, records["b"].nominated_node) == ("n", "n")
    assert records["b"].victims == ("default/low",)
    found = group_condition(harness)
    assert (found["status"], found["reason"]) == ("False", "Unschedulable")
    assert found["message"].startswith(text)
    harness.advance(5.0)
    assert nodes_of(harness, "a", "b") == ["n", "n"]
    assert group_condition(harness)["status"] == "True"
    assert not [p for p in harness.cluster.list("Pod").items if p["metadata"]["name"] == "low"]


def test_a_group_that_fails_all_the_same_gives_up_its_nominations() -> None:
    """b could have the low pod's room, but Permit lets nobody pass."""
    harness = eviction_harness("1", min_count=3)
    harness.create("Pod", member("c", cpu="9"))
    harness.settle()
    assert nodes_of(harness, "a", "b", "c") == ["", "", ""]
    assert last(harness, "b").message.startswith(WAITS)
    assert len(harness.scheduler.queue.nominator) == 0
    assert harness.pod("b")["status"].get("nominatedNodeName", "") == ""
