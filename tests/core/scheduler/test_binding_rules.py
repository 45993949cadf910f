"""Activation, and the rules of Reserve, Permit and the binding cycle (kube-scheduler 1.36) that
test_cycle.py does not hold: order, what is left out, who hears of what, what is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.sandbox import ActingView, SandboxCluster
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from scheduler_core.framework.interface import (
    EnqueueExtensions,
    FilterPlugin,
    PreBindPlugin,
    ReservePlugin,
)
from scheduler_core.framework.status import SKIP, SUCCESS, error, unschedulable, wait
from scheduler_core.ports import ApiError
from scheduler_core.testing.builders import make_node, make_pod
from scheduler_core.testing.harness import Harness
from tests.core.scheduler.fakes import enabled, make_spy


def spies(log: list[str], **behaviours: dict[str, Any]) -> list[type]:
    return [make_spy(name, log, behaviour) for name, behaviour in behaviours.items()]


def run(log: list[str], profile: Any = None, **behaviours: dict[str, Any]) -> Harness:
    """One pod, one node, and plugins that do as they are told."""
    h = Harness(
        nodes=[make_node("n")],
        pods=[make_pod("p")],
        profile=profile or enabled(*behaviours),
        plugins=spies(log, **behaviours),
    )
    h.settle()
    return h


def calls(log: list[str], point: str) -> list[str]:
    return [entry.split(".")[0] for entry in log if entry.endswith(f".{point}")]


# -- Permit ----------------------------------------------------------------------------------------


def test_permit_goes_on_after_a_wait() -> None:
    log: list[str] = []
    h = run(log, A={"permit": (wait(), 60.0)}, B={"permit": (wait(), 30.0)}, C={})
    assert calls(log, "permit") == ["A", "B", "C"]
    (waiting,) = h.scheduler.waiting_pods
    assert list(waiting.pending_plugins) == ["A", "B"]


def test_permit_stops_at_a_rejection_also_after_a_wait() -> None:
    log: list[str] = []
    h = run(log, A={"permit": (wait(), 60.0)}, B={"permit": (unschedulable("no"), 0.0)}, C={})
    assert calls(log, "permit")[:2] == ["A", "B"]
    assert "C" not in calls(log, "permit")
    assert h.waiting_names() == []
    assert calls(log, "unreserve")[:3] == ["C", "B", "A"]


def test_a_waiting_pod_that_a_plugin_turns_down_is_unschedulable_by_that_plugin() -> None:
    spy = make_spy("A", [], {"permit": (wait(), 60.0)})
    # It registers no event, so that nothing wakes the pod again.
    quiet = type("Quiet", (EnqueueExtensions, spy), {"events_to_register": lambda self: ()})
    h = Harness(nodes=[make_node("n")], pods=[make_pod("p")], profile=enabled("A"), plugins=[quiet])
    h.settle()
    (waiting,) = h.scheduler.waiting_pods
    waiting.reject("A", "changed my mind")
    h.settle()
    assert nominated(h) == "", "a failure clears it"
    condition = h.condition("p")
    assert (condition["reason"], condition["message"]) == (
        "Unschedulable",
        "0/1 nodes are available: 1 changed my mind.",
    )
    info = h.scheduler.queue.get("default/p")
    assert info is not None and info.unschedulable_plugins == {"A"}


# -- nominatedNodeName -----------------------------------------------------------------------------


def nominated(h: Harness) -> str:
    return str(h.pod("p").get("status", {}).get("nominatedNodeName", ""))


class Patches(ActingView):
    """Notes the nominations that are written; refuses them if told to."""

    def __init__(self, cluster: SandboxCluster, refuses: bool = False) -> None:
        super().__init__(cluster, "test")
        self.nominations: list[str] = []
        self.refuses = refuses

    def patch_pod_status(self, *args: Any, **how: Any) -> None:
        name = how.get("nominated_node_name")
        if name is not None:
            self.nominations.append(name)
            if self.refuses:
                raise ApiError(503, "ServiceUnavailable", "not now")
        super().patch_pod_status(*args, **how)


def test_a_pod_that_waits_is_nominated() -> None:
    assert nominated(run([], A={"permit": (wait(), 60.0)})) == "n"


@pytest.mark.parametrize(
    "behaviour, written",
    [
        pytest.param({"pre_bind_pre_flight": SUCCESS}, ["n"], id="PreBind has work"),
        pytest.param({"pre_bind_pre_flight": SKIP}, [], id="plain pods are not touched"),
        pytest.param({"permit": (wait(), 60.0)}, ["n"], id="the pod waits on Permit"),
        pytest.param(
            {"pre_bind_pre_flight": SUCCESS, "pre_bind": error("lost")},
            ["n", ""],
            id="a failed binding clears it",
        ),
    ],
)
def test_what_nominates_a_pod_on_its_way(behaviour: dict[str, Any], written: list[str]) -> None:
    clock = VirtualClock(1_000.0)
    cluster = Patches(SandboxCluster(clock))
    h = Harness(
        nodes=[make_node("n")],
        pods=[make_pod("p")],
        cluster=cluster,  # type: ignore[arg-type]  # what the harness asks of it is there
        clock=clock,
        profile=enabled("A"),
        plugins=spies([], A=behaviour),
    )
    for _ in range(20):
        h.scheduler.run_once()
        if h.observer.bindings or h.waiting_names():
            break
    assert cluster.nominations[: len(written)] == written
    assert bool(cluster.nominations) is bool(written)


def test_a_nomination_that_cannot_be_written_stops_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = VirtualClock(1_000.0)
    cluster = Patches(SandboxCluster(clock), refuses=True)
    h = Harness(
        nodes=[make_node("n")],
        pods=[make_pod("p")],
        cluster=cluster,  # type: ignore[arg-type]
        clock=clock,
        profile=enabled("A"),
        plugins=spies([], A={"pre_bind_pre_flight": SUCCESS}),
    )
    h.settle()
    assert cluster.nominations == ["n"]
    assert h.node_of("p") == "n"


# -- PreBind and Bind ------------------------------------------------------------------------------


def test_pre_bind_leaves_out_who_has_nothing_to_do() -> None:
    log: list[str] = []
    run(
        log,
        A={"pre_bind_pre_flight": SUCCESS},
        B={"pre_bind_pre_flight": SKIP},
        C={"pre_bind_pre_flight": SUCCESS},
    )
    assert calls(log, "pre_bind_pre_flight") == ["A", "B", "C"]
    assert calls(log, "pre_bind") == ["A", "C"]


def test_a_pre_flight_that_rejects_is_an_error_too() -> None:
    h = run([], A={"pre_bind_pre_flight": unschedulable("not here")})
    text = 'running PreBindPreFlight plugin "A": not here'
    assert (h.condition("p")["reason"], h.condition("p")["message"]) == ("SchedulerError", text)


def binders(*names: str) -> dict[str, Any]:
    return {
        "plugins": {
            "multiPoint": {"enabled": [{"name": name} for name in names]},
            "bind": {
                "disabled": [{"name": "*"}],
                "enabled": [{"name": name} for name in (*names, "DefaultBinder")],
            },
        }
    }


def test_bind_plugins_are_asked_until_one_does_not_skip() -> None:
    log: list[str] = []
    h = run(log, binders("A", "B", "C"), A={"bind": SKIP}, B={"bind": SUCCESS}, C={})
    assert calls(log, "bind") == ["A", "B"]
    assert h.node_of("p") == "", "B only said so; DefaultBinder was not asked"
    assert calls(log, "post_bind") == ["A", "B", "C"]
    assert [e["note"] for e in h.events("Scheduled")] == ["Successfully assigned default/p to n"]


def test_a_failed_binding_goes_to_error_backoff() -> None:
    h = run([], binders("A"), A={"bind": error("refused")})
    info = h.scheduler.queue.get("default/p")
    assert info is not None
    assert (info.consecutive_errors, info.unschedulable_plugins) == (1, set())
    assert h.scheduler.queue.place_of("default/p") == "backoff"


class Remembers(PreBindPlugin):
    """Looks whether the pod is still in flight when PreBind begins."""

    name = "Remembers"
    seen: list[bool]

    def __init__(self, args: Any, handle: Any) -> None: ...

    def pre_bind_pre_flight(self, state: CycleState, pod: Any, node_name: str) -> Any:
        return SUCCESS

    def pre_bind(self, state: CycleState, pod: Any, node_name: str) -> Any:
        self.seen.append(self.queue.is_in_flight(pod.uid))  # type: ignore[attr-defined]
        return SUCCESS


def test_events_after_permit_are_not_kept_for_the_pod() -> None:
    h = Harness(nodes=[make_node("n")], profile=enabled("Remembers"), plugins=[Remembers])
    Remembers.seen, Remembers.queue = [], h.scheduler.queue  # type: ignore[attr-defined]
    h.schedule(make_pod("p"))
    assert Remembers.seen == [False]


# -- who hears of a node that is given back --------------------------------------------------------


class Room(EnqueueExtensions, FilterPlugin, ReservePlugin):
    """One pod a node, by reservation; hears of pods that leave, and keeps what it heard."""

    name = "Room"
    heard: list[tuple[str, str]]
    refuses: Any = SUCCESS

    def __init__(self, args: Any, handle: Any) -> None:
        self.taken = ""

    def filter(self, state: CycleState, pod: Any, node_info: Any) -> Any:
        return SUCCESS if self.taken in ("", pod.name) else unschedulable("taken")

    def reserve(self, state: CycleState, pod: Any, node_name: str) -> Any:
        self.taken = self.taken or pod.name
        return Room.refuses if pod.name == "first" else SUCCESS

    def unreserve(self, state: CycleState, pod: Any, node_name: str) -> None:
        if self.taken == pod.name:
            self.taken = ""

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        def hint(pod: Any, old: Any, new: Any) -> QueueingHint:
            Room.heard.append((pod.name, old.name))
            return QueueingHint.SKIP

        gone = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
        return [ClusterEventWithHint(gone, hint)]


@pytest.mark.parametrize(
    "refusal, heard",
    [
        pytest.param(unschedulable("no"), [("other", "first")], id="a rejected pod is left out"),
        pytest.param(error("disk"), [("other", "first")], id="an errored pod has no plugin to ask"),
    ],
)
def test_others_hear_of_the_room_and_the_pod_that_failed_does_not(
    refusal: Any, heard: list[tuple[str, str]]
) -> None:
    Room.heard, Room.refuses = [], refusal
    h = Harness(nodes=[make_node("n")], profile=enabled("Room"), plugins=[Room])
    plugin: Any = h.scheduler.profiles["default-scheduler"].plugin("Room")
    plugin.taken = "somebody"
    h.create("Pod", make_pod("other"))
    h.settle()
    plugin.taken = ""
    h.create("Pod", make_pod("first"))
    h.scheduler.run_once()
    h.scheduler.run_once()
    assert Room.heard[:1] == heard
    assert ("first", "first") not in Room.heard


# -- pods to activate ------------------------------------------------------------------------------


class Wakes(ReservePlugin, PreBindPlugin):
    """Wants "sleeper" to be tried again, after one of the two cycles of the pod "p"."""

    name = "Wakes"
    when = ""

    def __init__(self, args: Any, handle: Any) -> None:
        self._pods = handle.informer("Pod")

    def reserve(self, state: CycleState, pod: Any, node_name: str) -> Any:
        return self._wake("scheduling", state, pod)

    def unreserve(self, state: CycleState, pod: Any, node_name: str) -> None: ...

    def pre_bind_pre_flight(self, state: CycleState, pod: Any, node_name: str) -> Any:
        return SUCCESS

    def pre_bind(self, state: CycleState, pod: Any, node_name: str) -> Any:
        return self._wake("binding", state, pod)

    def _wake(self, where: str, state: CycleState, pod: Any) -> Any:
        if pod.name == "p" and where == Wakes.when.split()[0]:
            state.pods_to_activate["default/sleeper"] = self._pods.get("default/sleeper")
        return error("failed") if "fails" in Wakes.when and pod.name == "p" else SUCCESS


@pytest.mark.parametrize(
    "when, attempts",
    [
        pytest.param("scheduling", 2, id="after a successful scheduling cycle"),
        pytest.param("binding", 2, id="after a successful binding cycle"),
        pytest.param("never", 1, id="nobody asked for it"),
        pytest.param("scheduling fails", 1, id="not after a failed scheduling cycle"),
    ],
)
def test_pods_that_plugins_want_to_be_activated(when: str, attempts: int) -> None:
    Wakes.when = when
    h = Harness(
        nodes=[make_node("n")],
        profile=enabled("Wakes"),
        plugins=[Wakes],
    )
    h.schedule(make_pod("sleeper").node_selector(disk="ssd"))
    h.advance(30)
    assert len(h.cycles("sleeper")) == 1
    h.schedule(make_pod("p"))
    assert len(h.cycles("sleeper")) == attempts
