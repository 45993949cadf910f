"""Coscheduling's gangs and native ones side by side: who is watched, and which gang is meant where
both have the same name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from scheduler_core.api import NATIVE_POD_GROUP
from scheduler_core.records import PermitDecision, Verdict, WaitingPodRecord, WaitOutcome
from scheduler_core.testing.builders import (
    make_native_pod_group,
    make_node,
    make_pod,
    make_pod_group,
)
from scheduler_core.testing.harness import Harness

ASKS = {"kubesched.io/approval": "required"}


def profile(*plugins: str, name: str = "default-scheduler") -> dict[str, Any]:
    points: dict[str, Any] = {
        "multiPoint": {"enabled": [{"name": p} for p in plugins if p != "ManualApproval"]}
    }
    if "Coscheduling" in plugins:
        points["queueSort"] = {"enabled": [{"name": plugins[0]}], "disabled": [{"name": "*"}]}
    if "ManualApproval" in plugins:
        points["permit"] = {"enabled": [{"name": "ManualApproval"}]}
    return {"schedulerName": name, "plugins": points}


BOTH = profile("Coscheduling", "GangScheduling", "ManualApproval")


def harness(*profiles: dict[str, Any], **more: Any) -> Harness:
    h = Harness(
        nodes=[make_node(n).capacity(cpu="9", memory="9Gi", pods="20") for n in ("n1", "n2")],
        config={"profiles": list(profiles)},
        **more,
    )
    h.settle()
    return h


def native(name: str) -> Any:
    return make_pod(name).label(ASKS).scheduling_group("g")


def labelled(name: str) -> Any:
    return make_pod(name).label(ASKS).pod_group("g")


def namesakes(pods: Sequence[Any] | None = None) -> Harness:
    """Two gangs of two that are both called default/g; everybody waits for a person."""
    everybody = [native("a0"), native("a1"), labelled("b0"), labelled("b1")]
    return harness(
        BOTH,
        objects={"PodGroup": [make_pod_group("g", 2)], NATIVE_POD_GROUP: [group_of_two()]},
        pods=everybody if pods is None else pods,
    )


def group_of_two() -> Any:
    return make_native_pod_group("g", 2)


def decide(h: Harness, verdict: Verdict, *names: str) -> None:
    first = len(h.observer.decisions) + 1
    h.decide(
        *(
            PermitDecision(first + i, h.pod(name)["metadata"]["uid"], verdict, "alice")
            for i, name in enumerate(names)
        )
    )


def bound(h: Harness) -> list[str]:
    pods = h.cluster.list("Pod").items
    return sorted(p["metadata"]["name"] for p in pods if p["spec"].get("nodeName"))


# -- who is watched ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "plugins, watched",
    [
        pytest.param((), False, id="neither"),
        pytest.param(("ManualApproval",), False, id="ManualApproval alone"),
        pytest.param(("Coscheduling", "ManualApproval"), False, id="Coscheduling's gangs alone"),
        pytest.param(("GangScheduling",), True, id="GangScheduling alone"),
        pytest.param(("GangScheduling", "ManualApproval"), True, id="GangScheduling before it"),
        pytest.param(("ManualApproval", "GangScheduling"), True, id="GangScheduling after it"),
    ],
)
def test_native_pod_groups_are_watched_where_a_profile_has_gang_scheduling(
    plugins: tuple[str, ...], watched: bool
) -> None:
    """Of a cluster that does not serve them the first list would never come."""
    found = harness(profile(*plugins)).scheduler.watched_kinds()
    assert (NATIVE_POD_GROUP in found) == watched


def test_without_gang_scheduling_a_scheduling_group_is_no_gang() -> None:
    h = harness(profile("ManualApproval"), pods=[native("a0"), native("a1")])
    assert {record.pod_group for record in h.observer.waiting} == {""}
    decide(h, Verdict.APPROVE, "a0")
    assert bound(h) == ["a0"]


def test_nor_in_a_profile_beside_one_that_has_it() -> None:
    h = harness(
        profile("GangScheduling", "ManualApproval"),
        profile("ManualApproval", name="other"),
        objects={NATIVE_POD_GROUP: [group_of_two()]},
        pods=[native("a0").scheduler_name("other"), native("a1").scheduler_name("other")],
    )
    assert {record.pod_group for record in h.observer.waiting} == {""}
    decide(h, Verdict.DENY, "a1")
    assert h.waiting_names() == ["a0"]
    decide(h, Verdict.APPROVE, "a0")
    assert bound(h) == ["a0"]


# -- the same name -------------------------------------------------------------------------------


def uids(records: Sequence[WaitingPodRecord]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for record in records:
        assert record.pod_group == "default/g"
        found.setdefault(record.gang_uid, set()).add(record.pod.name)
    return found


def test_gangs_of_one_name_are_told_apart_by_uid() -> None:
    h = namesakes()
    assert sorted(map(sorted, uids(h.observer.waiting).values())) == [["a0", "a1"], ["b0", "b1"]]
    assert "" not in uids(h.observer.waiting)


def test_approving_one_leaves_its_namesake_waiting() -> None:
    h = namesakes()
    decide(h, Verdict.APPROVE, "a0", "a1")
    assert (bound(h), sorted(h.waiting_names())) == (["a0", "a1"], ["b0", "b1"])


def test_denying_one_leaves_its_namesake_waiting() -> None:
    h = namesakes()
    decide(h, Verdict.DENY, "b0")
    assert sorted(h.waiting_names()) == ["a0", "a1"]


def test_a_node_that_goes_breaks_the_gang_that_held_it_and_not_its_namesake() -> None:
    pods = [native("a0"), native("a1"), labelled("b0"), labelled("b1")]
    for pod, node in zip(pods, ("n1", "n1", "n2", "n2"), strict=True):
        pod.node_selector(**{"kubernetes.io/hostname": node})
    h = Harness(
        nodes=[
            make_node(n).capacity(cpu="9", memory="9Gi").label({"kubernetes.io/hostname": n})
            for n in ("n1", "n2")
        ],
        config={"profiles": [BOTH]},
        objects={"PodGroup": [make_pod_group("g", 2)], NATIVE_POD_GROUP: [group_of_two()]},
        pods=pods,
    )
    h.settle()
    h.cluster.delete("Node", "", "n2")
    h.settle()
    ends = {record.pod.name: record.outcome for record in h.observer.resolved}
    assert ends == {"b0": WaitOutcome.BROKEN, "b1": WaitOutcome.BROKEN}
    assert sorted(h.waiting_names()) == ["a0", "a1"]


def test_the_uid_outlives_the_pod_group() -> None:
    """The end of a wait belongs to the gang with which it began."""
    h = namesakes([labelled("b0"), labelled("b1")])
    began = {record.gang_uid for record in h.observer.waiting}
    h.cluster.delete("PodGroup", "default", "g")
    h.settle()
    assert {record.gang_uid for record in h.observer.resolved} == began
    assert len(began) == 1
    assert "" not in began
