"""DefaultPreemption in a whole scheduler: who is evicted, how, and what users read."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.sandbox import ActingView, SandboxCluster
from scheduler_core.framework.events import ASSIGNED_POD_DELETE, NODE_ADD
from scheduler_core.framework.status import SKIP, SUCCESS, Status, wait
from scheduler_core.plugins.default_preemption import DefaultPreemption
from scheduler_core.ports import ApiError
from scheduler_core.records import Outcome, WaitOutcome
from scheduler_core.testing.builders import make_node, make_pod, make_priority_class
from scheduler_core.testing.harness import Harness
from tests.core.scheduler.fakes import enabled, make_spy
from tests.plugins.support import hint

LEVELS = {"low": 10, "middle": 50, "high": 100}
CLASSES = [make_priority_class(name, value) for name, value in LEVELS.items()]


def pod(name: str, level: str = "", cpu: int = 1, **labels: str) -> dict[str, Any]:
    """A pod without grace period: it is gone as soon as it is deleted."""
    raw = make_pod(name).req(cpu=str(cpu)).label(labels).raw()
    raw["spec"]["terminationGracePeriodSeconds"] = 0
    if level:
        raw["spec"]["priorityClassName"] = level
    return raw


def slow(raw: dict[str, Any]) -> dict[str, Any]:
    """The same pod; it takes its time to leave."""
    raw["spec"]["terminationGracePeriodSeconds"] = 30
    return raw


def world(*pods: dict[str, Any], nodes: int = 1, cpu: int = 4, **harness: Any) -> Harness:
    machines = [make_node(f"n{i}").capacity(cpu=str(cpu), pods="20") for i in range(nodes)]
    h = Harness(nodes=machines, objects={"PriorityClass": CLASSES}, pods=pods, **harness)
    h.settle()
    return h


def names(h: Harness) -> set[str]:
    return {p["metadata"]["name"] for p in h.cluster.list("Pod").items}


def status_of(h: Harness, name: str) -> dict[str, Any]:
    return dict(h.pod(name).get("status", {}))


class ManualExecutor:
    """Keeps tasks until the test runs them, in the order in which they came."""

    def __init__(self) -> None:
        self.tasks: list[tuple[str, Callable[[], None]]] = []

    def submit(self, key: str, task: Callable[[], None]) -> None:
        self.tasks.append((key, task))

    submit_quick = submit

    def run(self) -> None:
        while self.tasks:
            self.tasks.pop(0)[1]()

    def shutdown(self, wait: bool = True) -> None:
        self.run()


# -- what happens ----------------------------------------------------------------------------------


def test_a_pod_of_higher_priority_takes_the_room() -> None:
    h = world(pod("a", "low", 4))
    h.create("Pod", pod("boss", "high", 4))
    h.settle()
    first, last = h.cycles("boss")
    assert (first.outcome, first.nominated_node, first.victims) == (
        Outcome.UNSCHEDULABLE,
        "n0",
        ("default/a",),
    )
    assert last.outcome is Outcome.SCHEDULED
    assert h.node_of("boss") == "n0"
    assert names(h) == {"boss"}
    assert "nominatedNodeName" not in status_of(h, "boss")


def test_what_the_preemptor_and_its_victim_are_told() -> None:
    h = world(slow(pod("a", "low", 4)))
    h.create("Pod", pod("boss", "high", 4))
    h.settle()
    assert h.condition("boss")["message"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert status_of(h, "boss")["nominatedNodeName"] == "n0"
    (condition,) = [c for c in status_of(h, "a")["conditions"] if c["type"] == "DisruptionTarget"]
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "True",
        "PreemptionByScheduler",
        "default-scheduler: preempting to accommodate a higher priority pod",
    )
    assert h.pod("a")["metadata"]["deletionTimestamp"]
    (event,) = h.events("Preempted")
    uid = h.pod("boss")["metadata"]["uid"]
    assert (event["type"], event["action"], event["note"]) == (
        "Normal",
        "Preempting",
        f"Preempted by pod {uid} on node n0",
    )
    assert event["regarding"]["name"] == "a"


def test_while_a_victim_terminates_the_pod_waits_without_evicting_others() -> None:
    h = world(slow(pod("a", "low", 2)), pod("b", "low", 1), pod("c", "high", 1))
    h.create("Pod", pod("boss", "high", 2))
    h.settle()
    assert h.cycle("boss").victims == ("default/a",)
    h.cluster.delete("Pod", "default", "c")  # not enough, but boss is tried again
    h.advance(20)
    assert len(h.cycles("boss")) == 2
    assert h.cycle("boss").message.endswith(
        "preemption: not eligible due to a terminating pod on the nominated node."
    )
    assert status_of(h, "boss")["nominatedNodeName"] == "n0"
    h.cluster.delete("Pod", "default", "a", grace_period_seconds=0)
    h.settle()
    assert h.node_of("boss") == "n0"
    assert names(h) == {"b", "boss"}


def test_the_room_is_kept_from_pods_of_lower_priority() -> None:
    h = world(slow(pod("a", "low", 4)))
    h.create("Pod", pod("boss", "high", 4))
    h.settle()
    h.create("Pod", pod("small", "middle", 1))
    h.settle()
    h.cluster.delete("Pod", "default", "a", grace_period_seconds=0)
    h.advance(20)
    assert (h.node_of("boss"), h.node_of("small")) == ("n0", "")


def test_nominations_of_lower_priority_on_that_node_are_cleared() -> None:
    h = world(slow(pod("a", "low", 3)), slow(pod("b", "low", 1)))
    h.create("Pod", pod("first", "middle", 3))
    h.settle()
    assert status_of(h, "first")["nominatedNodeName"] == "n0"
    h.create("Pod", pod("boss", "high", 4))
    h.settle()
    assert status_of(h, "boss")["nominatedNodeName"] == "n0"
    assert "nominatedNodeName" not in status_of(h, "first")


def test_where_all_victims_are_leaving_already_nothing_is_sent() -> None:
    """Not even lower nominations are cleared, as in the reference."""
    h = world(slow(pod("a", "low", 4)))
    h.create("Pod", pod("first", "middle", 4))
    h.settle()
    h.create("Pod", pod("boss", "high", 4))
    h.settle()
    assert h.cycle("boss").victims == ("default/a",)
    assert status_of(h, "boss")["nominatedNodeName"] == "n0"
    assert status_of(h, "first")["nominatedNodeName"] == "n0"
    assert len(h.events("Preempted")) == 1


def test_a_pod_without_lower_ones_below_it_evicts_nobody() -> None:
    h = world(pod("a", "high", 4))
    h.create("Pod", pod("boss", "high", 4))
    h.settle()
    assert h.cycle("boss").message.endswith(
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )
    assert names(h) == {"a", "boss"}
    assert h.events("Preempted") == []


# -- how it happens --------------------------------------------------------------------------------


class FailingCluster(ActingView):
    """The sandbox, but for deletions of pods that are told to fail."""

    def __init__(self, cluster: SandboxCluster, *unwilling: str) -> None:
        super().__init__(cluster, "kube-scheduler")
        self.unwilling = set(unwilling)

    def delete(self, kind: str, namespace: str, name: str, **options: Any) -> None:
        if name in self.unwilling:
            raise ApiError(500, "InternalError", f"{name} does not want to")
        super().delete(kind, namespace, name, **options)


def crowd(executor: ManualExecutor, *levels: str) -> Harness:
    """Four pods on one node, bound; what is submitted from now on waits for the test."""
    clock = VirtualClock(1_000_000.0)
    h = Harness(
        nodes=[make_node("n0").capacity(cpu="4", pods="20")],
        objects={"PriorityClass": CLASSES},
        pods=[slow(pod(f"p{i}", level)) for i, level in enumerate(levels)],
        executor=executor,
        clock=clock,
        cluster=SandboxCluster(clock),
    )
    run(h, executor)
    return h


def run(h: Harness, executor: ManualExecutor) -> None:
    """Turns and tasks until nothing is left of either."""
    while True:
        h.settle()
        if not executor.tasks:
            return
        executor.run()


def leaving(h: Harness) -> set[str]:
    return {
        p["metadata"]["name"]
        for p in h.cluster.list("Pod").items
        if p["metadata"].get("deletionTimestamp")
    }


def test_all_victims_but_one_are_evicted_at_once_and_then_the_last() -> None:
    executor = ManualExecutor()
    h = crowd(executor, "low", "low", "low", "low")
    h.create("Pod", pod("boss", "high", 4))
    h.settle()
    assert leaving(h) == set(), "the loop does not wait for the API"
    victims = [key.removeprefix("default/") for key in h.cycle("boss").victims]
    executor.run()
    assert leaving(h) == set(victims[:-1])
    h.settle()
    executor.run()
    assert leaving(h) == set(victims)


def test_the_preemptor_is_held_until_the_last_eviction() -> None:
    executor = ManualExecutor()
    h = crowd(executor, "low", "low", "low", "low")
    h.create("Pod", pod("boss", "high", 4))
    h.settle()
    plugin = h.scheduler.profiles["default-scheduler"].plugin("DefaultPreemption")
    assert isinstance(plugin, DefaultPreemption)
    boss = h.scheduler.informers.informer("Pod").get("default/boss")
    assert boss is not None
    held = plugin.pre_enqueue(boss)
    assert (held.code.label, held.message) == (
        "UnschedulableAndUnresolvable",
        "waiting for the preemption for this pod to be finished",
    )
    # One victim vanishes early: boss would be tried again, but is gated.
    first = h.cycle("boss").victims[0].removeprefix("default/")
    h.cluster.delete("Pod", "default", first, grace_period_seconds=0)
    h.advance(15)
    assert h.scheduler.queue.place_of("default/boss") == "gated"
    # All but the last are evicted; the gate now looks at that one alone.
    executor.run()
    h.settle()
    assert h.scheduler.queue.place_of("default/boss") == "gated"
    executor.run()
    assert plugin.pre_enqueue(boss) == held, "its deletion has not been seen yet"
    h.settle()
    assert plugin.pre_enqueue(boss) == SUCCESS
    for name in leaving(h):
        h.cluster.delete("Pod", "default", name, grace_period_seconds=0)
    h.advance(15)
    run(h, executor)
    assert h.node_of("boss") == "n0"


def test_a_failed_eviction_spares_the_last_victim_and_has_the_pod_tried_again() -> None:
    clock = VirtualClock(1_000_000.0)
    sandbox = SandboxCluster(clock)
    cluster = FailingCluster(sandbox)
    machines = [make_node("n0").capacity(cpu="2", pods="20")]
    h = Harness(
        nodes=machines,
        objects={"PriorityClass": CLASSES},
        pods=[pod("a", "low"), pod("b", "low")],
        clock=clock,
        cluster=cluster,  # type: ignore[arg-type]  # all that a scheduler needs of it
    )
    h.settle()
    cluster.unwilling = {"a", "b"}
    h.create("Pod", pod("boss", "high", 2))
    for _ in range(4):  # without end as long as the API refuses; each attempt ends well
        h.scheduler.run_once()
    _, last = h.cycles("boss")[0].victims
    assert "deletionTimestamp" not in h.pod(last.removeprefix("default/"))["metadata"]
    assert {c["type"] for c in status_of(h, last.removeprefix("default/"))["conditions"]} == {
        "PodScheduled"
    }, "the last one is not even told"
    cluster.unwilling = set()
    h.settle()
    h.advance(15)
    assert len(h.cycles("boss")) > 1
    assert h.node_of("boss") == "n0"


def test_a_victim_that_has_left_by_itself_is_no_failure() -> None:
    executor = ManualExecutor()
    h = crowd(executor, "low", "low", "low", "low")
    h.create("Pod", pod("boss", "high", 4))
    h.settle()
    for i in range(4):
        h.cluster.delete("Pod", "default", f"p{i}", grace_period_seconds=0)
    run(h, executor)
    h.advance(15)
    run(h, executor)
    assert h.node_of("boss") == "n0"
    assert h.events("Preempted") == []


def test_a_pod_that_waits_at_permit_loses_its_turn_but_is_not_deleted() -> None:
    parked = make_spy("Parked", [], {}, points=())

    class Park(parked):  # type: ignore[misc, valid-type]
        name = "Park"

        def permit(self, state: Any, pod: Any, node_name: str) -> tuple[Status, float]:
            return (wait("not yet"), 600.0) if pod.name == "a" else (SUCCESS, 0.0)

    h = world(pod("a", "low", 4), profile=enabled(permit=["Park"]), plugins=[Park])
    assert h.waiting_names() == ["a"]
    h.create("Pod", pod("boss", "high", 4))
    h.settle()
    h.advance(3)
    assert h.node_of("boss") == "n0"
    assert "a" in names(h)
    assert "deletionTimestamp" not in h.pod("a")["metadata"]
    (resolved,) = [r for r in h.observer.resolved if r.pod.name == "a"][:1]
    assert (resolved.outcome, resolved.message) == (WaitOutcome.PREEMPTED, "preempted")
    (event,) = h.events("Preempted")
    assert event["note"].endswith(" on node n0 (in kube-scheduler memory).")


def test_a_pod_in_pre_bind_is_cancelled_instead_of_deleted() -> None:
    """Whoever waits in PreBind asks whether it still should, and the binding fails."""
    moments: list[Callable[[], None]] = []

    class Waiting(make_spy("Waiting", [], {}, points=())):  # type: ignore[misc]
        name = "Waiting"

        def pre_bind_pre_flight(self, state: Any, pod: Any, node_name: str) -> Status:
            return SUCCESS if pod.name == "a" else SKIP

        def pre_bind(self, state: Any, pod: Any, node_name: str) -> Status:
            while moments:
                moments.pop(0)()
            asked.append(self.handle.is_pre_bind_cancelled(pod.uid))
            return SUCCESS

    asked: list[bool] = []
    executor = ManualExecutor()
    h = Harness(
        nodes=[make_node("n0").capacity(cpu="4", pods="20")],
        objects={"PriorityClass": CLASSES},
        pods=[pod("a", "low", 4)],
        profile=enabled(preBind=["Waiting"]),
        plugins=[Waiting],
        executor=executor,
    )

    def boss_comes() -> None:
        h.create("Pod", pod("boss", "high", 4))
        h.scheduler.run_once()
        h.scheduler.run_once()

    h.settle()
    moments.append(boss_comes)
    run(h, executor)
    assert asked[0] is True
    bindings = [b for b in h.observer.bindings if b.pod.name == "a"]
    assert (bindings[0].bound, bindings[0].message) == (False, "preempted by DefaultPreemption")
    h.advance(3)
    run(h, executor)
    assert h.node_of("boss") == "n0"
    assert "a" in names(h)
    assert h.node_of("a") == ""


# -- events ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "answer"),
    [
        pytest.param(ASSIGNED_POD_DELETE, "Skip", id="a pod is deleted: others decide"),
        pytest.param(NODE_ADD, "Unregistered", id="a node is added"),
    ],
)
def test_hints(event: Any, answer: str) -> None:
    plugin = world().scheduler.profiles["default-scheduler"].plugin("DefaultPreemption")
    assert isinstance(plugin, DefaultPreemption)
    gone = make_pod("gone").node("n0").obj()
    assert hint(plugin, event, make_pod("boss").obj(), old=gone) == answer


# -- always ----------------------------------------------------------------------------------------

PODS = st.tuples(st.sampled_from(["", *LEVELS]), st.integers(1, 4), st.integers(0, 2))


@settings(max_examples=40, deadline=None)
@given(st.lists(PODS, min_size=1, max_size=14), st.integers(1, 3), st.integers(0, 3))
def test_nobody_of_equal_or_higher_priority_is_ever_evicted(
    pods: list[tuple[str, int, int]], nodes: int, allowed: int
) -> None:
    """Whatever comes in whatever order: victims are less important than whom they make room for,
    nodes are not overcommitted, and in the end nobody waits for room that somebody less important
    has and that would do."""
    h = world(nodes=nodes, cpu=4)
    h.create(
        "PodDisruptionBudget",
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "budget", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"group": "0"}}},
            "status": {"disruptionsAllowed": allowed},
        },
    )
    priority: dict[str, int] = {}
    for number, (level, cpu, group) in enumerate(pods):
        name = f"p{number:02}"
        priority[f"default/{name}"] = LEVELS.get(level, 0)
        h.create("Pod", pod(name, level, cpu, group=str(group)))
        h.settle()
    h.advance(30)
    for cycle in h.observer.cycles:
        assert all(priority[victim] < cycle.priority for victim in cycle.victims)
    bound = [p for p in h.cluster.list("Pod").items if p["spec"].get("nodeName")]
    for node, here in itertools.groupby(
        sorted(bound, key=lambda p: p["spec"]["nodeName"]), key=lambda p: p["spec"]["nodeName"]
    ):
        used = sum(int(p["spec"]["containers"][0]["resources"]["requests"]["cpu"]) for p in here)
        assert used <= 4, node
    for waiting in (p for p in h.cluster.list("Pod").items if not p["spec"].get("nodeName")):
        message = h.cycle(waiting["metadata"]["name"]).message
        assert "No preemption victims found" in message or "Insufficient cpu" in message
