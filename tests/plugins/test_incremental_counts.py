"""InterPodAffinity and PodTopologySpread keep counts from cycle to cycle. Whatever happens to the
cluster between two cycles, they answer as if they had counted just now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from scheduler_core.api import Namespace, Node, Pod, Service
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import EmptiedNodes, NodeInfos, NodeTable
from scheduler_core.plugins.helpers.domain_counts import DomainSums
from scheduler_core.plugins.helpers.tally import Count, PodKind, Tally, pod_tally
from scheduler_core.plugins.inter_pod_affinity import InterPodAffinity
from scheduler_core.plugins.pod_topology_spread import PodTopologySpread
from scheduler_core.testing.builders import PodBuilder, make_node, make_pod
from tests.plugins import test_inter_pod_affinity_model as affinity_model
from tests.plugins import test_pod_topology_spread_model as spread_model
from tests.plugins import topology_strategies as topology
from tests.plugins.support import FakeHandle, score_both

HOSTNAME, ZONE = topology.HOSTNAME, topology.ZONE
ARGS = {"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": False}

names = st.sampled_from(topology.NODE_NAMES)
slots = st.integers(0, 7)


_selectors = st.sampled_from(
    (
        {"matchLabels": {"app": "a"}},
        {"matchLabels": {"app": "b"}},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["b"]}]},
        {},
    )
)
_keys = st.sampled_from((HOSTNAME, ZONE, ZONE))
_terms = st.fixed_dictionaries(
    {"topologyKey": _keys, "labelSelector": _selectors},
    optional={
        "namespaces": st.sampled_from((["red"], ["blue"])),
        "namespaceSelector": st.sampled_from(({"matchLabels": {"app": "a"}}, {})),
    },
)
_weighted = st.fixed_dictionaries({"weight": st.sampled_from((1, 1, 7)), "podAffinityTerm": _terms})
_required = "requiredDuringSchedulingIgnoredDuringExecution"
_preferred = "preferredDuringSchedulingIgnoredDuringExecution"
_sides = st.one_of(
    st.fixed_dictionaries({_required: st.lists(_terms, min_size=1, max_size=2)}),
    st.fixed_dictionaries({_preferred: st.lists(_weighted, min_size=1, max_size=2)}),
)
_spreads = st.fixed_dictionaries(
    {
        "topologyKey": _keys,
        "maxSkew": st.just(1),
        "whenUnsatisfiable": st.sampled_from(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": _selectors,
        "nodeTaintsPolicy": st.sampled_from(("Honor", "Ignore")),
    }
)


@st.composite
def busy_pods(draw: st.DrawFn, name: str, node: str = "") -> Pod:
    """A pod that has something to do with the others, of few sorts, so that they meet often."""
    affinity = st.fixed_dictionaries(
        {}, optional={"podAffinity": _sides, "podAntiAffinity": _sides}
    )
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}], "nodeName": node}
    spec["affinity"] = draw(affinity)
    if not node:
        spec["topologySpreadConstraints"] = draw(st.lists(_spreads, max_size=2))
        spec["tolerations"] = draw(st.sampled_from(([], [{"operator": "Exists"}])))
        spec["nodeSelector"] = draw(st.sampled_from(({}, {"disk": "ssd"})))
    metadata: dict[str, Any] = {
        "name": name,
        "uid": f"uid-{name}",
        "namespace": draw(st.sampled_from(("red", "red", "blue"))),
        "labels": {"app": draw(st.sampled_from(("a", "a", "b")))},
    }
    if node and draw(st.integers(0, 7)) == 0:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return Pod.from_dict({"metadata": metadata, "spec": spec})


@st.composite
def busy_nodes(draw: st.DrawFn, name: str) -> Node:
    labels = {HOSTNAME: name} if draw(st.integers(0, 5)) else {}
    zone = draw(st.sampled_from(("x", "y", "z", "", None)))
    if zone is not None:
        labels[ZONE] = zone
    if draw(st.booleans()):
        labels["disk"] = "ssd"
    taint = {"key": "gpu", "effect": "NoSchedule"}
    taints = [taint] if draw(st.integers(0, 2)) == 0 else []
    return Node.from_dict(
        {"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}}
    )


@st.composite
def busy_namespaces(draw: st.DrawFn) -> Namespace:
    labels = {"app": draw(st.sampled_from(("a", "b")))}
    name = draw(st.sampled_from(("red", "blue")))
    return Namespace.from_dict({"metadata": {"name": name, "labels": labels}})


class Now:
    """What plugins see of the cluster that were made just now, with a table made just now."""

    def __init__(self, handle: FakeHandle) -> None:
        self.nodes = NodeTable(list(handle.nodes))
        self.informer = handle.informer


class Cycles(RuleBasedStateMachine):
    """A cluster that changes under plugins that live on. After every change they are compared with
    plugins that were made just now, and now and then with the models, which have no memory."""

    def __init__(self) -> None:
        super().__init__()
        self.handle = FakeHandle([make_node("n0").zone("x").obj(), make_node("n1").zone("y").obj()])
        self.affinity = InterPodAffinity(ARGS, self.handle)
        self.spread = PodTopologySpread({}, self.handle)
        self.bound: dict[str, Pod] = {}
        self.pending: list[Pod] = []
        self.waits = False

    @initialize(pods=st.lists(busy_pods("own"), min_size=3, max_size=3))
    def begin(self, pods: list[Pod]) -> None:
        self.pending = pods

    @rule(data=st.data(), name=names)
    def node_comes_or_changes(self, data: st.DataObject, name: str) -> None:
        self.handle.cache.update_node(data.draw(busy_nodes(name)))

    @rule(name=names)
    def node_goes(self, name: str) -> None:
        info = self.handle.cache.node_info(name)
        if info is not None and info.node is not None:
            self.handle.cache.remove_node(info.node)

    @rule(data=st.data(), name=names, slot=slots)
    def pod_comes(self, data: st.DataObject, name: str, slot: int) -> None:
        uid = f"p{slot}"
        if uid not in self.bound:
            pod = self.bound[uid] = data.draw(busy_pods(uid, node=name))
            self.handle.cache.add_pod(pod)

    @rule(slot=slots)
    def pod_goes(self, slot: int) -> None:
        pod = self.bound.pop(f"p{slot}", None)
        if pod is not None:
            self.handle.cache.remove_pod(pod)

    @rule(data=st.data(), slot=slots)
    def pod_changes(self, data: st.DataObject, slot: int) -> None:
        uid = f"p{slot}"
        if uid in self.bound:
            name = self.bound[uid].node_name
            pod = self.bound[uid] = data.draw(busy_pods(uid, node=name))
            self.handle.cache.update_pod(pod)

    @rule(found=busy_namespaces())
    def namespace_changes(self, found: Namespace) -> None:
        self.handle.watch(found)

    @rule(pod=busy_pods("own"))
    def another_pod_is_tried(self, pod: Pod) -> None:
        self.pending = [*self.pending[1:], pod]

    @rule()
    def next_change_comes_before_the_next_cycle(self) -> None:
        self.waits = True

    @rule(data=st.data(), order=st.permutations(range(4)))
    def cycle(self, data: st.DataObject, order: list[int]) -> None:
        self.handle.refresh()
        nodes = self.handle.nodes
        if not len(nodes):
            return
        name = data.draw(st.sampled_from(list(nodes.names)))
        moved = data.draw(busy_pods("moved", node=name))
        rows = np.array([row for row in order[:3] if row < len(nodes)], dtype=np.intp)
        for pod in self.pending:
            self.check(pod, nodes, moved, rows)

    def check(self, pod: Pod, nodes: NodeInfos, moved: Pod, rows: Any) -> None:
        namespaces = list(self.handle.informer("Namespace").list())
        affinity_model.check_filter(self.affinity, pod, nodes, namespaces, moved)
        spread_model.check_filter(self.spread, pod, nodes, moved)
        for some in (nodes, nodes.subset(rows)):
            affinity_model.check_scores(self.affinity, pod, some, namespaces, ARGS)
            spread_model.check_scores(self.spread, pod, some)
        emptied = EmptiedNodes(nodes.table, rows)
        for plugin in (self.affinity, self.spread):
            state = CycleState()
            if plugin.pre_score(state, pod, emptied).is_success:
                score_both(plugin, pod, emptied, state)

    @invariant()
    def plugins_answer_as_if_they_had_counted_just_now(self) -> None:
        if self.waits:
            self.waits = False
            return
        self.handle.refresh()
        now = Now(self.handle)
        fresh = InterPodAffinity(ARGS, now), PodTopologySpread({}, now)
        for pod in self.pending:
            for known, anew in zip((self.affinity, self.spread), fresh, strict=True):
                answers = listed(cycle(known, pod, self.handle.nodes))
                assert answers == listed(cycle(anew, pod, now.nodes))

    @invariant()
    def nodes_with_affinity_are_counted(self) -> None:
        self.handle.refresh()
        table = self.handle.nodes.table
        assert table.nodes_with_affinity == len(table.rows_with_affinity)
        required = table.rows_with_required_anti_affinity
        assert table.nodes_with_required_anti_affinity == len(required)


Cycles.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestCycles = Cycles.TestCase


# -- how much work a cycle is ----------------------------------------------------------------------


def app(name: str, app_name: str = "a") -> PodBuilder:
    return make_pod(name).label(app=app_name)


PODS: dict[str, Callable[[PodBuilder], PodBuilder]] = {
    "hard zone spread": lambda pod: pod.spread(ZONE, {"app": "a"}, max_skew=5),
    "hard host spread": lambda pod: pod.spread(HOSTNAME, {"app": "a"}, nodeTaintsPolicy="Honor"),
    "soft spread": lambda pod: pod.spread(
        ZONE, {"app": "a"}, when_unsatisfiable="ScheduleAnyway"
    ).spread(HOSTNAME, {"app": "a"}, when_unsatisfiable="ScheduleAnyway"),
    "required anti-affinity": lambda pod: pod.pod_anti_affinity(HOSTNAME, {"app": "a"}),
    "required affinity": lambda pod: pod.pod_affinity(ZONE, {"app": "a"}),
    "preferred anti-affinity": lambda pod: pod.pod_anti_affinity(HOSTNAME, {"app": "a"}, weight=9),
}
each_kind = pytest.mark.parametrize("kind", PODS)


@pytest.fixture
def handle() -> FakeHandle:
    return FakeHandle([make_node(f"n{i:02}").zone(f"z{i % 3}").obj() for i in range(30)])


def plugins(handle: FakeHandle) -> tuple[PodTopologySpread, InterPodAffinity]:
    return PodTopologySpread({}, handle), InterPodAffinity({}, handle)


def cycle(plugin: Any, pod: Pod, nodes: NodeInfos) -> list[object]:
    """What Filter, Score and NormalizeScore say; None where the plugin skips."""
    state = CycleState()
    _, status = plugin.pre_filter(state, pod, nodes)
    answers: list[object] = [plugin.filter_nodes(state, pod, nodes) if status.is_success else None]
    if not plugin.pre_score(state, pod, nodes).is_success:
        return [*answers, None, None]
    raw = plugin.score_nodes(state, pod, nodes)
    return [*answers, raw, plugin.normalize_score(state, pod, nodes, raw)]


def listed(answers: list[object]) -> list[object]:
    return [
        list(answer)
        if isinstance(answer, NodeStatuses)
        else answer.tolist()
        if isinstance(answer, np.ndarray)
        else answer
        for answer in answers
    ]


class Work:
    """Counts calls that look at more than what changed."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.recounts = 0
        self.sums = 0
        self.taken: list[str] = []
        recount, of, take = Count._recount, DomainSums.of, Tally._take

        def counted_recount(count: Count[Any]) -> None:
            self.recounts += 1
            recount(count)

        def counted_of(*args: Any) -> DomainSums:
            self.sums += 1
            return of(*args)

        def counted_take(tally: Tally[Any], name: str, pods: list[Pod]) -> None:
            self.taken.append(name)
            take(tally, name, pods)

        patch.setattr(Count, "_recount", counted_recount)
        patch.setattr(DomainSums, "of", counted_of)
        patch.setattr(Tally, "_take", counted_take)


@each_kind
def test_a_cycle_after_one_pod_recounts_one_row(
    handle: FakeHandle, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = plugins(handle)
    for number in range(2):  # the second pod meets the first
        handle.bind(PODS[kind](app(f"first{number}")).node(f"n0{number}").obj())
        handle.refresh()
        for plugin in both:
            cycle(plugin, PODS[kind](app("own")).obj(), handle.nodes)
    work = Work(monkeypatch)
    for number in range(10, 20):
        handle.bind(PODS[kind](app(f"p{number}")).node(f"n{number}").obj())
        handle.refresh()
        work.taken.clear()
        for plugin in both:
            cycle(plugin, PODS[kind](app(f"own{number}")).obj(), handle.nodes)
        assert (work.recounts, work.sums) == (0, 0)
        assert set(work.taken) == {f"n{number}"}
        assert len(work.taken) <= 3  # of pods, of anti-affinity terms, of terms that score


def test_pods_that_take_turns_recount_nothing(
    handle: FakeHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = plugins(handle)

    def turn(number: int) -> None:
        for kind, make in PODS.items():
            handle.bind(make(app(f"{kind.replace(' ', '-')}-{number}")).node(f"n{number}").obj())
            handle.refresh()
            for plugin in both:
                cycle(plugin, make(app("own")).obj(), handle.nodes)

    for number in (10, 11):
        turn(number)
    work = Work(monkeypatch)
    for number in range(12, 16):
        turn(number)
    assert (work.recounts, work.sums) == (0, 0)


@each_kind
def test_answers_are_the_same_objects_while_nothing_that_counts_changes(
    handle: FakeHandle, kind: str
) -> None:
    for number in range(3):
        handle.bind(PODS[kind](app(f"p{number}")).node(f"n0{number}").obj())
    handle.refresh()
    for plugin in plugins(handle):
        before = cycle(plugin, PODS[kind](app("own")).obj(), handle.nodes)
        handle.bind(app(f"other-{plugin.name.lower()}", "b").node("n05").obj())
        handle.refresh()
        after = cycle(plugin, PODS[kind](app("own2")).obj(), handle.nodes)
        assert all(a is b for a, b in zip(before, after, strict=True))
        for answer in after:
            array = answer.ids if isinstance(answer, NodeStatuses) else answer
            assert array is None or not array.flags.writeable


def test_zones_that_stay_within_the_skew_leave_the_statuses_alone(handle: FakeHandle) -> None:
    spread, affinity = plugins(handle)
    for plugin, kind in ((spread, "hard zone spread"), (affinity, "required affinity")):
        handle.bind(app(f"first-{plugin.name.lower()}").node("n00").obj())
        handle.refresh()
        before = cycle(plugin, PODS[kind](app("own")).obj(), handle.nodes)[0]
        handle.bind(app(f"second-{plugin.name.lower()}").node("n03").obj())
        handle.refresh()
        assert cycle(plugin, PODS[kind](app("own")).obj(), handle.nodes)[0] is before


@each_kind
def test_a_node_whose_label_changes_moves_its_pods(handle: FakeHandle, kind: str) -> None:
    for number in range(6):
        handle.bind(PODS[kind](app(f"p{number}")).node("n00").obj())
    handle.refresh()
    old = plugins(handle)
    pod = PODS[kind](app("own")).obj()
    for plugin in old:
        cycle(plugin, pod, handle.nodes)
    handle.cache.update_node(make_node("n00").zone("new").label({HOSTNAME: "other"}).obj())
    handle.refresh()
    for known, fresh in zip(old, plugins(handle), strict=True):
        anew = NodeTable(list(handle.nodes))
        assert listed(cycle(known, pod, handle.nodes)) == listed(cycle(fresh, pod, anew))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda pod: pod.namespace("blue"), id="another namespace"),
        pytest.param(lambda pod: pod.toleration("gpu", operator="Exists"), id="a toleration"),
        pytest.param(lambda pod: pod.node_selector({ZONE: "z0"}), id="a node selector"),
        pytest.param(lambda pod: pod.node_affinity_in(ZONE, "z0"), id="node affinity"),
    ],
)
@each_kind
def test_pods_that_only_sound_alike_are_counted_apart(
    handle: FakeHandle, kind: str, change: Callable[[PodBuilder], PodBuilder]
) -> None:
    handle.cache.update_node(make_node("n00").zone("z0").taint("gpu").obj())
    handle.cache.update_node(make_node("n30").zone("z9").taint("gpu").obj())
    for number, node in enumerate(("n00", "n00", "n01", "n04", "n30")):
        handle.bind(app(f"p{number}").node(node).obj())
    handle.bind(app("blue").namespace("blue").node("n02").obj())
    handle.refresh()
    pods = [PODS[kind](app("one")).obj(), change(PODS[kind](app("other"))).obj()]
    for known, fresh in zip(plugins(handle), plugins(handle), strict=True):
        first = [listed(cycle(known, pod, handle.nodes)) for pod in pods]
        anew = [listed(cycle(fresh, pod, NodeTable(list(handle.nodes)))) for pod in reversed(pods)]
        assert first == anew[::-1]


def test_changes_in_thought_leave_shared_counts_alone(handle: FakeHandle) -> None:
    spread, affinity = plugins(handle)
    handle.bind(app("p").node("n00").obj())
    handle.refresh()
    pods: Count[PodKind] | None = None
    for plugin, kind in ((spread, "hard host spread"), (affinity, "required anti-affinity")):
        pod = PODS[kind](app("own")).obj()
        state = CycleState()
        plugin.pre_filter(state, pod, handle.nodes)
        before = plugin.filter_nodes(state, pod, handle.nodes)
        twin = state.clone()
        there = handle.nodes.get("n00")
        assert there is not None
        extensions = plugin.pre_filter_extensions()
        assert extensions is not None
        extensions.remove_pod(twin, pod, there.pods[0], there)
        assert list(plugin.filter_nodes(twin, pod, handle.nodes)) != list(before)
        assert list(plugin.filter_nodes(state, pod, handle.nodes)) == list(before)
        assert cycle(plugin, pod, handle.nodes)[0] is not None
        tally = pod_tally(handle.nodes.table)
        pods = tally.count("all", lambda kind: 1, None)
        assert pods.total == 1


class CountingTable(NodeTable):
    """A table that counts how often somebody asks for anything of its rows."""

    __slots__ = ("asked",)

    def __getitem__(self, index: Any) -> Any:
        self.asked += 1
        return super().__getitem__(index)

    def label_column(self, key: str) -> Any:
        self.asked += 1
        return super().label_column(key)

    def rows_changed_since(self, change_count: int) -> Any:
        self.asked += 1
        return super().rows_changed_since(change_count)


@pytest.mark.parametrize("services", [False, True], ids=["no services", "a service of others"])
def test_without_constraints_nobody_looks_at_a_node(services: bool) -> None:
    handle = FakeHandle([make_node("n").obj()], [app("p").node("n").obj()])
    if services:
        handle.watch(service("other", {"app": "b"}))
    table = CountingTable(list(handle.nodes))
    table.asked = 0
    for plugin in plugins(handle):
        assert cycle(plugin, app("own").obj(), table) == [None, None, None]
    assert table.asked == 0


def service(name: str, selector: dict[str, str]) -> Service:
    return Service.from_dict(
        {"metadata": {"name": name, "namespace": "default"}, "spec": {"selector": selector}}
    )


def test_default_spreading_follows_services_that_come_and_go() -> None:
    nodes: list[Node] = [make_node(f"n{i}").zone(f"z{i}").obj() for i in range(2)]
    handle = FakeHandle(nodes, [app("p").node("n0").obj()])
    spread = PodTopologySpread({}, handle)
    pod = app("own").obj()
    assert cycle(spread, pod, handle.nodes)[2] is None
    handle.watch(service("mine", {"app": "a"}))
    assert listed_scores(spread, pod, handle) == [66, 100]
    handle.watch(service("mine", {"app": "b"}))
    assert cycle(spread, pod, handle.nodes)[2] is None
    handle.watch(service("mine", {"app": "a"}))
    handle.bind(app("p1").node("n1").obj())
    handle.bind(app("p2").node("n1").obj())
    handle.refresh()
    assert listed_scores(spread, pod, handle)[0] == 100
    handle.informer("Service").delete("default/mine")
    assert cycle(spread, pod, handle.nodes)[2] is None


def listed_scores(plugin: PodTopologySpread, pod: Pod, handle: FakeHandle) -> list[int]:
    scores = cycle(plugin, pod, handle.nodes)[2]
    assert isinstance(scores, np.ndarray)
    found: list[int] = scores.tolist()
    return found
