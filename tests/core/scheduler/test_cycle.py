"""One pod's way through the extension points: order, failures, and the words a user reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scheduler_core.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
    wait,
)
from scheduler_core.framework.types import PreFilterResult
from scheduler_core.records import Outcome, PermitDecision, Verdict, WaitOutcome
from scheduler_core.testing.builders import make_node, make_pod, make_priority_class
from scheduler_core.testing.harness import Harness
from tests.core.scheduler.fakes import enabled, make_spy


def node(name: str, cpu: str = "4") -> Any:
    return make_node(name).capacity(cpu=cpu, memory="8Gi", pods="10")


def one_spy(behaviour: dict[str, Any], nodes: int = 2, **harness: Any) -> tuple[Harness, list[str]]:
    log: list[str] = []
    spy = make_spy("Spy", log, behaviour)
    h = Harness(
        nodes=[node(f"n{i}") for i in range(nodes)],
        pods=[make_pod("p").req(cpu="1")],
        profile=enabled("Spy"),
        plugins=[spy],
        **harness,
    )
    h.settle()
    return h, log


def test_extension_points_run_in_the_references_order() -> None:
    _, log = one_spy({})
    assert log == [
        "Spy.pre_filter",
        "Spy.pre_score",
        "Spy.score",
        "Spy.reserve",
        "Spy.permit",
        "Spy.pre_bind_pre_flight",
        "Spy.post_bind",
    ]


def test_a_pod_is_bound_and_told() -> None:
    h, _ = one_spy({})
    record = h.cycle("p")
    assert h.node_of("p") == "n0"
    assert (record.outcome, record.node, record.attempt) == (Outcome.SCHEDULED, "n0", 1)
    assert h.observer.bindings[0].bound
    assert h.events("Scheduled")[0]["note"] == "Successfully assigned default/p to n0"


def test_one_feasible_node_is_not_scored() -> None:
    h, log = one_spy({}, nodes=1)
    assert "Spy.pre_score" not in log
    assert h.cycle("p").score is None
    assert h.node_of("p") == "n0"


FAILURES = [
    pytest.param(
        {"pre_filter": (None, unschedulable("not today"))},
        Outcome.UNSCHEDULABLE,
        "Unschedulable",
        "0/2 nodes are available: not today.",
        {"Spy"},
        id="PreFilter rejects",
    ),
    pytest.param(
        {"pre_filter": RuntimeError("broken")},
        Outcome.ERROR,
        "SchedulerError",
        'running PreFilter plugin "Spy": broken',
        set(),
        id="PreFilter raises",
    ),
    pytest.param(
        {"pre_filter": (PreFilterResult(frozenset()), SUCCESS)},
        Outcome.UNSCHEDULABLE,
        "Unschedulable",
        "0/2 nodes are available: node(s) didn't satisfy plugin Spy.",
        {"Spy"},
        id="PreFilter leaves no node",
    ),
    pytest.param(
        {"pre_filter": (PreFilterResult(frozenset({"gone"})), SUCCESS)},
        Outcome.UNSCHEDULABLE,
        "Unschedulable",
        "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [Spy].",
        {"Spy"},
        id="PreFilter names a node that is not there",
    ),
    pytest.param(
        {"filter": unschedulable("too small")},
        Outcome.UNSCHEDULABLE,
        "Unschedulable",
        "0/2 nodes are available: 2 too small.",
        {"Spy"},
        id="Filter rejects every node",
    ),
    pytest.param(
        {"filter": lambda n: unresolvable("a") if n.name == "n0" else unschedulable("b", "c")},
        Outcome.UNSCHEDULABLE,
        "Unschedulable",
        "0/2 nodes are available: 1 a, 1 b, 1 c.",
        {"Spy"},
        id="reasons are counted one by one and sorted",
    ),
    pytest.param(
        {"filter": ValueError("no such column")},
        Outcome.ERROR,
        "SchedulerError",
        'running "Spy" filter plugin: no such column',
        set(),
        id="Filter raises",
    ),
    pytest.param(
        {"filter": unschedulable("full"), "post_filter": (None, unschedulable("nobody to evict"))},
        Outcome.UNSCHEDULABLE,
        "Unschedulable",
        "0/2 nodes are available: 2 full. no new claims to deallocate, preemption: 0/2 nodes are "
        "available: 2 No preemption victims found for incoming pod., nobody to evict",
        {"Spy"},
        id="PostFilter adds its words without a period",
    ),
    pytest.param(
        {"pre_score": error("no data")},
        Outcome.ERROR,
        "SchedulerError",
        'running PreScore plugin "Spy": no data',
        set(),
        id="PreScore fails",
    ),
    pytest.param(
        {"score": KeyError("zone")},
        Outcome.ERROR,
        "SchedulerError",
        "running Score plugins: plugin \"Spy\" failed with: 'zone'",
        set(),
        id="Score raises",
    ),
    pytest.param(
        {"normalize": lambda s: s + 101},
        Outcome.ERROR,
        "SchedulerError",
        'applying score defaultWeights on Score plugins: plugin "Spy" returns an invalid score '
        "101, it should in the range of [0, 100] after normalizing",
        set(),
        id="a score above 100",
    ),
    pytest.param(
        {"score": -1},
        Outcome.ERROR,
        "SchedulerError",
        'applying score defaultWeights on Score plugins: plugin "Spy" returns an invalid score '
        "-1, it should in the range of [0, 100] after normalizing",
        set(),
        id="a score below 0",
    ),
    pytest.param(
        {"reserve": unschedulable("taken")},
        Outcome.UNSCHEDULABLE,
        "Unschedulable",
        "0/1 nodes are available: 1 taken.",
        {"Spy"},
        id="Reserve rejects",
    ),
    pytest.param(
        {"reserve": OSError("disk")},
        Outcome.ERROR,
        "SchedulerError",
        'running Reserve plugin "Spy": disk',
        set(),
        id="Reserve raises",
    ),
    pytest.param(
        {"permit": (unschedulable("no"), 0.0)},
        Outcome.UNSCHEDULABLE,
        "Unschedulable",
        "0/1 nodes are available: 1 no.",
        {"Spy"},
        id="Permit rejects",
    ),
    pytest.param(
        {"permit": RuntimeError("x")},
        Outcome.ERROR,
        "SchedulerError",
        'running Permit plugin "Spy": x',
        set(),
        id="Permit raises",
    ),
]


@pytest.mark.parametrize(("behaviour", "outcome", "reason", "message", "plugins"), FAILURES)
def test_a_failed_cycle_says_who_and_why_and_requeues(
    behaviour: dict[str, Any], outcome: Outcome, reason: str, message: str, plugins: set[str]
) -> None:
    h, _ = one_spy(behaviour)
    record = h.cycles("p")[0]
    assert (record.outcome, record.message) == (outcome, message)
    assert set(record.unschedulable_plugins) == plugins
    condition = h.condition("p")
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "False",
        reason,
        message,
    )
    assert h.events("FailedScheduling")[0]["note"] == message
    assert h.scheduler.queue.get("default/p") is not None
    assert h.scheduler.cache.assumed_count == 0


def test_the_scheduler_lives_on_after_a_plugin_that_raises() -> None:
    told: dict[str, Any] = {"filter": RuntimeError("first time")}
    h, _ = one_spy(told)
    assert h.node_of("p") == ""
    del told["filter"]
    h.advance(2.0)
    assert h.node_of("p") == "n0"


def test_unreserve_runs_for_all_in_reverse_after_a_failed_reserve() -> None:
    log: list[str] = []
    spies = [
        make_spy("A", log),
        make_spy("B", log, {"reserve": unschedulable("no")}),
        make_spy("C", log),
    ]
    h = Harness(
        nodes=[node("n")], pods=[make_pod("p")], profile=enabled("A", "B", "C"), plugins=spies
    )
    h.settle()
    assert [entry for entry in log if "reserve" in entry][:5] == [
        "A.reserve",
        "B.reserve",
        "C.unreserve",
        "B.unreserve",
        "A.unreserve",
    ]


def test_an_unreserve_that_raises_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log: list[str] = []
    spies = [
        make_spy("A", log),
        make_spy("B", log, {"unreserve": RuntimeError("oops"), "permit": (unschedulable("no"), 0)}),
    ]
    h = Harness(nodes=[node("n")], pods=[make_pod("p")], profile=enabled("A", "B"), plugins=spies)
    h.settle()
    assert log[-2:] == ["B.unreserve", "A.unreserve"]
    assert "Unreserve of plugin B raised for pod default/p" in caplog.text


BINDING_FAILURES = [
    pytest.param(
        {"pre_bind_pre_flight": SUCCESS, "pre_bind": error("volume lost")},
        'running PreBind plugin "Spy": volume lost',
        id="PreBind fails",
    ),
    pytest.param(
        {"pre_bind_pre_flight": RuntimeError("?")},
        'running PreBindPreFlight plugin "Spy": ?',
        id="PreBindPreFlight raises",
    ),
    pytest.param(
        {"bind": error("refused")},
        'running Bind plugin "Spy": refused',
        id="Bind fails",
    ),
]


@pytest.mark.parametrize(("behaviour", "message"), BINDING_FAILURES)
def test_a_failed_binding_gives_the_node_back_and_requeues(
    behaviour: dict[str, Any], message: str
) -> None:
    log: list[str] = []
    profile = {
        "plugins": {
            "multiPoint": {"enabled": [{"name": "Spy"}]},
            "bind": {"enabled": [{"name": "Spy"}, {"name": "DefaultBinder"}]},
        }
    }
    h = Harness(
        nodes=[node("n")],
        pods=[make_pod("p")],
        profile=profile,
        plugins=[make_spy("Spy", log, behaviour)],
    )
    h.settle()
    binding = h.observer.bindings[0]
    assert (binding.bound, binding.message) == (False, message)
    assert h.condition("p")["reason"] == "SchedulerError"
    assert "Spy.unreserve" in log
    assert h.scheduler.cache.assumed_count == 0
    assert h.scheduler.queue.get("default/p") is not None


def test_skipped_score_plugins_are_absent_from_the_total() -> None:
    h, log = one_spy({"pre_score": SKIP, "score": 100})
    assert "Spy.score" not in log
    matrix = h.cycle("p").matrix
    assert matrix is not None
    assert "Spy" not in matrix.plugins


def test_a_skipped_pre_filter_drops_the_filter() -> None:
    h, _ = one_spy({"pre_filter": (None, SKIP), "filter": unschedulable("never asked")})
    assert h.node_of("p") == "n0"


def test_the_record_holds_every_node() -> None:
    h = Harness(
        nodes=[node("big", "8"), node("small", "1"), node("mid", "4")],
        pods=[make_pod("p").req(cpu="2")],
    )
    h.settle()
    record = h.cycle("p")
    matrix = record.matrix
    assert matrix is not None
    rows = {name: i for i, name in enumerate(matrix.node_names)}
    assert matrix.rejection[rows["big"]] == -1
    plugin, reason, code = matrix.reasons[matrix.rejection[rows["small"]]]
    assert (plugin, reason, code) == (
        "NodeResourcesFit",
        "Insufficient cpu",
        "UnschedulableAndUnresolvable",
    )
    assert (matrix.normalized[:, rows["small"]] == -1).all()
    assert matrix.total[rows["big"]] == record.score
    expected = (matrix.weights[:, None] * matrix.normalized).sum(axis=0)
    feasible = matrix.rejection == -1
    np.testing.assert_array_equal(matrix.total[feasible], expected[feasible])
    assert [s.node for s in record.best] == ["big", "mid"]
    assert [(r.plugin, r.reason, r.nodes, r.resolvable) for r in record.rejections] == [
        ("NodeResourcesFit", "Insufficient cpu", 1, False)
    ]
    assert set(record.point_seconds) == {
        "PreFilter",
        "Filter",
        "PreScore",
        "Score",
        "Reserve",
        "Permit",
    }


def test_no_nodes_is_said_and_tried_again() -> None:
    h = Harness(pods=[make_pod("p")])
    h.settle()
    assert h.cycle("p").message == "no nodes available to schedule pods"
    assert h.condition("p")["reason"] == "Unschedulable"
    h.create("Node", node("n"))
    h.advance(2.0)
    assert h.node_of("p") == "n"


def test_a_pod_that_is_being_deleted_is_skipped() -> None:
    doomed = make_pod("p").raw()
    doomed["metadata"]["finalizers"] = ["example.com/keep"]
    h = Harness(nodes=[node("n")], pods=[doomed], profile=None)
    h.cluster.delete("Pod", "default", "p")
    h.settle()
    assert h.node_of("p") == ""


def test_an_observer_that_raises_is_detached_and_hurts_nobody() -> None:
    h = Harness(nodes=[node("n")], pods=[make_pod("p")])

    def broken(record: object) -> None:
        raise RuntimeError("observer")

    h.observer.cycle_finished = broken  # type: ignore[method-assign]
    h.scheduler._observers._listeners["cycle_finished"] = [(h.observer, broken)]
    h.settle()
    assert h.node_of("p") == "n"
    assert not h.scheduler._observers.wants("cycle_finished")


WAIT_ONE_MINUTE = (wait("for a friend"), 60.0)


def test_a_waiting_pod_holds_its_node_until_allowed() -> None:
    h, _ = one_spy({"permit": WAIT_ONE_MINUTE})
    assert h.waiting_names() == ["p"]
    assert h.node_of("p") == ""
    assert h.scheduler.cache.assumed_count == 1
    record = h.observer.waiting[0]
    assert [(p.plugin, p.deadline, p.reason) for p in record.pending] == [
        ("Spy", h.clock.now() + 60.0, "for a friend")
    ]
    for waiting in h.scheduler.waiting_pods:
        waiting.allow("Spy")
    h.settle()
    assert h.node_of("p") == "n0"
    assert h.observer.resolved[0].outcome is WaitOutcome.ALLOWED


def test_a_wait_ends_at_its_deadline_with_the_references_words() -> None:
    h, log = one_spy({"permit": WAIT_ONE_MINUTE})
    h.advance(59.0)
    assert h.waiting_names() == ["p"]
    h.advance(1.0)
    resolved = h.observer.resolved[0]
    assert resolved.outcome is WaitOutcome.TIMED_OUT
    assert resolved.message == "rejected due to timeout after waiting 1m0s at plugin Spy"
    assert "Spy.unreserve" in log
    assert h.condition("p")["message"] == (
        "0/1 nodes are available: 1 rejected due to timeout after waiting 1m0s at plugin Spy."
    )


def test_permit_waits_at_most_fifteen_minutes() -> None:
    h, _ = one_spy({"permit": (wait(), 3600.0)})
    assert h.observer.waiting[0].deadline == h.clock.now() + 900.0


def test_all_waiting_plugins_must_allow_and_the_shortest_timer_wins() -> None:
    log: list[str] = []
    h = Harness(
        nodes=[node("n")],
        pods=[make_pod("p")],
        profile=enabled("A", "B"),
        plugins=[
            make_spy("A", log, {"permit": (wait(), 30.0)}),
            make_spy("B", log, {"permit": (wait(), 60.0)}),
        ],
    )
    h.settle()
    (waiting,) = h.scheduler.waiting_pods
    waiting.allow("A")
    waiting.allow("Nobody")
    h.settle()
    assert [p.plugin for p in h.observer.waiting[-1].pending] == ["B"]
    h.advance(31.0)
    assert h.waiting_names() == ["p"]
    h.advance(30.0)
    (resolved,) = h.observer.resolved
    assert (resolved.outcome, resolved.resolved_by) == (WaitOutcome.TIMED_OUT, "B")


def test_a_preempted_wait_is_an_error_and_tried_again() -> None:
    h, _ = one_spy({"permit": WAIT_ONE_MINUTE})
    (waiting,) = h.scheduler.waiting_pods
    waiting.preempt("Spy", "preempted")
    h.settle()
    assert h.observer.resolved[0].outcome is WaitOutcome.PREEMPTED
    assert h.condition("p")["reason"] == "SchedulerError"


def test_a_pod_deleted_while_it_waits_is_let_go() -> None:
    h, _ = one_spy({"permit": WAIT_ONE_MINUTE})
    h.cluster.delete("Pod", "default", "p")
    h.settle()
    assert h.observer.resolved[0].outcome is WaitOutcome.REMOVED
    assert h.waiting_names() == []
    assert h.scheduler.cache.assumed_count == 0
    assert h.scheduler.queue.get("default/p") is None


def approve(uid: str, number: int = 1) -> PermitDecision:
    return PermitDecision(number, uid, Verdict.APPROVE, "alice", "fine")


def deny(uid: str, number: int = 1) -> PermitDecision:
    return PermitDecision(number, uid, Verdict.DENY, "bob", "not this week")


def approval(pods: list[Any], **more: Any) -> Harness:
    h = Harness(
        nodes=[node("n0"), node("n1")],
        pods=pods,
        profile={"plugins": {"permit": {"enabled": [{"name": "ManualApproval"}]}}},
        **more,
    )
    h.settle()
    return h


def asking(name: str) -> Any:
    return make_pod(name).label(**{"kubesched.io/approval": "required"})


def uid_of(h: Harness, name: str) -> str:
    return str(h.pod(name)["metadata"]["uid"])


def test_a_person_approves() -> None:
    h = approval([asking("p")])
    assert h.observer.waiting[0].needs_approval
    h.decide(approve(uid_of(h, "p")))
    assert h.node_of("p") == "n0"
    decision, applied, words = h.observer.decisions[0]
    assert (decision.user, applied, words) == ("alice", True, "approved")
    assert h.observer.resolved[0].resolved_by == "user:alice"


def test_a_person_denies_and_the_owner_reads_why() -> None:
    h = approval([asking("p")])
    h.decide(deny(uid_of(h, "p")))
    assert h.node_of("p") == ""
    resolved = h.observer.resolved[0]
    assert (resolved.outcome, resolved.message, resolved.resolved_by) == (
        WaitOutcome.REJECTED,
        "denied by bob: not this week",
        "user:bob",
    )
    assert h.condition("p")["message"] == (
        "0/1 nodes are available: 1 denied by bob: not this week."
    )


def test_a_decision_for_a_pod_that_no_longer_waits_is_told_so() -> None:
    h = approval([asking("p")])
    uid = uid_of(h, "p")
    h.cluster.delete("Pod", "default", "p")
    h.settle()
    h.decide(approve(uid))
    assert h.observer.decisions[-1][1:] == (False, "the pod no longer waits for a decision")


def test_a_decision_in_the_same_turn_as_the_deadline_wins() -> None:
    h = approval([asking("p")])
    h.clock.advance(900.0)
    h.decide(approve(uid_of(h, "p")))
    assert h.node_of("p") == "n0"


def restart(h: Harness, **more: Any) -> Harness:
    """A new scheduler on the same cluster, with the waits that were open."""
    open_waits = {w.pod.uid: w for w in h.observer.waiting}
    for ended in h.observer.resolved:
        open_waits.pop(ended.pod.uid, None)
    return Harness(
        cluster=h.cluster,
        clock=h.clock,
        profile={"plugins": {"permit": {"enabled": [{"name": "ManualApproval"}]}}},
        waiting=open_waits.values(),
        **more,
    )


def test_a_restart_puts_the_pod_back_on_its_node_with_its_old_deadline() -> None:
    h = approval([asking("p")])
    before = h.observer.waiting[0]
    h.clock.advance(100.0)
    again = restart(h)
    again.settle()
    (record,) = again.observer.waiting
    assert (record.node, record.since, record.deadline) == (
        before.node,
        before.since,
        before.deadline,
    )


def test_a_decision_taken_while_no_worker_ran_is_applied_after_the_restart() -> None:
    h = approval([asking("p")])
    again = restart(h)
    again.decisions.waiting.append(approve(uid_of(h, "p")))
    again.settle()
    assert again.node_of("p") == "n0"
    assert again.observer.decisions[0][1]


def test_a_restart_comes_before_other_pods_that_want_the_same_room() -> None:
    h = approval([asking("p").req(cpu="4")])
    never = {"preemptionPolicy": "Never"}  # they may not take the room by force
    h.create("PriorityClass", make_priority_class("high", 10).raw() | never)
    rivals = [make_pod(f"rival-{i}").req(cpu="4").raw() for i in range(2)]
    for rival in rivals:
        rival["spec"]["priorityClassName"] = "high"
    h.create("Pod", *rivals)
    again = restart(h)
    again.settle()
    assert again.waiting_names() == ["p"]


def test_a_pod_deleted_while_no_worker_ran_ends_its_wait() -> None:
    h = approval([asking("p")])
    h.cluster.delete("Pod", "default", "p")
    again = restart(h)
    again.settle()
    (resolved,) = again.observer.resolved
    assert (resolved.outcome, resolved.message) == (
        WaitOutcome.REMOVED,
        "the pod was deleted while no worker ran",
    )


def test_a_pod_whose_node_is_gone_ends_its_wait_and_is_scheduled_anew() -> None:
    h = approval([asking("p")])
    h.cluster.delete("Node", "", "n0")
    again = restart(h)
    again.settle()
    assert again.waiting_names() == ["p"]
    assert again.observer.waiting[-1].node == "n1"


def test_a_paused_scheduler_takes_no_pods_but_applies_decisions() -> None:
    h = approval([asking("p")])
    h.scheduler.pause()
    h.create("Pod", make_pod("later"))
    h.settle()
    assert h.node_of("later") == ""
    h.decide(approve(uid_of(h, "p")))
    assert h.node_of("p") == "n0"
    h.scheduler.resume()
    h.settle()
    assert h.node_of("later") != ""


def test_status_codes_have_the_references_names() -> None:
    assert [code.label for code in Code] == [
        "Success",
        "Error",
        "Unschedulable",
        "UnschedulableAndUnresolvable",
        "Wait",
        "Skip",
        "Pending",
    ]
    assert Status(Code.UNSCHEDULABLE, ("a", "b")).message == "a, b"


def test_a_plugin_that_registers_no_events_hears_of_all() -> None:
    told: dict[str, Any] = {"filter": unschedulable("not yet")}
    h, _ = one_spy(told)
    h.advance(11.0)
    assert h.node_of("p") == ""
    del told["filter"]
    h.create("Node", node("another"))
    h.settle()
    assert h.node_of("p") != ""


def test_a_pod_that_no_longer_fits_its_node_ends_its_wait_with_the_reason() -> None:
    h = approval([asking("p").req(cpu="3")])
    h.create("Pod", make_pod("intruder").req(cpu="3").node("n0"))
    again = restart(h)
    again.settle()
    (resolved,) = again.observer.resolved
    assert (resolved.outcome, resolved.message) == (
        WaitOutcome.REJECTED,
        "after a restart the pod no longer fits on n0: Insufficient cpu",
    )
    assert again.observer.waiting[-1].node == "n1"


def test_a_pod_that_need_not_wait_any_more_is_bound_and_its_wait_ends_as_allowed() -> None:
    h = approval([asking("p")])
    waits = list(h.observer.waiting)
    again = Harness(cluster=h.cluster, clock=h.clock, waiting=waits)
    again.settle()
    (resolved,) = again.observer.resolved
    assert (resolved.outcome, resolved.message) == (
        WaitOutcome.ALLOWED,
        "after a restart no plugin has the pod wait any more",
    )
    assert again.node_of("p") == "n0"


def test_waits_are_restored_while_paused_so_that_their_deadlines_count() -> None:
    h = approval([asking("p")])
    again = restart(h)
    again.scheduler.pause()
    again.settle()
    assert again.waiting_names() == ["p"]
    again.advance(901.0)
    assert again.observer.resolved[0].outcome is WaitOutcome.TIMED_OUT
