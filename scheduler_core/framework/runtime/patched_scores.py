"""Scores of one equivalence class, kept for all nodes and patched where nodes changed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.interface import MAX_NODE_SCORE, MIN_NODE_SCORE, ScorePlugin
from scheduler_core.framework.nodes import NodeInfos, NodeTable
from scheduler_core.framework.runtime.scoring import ScoreColumns

__all__ = ["PatchedScores", "Unusable"]

Bool = NDArray[np.bool_]
Int64 = NDArray[np.int64]
Int8 = NDArray[np.int8]
Rows = NDArray[np.intp]


class Unusable(Exception):
    """What is kept cannot be used for this pod."""


class _Scorer:
    """One Score plugin and its raw scores: ``raw``, int64, shape (n,).

    Of a node-local plugin ``raw`` covers every node that the node-local filters pass, whether or
    not it is feasible just now, so that nodes may come back without being scored anew.
    """

    __slots__ = ("is_local", "is_raw", "plugin", "raw", "weight")

    def __init__(self, plugin: ScorePlugin, weight: int, pod: Pod) -> None:
        self.plugin = plugin
        self.weight = weight
        self.is_local = plugin.is_node_local(pod)
        #: NormalizeScore is the default, which hands the raw scores on.
        self.is_raw = type(plugin).normalize_score is ScorePlugin.normalize_score
        self.raw: Int64 = np.empty(0, dtype=np.int64)

    def ask(self, state: CycleState, pod: Pod, nodes: NodeInfos, size: int) -> None:
        """Score ``nodes``, some or all of the ``size`` nodes of the snapshot."""
        begin = perf_counter()
        try:
            values = self.plugin.score_nodes(state, pod, nodes)
        except Exception as exc:
            raise Unusable from exc
        if nodes.rows is None:
            self.raw = np.array(values, dtype=np.int64)  # the plugin may keep its own
        else:
            self.raw = np.zeros(size, dtype=np.int64)
            self.raw[nodes.rows] = values
        state.timings.add_plugin("Score", self.plugin.name, perf_counter() - begin)

    def ask_rows(
        self,
        state: CycleState,
        pod: Pod,
        nodes: NodeTable,
        rows: Collection[int],
        passed: Bool | None,
    ) -> list[int]:
        """Score single nodes in the plain form; the rows whose score is another one now."""
        begin = perf_counter()
        plugin, raw = self.plugin, self.raw
        changed: list[int] = []
        try:
            for row in rows:
                is_in = passed is None or passed[row]
                value = plugin.score(state, pod, nodes[row]) if is_in else 0
                if value != raw[row]:
                    if not changed:
                        raw = raw.copy()
                    raw[row] = value
                    changed.append(row)
        except Exception as exc:
            raise Unusable from exc
        self.raw = raw
        state.timings.add_plugin("Score", self.plugin.name, perf_counter() - begin)
        return changed

    def normalized(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Int64:
        """NormalizeScore of the feasible ``nodes``: int64, shape (f,), each 0..100."""
        raw = self.raw if nodes.rows is None else self.raw[nodes.rows]
        if self.is_raw:
            return _checked(raw)
        begin = perf_counter()
        try:
            values = self.plugin.normalize_score(state, pod, nodes, raw)
        except Exception as exc:
            raise Unusable from exc
        state.timings.add_plugin("NormalizeScore", self.plugin.name, perf_counter() - begin)
        return _checked(values)


class PatchedScores:
    """The scores of an equivalence class by those Score plugins that do not skip.

    Arrays that were handed out are never written to: what changes is copied first.
    """

    def __init__(self, plugins: Sequence[tuple[ScorePlugin, int]], pod: Pod) -> None:
        self._scorers = [_Scorer(plugin, weight, pod) for plugin, weight in plugins]
        self._names = tuple(plugin.name for plugin, _ in plugins)
        self._weights: Int64 = np.array([weight for _, weight in plugins], dtype=np.int64)
        self._has_wide = any(not scorer.is_local for scorer in self._scorers)
        #: Those whose scores can change when pods come to a node, or go.
        self._readers = [
            (i, scorer)
            for i, scorer in enumerate(self._scorers)
            if not scorer.is_local or plugins[i][0].reads_pods_on_node
        ]
        self._all = list(enumerate(self._scorers))
        self._feasible: Rows | None = None
        self._passed: Bool | None = None
        self._is_narrowed = False
        self._published: tuple[Int64, ...] = ()
        self._normalized: Int8 = np.empty((0, 0), dtype=np.int8)
        self._total: Int64 = np.empty(0, dtype=np.int64)

    def build(
        self,
        state: CycleState,
        pod: Pod,
        nodes: NodeTable,
        feasible: NodeInfos,
        passed: Bool | None,
    ) -> ScoreColumns:
        """Ask every plugin about all nodes. ``passed``: bool, shape (n,), what the node-local
        filters let through; None: every node.

        Raises:
            Unusable: a plugin failed, or its scores are out of range.
        """
        size = len(nodes)
        everywhere = nodes if passed is None else nodes.subset(np.flatnonzero(passed))
        for scorer in self._scorers:
            scorer.ask(state, pod, everywhere if scorer.is_local else feasible, size)
        self._normalized = np.full((len(self._scorers), size), -1, dtype=np.int8)
        self._feasible, self._passed = feasible.rows, passed
        self._renew(state, pod, feasible, passed, self._scorers, size)
        return self._columns()

    def patch(
        self,
        state: CycleState,
        pod: Pod,
        nodes: NodeTable,
        feasible: NodeInfos,
        passed: Bool | None,
        rows: Collection[int],
        only_pods_changed: bool,
    ) -> ScoreColumns:
        """Ask node-local plugins about ``rows``, the others about all feasible nodes.

        ``only_pods_changed``: of the nodes ``rows`` their Node objects are what they were.

        Raises:
            Unusable: as for ``build``.
        """
        size = len(nodes)
        same_passed = _same_rows(rows, passed, self._passed)
        self._passed = passed
        changed: dict[int, list[int]] = {}
        for i, scorer in self._readers if only_pods_changed and same_passed else self._all:
            if not scorer.is_local:
                scorer.ask(state, pod, feasible, size)
            elif rows and (hits := scorer.ask_rows(state, pod, nodes, rows, passed)):
                changed[i] = hits
        if not self._same_feasible(feasible.rows):
            self._feasible = feasible.rows
            self._normalized = np.full((len(self._scorers), size), -1, dtype=np.int8)
            self._renew(state, pod, feasible, passed, self._scorers, size)
        elif self._has_wide or any(not self._scorers[i].is_raw for i in changed):
            dirty = [
                scorer
                for i, scorer in enumerate(self._scorers)
                if not scorer.is_local or i in changed
            ]
            self._normalized = self._normalized.copy()
            self._renew(state, pod, feasible, passed, dirty, size)
        elif changed:
            self._renew_rows(changed)
        return self._columns()

    def _same_feasible(self, rows: Rows | None) -> bool:
        before = self._feasible
        if rows is before:
            return True
        return rows is not None and before is not None and np.array_equal(rows, before)

    def _renew(
        self,
        state: CycleState,
        pod: Pod,
        feasible: NodeInfos,
        passed: Bool | None,
        dirty: Sequence[_Scorer],
        size: int,
    ) -> None:
        """Normalise the ``dirty`` plugins' scores anew and add everything up."""
        rows = feasible.rows
        where: slice | Rows = slice(None) if rows is None else rows
        for i, scorer in enumerate(self._scorers):
            if scorer in dirty:
                self._normalized[i, where] = scorer.normalized(state, pod, feasible)
        total = np.zeros(size, dtype=np.int64)
        for i, scorer in enumerate(self._scorers):
            total += np.multiply(self._normalized[i], scorer.weight, dtype=np.int64)
        if rows is not None:
            self._total = np.full(size, -1, dtype=np.int64)
            self._total[rows] = total[rows]
        else:
            self._total = total
        count = size if passed is None else int(np.count_nonzero(passed))
        self._is_narrowed = len(feasible) < count
        self._publish(range(len(self._scorers)))

    def _renew_rows(self, changed: dict[int, list[int]]) -> None:
        """Take over single scores of plugins that do not normalise."""
        normalized, total = self._normalized.copy(), self._total.copy()
        for i, rows in changed.items():
            scorer = self._scorers[i]
            for row in rows:
                if total[row] < 0:  # not feasible: passed by node-local filters only
                    continue
                value = int(scorer.raw[row])
                if not MIN_NODE_SCORE <= value <= MAX_NODE_SCORE:
                    raise Unusable
                total[row] += scorer.weight * (value - int(normalized[i, row]))
                normalized[i, row] = value
        self._normalized, self._total = normalized, total
        self._publish(changed)

    def _publish(self, indices: Collection[int]) -> None:
        """Raw scores as they are told: 0 where a node is not feasible."""
        published = list(self._published) or [s.raw for s in self._scorers]
        for i in indices:
            scorer = self._scorers[i]
            if self._is_narrowed and scorer.is_local:
                narrowed = np.zeros_like(scorer.raw)
                narrowed[self._feasible] = scorer.raw[self._feasible]
                published[i] = narrowed
            else:
                published[i] = scorer.raw
        self._published = tuple(published)

    def _columns(self) -> ScoreColumns:
        return ScoreColumns(
            self._names, self._weights, self._published, self._normalized, self._total
        )


def _is_in(mask: Bool | None, row: int) -> bool:
    return mask is None or bool(mask[row])


def _same_rows(rows: Collection[int], one: Bool | None, other: Bool | None) -> bool:
    return one is other or all(_is_in(one, row) == _is_in(other, row) for row in rows)


def _checked(values: Int64) -> Int64:
    if len(values) and (values.min() < MIN_NODE_SCORE or values.max() > MAX_NODE_SCORE):
        raise Unusable
    return values
