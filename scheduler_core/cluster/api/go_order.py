"""The order of fields in JSON that the server quotes in a message."""

from __future__ import annotations

from typing import Any

from .schema import ListType, MapType, Struct, Type
from .schema_facts import GO_ORDER

__all__ = ["as_the_server_writes"]


def as_the_server_writes(of: Type | None, value: Any, patched: Any) -> Any:
    """`value` in the order of its struct; what `patched` has touched is in the order of its names.

    (A merge patch turns the parts that it touches into maps, and maps are written sorted.)
    """
    if isinstance(value, list):
        item = of.item if isinstance(of, ListType) else None
        return [as_the_server_writes(item, entry, None) for entry in value]
    if not isinstance(value, dict):
        return value
    known = GO_ORDER.get(of.name, ()) if isinstance(of, Struct) else ()
    touched = isinstance(patched, dict)
    rank = {} if touched else {name: place for place, name in enumerate(known)}
    names = sorted(value, key=lambda name: (rank.get(name, len(rank)), name))
    return {
        name: as_the_server_writes(
            _member(of, name), value[name], patched.get(name) if touched else None
        )
        for name in names
    }


def _member(of: Type | None, name: str) -> Type | None:
    if isinstance(of, MapType):
        return of.value
    field = of.fields.get(name) if isinstance(of, Struct) else None
    return None if field is None else field.type
