"""The best nodes of a cycle as its row keeps them: by column, because names repeat.

``{"nodes": [...], "totals": [...], "plugins": [...], "raw": [[...] by plugin], "normalized": ...,
"weighted": ...}``; ``weighted`` is left out where it is weight x normalised score by ``weights``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from scheduler_core.records import CycleRecord, Deferred, NodeScores, ScoreMatrix

#: How many a record tells (``scheduler_core.cycle_record.BEST_NODES``).
BEST: Final = 20

#: Totals that are put in order at once: 4 MB.
_MOST_CELLS: Final = 2**19
#: Totals beyond this (of an extender, of weights of thousands of millions) cannot be put in order
#: together with the row: such cycles are told by their objects.
_LARGEST: Final = 2**40
_UNSCORED: Final = -(2**62)

Packed = dict[str, Any]

#: Where each node is in a list of names; most cycles of a run have the same list.
_rows_of: tuple[Sequence[str], dict[str, int]] = ((), {})


def pack(record: CycleRecord) -> Packed:
    """The record's best nodes by column; {} where it has none."""
    return pack_all((record,))[0]


def pack_all(records: Sequence[CycleRecord]) -> list[Packed]:
    """``pack`` of each.

    Where nobody has asked a record for its best nodes yet, they are read off its matrix, which is
    some ten times faster than making an object for each score; and off the matrices of many records
    at once, because each operation on a long array hands the interpreter's lock to the scheduler's
    thread and has to wait for it again.
    """
    found = [
        _from_nodes(record.best) if _is_told_by_objects(record) else None for record in records
    ]
    open_ = [index for index, packed in enumerate(found) if packed is None]
    for same in _alike([(index, records[index]) for index in open_]):
        for (index, record), packed in zip(same, _from_matrices([r for _, r in same]), strict=True):
            found[index] = _from_nodes(record.best) if packed is None else packed
    return [packed or {} for packed in found]


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


def _is_told_by_objects(record: CycleRecord) -> bool:
    """Whether its best nodes are taken from ``record.best``: they are made already, or its matrix
    does not tell them."""
    matrix = record.matrix
    if matrix is None or not isinstance(record.best, Deferred):
        return True
    return not matrix.scored or not matrix.plugins or _row(matrix.node_names, record.node) is None


Numbered = tuple[int, CycleRecord]


def _alike(records: Sequence[Numbered]) -> Iterator[list[Numbered]]:
    """Runs of records over the same nodes, none with more cells than ``_MOST_CELLS``."""
    run: list[Numbered] = []
    for item in records:
        names = _matrix(item[1]).node_names
        if run:
            is_full = (len(run) + 1) * len(names) > _MOST_CELLS
            if is_full or _matrix(run[0][1]).node_names is not names:
                yield run
                run = []
        run.append(item)
    if run:
        yield run


def _matrix(record: CycleRecord) -> ScoreMatrix:
    assert record.matrix is not None
    return record.matrix


def _from_matrices(records: Sequence[CycleRecord]) -> list[Packed | None]:
    """Of records over the same nodes; None where a matrix does not say how a total came about
    (extenders add to it)."""
    matrices = [_matrix(record) for record in records]
    totals = np.stack([matrix.total for matrix in matrices])
    if max(-int(totals.min()), int(totals.max())) > _LARGEST:
        return [None] * len(records)
    chosen = [_row(m.node_names, r.node) or 0 for m, r in zip(matrices, records, strict=True)]
    scored = np.stack([matrix.normalized[0] for matrix in matrices]) >= 0
    rows = best_rows(totals, scored, chosen)
    return [_from_matrix(matrix, best) for matrix, best in zip(matrices, rows, strict=True)]


def _from_matrix(matrix: ScoreMatrix, rows: list[int]) -> Packed | None:
    normalized = matrix.normalized[:, rows]
    totals = matrix.total[rows]
    if not (matrix.weights @ normalized.astype(np.int64) == totals).all():
        return None
    return {
        "nodes": [matrix.node_names[row] for row in rows],
        "totals": totals.tolist(),
        "plugins": matrix.plugins,
        "weights": matrix.weights.tolist(),
        "raw": [column[rows].tolist() for column in matrix.raw],
        "normalized": normalized.tolist(),
    }


def best_rows(
    totals: NDArray[np.int64], scored: NDArray[np.bool_], chosen: Sequence[int]
) -> list[list[int]]:
    """Of each of k cycles over the same n nodes the rows of the ``BEST`` highest totals, highest
    first; of equals ``chosen``, then the first in order.

    Args:
        totals: int64, shape (k, n), none beyond ``_LARGEST``.
        scored: bool, shape (k, n); only such nodes are told.
        chosen: k rows.
    """
    nodes = totals.shape[1]
    keep = min(BEST, nodes)
    # One number that orders by total, then by row: no two nodes of a cycle have the same.
    order = totals * (2 * nodes) + np.arange(nodes, 0, -1)
    order[range(len(chosen)), chosen] += nodes
    order[~scored] = _UNSCORED
    best = np.argpartition(order, nodes - keep, axis=1)[:, nodes - keep :]
    values = np.take_along_axis(order, best, axis=1)
    best = np.take_along_axis(best, np.argsort(-values, axis=1), axis=1)
    counts = np.minimum(np.count_nonzero(scored, axis=1), keep)
    return [rows[:count] for rows, count in zip(best.tolist(), counts.tolist(), strict=True)]


def _row(names: tuple[str, ...], node: str) -> int | None:
    """Where the node is; None: nowhere (a cycle without a node has the name "")."""
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
