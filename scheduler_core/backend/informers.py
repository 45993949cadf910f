"""Informers: the objects of each kind as the watch last showed them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

Values = Callable[[Any], Iterable[str]]


class _Index:
    """value -> objects, for one function from objects to values."""

    __slots__ = ("_found", "_values", "_values_of")

    def __init__(self, values: Values) -> None:
        self._values = values
        self._found: dict[str, dict[str, Any]] = {}
        #: What an object was indexed under, so that it can be taken out again.
        self._values_of: dict[str, tuple[str, ...]] = {}

    def put(self, key: str, obj: Any) -> None:
        self.drop(key)
        values = self._values_of[key] = tuple(self._values(obj))
        for value in values:
            self._found.setdefault(value, {})[key] = obj

    def drop(self, key: str) -> None:
        for value in self._values_of.pop(key, ()):
            found = self._found.get(value)
            if found is None or found.pop(key, None) is None or found:
                continue
            del self._found[value]

    def find(self, value: str) -> list[Any]:
        return list(self._found.get(value, {}).values())


#: How many changes an informer remembers. Whoever asks less often looks at everything again.
CHANGES_KEPT = 4096


class ObjectInformer:
    """Objects of one kind by key ("namespace/name", or "name" without a namespace)."""

    __slots__ = ("_changes", "_indices", "_objects", "kind", "version")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        #: Grows by one with every object that is added, changed or deleted.
        self.version = 0
        self._objects: dict[str, Any] = {}
        self._indices: dict[str, _Index] = {}
        self._changes: deque[str] = deque(maxlen=CHANGES_KEPT)

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._objects.values())

    def get(self, key: str) -> Any | None:
        """The object under a key, or None."""
        return self._objects.get(key)

    def list(self) -> Sequence[Any]:
        """All objects, in the order in which they were first seen."""
        return [*self._objects.values()]

    def add_indexer(self, name: str, values: Values) -> None:
        """Keep an index; objects that are here already are in it. A known name changes nothing."""
        if name in self._indices:
            return
        index = self._indices[name] = _Index(values)
        for key, obj in self._objects.items():
            index.put(key, obj)

    def by_index(self, name: str, value: str) -> Sequence[Any]:
        """Objects that the index has under ``value``.

        Raises:
            KeyError: there is no such index.
        """
        return self._indices[name].find(value)

    def changed_since(self, version: int) -> Collection[str] | None:
        """Keys of the objects that changed after ``version``; None if that is too long ago."""
        missed = self.version - version
        if missed > len(self._changes):
            return None
        return set(islice(reversed(self._changes), missed)) if missed else ()

    def set(self, obj: Any) -> None:
        """An object was added or changed."""
        self._note(obj.key)
        self._objects[obj.key] = obj
        for index in self._indices.values():
            index.put(obj.key, obj)

    def delete(self, key: str) -> None:
        """An object went; an unknown one changes nothing."""
        if self._objects.pop(key, None) is None:
            return
        self._note(key)
        for index in self._indices.values():
            index.drop(key)

    def _note(self, key: str) -> None:
        self.version += 1
        self._changes.append(key)


class Informers:
    """One informer per kind, made when first asked for."""

    def __init__(self) -> None:
        self._informers: dict[str, ObjectInformer] = {}

    def kinds(self) -> tuple[str, ...]:
        """Kinds that were asked for: those to watch."""
        return tuple(self._informers)

    def informer(self, kind: str) -> ObjectInformer:
        informer = self._informers.get(kind)
        if informer is None:
            informer = self._informers[kind] = ObjectInformer(kind)
        return informer
