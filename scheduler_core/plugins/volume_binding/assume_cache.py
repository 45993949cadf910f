"""Objects as they will be once the writes that were decided on have been made."""

from __future__ import annotations

from typing import Generic, TypeVar, cast

from scheduler_core.api import KubeObject
from scheduler_core.framework.interface import Informer

__all__ = ["AssumeCache"]

T = TypeVar("T", bound=KubeObject)


class AssumeCache(Generic[T]):
    """An informer's objects, some of them changed in thought.

    An assumption lasts until the watch shows another version of the object, or until it is taken
    back. Only the scheduler thread may use it.
    """

    def __init__(self, informer: Informer) -> None:
        self._informer = informer
        #: key -> (the version it was made of, what it will be)
        self._assumed: dict[str, tuple[T, T]] = {}

    def get(self, key: str) -> T | None:
        """The object as assumed, else as the watch last showed it."""
        actual = cast("T | None", self._informer.get(key))
        assumption = self._assumed.get(key)
        if assumption is None:
            return actual
        if assumption[0] is actual:
            return assumption[1]
        del self._assumed[key]
        return actual

    def by_index(self, name: str, value: str) -> list[T]:
        """As ``get``, of all objects that the informer's index has under ``value``."""
        found = (self.get(obj.key) for obj in self._informer.by_index(name, value))
        return [obj for obj in found if obj is not None]

    def assume(self, obj: T) -> None:
        """``obj`` is what will become of the object with its key; one that is gone stays gone."""
        actual = self._informer.get(obj.key)
        if actual is not None:
            self._assumed[obj.key] = (actual, obj)

    def restore(self, key: str) -> None:
        """Take an assumption back; may be called twice."""
        self._assumed.pop(key, None)
