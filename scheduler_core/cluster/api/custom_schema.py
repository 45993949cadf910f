"""Structural schemas of CustomResourceDefinitions: what they forbid, and what they fill in.

Source: apiextensions-apiserver 1.36 (schema validation, defaulting, listtype).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from scheduler_core.api.errors import FieldError, duplicate, invalid, unsupported
from scheduler_core.ports import Json

from ..objects import clone

__all__ = ["fill_defaults", "schema_faults"]

_IDENTITY: Final = ("apiVersion", "kind", "metadata")


# -- defaults ------------------------------------------------------------------------------------


def fill_defaults(raw: Any, value: Any) -> None:
    """Fill in the defaults of a schema; `value` is changed.

    A null takes the default where there is one and null is not a value.
    """
    if not isinstance(raw, Mapping):
        return
    if isinstance(value, list):
        for item in value:
            fill_defaults(raw.get("items"), item)
    if not isinstance(value, dict):
        return
    properties, more = raw.get("properties") or {}, raw.get("additionalProperties")
    for key, part in properties.items():
        if not isinstance(part, Mapping) or "default" not in part:
            continue
        if key not in value or (value[key] is None and not part.get("nullable")):
            value[key] = clone(part["default"])
    for key, part in value.items():
        fill_defaults(properties.get(key, more), part)


# -- faults --------------------------------------------------------------------------------------


def schema_faults(raw: Any, obj: Json) -> list[FieldError]:
    """What a schema forbids in an object, apart from its metadata."""
    return [*_faults(raw, obj, "", top=True), *_repeated(raw, obj, "")]


def _faults(raw: Any, value: Any, path: str, *, top: bool = False) -> Iterator[FieldError]:
    if not isinstance(raw, Mapping):
        return
    if value is None and raw.get("nullable"):
        return
    wanted = str(raw.get("type") or "")
    if raw.get("x-kubernetes-int-or-string"):
        wanted = "integer,string"
    if wanted and not any(_is_a(value, kind) for kind in wanted.split(",")):
        found = _type_name(value)
        yield path, invalid(found, f'{path} in body must be of type {wanted}: "{found}"')
        return
    yield from _value_faults(raw, value, path)
    if isinstance(value, dict):
        yield from _member_faults(raw, value, path, top)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _faults(raw.get("items"), item, f"{path}[{index}]")


def _member_faults(
    raw: Mapping[str, Any], value: Json, path: str, top: bool
) -> Iterator[FieldError]:
    for key in raw.get("required") or ():
        if key not in value:
            yield _below(path, key), "Required value"
    for key in sorted(value):
        if not (top and key in _IDENTITY):
            yield from _faults(_member(raw, key), value[key], _below(path, key))


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _member(raw: Mapping[str, Any], key: str) -> Any:
    return (raw.get("properties") or {}).get(key, raw.get("additionalProperties"))


def _value_faults(raw: Mapping[str, Any], value: Any, path: str) -> Iterator[FieldError]:
    for rule, fits, words in _LIMITS:
        limit = raw.get(rule)
        if limit is not None and not fits(value, limit):
            yield path, invalid(value, f"{path} in body should {words.format(limit)}")
    yield from _size_faults(raw, value, path)
    if raw.get("enum") and value not in raw["enum"]:
        yield path, unsupported(value, raw["enum"])
    pattern = raw.get("pattern")
    if pattern and isinstance(value, str) and not _matches(str(pattern), value):
        yield path, invalid(value, f"{path} in body should match '{pattern}'")


def _size_faults(raw: Mapping[str, Any], value: Any, path: str) -> Iterator[FieldError]:
    if isinstance(value, str):
        most = raw.get("maxLength")
        if most is not None and len(value) > most:
            yield path, f"Too long: may not be more than {most} bytes"
    elif isinstance(value, list | dict):
        most = raw.get("maxItems" if isinstance(value, list) else "maxProperties")
        if most is not None and len(value) > most:
            yield path, f"Too many: {len(value)}: must have at most {most} items"


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_LIMITS: Final[tuple[tuple[str, Callable[[Any, Any], bool], str], ...]] = (
    ("minimum", lambda v, n: not _number(v) or v >= n, "be greater than or equal to {}"),
    ("maximum", lambda v, n: not _number(v) or v <= n, "be less than or equal to {}"),
    ("multipleOf", lambda v, n: not _number(v) or v % n == 0, "be a multiple of {}"),
    ("minLength", lambda v, n: not isinstance(v, str) or len(v) >= n, "be at least {} chars long"),
    ("minItems", lambda v, n: not isinstance(v, list) or len(v) >= n, "have at least {} items"),
    (
        "minProperties",
        lambda v, n: not isinstance(v, dict) or len(v) >= n,
        "have at least {} properties",
    ),
)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern)
    except re.error:
        return None  # Go's expressions are not all Python's


def _matches(pattern: str, value: str) -> bool:
    compiled = _compiled(pattern)
    return compiled is None or compiled.search(value) is not None


def _is_a(value: Any, wanted: str) -> bool:
    if wanted == "integer":
        whole = isinstance(value, float) and value.is_integer()
        return whole or (isinstance(value, int) and not isinstance(value, bool))
    if wanted == "number":
        return _number(value)
    kinds: dict[str, type] = {"string": str, "boolean": bool, "object": dict, "array": list}
    return isinstance(value, kinds.get(wanted, object))


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    names = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object"}
    return names.get(type(value), "array")


# -- sets and maps that are written as lists -----------------------------------------------------


def _repeated(raw: Any, value: Any, path: str) -> Iterator[FieldError]:
    """Entries of sets and of lists with keys that are there twice."""
    if not isinstance(raw, Mapping):
        return
    if isinstance(value, dict):
        for key in sorted(value):
            yield from _repeated(_member(raw, key), value[key], _below(path, key))
    if not isinstance(value, list):
        return
    kind, keys = raw.get("x-kubernetes-list-type"), raw.get("x-kubernetes-list-map-keys") or ()
    seen: set[str] = set()
    for index, item in enumerate(value):
        known_as = item
        if kind == "map" and isinstance(item, dict):
            known_as = {key: item[key] for key in keys if key in item}
        text = json.dumps(known_as, sort_keys=True)
        if kind in ("set", "map") and text in seen:
            yield f"{path}[{index}]", duplicate(known_as)
        seen.add(text)
        yield from _repeated(raw.get("items"), item, f"{path}[{index}]")
