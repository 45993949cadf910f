"""NodeResourcesFitArgs: read and checked as kube-scheduler 1.36 does when it makes the plugin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scheduler_core.api.errors import forbidden, invalid, required, unsupported
from scheduler_core.framework.errors import PluginConfigError
from scheduler_core.plugins.noderesources.scorers import (
    LeastAllocated,
    MostAllocated,
    RequestedToCapacityRatio,
    ResourceScorer,
)

__all__ = ["FitArgs", "read_fit_args"]

_LEAST: Final = "LeastAllocated"
_MOST: Final = "MostAllocated"
_RATIO: Final = "RequestedToCapacityRatio"
_TYPES: Final = (_LEAST, _MOST, _RATIO)
_DEFAULT_RESOURCES: Final[Sequence[Mapping[str, Any]]] = (
    {"name": "cpu", "weight": 1},
    {"name": "memory", "weight": 1},
)
_DEFAULT_STRATEGY: Final[Mapping[str, Any]] = {"type": _LEAST, "resources": _DEFAULT_RESOURCES}
_MAX_UTILIZATION: Final = 100
_MAX_SHAPE_SCORE: Final = 10
_MAX_WEIGHT: Final = 100

_Faults = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class FitArgs:
    """What the plugin works with. ``resources``: (name, weight) that are scored."""

    ignored_resources: frozenset[str]
    ignored_groups: frozenset[str]
    resources: tuple[tuple[str, int], ...]
    scorer: ResourceScorer


def read_fit_args(args: Mapping[str, Any]) -> FitArgs:
    """Absent fields take their defaults.

    Raises:
        PluginConfigError: with kube-scheduler's text; several faults are joined in brackets.
    """
    faults: _Faults = []
    groups = tuple(args.get("ignoredResourceGroups") or ())
    for i, group in enumerate(groups):
        if "/" in group:
            text = invalid(group, "resource group name can't contain '/'")
            faults.append((f"ignoredResourceGroups[{i}]", text))
    strategy = args.get("scoringStrategy")
    strategy = _DEFAULT_STRATEGY if strategy is None else strategy
    _check_type(strategy, faults)
    resources = _read_resources(strategy, faults)
    points = _read_points(strategy, faults)
    _raise_any(faults)
    return FitArgs(
        frozenset(args.get("ignoredResources") or ()),
        frozenset(groups),
        resources,
        _scorer(strategy["type"], points),
    )


def _scorer(kind: str, points: Sequence[tuple[int, int]]) -> ResourceScorer:
    if kind == _LEAST:
        return LeastAllocated()
    if kind == _MOST:
        return MostAllocated()
    # Configured scores go to 10, node scores to 100.
    return RequestedToCapacityRatio([(utilization, 10 * score) for utilization, score in points])


def _check_type(strategy: Mapping[str, Any], faults: _Faults) -> None:
    kind = strategy.get("type", "")
    if kind not in _TYPES:
        faults.append(("scoringStrategy.type", unsupported(kind, _TYPES)))


def _read_resources(strategy: Mapping[str, Any], faults: _Faults) -> tuple[tuple[str, int], ...]:
    entries = strategy.get("resources") or _DEFAULT_RESOURCES
    # No weight, and weight 0, mean 1.
    resources = tuple((entry["name"], entry.get("weight") or 1) for entry in entries)
    for i, (name, weight) in enumerate(resources):
        if not 1 <= weight <= _MAX_WEIGHT:
            text = f"resource weight of {name} not in valid range (0, {_MAX_WEIGHT}]"
            faults.append((f"scoringStrategy.resources[{i}].weight", invalid(weight, text)))
    return resources


def _read_points(strategy: Mapping[str, Any], faults: _Faults) -> tuple[tuple[int, int], ...]:
    path = "scoringStrategy.requestedToCapacityRatio"
    kind, ratio = strategy.get("type", ""), strategy.get("requestedToCapacityRatio")
    if kind == _RATIO and ratio is None:
        faults.append((path, required(f"must be specified when type is {_RATIO}")))
    if kind != _RATIO and ratio is not None:
        faults.append((path, forbidden(f"must be nil when type is not {_RATIO}")))
    if ratio is None:
        return ()
    shape = ratio.get("shape") or ()
    points = tuple((p.get("utilization", 0), p.get("score", 0)) for p in shape)
    _check_shape(points, f"{path}.shape", faults)
    return points


def _check_shape(points: Sequence[tuple[int, int]], path: str, faults: _Faults) -> None:
    if not points:
        faults.append((path, required("at least one point must be specified")))
    for i, (utilization, score) in enumerate(points):
        if i and utilization <= points[i - 1][0]:
            text = invalid(utilization, "values must be sorted in increasing order")
            faults.append((f"{path}[{i}].utilization", text))
        if not 0 <= utilization <= _MAX_UTILIZATION:
            text = invalid(utilization, f"not in valid range [0, {_MAX_UTILIZATION}]")
            faults.append((f"{path}[{i}].utilization", text))
        if not 0 <= score <= _MAX_SHAPE_SCORE:
            text = invalid(score, f"not in valid range [0, {_MAX_SHAPE_SCORE}]")
            faults.append((f"{path}[{i}].score", text))


def _raise_any(faults: _Faults) -> None:
    if not faults:
        return
    if len(faults) == 1:
        raise PluginConfigError(*faults[0])
    lines = ", ".join(f"{path}: {message}" for path, message in faults)
    raise PluginConfigError("", f"[{lines}]")
