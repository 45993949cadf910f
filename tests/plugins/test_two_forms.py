"""Every in-tree Filter and Score plugin has two forms, written apart, and they always agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.interface import (
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.plugins.registry import IN_TREE
from tests.plugins import strategies
from tests.plugins.support import FakeHandle, filter_both, score_both

_TERM = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["a", "8"]}]}
_RATIO = [{"utilization": 0, "score": 10}, {"utilization": 30, "score": 3}]
_THREE = [{"name": "cpu", "weight": 1}, {"name": strategies.GPU, "weight": 1}]
_THREE += [{"name": "ephemeral-storage", "weight": 1}]

#: Arguments that change what a plugin computes, beside none at all.
ARGS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "NodeAffinity": {
        "added": {
            "addedAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_TERM]},
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 3, "preference": _TERM}
                ],
            }
        }
    },
    "NodeResourcesFit": {
        "ignored": {"ignoredResources": [strategies.GPU], "ignoredResourceGroups": ["other.com"]},
        "most": {"scoringStrategy": {"type": "MostAllocated", "resources": _THREE}},
        "least": {
            "scoringStrategy": {
                "type": "LeastAllocated",
                "resources": [{"name": "cpu", "weight": 5}, {"name": strategies.GPU, "weight": 2}],
            }
        },
        "ratio": {
            "scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "resources": _THREE,
                "requestedToCapacityRatio": {"shape": _RATIO},
            }
        },
    },
    "NodeResourcesBalancedAllocation": {"three": {"resources": _THREE}},
}


def _all_of(base: type[Plugin], handle: FakeHandle) -> Iterator[Any]:
    """An instance of every such plugin with each of its sets of arguments."""
    for cls in IN_TREE:
        if issubclass(cls, base):
            for args in ({}, *ARGS.get(cls.name, {}).values()):
                plugin: Any = cls
                yield plugin(args, handle)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[FakeHandle, Callable[[], None]]:
    """Up to four nodes, and what happens to them next: pods come, a node changes."""
    names = [f"n{i}" for i in range(draw(st.integers(1, 4)))]
    handle = FakeHandle([draw(strategies.nodes(name)) for name in names])
    arrivals = [
        draw(strategies.pods(f"{name}-{i}", node=name))
        for name in names
        for i in range(draw(st.integers(0, 2)))
    ]
    changed = draw(strategies.nodes(draw(st.sampled_from(names))))

    def go_on() -> None:
        for pod in arrivals:
            handle.bind(pod)
        handle.cache.update_node(changed)
        handle.refresh()

    return handle, go_on


@st.composite
def orders(draw: st.DrawFn) -> list[int]:
    """Which of the nodes, in which order."""
    rows = draw(st.permutations(range(4)))
    return rows[: draw(st.integers(1, 4))]


def _subset(nodes: NodeInfos, order: Sequence[int]) -> NodeInfos:
    return nodes.subset(np.array([row for row in order if row < len(nodes)], dtype=np.intp))


@settings(max_examples=100)
@given(cluster=clusters(), pod=strategies.pods("own"), order=orders())
def test_filter_forms_agree(
    cluster: tuple[FakeHandle, Callable[[], None]], pod: Pod, order: list[int]
) -> None:
    handle, go_on = cluster
    plugins = list(_all_of(FilterPlugin, handle))
    for plugin in plugins:
        _check_filter(plugin, pod, handle.nodes)
    go_on()  # columns that exist by now are refreshed row by row
    for plugin in plugins:
        _check_filter(plugin, pod, handle.nodes)
        _check_filter(plugin, pod, _subset(handle.nodes, order))


def _check_filter(plugin: Any, pod: Pod, nodes: NodeInfos) -> None:
    state = CycleState()
    if isinstance(plugin, PreFilterPlugin):
        _, status = plugin.pre_filter(state, pod, nodes.table)
        if not status.is_success:
            return
    filter_both(plugin, pod, nodes, state)


@settings(max_examples=100)
@given(cluster=clusters(), pod=strategies.pods("own"), order=orders())
def test_score_forms_agree(
    cluster: tuple[FakeHandle, Callable[[], None]], pod: Pod, order: list[int]
) -> None:
    handle, go_on = cluster
    plugins = list(_all_of(ScorePlugin, handle))
    for plugin in plugins:
        _check_scores(plugin, pod, handle.nodes)
    go_on()
    for plugin in plugins:
        _check_scores(plugin, pod, handle.nodes)
        _check_scores(plugin, pod, _subset(handle.nodes, order))


def _check_scores(plugin: Any, pod: Pod, nodes: NodeInfos) -> None:
    state = CycleState()
    if isinstance(plugin, PreScorePlugin) and not plugin.pre_score(state, pod, nodes).is_success:
        return
    raw = np.array(score_both(plugin, pod, nodes, state), dtype=np.int64)
    normalized = plugin.normalize_score(state, pod, nodes, raw)
    assert normalized.dtype == np.int64
    assert ((normalized >= 0) & (normalized <= 100)).all()


@pytest.mark.parametrize("cls", IN_TREE, ids=lambda cls: cls.name)
def test_no_plugin_inherits_a_form(cls: type[Plugin]) -> None:
    for base, forms in (
        (FilterPlugin, ("filter", "filter_nodes")),
        (ScorePlugin, ("score", "score_nodes")),
    ):
        if issubclass(cls, base):
            for form in forms:
                assert getattr(cls, form) is not getattr(base, form), f"{cls.name}.{form}"
