"""What the controllers know of the cluster: one index for all of them, fed by their manager."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from scheduler_core.ports import Json, WatchEvent

from ..objects import key_of, name_of, namespace_of, uid_of

__all__ = ["Index", "controller_of", "owners_of"]

_NOTHING: Final[Mapping[str, Json]] = {}


def owners_of(obj: Json) -> list[Json]:
    """metadata.ownerReferences."""
    owners: list[Json] = obj["metadata"].get("ownerReferences") or []
    return owners


def controller_of(obj: Json) -> Json | None:
    """The owner reference that says `controller: true`."""
    return next((owner for owner in owners_of(obj) if owner.get("controller")), None)


class Index:
    """Objects by kind and key, by namespace, and by the uid of each owner."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, Json]] = {}
        self._namespaces: dict[tuple[str, str], dict[str, Json]] = {}
        self._owned: dict[str, dict[tuple[str, str], Json]] = {}

    def apply(self, event: WatchEvent) -> Json | None:
        """Take in an event; what was known of the object before."""
        key = key_of(namespace_of(event.object), name_of(event.object))
        before = self._objects.get(event.kind, _NOTHING).get(key)
        if before is not None:
            self._forget_owners(event.kind, key, before)
        if event.type == "DELETED":
            self._objects.get(event.kind, {}).pop(key, None)
            self._namespaces.get((event.kind, namespace_of(event.object)), {}).pop(key, None)
            return before
        self._objects.setdefault(event.kind, {})[key] = event.object
        namespace = namespace_of(event.object)
        self._namespaces.setdefault((event.kind, namespace), {})[key] = event.object
        for owner in owners_of(event.object):
            self._owned.setdefault(owner["uid"], {})[event.kind, key] = event.object
        return before

    def _forget_owners(self, kind: str, key: str, obj: Json) -> None:
        for owner in owners_of(obj):
            owned = self._owned.get(owner["uid"])
            if owned is None:
                continue
            owned.pop((kind, key), None)
            if not owned:
                del self._owned[owner["uid"]]

    def get(self, kind: str, key: str) -> Json | None:
        return self._objects.get(kind, _NOTHING).get(key)

    def objects(self, kind: str) -> Mapping[str, Json]:
        """All of a kind, by key."""
        return self._objects.get(kind, _NOTHING)

    def in_namespace(self, kind: str, namespace: str) -> Iterable[Json]:
        return self._namespaces.get((kind, namespace), _NOTHING).values()

    def has_any(self, kind: str, namespace: str) -> bool:
        """Whether the namespace has an object of the kind."""
        return bool(self._namespaces.get((kind, namespace)))

    def dependents(self, uid: str) -> Mapping[tuple[str, str], Json]:
        """(kind, key) -> object, of all that name this uid among their owners."""
        return self._owned.get(uid, {})

    def controlled_by(self, owner: Json, kind: str) -> list[Json]:
        """Objects of `kind` whose controller is `owner`, in order of their keys."""
        uid = uid_of(owner)
        return [
            obj
            for (of, _), obj in sorted(self.dependents(uid).items(), key=lambda item: item[0])
            if of == kind and (controller_of(obj) or {}).get("uid") == uid
        ]
