"""Scores of one equivalence class, kept for all nodes and patched where nodes changed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.interface import MAX_NODE_SCORE, MIN_NODE_SCORE, ScorePlugin
from scheduler_core.framework.nodes import NodeInfos, NodeTable
from scheduler_core.framework.runtime.scoring import ScoreColumns

__all__ = ["Feasible", "PatchedScores", "Unusable"]

Bool = NDArray[np.bool_]
Int64 = NDArray[np.int64]
Int8 = NDArray[np.int8]
Rows = NDArray[np.intp]


_NO_ROWS: Rows = np.empty(0, dtype=np.intp)
#: Where more nodes than this become feasible, or stop being so, everything is added up anew.
MANY_ROWS = 64


@dataclass(slots=True, eq=False)
class Feasible:
    """The nodes that passed all filters; ``mask``: bool, shape (n,), None where all n did."""

    nodes: NodeInfos
    mask: Bool | None


class Unusable(Exception):
    """What is kept cannot be used for this pod."""


class _Scorer:
    """One Score plugin and its raw scores: ``raw``, int64, shape (n,).

    Of a node-local plugin ``raw`` covers every node that the node-local filters pass, whether or
    not it is feasible just now, so that nodes may come back without being scored anew.
    """

    __slots__ = ("is_local", "is_raw", "key", "plugin", "raw", "weight")

    def __init__(self, plugin: ScorePlugin, weight: int, pod: Pod) -> None:
        self.plugin = plugin
        self.key = ("Score", plugin.name)
        self.weight = weight
        self.is_local = plugin.is_node_local(pod)
        #: NormalizeScore is the default, which hands the raw scores on.
        self.is_raw = type(plugin).normalize_score is ScorePlugin.normalize_score
        self.raw: Int64 = np.empty(0, dtype=np.int64)

    def ask(self, state: CycleState, pod: Pod, nodes: NodeInfos, size: int) -> None:
        """Score ``nodes``, some or all of the ``size`` nodes of the snapshot."""
        try:
            values = self.plugin.score_nodes(state, pod, nodes)
        except Exception as exc:
            raise Unusable from exc
        if nodes.rows is None:
            self.raw = np.array(values, dtype=np.int64)  # the plugin may keep its own
        else:
            self.raw = np.zeros(size, dtype=np.int64)
            self.raw[nodes.rows] = values

    def ask_rows(
        self,
        state: CycleState,
        pod: Pod,
        nodes: NodeTable,
        rows: Collection[int],
        passed: Bool | None,
    ) -> list[int]:
        """Score single nodes in the plain form; the rows whose score is another one now."""
        plugin, raw = self.plugin, self.raw
        changed: list[int] = []
        try:
            for row in rows:
                is_in = passed is None or passed[row]
                value = plugin.score(state, pod, nodes[row]) if is_in else 0
                if value != raw.item(row):
                    if not changed:
                        raw = raw.copy()
                    raw[row] = value
                    changed.append(row)
        except Exception as exc:
            raise Unusable from exc
        self.raw = raw
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
        self._mask: Bool | None = None
        self._passed: Bool | None = None
        self._is_narrowed = False
        self._published: list[Int64] = []
        self._normalized: Int8 = np.empty((0, 0), dtype=np.int8)
        self._total: Int64 = np.empty(0, dtype=np.int64)

    def build(
        self, state: CycleState, pod: Pod, nodes: NodeTable, feasible: Feasible, passed: Bool | None
    ) -> ScoreColumns:
        """Ask every plugin about all nodes. ``passed``: bool, shape (n,), what the node-local
        filters let through; None: every node.

        Raises:
            Unusable: a plugin failed, or its scores are out of range.
        """
        size = len(nodes)
        everywhere = nodes if passed is None else nodes.subset(np.flatnonzero(passed))
        now = perf_counter()
        for scorer in self._scorers:
            scorer.ask(state, pod, everywhere if scorer.is_local else feasible.nodes, size)
            begin, now = now, perf_counter()
            state.timings.add(scorer.key, now - begin)
        self._passed = passed
        self._renew(state, pod, feasible, size)
        return self._columns()

    def patch(
        self,
        state: CycleState,
        pod: Pod,
        nodes: NodeTable,
        feasible: Feasible,
        passed: Bool | None,
        rows: Collection[int],
        only_pods_changed: bool,
        now: float,
    ) -> ScoreColumns:
        """Ask node-local plugins about ``rows``, the others about all feasible nodes; it is
        ``now``.

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
                scorer.ask(state, pod, feasible.nodes, size)
            elif rows and (hits := scorer.ask_rows(state, pod, nodes, rows, passed)):
                changed[i] = hits
            begin, now = now, perf_counter()
            state.timings.add(scorer.key, now - begin)
        moved = _difference(feasible.mask, self._mask)
        if len(moved) > MANY_ROWS:
            self._renew(state, pod, feasible, size)
        elif changed or len(moved) or self._has_wide:
            self._patch(state, pod, feasible, changed, moved.tolist(), size)
        return self._columns()

    def _renew(self, state: CycleState, pod: Pod, feasible: Feasible, size: int) -> None:
        """Normalise every plugin's scores anew and add everything up."""
        rows = feasible.nodes.rows
        where: slice | Rows = slice(None) if rows is None else rows
        self._normalized = np.full((len(self._scorers), size), -1, dtype=np.int8)
        total = np.zeros(size, dtype=np.int64)
        for i, scorer in enumerate(self._scorers):
            self._normalized[i, where] = scorer.normalized(state, pod, feasible.nodes)
            total += np.multiply(self._normalized[i], scorer.weight, dtype=np.int64)
        if feasible.mask is not None:
            total[~feasible.mask] = -1
        self._total = total
        self._mask = feasible.mask
        self._is_narrowed = self._narrows(feasible, size)
        self._published = [self._told(scorer) for scorer in self._scorers]

    def _patch(
        self,
        state: CycleState,
        pod: Pod,
        feasible: Feasible,
        changed: dict[int, list[int]],
        moved: list[int],
        size: int,
    ) -> None:
        """Take over ``changed`` (plugin -> rows with another raw score) and ``moved`` (rows that
        are feasible now and were not, or the other way round)."""
        rows, mask = feasible.nodes.rows, feasible.mask
        where: slice | Rows = slice(None) if rows is None else rows
        normalized, total = self._normalized.copy(), self._total.copy()
        for i, scorer in enumerate(self._scorers):
            if scorer.is_raw and scorer.is_local:
                for row in changed.get(i, ()):
                    if mask is None or mask[row]:
                        value = _in_range(scorer.raw.item(row))
                        total[row] += scorer.weight * (value - normalized.item(i, row))
                        normalized[i, row] = value
            elif not scorer.is_local or moved or i in changed:
                fresh = np.full(size, -1, dtype=np.int8)
                fresh[where] = scorer.normalized(state, pod, feasible.nodes)
                difference = np.subtract(fresh, normalized[i], dtype=np.int64)
                difference *= scorer.weight
                total += difference
                normalized[i] = fresh
        for row in moved:
            self._settle(row, mask is None or bool(mask[row]), normalized, total)
        self._normalized, self._total, self._mask = normalized, total, mask
        self._publish(self._narrows(feasible, size), changed, moved)

    def _settle(self, row: int, is_feasible: bool, normalized: Int8, total: Int64) -> None:
        """Score a node that has just become feasible, or is so no more."""
        if not is_feasible:
            normalized[:, row] = total[row] = -1
            return
        for i, scorer in enumerate(self._scorers):
            if scorer.is_raw:
                normalized[i, row] = _in_range(int(scorer.raw[row]))
        total[row] = self._weights @ normalized[:, row].astype(np.int64)

    def _publish(self, is_narrowed: bool, changed: dict[int, list[int]], moved: list[int]) -> None:
        """Raw scores as they are told: 0 where a node is not feasible."""
        was_narrowed, self._is_narrowed = self._is_narrowed, is_narrowed
        for i, scorer in enumerate(self._scorers):
            if not scorer.is_local or not (was_narrowed and is_narrowed):
                self._published[i] = self._told(scorer)
                continue
            rows = {*moved, *changed.get(i, ())}
            if rows:
                told = self._published[i] = self._published[i].copy()
                for row in rows:
                    told[row] = scorer.raw[row] if _is_in(self._mask, row) else 0

    def _narrows(self, feasible: Feasible, size: int) -> bool:
        """Whether nodes that the node-local filters pass are not feasible for other reasons."""
        passed = self._passed
        return len(feasible.nodes) < (size if passed is None else int(np.count_nonzero(passed)))

    def _told(self, scorer: _Scorer) -> Int64:
        if not scorer.is_local or not self._is_narrowed:
            return scorer.raw
        assert self._mask is not None
        return np.where(self._mask, scorer.raw, 0)

    def _columns(self) -> ScoreColumns:
        return ScoreColumns(
            self._names, self._weights, tuple(self._published), self._normalized, self._total
        )


def _is_in(mask: Bool | None, row: int) -> bool:
    return mask is None or bool(mask[row])


def _same_rows(rows: Collection[int], one: Bool | None, other: Bool | None) -> bool:
    return one is other or all(_is_in(one, row) == _is_in(other, row) for row in rows)


def _difference(one: Bool | None, other: Bool | None) -> Rows:
    """intp, ascending: rows in which two masks differ; None is a mask of all."""
    if one is other:
        return _NO_ROWS
    if one is None or other is None:
        only = one if one is not None else other
        assert only is not None
        return np.flatnonzero(~only)
    return np.flatnonzero(one != other)


def _in_range(value: int) -> int:
    if not MIN_NODE_SCORE <= value <= MAX_NODE_SCORE:
        raise Unusable
    return value


def _checked(values: Int64) -> Int64:
    if len(values) and (values.min() < MIN_NODE_SCORE or values.max() > MAX_NODE_SCORE):
        raise Unusable
    return values
