"""Who was turned down does not ask again for five minutes, also where the scheduler restarts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from scheduler_core.api import NATIVE_POD_GROUP
from scheduler_core.records import PermitDecision, Rest, Verdict, WaitOutcome
from scheduler_core.testing.builders import make_pod
from scheduler_core.testing.harness import Harness
from tests.core.scheduler.native_gang import profile as native_profile
from tests.core.scheduler.test_approvals import (
    ASKS,
    harness,
    last,
    member,
    native_gang,
    pod,
    profile,
    say,
)


def rests(h: Harness) -> list[Rest]:
    """What a restart finds: the latest of each."""
    found = {(r.rest.kind, r.rest.key): r.rest for r in h.observer.resolved if r.rest is not None}
    return list(found.values())


def restarted(h: Harness, settings: Any = None) -> Harness:
    h.scheduler.stop()
    again = Harness(
        cluster=h.cluster, clock=h.clock, profile=settings or profile(), resting=rests(h)
    )
    again.settle()
    return again


def until_it_waits(h: Harness, earliest: float) -> float:
    """When somebody is asked again; every second is looked at around ``earliest``."""
    while not h.waiting_names():
        now = h.clock.now()
        assert now < earliest + 60.0, "nobody is asked again"
        h.advance(min(20.0, earliest - 3.0 - now) if now < earliest - 3.0 else 1.0)
    return h.clock.now()


def denied_gang() -> tuple[Harness, float]:
    h = harness(member("a"), member("b"), gang=2)
    say(h, Verdict.DENY, name="b")
    return h, h.clock.now()


def denied_native_gang() -> tuple[Harness, float]:
    h = native_gang("ab")
    say(h, Verdict.DENY, name="b")
    return h, h.clock.now()


def denied_pod() -> tuple[Harness, float]:
    h = harness(pod())
    say(h, Verdict.DENY)
    return h, h.clock.now()


def gang_out_of_time() -> tuple[Harness, float]:
    h = harness(member("a"), member("b"), gang=2, timeoutSeconds=60)
    h.advance(60.0)
    return h, h.clock.now()


@pytest.mark.parametrize(
    "turned_down",
    [denied_gang, denied_native_gang, denied_pod, gang_out_of_time],
    ids=lambda story: story.__name__,
)
@pytest.mark.parametrize("restarts", [1, 3])
def test_a_rest_ends_when_it_would_have_ended(turned_down: Any, restarts: int) -> None:
    h, at = turned_down()
    native = turned_down is denied_native_gang
    kept = rests(h)
    for _ in range(restarts):
        h.advance(50.0)
        before = h.observer
        h = restarted(h, native_profile("ManualApproval") if native else profile())
        h.observer.resolved[:0] = before.resolved
        assert rests(h) == kept
        assert h.waiting_names() == []
    assert until_it_waits(h, at + 300.0) == at + 300.0


def test_a_native_gang_is_turned_down_as_one() -> None:
    """Not each member in its turn, which woke the others at once, again and again: it backs off."""
    h, _ = denied_native_gang()
    again = restarted(h, native_profile("ManualApproval"))
    for _ in range(10):
        again.advance(10.0)
    tried = Counter((cycle.pod.name, cycle.started_at) for cycle in again.observer.cycles)
    assert set(tried.values()) == {1}
    assert "denied by alice" in again.condition("a")["message"]


def test_it_says_why_it_does_not_ask() -> None:
    h, _ = denied_gang()
    again = restarted(h)
    assert again.condition("a")["message"].endswith("denied by alice.")


@pytest.mark.parametrize("when", ["while no scheduler ran", "afterwards"])
@pytest.mark.parametrize("what", ["PodGroup", "labels", "another member", "minMember"])
def test_a_change_ends_it(when: str, what: str) -> None:
    h, _ = denied_gang()
    label = {"metadata": {"labels": {"try": "again"}}}

    def change() -> None:
        if what == "PodGroup":
            h.cluster.patch("PodGroup", "default", "g", label)
        elif what == "minMember":
            h.cluster.patch("PodGroup", "default", "g", {"spec": {"minMember": 1}})
        elif what == "labels":
            h.cluster.patch("Pod", "default", "a", label)
        else:
            h.create("Pod", member("c"))

    h.scheduler.stop()
    if when == "while no scheduler ran":
        change()
    again = restarted(h)
    if when == "afterwards":
        assert again.waiting_names() == []
        change()
        again.settle()
    again.advance(30.0)
    assert {"a", "b"} <= set(again.waiting_names())


def test_a_status_of_the_pod_group_does_not() -> None:
    h, _ = denied_gang()
    h.scheduler.stop()
    h.cluster.patch(
        "PodGroup", "default", "g", {"status": {"phase": "Scheduling"}}, subresource="status"
    )
    again = restarted(h)
    again.advance(30.0)
    assert again.waiting_names() == []


def test_another_pod_of_the_name_asks() -> None:
    h, _ = denied_pod()
    h.cluster.delete("Pod", "default", "p", grace_period_seconds=0)
    h.create("Pod", pod())
    assert restarted(h).waiting_names() == ["p"]


def test_a_gang_made_anew_asks() -> None:
    h, _ = denied_native_gang()
    h.scheduler.stop()
    spec = h.cluster.get(NATIVE_POD_GROUP, "default", "g")
    h.cluster.delete(NATIVE_POD_GROUP, "default", "g")
    fresh = {key: spec[key] for key in ("apiVersion", "kind", "spec")}
    fresh["metadata"] = {"name": "g", "namespace": "default"}
    h.cluster.create(NATIVE_POD_GROUP, fresh)
    again = restarted(h, native_profile("ManualApproval"))
    assert again.waiting_names() == ["a", "b"]


def test_nobody_rests_where_nobody_has_to_approve_any_more() -> None:
    h = harness(make_pod("p").req(cpu="1"), selector={})
    say(h, Verdict.DENY)
    without = profile()
    del without["plugins"]["permit"]
    again = restarted(h, without)
    assert again.node_of("p") == "n0"


def test_a_denial_that_is_found_after_a_restart_gives_a_rest_too() -> None:
    """The worker died before it acted on the word: the next one does, and a third keeps to it."""
    h = harness(member("a"), member("b"), gang=2)
    waits = {w.pod.uid: w for w in h.observer.waiting}.values()
    uid = h.pod("b")["metadata"]["uid"]
    h.scheduler.stop()
    second = Harness(cluster=h.cluster, clock=h.clock, profile=profile(), waiting=waits)
    second.decisions.waiting.append(PermitDecision(1, uid, Verdict.DENY, "alice", at=h.clock.now()))
    second.settle()
    assert last(second, "a").outcome is WaitOutcome.REJECTED
    (rest,) = rests(second)
    assert (rest.key, rest.text, rest.until) == (
        "default/g",
        "denied by alice",
        h.clock.now() + 300,
    )
    third = restarted(second)
    assert third.waiting_names() == []
    assert until_it_waits(third, rest.until) == rest.until


def test_two_gangs_of_one_name_rest_apart() -> None:
    """A native gang is known by its kind, too."""
    h, _ = denied_gang()
    (rest,) = rests(h)
    h.scheduler.stop()
    again = Harness(
        cluster=h.cluster,
        clock=h.clock,
        profile=profile(),
        resting=[replace(rest, kind=NATIVE_POD_GROUP)],
    )
    again.settle()
    assert sorted(again.waiting_names()) == ["a", "b"]


def test_pods_of_which_nothing_is_known_are_no_obstacle() -> None:
    h = Harness(
        nodes=[],
        profile=profile(),
        resting=[Rest("Pod", "default/gone", "denied", 1_000_000.0 + 5, "", {"u": "d"})],
    )
    h.advance(10.0)
    h.create("Pod", make_pod("gone").label(ASKS))
    h.settle()
    assert h.waiting_names() == []
