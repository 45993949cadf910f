from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scheduler_core.api import Node, Pod
from scheduler_core.backend.cache import Cache
from scheduler_core.backend.snapshot import Snapshot
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.nodes import MAX_LABEL_COLUMNS
from scheduler_core.testing.builders import make_node, make_pod
from scheduler_core.testing.invariants import validate
from scheduler_core.testing.pod_builder import PodBuilder

BOTH = tuple[Cache, Snapshot]


@pytest.fixture
def both() -> Iterator[BOTH]:
    cache, snapshot = Cache(), Snapshot()
    for name in ("n1", "n2", "n3"):
        cache.add_node(make_node(name).obj())
    snapshot.update(cache)
    yield cache, snapshot
    validate(cache, snapshot=snapshot)


def pod(name: str, node: str) -> Pod:
    return make_pod(name).req(cpu="1").node(node).obj()


def test_only_changed_nodes_are_copied(both: BOTH) -> None:
    cache, snapshot = both
    before = list(snapshot.nodes)
    cache.assume_pod(pod("p", "n2"))
    snapshot.update(cache)
    same = [new is old for new, old in zip(snapshot.nodes, before, strict=True)]
    assert same == [True, False, True]
    assert snapshot.nodes.requested[:, 0].tolist() == [0, 1000, 0]


def test_nothing_is_copied_when_nothing_changed(both: BOTH) -> None:
    cache, snapshot = both
    before = list(snapshot.nodes)
    snapshot.update(cache)
    assert all(new is old for new, old in zip(snapshot.nodes, before, strict=True))


@pytest.mark.parametrize(
    "change, counts",
    [
        pytest.param(lambda pod: pod.phase("Running").started(7), False, id="it-runs"),
        pytest.param(lambda pod: pod.condition("Ready", "True"), False, id="it-is-ready"),
        pytest.param(
            lambda pod: pod.container_status("c0", requests={"cpu": "1"}),
            False,
            id="the-kubelet-reports-what-it-asked-for",
        ),
        pytest.param(
            lambda pod: pod.container_status("c0", requests={"cpu": "2"}), True, id="it-was-resized"
        ),
        pytest.param(lambda pod: pod.label(app="b"), True, id="a-label"),
        pytest.param(lambda pod: pod.annotation(note="b"), True, id="an-annotation"),
        pytest.param(lambda pod: pod.terminating(9), True, id="its-deletion-was-asked-for"),
        pytest.param(lambda pod: pod.priority(5), True, id="its-spec"),
    ],
)
@pytest.mark.parametrize(
    "assumed",
    [pytest.param(True, id="confirmed"), pytest.param(False, id="updated")],
)
def test_how_a_pod_fares_is_seen_but_is_no_change_of_its_node(
    both: BOTH, change: Callable[[PodBuilder], PodBuilder], counts: bool, assumed: bool
) -> None:
    cache, snapshot = both
    (cache.assume_pod if assumed else cache.add_pod)(pod("p", "n2"))
    other = make_pod("other").node("n2").obj()
    cache.add_pod(other)
    snapshot.update(cache)
    table = snapshot.nodes.table
    seen = table.change_count
    new = change(make_pod("p").req(cpu="1").node("n2")).obj()
    (cache.add_pod if assumed else cache.update_pod)(new)
    snapshot.update(cache)
    assert list(table.rows_changed_since(seen) or ()) == ([1] if counts else [])
    here = snapshot.nodes[1].pods
    assert here[0] is other and here[1] is new, "in the reference's order: as if it came anew"
    assert not cache.is_assumed_pod(new)


def test_other_nodes_with_an_image_count_as_soon_as_a_node_is_copied(both: BOTH) -> None:
    cache, snapshot = both
    cache.update_node(make_node("n2").image("web", size=5).obj())
    cache.add_pod(pod("p", "n2"))
    snapshot.update(cache)
    seen = snapshot.nodes.table.change_count
    cache.update_node(make_node("n1").image("web", size=5).obj())
    cache.update_pod(make_pod("p").req(cpu="1").node("n2").phase("Running").obj())
    snapshot.update(cache)
    assert set(snapshot.nodes.table.rows_changed_since(seen) or ()) == {0, 1}
    assert snapshot.nodes[1].image_sizes == {"web": (5, 2)}


def test_a_snapshot_does_not_see_what_happens_after_it(both: BOTH) -> None:
    cache, snapshot = both
    cache.assume_pod(pod("p", "n1"))
    assert snapshot.nodes.pod_count.tolist() == [0, 0, 0]
    assert snapshot.nodes[0].pods == []


def test_columns_of_labels_that_nobody_asks_for_any_more_go_and_held_ones_stay_true(
    both: BOTH,
) -> None:
    cache, snapshot = both
    table = snapshot.nodes.table
    held = table.label_column("zone")
    for number in range(3 * MAX_LABEL_COLUMNS):
        table.label_column(f"key-{number}")
    gc.collect()
    assert len(table._labels) <= MAX_LABEL_COLUMNS + 1
    cache.update_node(make_node("n2").label(zone="a").obj())
    snapshot.update(cache)
    assert table.label_column("zone") is held
    assert [held.values[code] if code >= 0 else None for code in held.codes] == [None, "a", None]


def test_nodes_that_come_and_go_rebuild_the_list_but_not_the_copies(both: BOTH) -> None:
    cache, snapshot = both
    first = snapshot.nodes[0]
    cache.remove_node(make_node("n2").obj())
    cache.add_node(make_node("n4").obj())
    snapshot.update(cache)
    assert list(snapshot.nodes.names) == ["n1", "n3", "n4"]
    assert snapshot.nodes[0] is first


def test_a_node_removed_and_added_between_two_updates_goes_last(both: BOTH) -> None:
    cache, snapshot = both
    cache.remove_node(make_node("n1").obj())
    cache.add_node(make_node("n1").capacity(cpu="9").obj())
    snapshot.update(cache)
    assert list(snapshot.nodes.names) == ["n2", "n3", "n1"]
    assert snapshot.nodes.allocatable[:, 0].tolist() == [4000, 4000, 9000]


def test_the_last_node_goes(both: BOTH) -> None:
    cache, snapshot = both
    version = snapshot.nodes.static_version
    for name in ("n1", "n2", "n3"):
        cache.remove_node(make_node(name).obj())
    snapshot.update(cache)
    assert len(snapshot.nodes) == 0
    assert snapshot.nodes.static_version > version


def test_ghosts_are_not_in_the_snapshot(both: BOTH) -> None:
    cache, snapshot = both
    cache.add_pod(pod("p", "n9"))
    cache.add_pod(pod("q", "n1"))
    cache.remove_node(make_node("n1").obj())
    snapshot.update(cache)
    assert list(snapshot.nodes.names) == ["n2", "n3"]


def test_nodes_are_listed_round_robin_over_zones() -> None:
    cache, snapshot = Cache(), Snapshot()
    for name in ("a1", "a2", "b1"):
        cache.add_node(make_node(name).zone(name[0]).obj())
    snapshot.update(cache)
    assert list(snapshot.nodes.names) == ["a1", "b1", "a2"]


def test_rows_with_affinity_follow_the_pods(both: BOTH) -> None:
    cache, snapshot = both
    friend = make_pod("friend").pod_affinity("zone", {"a": "b"}).node("n1").obj()
    wish = make_pod("wish").pod_anti_affinity("zone", {"a": "b"}, weight=5).node("n2").obj()
    loner = make_pod("loner").pod_anti_affinity("zone", {"a": "b"}).node("n3").obj()
    for each in (friend, wish, loner):
        cache.add_pod(each)
    snapshot.update(cache)
    assert snapshot.rows_with_affinity.tolist() == [0, 1, 2]
    assert snapshot.rows_with_required_anti_affinity.tolist() == [2]
    cache.remove_pod(loner)
    snapshot.update(cache)
    assert snapshot.rows_with_affinity.tolist() == [0, 1]
    assert snapshot.rows_with_required_anti_affinity.tolist() == []


def test_used_claims_are_counted_over_all_nodes(both: BOTH) -> None:
    cache, snapshot = both
    first = make_pod("first").pvc("shared", "own").node("n1").obj()
    second = make_pod("second").pvc("shared").node("n2").obj()
    cache.add_pod(first)
    cache.add_pod(second)
    snapshot.update(cache)
    assert snapshot.used_pvcs == {"default/shared": 2, "default/own": 1}
    cache.remove_pod(first)
    snapshot.update(cache)
    assert snapshot.used_pvcs == {"default/shared": 1}
    cache.remove_node(make_node("n2").obj())
    snapshot.update(cache)
    assert snapshot.used_pvcs == {}


def test_a_new_resource_gets_a_column(both: BOTH) -> None:
    cache, snapshot = both
    cache.update_node(make_node("n2").capacity({"cpu": "4", "example.com/gpu": "2"}).obj())
    snapshot.update(cache)
    column = snapshot.nodes.resource_index("example.com/gpu")
    assert snapshot.nodes.allocatable[:, column].tolist() == [0, 2, 0]


# -- any sequence of changes -------------------------------------------------------------------

NODES = st.sampled_from(["n1", "n2", "n3", "n4"])
ZONES = st.sampled_from(["", "a", "b"])
TAINTS = st.sampled_from(["", "dedicated"])
PODS = st.sampled_from([f"p{n}" for n in range(6)])


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    builder = make_node(draw(NODES)).capacity(cpu=draw(st.integers(1, 4)), memory="1Gi")
    if zone := draw(ZONES):
        builder.zone(zone)
    if taint := draw(TAINTS):
        builder.taint(taint)
    if draw(st.booleans()):
        builder.image("web", size=draw(st.integers(1, 3)))
    return builder.unschedulable(draw(st.booleans())).obj()


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    builder = make_pod(draw(PODS)).node(draw(NODES))
    kind = draw(st.integers(0, 5))
    if kind == 1:
        builder.pod_affinity("zone", {"a": "b"})
    elif kind == 2:
        builder.pod_anti_affinity("zone", {"a": "b"})
    elif kind == 3:
        builder.pvc("shared")
    elif kind == 4:
        builder.host_port(80)
    else:
        builder.req({"cpu": draw(st.integers(0, 2)), "example.com/gpu": draw(st.integers(0, 1))})
    if draw(st.booleans()):
        builder.label(a=draw(st.sampled_from("xy")))
    if draw(st.booleans()):
        builder.phase("Running").started(draw(st.integers(1, 2)))
    return builder.obj()


def labels_of_pods(info: NodeInfo) -> tuple[tuple[str, str, int], ...]:
    """Neither their order, nor how they fare: columns do not follow these."""
    return tuple(sorted((pod.uid, pod.labels.get("a", ""), pod.priority) for pod in info.pods))


class SnapshotMachine(RuleBasedStateMachine):
    """Whatever happens to the cache, and whenever the snapshot is updated, it equals a new one."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.snapshot = Snapshot()
        self.nodes: dict[str, Node] = {}

    @rule(node=nodes())
    def put_node(self, node: Node) -> None:
        self.nodes[node.name] = node
        self.cache.update_node(node)

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def remove_node(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        self.cache.remove_node(self.nodes.pop(name))

    @rule(pod=pods(), assume=st.booleans())
    def put_pod(self, pod: Pod, assume: bool) -> None:
        known = self.cache.get_pod(pod)
        if known is None:
            (self.cache.assume_pod if assume else self.cache.add_pod)(pod)
        elif self.cache.is_assumed_pod(pod):
            self.cache.add_pod(pod)
        else:
            self.cache.update_pod(pod.with_node_name(known.node_name))

    @rule(name=PODS)
    def remove_pod(self, name: str) -> None:
        known = self.cache.get_pod(make_pod(name).obj())
        if known is None:
            return
        if self.cache.is_assumed_pod(known):
            self.cache.forget_pod(known)
        else:
            self.cache.remove_pod(known)

    @rule()
    def update(self) -> None:
        self.snapshot.update(self.cache)
        validate(self.cache, snapshot=self.snapshot)

    @rule(key=st.sampled_from(["kubernetes.io/hostname", "topology.kubernetes.io/zone"]))
    def ask_for_a_label(self, key: str) -> None:
        """A column that was asked for must follow later changes too."""
        self.snapshot.update(self.cache)
        nodes = self.snapshot.nodes
        values = nodes.label_values(key)
        found = [values[code] if code >= 0 else None for code in nodes.label(key)]
        assert found == [info.node.labels.get(key) for info in nodes if info.node is not None]

    @rule()
    def ask_for_a_derived_column(self) -> None:
        self.snapshot.update(self.cache)
        nodes = self.snapshot.nodes
        codes, values = nodes.derived("test/pods", labels_of_pods)
        found = [values[code] for code in codes]
        assert found == [labels_of_pods(info) for info in nodes]

    @invariant()
    def cache_is_sound(self) -> None:
        validate(self.cache)

    def teardown(self) -> None:
        validate(self.cache, snapshot=self.snapshot)


SnapshotMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestSnapshotMachine = SnapshotMachine.TestCase
