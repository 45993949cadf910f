"""The columns of each kind's table, as kube-apiserver 1.36 answers them (`columns.json`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from scheduler_core.ports import Json

__all__ = ["COLUMNS", "column"]


def column(
    name: str, of: str = "string", text: str = "", *, format_: str = "", priority: int = 0
) -> Json:
    """One column's definition. `priority`: 0 is shown always, 1 with `-o wide`."""
    return {
        "name": name, "type": of, "format": format_, "description": text, "priority": priority,
    }  # fmt: skip


#: kind -> column definitions; other kinds have a name and the time of their creation
COLUMNS: Final[Mapping[str, Sequence[Json]]] = MappingProxyType(
    json.loads((Path(__file__).parent / "columns.json").read_text())
)
