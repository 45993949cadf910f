"""The best nodes of a cycle as its row keeps them: by column, because names repeat.

``{"nodes": [...], "totals": [...], "plugins": [...], "raw": [[...] by plugin], "normalized": ...,
"weighted": ...}``; ``weighted`` is left out where it is weight x normalised score by ``weights``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from scheduler_core.records import CycleRecord, Deferred, NodeScores, ScoreMatrix

#: How many a record tells (``scheduler_core.cycle_record.BEST_NODES``).
BEST: Final = 20

Packed = dict[str, Any]

#: Where each node is in a list of names; most cycles of a run have the same list.
_rows_of: tuple[Sequence[str], dict[str, int]] = ((), {})


def pack(record: CycleRecord) -> Packed:
    """The record's best nodes by column; {} where it has none.

    Where nobody has asked the record for them yet, they are read off its matrix, which is some ten
    times faster than making an object for each score.
    """
    if isinstance(record.best, Deferred) and record.matrix is not None and record.node:
        packed = _from_matrix(record.matrix, record.node)
        if packed is not None:
            return packed
    return _from_nodes(record.best)


def unpack(packed: Any) -> list[dict[str, Any]]:
    """As the API tells them: ``{node, total, plugins: {name: [raw, normalised, weighted]}}``."""
    if isinstance(packed, list):  # a row of an earlier version
        return packed
    if not packed:
        return []
    weighted = packed.get("weighted")
    if weighted is None:
        weighted = [
            [weight * score for score in scores]
            for weight, scores in zip(packed["weights"], packed["normalized"], strict=True)
        ]
    cells = [packed["raw"], packed["normalized"], weighted]
    return [
        {
            "node": node,
            "total": total,
            "plugins": {
                plugin: [column[p][i] for column in cells]
                for p, plugin in enumerate(packed["plugins"])
            },
        }
        for i, (node, total) in enumerate(zip(packed["nodes"], packed["totals"], strict=True))
    ]


def weights(packed: Any) -> dict[str, int]:
    """Score plugin -> weight that the cycle used; {} where the row does not tell."""
    if not isinstance(packed, dict) or "weights" not in packed:
        return {}
    return dict(zip(packed["plugins"], packed["weights"], strict=True))


def _from_matrix(matrix: ScoreMatrix, node: str) -> Packed | None:
    """None where the matrix does not say how a total came about (extenders add to it)."""
    if not matrix.scored or not len(matrix.plugins):
        return None
    chosen = _row(matrix.node_names, node)
    if chosen is None:
        return None
    rows = best_rows(matrix, chosen)
    normalized = matrix.normalized[:, rows]
    totals = matrix.total[rows]
    if not np.array_equal(matrix.weights @ normalized.astype(np.int64), totals):
        return None
    return {
        "nodes": [matrix.node_names[row] for row in rows.tolist()],
        "totals": totals.tolist(),
        "plugins": matrix.plugins,
        "weights": matrix.weights.tolist(),
        "raw": [column[rows].tolist() for column in matrix.raw],
        "normalized": normalized.tolist(),
    }


def best_rows(matrix: ScoreMatrix, chosen: int) -> NDArray[np.intp]:
    """Rows of the highest totals, highest first; of equals ``chosen``, then the first in order."""
    total = np.where(matrix.normalized[0] >= 0, matrix.total, np.int64(-1))
    scored = int(np.count_nonzero(matrix.normalized[0] >= 0))
    keep = min(BEST, scored)
    level = int(total.max())
    rows = np.flatnonzero(total == level)
    if len(rows) < keep:
        level = int(np.partition(total, len(total) - keep)[len(total) - keep])
        above, at = np.flatnonzero(total > level), np.flatnonzero(total == level)
        above = above[np.argsort(-total[above], kind="stable")]
        rows = np.concatenate((above, at))
    rows = _first_of_equals(rows, total, chosen)
    return rows[:keep]


def _first_of_equals(
    rows: NDArray[np.intp], total: NDArray[np.int64], chosen: int
) -> NDArray[np.intp]:
    (found,) = np.nonzero(rows == chosen)
    if not len(found):
        return rows
    place = int(found[0])
    first = int(np.argmax(total[rows] == total[chosen]))
    if place == first:
        return rows
    moved = rows.copy()
    moved[first + 1 : place + 1] = rows[first:place]
    moved[first] = chosen
    return moved


def _row(names: tuple[str, ...], node: str) -> int | None:
    global _rows_of
    known, rows = _rows_of
    if known is not names:
        rows = {name: row for row, name in enumerate(names)}
        _rows_of = (names, rows)
    return rows.get(node)


def _from_nodes(best: Sequence[NodeScores]) -> Packed:
    if not best:
        return {}
    plugins = list(best[0].plugins)
    cells = [[item.plugins[plugin] for item in best] for plugin in plugins]
    return {
        "nodes": [item.node for item in best],
        "totals": [int(item.total) for item in best],
        "plugins": plugins,
        "raw": [[int(cell[0]) for cell in column] for column in cells],
        "normalized": [[int(cell[1]) for cell in column] for column in cells],
        "weighted": [[int(cell[2]) for cell in column] for column in cells],
    }
