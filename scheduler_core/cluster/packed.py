"""Watch events as few bytes: what objects have in common is said once.

A store keeps equal parts of its objects once (`sharing`), so that a part can be told by who it is
rather than by what is in it. Of a pod that has begun to run only its metadata and its new status
cross the socket; its spec is a number that the other side knows. A pod's five events cost a fifth
of what whole documents do, on both sides, and what is equal stays one object over there too.

A line is `{"first": N, "parts": [...], "events": [...]}`. `parts` are numbered from N on; N = 0
says that all earlier numbers mean nothing any more. A part is `[WHOLE]`, or `[SINGLE, REFS]` as a
dict's own values (null for each part, in its place) and the numbers of its parts. An event is
`[TYPE, VERSION, SINGLE, REFS, METADATA]`, where METADATA is `[SINGLE, REFS]` or null; a BOOKMARK is
`[TYPE, VERSION]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from scheduler_core.ports import Json

from .watch import StreamEvent

__all__ = ["Packer", "Unpacker"]

#: Parts that both sides remember; beyond that they begin anew.
_PARTS: Final = 16_384
#: Below an object's own parts (spec) theirs (containers) are numbered too, and nothing below.
_DEPTH: Final = 2
_WHOLE: Final = (dict, list)


class Packer:
    """The sending side of one connection; objects must not change once they were given to it."""

    def __init__(self, most: int = _PARTS) -> None:
        self._most = most
        #: By identity; the part is kept too, so that its identity is not used again.
        self._known: dict[int, tuple[int, Any]] = {}
        self._new: list[Any] = []

    def pack(self, events: Iterable[StreamEvent]) -> Json:
        """One line."""
        if len(self._known) >= self._most:
            self._known.clear()
        first = len(self._known)
        packed = [self._event(event) for event in events]
        parts, self._new = self._new, []
        return {"first": first, "parts": parts, "events": packed}

    def _event(self, event: StreamEvent) -> list[Any]:
        if event.type == "BOOKMARK":
            return [event.type, event.resource_version]
        obj = event.object
        metadata = obj.get("metadata")
        about = None
        if type(metadata) is dict:
            obj = {key: value for key, value in obj.items() if key != "metadata"}
            about = self._split(metadata, 1)
        return [event.type, event.resource_version, *self._split(obj, 0), about]

    def _split(self, found: Json, depth: int) -> list[Any]:
        single: Json = {}
        refs: dict[str, int] = {}
        for key, value in found.items():
            if type(value) in _WHOLE:
                known = self._known.get(id(value))
                refs[key] = self._number(value, depth + 1) if known is None else known[0]
                single[key] = None  # keeps its place
            else:
                single[key] = value
        return [single, refs]

    def _number(self, part: Any, depth: int) -> int:
        is_split = depth < _DEPTH and type(part) is dict
        said = self._split(part, depth) if is_split else [part]
        number = len(self._known)
        self._known[id(part)] = (number, part)
        self._new.append(said)
        return number


class Unpacker:
    """The receiving side of one connection.

    Args:
        share: gives for a part the one that is equal to it and was there before.
    """

    def __init__(self, share: Callable[[Any], Any] = lambda part: part) -> None:
        self._share = share
        self._parts: list[Any] = []

    def unpack(self, line: Json) -> list[StreamEvent]:
        """The events of a line.

        Raises:
            ValueError: the line does not go on where the one before ended.
        """
        if line["first"] == 0:
            self._parts = []
        if line["first"] != len(self._parts):
            raise ValueError("parts of a watch are missing")
        for said in line["parts"]:
            part = said[0] if len(said) == 1 else self._join(*said)
            self._parts.append(self._share(part))
        return [self._event(said) for said in line["events"]]

    def _event(self, said: list[Any]) -> StreamEvent:
        type_, version = said[:2]
        if type_ == "BOOKMARK":
            return StreamEvent("BOOKMARK", "", {}, version)
        _, _, single, refs, about = said
        obj = self._join(single, refs)
        if about is not None:
            obj["metadata"] = self._join(*about)
        return StreamEvent(type_, str(obj.get("kind", "")), obj, version)

    def _join(self, single: Json, refs: dict[str, int]) -> Json:
        for key, number in refs.items():
            single[key] = self._parts[number]
        return single
