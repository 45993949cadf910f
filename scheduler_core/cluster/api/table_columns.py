"""The columns of each kind's table (kube-apiserver 1.36, printersinternal).

`columns.json` names them, and the field whose description a column has (`schemas.json`), or a text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from scheduler_core.ports import Json

from .schema_digest import DESCRIPTIONS

__all__ = ["COLUMNS", "column"]


def column(
    name: str, of: str = "string", text: str = "", *, format_: str = "", priority: int = 0
) -> Json:
    """One column's definition. `priority`: 0 is shown always, 1 with `-o wide`."""
    return {
        "name": name, "type": of, "format": format_, "description": text, "priority": priority,
    }  # fmt: skip


def _definitions() -> Mapping[str, Sequence[Json]]:
    columns = json.loads((Path(__file__).parent / "columns.json").read_text())
    return {
        kind: [
            column(
                row["name"], row["type"], DESCRIPTIONS[row["of"]] if "of" in row else row["text"],
                format_=row.get("format", ""), priority=row.get("priority", 0),
            )
            for row in rows
        ]
        for kind, rows in columns.items()
    }  # fmt: skip


#: kind -> column definitions; other kinds have a name and the time of their creation
COLUMNS: Final[Mapping[str, Sequence[Json]]] = MappingProxyType(_definitions())
