"""Tables, as kubectl prints them: columns and cells of each kind (kube-apiserver's printers)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from scheduler_core.api.reader import parse_time
from scheduler_core.ports import Json

from .catalog import Served
from .json_paths import find_path
from .spans import since
from .table_cells import CELLS, Cells, age
from .table_columns import COLUMNS, column

__all__ = ["columns_of", "rows_of"]

_CUSTOM_COLUMN: Final = "Custom resource definition column (in JSONPath format): "
_POD: Final = COLUMNS["Pod"]
_NAME: Final = next(definition for definition in _POD if definition["name"] == "Name")
_CREATED: Final = {
    **next(definition for definition in _POD if definition["name"] == "Age"), "type": "date",
}  # fmt: skip


def columns_of(served: Served) -> list[Json]:
    """The column definitions of a table."""
    if not served.custom:
        return list(COLUMNS.get(served.kind) or (_NAME, {**_CREATED, "name": "Created At"}))
    own = [
        column(
            str(given.get("name", "")),
            str(given.get("type", "string")),
            str(given.get("description") or f"{_CUSTOM_COLUMN}{given.get('jsonPath', '')}"),
            format_=str(given.get("format", "")),
            priority=int(given.get("priority") or 0),  # type: ignore[call-overload]
        )
        for given in served.columns
    ]
    return [_NAME, *(own or [_CREATED])]


def rows_of(served: Served, objects: Sequence[Json], now: float) -> list[list[Any]]:
    """The cells of each object, in the order of the columns.

    Args:
        now: for ages.
    """
    cells = _custom_cells(served) if served.custom else CELLS.get(served.kind, _plain)
    return [cells(obj, now) for obj in objects]


def _plain(obj: Json, now: float) -> list[Any]:
    metadata = obj["metadata"]
    return [metadata["name"], metadata.get("creationTimestamp", "<unknown>")]


def _custom_cells(served: Served) -> Cells:
    paths = [(str(c.get("jsonPath", "")), str(c.get("type", ""))) for c in served.columns]

    def cells(obj: Json, now: float) -> list[Any]:
        name = obj["metadata"]["name"]
        if not paths:
            return [name, age(obj, now)]
        return [name, *(_custom_cell(obj, path, kind, now) for path, kind in paths)]

    return cells


def _custom_cell(obj: Json, path: str, kind: str, now: float) -> Any:
    found = find_path(obj, path)
    if found is None:
        return None
    if kind == "date":
        try:
            return since(parse_time(str(found)), now)
        except ValueError:
            return "<invalid>"
    if kind in ("integer", "number", "boolean"):
        return found
    return found if isinstance(found, str) else str(found)
