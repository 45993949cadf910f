"""Each rule of kube-scheduler 1.36 about scores, with extenders that filter or prioritize."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from scheduler_core.algorithm import SeededRandom
from scheduler_core.scheduler_options import SchedulerOptions
from scheduler_core.testing.builders import make_pod
from scheduler_core.testing.harness import Harness
from tests.core.extender.server import FakeExtender, keep, keep_all, names_of, scores, status
from tests.core.extender.world import (
    Start,
    busy,
    entry,
    node,
    scheduler,
)

# -- scoring after a filter ------------------------------------------------------------------------


def crowded(fake: FakeExtender, caches: bool, **more: Any) -> Harness:
    """n0 has 3 of 4 cpus taken, n1 none."""
    return scheduler(
        entry(fake, "filter", nodeCacheCapable=caches),
        made=[node("n0"), node("n1")],
        pods=[make_pod("p").req(cpu="1"), busy("b", "n0", cpu="3")],
        **more,
    )


def fit_scores(h: Harness) -> dict[str, int]:
    return {best.node: best.plugins["NodeResourcesFit"][0] for best in h.cycle("p").best}


def test_names_leave_the_nodes_as_they_are(extender: Start) -> None:
    h = crowded(extender({"filter": keep_all}), caches=True)
    assert fit_scores(h)["n0"] < fit_scores(h)["n1"]
    assert h.node_of("p") == "n1"


def test_nodes_that_come_back_are_scored_without_their_pods(extender: Start) -> None:
    h = crowded(extender({"filter": keep_all}), caches=False)
    assert fit_scores(h)["n0"] == fit_scores(h)["n1"]
    balanced = [best.plugins["NodeResourcesBalancedAllocation"][0] for best in h.cycle("p").best]
    assert len(set(balanced)) == 1
    assert h.node_of("p") == "n0"  # as good as the other, and smaller by name


def test_filters_have_seen_the_pods_all_the_same(extender: Start) -> None:
    fake = extender({"filter": keep_all})
    h = scheduler(
        entry(fake, "filter", nodeCacheCapable=False),
        pods=[make_pod("p").req(cpu="2"), busy("b", "n0", cpu="3")],
    )
    assert h.node_of("p") == "n1"


def test_an_ignored_filter_leaves_the_nodes_as_they_are(extender: Start) -> None:
    fake = extender({"filter": status(500)})
    h = scheduler(
        entry(fake, "filter", nodeCacheCapable=False, ignorable=True),
        made=[node("n0"), node("n1")],
        pods=[make_pod("p").req(cpu="1"), busy("b", "n0", cpu="3")],
    )
    assert h.node_of("p") == "n1"


def test_nodes_that_come_back_have_no_images(extender: Start) -> None:
    image = {"image": "registry.example/big:1"}
    fake = extender({"filter": keep_all})
    made = [node("n0"), node("n1").image(image["image"], size=900_000_000)]
    pod = make_pod("p").container(**image)
    for caches, chosen in ((True, "n1"), (False, "n0")):
        h = scheduler(entry(fake, "filter", nodeCacheCapable=caches), made=made, pods=[pod])
        assert h.node_of("p") == chosen


def spread(key: str) -> Any:
    raw = make_pod("p").label(app="web").req(cpu="1m").raw()
    raw["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    return raw


@pytest.mark.parametrize(
    ("key", "counted"),
    [
        pytest.param("topology.kubernetes.io/zone", True, id="zones are counted over the snapshot"),
        pytest.param("kubernetes.io/hostname", False, id="hosts count for themselves: nothing"),
    ],
)
def test_spreading_over_nodes_that_came_back(extender: Start, key: str, counted: bool) -> None:
    fake = extender({"filter": keep_all})
    h = scheduler(
        entry(fake, "filter", nodeCacheCapable=False),
        made=[node("n0").zone("a"), node("n1").zone("b")],
        pods=[spread(key), busy("b", "n0", cpu="1m").label(app="web")],
    )
    raw = {best.node: best.plugins["PodTopologySpread"][0] for best in h.cycle("p").best}
    assert (raw["n0"] > raw["n1"]) == counted


# -- prioritize ------------------------------------------------------------------------------------


def totals(h: Harness, pod: str = "p") -> dict[str, int]:
    matrix = h.cycle(pod).matrix
    assert matrix is not None
    return {n: int(t) for n, t in zip(matrix.node_names, matrix.total, strict=True)}


def test_score_times_weight_times_ten_is_added(extender: Start) -> None:
    fake = extender({"prioritize": scores(n0=1, n1=7)})
    h = scheduler(entry(fake, "prioritize", weight=3))
    plain = totals(scheduler())
    assert totals(h) == {"n0": plain["n0"] + 30, "n1": plain["n1"] + 210, "n2": plain["n2"]}
    assert h.node_of("p") == "n1"
    assert h.cycle("p").score == plain["n1"] + 210


def test_scores_appear_in_the_decision_like_a_plugins(extender: Start) -> None:
    fake = extender({"prioritize": scores(n0=1, n1=7)})
    record = scheduler(entry(fake, "prioritize", weight=3)).cycle("p")
    name = f"Extender {fake.url}"
    assert record.best[0].plugins[name] == (7, 70, 210)
    assert record.matrix is not None
    row = record.matrix.plugins.index(name)
    assert record.matrix.weights[row] == 3
    assert record.matrix.raw[row].tolist() == [1, 7, 0]
    assert record.matrix.normalized[row].tolist() == [10, 70, 0]
    summed = record.matrix.weights @ record.matrix.normalized.astype(int)
    assert summed.tolist() == record.matrix.total.tolist()


def test_several_extenders_are_asked_at_once(extender: Start) -> None:
    together = threading.Barrier(3)

    def answer(_: Any) -> Any:
        together.wait(5)  # nobody answers before everybody was asked
        return scores(n2=1)

    fakes = [extender({"prioritize": answer}) for _ in range(3)]
    h = scheduler(*(entry(fake, "prioritize") for fake in fakes))
    plain = totals(scheduler())
    assert totals(h)["n2"] == plain["n2"] + 30
    assert [p for p in h.cycle("p").best[0].plugins if p.startswith("Extender")] == [
        f"Extender {fake.url}" for fake in fakes
    ]


@pytest.mark.parametrize("ignorable", [True, False])
def test_errors_of_prioritize_are_always_ignored(extender: Start, ignorable: bool) -> None:
    bad, good = extender({"prioritize": status(500)}), extender({"prioritize": scores(n1=5)})
    h = scheduler(entry(bad, "prioritize", ignorable=ignorable), entry(good, "prioritize"))
    assert h.node_of("p") == "n1"
    assert f"Extender {bad.url}" not in h.cycle("p").best[0].plugins
    assert len(bad.requests) == 1


def test_hosts_that_were_not_asked_about_are_passed_over(extender: Start) -> None:
    fake = extender({"prioritize": scores(ghost=10, n1=1)})
    assert scheduler(entry(fake, "prioritize")).node_of("p") == "n1"


def test_a_host_that_comes_twice_counts_twice(extender: Start) -> None:
    fake = extender({"prioritize": scores(n1=2) + scores(n1=3)})
    plain = totals(scheduler())
    assert totals(scheduler(entry(fake, "prioritize")))["n1"] == plain["n1"] + 50


@pytest.mark.parametrize(
    ("given", "points", "shown"),
    [
        pytest.param(11, 110, 100, id="above ten"),
        pytest.param(1_000_000, 10_000_000, 100, id="far above"),
        pytest.param(-1, -10, 0, id="below zero"),
        pytest.param(2**62, (2**62 * 10 + 2**63) % 2**64 - 2**63, 100, id="wraps at 64 bits"),
    ],
)
def test_there_is_no_range_check(extender: Start, given: int, points: int, shown: int) -> None:
    fake = extender({"prioritize": scores(n1=given)})
    h = scheduler(entry(fake, "prioritize"))
    plain = totals(scheduler())
    assert totals(h)["n1"] == plain["n1"] + points
    best = {b.node: b.plugins[f"Extender {fake.url}"] for b in h.cycle("p").best}
    assert best["n1"] == (given, shown, points)


def test_without_score_plugins_only_extenders_count(extender: Start) -> None:
    fake = extender({"prioritize": scores(n1=4)})
    profile = {"plugins": {"score": {"disabled": [{"name": "*"}]}}}
    h = scheduler(entry(fake, "prioritize"), profile=profile)
    assert totals(h) == {"n0": 0, "n1": 40, "n2": 0}


def test_ties_that_extenders_leave_are_broken_as_all_are(extender: Start) -> None:
    fake = extender({"prioritize": scores(n1=10, n2=10)})
    chosen = {
        scheduler(entry(fake, "prioritize"), tie_breaker=SeededRandom(seed)).node_of("p")
        for seed in range(6)
    }
    assert chosen == {"n1", "n2"}
    assert scheduler(entry(fake, "prioritize")).cycle("p").ties == 2


def test_prioritize_is_asked_about_what_filters_left(extender: Start) -> None:
    fake = extender({"filter": keep("n1", "n2"), "prioritize": scores(n2=1)})
    h = scheduler(entry(fake, "filter", "prioritize"))
    assert fake.asked("prioritize")[0]["NodeNames"] == ["n1", "n2"]
    assert h.node_of("p") == "n2"


def test_prioritize_with_whole_nodes(extender: Start) -> None:
    fake = extender({"prioritize": scores(n2=1)})
    scheduler(entry(fake, "prioritize", nodeCacheCapable=False))
    (asked,) = fake.asked("prioritize")
    assert (names_of(asked), asked["NodeNames"]) == (["n0", "n1", "n2"], None)


def test_a_single_node_is_scored_where_that_is_wanted(extender: Start) -> None:
    fake = extender({"prioritize": scores(n0=2)})
    options = SchedulerOptions(score_single_node=True, listing_interval=0.0)
    h = scheduler(entry(fake, "prioritize"), nodes=1, options=options)
    assert h.cycle("p").best[0].plugins[f"Extender {fake.url}"] == (2, 20, 20)


def test_two_extenders_at_one_url_are_told_apart(extender: Start) -> None:
    fake = extender({"a": scores(n0=1), "b": scores(n1=3)})
    h = scheduler(
        entry(fake, prioritizeVerb="a", weight=1), entry(fake, prioritizeVerb="b", weight=1)
    )
    names = [p for p in h.cycle("p").best[0].plugins if p.startswith("Extender")]
    assert names == [f"Extender {fake.url}", f"Extender {fake.url} (2)"]


# -- time ------------------------------------------------------------------------------------------


def test_a_decision_tells_how_long_extenders_took(extender: Start) -> None:
    fake = extender({"filter": keep_all, "prioritize": scores(n1=1)})
    record = scheduler(entry(fake, "filter", "prioritize")).cycle("p")
    for point in ("ExtenderFilter", "ExtenderPrioritize"):
        assert record.point_seconds[point] > 0
        assert record.plugin_seconds[point, f"Extender {fake.url}"] > 0


def test_without_extenders_there_is_no_trace_of_them() -> None:
    record = scheduler().cycle("p")
    assert not [point for point in record.point_seconds if "Extender" in point]
