from __future__ import annotations

from typing import Any

from scheduler_core.ports import Json

from .catalog import Served


def columns_of(served: Served) -> list[Json]:
    return [{"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}]


def rows_of(served: Served, objects: list[Json], now: float) -> list[list[Any]]:
    return [[o["metadata"]["name"]] for o in objects]
