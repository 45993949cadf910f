"""The cycle of a native pod group (gang.md, section 3): who is in it, and what happens on its one
snapshot; a named case for each rule, in the whole scheduler. What the plugin itself does is in
tests/plugins/gang_scheduling."""

from __future__ import annotations

from scheduler_core.api import NATIVE_POD_GROUP, Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.status import SUCCESS, Status, error, unschedulable
from scheduler_core.records import (
    Outcome,
)
from scheduler_core.testing.builders import make_native_pod_group, make_pod
from scheduler_core.testing.invariants import describe_node, describe_table
from tests.core.scheduler.native_gang import (
    gang_harness,
    group_condition,
    high,
    last,
    member,
    node,
    nodes_of,
    place,
    profile,
    spy,
    with_class,
)

# -- PreEnqueue in the queue ---------------------------------------------------------------------


def test_pre_enqueue_gates_until_min_count_pods_are_known() -> None:
    harness = gang_harness(nodes=[node("n", "9")], pods=[member("a"), member("b")], min_count=3)
    assert [place(harness, name) for name in "ab"] == ["gated", "gated"]
    assert harness.observer.cycles == []
    harness.create("Pod", member("c"))
    harness.settle()
    assert nodes_of(harness, "a", "b", "c") == ["n", "n", "n"]


def test_pre_enqueue_gates_until_the_pod_group_is_there() -> None:
    harness = gang_harness(
        nodes=[node("n", "9")],
        pods=[member("a"), member("b")],
        group=make_native_pod_group("another", 1),
    )
    assert place(harness, "a") == "gated"
    harness.create(NATIVE_POD_GROUP, make_native_pod_group("g", 2))
    harness.settle()
    assert nodes_of(harness, "a", "b") == ["n", "n"]


def test_a_profile_without_the_plugin_ignores_scheduling_groups() -> None:
    harness = gang_harness(nodes=[node("n", "9")], pods=[member("a")], min_count=5, profile={})
    assert harness.node_of("a") == "n"
    assert NATIVE_POD_GROUP not in harness.scheduler.watched_kinds()
    assert last(harness, "a").pod_group == ""


# -- who is in the cycle -------------------------------------------------------------------------


def test_popping_a_member_pulls_all_queued_siblings() -> None:
    harness = gang_harness(
        nodes=[node("n", "9")],
        pods=[member("a"), member("b"), member("c")],
        min_count=3,
    )
    assert [c.pod.name for c in harness.observer.cycles] == ["a", "b", "c"]
    # Others come before or after the whole group, wherever its members are in the queue.
    harness.observer.cycles.clear()
    harness.create("Pod", member("d"), make_pod("other").req(cpu="1"), member("e"))
    harness.settle()
    assert [c.pod.name for c in harness.observer.cycles] == ["d", "e", "other"]
    assert [c.sequence for c in harness.observer.cycles] == [4, 5, 6]


def test_members_come_by_priority_then_initial_attempt() -> None:
    harness = gang_harness(
        nodes=[node("full", "1")],
        pods=[with_class("m"), member("z")],
        objects={"PriorityClass": [high()]},
    )
    harness.advance(20.0)
    harness.observer.cycles.clear()
    harness.create("Pod", member("b"), with_class("a"))
    harness.advance(20.0)
    assert [c.pod.name for c in harness.observer.cycles[:4]] == ["m", "a", "z", "b"]


def test_unschedulable_and_backing_off_siblings_are_pulled_gated_ones_are_not() -> None:
    harness = gang_harness(
        nodes=[node("n", "1")], pods=[member("a"), member("b"), member("gated").gate("x")]
    )
    assert [place(harness, name) for name in ("a", "b", "gated")] == ["backoff", "backoff", "gated"]
    harness.create("Pod", member("c"))
    harness.settle()  # c is popped, and the others with it, before their backoff is over
    assert [c.pod.name for c in harness.observer.cycles] == ["a", "b", "a", "b", "c"]
    assert place(harness, "gated") == "gated"


def test_different_scheduler_names_are_an_error() -> None:
    both = [{"schedulerName": name, **profile()} for name in ("default-scheduler", "other")]
    harness = gang_harness(
        nodes=[node("n", "9")],
        pods=[member("a"), member("b").scheduler_name("other")],
        config={"profiles": both},
    )
    text = (
        "all pods in a single pod group should have the same .spec.schedulerName set, "
        'got: "default-scheduler" and "other"'
    )
    for name in "ab":
        assert (last(harness, name).outcome, last(harness, name).message) == (Outcome.ERROR, text)
    assert last(harness, "b").profile == "other"
    found = group_condition(harness)
    assert (found["status"], found["reason"], found["message"]) == ("False", "SchedulerError", text)
    assert [place(harness, name) for name in "ab"] == ["backoff", "backoff"]


def test_a_member_that_is_being_deleted_is_skipped() -> None:
    going = member("b").raw()
    going["metadata"]["finalizers"] = ["example.com/hold"]
    harness = gang_harness(nodes=[node("n", "9")], pods=[], min_count=2)
    harness.create("Pod", going, member("a"), member("c"))
    harness.cluster.delete("Pod", "default", "b")
    harness.settle()
    assert last(harness, "b").outcome is Outcome.SKIPPED
    assert nodes_of(harness, "a", "c") == ["n", "n"]


# -- on one snapshot -----------------------------------------------------------------------------


def test_later_members_see_earlier_ones() -> None:
    """One per node: only with the first in its place is the other node the second's."""
    alone = {"app": "x"}
    apart = [
        member(name).label(alone).pod_anti_affinity("kubernetes.io/hostname", alone)
        for name in "ab"
    ]
    harness = gang_harness(nodes=[node("n1", "9"), node("n2", "9")], pods=apart)
    assert sorted(nodes_of(harness, "a", "b")) == ["n1", "n2"]
    crowded = gang_harness(nodes=[node("n1", "9")], pods=apart)
    assert nodes_of(crowded, "a", "b") == ["", ""]


def test_everything_is_taken_back_when_the_group_fails() -> None:
    seen: list[str] = []
    watch = spy(
        "Watch",
        reserve=lambda _s, pod, n: seen.append(f"+{pod.name}") or SUCCESS,
        unreserve=lambda _s, pod, n: seen.append(f"-{pod.name}"),
    )
    harness = gang_harness(
        nodes=[node("n", "2")],
        pods=[member("a"), member("b"), member("c")],
        min_count=3,
        plugins=[watch],
    )
    assert seen == ["+a", "+b", "-b", "-a"]
    assert harness.scheduler.cache.pod_count == 0
    harness.create("Pod", make_pod("other").req(cpu="2"))
    harness.settle()
    assert harness.node_of("other") == "n"


def test_a_failed_cycle_leaves_cache_snapshot_and_queue_as_they_were() -> None:
    harness = gang_harness(
        nodes=[node("n1", "2"), node("n2", "1")],
        pods=[make_pod("bound").req(cpu="1").node("n2"), *(member(f"m{i}") for i in range(2))],
        min_count=4,
    )
    scheduler = harness.scheduler
    before = {name: describe_node(info) for name, info in scheduler.cache.node_infos()}
    table = describe_table(scheduler.snapshot.nodes)
    harness.create("Pod", member("m2"), member("m3"))
    harness.settle()
    assert len(harness.observer.cycles) == 4
    assert {n: describe_node(info) for n, info in scheduler.cache.node_infos()} == before
    assert describe_table(scheduler.snapshot.nodes) == table
    assert sorted(info.pod.name for info in scheduler.queue) == ["m0", "m1", "m2", "m3"]
    assert (list(scheduler.queue.in_flight()), len(scheduler.queue.nominator)) == ([], 0)


def test_the_group_is_schedulable_if_any_permit_succeeds() -> None:
    """Two of three fit and minCount is two: they are bound, the third waits on its own."""
    harness = gang_harness(nodes=[node("n", "2")], pods=[member(name) for name in "abc"])
    assert nodes_of(harness, "a", "b", "c") == ["n", "n", ""]
    assert group_condition(harness)["status"] == "True"
    third = last(harness, "c")
    assert third.outcome is Outcome.UNSCHEDULABLE
    assert third.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert third.unschedulable_plugins == ("NodeResourcesFit",)
    assert place(harness, "c") == "unschedulable"  # with its own events, like any pod
    harness.create("Node", node("n2", "1"))
    harness.advance(11.0)
    assert harness.node_of("c") == "n2"


def test_a_rejected_pod_alone_does_not_stop_the_others() -> None:
    harness = gang_harness(
        nodes=[node("n", "2")], pods=[member("a", cpu="5"), member("b"), member("c")]
    )
    assert nodes_of(harness, "a", "b", "c") == ["", "n", "n"]


def test_an_error_stops_the_others() -> None:
    def broken(_state: CycleState, pod: Pod, _node: str) -> Status:
        return error("disk on fire") if pod.name == "b" else SUCCESS

    harness = gang_harness(
        nodes=[node("n", "9")],
        pods=[member(name) for name in "abc"],
        plugins=[spy("Broken", filter=broken)],
    )
    assert nodes_of(harness, "a", "b", "c") == ["", "", ""]
    own = 'running "Broken" filter plugin: disk on fire'
    others = f"failed to schedule other pod from a pod group: {own}"
    assert [last(harness, name).message for name in "abc"] == [others, own, others]
    assert {last(harness, name).outcome for name in "abc"} == {Outcome.ERROR}
    assert [last(harness, name).nodes_total for name in "abc"] == [1, 1, 0]  # c was not tried
    found = group_condition(harness)
    assert (found["status"], found["reason"]) == ("False", "SchedulerError")
    assert found["message"] == others


def test_a_rejection_at_reserve_counts_as_a_rejection_of_the_pod() -> None:
    def picky(_state: CycleState, pod: Pod, _node: str) -> Status:
        return unschedulable("no licence") if pod.name == "a" else SUCCESS

    harness = gang_harness(
        nodes=[node("n", "9")],
        pods=[member(name) for name in "abc"],
        plugins=[spy("Picky", reserve=picky)],
    )
    assert nodes_of(harness, "a", "b", "c") == ["", "n", "n"]
    assert last(harness, "a").message == "0/1 nodes are available: 1 no licence."
    assert last(harness, "a").unschedulable_plugins == ("Picky",)


def test_a_basic_group_schedules_what_fits() -> None:
    harness = gang_harness(
        nodes=[node("n", "2")],
        pods=[member(name) for name in "abc"],
        group=make_native_pod_group("g").basic(),
    )
    assert nodes_of(harness, "a", "b", "c") == ["n", "n", ""]
    assert group_condition(harness)["reason"] == "Scheduled"


def test_members_that_come_later_join_a_gang_that_runs() -> None:
    harness = gang_harness(nodes=[node("n", "9")], pods=[member("a"), member("b")])
    harness.create("Pod", member("late"))
    harness.settle()
    assert harness.node_of("late") == "n"
