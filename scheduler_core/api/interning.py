"""Things made from JSON, found again by the JSON's content."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

__all__ = ["Interned"]

T = TypeVar("T")

#: bytes; what is made from longer content is not kept: it would hold much memory for one object
_LONGEST: Final = 16 * 1024


class Interned(Generic[T]):
    """What was made lately, by content (`api.content`).

    At most `2 * limit` things are kept: those used among the last `limit` that were kept, and those
    before them. Used by several threads at once nothing breaks; a thing may then be made twice.
    """

    __slots__ = ("_limit", "_longest", "_old", "_young")

    def __init__(self, limit: int, longest: int = _LONGEST) -> None:
        self._limit = limit
        self._longest = longest
        self._young: dict[bytes, T] = {}
        self._old: dict[bytes, T] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, content: bytes) -> T | None:
        found = self._young.get(content)
        if found is None:
            found = self._old.get(content)
            if found is not None:
                self.keep(content, found)
        return found

    def keep(self, content: bytes, made: T) -> None:
        if len(content) > self._longest:
            return
        if len(self._young) >= self._limit:
            self._old, self._young = self._young, {}
        self._young[content] = made
