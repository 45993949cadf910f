"""Framework Permit (gang.md, section 1): what a plugin answers, what ends a wait, and what a
waiting pod holds meanwhile. A named case for each rule; `tests/plugins/test_gang_rules.py` has the
list of all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.runtime.binding import run_permit
from scheduler_core.framework.runtime.waiting_pods import PermitWait, WaitingPod
from scheduler_core.framework.status import (
    SUCCESS,
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
    wait,
)
from scheduler_core.records import WaitOutcome
from scheduler_core.testing.builders import make_node, make_pod
from scheduler_core.testing.harness import Harness
from tests.core.scheduler.fakes import enabled, make_spy

QUARTER = 900.0
POD = make_pod("p").node("n").obj()


# -- what plugins answer -------------------------------------------------------------------------


@dataclass
class Answers:
    """A Permit plugin that answers as told, and notes that it was asked."""

    name: str
    answer: tuple[Status, float]
    asked: list[str] = field(default_factory=list)

    def permit(self, _state: CycleState, _pod: Any, _node: str) -> tuple[Status, float]:
        self.asked.append(self.name)
        return self.answer


GOES = (SUCCESS, 0.0)


@pytest.mark.parametrize(
    "answers, asked, code, waits",
    [
        pytest.param([GOES, GOES], "AB", Code.SUCCESS, {}, id="Success: the next plugin"),
        pytest.param(
            [(unschedulable("no"), 0.0), GOES],
            "A",
            Code.UNSCHEDULABLE,
            {},
            id="rejected: stop",
        ),
        pytest.param(
            [(unresolvable("never"), 0.0), GOES],
            "A",
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            {},
            id="rejected for good: stop",
        ),
        pytest.param([(error("oops"), 0.0), GOES], "A", Code.ERROR, {}, id="an error: stop"),
        pytest.param(
            [(wait(), 30.0), GOES, (wait(), 60.0)],
            "ABC",
            Code.SUCCESS,
            {"A": 30.0, "C": 60.0},
            id="Wait is remembered per plugin, the others still run",
        ),
        pytest.param(
            [(wait(), 30.0), (unschedulable("no"), 0.0)],
            "AB",
            Code.UNSCHEDULABLE,
            {"A": 30.0},
            id="a rejection after a Wait counts",
        ),
        pytest.param(
            [(wait(), QUARTER + 1.0)],
            "A",
            Code.SUCCESS,
            {"A": QUARTER},
            id="a timeout is cut to 15 minutes",
        ),
        pytest.param(
            [(wait(), QUARTER)], "A", Code.SUCCESS, {"A": QUARTER}, id="15 minutes may be asked for"
        ),
    ],
)
def test_what_permit_comes_to(
    answers: list[tuple[Status, float]], asked: str, code: Code, waits: dict[str, float]
) -> None:
    log: list[str] = []
    plugins = [Answers(name, answer, log) for name, answer in zip("ABC", answers, strict=False)]
    status, found = run_permit(plugins, CycleState(), POD, "n", now=100.0)  # type: ignore[arg-type]
    assert ("".join(log), status.code) == (asked, code)
    assert {w.plugin: w.timeout for w in found} == waits
    assert all(w.deadline == 100.0 + w.timeout for w in found)


# -- what ends a wait ----------------------------------------------------------------------------


def waiting(**timeouts: float) -> tuple[WaitingPod, list[WaitingPod]]:
    """A pod that waits for plugins since 0, and the changes that its owner hears of."""
    changes: list[WaitingPod] = []
    waits = [PermitWait(name, seconds, seconds) for name, seconds in timeouts.items()]
    return WaitingPod(POD, "n", waits, changes.append), changes


LATE_A = "rejected due to timeout after waiting 30s at plugin A"
LATE_B = "rejected due to timeout after waiting 1m0s at plugin B"


@pytest.mark.parametrize(
    "steps, outcome, status, by, pending",
    [
        pytest.param([], None, None, "", ("A", "B"), id="it waits"),
        pytest.param(
            [("allow", "A")], None, None, "", ("B",), id="Allow takes that plugin off the list"
        ),
        pytest.param(
            [("allow", "A"), ("allow", "A")], None, None, "", ("B",), id="Allow twice is once"
        ),
        pytest.param(
            [("allow", "A"), ("allow", "B")],
            WaitOutcome.ALLOWED,
            (Code.SUCCESS, ""),
            "B",
            (),
            id="it proceeds when none is left",
        ),
        pytest.param(
            [("allow", "Nobody")],
            None,
            None,
            "",
            ("A", "B"),
            id="Allow by an unknown plugin changes nothing",
        ),
        pytest.param(
            [("reject", "A", "not today")],
            WaitOutcome.REJECTED,
            (Code.UNSCHEDULABLE, "not today"),
            "A",
            ("A", "B"),
            id="Reject ends it Unschedulable at once",
        ),
        pytest.param(
            [("allow", "A"), ("reject", "A", "not today")],
            WaitOutcome.REJECTED,
            (Code.UNSCHEDULABLE, "not today"),
            "A",
            ("B",),
            id="also by a plugin that has allowed",
        ),
        pytest.param(
            [("reject", "A", "not today"), ("allow", "A"), ("allow", "B")],
            WaitOutcome.REJECTED,
            (Code.UNSCHEDULABLE, "not today"),
            "A",
            ("A", "B"),
            id="what comes after the end changes nothing",
        ),
        pytest.param([("expire", 29.9)], None, None, "", ("A", "B"), id="before its time"),
        pytest.param(
            [("expire", 30.0)],
            WaitOutcome.TIMED_OUT,
            (Code.UNSCHEDULABLE, LATE_A),
            "A",
            ("A", "B"),
            id="the shortest timer wins, and says who and how long",
        ),
        pytest.param(
            [("allow", "A"), ("expire", 59.9)],
            None,
            None,
            "",
            ("B",),
            id="one timer per plugin: that of A has gone with it",
        ),
        pytest.param(
            [("allow", "A"), ("expire", 60.0)],
            WaitOutcome.TIMED_OUT,
            (Code.UNSCHEDULABLE, LATE_B),
            "B",
            ("B",),
            id="then that of B",
        ),
        pytest.param(
            [("preempt", "A", "room for others")],
            WaitOutcome.PREEMPTED,
            (Code.ERROR, "room for others"),
            "A",
            ("A", "B"),
            id="Preempt ends it with an Error",
        ),
    ],
)
def test_what_ends_a_wait(
    steps: list[tuple[Any, ...]],
    outcome: WaitOutcome | None,
    status: tuple[Code, str] | None,
    by: str,
    pending: tuple[str, ...],
) -> None:
    pod, changes = waiting(A=30.0, B=60.0)
    for step, *args in steps:
        getattr(pod, step)(*args)
    assert pod.outcome is outcome
    found = pod.status
    assert (None if found is None else (found.code, found.message)) == status
    assert (pod.resolved_by, pod.pending_plugins) == (by, pending)
    assert sum(change.status is not None for change in changes[-1:]) == (outcome is not None)


# -- in the scheduler ----------------------------------------------------------------------------


def parked(**harness: Any) -> tuple[Harness, list[str]]:
    log: list[str] = []
    spy = make_spy(
        "Spy", log, {"permit": (wait("for a friend"), 60.0), "pre_bind_pre_flight": SUCCESS}
    )
    h = Harness(
        nodes=[make_node("n").capacity(cpu="2", memory="4Gi", pods="9")],
        pods=[make_pod("p").req(cpu="2")],
        profile=enabled("Spy"),
        plugins=[spy],
        **harness,
    )
    h.settle()
    return h, log


def test_the_assumed_pod_holds_its_nodes_resources_meanwhile() -> None:
    h, _ = parked()
    h.create("Pod", make_pod("other").req(cpu="1"))
    h.settle()
    assert h.waiting_names() == ["p"]
    assert "Insufficient cpu" in h.condition("other")["message"]


def test_the_binding_cycle_begins_when_the_wait_is_over() -> None:
    h, log = parked()
    assert not {"Spy.pre_bind_pre_flight", "Spy.pre_bind", "Spy.bind"} & set(log)
    for pod in h.scheduler.waiting_pods:
        pod.allow("Spy")
    h.settle()
    assert [step for step in log if "bind" in step] == [
        "Spy.pre_bind_pre_flight",
        "Spy.pre_bind",
        "Spy.post_bind",
    ]


@pytest.mark.parametrize(
    "end, reason",
    [
        pytest.param("reject", "Unschedulable", id="a rejected pod is unschedulable"),
        pytest.param("preempt", "SchedulerError", id="a preempted one is an error, and retried"),
    ],
)
def test_what_its_owner_reads(end: str, reason: str) -> None:
    h, _ = parked()
    (pod,) = h.scheduler.waiting_pods
    getattr(pod, end)("Spy", "make room")
    h.settle()
    assert h.condition("p")["reason"] == reason
    h.advance(30.0)
    assert h.waiting_names() == ["p"], "it is tried again"
