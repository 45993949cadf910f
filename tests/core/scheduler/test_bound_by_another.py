"""A pod that waits at Permit, and that somebody else binds or deletes meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.ports import ApiError
from scheduler_core.records import PermitDecision, Verdict, WaitingPodRecord, WaitOutcome
from scheduler_core.testing.builders import make_node, make_pod
from scheduler_core.testing.harness import Harness
from tests.core.scheduler.test_gang_approval import bound, gang, member

PROFILE = {"plugins": {"permit": {"enabled": [{"name": "ManualApproval"}]}}}


def waiting_pod(nodes: int = 2) -> Harness:
    """One that needs a whole node, and waits for a person."""
    asking = make_pod("p").req(cpu="2").label(**{"kubesched.io/approval": "required"})
    h = Harness(
        nodes=[make_node(f"n{i}").capacity(cpu="2", memory="8Gi", pods="9") for i in range(nodes)],
        profile=PROFILE,
        pods=[asking],
    )
    h.settle()
    assert h.waiting_names() == ["p"]
    return h


def uid(h: Harness, name: str = "p") -> str:
    return str(h.pod(name)["metadata"]["uid"])


def bind(h: Harness, name: str, node: str) -> None:
    """By hand, past the scheduler."""
    h.cluster.bind("default", name, uid(h, name), node)
    h.settle()


def ends(h: Harness, name: str = "p") -> list[tuple[WaitOutcome | None, str]]:
    told: list[WaitingPodRecord] = h.observer.resolved
    return [(r.outcome, r.message) for r in told if r.pod.name == name]


def cpu_on(h: Harness, node: str) -> Any:
    info = h.scheduler.cache.node_info(node)
    assert info is not None
    return info.requested.get("cpu", 0)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["on its node", "on another node"])
@pytest.mark.parametrize("verdict", [Verdict.APPROVE, Verdict.DENY])
def test_its_wait_ends_and_no_word_moves_it(verdict: Verdict, elsewhere: bool) -> None:
    h = waiting_pod()
    held = h.observer.waiting[-1].node
    free = {"n0": "n1", "n1": "n0"}[held]
    where, other = (free, held) if elsewhere else (held, free)
    bind(h, "p", where)
    assert h.waiting_names() == []
    assert ends(h) == [(WaitOutcome.REMOVED, f"bound by another to {where}")]
    h.decide(PermitDecision(1, uid(h), verdict, "olga"))
    assert h.observer.decisions[-1][1:] == (False, "the pod no longer waits for a decision")
    assert (cpu_on(h, where), cpu_on(h, other)) == (2000, 0)
    h.create("Pod", make_pod("x").req(cpu="2"))
    h.settle()
    assert h.node_of("x") == other


def test_its_gang_is_asked_anew() -> None:
    h = gang(*(member(name, asks=True) for name in "abc"), size=3)
    bind(h, "a", "n")
    h.advance(15.0)
    assert ends(h, "a") == [(WaitOutcome.REMOVED, "bound by another to n")]
    assert (bound(h), h.waiting_names()) == (["a"], ["b", "c"])


def test_a_pod_that_is_deleted_before_its_wait_was_settled_waits_no_more() -> None:
    h = waiting_pod(nodes=1)
    h.cluster.bind("default", "p", uid(h), "n0")
    h.cluster.delete("Pod", "default", "p", grace_period_seconds=0)
    h.settle()
    assert h.waiting_names() == []
    assert len(ends(h)) == 1
    assert cpu_on(h, "n0") == 0


def failing_once(h: Harness) -> None:
    real = h.cluster.bind

    def fail(namespace: str, name: str, uid: str, node: str) -> None:
        h.cluster.bind = real  # type: ignore[method-assign]
        raise ApiError(503, "ServiceUnavailable", "the store is away")

    h.cluster.bind = fail  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        pytest.param("bound", "bound by another to n1", id="bound elsewhere"),
        pytest.param("deleted", "the pod was deleted before it was bound", id="deleted"),
    ],
)
def test_an_approval_whose_binding_failed_ends_with_the_pod(what: str, message: str) -> None:
    h = waiting_pod(nodes=1)
    failing_once(h)
    name = uid(h)
    h.decide(PermitDecision(1, name, Verdict.APPROVE, "olga"))
    assert h.scheduler.waiting_room.carried(name) is not None
    h.create("Node", make_node("n1").capacity(cpu="2", memory="8Gi", pods="9"))
    if what == "bound":
        h.cluster.bind("default", "p", name, "n1")
    else:
        h.cluster.delete("Pod", "default", "p", grace_period_seconds=0)
    h.settle()
    assert h.scheduler.waiting_room.carried(name) is None
    assert ends(h)[-1] == (WaitOutcome.REMOVED, message)
