"""Small functions on Kubernetes JSON. Stored objects are never changed: a change makes a new one
that shares whatever did not change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.api.reader import format_time
from scheduler_core.ports import Json

from .errors import bad_request

__all__ = [
    "clone",
    "key_of",
    "labels_of",
    "name_of",
    "namespace_of",
    "timestamp",
    "uid_of",
    "with_metadata",
]

_DEEPEST = 64
_LEAVES = frozenset((str, int, float, bool, type(None)))


def clone(value: Any, depth: int = 0) -> Any:
    """A deep copy of JSON.

    Raises:
        ApiError: 400 where something in it is not JSON, or where it is nested too deeply.
    """
    if type(value) is dict:
        if depth > _DEEPEST:
            raise bad_request(f"the object is nested more than {_DEEPEST} levels deep")
        # Most of an object's parts are leaves: no call for these.
        return {
            key if type(key) is str else _text_key(key): child
            if type(child) in _LEAVES
            else clone(child, depth + 1)
            for key, child in value.items()
        }
    if type(value) is list or type(value) is tuple:
        if depth > _DEEPEST:
            raise bad_request(f"the object is nested more than {_DEEPEST} levels deep")
        return [child if type(child) in _LEAVES else clone(child, depth + 1) for child in value]
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return clone(dict(value), depth)
    raise bad_request(f"{type(value).__name__} is not a JSON value")


def _text_key(key: object) -> str:
    if isinstance(key, str):
        return key
    raise bad_request(f"{key!r} is not a JSON field name")


def key_of(namespace: str, name: str) -> str:
    """`namespace/name`, or the name alone where there is no namespace."""
    return f"{namespace}/{name}" if namespace else name


def name_of(obj: Json) -> str:
    return str(obj["metadata"]["name"])


def namespace_of(obj: Json) -> str:
    """ "" for kinds without namespace."""
    return str(obj["metadata"].get("namespace") or "")


def uid_of(obj: Json) -> str:
    return str(obj["metadata"].get("uid") or "")


def labels_of(obj: Json) -> dict[str, str]:
    labels: dict[str, str] = obj["metadata"].get("labels") or {}
    return labels


def with_metadata(obj: Json, **fields: Any) -> Json:
    """A copy whose metadata has these fields; None takes a field away."""
    metadata = {**obj["metadata"], **fields}
    return {**obj, "metadata": {key: value for key, value in metadata.items() if value is not None}}


def timestamp(seconds: float, *, micro: bool = False) -> str:
    """A time of day as Kubernetes writes it."""
    return format_time(seconds, micro=micro)
