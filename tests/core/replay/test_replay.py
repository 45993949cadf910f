"""Replays of small made-up traces: the same scheduler, in virtual time."""

from __future__ import annotations

import dataclasses

import pytest

from scheduler_core.config import configuration_from, default_configuration
from scheduler_core.framework.interface import FilterPlugin, ScorePlugin
from scheduler_core.framework.status import SUCCESS
from scheduler_core.placements import Placement
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.replay import Replay, ReplayEvent
from scheduler_core.testing.builders import make_node, make_pod

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def node(name, cpu="4", memory="8Gi", **labels):
    return make_node(name).capacity(cpu=cpu, memory=memory, pods="110").label(labels).raw()


def pod(name, cpu="1", memory="1Gi", **labels):
    return make_pod(name).req(cpu=cpu, memory=memory).label(labels).raw()


def add(at, name, **kwargs):
    return ReplayEvent(at, "add", pod(name, **kwargs))


def delete(at, name):
    return ReplayEvent(at, "delete", pod(name))


def config(profile=None, registry=None):
    fields = {} if profile is None else {"profiles": [profile]}
    return configuration_from({**HEAD, **fields}, registry or in_tree_registry())


def replay(nodes, events, **kwargs):
    kwargs.setdefault("config", default_configuration(in_tree_registry()))
    return Replay(nodes, events, **kwargs).run()


def where(result):
    return {p.pod.removeprefix("default/"): p.node for p in result.placements}


def test_every_column_of_a_placed_pod():
    result = replay([node("b"), node("a"), node("c", cpu="500m")], [add(0, "p", cpu="2")])
    # TaintToleration 100 x 3; LeastAllocated (50 + 87) // 2; BalancedAllocation of a node that was
    # empty: 50 + (50 + 81 - 100) // 2.
    assert result.placements == (Placement("default/p", "a", 2, 300 + 68 + 65, 2, ""),)
    assert (result.placed, result.not_placed, result.cycles) == (1, 0, 1)


def test_every_column_of_a_pod_that_does_not_fit():
    result = replay([node("a"), node("b", cpu="8")], [add(0, "p", cpu="5", memory="9Gi")])
    message = (
        "0/2 nodes are available: 1 Insufficient cpu, 2 Insufficient memory. no new claims to "
        "deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for "
        "scheduling."
    )
    assert result.placements == (Placement("default/p", "", 0, None, 0, message),)
    assert (result.placed, result.not_placed) == (0, 1)


def test_the_only_node_has_a_score_too():
    result = replay([node("a"), node("b", cpu="100m")], [add(0, "p", cpu="2", memory="4Gi")])
    (placement,) = result.placements
    assert (placement.node, placement.feasible_nodes, placement.best_nodes) == ("a", 1, 1)
    assert placement.score == 300 + 50 + 75


def test_room_that_a_pod_leaves_is_used_in_the_same_second():
    events = [add(0, "first", cpu="3"), delete(10, "first"), add(10, "second", cpu="3")]
    assert where(replay([node("a")], events)) == {"first": "a", "second": "a"}


def test_a_pod_that_leaves_in_the_second_it_comes_stays():
    """Departures go first, so it was not there yet."""
    events = [delete(5, "p"), add(5, "p", cpu="3"), add(6, "q", cpu="3")]
    assert where(replay([node("a")], events)) == {"p": "a", "q": ""}


def test_without_retries_a_pod_has_one_attempt():
    events = [add(0, "a", cpu="3"), add(1, "b", cpu="3"), delete(10, "a"), add(1000, "c", cpu="1")]
    result = replay([node("n")], events)
    assert where(result) == {"a": "n", "b": "", "c": "n"}
    assert result.cycles == 3


def test_with_retries_it_is_tried_again_when_there_is_room():
    events = [add(0, "a", cpu="3"), add(1, "b", cpu="3"), delete(10, "a"), add(1000, "c", cpu="1")]
    result = replay([node("n")], events, retry=True)
    assert where(result) == {"a": "n", "b": "n", "c": "n"}
    assert result.cycles == 4
    assert [p.pod for p in result.placements] == ["default/a", "default/b", "default/c"]


def test_with_retries_a_backoff_that_outlasts_the_trace_is_waited_for():
    events = [add(0, "a", cpu="3"), add(1, "b", cpu="3"), delete(1.5, "a")]
    result = replay([node("n")], events, retry=True)
    assert where(result) == {"a": "n", "b": "n"}


def test_what_never_fits_ends_with_its_message():
    result = replay([node("n")], [add(0, "a", cpu="9"), add(700, "b")], retry=True)
    assert where(result) == {"b": "n", "a": ""}
    assert result.cycles > 2, "the queue's five-minute flush tries it again"


def test_rows_are_in_scheduling_order():
    events = [add(0, "z"), add(0, "a"), add(1, "m")]
    result = replay([node("n")], events)
    assert [p.pod for p in result.placements] == ["default/z", "default/a", "default/m"]


NODES = [node(f"n{i}") for i in range(6)]
EVENTS = [add(i, f"p{i}") for i in range(12)]


def test_the_smallest_name_wins_ties():
    result = replay(list(reversed(NODES)), EVENTS[:6])
    assert list(where(result).values()) == ["n0", "n1", "n2", "n3", "n4", "n5"]


def test_a_seed_breaks_ties_at_random_but_repeatably():
    first = replay(NODES, EVENTS, seed=1)
    assert replay(NODES, EVENTS, seed=1).placements == first.placements
    assert where(replay(NODES, EVENTS, seed=2)) != where(first)
    assert where(replay(NODES, EVENTS)) != where(first)


def test_two_replays_are_alike():
    assert replay(NODES, EVENTS).placements == replay(NODES, EVENTS).placements


def test_the_configuration_decides():
    strategy = {
        "type": "MostAllocated",
        "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
    }
    most = config(
        {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]}
    )
    assert set(where(replay(NODES, EVENTS[:3])).values()) == {"n0", "n1", "n2"}
    assert set(where(replay(NODES, EVENTS[:3], config=most)).values()) == {"n0"}


class LastInTheAlphabet(ScorePlugin):
    """A third party's plugin in its plain form."""

    name = "LastInTheAlphabet"

    def __init__(self, args, handle):
        self._step = args.get("step", 1)

    def score(self, state, pod, node_info):
        return int(node_info.name.removeprefix("n")) * self._step


def test_somebodys_plugin_by_its_dotted_path_decides():
    ours = f"{__name__}:LastInTheAlphabet"
    plugins = {"score": {"enabled": [{"name": ours, "weight": 10}]}}
    chosen = config({"plugins": plugins, "pluginConfig": [{"name": ours, "args": {"step": 20}}]})
    assert set(where(replay(NODES, EVENTS[:3], config=chosen)).values()) == {"n5"}


class Raises(FilterPlugin):
    name = "Raises"

    def __init__(self, args, handle):
        pass

    def filter(self, state, pod, node_info):
        if pod.name == "p1":
            raise RuntimeError("cannot look at p1")
        return SUCCESS


def test_a_plugin_that_raises_costs_its_pod_and_nothing_else():
    registry = in_tree_registry()
    registry.register("Raises", Raises)
    broken = config({"plugins": {"multiPoint": {"enabled": [{"name": "Raises"}]}}}, registry)
    result = replay(NODES, EVENTS[:3], config=broken)
    p0, p1, p2 = result.placements
    assert (p0.placed, p1.placed, p2.placed) == (True, False, True)
    assert 'running "Raises" filter plugin' in p1.message
    assert "cannot look at p1" in p1.message


def test_a_pod_that_nobody_approves_gives_its_node_back():
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": "ManualApproval"}]}},
        "pluginConfig": [
            {
                "name": "ManualApproval",
                "args": {"selector": {"matchLabels": {"ask": "yes"}}, "timeoutSeconds": 60},
            }
        ],
    }
    asking = make_pod("asks").req(cpu="3", memory="1Gi").label({"ask": "yes"}).raw()
    events = [ReplayEvent(0, "add", asking), add(30, "b", cpu="3"), add(90, "c", cpu="3")]
    result = replay([node("n")], events, config=config(profile))
    assert where(result) == {"asks": "", "b": "", "c": "n"}
    assert result.cycles == 3
    message = next(p.message for p in result.placements if p.pod == "default/asks")
    assert "ManualApproval" in message


def test_an_empty_trace():
    result = replay(NODES, [])
    assert result.placements == ()
    assert (result.cycles, result.pods_per_second) == (0, 0.0)


def test_no_nodes():
    result = replay([], [add(0, "p")])
    assert result.placements[0].message == "no nodes available to schedule pods"


class Time:
    """Real time that passes only by sleeping."""

    def __init__(self):
        self.now = 100.0
        self.slept = []

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds

    def perf(self):
        return self.now


@pytest.mark.parametrize(
    ("speed", "seconds"),
    [
        pytest.param(1.0, 60.0, id="real time"),
        pytest.param(30.0, 2.0, id="30 times"),
        pytest.param(float("inf"), 0.0, id="as fast as possible"),
    ],
)
def test_speed(speed, seconds):
    time = Time()
    events = [add(1_000, "a"), add(1_030, "b"), add(1_060, "c")]
    result = replay([node("n")], events, speed=speed, sleep=time.sleep, perf=time.perf)
    assert time.now - 100.0 == pytest.approx(seconds)
    assert max(time.slept, default=0.0) <= 0.5, "an interrupt must not wait longer"
    assert result.virtual_seconds == 60
    assert result.seconds == pytest.approx(seconds)


@pytest.mark.parametrize("speed", [0, -1, float("nan")])
def test_speeds_that_are_none(speed):
    with pytest.raises(ValueError, match="speed must be greater than 0"):
        replay([node("n")], [], speed=speed)


def test_progress_is_told_after_each_event():
    told = []
    events = [add(0, "a"), add(1, "b"), delete(2, "a")]
    Replay([node("n")], events, default_configuration(in_tree_registry())).run(told.append)
    assert told == [1, 2, 3]


def test_times_of_the_extension_points_are_added_up():
    result = replay(NODES, EVENTS)
    assert {"PreFilter", "Filter", "Score"} <= set(result.point_seconds)
    assert list(result.point_seconds.values()) == sorted(
        result.point_seconds.values(), reverse=True
    )
    assert result.pods_per_second > 0


def test_a_placement_is_a_row():
    placed = Placement("default/p", "n", 2, 433, 1)
    assert placed.row() == ("default/p", "n", 2, 433, 1, "")
    left = dataclasses.replace(placed, node="", feasible_nodes=0, score=None, best_nodes=0)
    assert left.row() == ("default/p", "", 0, "", 0, "")


def test_whom_preemption_evicts_leaves_at_once():
    """Nobody else would end its grace period, and the preemptor would wait for ever."""
    boss = pod("boss", cpu="4")
    boss["spec"]["priorityClassName"] = "system-cluster-critical"
    events = [add(0, "low", cpu="4"), ReplayEvent(5, "add", boss)]
    result = replay([node("a")], events, retry=True)
    assert where(result)["boss"] == "a"
    assert result.cycles == 3
