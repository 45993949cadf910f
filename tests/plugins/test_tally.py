"""Counts that follow the nodes that change, and domains that take changes in thought."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.nodes import NodeInfos, NodeTable
from scheduler_core.plugins.helpers.domain_counts import DomainCounts
from scheduler_core.plugins.helpers.tally import PodKind, Tally, pod_tally
from scheduler_core.testing.builders import PodBuilder, make_node, make_pod
from tests.plugins.support import FakeHandle

APPS = ("a", "b", "c")


def app_pod(name: str, app: str, node: str) -> PodBuilder:
    return make_pod(name).label(app=app).node(node)


def is_app(app: str) -> set[frozenset[tuple[str, str]]]:
    return {frozenset({("app", app)})}


def count(tally: Tally[PodKind], nodes: NodeInfos, app: str) -> list[int]:
    tally.update(nodes)
    wanted = is_app(app)
    return tally.totals(tally.answers(app, lambda kind: kind.labels in wanted)).tolist()


def test_pods_are_counted_per_node() -> None:
    pods = [app_pod("p0", "a", "n0"), app_pod("p1", "a", "n0"), app_pod("p2", "b", "n2")]
    handle = FakeHandle([make_node(f"n{i}").obj() for i in range(3)], [p.obj() for p in pods])
    tally = pod_tally()
    assert count(tally, handle.nodes, "a") == [2, 0, 0]
    assert count(tally, handle.nodes, "b") == [0, 0, 1]
    assert count(tally, handle.nodes, "c") == [0, 0, 0]


def test_without_nodes_or_pods_nothing_is_counted() -> None:
    assert count(pod_tally(), FakeHandle().nodes, "a") == []
    assert count(pod_tally(), FakeHandle([make_node("n").obj()]).nodes, "a") == [0]


def test_a_question_is_asked_once_per_kind() -> None:
    handle = FakeHandle(
        [make_node("n0").obj()], [app_pod(f"p{i}", "a", "n0").obj() for i in (0, 1)]
    )
    tally = pod_tally()
    asked: list[PodKind] = []

    def ask(kind: PodKind) -> bool:
        asked.append(kind)
        return True

    for extra in ("b", "a", "b"):
        tally.update(handle.nodes)
        tally.answers("all", ask)
        handle.bind(
            app_pod(f"more-{extra}-{len(asked)}-{len(handle.nodes[0].pods)}", extra, "n0").obj()
        )
        handle.refresh()
    tally.update(handle.nodes)
    assert tally.totals(tally.answers("all", ask)).tolist() == [5]
    assert [dict(kind.labels)["app"] for kind in asked] == ["a", "b"]


def test_only_nodes_that_changed_are_looked_at() -> None:
    looked_at: list[str] = []

    def kinds(info: NodeInfo) -> Iterable[str]:
        looked_at.append(info.name)
        return [pod.name for pod in info.pods]

    handle = FakeHandle([make_node(f"n{i}").obj() for i in range(3)])
    tally: Tally[str] = Tally("names", kinds)
    tally.update(handle.nodes)
    looked_at.clear()
    handle.bind(app_pod("p", "a", "n1").obj())
    handle.refresh()
    tally.update(handle.nodes)
    assert looked_at == ["n1"]


def test_what_nodes_held_before_is_forgotten_in_time() -> None:
    handle = FakeHandle([make_node("n").obj()])
    tally = pod_tally()
    for number in range(3000):
        pod = make_pod("p").uid(f"u{number}").label(number=str(number)).node("n").obj()
        handle.cache.add_pod(pod)
        handle.refresh()
        tally.update(handle.nodes)
        assert tally.totals(np.ones(len(tally.kinds), dtype=bool)).tolist() == [1]
        handle.cache.remove_pod(pod)
    assert len(tally.kinds) < 2000


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
    often, seldom = pod_tally(), pod_tally()
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
        assert count(often, handle.nodes, app) == expected
        if number % 4 == 0:
            assert count(seldom, handle.nodes, app) == expected


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
    return DomainCounts.of(table, ZONE, np.array(per_node, dtype=np.int64), mask)


def test_nodes_of_a_domain_are_summed_up() -> None:
    counts = domains(zones("x", "y", "x", None), [1, 2, 4, 8])
    assert [counts.get(zone) for zone in ("x", "y", "z")] == [5, 2, 0]
    assert counts.by_code().tolist() == [5, 2, 0]
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
    assert twin.by_code().tolist() == [4, 2, 0]
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
