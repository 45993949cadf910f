"""Who manages which field of an object (`metadata.managedFields`).

Source: apimachinery's managedfields and structured-merge-diff's merge.Updater.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from scheduler_core.ports import ApiError, Json

from .fields import (
    Fields,
    compare,
    difference,
    fields_of,
    intersection,
    merge,
    paths,
    remove,
    union,
)
from .schema import Struct

__all__ = ["ApplyConflict", "Author", "applied", "recorded"]

#: fields that nobody manages
_UNMANAGED: Final[Fields] = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {
        ".": {},
        **{
            f"f:{name}": {}
            for name in (
                "clusterName", "creationTimestamp", "generation", "managedFields", "name",
                "namespace", "resourceVersion", "selfLink", "uid",
            )
        },
    },
}  # fmt: skip
_BEFORE_FIRST_APPLY: Final = "before-first-apply"
_ANCIENT: Final = "ancient-changes"
_MOST_UPDATERS: Final = 10


@dataclass(frozen=True, slots=True)
class Author:
    """On whose behalf, and through which door, an object is written."""

    manager: str
    api_version: str
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class _Entry:
    """One manager's fields; who it is are the first four."""

    manager: str
    operation: str
    api_version: str
    subresource: str
    time: str
    fields: Fields

    @property
    def identity(self) -> tuple[str, ...]:
        version = "" if self.operation == "Apply" else self.api_version
        return (self.manager, self.operation, version, self.subresource)

    @property
    def order(self) -> tuple[str, ...]:
        return (self.operation, self.time, self.manager, self.api_version, self.subresource)


class ApplyConflict(ApiError):
    """409: fields that others manage are given other values."""

    def __init__(self, message: str, fields: Sequence[tuple[str, str]]) -> None:
        """`fields`: (path such as `.data.a`, what it conflicts with)."""
        super().__init__(409, "Conflict", message, fields)


def recorded(
    kind: Struct, live: Json, new: Json, author: Author, now: str, known: Sequence[Json]
) -> list[Json]:
    """The managedFields of an object that was written by create, update or patch.

    Args:
        live: what it was; for a new object the kind's empty object.
        known: the managedFields so far.
    """
    changed, removed = _changes(kind, live, new, author)
    if not changed and not removed:
        return list(known)
    ours = _Entry(author.manager, "Update", author.api_version, author.subresource, now, changed)
    found = [
        replace(entry, fields=difference(entry.fields, removed))
        if entry.identity == ours.identity
        else replace(entry, fields=difference(difference(entry.fields, changed), removed))
        for entry in _read(known)
    ]
    mine = next((entry for entry in found if entry.identity == ours.identity), None)
    if mine is not None and changed:
        found[found.index(mine)] = replace(mine, fields=union(mine.fields, changed), time=now)
    elif changed:
        found.append(ours)
    return _written(_capped(found, now))


def applied(
    kind: Struct,
    live: Json,
    config: Json,
    author: Author,
    now: str,
    known: Sequence[Json],
    force: bool,
) -> tuple[Json, list[Json]]:
    """Server-side apply: the object that comes of it, and its managedFields.

    Args:
        live: what it is; the kind's empty object if there is none yet.
        config: what the applier says, with nothing filled in.

    Raises:
        ApplyConflict: others manage fields that get another value, and `force` is not given.
    """
    entries = _read(known)
    if not entries and "uid" in live.get("metadata", {}):
        owned = _managed(fields_of(kind, live), author)
        version = str(live.get("apiVersion", ""))
        entries = [_Entry(_BEFORE_FIRST_APPLY, "Update", version, "", now, owned)]
    ours = _Entry(
        author.manager, "Apply", author.api_version, author.subresource, now,
        _managed(fields_of(kind, config), author),
    )  # fmt: skip
    last = next((e.fields for e in entries if e.identity == ours.identity), {})
    others = [entry for entry in entries if entry.identity != ours.identity]
    merged = merge(kind, live, config)
    kept = ours.fields
    for entry in others:
        kept = union(kept, entry.fields)
    merged = remove(kind, merged, _whole(difference(last, kept), kept))
    changed, removed = _changes(kind, live, merged, author)
    conflicts = [(entry, intersection(entry.fields, changed)) for entry in others]
    if not force and any(fields for _, fields in conflicts):
        raise _conflict(conflicts)
    found = [
        replace(entry, fields=difference(difference(entry.fields, changed), removed))
        for entry in others
    ]
    unchanged = last == ours.fields and not changed and not removed
    time = next((e.time for e in entries if e.identity == ours.identity), now)
    found.append(replace(ours, time=time if unchanged else now))
    return merged, _written(found)


def _changes(kind: Struct, live: Json, new: Json, author: Author) -> tuple[Fields, Fields]:
    changed, removed = compare(kind, live, new)
    return _managed(changed, author), _managed(removed, author)


def _managed(found: Fields, author: Author) -> Fields:
    """Without what nobody manages, and what this door does not write."""
    if author.subresource == "status":
        found = {key: node for key, node in found.items() if key in ("f:status", "f:metadata")}
    elif "f:status" in found:
        found = {key: node for key, node in found.items() if key != "f:status"}
    return difference(found, _UNMANAGED)


def _whole(gone: Fields, kept: Fields) -> Fields:
    """What is to be taken away, but nothing that something is below of that stays."""
    found: Fields = {}
    for key, node in gone.items():
        if key == ".":
            continue
        stays = kept.get(key)
        if stays is None:
            found[key] = {} if not node or "." in node else _whole(node, {})
        else:
            inner = _whole(node, {k: v for k, v in stays.items() if k != "."})
            if inner:
                found[key] = inner
    return found


# -- conflicts -----------------------------------------------------------------------------------


def _conflict(conflicts: Sequence[tuple[_Entry, Fields]]) -> ApplyConflict:
    causes = [
        (_spelled(path), f"conflict with {_name(entry)}")
        for entry, fields in conflicts
        for path in paths(fields)
    ]
    if len(causes) == 1:
        text = f"1 conflict: {causes[0][1]}: {causes[0][0]}"
    else:
        by_manager: dict[str, list[str]] = {}
        for entry, fields in conflicts:
            by_manager.setdefault(_name(entry), []).extend(_spelled(path) for path in paths(fields))
        text = f"{len(causes)} conflicts: " + "\n".join(
            f"conflicts with {name}:\n" + "\n".join(f"- {path}" for path in found)
            for name, found in sorted(by_manager.items())
            if found
        )
    return ApplyConflict(f"Apply failed with {text}", causes)


def _name(entry: _Entry) -> str:
    name = f'"{entry.manager}"'
    if entry.subresource:
        name += f' with subresource "{entry.subresource}"'
    if entry.operation == "Update":
        name += f" using {entry.api_version}"
    return name


def _spelled(path: Sequence[str]) -> str:
    """`.spec.containers[name="c"].image`."""
    text = ""
    for step in path:
        kind, _, rest = step.partition(":")
        if kind == "f":
            text += f".{rest}"
        elif kind == "k":
            keys = json.loads(rest)
            text += "[" + ",".join(f"{k}={json.dumps(v)}" for k, v in keys.items()) + "]"
        else:
            text += f"[={rest}]"
    return text


# -- as it is written ----------------------------------------------------------------------------


def _read(known: Sequence[Json]) -> list[_Entry]:
    return [
        _Entry(
            str(entry.get("manager", "")),
            str(entry.get("operation", "")),
            str(entry.get("apiVersion", "")),
            str(entry.get("subresource", "")),
            str(entry.get("time") or ""),
            entry.get("fieldsV1") or {},
        )
        for entry in known
    ]


def _written(entries: Sequence[_Entry]) -> list[Json]:
    return [_as_json(e) for e in sorted(entries, key=lambda e: e.order) if e.fields]


def _as_json(entry: _Entry) -> Json:
    found: dict[str, Any] = {
        "manager": entry.manager,
        "operation": entry.operation,
        "apiVersion": entry.api_version,
        **({"time": entry.time} if entry.time else {}),
        "fieldsType": "FieldsV1",
        "fieldsV1": entry.fields,
    }
    if entry.subresource:
        found["subresource"] = entry.subresource
    return found


def _capped(entries: list[_Entry], now: str) -> list[_Entry]:
    """Of many updaters the oldest are taken together."""
    updaters = sorted((e for e in entries if e.operation == "Update"), key=lambda e: e.order)
    surplus = len(updaters) - _MOST_UPDATERS
    if surplus <= 0:
        return entries
    old = updaters[: surplus + 1]
    together = replace(old[-1], manager=_ANCIENT, subresource="", fields={})
    for entry in old:
        together = replace(together, fields=union(together.fields, entry.fields))
    return [entry for entry in entries if entry not in old] + [together]
