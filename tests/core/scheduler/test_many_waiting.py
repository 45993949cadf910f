"""What a turn costs does not depend on how many pods wait."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from scheduler_core.records import PermitDecision, Verdict
from scheduler_core.testing.builders import make_node, make_pod, make_pod_group
from scheduler_core.testing.harness import Harness

#: Who has to wait for a person in these tests.
ASKS = {"asks": "yes"}
PROFILE = {
    "plugins": {"multiPoint": {"enabled": [{"name": "ManualApproval"}]}},
    "pluginConfig": [
        {"name": "ManualApproval", "args": {"selector": {"matchLabels": ASKS}}},
    ],
}


def many(count: int, gang: str = "") -> Harness:
    pods = [make_pod(f"p{n}").req(cpu="1m").label(ASKS) for n in range(count)]
    objects = {"PodGroup": [make_pod_group(gang)]} if gang else {}
    h = Harness(
        nodes=[make_node("n").capacity(cpu="64", memory="64Gi", pods="5000")],
        pods=[pod.pod_group(gang) if gang else pod for pod in pods],
        objects=objects,
        profile=PROFILE,
    )
    h.settle()
    assert len(h.waiting_names()) == count
    return h


def calls(h: Harness, verdict: Verdict, user: str = "alice") -> int:
    """Python calls of the turn that applies one word to the first pod."""
    uid = h.pod("p0")["metadata"]["uid"]
    h.decisions.waiting.append(PermitDecision(1, uid, verdict, user))
    counted = turn_calls(h)
    assert h.observer.decisions
    return counted


def turn_calls(h: Harness) -> int:
    """Python calls of one turn."""
    counted = 0

    def count(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal counted
        counted += event == "call"

    sys.setprofile(count)
    try:
        h.scheduler.run_once()
    finally:
        sys.setprofile(None)
    return counted


def test_a_turn_without_news() -> None:
    few, lots = many(20), many(400)
    few.scheduler.run_once()
    lots.scheduler.run_once()
    assert turn_calls(lots) == turn_calls(few)


@pytest.mark.parametrize("gang", ["", "g"], ids=["lone pods wait", "a gang waits"])
def test_the_turns_of_a_pod_that_nobody_is_asked_about(gang: str) -> None:
    """Scheduled, bound, and seen as bound: no more calls however many wait."""
    turns = []
    for h in (many(20, gang), many(400, gang)):
        h.scheduler.run_once()
        h.create("Pod", make_pod("other").req(cpu="1m"))
        turns.append([turn_calls(h) for _ in range(4)])
        assert h.node_of("other") == "n"
    for few, lots in zip(*turns, strict=True):
        assert lots <= few + 20, turns


@pytest.mark.parametrize("verdict", [Verdict.APPROVE, Verdict.DENY])
def test_a_word_on_a_lone_pod(verdict: Verdict) -> None:
    few, lots = many(20), many(400)
    assert calls(lots, verdict) <= calls(few, verdict) + 20


def test_an_approval_of_one_member_of_a_gang() -> None:
    few, lots = many(20, "g"), many(400, "g")
    assert calls(lots, Verdict.APPROVE) <= calls(few, Verdict.APPROVE) + 20


def test_an_approval_taken_back() -> None:
    few, lots = many(20, "g"), many(400, "g")
    for h in (few, lots):
        calls(h, Verdict.APPROVE)
    assert calls(lots, Verdict.REVOKE) <= calls(few, Verdict.REVOKE) + 20
