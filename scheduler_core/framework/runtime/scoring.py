"""PreScore, Score, NormalizeScore and weights for all feasible nodes at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.interface import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    PreScorePlugin,
    ScorePlugin,
)
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.status import SUCCESS, Status, error, returned
from scheduler_core.frozen import frozen_record


@dataclass(frozen=True, slots=True, eq=False)
class NodePluginScores:
    """Scores of n feasible nodes by p plugins (those that did not skip).

    ``raw`` and ``normalized`` are int64, shape (p, n); ``weights`` int64, shape (p,); ``total``
    int64, shape (n,): sum of normalised x weight, plus what extenders add.

    Extenders that scored are the last e entries of ``plugins``. What they add may be more than
    their normalised score tells, which goes to 100: ``extender_points``, int64, shape (e, n).
    """

    plugins: tuple[str, ...]
    weights: NDArray[np.int64]
    raw: NDArray[np.int64]
    normalized: NDArray[np.int64]
    total: NDArray[np.int64]
    extender_points: NDArray[np.int64] | None = None

    def weighted(self, row: int, column: int) -> int:
        """What plugin ``row`` adds to the total of node ``column``."""
        points = self.extender_points
        first = len(self.plugins) - (0 if points is None else len(points))
        if points is not None and row >= first:
            return int(points[row - first, column])
        return int(self.normalized[row, column] * self.weights[row])


@frozen_record
class ScoreColumns:
    """Scores of all n nodes of a snapshot by p plugins, feasible or not.

    ``raw``: p arrays of int64, shape (n,), 0 where a node is not feasible; ``normalized``: int8,
    shape (p, n), -1 there; ``total``: int64, shape (n,), -1 there; ``weights``: int64, shape (p,).
    ``extender_points``: int64, shape (e, n), of the last e entries of ``plugins``; see
    ``NodePluginScores``. Nothing of it is ever written to again.
    """

    plugins: tuple[str, ...]
    weights: NDArray[np.int64]
    raw: tuple[NDArray[np.int64], ...]
    normalized: NDArray[np.int8]
    total: NDArray[np.int64]
    extender_points: NDArray[np.int64] | None = None

    @classmethod
    def spread(cls, size: int, rows: NDArray[np.intp], scores: NodePluginScores) -> ScoreColumns:
        """``scores`` of the nodes ``rows`` among ``size`` nodes."""
        p = len(scores.plugins)
        raw = np.zeros((p, size), dtype=np.int64)
        normalized = np.full((p, size), -1, dtype=np.int8)
        total = np.full(size, -1, dtype=np.int64)
        raw[:, rows] = scores.raw
        normalized[:, rows] = scores.normalized
        total[rows] = scores.total
        points = scores.extender_points
        if points is not None:
            wide = np.zeros((len(points), size), dtype=np.int64)
            wide[:, rows] = points
            points = wide
        return cls(scores.plugins, scores.weights, tuple(raw), normalized, total, points)

    def of_rows(self, rows: NDArray[np.intp]) -> NodePluginScores:
        """The scores of some feasible nodes."""
        p, f = len(self.plugins), len(rows)
        raw = np.zeros((p, f), dtype=np.int64)
        for i, column in enumerate(self.raw):
            raw[i] = column[rows]
        points = self.extender_points
        return NodePluginScores(
            self.plugins,
            self.weights,
            raw,
            self.normalized[:, rows].astype(np.int64),
            self.total[rows],
            None if points is None else points[:, rows],
        )


def run_pre_score(
    plugins: Sequence[PreScorePlugin], state: CycleState, pod: Pod, nodes: NodeInfos
) -> Status:
    """PreScore of every plugin; remembers who skips. Anything else but Success is an Error."""
    started = perf_counter()
    skipped: set[str] = set()
    status = SUCCESS
    for plugin in plugins:
        begin = perf_counter()
        answer = pre_score_one(plugin, state, pod, nodes)
        state.timings.add_plugin("PreScore", plugin.name, perf_counter() - begin)
        if not answer.is_success:
            state.timings.statuses["PreScore", plugin.name] = answer.code.label
        if answer.is_skip:
            skipped.add(plugin.name)
        elif not answer.is_success:
            text = f'running PreScore plugin "{plugin.name}": {answer.message}'
            status = error(text, plugin.name)
            break
    state.skip_score_plugins = frozenset(skipped)
    state.timings.add_point("PreScore", perf_counter() - started)
    if not status.is_success:
        state.timings.statuses["PreScore", ""] = status.code.label
    return status


def pre_score_one(plugin: PreScorePlugin, state: CycleState, pod: Pod, nodes: NodeInfos) -> Status:
    """One plugin's PreScore; what it raises is an Error."""
    try:
        return returned(plugin.pre_score(state, pod, nodes))
    except Exception as exc:
        return error(exc, plugin.name)


def run_score(
    plugins: Sequence[tuple[ScorePlugin, int]], state: CycleState, pod: Pod, nodes: NodeInfos
) -> tuple[NodePluginScores | None, Status]:
    """Raw scores, normalised scores and weighted totals (kube-scheduler 1.36, RunScorePlugins)."""
    started = perf_counter()
    scores, status = _scores(plugins, state, pod, nodes)
    state.timings.add_point("Score", perf_counter() - started)
    if not status.is_success:
        state.timings.statuses["Score", ""] = status.code.label
    return scores, status


def _scores(
    plugins: Sequence[tuple[ScorePlugin, int]], state: CycleState, pod: Pod, nodes: NodeInfos
) -> tuple[NodePluginScores | None, Status]:
    active = [(p, w) for p, w in plugins if p.name not in state.skip_score_plugins]
    n = len(nodes)
    raw = np.zeros((len(active), n), dtype=np.int64)
    normalized = np.zeros((len(active), n), dtype=np.int64)
    weights = np.array([w for _, w in active], dtype=np.int64)
    for i, (plugin, _) in enumerate(active):
        begin = perf_counter()
        try:
            raw[i] = plugin.score_nodes(state, pod, nodes)
        except Exception as exc:
            return None, _score_error(plugin.name, exc)
        scored = perf_counter()
        state.timings.add_plugin("Score", plugin.name, scored - begin)
        status = _normalize(plugin, state, pod, nodes, raw[i], normalized[i])
        state.timings.add_plugin("NormalizeScore", plugin.name, perf_counter() - scored)
        if not status.is_success:
            return None, status
    # Without any Score plugin every node is worth the same; if all of them skipped, nothing.
    total = weights @ normalized if plugins else np.ones(n, dtype=np.int64)
    names = tuple(plugin.name for plugin, _ in active)
    return NodePluginScores(names, weights, raw, normalized, total), SUCCESS


def _score_error(plugin: str, exc: BaseException) -> Status:
    return error(
        f'running Score plugins: plugin "{plugin}" failed with: {str(exc) or type(exc).__name__}',
        plugin,
    )


def _normalize(
    plugin: ScorePlugin,
    state: CycleState,
    pod: Pod,
    nodes: NodeInfos,
    raw: NDArray[np.int64],
    out: NDArray[np.int64],
) -> Status:
    try:
        out[:] = plugin.normalize_score(state, pod, nodes, raw)
    except Exception as exc:
        text = f'running Normalize on Score plugins: plugin "{plugin.name}" failed with: {exc}'
        return error(text, plugin.name)
    if len(out) and (out.min() < MIN_NODE_SCORE or out.max() > MAX_NODE_SCORE):
        bad = int(out[(out < MIN_NODE_SCORE) | (out > MAX_NODE_SCORE)][0])
        text = (
            f'applying score defaultWeights on Score plugins: plugin "{plugin.name}" returns an '
            f"invalid score {bad}, it should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] "
            "after normalizing"
        )
        return error(text, plugin.name)
    return SUCCESS
