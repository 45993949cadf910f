from __future__ import annotations

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


@settings(max_examples=60, deadline=None)
@given(st.integers(3, 60), st.integers(0, 5_000), st.integers(1, 4))
def test_read_off_the_matrix_they_are_the_same(nodes: int, seed: int, levels: int) -> None:
    found = matrix(nodes, seed)
    scores = np.random.default_rng(seed).integers(0, levels, (2, nodes)).astype(np.int8)
    scores[:, :2] = -1
    total = found.weights @ np.maximum(scores, 0).astype(np.int64)
    total[:2] = -1
    found = ScoreMatrix(
        found.node_names, found.plugins, found.weights, tuple(found.raw), scores, total,
        found.rejection, found.reasons, True,
    )  # fmt: skip
    chosen = int(np.flatnonzero(total == total.max())[-1])
    record = record_of(found, chosen)
    packed = best_nodes.pack(record)
    assert "weighted" not in packed
    assert best_nodes.unpack(packed) == api_form(record.best)


def test_points_of_an_extender_are_not_in_the_matrix() -> None:
    found = matrix(6)
    found = ScoreMatrix(
        found.node_names, found.plugins, found.weights, tuple(found.raw), found.normalized,
        found.total + 5, found.rejection, found.reasons, True,
    )  # fmt: skip
    record = record_of(found, 2)
    packed = best_nodes.pack(record)
    assert packed["weighted"]
    assert best_nodes.unpack(packed) == api_form(record.best)


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
