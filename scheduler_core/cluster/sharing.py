"""Equal parts of stored objects, kept once.

The pods of a template differ in their names and little else, but every one arrives with a spec,
labels and a status of its own. Stored objects are never changed, so equal parts can be one object:
of 5 KB that a running pod's JSON takes, less than 1 KB is its own.
"""

from __future__ import annotations

from typing import Any, Final

from scheduler_core.api.content import content_of
from scheduler_core.api.interning import Interned
from scheduler_core.ports import Json

__all__ = ["NoSharing", "Sharing"]

#: parts that are remembered, times two
_PARTS: Final = 8192
#: bytes of content beyond which only the parts of a part are shared
_LONGEST: Final = 4096
#: of these nothing is alike but what is small
_UNLIKE: Final = frozenset(("Event",))
#: types that have parts
_WHOLE: Final = (dict, list)
_NOTHING: Final[Json] = {}


class Sharing:
    """Remembers parts that were seen lately, and puts them in the place of equal ones.

    Several threads may use it; then a part may be kept twice.
    """

    def __init__(self, parts: int = _PARTS) -> None:
        self._parts: Interned[Any] = Interned(parts, _LONGEST)

    def of(self, obj: Json, before: Json = _NOTHING) -> Json:
        """`obj` itself, whose parts are replaced by equal ones; from now on nobody may change them.

        What is each object's own (the object, its metadata) stays a dict of its own. Parts that it
        has from `before`, which went through here, need not be looked at.
        """
        if obj.get("kind") in _UNLIKE:
            return obj
        if "metadata" in obj:
            self._parts_of(obj["metadata"], before.get("metadata", _NOTHING))
        self._parts_of(obj, before, but="metadata")
        return obj

    def _parts_of(self, parts: Json, before: Json, but: str = "") -> None:
        for key, part in parts.items():
            if type(part) in _WHOLE and key != but and before.get(key) is not part:
                parts[key] = self._part(part)

    def part(self, part: Any) -> Any:
        """A part that is equal to `part`, which is given away as objects are."""
        return self._part(part)

    def _part(self, part: Any) -> Any:
        if type(part) is not dict and type(part) is not list:
            return part
        content = content_of(part)
        found = self._parts.get(content)
        if found is not None:
            return found
        if type(part) is dict:
            part = {key: self._part(child) for key, child in part.items()}
        else:
            part = [self._part(child) for child in part]
        self._parts.keep(content, part)
        return part


class NoSharing:
    """For a store that is soon gone: every object keeps its own parts."""

    def of(self, obj: Json, before: Json = _NOTHING) -> Json:
        """`obj` as it is."""
        return obj
