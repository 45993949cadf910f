"""Two gangs that each hold half of what the other needs: one is released, never one too many."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.records import WaitOutcome
from scheduler_core.testing.builders import make_node, make_pod, make_pod_group
from scheduler_core.testing.harness import Harness

PROFILE = {
    "plugins": {
        "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
        "multiPoint": {
            "enabled": [{"name": "Coscheduling"}],
            "disabled": [{"name": "DefaultPreemption"}],
        },
    },
    # A member that fits nowhere leaves its siblings waiting, and the wait is long.
    "pluginConfig": [
        {
            "name": "Coscheduling",
            "args": {"podGroupRejectPercentage": 100, "permitWaitingTimeSeconds": 600},
        }
    ],
}


HIGH = {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 5}


def member(gang: str, number: int, high: bool, **selector: str) -> Any:
    raw = make_pod(f"{gang}{number}").req(cpu="1").pod_group(gang).raw()
    raw["spec"]["nodeSelector"] = selector
    if high:
        raw["spec"]["priorityClassName"] = HIGH["metadata"]["name"]
    return raw


def halves(
    *,
    high: str = "",
    created: tuple[float, float] = (1.0, 2.0),
    cpu: tuple[int, int] = (2, 2),
) -> Harness:
    """Gangs a and b of three. Two members of a run on n1 alone, two of b on n2 alone; the third
    ones need a node with the label slot=a, or slot=b, which no node has yet."""
    h = Harness(
        nodes=[
            make_node(name).capacity(cpu=str(size), memory="64Gi", pods="100").label(name=name)
            for name, size in (("n1", cpu[0]), ("n2", cpu[1]), ("n3", 1))
        ],
        objects={"PriorityClass": [HIGH]},
        profile=PROFILE,
    )
    began = h.clock.now()
    for when, name in sorted(zip(created, "ab", strict=True)):
        h.clock.advance(max(0.0, began + when - h.clock.now()))
        h.create("PodGroup", make_pod_group(name).min_member(3))
    for name, node in (("a", "n1"), ("b", "n2")):
        for number in range(2):
            h.create("Pod", member(name, number, name == high, name=node))
        h.create("Pod", member(name, 2, name == high, slot=name))
    h.settle()
    assert sorted(h.waiting_names()) == ["a0", "a1", "b0", "b1"]
    return h


def open_slot(h: Harness, node: str, gang: str) -> None:
    h.cluster.patch("Node", "", node, {"metadata": {"labels": {"slot": gang}}})


def wait_a_while(h: Harness) -> None:
    for _ in range(15):
        h.advance(1.0)


def bound(h: Harness) -> set[str]:
    pods = h.cluster.list("Pod").items
    return {p["metadata"]["name"] for p in pods if p["spec"].get("nodeName")}


def released(h: Harness) -> list[Any]:
    return [r for r in h.observer.resolved if r.resolved_by == "gang deadlock"]


@pytest.mark.parametrize(
    "setting, winner, why",
    [
        pytest.param(
            {"high": "b"}, "b", "which has the lowest priority", id="the-lower-priority-goes"
        ),
        pytest.param({"created": (1.0, 2.0)}, "a", "the youngest", id="equal-the-younger-goes"),
        pytest.param({"created": (2.0, 1.0)}, "b", "the youngest", id="whatever-its-name"),
        pytest.param({"created": (1.0, 1.0)}, "a", "the last by name", id="equal-the-later-name"),
    ],
)
def test_one_of_two_that_hold_each_other_up_is_released(
    setting: dict[str, Any], winner: str, why: str
) -> None:
    h = halves(**setting)
    open_slot(h, "n1", "b")
    open_slot(h, "n2", "a")
    wait_a_while(h)
    loser = "ab".replace(winner, "")
    assert bound(h) == {f"{winner}{number}" for number in range(3)}
    ends = released(h)
    assert {r.pod_group for r in ends} == {f"default/{loser}"}
    assert {r.outcome for r in ends} == {WaitOutcome.REJECTED}
    assert ends[0].message == (
        "gangs default/a and default/b each hold what the other needs; "
        f"default/{loser} was released, {why}, so that default/{winner} can go on"
    )


def test_the_pods_of_the_gang_that_goes_read_why() -> None:
    h = halves()
    open_slot(h, "n1", "b")
    open_slot(h, "n2", "a")
    text = "default/b was released, the youngest, so that default/a can go on"
    for _ in range(15):
        h.advance(1.0)
        told = [h.condition(name).get("message", "") for name in ("b0", "b1")]
        if any(text in message for message in told):
            break
    assert all(text in message for message in told), told
    assert [e for e in h.events("FailedScheduling") if text in e["note"]]


@pytest.mark.parametrize(
    "slot_a, slot_b, complete",
    [
        pytest.param("", "", "", id="both-wait-for-a-node-that-is-not-there"),
        pytest.param("", "n1", "", id="one-is-held-up-but-holds-nobody-up"),
        pytest.param("n2", "", "", id="the-other-way-round"),
        pytest.param("n3", "n1", "a", id="one-can-be-completed-on-its-own"),
        pytest.param("n2", "n3", "b", id="the-other-one-can"),
    ],
)
def test_without_a_circle_nobody_is_released(slot_a: str, slot_b: str, complete: str) -> None:
    h = halves()
    for node, gang in ((slot_a, "a"), (slot_b, "b")):
        if node:
            open_slot(h, node, gang)
    wait_a_while(h)
    assert released(h) == []
    assert bound(h) == {f"{name}{number}" for name in complete for number in range(3)}


def test_what_an_incomplete_gang_holds_is_free_at_its_deadline() -> None:
    h = halves()
    h.create("Pod", make_pod("other").req(cpu="2").node_selector(name="n1"))
    h.settle()
    assert bound(h) == set()
    h.advance(601.0)
    h.advance(10.0)
    assert "other" in bound(h)


@settings(max_examples=25, deadline=None)
@given(
    cpu=st.tuples(st.integers(2, 3), st.integers(2, 3)),
    slots=st.lists(
        st.tuples(st.sampled_from(["n1", "n2", "n3"]), st.sampled_from("ab")), max_size=4
    ),
)
def test_a_gang_that_could_be_completed_is_never_released(
    cpu: tuple[int, int], slots: list[tuple[str, str]]
) -> None:
    """One is released only where both are stuck in each other, and then the other one goes."""
    h = halves(cpu=cpu)
    for node, gang in slots:
        open_slot(h, node, gang)
        h.advance(1.0)
    wait_a_while(h)
    gone = {r.pod_group[-1] for r in released(h)}
    assert len(gone) <= 1
    for name in gone:
        other = "ab".replace(name, "")
        assert {f"{other}{number}" for number in range(3)} <= bound(h)
        assert cpu[0] == 2
        assert cpu[1] == 2
