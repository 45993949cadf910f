"""Reserve, Unreserve, Permit, PreBind, Bind and PostBind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from operator import attrgetter
from time import perf_counter
from typing import TypeVar

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.interface import (
    BindPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PreBindPlugin,
    ReservePlugin,
)
from scheduler_core.framework.runtime.waiting_pods import MAX_PERMIT_TIMEOUT, PermitWait
from scheduler_core.framework.status import SKIP, SUCCESS, Code, Status, error, returned

log = logging.getLogger(__name__)


def run_reserve(
    plugins: Sequence[ReservePlugin], state: CycleState, pod: Pod, node_name: str
) -> Status:
    """Reserve in order, up to the first failure. The caller runs Unreserve for all of them then."""
    return _in_order("Reserve", plugins, attrgetter("reserve"), state, pod, node_name)


def run_unreserve(
    plugins: Sequence[ReservePlugin], state: CycleState, pod: Pod, node_name: str
) -> None:
    """Unreserve of all Reserve plugins in reverse order. Cannot fail: what raises is logged."""
    started = perf_counter()
    for plugin in reversed(plugins):
        try:
            plugin.unreserve(state, pod, node_name)
        except Exception:
            log.exception("Unreserve of plugin %s raised for pod %s", plugin.name, pod.key)
    state.timings.add_point("Unreserve", perf_counter() - started)


def run_permit(
    plugins: Sequence[PermitPlugin], state: CycleState, pod: Pod, node_name: str, now: float
) -> tuple[Status, list[PermitWait]]:
    """Permit in order: a rejection or an error stops; Waits are collected while the rest run."""
    started = perf_counter()
    waits: list[PermitWait] = []
    outcome = SUCCESS
    for plugin in plugins:
        begin = perf_counter()
        try:
            status, timeout = plugin.permit(state, pod, node_name)
            # In this order: a timeout that is no number counts as the longest.
            timeout = min(MAX_PERMIT_TIMEOUT, timeout) if returned(status).is_wait else 0.0
        except Exception as exc:
            status, timeout = error(exc, plugin.name), 0.0
        state.timings.add_plugin("Permit", plugin.name, perf_counter() - begin)
        if status.is_success:
            continue
        state.timings.statuses["Permit", plugin.name] = status.code.label
        if status.is_wait:
            waits.append(PermitWait(plugin.name, timeout, now + timeout, status.message))
            continue
        outcome = status.with_plugin(plugin.name)
        if not status.is_rejected:
            outcome = error(f'running Permit plugin "{plugin.name}": {status.message}', plugin.name)
        break
    state.timings.add_point("Permit", perf_counter() - started)
    if waits or not outcome.is_success:
        code = Code.WAIT if outcome.is_success else outcome.code
        state.timings.statuses["Permit", ""] = code.label
    return outcome, waits


def run_pre_bind_pre_flight(
    plugins: Sequence[PreBindPlugin], state: CycleState, pod: Pod, node_name: str
) -> tuple[Status, list[PreBindPlugin]]:
    """Which PreBind plugins have work to do. Where none has, PreBind is over: it is counted, as
    kube-scheduler 1.36 does."""
    started = perf_counter()
    outcome, working = _pre_flight(plugins, state, pod, node_name)
    state.timings.add_point("PreBindPreFlight", perf_counter() - started)
    if not outcome.is_success:
        state.timings.statuses["PreBindPreFlight", ""] = outcome.code.label
    elif not working:
        state.timings.statuses["PreBindPreFlight", ""] = Code.SKIP.label
        state.timings.add_point("PreBind", 0.0)
    return outcome, working


def _pre_flight(
    plugins: Sequence[PreBindPlugin], state: CycleState, pod: Pod, node_name: str
) -> tuple[Status, list[PreBindPlugin]]:
    working: list[PreBindPlugin] = []
    for plugin in plugins:
        try:
            status = returned(plugin.pre_bind_pre_flight(state, pod, node_name))
        except Exception as exc:
            status = error(exc, plugin.name)
        if status.is_success:
            working.append(plugin)
        elif not status.is_skip:
            text = f'running PreBindPreFlight plugin "{plugin.name}": {status.message}'
            return error(text, plugin.name), []
    return SUCCESS, working


def run_pre_bind(
    plugins: Sequence[PreBindPlugin], state: CycleState, pod: Pod, node_name: str
) -> Status:
    return _in_order("PreBind", plugins, attrgetter("pre_bind"), state, pod, node_name)


def run_bind(plugins: Sequence[BindPlugin], state: CycleState, pod: Pod, node_name: str) -> Status:
    """The first Bind plugin that does not Skip decides."""
    started = now = perf_counter()
    outcome = SKIP
    for plugin in plugins:
        try:
            status = returned(plugin.bind(state, pod, node_name))
        except Exception as exc:
            status = error(exc, plugin.name)
        begin, now = now, perf_counter()
        state.timings.add_plugin("Bind", plugin.name, now - begin)
        if not status.is_success:
            state.timings.statuses["Bind", plugin.name] = status.code.label
        if status.is_skip:
            continue
        outcome = status
        if not status.is_success and not status.is_rejected:
            text = f'running Bind plugin "{plugin.name}": {status.message}'
            outcome = Status(Code.ERROR, (text,), plugin.name, status.error)
        break
    state.timings.add_point("Bind", now - started)
    if outcome.is_skip:
        outcome = error("no Bind plugin took the pod")
    if not outcome.is_success:
        state.timings.statuses["Bind", ""] = outcome.code.label
    return outcome


def run_post_bind(
    plugins: Sequence[PostBindPlugin], state: CycleState, pod: Pod, node_name: str
) -> None:
    """Informational: what raises is logged."""
    started = perf_counter()
    for plugin in plugins:
        try:
            plugin.post_bind(state, pod, node_name)
        except Exception:
            log.exception("PostBind of plugin %s raised for pod %s", plugin.name, pod.key)
    state.timings.add_point("PostBind", perf_counter() - started)


P = TypeVar("P", bound=Plugin)


def _in_order(
    point: str,
    plugins: Sequence[P],
    method: Callable[[P], Callable[[CycleState, Pod, str], Status]],
    state: CycleState,
    pod: Pod,
    node_name: str,
) -> Status:
    started = now = perf_counter()
    outcome = SUCCESS
    for plugin in plugins:
        try:
            status = returned(method(plugin)(state, pod, node_name))
        except Exception as exc:
            status = error(exc, plugin.name)
        begin, now = now, perf_counter()
        state.timings.add_plugin(point, plugin.name, now - begin)
        if status is SUCCESS or status.is_success:
            continue
        state.timings.statuses[point, plugin.name] = status.code.label
        outcome = status.with_plugin(plugin.name)
        if status.code is Code.ERROR or not status.is_rejected:
            outcome = error(
                f'running {point} plugin "{plugin.name}": {status.message}', plugin.name
            )
        break
    state.timings.add_point(point, now - started)
    if not outcome.is_success:
        state.timings.statuses[point, ""] = outcome.code.label
    return outcome
