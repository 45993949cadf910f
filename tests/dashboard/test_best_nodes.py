from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard import best_nodes
from scheduler_core.cycle_record import BEST_NODES, best_rows
from scheduler_core.cycle_record import best_nodes as told_best_nodes
from scheduler_core.framework.runtime.scoring import ScoreColumns
from scheduler_core.records import CycleRecord, Deferred, ScoreMatrix
from tests.dashboard.factory import cycle, matrix


def api_form(nodes: Any) -> list[dict[str, Any]]:
    return [
        {
            "node": item.node,
            "total": item.total,
            "plugins": {name: list(values) for name, values in item.plugins.items()},
        }
        for item in nodes
    ]


def columns_of(found: ScoreMatrix) -> ScoreColumns:
    return ScoreColumns(
        plugins=found.plugins,
        weights=found.weights,
        raw=tuple(found.raw),
        normalized=found.normalized,
        total=found.total,
    )


def record_of(found: ScoreMatrix, chosen: int) -> CycleRecord:
    columns, names = columns_of(found), found.node_names
    rows = best_rows(columns, chosen, BEST_NODES)
    best = Deferred(lambda: told_best_nodes(columns, names, rows))
    return cycle(1, node=names[chosen], best=best, matrix=found)


def scored(nodes: int, seed: int, levels: int) -> ScoreMatrix:
    """Few different totals, and two nodes that are not feasible."""
    found = matrix(nodes, seed)
    scores = np.random.default_rng(seed).integers(0, levels, (2, nodes)).astype(np.int8)
    scores[:, :2] = -1
    total = found.weights @ np.maximum(scores, 0).astype(np.int64)
    total[:2] = -1
    return replace(found, raw=tuple(found.raw), normalized=scores, total=total, scored=True)


def last_of_the_best(found: ScoreMatrix) -> int:
    return int(np.flatnonzero(found.total == found.total.max())[-1])


@settings(max_examples=60, deadline=None)
@given(st.integers(3, 60), st.integers(0, 5_000), st.integers(1, 4))
def test_read_off_the_matrix_they_are_the_same(nodes: int, seed: int, levels: int) -> None:
    found = scored(nodes, seed, levels)
    record = record_of(found, last_of_the_best(found))
    packed = best_nodes.pack(record)
    assert "weighted" not in packed
    assert best_nodes.unpack(packed) == api_form(record.best)


KINDS = st.sampled_from(["scored", "others", "shared", "extender", "read", "nowhere", "no matrix"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(KINDS, st.integers(0, 5_000)), max_size=8), st.integers(3, 60))
def test_of_many_records_at_once_they_are_those_of_each(
    kinds: list[tuple[str, int]], nodes: int
) -> None:
    names = scored(nodes, 0, 3).node_names
    records = [_record(kind, seed, names) for kind, seed in kinds]
    told = [[] if record.best == () else api_form(record.best) for record in map(_again, records)]
    assert [best_nodes.unpack(packed) for packed in best_nodes.pack_all(records)] == told


def _record(kind: str, seed: int, names: tuple[str, ...]) -> CycleRecord:
    if kind == "no matrix":
        return cycle(1, matrix=None)
    found = scored(len(names) + (3 if kind == "others" else 0), seed, 3)
    if kind == "shared":
        found = replace(found, node_names=names)
    chosen = last_of_the_best(found)
    if kind == "extender":
        points = np.where(found.total >= 0, found.total + seed % 7 + 1, -1)
        found = replace(found, total=points)
    record = record_of(found, chosen)
    if kind == "read":
        len(record.best)
    return replace(record, node="", best=()) if kind == "nowhere" else record


def _again(record: CycleRecord) -> CycleRecord:
    """The same, and what is read of it is not read of the other."""
    if not isinstance(record.best, Deferred) or record.matrix is None:
        return record
    return record_of(record.matrix, record.matrix.node_names.index(record.node))


def test_points_of_an_extender_are_not_in_the_matrix() -> None:
    found = matrix(6)
    found = replace(found, raw=tuple(found.raw), total=found.total + 5, scored=True)
    record = record_of(found, 2)
    packed = best_nodes.pack(record)
    assert packed["weighted"]
    assert best_nodes.unpack(packed) == api_form(record.best)


def test_weights_of_thousands_of_millions_are_told_in_order_too() -> None:
    found = scored(30, 3, 90)
    weights = np.array([2**40, 2**41])
    total = np.where(found.total < 0, -1, weights @ np.maximum(found.normalized, 0).astype("i8"))
    found = replace(found, weights=weights, total=total)
    record = record_of(found, last_of_the_best(found))
    assert best_nodes.unpack(best_nodes.pack(record)) == api_form(record.best)


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        pytest.param(None, [], id="nothing"),
        pytest.param({}, [], id="none"),
        pytest.param([{"node": "a"}], [{"node": "a"}], id="a row of an earlier version"),
    ],
)
def test_rows_without_columns(stored: Any, told: Any) -> None:
    assert best_nodes.unpack(stored) == told
