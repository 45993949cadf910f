"""Counts that follow the nodes that change, and domains that take changes in thought."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.api import Pod
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.nodes import NodeInfos, NodeTable
from scheduler_core.plugins.helpers.domain_counts import (
    DomainCounter,
    DomainCounts,
    DomainSums,
    domain_counter,
    topology,
)
from scheduler_core.plugins.helpers.tally import (
    Count,
    PodKind,
    Recent,
    Tally,
    kept_at_most,
    pod_tally,
)
from scheduler_core.testing.builders import PodBuilder, make_node, make_pod
from tests.plugins.support import FakeHandle

APPS = ("a", "b", "c")


def app_pod(name: str, app: str, node: str) -> PodBuilder:
    return make_pod(name).label(app=app).node(node)


def count_of(tally: Tally[PodKind], app: str, question: str = "") -> Count[PodKind]:
    wanted = frozenset({("app", app)})
    tally.update()
    return tally.count((app, question), lambda kind: kind.labels == wanted, None)


def count(nodes: NodeInfos, app: str) -> list[int]:
    return count_of(pod_tally(nodes.table), app).per_node.tolist()


def names_of(pod: Pod) -> list[str]:
    return [pod.name]


def test_pods_are_counted_per_node() -> None:
    pods = [app_pod("p0", "a", "n0"), app_pod("p1", "a", "n0"), app_pod("p2", "b", "n2")]
    handle = FakeHandle([make_node(f"n{i}").obj() for i in range(3)], [p.obj() for p in pods])
    assert count(handle.nodes, "a") == [2, 0, 0]
    assert count(handle.nodes, "b") == [0, 0, 1]
    assert count(handle.nodes, "c") == [0, 0, 0]


def test_without_nodes_or_pods_nothing_is_counted() -> None:
    assert count(FakeHandle().nodes, "a") == []
    assert count(FakeHandle([make_node("n").obj()]).nodes, "a") == [0]


def test_a_question_is_asked_once_per_kind() -> None:
    handle = FakeHandle(
        [make_node("n0").obj()], [app_pod(f"p{i}", "a", "n0").obj() for i in (0, 1)]
    )
    tally = pod_tally(handle.nodes.table)
    asked: list[PodKind] = []

    def ask(kind: PodKind) -> bool:
        asked.append(kind)
        return True

    for extra in ("b", "a", "b"):
        tally.update()
        tally.count("all", ask, None)
        handle.bind(
            app_pod(f"more-{extra}-{len(asked)}-{len(handle.nodes[0].pods)}", extra, "n0").obj()
        )
        handle.refresh()
    tally.update()
    assert tally.count("all", ask, None).per_node.tolist() == [5]
    assert [dict(kind.labels)["app"] for kind in asked] == ["a", "b"]


def test_a_question_about_some_groups_is_not_asked_about_others() -> None:
    pods = [make_pod(f"p-{ns}").namespace(ns).node("n0").obj() for ns in ("red", "blue", "red2")]
    handle = FakeHandle([make_node("n0").obj()], pods)
    tally = pod_tally(handle.nodes.table)
    tally.update()
    asked: list[str] = []

    def ask(kind: PodKind) -> bool:
        asked.append(kind.namespace)
        return True

    assert tally.count("some", ask, ("red", "blue", "none")).per_node.tolist() == [2]
    handle.bind(make_pod("later").namespace("green").node("n0").obj())
    handle.refresh()
    tally.update()
    assert tally.count("some", ask, ("red", "blue", "none")).per_node.tolist() == [2]
    assert sorted(asked) == ["blue", "red"]
    assert sorted(tally.groups) == ["blue", "green", "red", "red2"]


def test_only_nodes_that_changed_are_looked_at() -> None:
    looked_at: list[str] = []

    def pods_of(info: NodeInfo) -> list[Pod]:
        looked_at.append(info.name)
        return info.pods

    handle = FakeHandle([make_node(f"n{i}").obj() for i in range(3)])
    tally = Tally(handle.nodes.table, pods_of, names_of, lambda name: name)
    tally.update()
    looked_at.clear()
    handle.bind(app_pod("p", "a", "n1").obj())
    handle.refresh()
    tally.update()
    tally.update()
    assert looked_at == ["n1"]


def test_a_pod_that_comes_is_the_only_one_looked_at() -> None:
    looked_at: list[str] = []

    def kinds_of(pod: Pod) -> list[str]:
        looked_at.append(pod.name)
        return [pod.name]

    handle = FakeHandle(
        [make_node("n0").obj()], [app_pod(f"p{i}", "a", "n0").obj() for i in range(4)]
    )
    tally = Tally(handle.nodes.table, lambda info: info.pods, kinds_of, lambda name: name)
    tally.update()
    looked_at.clear()
    new = app_pod("new", "a", "n0").obj()
    handle.cache.add_pod(new)
    handle.refresh()
    tally.update()
    assert looked_at == ["new"]
    handle.cache.remove_pod(handle.nodes[0].pods[1])
    handle.refresh()
    tally.update()
    assert looked_at == ["new", "p1"]


def test_counts_follow_by_differences() -> None:
    handle = FakeHandle([make_node(f"n{i}").zone("z").obj() for i in range(3)])
    table = handle.nodes.table
    for number in range(20):
        handle.bind(app_pod(f"p{number}", "a", f"n{number % 3}").obj())
        handle.refresh()
        followed = count_of(pod_tally(table), "a")
        counter = domain_counter(followed, table, ZONE)
        assert counter.sums().get("z") == followed.total == number + 1
    assert (followed.recounts, counter.recounted) == (1, 1)


def test_numbers_that_were_handed_out_stay_as_they_are() -> None:
    handle = FakeHandle([make_node("n0").zone("z").obj()], [app_pod("p0", "a", "n0").obj()])
    table = handle.nodes.table
    followed = count_of(pod_tally(table), "a")
    per_node, sums = followed.per_node, domain_counter(followed, table, ZONE).sums()
    handle.bind(app_pod("other", "b", "n0").obj())
    handle.refresh()
    again = count_of(pod_tally(table), "a")
    assert again.per_node is per_node
    assert domain_counter(again, table, ZONE).sums() is sums
    handle.bind(app_pod("p1", "a", "n0").obj())
    handle.refresh()
    assert count_of(pod_tally(table), "a").per_node.tolist() == [2]
    assert domain_counter(again, table, ZONE).sums().get("z") == 2
    assert (per_node.tolist(), sums.get("z")) == ([1], 1)
    with pytest.raises(ValueError, match="read-only"):
        per_node[0] = 7


def test_domains_with_any_are_the_same_array_until_one_joins_or_leaves() -> None:
    handle = FakeHandle(
        [make_node(f"n{i}").zone(f"z{i}").obj() for i in range(2)], [app_pod("p", "a", "n0").obj()]
    )
    table = handle.nodes.table

    def positive() -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return domain_counter(count_of(pod_tally(table), "a"), table, ZONE).sums().positive

    before = positive()
    handle.bind(app_pod("p1", "a", "n0").obj())
    handle.refresh()
    assert positive() is before
    handle.bind(app_pod("p2", "a", "n1").obj())
    handle.refresh()
    assert before.tolist() == [True, False, False]
    assert positive().tolist() == [True, True, False]


def test_who_lags_far_behind_counts_anew() -> None:
    handle = FakeHandle([make_node("n").zone("z").obj()])
    table = handle.nodes.table
    seldom = count_of(pod_tally(table), "a", "seldom")
    counter: DomainCounter = domain_counter(seldom, table, ZONE)
    assert counter.sums().get("z") == 0
    for number in range(4000):
        pod = app_pod(f"p{number}", "a" if number == 3999 else f"b{number}", "n").obj()
        handle.cache.add_pod(pod)
        handle.refresh()
        pod_tally(table).update()
        if number < 3999:
            handle.cache.remove_pod(pod)
    handle.refresh()
    assert count_of(pod_tally(table), "a", "seldom") is seldom
    assert seldom.per_node.tolist() == [1]
    assert seldom.recounts == 2
    assert counter.sums().get("z") == 1


def test_what_nodes_held_before_is_forgotten() -> None:
    handle = FakeHandle([make_node("n").obj()])
    tally = pod_tally(handle.nodes.table)
    everything = None
    for number in range(3000):
        pod = make_pod("p").uid(f"u{number}").label(number=str(number)).node("n").obj()
        handle.cache.add_pod(pod)
        handle.refresh()
        tally.update()
        everything = tally.count("all", lambda kind: 1, None)
        assert everything.per_node.tolist() == [1]
        assert len(list(tally.kinds())) == 1
        handle.cache.remove_pod(pod)
    assert everything is not None
    assert len(everything._amounts) < 2000


def test_few_counts_are_kept() -> None:
    handle = FakeHandle([make_node("n").obj()], [app_pod("p", "a", "n").obj()])
    tally = pod_tally(handle.nodes.table)
    tally.update()
    first = tally.count("q0", lambda kind: 1, None)
    for number in range(kept_at_most(1) + 1):
        tally.count(f"q{number}", lambda kind: 1, None)
    assert tally.count("q0", lambda kind: 1, None) is not first
    assert len(tally._counts) == kept_at_most(1)
    assert kept_at_most(5_000) == 1199
    assert kept_at_most(50_000) == 119
    assert kept_at_most(50_000, arrays=4) == 29
    assert kept_at_most(1_000_000) == 16


def test_the_least_recently_used_goes_first() -> None:
    recent: Recent[str] = Recent(2)
    for key in ("a", "b", "a", "c"):
        recent.get(key, str)
    made: list[str] = []

    def make(key: str) -> str:
        made.append(key)
        return key

    for key in ("a", "c", "b"):
        recent.get(key, partial(make, key))
    assert made == ["b"]


def test_a_node_that_moves_to_another_row_keeps_its_pods() -> None:
    handle = FakeHandle([make_node("n5").obj()], [app_pod("p", "a", "n5").obj()])
    assert count(handle.nodes, "a") == [1]
    handle.cache.add_node(make_node("n1").zone("elsewhere").obj())
    handle.refresh()
    expected = {"n5": 1, "n1": 0}
    assert count(handle.nodes, "a") == [expected[name] for name in handle.nodes.names]
    handle.cache.remove_node(make_node("n5").obj())
    handle.refresh()
    assert count(handle.nodes, "a") == [0]
    assert not list(pod_tally(handle.nodes.table).kinds())


@settings(max_examples=60)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(("add", "remove", "node")),
            st.sampled_from(APPS),
            st.integers(0, 3),
            st.integers(0, 5),
        ),
        max_size=30,
    )
)
def test_two_tallies_agree_with_counting_after_every_change(
    steps: list[tuple[str, str, int, int]],
) -> None:
    handle = FakeHandle([make_node("n0").obj(), make_node("n1").obj()])
    table = handle.nodes.table
    often = pod_tally(table)
    seldom: Tally[str] = Tally(
        table, lambda info: info.pods, lambda pod: [pod.labels["app"]], lambda app: app
    )
    here: dict[str, PodBuilder] = {}
    for number, (step, app, node, slot) in enumerate(steps):
        name = f"p{slot}"
        if step == "node":
            handle.cache.update_node(make_node(f"n{node}").label(number=str(number)).obj())
        elif step == "add" and name not in here:
            here[name] = app_pod(name, app, f"n{node % 2}")
            handle.cache.add_pod(here[name].obj())
        elif step == "remove" and name in here:
            handle.cache.remove_pod(here.pop(name).obj())
        handle.refresh()
        expected = [
            Counter(pod.labels.get("app") for pod in info.pods)[app] for info in handle.nodes
        ]
        assert count_of(often, app).per_node.tolist() == expected
        assert count_of(often, app).total == sum(expected)
        if number % 4 == 0:
            seldom.update()
            assert seldom.count(app, lambda kind: 1, (app,)).per_node.tolist() == expected


# -- domains ---------------------------------------------------------------------------------------


def zones(*names: str | None) -> NodeTable:
    builders = [
        make_node(f"n{i}").zone(zone) if zone is not None else make_node(f"n{i}")
        for i, zone in enumerate(names)
    ]
    return NodeTable([NodeInfo(builder.obj()) for builder in builders])


ZONE = "topology.kubernetes.io/zone"


def domains(
    table: NodeTable, per_node: list[int], admitted: list[bool] | None = None
) -> DomainCounts:
    mask = None if admitted is None else np.array(admitted, dtype=bool)
    return DomainCounts(DomainSums.of(table, ZONE, np.array(per_node, dtype=np.int64), mask))


def test_nodes_of_a_domain_are_summed_up() -> None:
    counts = domains(zones("x", "y", "x", None), [1, 2, 4, 8])
    assert [counts.get(zone) for zone in ("x", "y", "z")] == [5, 2, 0]
    assert counts.by_domain().tolist() == [5, 2, 0]
    assert counts.size_and_minimum() == (2, 2)


def test_domains_without_admitted_nodes_take_no_part() -> None:
    counts = domains(zones("x", "y", "x"), [1, 2, 4], [True, False, True])
    assert counts.get("y") == 0
    assert counts.size_and_minimum() == (1, 5)


def test_no_domain_has_the_minimum_0() -> None:
    assert domains(zones("x"), [3], [False]).size_and_minimum() == (0, 0)


def test_changes_in_thought_stay_in_the_clone() -> None:
    counts = domains(zones("x", "y"), [1, 2])
    twin = counts.clone()
    twin.add("x", 3)
    twin.add("elsewhere", 1)
    assert (counts.get("x"), counts.get("elsewhere")) == (1, 0)
    assert (twin.get("x"), twin.get("elsewhere")) == (4, 1)
    assert twin.by_domain().tolist() == [4, 2, 0]
    assert twin.size_and_minimum() == (3, 1)


def test_is_zero_looks_at_changes() -> None:
    counts = domains(zones("x", "y"), [1, 0])
    assert not counts.is_zero()
    counts.add("x", -1)
    assert counts.is_zero()
    counts.add("elsewhere", 1)
    assert not counts.is_zero()


def test_a_domain_that_gains_in_thought_takes_part() -> None:
    counts = domains(zones("x", "y"), [4, 2], [True, False])
    counts.add("y", 1)
    assert counts.size_and_minimum() == (2, 1)


def test_the_smallest_untouched_number_counts_beside_changed_ones() -> None:
    counts = domains(zones("x", "y", "z"), [1, 1, 4], [True, True, True])
    counts.add("x", 5)
    assert counts.size_and_minimum() == (3, 1)  # y is left with the smallest
    counts.add("y", 5)
    assert counts.size_and_minimum() == (3, 4)  # z, which was not touched
    counts.add("z", 5)
    assert counts.size_and_minimum() == (3, 6)


@given(
    numbers=st.lists(st.integers(0, 2), min_size=3, max_size=3),
    admitted=st.lists(st.booleans(), min_size=3, max_size=3),
    moves=st.lists(st.tuples(st.sampled_from("xyzw"), st.sampled_from((-1, 1))), max_size=4),
)
def test_changes_in_thought_are_as_if_counted(
    numbers: list[int], admitted: list[bool], moves: list[tuple[str, int]]
) -> None:
    counts = domains(zones("x", "y", "z"), numbers, admitted)
    expected = {z: n for z, n, there in zip("xyz", numbers, admitted, strict=True) if there}
    for zone, amount in moves:
        counts.add(zone, amount)
        expected[zone] = expected.get(zone, 0) + amount
        assert counts.size_and_minimum() == (len(expected), min(expected.values()))
        assert counts.is_zero() == (not any(expected.values()))
        assert {z: counts.get(z) for z in expected} == expected
        known = [expected.get(z, 0) for z in "xyz"]
        assert counts.by_domain().tolist() == [*known, 0]
        assert counts.positive().tolist() == [*(number > 0 for number in known), False]


def test_a_topology_says_which_nodes_are_where() -> None:
    table = zones("x", None, "y", "x")
    found = topology(table, ZONE)
    assert found.domain_of.tolist() == [0, 2, 1, 0]
    assert (found.domain("y"), found.domain("nowhere")) == (1, 2)
    assert not found.is_everywhere
    assert topology(table, ZONE) is found
    some = table.subset(np.array([3, 1], dtype=np.intp))
    assert found.domains_of(some).tolist() == [0, 2]
    assert found.count_used(table, None) == 3
    assert found.count_used(some, np.array([True, False])) == 1


def test_a_missing_label_is_the_empty_value() -> None:
    assert topology(zones("x", None, ""), ZONE).count_used(zones("x", None, ""), None) == 2
    assert topology(zones(None), ZONE).count_used(zones(None), None) == 1


def test_domains_stay_the_same_array_where_only_other_labels_change() -> None:
    table = zones("x", "y")
    before = topology(table, ZONE)
    table.refresh_row(0, NodeInfo(make_node("n0").zone("x").label(disk="ssd").obj()))
    assert topology(table, ZONE) is not before
    assert topology(table, ZONE).domain_of is before.domain_of
    table.refresh_row(0, NodeInfo(make_node("n0").zone("new").obj()))
    assert topology(table, ZONE).domain_of.tolist() == [2, 1]
    assert before.domain_of.tolist() == [0, 1]


def test_a_first_label_is_another_domain_though_its_number_is_the_same() -> None:
    table = zones("x", None)
    before = topology(table, ZONE)
    table.refresh_row(1, NodeInfo(make_node("n1").zone("new").obj()))
    after = topology(table, ZONE)
    assert after.domain_of.tolist() == before.domain_of.tolist() == [0, 1]
    assert after.domain_of is not before.domain_of  # or answers for nodes without it would be kept
    assert (before.is_everywhere, after.is_everywhere) == (False, True)
