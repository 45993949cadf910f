"""Whatever happens to native gangs, in whatever order: all or none, and no node holds too much."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from scheduler_core.api import NATIVE_POD_GROUP
from scheduler_core.ports import NotFound
from scheduler_core.testing.builders import make_native_pod_group, make_pod
from scheduler_core.testing.harness import Harness
from scheduler_core.testing.invariants import describe_node, describe_table
from tests.core.scheduler.native_gang import gang_harness, member, node, profile

#: group -> minCount; "basic" has the other policy
MIN_COUNTS = {"small": 2, "large": 4}
GROUPS = (*MIN_COUNTS, "basic")
ROOM = {"n1": 3, "n2": 2, "n3": 5}


class NativeGangs(RuleBasedStateMachine):
    """Pods of two gangs, of a basic group and of none, and nodes, come and go; bindings succeed."""

    @initialize()
    def begin(self) -> None:
        self.harness = Harness(
            nodes=[node("n1", "3")],
            objects={
                NATIVE_POD_GROUP: [
                    *(make_native_pod_group(name, count) for name, count in MIN_COUNTS.items()),
                    make_native_pod_group("basic").basic(),
                ]
            },
            profile=profile(),
        )
        self.made = 0
        self.ever_bound: dict[str, set[str]] = {group: set() for group in GROUPS}

    @rule(group=st.sampled_from(GROUPS), cpu=st.integers(1, 3))
    def create_member(self, group: str, cpu: int) -> None:
        self.made += 1
        self.harness.create("Pod", member(f"{group}-{self.made}", str(cpu), group))
        self.harness.settle()

    @rule(cpu=st.integers(1, 3))
    def create_other(self, cpu: int) -> None:
        self.made += 1
        self.harness.create("Pod", make_pod(f"other-{self.made}").req(cpu=str(cpu)))
        self.harness.settle()

    @rule(name=st.sampled_from(sorted(ROOM)))
    def add_node(self, name: str) -> None:
        try:
            self.harness.cluster.get("Node", "", name)
        except NotFound:
            self.harness.create("Node", node(name, str(ROOM[name])))
            self.harness.settle()

    @rule(index=st.integers(0, 30))
    def delete_pending(self, index: int) -> None:
        pending = [p for p in self.pods() if not p["spec"].get("nodeName")]
        if pending:
            name = pending[index % len(pending)]["metadata"]["name"]
            self.harness.cluster.delete("Pod", "default", name)
            self.harness.settle()

    @rule(seconds=st.sampled_from([1.0, 4.0, 11.0]))
    def pass_time(self, seconds: float) -> None:
        self.harness.advance(seconds)

    def pods(self) -> list[dict[str, Any]]:
        return list(self.harness.cluster.list("Pod").items)

    @invariant()
    def all_or_none(self) -> None:
        if not hasattr(self, "harness"):
            return
        bound = Counter(
            p["spec"]["schedulingGroup"]["podGroupName"]
            for p in self.pods()
            if p["spec"].get("nodeName") and p["spec"].get("schedulingGroup")
        )
        for group, least in MIN_COUNTS.items():
            assert bound[group] == 0 or bound[group] >= least, (group, bound[group])

    @invariant()
    def nothing_is_held_without_being_bound(self) -> None:
        if not hasattr(self, "harness"):
            return
        scheduler = self.harness.scheduler
        assert scheduler.cache.assumed_count == len(scheduler.waiting_pods) == 0
        assert list(scheduler.queue.in_flight()) == []

    @invariant()
    def no_node_holds_too_much(self) -> None:
        if not hasattr(self, "harness"):
            return
        used: Counter[str] = Counter()
        for pod in self.pods():
            cpu = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
            used[pod["spec"].get("nodeName", "")] += int(cpu)
        for name, room in ROOM.items():
            assert used[name] <= room, (name, used[name])


NativeGangs.TestCase.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestNativeGangs = NativeGangs.TestCase


@settings(max_examples=40, deadline=None)
@given(
    rooms=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    asks=st.lists(st.integers(1, 5), min_size=2, max_size=6),
    running=st.lists(st.integers(1, 2), max_size=2),
)
def test_a_group_is_bound_or_leaves_no_trace(
    rooms: list[int], asks: list[int], running: list[int]
) -> None:
    """A gang that needs all its members. If its first cycle fails then cache and snapshot are what
    they were, and every member is back in the queue; else every member is bound."""
    harness = gang_harness(
        nodes=[node(f"n{i}", str(room)) for i, room in enumerate(rooms)],
        pods=[make_pod(f"r{i}").req(cpu=str(cpu)) for i, cpu in enumerate(running)],
        min_count=len(asks),
    )
    scheduler = harness.scheduler
    before = {name: describe_node(info) for name, info in scheduler.cache.node_infos()}
    table = describe_table(scheduler.snapshot.nodes)
    waiting = {info.pod.name for info in scheduler.queue}
    names = [f"m{i}" for i in range(len(asks))]
    harness.create("Pod", *(member(n, str(cpu)) for n, cpu in zip(names, asks, strict=True)))
    harness.settle()
    if all(harness.node_of(name) for name in names):
        return
    assert [harness.node_of(name) for name in names] == [""] * len(names)
    assert {name: describe_node(i) for name, i in scheduler.cache.node_infos()} == before
    assert describe_table(scheduler.snapshot.nodes) == table
    assert {info.pod.name for info in scheduler.queue} == {*names, *waiting}
    assert len(scheduler.queue.nominator) == 0
