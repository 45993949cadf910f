"""PreFilter and Filter: which nodes a pod fits on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.interface import FilterPlugin, Nominator, PreFilterPlugin
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.status import SUCCESS, Code, Status, error, returned, unresolvable
from scheduler_core.framework.types import PreFilterResult


@dataclass(frozen=True, slots=True)
class PreFilterOutcome:
    """What all PreFilter plugins said: which nodes remain (None: all), the status, and which
    plugins returned node sets."""

    result: PreFilterResult = PreFilterResult()
    status: Status = SUCCESS
    node_set_plugins: frozenset[str] = field(default_factory=frozenset)


def run_pre_filter(
    plugins: Sequence[PreFilterPlugin], state: CycleState, pod: Pod, nodes: NodeInfos
) -> PreFilterOutcome:
    """PreFilter of every plugin, in order (kube-scheduler 1.36, RunPreFilterPlugins).

    UnschedulableAndUnresolvable stops at once; Unschedulable is kept while the rest run, and a
    later UnschedulableAndUnresolvable beats it; node sets are intersected.
    """
    started = perf_counter()
    outcome = _pre_filter(plugins, state, pod, nodes)
    state.timings.add_point("PreFilter", perf_counter() - started)
    if not outcome.status.is_success:
        state.timings.statuses["PreFilter", ""] = outcome.status.code.label
    return outcome


def _pre_filter(
    plugins: Sequence[PreFilterPlugin], state: CycleState, pod: Pod, nodes: NodeInfos
) -> PreFilterOutcome:
    merged = PreFilterResult()
    skipped: set[str] = set()
    setters: set[str] = set()
    kept = SUCCESS
    for plugin in plugins:
        begin = perf_counter()
        result, status = pre_filter_one(plugin, state, pod, nodes)
        state.timings.add_plugin("PreFilter", plugin.name, perf_counter() - begin)
        if not status.is_success:
            state.timings.statuses["PreFilter", plugin.name] = status.code.label
        if status.is_skip:
            skipped.add(plugin.name)
            continue
        if status.is_rejected:
            kept = status.with_plugin(plugin.name)
            if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                break
            continue
        if not status.is_success:
            text = f'running PreFilter plugin "{plugin.name}": {status.message}'
            return PreFilterOutcome(status=error(text, plugin.name))
        if result is not None and result.node_names is not None:
            setters.add(plugin.name)
            merged = merged.merge(result)
            if not merged.node_names:
                return PreFilterOutcome(merged, _empty_set(setters), frozenset(setters))
    state.skip_filter_plugins = frozenset(skipped)
    return PreFilterOutcome(merged, kept, frozenset(setters))


def pre_filter_one(
    plugin: PreFilterPlugin, state: CycleState, pod: Pod, nodes: NodeInfos
) -> tuple[PreFilterResult | None, Status]:
    """One plugin's PreFilter; what it raises is an Error."""
    try:
        result, status = plugin.pre_filter(state, pod, nodes)
        return result, returned(status)
    except Exception as exc:
        return None, error(exc, plugin.name)


def _empty_set(setters: set[str]) -> Status:
    names = sorted(setters)
    if len(names) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {names[0]}")
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously")


def run_filter(
    plugins: Sequence[FilterPlugin], state: CycleState, pod: Pod, nodes: NodeInfos
) -> NodeStatuses:
    """Filter of every plugin over all ``nodes`` at once; per node the first failure counts.

    An exception of a plugin becomes an Error status on every node that it was asked about.
    """
    started = perf_counter()
    merged = NodeStatuses(len(nodes))
    for plugin in plugins:
        if plugin.name in state.skip_filter_plugins:
            continue
        begin = perf_counter()
        merged.merge(filter_nodes(plugin, state, pod, nodes), plugin.name)
        state.timings.add_plugin("Filter", plugin.name, perf_counter() - begin)
        if not merged.all_success and not (merged.ids == 0).any():
            break
    state.timings.add_point("Filter", perf_counter() - started)
    return merged


def filter_nodes(
    plugin: FilterPlugin, state: CycleState, pod: Pod, nodes: NodeInfos
) -> NodeStatuses:
    """One plugin's Filter over all ``nodes``; what it raises is an Error on every one of them."""
    try:
        return _with_named_errors(
            _checked(plugin.filter_nodes(state, pod, nodes), len(nodes)), plugin
        )
    except Exception as exc:
        return NodeStatuses.from_mask(np.ones(len(nodes), dtype=bool), _filter_error(plugin, exc))


def _checked(answer: object, nodes: int) -> NodeStatuses:
    if not isinstance(answer, NodeStatuses):
        raise TypeError(f"returned {type(answer).__name__} in place of NodeStatuses")
    if len(answer) != nodes:
        raise ValueError(f"answered for {len(answer)} of {nodes} nodes")
    return answer


def _with_named_errors(statuses: NodeStatuses, plugin: FilterPlugin) -> NodeStatuses:
    """What is neither Success nor a rejection is an Error that names the plugin."""
    failed = [i for i, s in enumerate(statuses.table) if not (s.is_success or s.is_rejected)]
    if not failed:
        return statuses
    named = NodeStatuses(len(statuses))
    named.ids = statuses.ids
    named.table = [
        _unexpected(plugin, s) if i in failed else s for i, s in enumerate(statuses.table)
    ]
    return named


def _filter_error(plugin: FilterPlugin, exc: BaseException) -> Status:
    text = f'running "{plugin.name}" filter plugin: {str(exc) or type(exc).__name__}'
    return error(text, plugin.name)


def _unexpected(plugin: FilterPlugin, status: Status) -> Status:
    return _filter_error(plugin, RuntimeError(status.message or f"returned {status.code.label}"))


def run_filter_one(
    plugins: Sequence[FilterPlugin], state: CycleState, pod: Pod, node_info: NodeInfo
) -> Status:
    """The plain form on one node: the first status that is not Success."""
    for plugin in plugins:
        if plugin.name in state.skip_filter_plugins:
            continue
        try:
            status = returned(plugin.filter(state, pod, node_info))
        except Exception as exc:
            return _filter_error(plugin, exc)
        if status is SUCCESS or status.is_success:
            continue
        if not status.is_rejected:
            return _unexpected(plugin, status)
        return status.with_plugin(plugin.name)
    return SUCCESS


def rows_with_nominated_pods(nominator: Nominator, pod: Pod, nodes: NodeInfos) -> list[int]:
    """Rows whose nominated pods of equal or higher priority must be counted in."""
    rows = []
    for name in nominator.nominated_nodes():
        if _competitors(nominator, pod, name):
            row = nodes.index_of(name)
            if row >= 0:
                rows.append(row)
    return rows


def _competitors(nominator: Nominator, pod: Pod, node_name: str) -> list[Pod]:
    return [
        other
        for other in nominator.nominated_pods_for_node(node_name)
        if other.uid != pod.uid and other.priority >= pod.priority
    ]


def run_filter_with_nominated_pods(
    plugins: Sequence[FilterPlugin],
    pre_filters: Sequence[PreFilterPlugin],
    nominator: Nominator,
    state: CycleState,
    pod: Pod,
    node_info: NodeInfo,
) -> Status:
    """Plain form in two passes: with the nominated pods of equal or higher priority added, and
    without. Both must pass (kube-scheduler 1.36, RunFilterPluginsWithNominatedPods)."""
    added = _competitors(nominator, pod, node_info.name)
    if added:
        crowded, crowded_state = node_info.clone(), state.clone()
        for other in added:
            crowded.add_pod(other)
            status = run_add_pod(pre_filters, crowded_state, pod, other, crowded)
            if not status.is_success:
                return status
        status = run_filter_one(plugins, crowded_state, pod, crowded)
        if not status.is_success:
            return status
    return run_filter_one(plugins, state, pod, node_info)


def run_add_pod(
    pre_filters: Sequence[PreFilterPlugin],
    state: CycleState,
    pod: Pod,
    to_add: Pod,
    node_info: NodeInfo,
) -> Status:
    """AddPod of every PreFilter plugin that did not skip."""
    for plugin in pre_filters:
        extensions = plugin.pre_filter_extensions()
        if extensions is None or plugin.name in state.skip_filter_plugins:
            continue
        try:
            status = returned(extensions.add_pod(state, pod, to_add, node_info))
        except Exception as exc:
            status = error(exc, plugin.name)
        if not status.is_success:
            text = f'running AddPod on PreFilter plugin "{plugin.name}": {status.message}'
            return error(text, plugin.name)
    return SUCCESS


def run_remove_pod(
    pre_filters: Sequence[PreFilterPlugin],
    state: CycleState,
    pod: Pod,
    to_remove: Pod,
    node_info: NodeInfo,
) -> Status:
    """RemovePod of every PreFilter plugin that did not skip."""
    for plugin in pre_filters:
        extensions = plugin.pre_filter_extensions()
        if extensions is None or plugin.name in state.skip_filter_plugins:
            continue
        try:
            status = returned(extensions.remove_pod(state, pod, to_remove, node_info))
        except Exception as exc:
            status = error(exc, plugin.name)
        if not status.is_success:
            text = f'running RemovePod on PreFilter plugin "{plugin.name}": {status.message}'
            return error(text, plugin.name)
    return SUCCESS
