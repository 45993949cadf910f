"""Strategic merge patch: a merge patch that knows which lists are merged, and by which key.

Source: apimachinery's strategicpatch, with its directives `$patch`, `$retainKeys`,
`$deleteFromPrimitiveList` and `$setElementOrder`.
"""

from __future__ import annotations

from typing import Any, Final

from .schema import ANY, ListType, MapType, Struct, Type

__all__ = ["BadStrategicPatch", "strategic_merge"]

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_DELETE: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"


class BadStrategicPatch(ValueError):
    """The patch does not fit: a list entry without its key, a directive that is not known."""


def strategic_merge(of: Type, target: Any, patch: Any) -> Any:
    """`target` with `patch` merged in; neither is changed.

    Raises:
        BadStrategicPatch: nothing is merged then.
    """
    if type(patch) is not dict:
        return patch
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return _cleaned({key: value for key, value in patch.items() if key != _DIRECTIVE})
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise BadStrategicPatch(f"Unknown patch type: {directive}")
    found = dict(target) if type(target) is dict else {}
    _retain(found, patch)
    _delete_values(found, patch)
    _merge_members(of, found, patch)
    _reorder(of, found, patch)
    return found


def _merge_members(of: Type, found: dict[str, Any], patch: dict[str, Any]) -> None:
    for key, part in patch.items():
        if key[:1] == "$" and _is_directive(key):
            continue
        if part is None:
            found.pop(key, None)
            continue
        found[key] = _part(_member_type(of, key), found.get(key), part, patch.get(_ORDER + key))


def _reorder(of: Type, found: dict[str, Any], patch: dict[str, Any]) -> None:
    """Lists of which the patch says nothing but the order."""
    for key, order in patch.items():
        name = key.removeprefix(_ORDER)
        if key.startswith(_ORDER) and name not in patch and isinstance(found.get(name), list):
            found[name] = _ordered(_member_type(of, name), found[name], order, found[name])


def _part(of: Type, target: Any, patch: Any, order: Any) -> Any:
    if type(patch) is dict:
        return strategic_merge(of, target, patch)
    if type(patch) is not list or not isinstance(of, ListType):
        return _cleaned(patch)
    if of.merge_key:
        return _merged_list(of, target if isinstance(target, list) else [], patch, order)
    if of.merges_values:
        known = target if isinstance(target, list) else []
        found = [*known, *(value for value in patch if value not in known)]
        return _ordered(of, found, order or patch, known)
    return _cleaned(patch)


def _merged_list(of: ListType, target: list[Any], patch: list[Any], order: Any) -> list[Any]:
    key = of.merge_key
    if any(isinstance(item, dict) and item.get(_DIRECTIVE) == "replace" for item in patch):
        rest = [i for i in patch if not (isinstance(i, dict) and i.get(_DIRECTIVE) == "replace")]
        return _cleaned(rest)  # type: ignore[no-any-return]
    found = list(target)
    for item in patch:
        if type(item) is not dict:
            raise BadStrategicPatch("expected an object as an entry of a list that is merged")
        if key not in item:
            raise BadStrategicPatch(
                f"map: {item} does not contain declared merge key: {key}".replace("'", '"')
            )
        at = next((i for i, known in enumerate(found) if known.get(key) == item[key]), None)
        if item.get(_DIRECTIVE) == "delete":
            found = [known for known in found if known.get(key) != item[key]]
        elif at is None:
            found.append(_cleaned(strategic_merge(of.item, {}, item)))
        else:
            found[at] = strategic_merge(of.item, found[at], item)
    return _ordered(of, found, order or patch, target)


def _ordered(of: Type, items: list[Any], order: Any, before: list[Any]) -> list[Any]:
    """What the patch names in its own order, the rest in the order that it had.

    Where both orders leave it open, as for a new entry, what the patch names comes first.
    """
    if not isinstance(order, list):
        raise BadStrategicPatch("$setElementOrder is not a list")
    key = of.merge_key if isinstance(of, ListType) else ""

    def known_as(item: Any) -> str:
        return str(item.get(key) if key and isinstance(item, dict) else item)

    wanted = {known_as(item): place for place, item in enumerate(order)}
    had = {known_as(item): place for place, item in enumerate(before)}
    named = sorted((i for i in items if known_as(i) in wanted), key=lambda i: wanted[known_as(i)])
    others = [item for item in items if known_as(item) not in wanted]
    found: list[Any] = []
    while named and others:
        ours, theirs = known_as(named[0]), known_as(others[0])
        other_first = ours in had and theirs in had and had[theirs] < had[ours]
        found.append((others if other_first else named).pop(0))
    return [*found, *named, *others]


def _retain(found: dict[str, Any], patch: dict[str, Any]) -> None:
    names = patch.get(_RETAIN)
    if names is None:
        return
    if not isinstance(names, list):
        raise BadStrategicPatch("$retainKeys is not a list")
    for key in [key for key in found if key not in names]:
        del found[key]


def _delete_values(found: dict[str, Any], patch: dict[str, Any]) -> None:
    for key, gone in patch.items():
        name = key.removeprefix(_DELETE)
        if key.startswith(_DELETE) and isinstance(found.get(name), list):
            found[name] = [value for value in found[name] if value not in gone]


def _is_directive(key: str) -> bool:
    return key in (_DIRECTIVE, _RETAIN) or key.startswith((_DELETE, _ORDER))


def _cleaned(value: Any) -> Any:
    """Without directives and nulls, for parts that are new."""
    if type(value) is dict:
        return {
            key: _cleaned(part)
            for key, part in value.items()
            if part is not None and not _is_directive(key)
        }
    if type(value) is list:
        return [_cleaned(item) for item in value]
    return value


def _member_type(of: Type, key: str) -> Type:
    if isinstance(of, Struct):
        field = of.fields.get(key)
        return ANY if field is None else field.type
    return of.value if isinstance(of, MapType) else ANY
