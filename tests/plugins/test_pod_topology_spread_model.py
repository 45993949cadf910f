"""PodTopologySpread against the rules written down once more, node by node and pod by pod."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.api import Node, Pod, TopologySpreadConstraint
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.status import SUCCESS, Status, unresolvable, unschedulable
from scheduler_core.plugins.pod_topology_spread import PodTopologySpread
from tests.plugins import topology_strategies as topology
from tests.plugins.support import FakeHandle, filter_both, score_both

UNEVEN = unschedulable("node(s) didn't match pod topology spread constraints")
NO_LABEL = unresolvable(
    "node(s) didn't match pod topology spread constraints (missing required label)"
)

Domains = list[dict[str, int]]


class Model:
    """The rules of kube-scheduler 1.36 for one pod, without arrays and without memory."""

    def __init__(self, pod: Pod, infos: Sequence[NodeInfo]) -> None:
        self.pod = pod
        self.infos = infos

    def constraints(self, action: str) -> list[TopologySpreadConstraint]:
        return [c for c in self.pod.topology_spread_constraints if c.when_unsatisfiable == action]

    def selects(self, c: TopologySpreadConstraint, labels: Mapping[str, str]) -> bool:
        if c.label_selector is None or not c.label_selector.matches(labels):
            return False
        own = self.pod.labels
        return all(labels.get(key) == own[key] for key in c.match_label_keys if key in own)

    def count(self, c: TopologySpreadConstraint, info: NodeInfo) -> int:
        merged = any(key in self.pod.labels for key in c.match_label_keys)
        if c.label_selector is None or (c.label_selector.is_empty and not merged):
            return 0
        return sum(
            other.namespace == self.pod.namespace
            and other.deletion_timestamp is None
            and self.selects(c, other.labels)
            for other in info.pods
        )

    def admits(self, c: TopologySpreadConstraint, node: Node) -> bool:
        if c.node_affinity_policy == "Honor":
            wanted = self.pod.node_selector or {}
            if any(node.labels.get(key) != value for key, value in wanted.items()):
                return False
        if c.node_taints_policy == "Honor" and not self.pod.tolerations:
            return not any(t.effect == "NoSchedule" for t in node.taints)
        return True

    def domains(self) -> Domains:
        hard = self.constraints("DoNotSchedule")
        found: Domains = [{} for _ in hard]
        for info in self.infos:
            labels = label_of(info)
            if not all(c.topology_key in labels for c in hard):
                continue
            for c, counts in zip(hard, found, strict=True):
                if self.admits(c, node_of(info)):
                    value = labels[c.topology_key]
                    counts[value] = counts.get(value, 0) + self.count(c, info)
        return found

    def move(self, domains: Domains, other: Pod, info: NodeInfo, amount: int) -> None:
        hard = self.constraints("DoNotSchedule")
        labels = label_of(info)
        if other.namespace != self.pod.namespace:
            return
        if not all(c.topology_key in labels for c in hard):
            return
        for c, counts in zip(hard, domains, strict=True):
            if self.selects(c, other.labels) and self.admits(c, node_of(info)):
                value = labels[c.topology_key]
                counts[value] = counts.get(value, 0) + amount

    def filter(self, domains: Domains, info: NodeInfo) -> Status:
        labels = label_of(info)
        for c, counts in zip(self.constraints("DoNotSchedule"), domains, strict=True):
            if c.topology_key not in labels:
                return NO_LABEL
            enough = len(counts) >= (c.min_domains or 1)
            lowest = min(counts.values()) if enough else 0
            own = self.selects(c, self.pod.labels)
            if counts.get(labels[c.topology_key], 0) + own - lowest > c.max_skew:
                return UNEVEN
        return SUCCESS

    def scores(self, feasible: Sequence[NodeInfo]) -> list[int | None]:
        """None where a node is ignored."""
        soft = self.constraints("ScheduleAnyway")

        def complete(info: NodeInfo) -> bool:
            return all(c.topology_key in label_of(info) for c in soft)

        scored = [info for info in feasible if complete(info)]
        answer: list[int | None] = []
        for info in feasible:
            if not complete(info):
                answer.append(None)
                continue
            total = 0.0
            for c in soft:
                key = c.topology_key
                if key == topology.HOSTNAME:
                    size, count = len(scored), self.count(c, info)
                else:
                    size = len({label_of(other)[key] for other in scored})
                    count = sum(
                        self.count(c, other)
                        for other in self.infos
                        if complete(other)
                        and self.admits(c, node_of(other))
                        and label_of(other)[key] == label_of(info)[key]
                    )
                total += count * math.log(size + 2) + float(c.max_skew - 1)
            answer.append(math.floor(total + 0.5))
        return answer


def normalized(raw: Sequence[int | None]) -> list[int]:
    counted = [score for score in raw if score is not None]
    highest, lowest = max(counted, default=0), min(counted, default=0)
    return [
        0 if score is None else 100 if highest == 0 else 100 * (highest + lowest - score) // highest
        for score in raw
    ]


def node_of(info: NodeInfo) -> Node:
    assert info.node is not None
    return info.node


def label_of(info: NodeInfo) -> Mapping[str, str]:
    return node_of(info).labels


@st.composite
def worlds(draw: st.DrawFn) -> Any:
    """A cluster, pods that come to it later, and a node that changes."""
    names = topology.NODE_NAMES[: draw(st.integers(1, 4))]
    handle = FakeHandle([draw(topology.nodes(name)) for name in names])
    arrivals = [
        draw(topology.pods(f"{name}-{i}", node=name))
        for name in names
        for i in range(draw(st.integers(0, 3)))
    ]
    changed = draw(topology.nodes(draw(st.sampled_from(names))))
    moved = draw(topology.pods("moved", node=draw(st.sampled_from(names))))
    return handle, arrivals, changed, moved


def check_filter(plugin: PodTopologySpread, pod: Pod, nodes: NodeInfos, moved: Pod) -> None:
    model = Model(pod, list(nodes))
    state = CycleState()
    _, status = plugin.pre_filter(state, pod, nodes)
    assert status.is_skip == (not model.constraints("DoNotSchedule"))
    if status.is_skip:
        return
    domains = model.domains()
    assert filter_both(plugin, pod, nodes, state) == [model.filter(domains, i) for i in nodes]
    twin = state.clone()
    info = nodes.get(moved.node_name)
    extensions = plugin.pre_filter_extensions()
    assert info is not None
    moves = [(info.pods[0], -1)] if info.pods else []
    for other, amount in [(moved, 1), (moved, 1), *moves]:
        change = extensions.add_pod if amount > 0 else extensions.remove_pod
        assert change(twin, pod, other, info).is_success
        model.move(domains, other, info, amount)
        assert filter_both(plugin, pod, nodes, twin) == [model.filter(domains, i) for i in nodes]
    untouched = model.domains()
    assert filter_both(plugin, pod, nodes, state) == [model.filter(untouched, i) for i in nodes]


def check_scores(plugin: PodTopologySpread, pod: Pod, nodes: NodeInfos) -> None:
    model = Model(pod, list(nodes.table))
    state = CycleState()
    status = plugin.pre_score(state, pod, nodes)
    assert status.is_skip == (not model.constraints("ScheduleAnyway"))
    if status.is_skip:
        return
    expected = model.scores(list(nodes))
    raw = score_both(plugin, pod, nodes, state)
    assert raw == [score or 0 for score in expected]
    scaled = plugin.normalize_score(state, pod, nodes, np.array(raw, dtype=np.int64))
    assert scaled.tolist() == normalized(expected)


@settings(max_examples=150)
@given(world=worlds(), pod=topology.pods("own"), rows=st.permutations(range(4)))
def test_filters_and_scores_follow_the_rules(world: Any, pod: Pod, rows: list[int]) -> None:
    handle, arrivals, changed, moved = world
    plugin = PodTopologySpread({}, handle)
    for step in range(3):
        check_filter(plugin, pod, handle.nodes, moved)
        check_scores(plugin, pod, handle.nodes)
        some = np.array([row for row in rows[:3] if row < len(handle.nodes)], dtype=np.intp)
        check_scores(plugin, pod, handle.nodes.subset(some))
        if step == 0:
            for arrival in arrivals:
                handle.bind(arrival)
        else:
            handle.cache.update_node(changed)
        handle.refresh()
