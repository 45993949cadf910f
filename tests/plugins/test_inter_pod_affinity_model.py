"""InterPodAffinity against the rules written down once more, node by node and pod by pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.api import Namespace, Pod, PodAffinityTerm
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.status import SUCCESS, Status, unresolvable, unschedulable
from scheduler_core.plugins.inter_pod_affinity import InterPodAffinity
from tests.plugins import topology_strategies as topology
from tests.plugins.support import FakeHandle, filter_both, score_both

NOT_NEAR = unresolvable("node(s) didn't match pod affinity rules")
TOO_NEAR = unschedulable("node(s) didn't match pod anti-affinity rules")
UNWANTED = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")

Pairs = Counter[tuple[str, str]]


def labels_of(info: NodeInfo) -> Mapping[str, str]:
    assert info.node is not None
    return info.node.labels


def required(pod: Pod, part: str) -> Sequence[PodAffinityTerm]:
    affinity = getattr(pod.affinity, part)
    return affinity.required if affinity is not None else ()


def preferred(pod: Pod) -> list[tuple[int, PodAffinityTerm]]:
    near, far = pod.affinity.pod_affinity, pod.affinity.pod_anti_affinity
    return [(w.weight, w.term) for w in (near.preferred if near else ())] + [
        (-w.weight, w.term) for w in (far.preferred if far else ())
    ]


class Model:
    """The rules of kube-scheduler 1.36 for one pod, without arrays and without memory."""

    def __init__(self, pod: Pod, infos: Sequence[NodeInfo], namespaces: list[Namespace]) -> None:
        self.pod = pod
        self.infos = infos
        self.namespaces = {n.name: n.labels for n in namespaces}
        self.near = required(pod, "pod_affinity")
        self.far = required(pod, "pod_anti_affinity")
        self.existing, self.affinity, self.anti = Pairs(), Pairs(), Pairs()
        for info in infos:
            for other in info.pods:
                self.move(other, info, 1)

    def own_matches(self, term: PodAffinityTerm, other: Pod) -> bool:
        """A term of the pod: the namespaces that its selector finds, and once more the selector,
        against no labels."""
        if term.label_selector is None or not term.label_selector.matches(other.labels):
            return False
        names, selector = set(term.namespaces), term.namespace_selector
        if selector is None:
            return other.namespace in (names or {self.pod.namespace})
        names |= {name for name, labels in self.namespaces.items() if selector.matches(labels)}
        return other.namespace in names or selector.matches({})

    def theirs_matches(self, term: PodAffinityTerm, owner: Pod) -> bool:
        """A term of a pod on a node: its selector meets the real labels of the namespace."""
        if term.label_selector is None or not term.label_selector.matches(self.pod.labels):
            return False
        names, selector = set(term.namespaces), term.namespace_selector
        if selector is None:
            return self.pod.namespace in (names or {owner.namespace})
        labels = self.namespaces.get(self.pod.namespace, {})
        return self.pod.namespace in names or selector.matches(labels)

    def all_near(self, other: Pod) -> bool:
        return bool(self.near) and all(self.own_matches(term, other) for term in self.near)

    def move(self, other: Pod, info: NodeInfo, amount: int) -> None:
        labels = labels_of(info)

        def add(pairs: Pairs, term: PodAffinityTerm) -> None:
            key = term.topology_key
            if key in labels:
                pairs[key, labels[key]] += amount

        for term in required(other, "pod_anti_affinity"):
            if self.theirs_matches(term, other):
                add(self.existing, term)
        for term in self.near if self.all_near(other) else ():
            add(self.affinity, term)
        for term in self.far:
            if self.own_matches(term, other):
                add(self.anti, term)

    def skips(self) -> bool:
        return not self.near and not self.far and not any(self.existing.values())

    def filter(self, info: NodeInfo) -> Status:
        labels = labels_of(info)
        keys = [term.topology_key for term in self.near]
        if any(key not in labels for key in keys):
            return NOT_NEAR
        lonely = not any(self.affinity.values()) and self.all_near(self.pod)
        if not lonely and any(self.affinity[key, labels[key]] <= 0 for key in keys):
            return NOT_NEAR
        if any(self.anti[t.topology_key, labels.get(t.topology_key, "-")] > 0 for t in self.far):
            return TOO_NEAR
        if any(self.existing[pair] > 0 for pair in labels.items()):
            return UNWANTED
        return SUCCESS

    def matching(self, other: Pod, hard_weight: int) -> list[tuple[int, PodAffinityTerm]]:
        """Terms between the pod and another one that match, with what they weigh."""
        hard = [(hard_weight, t) for t in required(other, "pod_affinity")] if hard_weight else []
        mine = [(w, t) for w, t in preferred(self.pod) if self.own_matches(t, other)]
        theirs = [(w, t) for w, t in preferred(other) + hard if self.theirs_matches(t, other)]
        return mine + theirs

    def weights(self, hard_weight: int) -> dict[tuple[str, str], int] | None:
        """None where no term matches anything."""
        sums: dict[tuple[str, str], int] = {}

        def add(weight: int, term: PodAffinityTerm, info: NodeInfo) -> None:
            key = term.topology_key
            if key in labels_of(info):
                pair = key, labels_of(info)[key]
                sums[pair] = sums.get(pair, 0) + weight

        for info in self.infos:
            for other in info.pods:
                for weight, term in self.matching(other, hard_weight):
                    add(weight, term, info)
        return sums or None


def normalized(raw: Sequence[int]) -> list[int]:
    lowest, highest = min(raw, default=0), max(raw, default=0)
    if lowest == highest:
        return [0] * len(raw)
    return [int(100.0 * (float(x - lowest) / float(highest - lowest))) for x in raw]


@st.composite
def worlds(draw: st.DrawFn) -> Any:
    """A cluster, pods that come to it later, and a node that changes."""
    names = topology.NODE_NAMES[: draw(st.integers(1, 4))]
    handle = FakeHandle([draw(topology.nodes(name)) for name in names])
    namespaces = draw(topology.namespaces())
    handle.watch(*namespaces)
    arrivals = [
        draw(topology.pods(f"{name}-{i}", node=name))
        for name in names
        for i in range(draw(st.integers(0, 2)))
    ]
    changed = draw(topology.nodes(draw(st.sampled_from(names))))
    moved = draw(topology.pods("moved", node=draw(st.sampled_from(names))))
    return handle, namespaces, arrivals, changed, moved


def check_filter(
    plugin: InterPodAffinity, pod: Pod, nodes: NodeInfos, namespaces: Any, moved: Pod
) -> None:
    model = Model(pod, list(nodes), namespaces)
    state = CycleState()
    _, status = plugin.pre_filter(state, pod, nodes)
    assert status.is_skip == model.skips()
    if status.is_skip:
        return
    before = [model.filter(info) for info in nodes]
    assert filter_both(plugin, pod, nodes, state) == before
    twin = state.clone()
    info = nodes.get(moved.node_name)
    extensions = plugin.pre_filter_extensions()
    assert info is not None
    for other, amount in [(moved, 1), *((pod_there, -1) for pod_there in info.pods)]:
        change = extensions.add_pod if amount > 0 else extensions.remove_pod
        assert change(twin, pod, other, info).is_success
        model.move(other, info, amount)
        assert filter_both(plugin, pod, nodes, twin) == [model.filter(i) for i in nodes]
    assert filter_both(plugin, pod, nodes, state) == before


def check_scores(
    plugin: InterPodAffinity, pod: Pod, nodes: NodeInfos, namespaces: Any, args: Any
) -> None:
    model = Model(pod, list(nodes.table), namespaces)
    state = CycleState()
    status = plugin.pre_score(state, pod, nodes)
    weights = model.weights(args["hardPodAffinityWeight"])
    if args["ignorePreferredTermsOfExistingPods"] and not preferred(pod):
        weights = None
    assert status.is_skip == (weights is None)
    if weights is None:
        return
    expected = [sum(weights.get(pair, 0) for pair in labels_of(info).items()) for info in nodes]
    raw = score_both(plugin, pod, nodes, state)
    assert raw == expected
    scaled = plugin.normalize_score(state, pod, nodes, np.array(raw, dtype=np.int64))
    assert scaled.tolist() == normalized(expected)


arguments = st.fixed_dictionaries(
    {
        "hardPodAffinityWeight": st.sampled_from((0, 1, 100)),
        "ignorePreferredTermsOfExistingPods": st.booleans(),
    }
)


@settings(max_examples=150)
@given(world=worlds(), pod=topology.pods("own"), rows=st.permutations(range(4)), args=arguments)
def test_filters_and_scores_follow_the_rules(
    world: Any, pod: Pod, rows: list[int], args: Any
) -> None:
    handle, namespaces, arrivals, changed, moved = world
    plugin = InterPodAffinity(args, handle)
    for step in range(3):
        check_filter(plugin, pod, handle.nodes, namespaces, moved)
        check_scores(plugin, pod, handle.nodes, namespaces, args)
        some = np.array([row for row in rows[:3] if row < len(handle.nodes)], dtype=np.intp)
        check_scores(plugin, pod, handle.nodes.subset(some), namespaces, args)
        if step == 0:
            for arrival in arrivals:
                handle.bind(arrival)
        else:
            handle.cache.update_node(changed)
        handle.refresh()
