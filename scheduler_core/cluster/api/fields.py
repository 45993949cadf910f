"""Sets of fields, in the form in which `managedFields` has them (FieldsV1).

A set is a nested dict: `{"f:metadata": {"f:labels": {".": {}, "f:app": {}}}}`. A part without
parts, or one with `.`, is in the set itself; the others only lead to what is. Path elements are
`f:<field>`, `k:<keys of a list entry as JSON>` and `v:<value in a set as JSON>`.

Source: structured-merge-diff v6 (typed.Compare, ToFieldSet, Merge, RemoveItems).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from scheduler_core.ports import Json

from .schema import ANY, AnyType, ListType, MapType, Scalar, Struct, Type
from .schema_facts import KEY_DEFAULTS

__all__ = [
    "Fields",
    "compare",
    "covers",
    "difference",
    "fields_of",
    "intersection",
    "merge",
    "paths",
    "remove",
    "union",
]

Fields = dict[str, Any]

_MISSING: Final[Any] = object()
_SELF: Final = "."
#: fields of kinds that nobody described: maps have parts, lists have not
_DEDUCED: Final = AnyType(atomic=False)
_DEDUCED_MAP: Final = MapType(_DEDUCED)


# -- algebra -------------------------------------------------------------------------------------


def _has(node: Fields | None) -> bool:
    return node is not None and (not node or _SELF in node)


def _node(member: bool, children: Fields) -> Fields | None:
    if children:
        return {_SELF: {}, **children} if member else children
    return {} if member else None


def _children(node: Fields | None) -> Fields:
    return {k: v for k, v in node.items() if k != _SELF} if node else {}


def union(left: Fields, right: Fields) -> Fields:
    """What is in either."""
    if not right:
        return left
    found = dict(left)
    for key, node in right.items():
        if key == _SELF:
            continue
        mine = left.get(key)
        if mine is None:
            found[key] = node
            continue
        both = union(_children(mine), _children(node))
        found[key] = _node(_has(mine) or _has(node), both) or {}
    return found


def difference(left: Fields, right: Fields) -> Fields:
    """What is in `left` and not in `right`."""
    if not right:
        return left
    found: Fields = {}
    for key, node in left.items():
        other = right.get(key)
        if other is None or key == _SELF:
            found[key] = node
            continue
        rest = _node(_has(node) and not _has(other), difference(_children(node), _children(other)))
        if rest is not None:
            found[key] = rest
    return found


def intersection(left: Fields, right: Fields) -> Fields:
    """What is in both."""
    found: Fields = {}
    for key, node in left.items():
        other = right.get(key)
        if other is None or key == _SELF:
            continue
        rest = _node(_has(node) and _has(other), intersection(_children(node), _children(other)))
        if rest is not None:
            found[key] = rest
    return found


def covers(found: Fields, path: tuple[str, ...]) -> bool:
    """Whether a path, or anything below it, is in the set."""
    for step in path:
        if step not in found:
            return False
        found = found[step]
    return True


def paths(found: Fields, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every path that is in the set."""
    for key, node in found.items():
        if key == _SELF:
            continue
        path = (*before, key)
        if _has(node):
            yield path
        yield from paths(node, path)


# -- objects -------------------------------------------------------------------------------------


def compare(of: Type, old: Any, new: Any) -> tuple[Fields, Fields]:
    """Which fields are new or other in `new` than in `old`, and which are gone."""
    changed, removed = _compare(of, old, new)
    return changed or {}, removed or {}


_Pair = tuple[Fields | None, Fields | None]


def _compare(of: Type, old: Any, new: Any) -> _Pair:
    if old is new or (old == new and type(old) is type(new)):
        return None, None
    of = _concrete(of, old, new)
    if _is_leaf(of) or (_is_empty(old) and _is_empty(new)):
        return (None, {}) if new is _MISSING else ({}, None)
    changed: Fields = {}
    removed: Fields = {}
    if isinstance(of, ListType):
        before, after = _entries(of, old), _entries(of, new)
    else:
        before, after = _members(old), _members(new)
    for key in dict.fromkeys((*before, *after)):
        name = key if isinstance(of, ListType) else f"f:{key}"
        inner = of.item if isinstance(of, ListType) else _member_type(of, key)
        plus, minus = _compare(inner, before.get(key, _MISSING), after.get(key, _MISSING))
        if plus is not None:
            changed[name] = plus
        if minus is not None:
            removed[name] = minus
    return _node(old is _MISSING, changed), _node(new is _MISSING, removed)


def _is_empty(value: Any) -> bool:
    return value is _MISSING or value is None or value == {} or value == []


def fields_of(of: Type, value: Any) -> Fields:
    """Every field that a configuration says something of."""
    return _fields_of(of, value) or {}


def _fields_of(of: Type, value: Any) -> Fields | None:
    of = _concrete(of, value, value)
    if _is_leaf(of):
        return {}
    found: Fields = {}
    if isinstance(of, ListType):
        for name, item in _entries(of, value).items():
            children = _children(_fields_of(of.item, item))
            found[name] = _node(True, children) or {}
        return found or None
    for key, part in _members(value).items():
        below = _fields_of(_member_type(of, key), part)
        declared = isinstance(of, Struct) and key in of.fields
        itself = part is None or part == {} or not declared or _has(below)
        node = _node(itself, _children(below))
        if node is not None:
            found[f"f:{key}"] = node
    return found or None


def merge(of: Type, live: Any, config: Any) -> Any:
    """`live` with all that `config` says; entries of lists are found by their keys."""
    of = _concrete(of, live, config)
    if live is None or live is _MISSING or config is None or _is_leaf(of):
        return config
    if isinstance(of, ListType):
        return _merged_list(of, live, config)
    found = dict(_members(live))
    for key, part in _members(config).items():
        found[key] = merge(_member_type(of, key), found.get(key, _MISSING), part)
    return found


def _merged_list(of: ListType, live: Any, config: Any) -> list[Any]:
    ours, theirs = _entries(of, live), _entries(of, config)
    found = [
        merge(of.item, item, theirs[name]) if name in theirs else item
        for name, item in ours.items()
    ]
    found.extend(item for name, item in theirs.items() if name not in ours)
    return found


def remove(of: Type, value: Any, gone: Fields) -> Any:
    """`value` without the fields of a set."""
    of = _concrete(of, value, value)
    if _is_leaf(of) or not gone:
        return value
    if isinstance(of, ListType):
        return [
            remove(of.item, item, _children(gone.get(name)))
            for name, item in _entries(of, value).items()
            if not _has(gone.get(name))
        ]
    found = {}
    for key, part in _members(value).items():
        node = gone.get(f"f:{key}")
        if node is None:
            found[key] = part
        elif not _has(node):
            found[key] = remove(_member_type(of, key), part, node)
    return found


# -- types ---------------------------------------------------------------------------------------


def _concrete(of: Type, left: Any, right: Any) -> Type:
    """What a value that nobody described is taken for."""
    if type(of) is AnyType and not of.atomic and (type(left) is dict or type(right) is dict):
        return _DEDUCED_MAP
    return of


def _is_leaf(of: Type) -> bool:
    if type(of) is Scalar or type(of) is AnyType:
        return True
    return of.atomic  # type: ignore[union-attr]


def _members(value: Any) -> Json:
    return value if type(value) is dict else {}


def _member_type(of: Type, key: str) -> Type:
    if isinstance(of, MapType):
        return of.value
    if isinstance(of, Struct):
        field = of.fields.get(key)
        return _DEDUCED if field is None else field.type
    return ANY


def _entries(of: ListType, value: Any) -> dict[str, Any]:
    """Path element -> entry. Of entries with the same keys the last one counts."""
    return {_element(of, item): item for item in value} if type(value) is list else {}


def _element(of: ListType, item: Any) -> str:
    if of.is_set:
        return f"v:{json.dumps(item, separators=(',', ':'), ensure_ascii=False)}"
    keys = {key: _key_value(item, key) for key in sorted(of.keys)}
    text = json.dumps(keys, separators=(",", ":"), ensure_ascii=False)
    return f"k:{text}"


def _key_value(item: Any, key: str) -> Any:
    found = item.get(key) if type(item) is dict else None
    return KEY_DEFAULTS.get(key, "") if found is None else found
