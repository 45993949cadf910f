"""Eligibility, candidates, victims and the words for it, one node or a few at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scheduler_core.api import Node, Pod, PodDisruptionBudget
from scheduler_core.clock import VirtualClock
from scheduler_core.config import configuration_from
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.interface import Handle
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.preemption import Evaluator, Preemption
from scheduler_core.framework.status import Code, Status
from scheduler_core.framework.types import Candidate, NominatingInfo
from scheduler_core.library import StandaloneFramework, framework_for
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.testing.builders import make_node, make_pod

IN_VAIN = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"


def node(name: str = "n1", cpu: int = 4) -> Node:
    return make_node(name).capacity(cpu=str(cpu), memory="32Gi", pods="110").obj()


def on(node_name: str, name: str, cpu: int = 1, priority: int = 0, **labels: str) -> Any:
    builder = make_pod(name).req(cpu=str(cpu)).priority(priority).node(node_name).started(1_000)
    return builder.label(labels) if labels else builder


def preemptor(cpu: int = 4, priority: int = 100) -> Any:
    return make_pod("preemptor").req(cpu=str(cpu)).priority(priority)


def budget(allowed: int, **labels: str) -> PodDisruptionBudget:
    return PodDisruptionBudget.from_dict(
        {
            "metadata": {"name": "budget", "namespace": "default"},
            "spec": {"selector": {"matchLabels": labels}},
            "status": {"disruptionsAllowed": allowed},
        }
    )


class World:
    """A cluster, an Evaluator that looks at it, and the pod that wants in."""

    def __init__(
        self,
        nodes: list[Node],
        pods: list[Any],
        pod: Pod,
        *objects: Any,
        wanted: int = 100,
        offset: int = 0,
        profile: Mapping[str, Any] | None = None,
    ) -> None:
        config = configuration_from(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [{"schedulerName": "default-scheduler", **(profile or {})}],
            },
            in_tree_registry(),
        )
        self.pod = pod
        placed = [p.obj() for p in pods]
        self.cluster: StandaloneFramework = framework_for(
            nodes, [*placed, pod], objects, config=config, clock=VirtualClock(5_000.0)
        )
        self.handle: Handle = self.cluster.framework
        self.evaluator = Evaluator(self.handle, lambda n: min(n, wanted), lambda n: offset % n)

    def preempt(self, evaluator: Evaluator | None = None) -> Preemption:
        state = CycleState()
        result = self.cluster.schedule(self.pod, state)
        assert result.fit_error is not None
        statuses = result.fit_error.diagnosis.node_statuses
        assert isinstance(statuses, NodeStatuses)
        assert not result.status.is_success, "the pod was to fit nowhere"
        return (evaluator or self.evaluator).preempt(state, self.pod, statuses)


def victims(preemption: Preemption) -> dict[str, list[str]]:
    return {c.node: [victim.name for victim in c.victims] for c in preemption.candidates}


# -- may it? ---------------------------------------------------------------------------------------

DISRUPTED = ("DisruptionTarget", "True", "PreemptionByScheduler")


@pytest.mark.parametrize(
    ("pod", "running", "message"),
    [
        pytest.param(
            preemptor().preemption_policy("Never"),
            on("n1", "low", 4),
            "not eligible due to preemptionPolicy=Never.",
            id="preemptionPolicy Never",
        ),
        pytest.param(
            preemptor().nominated("n1"),
            on("n1", "low", 4).terminating().condition(*DISRUPTED),
            "not eligible due to a terminating pod on the nominated node.",
            id="its victim is still terminating",
        ),
        pytest.param(
            preemptor().nominated("n1"),
            on("n1", "low", 4).terminating(),
            "",
            id="a pod that terminates for another reason does not count",
        ),
        pytest.param(
            preemptor().nominated("n1"),
            on("n1", "low", 4).condition(*DISRUPTED),
            "",
            id="nor one that does not terminate",
        ),
        pytest.param(
            preemptor().nominated("n1"),
            on("n1", "low", 4).terminating().condition("DisruptionTarget", "True", "Eviction"),
            "",
            id="nor one that somebody else evicts",
        ),
        pytest.param(
            preemptor().nominated("gone"),
            on("n1", "low", 4).terminating().condition(*DISRUPTED),
            "",
            id="the nominated node is gone",
        ),
        pytest.param(
            preemptor().nominated("n2"),
            on("n1", "low", 4).terminating().condition(*DISRUPTED),
            "",
            id="the victim is on another node",
        ),
        pytest.param(preemptor(), on("n1", "low", 4), "", id="no nomination"),
    ],
)
def test_who_may_preempt(pod: Any, running: Any, message: str) -> None:
    preemption = World([node("n1"), node("n2", 1)], [running], pod.obj()).preempt()
    if message:
        assert preemption.status == Status(Code.UNSCHEDULABLE, (message,))
        assert preemption.nominating == NominatingInfo(), "the nomination is left alone"
    else:
        assert preemption.status.is_success
        assert preemption.nominating == NominatingInfo("n1", override=True)


def test_a_nominated_node_that_is_hopeless_now_does_not_hold_the_pod_back() -> None:
    tainted = make_node("n1").capacity(cpu="4", pods="10").taint("k", "v", "NoSchedule").obj()
    leaving = on("n1", "leaving", 4).terminating().condition(*DISRUPTED)
    world = World(
        [tainted, node("n2")], [leaving, on("n2", "low", 4)], preemptor().nominated("n1").obj()
    )
    assert victims(world.preempt()) == {"n2": ["low"]}


def test_a_pod_that_has_gone_meanwhile_is_an_error() -> None:
    world = World([node()], [on("n1", "low", 4)], preemptor().obj())
    world.cluster.remove(world.pod)
    preemption = world.preempt()
    assert preemption.status == Status(Code.ERROR, ('pod "preemptor" not found',))


# -- where? ----------------------------------------------------------------------------------------


def words(*parts: str, nodes: int = 1) -> str:
    return f"0/{nodes} nodes are available: {', '.join(parts)}."


@pytest.mark.parametrize(
    ("nodes", "running", "message"),
    [
        pytest.param([node(cpu=2)], [], words(f"1 {IN_VAIN}"), id="it would not fit an empty node"),
        pytest.param(
            [node()],
            [on("n1", "same", 4, 100)],
            words(f"1 {NO_VICTIMS}"),
            id="equal priority is no victim",
        ),
        pytest.param(
            [node()],
            [on("n1", "high", 4, 101)],
            words(f"1 {NO_VICTIMS}"),
            id="nor is higher priority",
        ),
        pytest.param(
            [node()],
            [on("n1", "low", 2), on("n1", "high", 1, 200)],
            words("1 Insufficient cpu"),
            id="evicting all of lower priority is not enough",
        ),
        pytest.param(
            [node("n1"), node("n2", 1), node("n3")],
            [on("n1", "low", 3), on("n1", "high", 1, 200), on("n3", "same", 4, 100)],
            words("1 Insufficient cpu", f"1 {NO_VICTIMS}", f"1 {IN_VAIN}", nodes=3),
            id="each node says why",
        ),
    ],
)
def test_nowhere(nodes: list[Node], running: list[Any], message: str) -> None:
    preemption = World(nodes, running, preemptor().obj()).preempt()
    assert preemption.status == Status(Code.UNSCHEDULABLE, (message,))
    assert preemption.nominating == NominatingInfo("", override=True), "an old nomination is void"
    assert preemption.candidates == ()


@pytest.mark.parametrize(
    ("running", "cpu", "expected"),
    [
        pytest.param(
            [on("n1", "a", 2, 1), on("n1", "b", 2, 2)], 2, ["a"], id="the less important one goes"
        ),
        pytest.param(
            [on("n1", "a", 1, 1), on("n1", "b", 3, 2)], 3, ["b"], id="who goes must make the room"
        ),
        pytest.param(
            [on("n1", "old", 2).started(100), on("n1", "young", 2).started(200)],
            2,
            ["young"],
            id="the longer running one stays",
        ),
        pytest.param(
            [on("n1", "a", 1, 3), on("n1", "b", 1, 2), on("n1", "c", 1, 1), on("n1", "d", 1)],
            3,
            ["b", "c", "d"],
            id="most important victim first",
        ),
        pytest.param(
            [on("n1", "a", 2).terminating(), on("n1", "b", 2, 1)],
            2,
            ["a"],
            id="a terminating pod is a victim like others",
        ),
    ],
)
def test_victims(running: list[Any], cpu: int, expected: list[str]) -> None:
    preemption = World([node()], running, preemptor(cpu).obj()).preempt()
    assert victims(preemption) == {"n1": expected}


def test_pods_that_have_not_started_are_put_back_in_reverse_order() -> None:
    pods = [make_pod(f"p{i}").req(cpu="1").node("n1") for i in range(4)]
    preemption = World([node()], pods, preemptor(2).obj()).preempt()
    assert victims(preemption) == {"n1": ["p1", "p0"]}


def test_a_budget_goes_to_the_most_important_and_the_others_are_reprieved_first() -> None:
    """Recorded of the reference: v0 (the oldest) of four is evicted, although one may go."""
    pods = [on("n1", f"v{i}", 1, app="web").started(1_000 + i) for i in range(4)]
    world = World([node()], pods, preemptor(1).obj(), budget(1, app="web"))
    preemption = world.preempt()
    assert victims(preemption) == {"n1": ["v0"]}
    assert preemption.candidates[0].pdb_violations == 0


def test_broken_budgets_are_counted_and_victims_sorted_again() -> None:
    pods = [on("n1", "plain", 2, 5), on("n1", "web", 2, 1, app="web")]
    world = World([node()], pods, preemptor(4).obj(), budget(0, app="web"))
    (candidate,) = world.preempt().candidates
    assert [victim.name for victim in candidate.victims] == ["plain", "web"]
    assert candidate.pdb_violations == 1


def test_a_node_without_broken_budgets_is_chosen_over_a_less_important_victim() -> None:
    world = World(
        [node("n1"), node("n2")],
        [on("n1", "web", 4, 0, app="web"), on("n2", "plain", 4, 50)],
        preemptor().obj(),
        budget(0, app="web"),
    )
    preemption = world.preempt()
    assert [c.node for c in preemption.candidates] == ["n2", "n1"], "sound candidates come first"
    assert preemption.nominating.node_name == "n2"


def test_pods_nominated_to_the_node_are_counted_in() -> None:
    """Their room is not free, whoever leaves."""
    rival = make_pod("rival").req(cpu="2").priority(100).nominated("n1").obj()
    world = World([node()], [on("n1", "low", 4)], preemptor(4).obj(), rival)
    assert world.preempt().status.reasons == (words("1 Insufficient cpu"),)
    world = World([node()], [on("n1", "low", 4)], preemptor(2).obj(), rival)
    assert victims(world.preempt()) == {"n1": ["low"]}


def test_a_nominated_pod_of_lower_priority_is_not_counted_in() -> None:
    rival = make_pod("rival").req(cpu="4").priority(99).nominated("n1").obj()
    world = World([node()], [on("n1", "low", 4)], preemptor(4).obj(), rival)
    assert victims(world.preempt()) == {"n1": ["low"]}


# -- how many? -------------------------------------------------------------------------------------


def ten_nodes(**options: Any) -> World:
    nodes = [node(f"n{i}") for i in range(10)]
    pods = [on(f"n{i}", f"p{i}", 4, i) for i in range(10)]
    return World(nodes, pods, preemptor().obj(), **options)


def test_the_search_begins_at_the_offset_and_ends_with_enough() -> None:
    assert list(victims(ten_nodes(wanted=3, offset=8).preempt())) == ["n8", "n9", "n0"]


def test_all_are_found_where_that_is_not_too_many() -> None:
    assert len(ten_nodes().preempt().candidates) == 10


def test_with_broken_budgets_alone_the_search_goes_on_to_the_end() -> None:
    """Enough of them do not end it; each kind is kept up to the number that is wanted."""
    nodes = [node(f"n{i}") for i in range(6)]
    pods = [on(f"n{i}", f"p{i}", 4, app="web" if i < 5 else "other") for i in range(6)]
    world = World(nodes, pods, preemptor().obj(), budget(0, app="web"), wanted=2)
    assert list(victims(world.preempt())) == ["n5", "n0", "n1"]


# -- extenders -------------------------------------------------------------------------------------


class FakeExtender:
    """Leaves what it is told to leave."""

    def __init__(self, answer: Any, ignorable: bool = False, interested: bool = True) -> None:
        self._answer, self.is_ignorable, self._interested = answer, ignorable, interested
        self.asked: list[list[str]] = []

    def is_interested(self, pod: Pod) -> bool:
        return self._interested

    def process_preemption(
        self, pod: Pod, candidates: Mapping[str, Candidate], nodes: Any
    ) -> Mapping[str, Candidate]:
        self.asked.append(sorted(candidates))
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer(candidates)  # type: ignore[no-any-return]


def keep(*names: str) -> Any:
    return lambda candidates: {name: candidates[name] for name in names}


def no_victims(candidates: Mapping[str, Candidate]) -> Mapping[str, Candidate]:
    return {**candidates, "n0": Candidate("n0", ())}


class WithExtenders:
    """A handle whose profile has extenders with a preempt verb."""

    def __init__(self, handle: Handle, *extenders: FakeExtender) -> None:
        self._handle, self.preemption_extenders = handle, extenders

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handle, name)


def ask(*extenders: FakeExtender) -> Preemption:
    world = ten_nodes()
    handle: Any = WithExtenders(world.handle, *extenders)
    return world.preempt(Evaluator(handle, lambda n: n, lambda n: 0))


def test_an_extender_narrows_the_choice() -> None:
    assert ask(FakeExtender(keep("n4", "n7"))).nominating.node_name == "n4"


def test_extenders_are_asked_one_after_another() -> None:
    second = FakeExtender(keep("n7"))
    assert ask(FakeExtender(keep("n4", "n7")), second).nominating.node_name == "n7"
    assert second.asked == [["n4", "n7"]]


def test_one_that_is_not_interested_is_not_asked() -> None:
    idle = FakeExtender(keep(), interested=False)
    assert ask(idle).nominating.node_name == "n0"
    assert idle.asked == []


def test_nothing_left_is_the_end() -> None:
    last = FakeExtender(keep("n1"))
    preemption = ask(FakeExtender(keep()), last)
    assert preemption.status.reasons == ("no candidate node for preemption",)
    assert preemption.nominating == NominatingInfo()
    assert last.asked == []


def test_a_failing_extender_is_an_error() -> None:
    preemption = ask(FakeExtender(ConnectionError("refused")))
    assert preemption.status == Status(Code.ERROR, ("refused",))


def test_unless_it_may_be_ignored() -> None:
    preemption = ask(FakeExtender(ConnectionError("refused"), ignorable=True))
    assert preemption.nominating.node_name == "n0"


def test_a_node_without_victims_is_an_error_or_dropped() -> None:
    assert ask(FakeExtender(no_victims)).status == Status(
        Code.ERROR, ('expected at least one victim pod on node "n0"',)
    )
    assert ask(FakeExtender(no_victims, ignorable=True)).nominating.node_name == "n1"
