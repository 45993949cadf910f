"""PostFilter: what is tried when a pod fits nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.interface import PostFilterPlugin
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.status import Code, Status, error, returned
from scheduler_core.framework.types import PostFilterResult


def run_post_filter(
    plugins: Sequence[PostFilterPlugin], state: CycleState, pod: Pod, statuses: NodeStatuses
) -> tuple[PostFilterResult | None, Status]:
    """In order; Success, UnschedulableAndUnresolvable and Error end it, Unschedulable goes on.

    The reasons of all that went on are collected (kube-scheduler 1.36, RunPostFilterPlugins).
    """
    started = perf_counter()
    answer = _post_filter(plugins, state, pod, statuses)
    state.timings.add_point("PostFilter", perf_counter() - started)
    if not answer[1].is_success:
        state.timings.statuses["PostFilter", ""] = answer[1].code.label
    return answer


def _post_filter(
    plugins: Sequence[PostFilterPlugin], state: CycleState, pod: Pod, statuses: NodeStatuses
) -> tuple[PostFilterResult | None, Status]:
    kept: PostFilterResult | None = None
    reasons: list[str] = []
    rejecting = ""
    for plugin in plugins:
        begin = perf_counter()
        try:
            result, status = plugin.post_filter(state, pod, statuses)
            returned(status)
        except Exception as exc:
            result, status = None, error(exc)
        state.timings.add_plugin("PostFilter", plugin.name, perf_counter() - begin)
        if not status.is_success:
            state.timings.statuses["PostFilter", plugin.name] = status.code.label
        if status.is_success:
            return result, status
        if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return result, status.with_plugin(plugin.name)
        if not status.is_rejected:
            return None, error(status.message, plugin.name)
        if result is not None and result.nominating.override:
            kept = result
        reasons.extend(status.reasons)
        rejecting = rejecting or plugin.name
    return kept, Status(Code.UNSCHEDULABLE, tuple(reasons), rejecting)
