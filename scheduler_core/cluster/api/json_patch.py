"""JSON patch (RFC 6902), as kube-apiserver applies it.

The usual package copies the whole document for each operation; a stored object must not be
changed, but nothing of it needs to be copied beyond the path that an operation touches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

__all__ = ["BadPatch", "PatchRefused", "json_patch"]

_MOST_OPERATIONS: Final = 10_000


class BadPatch(ValueError):
    """The patch is too long, or no list of operations."""


class PatchRefused(ValueError):
    """The patch does not fit the document: a test failed, or a path is not there."""


def json_patch(document: Any, operations: Any) -> Any:
    """The document that the operations make; the one given is not changed.

    Raises:
        BadPatch, PatchRefused: nothing is applied then.
    """
    if len(operations) > _MOST_OPERATIONS:
        raise BadPatch(
            f"The allowed maximum operations in a JSON patch is {_MOST_OPERATIONS}, "
            f"got {len(operations)}"
        )
    for operation in operations:
        if not isinstance(operation, dict):
            raise PatchRefused("an operation is no object")
        act = _ACTS.get(str(operation.get("op")))
        if act is None:
            raise PatchRefused(f"Unexpected kind: {operation.get('op')}")
        document = act(document, operation)
    return document


def _path(operation: Mapping[str, Any], field: str = "path") -> list[str]:
    text = operation.get(field)
    if not isinstance(text, str):
        raise PatchRefused(f"a {operation.get('op')} operation needs a {field}")
    if text == "":
        return []
    if not text.startswith("/"):
        raise PatchRefused(f"{field} {text!r} does not begin with a slash")
    return [step.replace("~1", "/").replace("~0", "~") for step in text[1:].split("/")]


def _find(document: Any, path: list[str]) -> Any:
    for step in path:
        if isinstance(document, dict) and step in document:
            document = document[step]
        elif isinstance(document, list):
            document = document[_index(document, step, len(document) - 1)]
        else:
            raise PatchRefused(f"{step!r} is not there")
    return document


def _index(items: list[Any], step: str, last: int) -> int:
    if not step.isdigit() or (len(step) > 1 and step[0] == "0") or int(step) > last:
        raise PatchRefused(f"{step!r} is not a position of the list")
    return int(step)


def _put(document: Any, path: list[str], value: Any, *, insert: bool) -> Any:
    """A copy with `value` at `path`."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(document, dict):
        if rest and step not in document:
            raise PatchRefused(f"{step!r} is not there")
        made = _put(document[step], rest, value, insert=insert) if rest else value
        return {**document, step: made}
    if not isinstance(document, list):
        raise PatchRefused(f"{step!r} is not there")
    if not rest and insert:
        at = len(document) if step == "-" else _index(document, step, len(document))
        return [*document[:at], value, *document[at:]]
    at = _index(document, step, len(document) - 1)
    made = _put(document[at], rest, value, insert=insert) if rest else value
    return [*document[:at], made, *document[at + 1 :]]


def _without(document: Any, path: list[str]) -> Any:
    if not path:
        raise PatchRefused("the whole document cannot be removed")
    step, rest = path[0], path[1:]
    if isinstance(document, dict) and step in document and rest:
        return {**document, step: _without(document[step], rest)}
    if isinstance(document, dict) and not rest:
        # The real server takes away what is not there without a word.
        return {key: value for key, value in document.items() if key != step}
    if isinstance(document, list):
        at = _index(document, step, len(document) - 1)
        middle = [_without(document[at], rest)] if rest else []
        return [*document[:at], *middle, *document[at + 1 :]]
    raise PatchRefused(f"{step!r} is not there")


def _add(document: Any, operation: Mapping[str, Any]) -> Any:
    return _put(document, _path(operation), operation.get("value"), insert=True)


def _replace(document: Any, operation: Mapping[str, Any]) -> Any:
    return _put(document, _path(operation), operation.get("value"), insert=False)


def _remove(document: Any, operation: Mapping[str, Any]) -> Any:
    return _without(document, _path(operation))


def _move(document: Any, operation: Mapping[str, Any]) -> Any:
    source = _path(operation, "from")
    value = _find(document, source)
    return _put(_without(document, source), _path(operation), value, insert=True)


def _copy(document: Any, operation: Mapping[str, Any]) -> Any:
    *way, last = _path(operation, "from") or [""]
    holder = _find(document, way)
    # A member that is not there is copied as null; an entry of a list has to be there.
    value = holder.get(last) if isinstance(holder, dict) else _find(holder, [last])
    return _put(document, _path(operation), value, insert=True)


def _test(document: Any, operation: Mapping[str, Any]) -> Any:
    try:
        found = _find(document, _path(operation))
    except PatchRefused:
        found = None
    if found != operation.get("value"):
        raise PatchRefused(f"testing value {operation.get('path')} failed")
    return document


_ACTS: Final[Mapping[str, Callable[[Any, Mapping[str, Any]], Any]]] = MappingProxyType(
    {
        "add": _add,
        "replace": _replace,
        "remove": _remove,
        "move": _move,
        "copy": _copy,
        "test": _test,
    }
)
