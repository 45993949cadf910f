"""The cycle of a native pod group (gang.md, section 3): one named case for each rule, in the whole
scheduler and in virtual time. What the plugin itself does is in tests/plugins/gang_scheduling."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler_core.api import NATIVE_POD_GROUP, Pod, load_manifest_file
from scheduler_core.executor import InlineExecutor
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.interface import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    ReservePlugin,
)
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.status import SKIP, SUCCESS, Status, error, unschedulable, wait
from scheduler_core.plugins.gang_scheduling.plugin import LOST_A_MEMBER
from scheduler_core.pod_group_attempt import GROUP_UNSCHEDULABLE, WAITING_ON_PREEMPTION
from scheduler_core.records import (
    CycleRecord,
    Outcome,
    PendingPlugin,
    PermitDecision,
    PodRef,
    Verdict,
    WaitingPodRecord,
)
from scheduler_core.scheduler import SchedulerOptions
from scheduler_core.testing.builders import make_native_pod_group, make_pod
from scheduler_core.testing.harness import Harness
from scheduler_core.testing.invariants import describe_node, describe_table
from tests.core.scheduler.native_gang import (
    gang_harness,
    group_condition,
    member,
    node,
    nodes_of,
    profile,
)

EXAMPLES = Path(__file__).parents[3] / "examples"
VERSIONS = {
    "scheduling.k8s.io/v1alpha2": "PodGroupScheduled",
    "scheduling.k8s.io/v1alpha3": "PodGroupInitiallyScheduled",
    "scheduling.k8s.io/v1beta1": "PodGroupInitiallyScheduled",
}
WAITS = f"{GROUP_UNSCHEDULABLE}, waiting for minCount pods from a gang to be scheduled"


def spy(name: str, **points: Callable[[CycleState, Pod, str], Any]) -> type[Plugin]:
    """A plugin that does at each of its points what a test tells it; the rest does nothing."""

    class Reserving(ReservePlugin):
        def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
            found: Status = points["reserve"](state, pod, node_name)
            return found

        def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
            points.get("unreserve", lambda *_: None)(state, pod, node_name)

    class Permitting(PermitPlugin):
        def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
            found: tuple[Status, float] = points["permit"](state, pod, node_name)
            return found

    class Filtering(FilterPlugin):
        def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
            found: Status = points["filter"](state, pod, node_info.name)
            return found

    class Binding(BindPlugin):
        def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
            found: Status = points["bind"](state, pod, node_name)
            return found

    kinds = {"reserve": Reserving, "permit": Permitting, "filter": Filtering, "bind": Binding}
    bases = tuple(kinds[point] for point in points if point in kinds)

    class Spy(*bases):  # type: ignore[misc]
        def __init__(self, _args: Any, _handle: Any) -> None:
            pass

    Spy.name = name
    return Spy


def last(harness: Harness, name: str) -> CycleRecord:
    return harness.cycles(name)[-1]


def place(harness: Harness, name: str) -> str:
    return harness.scheduler.queue.place_of(f"default/{name}")


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


def with_class(name: str, cpu: str = "1") -> dict[str, Any]:
    """A member of high priority."""
    raw = member(name, cpu).raw()
    raw["spec"]["priorityClassName"] = "high"
    return raw


def high() -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 1000,
    }


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


# -- for good ------------------------------------------------------------------------------------


def test_permit_runs_a_second_time_in_normal_mode() -> None:
    runs: list[tuple[str, bool]] = []

    def note(state: CycleState, pod: Pod, _node: str) -> tuple[Status, float]:
        runs.append((pod.name, state.pod_group_cycle))
        return SUCCESS, 0.0

    gang_harness(
        nodes=[node("n", "9")], pods=[member("a"), member("b")], plugins=[spy("Note", permit=note)]
    )
    assert runs == [("a", True), ("b", True), ("a", False), ("b", False)]


def test_a_wait_in_the_second_run_really_parks_the_pod() -> None:
    def ask(state: CycleState, _pod: Pod, _node: str) -> tuple[Status, float]:
        return (SUCCESS, 0.0) if state.pod_group_cycle else (wait("asks"), 60.0)

    harness = gang_harness(
        nodes=[node("n", "9")], pods=[member("a"), member("b")], plugins=[spy("Ask", permit=ask)]
    )
    assert harness.waiting_names() == ["a", "b"]
    assert [last(harness, name).outcome for name in "ab"] == [Outcome.WAITING] * 2
    assert group_condition(harness)["status"] == "True"
    for waiting in harness.scheduler.waiting_pods:
        assert waiting.pending_plugins == ("Ask",)  # the quorum is there from the start
        waiting.allow("Ask")
    harness.settle()
    assert nodes_of(harness, "a", "b") == ["n", "n"]


def test_a_permit_plugin_that_always_waits_makes_every_group_unschedulable() -> None:
    """Section 3's consequence: nobody gives Success in the group's cycle."""

    def ask(_state: CycleState, _pod: Pod, _node: str) -> tuple[Status, float]:
        return wait("asks a person"), 60.0

    harness = gang_harness(
        nodes=[node("n", "9")], pods=[member("a"), member("b")], plugins=[spy("Ask", permit=ask)]
    )
    assert nodes_of(harness, "a", "b") == ["", ""]
    assert harness.waiting_names() == []
    assert last(harness, "b").message.startswith(f"{GROUP_UNSCHEDULABLE}, asks a person")


def test_a_gang_that_loses_a_member_waiting_at_permit_is_given_up() -> None:
    def ask(state: CycleState, _pod: Pod, _node: str) -> tuple[Status, float]:
        return (SUCCESS, 0.0) if state.pod_group_cycle else (wait("asks"), 60.0)

    harness = gang_harness(
        nodes=[node("n", "9")], pods=[member("a"), member("b")], plugins=[spy("Ask", permit=ask)]
    )
    waiting = {w.pod.name: w for w in harness.scheduler.waiting_pods}
    waiting["a"].reject("Ask", "no")
    waiting["b"].allow("Ask")
    waiting["b"].ask("Later", 5.0, harness.clock.now(), "x")
    harness.settle()
    assert nodes_of(harness, "a", "b") == ["", ""]
    ends = {record.pod.name: record.message for record in harness.observer.resolved}
    assert ends == {"a": "no", "b": LOST_A_MEMBER}


def test_a_gang_of_which_permit_turns_too_many_down_is_not_bound() -> None:
    """Only the second run says no, to one member of the two that are needed."""

    def fickle(state: CycleState, pod: Pod, _node: str) -> tuple[Status, float]:
        no = pod.name == "b" and not state.pod_group_cycle
        return (unschedulable("changed its mind") if no else SUCCESS), 0.0

    harness = gang_harness(
        nodes=[node("n", "9")],
        pods=[member("a"), member("b")],
        plugins=[spy("Fickle", permit=fickle)],
    )
    assert nodes_of(harness, "a", "b") == ["", ""]
    assert "changed its mind" in harness.cycles("b")[0].message
    assert harness.cycles("a")[0].message == (
        f"0/1 nodes are available: 1 {LOST_A_MEMBER}. "
        "pod group default/g: 1 of minCount 2 pods passed Permit the second time"
    )
    assert group_condition(harness)["reason"] == "Unschedulable"


def test_a_gang_of_which_reserve_turns_too_many_down_is_not_bound() -> None:
    def fickle(state: CycleState, pod: Pod, _node: str) -> Status:
        no = pod.name == "a" and not state.pod_group_cycle
        return unschedulable("taken meanwhile") if no else SUCCESS

    harness = gang_harness(
        nodes=[node("n", "9")],
        pods=[member("a"), member("b")],
        plugins=[spy("Fickle", reserve=fickle)],
    )
    assert nodes_of(harness, "a", "b") == ["", ""]
    assert harness.scheduler.cache.pod_count == 0


def test_each_member_is_bound_on_its_own() -> None:
    """One binding fails: the others stay, and it is tried again as a group of one."""
    fails: list[str] = ["b"]

    def bind(_state: CycleState, pod: Pod, _node: str) -> Status:
        if pod.name in fails:
            fails.remove(pod.name)
            return error("connection reset")
        return SKIP

    flaky = spy("Flaky", bind=bind)
    config = profile()
    config["plugins"]["bind"] = {
        "disabled": [{"name": "*"}],
        "enabled": [{"name": "Flaky"}, {"name": "DefaultBinder"}],
    }
    harness = gang_harness(
        nodes=[node("n", "9")],
        pods=[member(name) for name in "abc"],
        min_count=3,
        plugins=[flaky],
        profile=config,
    )
    assert nodes_of(harness, "a", "b", "c") == ["n", "", "n"]
    harness.advance(3.0)
    assert harness.node_of("b") == "n"


# -- after a restart -----------------------------------------------------------------------------


def waited(name: str, uid: str, now: float) -> WaitingPodRecord:
    return WaitingPodRecord(
        cycle=1,
        pod=PodRef(uid, "default", name),
        node="n",
        profile="default-scheduler",
        priority=0,
        since=now - 60.0,
        deadline=now + 240.0,
        pending=(PendingPlugin("GangScheduling", now + 240.0, ""),),
        pod_group="default/g",
    )


def restarted(b_cpu: str) -> Harness:
    """The scheduler after a restart: a waited for its gang, b is in the queue."""
    first = Harness(
        nodes=[node("n", "9")],
        pods=[member("a"), member("b", cpu=b_cpu)],
        objects={NATIVE_POD_GROUP: [make_native_pod_group("g", 2)]},
        profile=profile(),
    )
    uid = first.pod("a")["metadata"]["uid"]
    harness = Harness(
        cluster=first.cluster,
        clock=first.clock,
        waiting=[waited("a", uid, first.clock.now())],
        profile=profile(),
    )
    harness.settle()
    return harness


def test_a_member_alone_at_permit_waits_five_minutes_at_most() -> None:
    harness = restarted(b_cpu="90")
    assert harness.waiting_names() == ["a"]
    assert harness.observer.waiting[-1].pending[0].plugin == "GangScheduling"
    harness.advance(239.0)
    assert harness.waiting_names() == ["a"]
    harness.advance(2.0)
    end = harness.observer.resolved[-1]
    assert end.message == "rejected due to timeout after waiting 5m0s at plugin GangScheduling"
    assert nodes_of(harness, "a", "b") == ["", ""]


def test_the_rest_of_the_gang_releases_members_that_wait() -> None:
    harness = restarted(b_cpu="1")
    assert nodes_of(harness, "a", "b") == ["n", "n"]
    assert harness.observer.resolved[-1].resolved_by == "GangScheduling"


# -- odds and ends -------------------------------------------------------------------------------


def test_a_pod_group_that_goes_while_its_pods_are_queued_is_an_error() -> None:
    harness = gang_harness(nodes=[node("n", "1")], pods=[member("a"), member("b")])
    harness.cluster.delete(NATIVE_POD_GROUP, "default", "g")
    harness.advance(20.0)
    assert place(harness, "a") == "gated"  # on its way back from backoff
    harness.create(NATIVE_POD_GROUP, make_native_pod_group("g", 1))
    harness.advance(20.0)
    assert harness.node_of("a") == "n"


def test_a_replay_that_does_not_retry_drops_the_whole_group() -> None:
    harness = gang_harness(
        nodes=[node("n", "1")],
        pods=[member("a"), member("b")],
        options=SchedulerOptions(retry=False, listing_interval=0.0),
        executor=InlineExecutor(),
    )
    assert {last(harness, name).outcome for name in "ab"} == {Outcome.UNSCHEDULABLE}
    assert len(harness.scheduler.queue) == 0
    tried = len(harness.observer.cycles)
    harness.advance(60.0)
    assert len(harness.observer.cycles) == tried


def test_full_passes_decide_as_reused_work_does() -> None:
    """Members are alike, so all but the first are decided by what is known of the first."""
    pods = [member(f"m{i}") for i in range(6)]
    nodes = [node(f"n{i}", "2") for i in range(4)]
    found = [
        gang_harness(
            nodes=nodes,
            pods=pods,
            min_count=6,
            options=SchedulerOptions(reuse=reuse, listing_interval=0.0),
        )
        for reuse in (True, False)
    ]
    names = [f"m{i}" for i in range(6)]
    assert nodes_of(found[0], *names) == nodes_of(found[1], *names)
    assert "" not in nodes_of(found[0], *names)


# -- with a person's word ------------------------------------------------------------------------


def asking_harness() -> Harness:
    """The gang and the configuration of the examples; the gang asks for approval."""
    config = yaml.safe_load((EXAMPLES / "native-gangs.yaml").read_text(encoding="utf-8"))
    harness = Harness(nodes=[node("n", "4")], profile=config["profiles"][0])
    manifests = load_manifest_file(EXAMPLES / "manifests" / "native-gang.yaml")
    harness.cluster.create_all([dict(manifest.raw) for manifest in manifests])
    harness.settle()
    return harness


def decide(harness: Harness, **verdicts: Verdict) -> None:
    """A person decides on members by the last part of their names."""
    uids = {w.pod.name: w.pod.uid for w in harness.scheduler.waiting_pods}
    harness.decide(
        *(
            PermitDecision(i, uids[f"example-training-{name[1:]}"], verdict, "alice", "later")
            for i, (name, verdict) in enumerate(verdicts.items(), 1)
        )
    )


NAMES = ("example-training-0", "example-training-1")


def test_manual_approval_does_not_block_the_group_and_asks_afterwards() -> None:
    harness = asking_harness()
    assert harness.waiting_names() == list(NAMES)
    for record in harness.observer.waiting:
        assert record.pod_group == "default/example-training-workers"
        assert record.group_min_member == 2
        assert [pending.plugin for pending in record.pending] == ["ManualApproval"]
        assert record.requested_by == "you@example.com"
    decide(harness, m0=Verdict.APPROVE)
    assert nodes_of(harness, *NAMES) == ["", ""]
    decide(harness, m1=Verdict.APPROVE)
    assert nodes_of(harness, *NAMES) == ["n", "n"]


def test_one_denial_ends_the_wait_of_a_native_gang() -> None:
    harness = asking_harness()
    decide(harness, m0=Verdict.APPROVE, m1=Verdict.DENY)
    assert nodes_of(harness, *NAMES) == ["", ""]
    assert harness.waiting_names() == []
    harness.advance(60.0)
    assert harness.waiting_names() == []  # nobody is asked again at once
