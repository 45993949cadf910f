"""NodeResourcesBalancedAllocation: prefers nodes whose resources fill up evenly
(kube-scheduler 1.36)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from scheduler_core.api import Pod, pod_requests
from scheduler_core.api.errors import duplicate, invalid
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.errors import PluginConfigError
from scheduler_core.framework.interface import (
    MAX_NODE_SCORE,
    Handle,
    PreScorePlugin,
    ScorePlugin,
    Scores,
)
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.status import SKIP, SUCCESS, Status
from scheduler_core.plugins.noderesources.amounts import (
    allocatable_column,
    counts_for_scoring,
    offered_amount,
    requested_column,
)

__all__ = ["NodeResourcesBalancedAllocation"]

_DEFAULT_RESOURCES: Final = ({"name": "cpu"}, {"name": "memory"})
_PRE_SCORE: Final = "PreScoreNodeResourcesBalancedAllocation"
_HALF: Final = MAX_NODE_SCORE // 2
Floats = NDArray[np.float64]


class NodeResourcesBalancedAllocation(PreScorePlugin, ScorePlugin):
    """Compares how evenly the node is used with the pod and without it: 75 is "no change".

    Args (NodeResourcesBalancedAllocationArgs): ``resources``, cpu and memory by default; every
    weight must be 1 and every name unique.

    Raises:
        PluginConfigError: a weight other than 1, or a name that occurs twice.
    """

    name = "NodeResourcesBalancedAllocation"

    def is_node_local(self, pod: Pod) -> bool:
        return True

    def __init__(self, args: Mapping[str, Any], _handle: Handle) -> None:
        self._resources = _read_resources(args)

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Status:
        """Skip for a pod that asks for none of the resources."""
        own = self._own(pod)
        if not any(own):
            return SKIP
        state.write(_PRE_SCORE, self._balanced(own))
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        balanced = state.get(_PRE_SCORE)
        if balanced is None:
            own = self._own(pod)
            if not any(own):
                return 0
            balanced = self._balanced(own)
        before: list[float] = []
        after: list[float] = []
        offers, requested = node_info.allocatable, node_info.requested
        for name, amount in balanced:
            offered = offered_amount(offers, name)
            if offered == 0:
                continue
            used = requested.get(name, 0)
            total = float(offered)
            share = float(used) / total
            before.append(share if share < 1.0 else 1.0)
            share = float(used + amount) / total
            after.append(share if share < 1.0 else 1.0)
        return _HALF + (_HALF + _balance(after) - _balance(before)) // 2

    def score_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Scores:
        own = self._own(pod)
        if not any(own):
            return np.zeros(len(nodes), dtype=np.int64)
        before: list[Floats] = []
        after: list[Floats] = []
        for name, amount in zip(self._resources, own, strict=True):
            if counts_for_scoring(name, amount):
                offered = allocatable_column(nodes, name).astype(np.float64)
                offered[offered == 0] = np.nan  # such a node leaves the resource out
                used = requested_column(nodes, name)
                before.append(np.minimum(1.0, used / offered))
                after.append(np.minimum(1.0, (used + amount) / offered))
        return _HALF + (_HALF + _balances(after) - _balances(before)) // 2

    def _balanced(self, own: Sequence[int]) -> list[tuple[str, int]]:
        """(resource, the pod's amount) that are compared."""
        amounts = zip(self._resources, own, strict=True)
        return [(name, amount) for name, amount in amounts if counts_for_scoring(name, amount)]

    def _own(self, pod: Pod) -> list[int]:
        requests = pod_requests(pod)
        return [requests.get(name, 0) for name in self._resources]


def _balance(fractions: Sequence[float]) -> int:
    """50..100: 100 less the standard deviation of the used fractions in percent."""
    n = len(fractions)
    if n < 2:
        return MAX_NODE_SCORE
    if n == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    else:
        mean = _total(fractions) / n
        deviation = math.sqrt(_total([(f - mean) * (f - mean) for f in fractions]) / n)
    return int((1 - deviation) * MAX_NODE_SCORE)


def _total(numbers: Sequence[float]) -> float:
    # Not sum(): from Python 3.12 on it corrects rounding errors, which the reference does not.
    total = 0.0
    for number in numbers:
        total += number
    return total


def _balances(fractions: Sequence[Floats]) -> Scores:
    """``_balance`` for n nodes: float64, shape (n,) per resource, NaN where it is left out.

    Sums run over the resources in their order, because the order decides the last bit.
    """
    if len(fractions) == 2:
        deviation = np.abs((fractions[0] - fractions[1]) / 2)
    else:
        deviation = _deviations(fractions)
    # NaN: fewer than two resources are left.
    deviation = np.nan_to_num(deviation, nan=0.0)
    return ((1 - deviation) * MAX_NODE_SCORE).astype(np.int64)


def _deviations(fractions: Sequence[Floats]) -> Floats:
    matrix = np.array(fractions)  # (resources, nodes)
    counted = ~np.isnan(matrix)
    count = counted.sum(axis=0)
    values = np.where(counted, matrix, 0.0)
    mean = _sum(values) / np.maximum(count, 1)
    squares = np.where(counted, (values - mean) * (values - mean), 0.0)
    many = np.sqrt(_sum(squares) / np.maximum(count, 1))
    # Exactly two left: half their distance, whichever two they are.
    largest = np.where(counted, matrix, -1.0).max(axis=0)
    smallest = np.where(counted, matrix, 2.0).min(axis=0)
    answer: Floats = np.where(count > 2, many, np.where(count == 2, (largest - smallest) / 2, 0.0))
    return answer


def _sum(rows: Floats) -> Floats:
    total: Floats = np.zeros(rows.shape[1])
    for row in rows:
        total = total + row
    return total


def _read_resources(args: Mapping[str, Any]) -> tuple[str, ...]:
    entries = args.get("resources") or _DEFAULT_RESOURCES
    names: list[str] = []
    for i, entry in enumerate(entries):
        weight = entry.get("weight") or 1
        if weight != 1:
            raise PluginConfigError(f"resources[{i}].weight", invalid(weight, "must be 1"))
        if entry["name"] in names:
            raise PluginConfigError(f"resources[{i}].name", duplicate(entry["name"]))
        names.append(entry["name"])
    return tuple(names)
