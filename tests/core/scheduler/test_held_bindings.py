"""A member whose binding fails while others of its gang are bound keeps its node till it is too."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.interface import PreBindPlugin
from scheduler_core.framework.status import SUCCESS, Status, error
from scheduler_core.ports import ApiError
from scheduler_core.records import Verdict, WaitOutcome
from scheduler_core.testing.builders import make_node, make_pod, make_pod_group
from scheduler_core.testing.harness import Harness
from tests.core.scheduler.native_gang import gang_harness
from tests.core.scheduler.native_gang import member as native_member
from tests.core.scheduler.native_gang import profile as native_profile
from tests.core.scheduler.test_approvals import ASKS, bound, harness, last, profile, say

AWAY = ApiError(503, "ServiceUnavailable", "the store is away")
REFUSED = ApiError(403, "Forbidden", "an admission webhook says no")
FAILED = 'running Bind plugin "DefaultBinder": the store is away'


def half_a_node(name: str, cpu: str = "4") -> Any:
    return make_pod(name).req(cpu=cpu).label(ASKS).pod_group("g")


class Api:
    """What the cluster says to bindings: ``errors`` has an answer for each pod, till it is taken
    away; ``lose``: it binds, and the answer is lost."""

    def __init__(self, h: Harness) -> None:
        self.errors: dict[str, ApiError] = {}
        self.lose: set[str] = set()
        self.asked: list[tuple[str, float]] = []
        self._bind, self._clock = h.cluster.bind, h.clock
        h.cluster.bind = self  # type: ignore[method-assign, assignment]

    def __call__(self, namespace: str, name: str, uid: str, node: str) -> None:
        self.asked.append((name, self._clock.now()))
        if name in self.errors:
            raise self.errors[name]
        self._bind(namespace, name, uid, node)
        if name in self.lose:
            raise AWAY

    def times(self, name: str) -> list[float]:
        """Seconds between the tries."""
        at = [when for asked, when in self.asked if asked == name]
        return [round(b - a, 3) for a, b in pairwise(at)]


def gang_of_two(**errors: ApiError) -> tuple[Harness, Api]:
    """Members a and b fill a node, and are approved; a third pod waits for the room of either."""
    h = harness(half_a_node("a"), half_a_node("b"), gang=2)
    api = Api(h)
    api.errors = dict(errors)
    h.create("Pod", make_pod("other").req(cpu="4"))
    h.settle()
    for name in "ab":
        say(h, Verdict.APPROVE, name=name)
    return h, api


def tries(h: Harness, seconds: float, step: float = 0.5) -> None:
    """Time passes in steps: a retry is due at its moment."""
    for _ in range(round(seconds / step)):
        h.advance(step)


@pytest.mark.parametrize("name", ["a", "b"])
def test_nobody_gets_its_room_until_it_is_bound(name: str) -> None:
    h, api = gang_of_two(**{name: AWAY})
    assert len(bound(h)) == 1
    tries(h, 30.0)
    assert len(bound(h)) == 1
    assert h.node_of("other") == ""
    del api.errors[name]
    tries(h, 11.0)
    assert bound(h) == ["a", "b"]


def test_it_is_tried_with_the_backoff_of_the_queue() -> None:
    h, api = gang_of_two(b=AWAY)
    tries(h, 40.0)
    assert api.times("b") == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    assert h.scheduler.idle_seconds() <= 0.5


def test_it_says_why_it_is_not_bound_yet() -> None:
    h, api = gang_of_two(b=AWAY)
    why = (
        f"{FAILED}; its binding is tried again on n0, which it keeps: others of its gang"
        " default/g are bound, or about to be"
    )
    assert (last(h, "b").outcome, last(h, "b").message) == (WaitOutcome.ALLOWED, why)
    assert last(h, "b").let_go
    condition = h.condition("b")
    assert (condition["reason"], condition["message"]) == ("SchedulerError", why)
    assert [e["note"] for e in h.events("FailedScheduling") if e["regarding"]["name"] == "b"] == [
        why
    ]
    assert [b.pod.name for b in h.observer.bindings] == ["a"]
    api.errors.clear()
    tries(h, 2.0)
    assert last(h, "b").message == f"bound at last; its binding had failed: {FAILED}"
    assert [(b.pod.name, b.bound) for b in h.observer.bindings] == [("a", True), ("b", True)]


def test_only_the_answer_was_lost() -> None:
    h = harness(half_a_node("a"), half_a_node("b"), gang=2)
    Api(h).lose = {"b"}
    for name in "ab":
        say(h, Verdict.APPROVE, name=name)
    tries(h, 3.0)
    assert [(b.pod.name, b.bound) for b in h.observer.bindings] == [("a", True), ("b", True)]
    assert [e["regarding"]["name"] for e in h.events("Scheduled")] == ["a", "b"]


def test_a_gang_of_which_nobody_is_bound_gives_its_room_back() -> None:
    """All or none: none."""
    h, api = gang_of_two(a=AWAY, b=AWAY)
    tries(h, 20.0)
    assert bound(h) == ["other"]
    broken = [r for r in h.observer.resolved if r.outcome is WaitOutcome.BROKEN]
    assert "its binding failed, and the pod no longer fits on n0" in broken[0].message
    api.errors.clear()
    h.cluster.delete("Pod", "default", "other", grace_period_seconds=0)
    tries(h, 20.0)
    assert sorted(h.waiting_names()) == ["a", "b"]


def test_a_pod_without_a_gang_gives_its_room_back_at_once() -> None:
    h = harness(make_pod("p").req(cpu="8").label(ASKS), make_pod("other").req(cpu="8"))
    Api(h).errors = {"p": AWAY}
    say(h, Verdict.APPROVE)
    assert bound(h) == ["other"]


def test_a_gang_that_nobody_approves_is_held_too() -> None:
    h = Harness(
        nodes=[make_node("n0").capacity(cpu="8", memory="8Gi", pods="20")],
        objects={"PodGroup": [make_pod_group("g").min_member(2)]},
        pods=[make_pod(name).req(cpu="4").pod_group("g") for name in "ab"],
        profile=profile(),
    )
    api = Api(h)
    api.errors = {"a": AWAY}
    h.create("Pod", make_pod("other").req(cpu="4"))
    h.settle()
    tries(h, 5.0)
    assert bound(h) == ["b"]
    api.errors.clear()
    tries(h, 9.0)
    assert bound(h) == ["a", "b"]


def test_a_native_gang_is_held_too() -> None:
    h = gang_harness(
        nodes=[make_node("n").capacity(cpu="8", memory="8Gi", pods="20")],
        pods=[native_member(name, cpu="4").label(ASKS) for name in "ab"],
        profile=native_profile("ManualApproval"),
        min_count=2,
    )
    api = Api(h)
    api.errors = {"b": AWAY}
    h.create("Pod", make_pod("other").req(cpu="4"))
    h.settle()
    for name in "ab":
        say(h, Verdict.APPROVE, name=name)
    tries(h, 5.0)
    assert bound(h) == ["a"]
    api.errors.clear()
    tries(h, 9.0)
    assert bound(h) == ["a", "b"]


def test_a_native_gang_whose_bindings_all_failed_is_let_go_as_one_again() -> None:
    h = gang_harness(
        nodes=[make_node("n").capacity(cpu="8", memory="8Gi", pods="20")],
        pods=[native_member(name).label(ASKS) for name in "abc"],
        profile=native_profile("ManualApproval"),
        min_count=2,
    )
    api = Api(h)
    api.errors = dict.fromkeys("abc", AWAY)
    for name in "abc":
        say(h, Verdict.APPROVE, name=name)
    tries(h, 3.0)
    assert bound(h) == []
    api.errors.clear()
    tries(h, 12.0)
    assert (bound(h), h.waiting_names()) == (["a", "b", "c"], [])


@pytest.mark.parametrize("native", [False, True], ids=["coscheduling", "native"])
def test_what_was_let_go_with_its_gang_needs_no_quorum_after_a_restart(native: bool) -> None:
    """A member was deleted after the gang was let go, and another one is bound."""
    if native:
        h = gang_harness(
            nodes=[make_node("n").capacity(cpu="8", memory="8Gi", pods="20")],
            pods=[native_member(name).label(ASKS) for name in "abc"],
            profile=native_profile("ManualApproval"),
            min_count=3,
        )
    else:
        h = harness(*(half_a_node(name, cpu="1") for name in "abc"), gang=3)
    waits = [replace(w, let_go=True, pending=()) for w in h.observer.waiting]
    h.scheduler.stop()
    h.cluster.bind("default", "a", h.pod("a")["metadata"]["uid"], waits[0].node)
    h.cluster.delete("Pod", "default", "c", grace_period_seconds=0)
    again = Harness(
        cluster=h.cluster,
        clock=h.clock,
        profile=native_profile("ManualApproval") if native else profile(),
        waiting={w.pod.uid: w for w in waits}.values(),
    )
    again.settle()
    assert bound(again) == ["a", "b"]


def test_a_quorum_that_was_not_reached_is_still_asked_for_after_a_restart() -> None:
    """Somebody else has bound a member: that is no quorum."""
    h = harness(half_a_node("a", cpu="1"), half_a_node("b", cpu="1"), gang=3)
    h.create("Pod", half_a_node("c", cpu="20"))
    h.settle()
    waits = {w.pod.uid: w for w in h.observer.waiting}
    for name in "ab":
        say(h, Verdict.APPROVE, name=name)
    waits |= {w.pod.uid: w for w in h.observer.waiting}
    h.scheduler.stop()
    h.cluster.bind("default", "a", h.pod("a")["metadata"]["uid"], "n0")
    again = Harness(cluster=h.cluster, clock=h.clock, profile=profile(), waiting=waits.values())
    again.settle()
    assert (bound(again), again.waiting_names()) == (["a"], ["b"])


class TestEnds:
    """Each defined end of the time for which a node is kept."""

    def test_its_pod_is_deleted(self) -> None:
        h, _ = gang_of_two(b=AWAY)
        h.cluster.delete("Pod", "default", "b", grace_period_seconds=0)
        h.settle()
        assert bound(h) == ["a", "other"]
        assert last(h, "b").outcome is WaitOutcome.REMOVED
        assert last(h, "b").message == "the pod was deleted before it was bound"

    def test_its_node_is_deleted(self) -> None:
        h = harness(*(half_a_node(n, cpu="8") for n in "abc"), gang=3, nodes=3)
        api = Api(h)
        api.errors = {"b": AWAY, "c": AWAY}
        for name in "abc":
            say(h, Verdict.APPROVE, name=name)
        held = {w.pod.name: w.node for w in h.observer.waiting}
        h.cluster.delete("Node", "", held["b"])
        h.settle()
        text = f"node {held['b']} was deleted before default/b was bound"
        assert [(last(h, n).outcome, last(h, n).message) for n in "bc"] == [
            (WaitOutcome.BROKEN, text)
        ] * 2
        api.errors.clear()
        tries(h, 15.0)
        assert bound(h) == ["a"]
        assert len(h.waiting_names()) == 1  # on the node that is left, asked anew

    def test_another_binds_it_elsewhere(self) -> None:
        h = harness(half_a_node("a"), half_a_node("b"), gang=2, nodes=2)
        api = Api(h)
        api.errors = {"b": AWAY}
        for name in "ab":
            say(h, Verdict.APPROVE, name=name)
        kept = next(w.node for w in h.observer.waiting if w.pod.name == "b")
        other = {"n0": "n1", "n1": "n0"}[kept]
        api._bind("default", "b", h.pod("b")["metadata"]["uid"], other)
        h.settle()
        assert last(h, "b").outcome is WaitOutcome.REMOVED
        assert last(h, "b").message == f"bound by another to {other}"
        h.create("Pod", make_pod("filler").req(cpu="8"))
        h.settle()
        assert h.node_of("filler") == (kept if h.node_of("a") == other else "")

    def test_another_binds_it_where_it_was_to_go(self) -> None:
        h, api = gang_of_two(b=AWAY)
        api._bind("default", "b", h.pod("b")["metadata"]["uid"], "n0")
        h.settle()
        assert [(b.pod.name, b.bound) for b in h.observer.bindings] == [("a", True), ("b", True)]

    def test_nobody_of_its_gang_runs_any_more(self) -> None:
        h, _ = gang_of_two(b=AWAY)
        h.cluster.delete("Pod", "default", "a", grace_period_seconds=0)
        h.create("Pod", make_pod("large").req(cpu="8"))
        tries(h, 5.0)
        assert h.node_of("other") == "n0"
        assert last(h, "b").outcome is not WaitOutcome.ALLOWED

    def test_its_pod_group_is_deleted(self) -> None:
        h, _ = gang_of_two(b=AWAY)
        h.cluster.delete("PodGroup", "default", "g")
        tries(h, 5.0)
        assert h.node_of("other") == "n0"
        text = "PodGroup default/g was deleted before default/b was bound"
        assert (last(h, "b").outcome, last(h, "b").message) == (WaitOutcome.REJECTED, text)

    def test_its_pod_group_is_deleted_when_it_has_given_its_node_back(self) -> None:
        """Another PodGroup of the name is another gang; nobody approved that one."""
        h, api = gang_of_two(a=AWAY, b=AWAY)
        assert {last(h, name).outcome for name in "ab"} == {WaitOutcome.ALLOWED}
        h.cluster.delete("PodGroup", "default", "g")
        h.settle()
        ends = {name: (last(h, name).outcome, last(h, name).message) for name in "ab"}
        assert ends == {
            name: (
                WaitOutcome.REJECTED,
                f"PodGroup default/g was deleted before default/{name} was bound",
            )
            for name in "ab"
        }
        api.errors.clear()
        h.cluster.delete("Pod", "default", "other", grace_period_seconds=0)
        h.create("PodGroup", make_pod_group("g").min_member(2))
        tries(h, 60.0)
        assert (bound(h), sorted(h.waiting_names())) == ([], ["a", "b"])

    def test_the_api_says_no_for_fifteen_minutes(self) -> None:
        """Others need not wait for ever for a room that it cannot have."""
        h, api = gang_of_two(b=REFUSED)
        tries(h, 890.0, step=5.0)
        assert bound(h) == ["a"]
        tries(h, 30.0, step=5.0)
        assert bound(h) == ["a", "other"]
        assert last(h, "b").outcome is WaitOutcome.BROKEN
        why = "its binding failed, and the pod no longer fits on n0: 0/1 nodes are available"
        assert last(h, "b").message.startswith(why)
        api.errors.clear()
        h.cluster.delete("Pod", "default", "other", grace_period_seconds=0)
        tries(h, 30.0)
        assert (bound(h), h.waiting_names()) == (["a"], ["b"])
        say(h, Verdict.APPROVE, name="b")
        assert bound(h) == ["a", "b"]

    def test_not_where_the_api_does_not_answer(self) -> None:
        """Nobody else can be bound then either."""
        h, api = gang_of_two(b=AWAY)
        tries(h, 3_600.0, step=5.0)
        api.errors = {"b": ApiError(429, "TooManyRequests", "later")}
        tries(h, 1_200.0, step=5.0)
        assert bound(h) == ["a"]
        api.errors.clear()
        tries(h, 10.0, step=5.0)
        assert bound(h) == ["a", "b"]

    def test_the_scheduler_stops(self) -> None:
        """The next one takes the pod up, on its node, before others are tried."""
        h, api = gang_of_two(b=AWAY)
        h.scheduler.stop()
        assert [(b.pod.name, b.bound) for b in h.observer.bindings] == [("a", True), ("b", False)]
        assert last(h, "b").let_go
        api.errors.clear()
        again = Harness(cluster=h.cluster, clock=h.clock, profile=profile(), waiting=[last(h, "b")])
        again.settle()
        assert bound(again) == ["a", "b"]


class FailsOnce(PreBindPlugin):
    """As a volume that cannot be made on the pod's node."""

    name = "FailsOnce"
    left = 1

    def __init__(self, args: Any, handle: Any) -> None: ...

    def pre_bind_pre_flight(self, state: CycleState, pod: Any, node_name: str) -> Status:
        return SUCCESS

    def pre_bind(self, state: CycleState, pod: Any, node_name: str) -> Status:
        if pod.name == "b" and FailsOnce.left:
            FailsOnce.left -= 1
            return error("provisioning failed")
        return SUCCESS


def test_what_fails_before_bind_gives_the_node_back() -> None:
    """The node will not do: another one is looked for."""
    FailsOnce.left = 1
    settings = profile()
    settings["plugins"]["preBind"] = {"enabled": [{"name": "FailsOnce"}]}
    h = Harness(
        nodes=[make_node("n0").capacity(cpu="8", memory="8Gi", pods="20")],
        objects={"PodGroup": [make_pod_group("g").min_member(2)]},
        pods=[make_pod(name).req(cpu="4").pod_group("g") for name in "ab"],
        profile=settings,
        plugins=[FailsOnce],
    )
    h.settle()
    assert {b.pod.name: b.bound for b in h.observer.bindings} == {"a": True, "b": False}
    tries(h, 5.0)
    assert bound(h) == ["a", "b"]
