"""Turns a finished PodCycle into the records that observers get."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import repeat
from operator import mul
from time import perf_counter
from typing import overload

import numpy as np
from numpy.typing import NDArray

from scheduler_core.algorithm import ScheduleResult
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.runtime.scoring import ScoreColumns
from scheduler_core.framework.status import Code, Status
from scheduler_core.pod_cycle import PodCycle
from scheduler_core.records import (
    BindingRecord,
    CycleRecord,
    Deferred,
    NodeScores,
    QueueDepths,
    Rejection,
    ScoreMatrix,
)

#: How many of the best nodes a CycleRecord carries.
BEST_NODES = 20
_LOWEST = int(np.iinfo(np.int64).min)

#: An extender may drop a node without a word.
NO_REASON = "no reason given"


def cycle_record(cycle: PodCycle, depths: QueueDepths) -> CycleRecord:
    """The CycleRecord of an attempt whose scheduling cycle has just ended.

    What few readers want is worked out when they read it; what it needs for that never changes.
    """
    result = cycle.result
    plugins = cycle.fit_error.diagnosis.unschedulable_plugins if cycle.fit_error else set()
    timings = cycle.timings
    return CycleRecord(
        sequence=cycle.sequence,
        pod=cycle.ref,
        attempt=cycle.info.attempts,
        profile=cycle.framework.profile_name,
        priority=cycle.pod.priority,
        outcome=cycle.outcome,
        started_at=cycle.started_at,
        duration=cycle.duration,
        node=cycle.node_name,
        score=result.best_total if result else None,
        ties=result.ties if result else 0,
        nominated_node=cycle.nominating.node_name,
        victims=cycle.victims,
        message=cycle.message,
        plugin=cycle.status.plugin,
        nodes_total=len(result.nodes) if result else 0,
        nodes_evaluated=result.evaluated if result else 0,
        nodes_feasible=len(result.feasible) if result else 0,
        point_seconds=timings.points,
        plugin_seconds=timings.plugins,
        rejections=_rejections_when_read(result),
        best=_best_when_read(result),
        unschedulable_plugins=tuple(sorted(plugins)),
        pod_group=cycle.gang_key,
        matrix=score_matrix(result),
        depths=depths,
    )


def _rejections_when_read(result: ScheduleResult | None) -> Sequence[Rejection]:
    if result is None or len(result.feasible) == result.size:
        return ()
    return Deferred(partial(rejections, result.statuses, result.status, result.size))


def _best_when_read(result: ScheduleResult | None) -> Sequence[NodeScores]:
    if result is None or result.columns is None:
        return ()
    return BestNodes(result.columns, result.names, result.row, len(result.feasible))


class BestNodes(Deferred[NodeScores]):
    """``best_nodes`` when they are read; how many there are, and the first one, cost little.

    ``feasible``: how many nodes were scored.
    """

    __slots__ = ("_chosen", "_columns", "_feasible", "_names")

    def __init__(
        self, columns: ScoreColumns, names: Sequence[str], chosen: int, feasible: int
    ) -> None:
        # No closure over self: such a cycle would keep each record's columns until the next
        # collection of garbage.
        super().__init__(lambda: best_nodes(columns, names, best_rows(columns, chosen, BEST_NODES)))
        self._columns = columns
        self._names = names
        self._chosen = chosen
        self._feasible = feasible

    def __len__(self) -> int:
        return min(self._feasible, BEST_NODES)

    @overload
    def __getitem__(self, index: int) -> NodeScores: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[NodeScores]: ...
    def __getitem__(self, index: int | slice) -> NodeScores | Sequence[NodeScores]:
        if index == 0:
            return node_scores(self._columns, self._names, self._chosen)
        return super().__getitem__(index)


def rejections(statuses: NodeStatuses | None, overall: Status, nodes: int) -> tuple[Rejection, ...]:
    """Nodes per plugin and reason, most nodes first.

    ``overall`` is what PreFilter said of all ``nodes`` nodes where there are no ``statuses``.
    """
    if statuses is None:
        if not overall.is_rejected or not nodes:
            return ()
        resolvable = overall.code is Code.UNSCHEDULABLE
        return (Rejection(overall.plugin, overall.message, nodes, resolvable),)
    counts: dict[tuple[str, str, bool], int] = {}
    for status, count in statuses.counts():
        resolvable = status.code is Code.UNSCHEDULABLE
        for reason in status.reasons or (NO_REASON,):
            key = (status.plugin, reason, resolvable)
            counts[key] = counts.get(key, 0) + count
    rows = [Rejection(plugin, reason, n, can) for (plugin, reason, can), n in counts.items()]
    return tuple(sorted(rows, key=lambda r: (-r.nodes, r.plugin, r.reason, r.resolvable)))


def best_nodes(
    columns: ScoreColumns, names: Sequence[str], rows: list[int]
) -> tuple[NodeScores, ...]:
    """What the plugins gave the nodes ``rows``."""
    raw = [column[rows].tolist() for column in columns.raw]
    normalized = columns.normalized[:, rows].astype(np.int64)
    weighted = normalized * columns.weights[:, None]
    points = columns.extender_points
    if points is not None and len(points):
        weighted[-len(points) :] = points[:, rows]
    # By node: what each plugin gave it, as (raw, normalised, weighted).
    by_plugin = map(zip, raw, normalized.tolist(), weighted.tolist())
    cells = zip(*by_plugin, strict=True) if len(raw) else repeat(())
    totals = columns.total[rows].tolist()
    plugins = columns.plugins
    return tuple(
        NodeScores(names[row], total, dict(zip(plugins, scores, strict=True)))
        for row, total, scores in zip(rows, totals, cells, strict=False)
    )


def node_scores(columns: ScoreColumns, names: Sequence[str], row: int) -> NodeScores:
    """What the plugins gave one node: ``best_nodes`` of it alone, without arrays."""
    normalized = columns.normalized[:, row].tolist()
    weighted = list(map(mul, normalized, columns.weights.tolist()))
    points = columns.extender_points
    if points is not None and len(points):
        weighted[-len(points) :] = points[:, row].tolist()
    raw = [column.item(row) for column in columns.raw]
    scores = dict(zip(columns.plugins, zip(raw, normalized, weighted, strict=True), strict=True))
    return NodeScores(names[row], columns.total.item(row), scores)


def best_rows(columns: ScoreColumns, chosen: int, keep: int) -> list[int]:
    """Rows of the ``keep`` largest totals (of those that were scored), largest first, ``chosen``
    before its equals. Most nodes of a cluster are equals, so whole levels are taken from the top.
    """
    total = columns.total
    # Only an extender's points can be negative, or as low as what stands for "not scored".
    lowest = 0 if columns.extender_points is None else _LOWEST
    scored = None if lowest == 0 else columns.normalized[0] >= 0
    taken = [chosen]
    level = int(total[chosen])
    while len(taken) < keep and level >= lowest:
        hits = total == level if scored is None else (total == level) & scored
        rows = hits.nonzero()[0][: keep + 1].tolist()
        taken += [row for row in rows if row != chosen]
        if len(taken) < keep:
            below = total < level if scored is None else (total < level) & scored
            level = int(total.max(initial=_LOWEST, where=below))
            if level == _LOWEST:
                break
    return taken[:keep]


def score_matrix(result: ScheduleResult | None) -> ScoreMatrix | None:
    """Every node of the cycle; None where no node was looked at."""
    if result is None or not result.size:
        return None
    n, columns = result.size, result.columns
    rejection, reasons = _rejection_ids(result, n)
    return ScoreMatrix(
        node_names=tuple(result.names),
        plugins=columns.plugins if columns is not None else (),
        weights=columns.weights if columns is not None else np.zeros(0, dtype=np.int64),
        raw=columns.raw if columns is not None else (),
        normalized=columns.normalized if columns is not None else np.zeros((0, n), dtype=np.int8),
        total=columns.total if columns is not None else np.full(n, -1, dtype=np.int64),
        rejection=rejection,
        reasons=reasons,
        scored=columns is not None,
    )


def _rejection_ids(
    result: ScheduleResult, n: int
) -> tuple[NDArray[np.int32], tuple[tuple[str, str, str], ...]]:
    """int32 (n,): index of the reason, -1 feasible, -2 not evaluated; and the reasons."""
    if result.statuses is None:
        status = result.status
        if status.is_success:
            return np.full(n, -1, dtype=np.int32), ()
        reason = (status.plugin, status.message, status.code.label)
        return np.zeros(n, dtype=np.int32), (reason,)
    ids = result.statuses.ids
    table = result.statuses.table
    absent = result.statuses.absent_status
    reasons = [(s.plugin, ", ".join(s.reasons) or NO_REASON, s.code.label) for s in table[1:]]
    rejection = result.statuses.rejections()
    if absent.reasons:
        reasons.append((absent.plugin, ", ".join(absent.reasons), absent.code.label))
        rejection = np.where(ids == NodeStatuses.ABSENT, len(reasons) - 1, rejection)
    return rejection.astype(np.int32, copy=False), tuple(reasons)


def binding_record(
    cycle: PodCycle, bound: bool, message: str, plugin: str, finished_at: float
) -> BindingRecord:
    """The end of a binding cycle."""
    return BindingRecord(
        cycle=cycle.sequence,
        pod=cycle.ref,
        node=cycle.node_name,
        bound=bound,
        finished_at=finished_at,
        duration=perf_counter() - cycle.binding_started,
        message=message,
        plugin=plugin,
        point_seconds=cycle.binding_timings.points,
    )
