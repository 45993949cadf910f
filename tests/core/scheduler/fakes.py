"""Plugins with a behaviour of their own, for tests of the framework around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.interface import (
    BindPlugin,
    FilterPlugin,
    Handle,
    PermitPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
)
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.status import SKIP, SUCCESS, Status
from scheduler_core.framework.types import PostFilterResult, PreFilterResult

Behaviour = Mapping[str, Any]


def make_spy(  # noqa: C901 - one small answer per extension point
    plugin_name: str,
    log: list[str],
    behaviour: dict[str, Any] | None = None,
    points: tuple[type, ...] = (),
) -> type:
    """A plugin class that implements ``points``, logs ``Name.point`` and answers as told.

    ``behaviour`` maps a point ("reserve", "permit", ...) to the answer, or to an exception.
    """
    told = behaviour or {}

    def answer(point: str, default: Any) -> Any:
        log.append(f"{plugin_name}.{point}")
        value = told.get(point, default)
        if isinstance(value, BaseException):
            raise value
        return value() if callable(value) else value

    class Spy(*(points or _ALL)):  # type: ignore[misc]
        name = plugin_name

        def __init__(self, args: Behaviour, handle: Handle) -> None:
            self.args, self.handle = args, handle

        def pre_filter(
            self, state: CycleState, pod: Pod, nodes: NodeInfos
        ) -> tuple[PreFilterResult | None, Status]:
            return answer("pre_filter", (None, SUCCESS))

        def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
            status = told.get("filter", SUCCESS)
            if isinstance(status, BaseException):
                raise status
            return status(node_info) if callable(status) else status

        def post_filter(
            self, state: CycleState, pod: Pod, statuses: NodeStatuses
        ) -> tuple[PostFilterResult | None, Status]:
            return answer("post_filter", (None, Status()))

        def pre_score(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Status:
            return answer("pre_score", SUCCESS)

        def score_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Any:
            log.append(f"{plugin_name}.score")
            value = told.get("score", 0)
            if isinstance(value, BaseException):
                raise value
            if callable(value):
                return np.array([value(info) for info in nodes], dtype=np.int64)
            return np.full(len(nodes), value, dtype=np.int64)

        def normalize_score(
            self, state: CycleState, pod: Pod, nodes: NodeInfos, scores: Any
        ) -> Any:
            change: Callable[[Any], Any] = told.get("normalize", lambda s: s)
            return change(scores)

        def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
            return answer("reserve", SUCCESS)

        def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
            answer("unreserve", None)

        def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
            return answer("permit", (SUCCESS, 0.0))

        def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status:
            return answer("pre_bind_pre_flight", SKIP)

        def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
            return answer("pre_bind", SUCCESS)

        def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
            return answer("bind", SKIP)

        def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
            answer("post_bind", None)

    return Spy


_ALL = (
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    ReservePlugin,
    PermitPlugin,
    PreBindPlugin,
    BindPlugin,
    PostBindPlugin,
)


def enabled(*names: str, **points: list[str]) -> dict[str, Any]:
    """A profile with more plugins: ``names`` at multiPoint, others per extension point."""
    plugins: dict[str, Any] = {}
    if names:
        plugins["multiPoint"] = {"enabled": [{"name": name} for name in names]}
    for point, listed in points.items():
        plugins[point] = {"enabled": [{"name": name} for name in listed]}
    return {"plugins": plugins}
