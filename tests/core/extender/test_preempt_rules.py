"""Each rule of kube-scheduler 1.36 about extenders that take part in preemption."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.testing.builders import make_pod
from scheduler_core.testing.harness import Harness
from tests.core.extender.server import keep_all
from tests.core.extender.world import (
    MANAGED,
    Start,
    busy,
    entry,
    node,
    of_class,
    scheduler,
)


def full_cluster(*extenders: dict[str, Any], **more: Any) -> Harness:
    """Three full nodes with two pods of lower priority each; preemption would take n0's "v0a"."""
    victims = [of_class(busy(f"v{i}{x}", f"n{i}", cpu="2"), i) for i in range(3) for x in "ab"]
    preemptor = of_class(make_pod("p").req(cpu="2"), 100)
    return scheduler(*extenders, pods=[*victims, preemptor], **more)


def meta(args: Any, *keep_nodes: str) -> Any:
    """The reply that leaves these nodes of a request."""
    victims = args["NodeNameToMetaVictims"]
    if victims is None:
        victims = {
            name: {
                "Pods": [{"UID": pod["metadata"]["uid"]} for pod in entry["Pods"]],
                "NumPDBViolations": entry["NumPDBViolations"],
            }
            for name, entry in args["NodeNameToVictims"].items()
        }
    return {"NodeNameToMetaVictims": {n: v for n, v in victims.items() if n in keep_nodes}}


@pytest.mark.parametrize("caches", [True, False], ids=["by uid", "with whole pods"])
def test_preempt_leaves_some_candidates(extender: Start, caches: bool) -> None:
    fake = extender({"preempt": lambda args: meta(args, "n2")})
    h = full_cluster(entry(fake, "preempt", nodeCacheCapable=caches))
    (asked,) = fake.asked("preempt")
    sent = asked["NodeNameToMetaVictims" if caches else "NodeNameToVictims"]
    assert sorted(sent) == ["n0", "n1", "n2"]
    assert asked["NodeNameToVictims" if caches else "NodeNameToMetaVictims"] is None
    assert h.cycles("p")[0].nominated_node == "n2"
    assert h.pod(h.cycles("p")[0].victims[0].partition("/")[2])["metadata"]["deletionTimestamp"]


def test_without_extenders_the_lowest_priority_goes() -> None:
    assert full_cluster().cycles("p")[0].nominated_node == "n0"


def test_the_victims_may_be_others(extender: Start) -> None:
    def other(args: Any) -> Any:
        (sent,) = args["NodeNameToMetaVictims"]["n1"]["Pods"]
        (uid,) = uids - {sent["UID"]}
        return {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": uid}], "NumPDBViolations": 0}}}

    plain = full_cluster()
    uids: set[str] = set()
    first = extender({"preempt": other, "filter": keep_all})
    h = full_cluster(
        entry(first, "preempt"),
        before=lambda h: uids.update(h.pod(f"v1{x}")["metadata"]["uid"] for x in "ab"),
    )
    assert h.cycles("p")[0].victims != plain.cycles("p")[0].victims
    assert len(h.cycles("p")[0].victims) == 1
    assert h.cycles("p")[0].nominated_node == "n1"


def test_each_interested_extender_gets_what_the_last_one_left(extender: Start) -> None:
    first = extender({"preempt": lambda args: meta(args, "n1", "n2")})
    bored = extender({"preempt": lambda args: meta(args)})
    second = extender({"preempt": lambda args: meta(args, "n2")})
    full_cluster(
        entry(first, "preempt"), entry(bored, "preempt", **MANAGED), entry(second, "preempt")
    )
    assert sorted(second.asked("preempt")[0]["NodeNameToMetaVictims"]) == ["n1", "n2"]
    assert bored.requests == []


def test_no_candidate_left(extender: Start) -> None:
    fake = extender({"preempt": {"NodeNameToMetaVictims": {}}})
    h = full_cluster(entry(fake, "preempt"))
    assert h.cycles("p")[0].message == (
        "0/3 nodes are available: 3 Insufficient cpu. "
        "no new claims to deallocate, preemption: no candidate node for preemption"
    )


@pytest.mark.parametrize("ignorable", [False, True], ids=["fails", "is dropped if ignorable"])
def test_a_node_without_victims(extender: Start, ignorable: bool) -> None:
    def answer(args: Any) -> Any:
        reply = meta(args, "n1", "n2")
        reply["NodeNameToMetaVictims"]["n1"]["Pods"] = []
        return reply

    h = full_cluster(entry(extender({"preempt": answer}), "preempt", ignorable=ignorable))
    if ignorable:
        assert h.cycles("p")[0].nominated_node == "n2"
    else:
        assert h.cycles("p")[0].message.endswith('expected at least one victim pod on node "n1"')


LIES = {
    "a node that is not there": (
        {"n9": {"Pods": [{"UID": "u"}]}},
        'nodeinfo not found for node name "n9"',
    ),
    "a victim that is not there": (
        {"n1": {"Pods": [{"UID": "u"}]}},
        "claims to preempt pod (UID: &{u}) on node: n1, but the pod is not found on that node",
    ),
}


@pytest.mark.parametrize(("victims", "text"), LIES.values(), ids=list(LIES))
@pytest.mark.parametrize("ignorable", [False, True], ids=["must answer", "ignorable"])
def test_preempt_with_what_cannot_be(
    extender: Start, victims: Any, text: str, ignorable: bool
) -> None:
    fake = extender({"preempt": {"NodeNameToMetaVictims": victims}})
    h = full_cluster(entry(fake, "preempt", ignorable=ignorable))
    first = h.cycles("p")[0]
    if ignorable:
        assert first.nominated_node == "n0"
    else:
        assert first.message.endswith(text)
        assert first.nominated_node == ""


def test_it_cannot_have_a_pod_of_equal_or_higher_priority_evicted(extender: Start) -> None:
    def boss(h: Harness) -> None:
        uid = h.pod("boss")["metadata"]["uid"]
        victims = {"n3": {"Pods": [{"UID": uid}]}}
        fake.answers["preempt"] = {"NodeNameToMetaVictims": victims}

    fake = extender({})
    h = scheduler(
        entry(fake, "preempt"),
        made=[node("n3")],
        pods=[
            of_class(busy("boss", "n3", cpu="2"), 100),
            busy("low", "n3", cpu="2"),
            of_class(make_pod("p").req(cpu="2"), 100),
        ],
        before=boss,
    )
    assert h.cycles("p")[0].message.endswith("on node: n3, but its priority is not lower")
    assert h.node_of("boss") == "n3"
