"""Garbage collector: what owned objects do when their owners go (kube-controller-manager 1.36)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from scheduler_core.api.kinds import KINDS, find_kind
from scheduler_core.ports import Json, NotFound, WatchEvent

from ..objects import key_of, name_of, namespace_of, uid_of
from ..sandbox import ActingView
from .index import Index, owners_of
from .pods import is_leaving

__all__ = ["GarbageCollector"]

_FOREGROUND: Final = "foregroundDeletion"
_ORPHAN: Final = "orphan"
#: Events come and go in numbers and own nothing.
_LEFT_OUT: Final = frozenset({"Event"})


class GarbageCollector:
    """Deletes objects all of whose owners are gone, and serves the two deletion finalizers.

    Keys are `kind|key`. An owner counts as gone when the store does not have its uid.
    """

    actor = "generic-garbage-collector"
    kinds: Sequence[str] = tuple(kind for kind in KINDS if kind not in _LEFT_OUT)

    def __init__(self, index: Index) -> None:
        self._index = index

    def affected(self, event: WatchEvent, before: Json | None) -> Iterable[str]:
        obj = event.object
        keys = []
        if event.type == "DELETED":
            keys = [_key(kind, key) for kind, key in self._index.dependents(uid_of(obj))]
            # Owners that wait for their dependents to be gone look again.
            return [*keys, *self._waiting_owners(obj)]
        if owners_of(obj) or _is_held(obj):
            keys.append(_key(event.kind, key_of(namespace_of(obj), name_of(obj))))
        if _is_held(obj):
            keys.extend(_key(kind, key) for kind, key in self._index.dependents(uid_of(obj)))
        return keys

    def _waiting_owners(self, obj: Json) -> Iterable[str]:
        for reference in owners_of(obj):
            found = self._find(reference, namespace_of(obj))
            if found is not None and _is_held(found[1]):
                kind, owner = found
                yield _key(kind, key_of(namespace_of(owner), name_of(owner)))

    def _find(self, reference: Json, namespace: str) -> tuple[str, Json] | None:
        kind = find_kind(str(reference.get("kind")), str(reference.get("apiVersion") or ""))
        if kind is None:
            return None
        key = key_of(namespace if kind.namespaced else "", str(reference.get("name")))
        found = self._index.get(kind.kind, key)
        same = found is not None and uid_of(found) == reference.get("uid")
        return (kind.kind, found) if same and found is not None else None

    def reconcile(self, view: ActingView, key: str, now: float) -> float | None:
        kind, _, of = key.partition("|")
        obj = self._index.get(kind, of)
        if obj is None:
            return None
        if _is_held(obj):
            self._serve_finalizers(view, kind, obj)
        elif owners_of(obj) and not is_leaving(obj):
            self._look_at_owners(view, kind, obj)
        return None

    # -- an object whose owners may be gone ------------------------------------------------------

    def _look_at_owners(self, view: ActingView, kind: str, obj: Json) -> None:
        namespace = namespace_of(obj)
        owners = [(reference, self._find(reference, namespace)) for reference in owners_of(obj)]
        known = [(r, f) for r, f in owners if _is_known_kind(r)]
        if len(known) < len(owners):
            return  # an owner of a kind that the sandbox does not have may be there or not
        solid = [r for r, f in known if f is not None and not _deletes_foreground(f[1])]
        dangling = [r for r, f in known if f is None]
        if solid:
            if dangling:
                self._drop_references(view, kind, obj, {str(r.get("uid")) for r in dangling})
            return
        for reference in dangling:
            if self._exists(view, reference, namespace):
                return  # not heard of yet
        view.delete(kind, namespace, name_of(obj), uid=uid_of(obj))

    def _exists(self, view: ActingView, reference: Json, namespace: str) -> bool:
        kind = find_kind(str(reference.get("kind")), str(reference.get("apiVersion") or ""))
        assert kind is not None
        where = namespace if kind.namespaced else ""
        try:
            found = view.get(kind.kind, where, str(reference.get("name")))
        except NotFound:
            return False
        return uid_of(found) == reference.get("uid")

    def _drop_references(self, view: ActingView, kind: str, obj: Json, uids: set[str]) -> None:
        left = [owner for owner in owners_of(obj) if owner.get("uid") not in uids]
        metadata = {
            "resourceVersion": obj["metadata"]["resourceVersion"],
            "ownerReferences": left or None,
        }
        view.patch(kind, namespace_of(obj), name_of(obj), {"metadata": metadata})

    # -- an object that waits for its dependents -------------------------------------------------

    def _serve_finalizers(self, view: ActingView, kind: str, obj: Json) -> None:
        held_by = obj["metadata"].get("finalizers") or []
        dependents = self._index.dependents(uid_of(obj))
        if _ORPHAN in held_by:
            for (of, _), dependent in list(dependents.items()):
                self._drop_references(view, of, dependent, {uid_of(obj)})
            self._remove_finalizer(view, kind, obj, _ORPHAN)
            return
        blocking = [d for d in dependents.values() if _blocks(d, uid_of(obj))]
        if not blocking:
            self._remove_finalizer(view, kind, obj, _FOREGROUND)

    def _remove_finalizer(self, view: ActingView, kind: str, obj: Json, finalizer: str) -> None:
        left = [f for f in obj["metadata"].get("finalizers") or [] if f != finalizer]
        metadata = {
            "resourceVersion": obj["metadata"]["resourceVersion"],
            "finalizers": left or None,
        }
        view.patch(kind, namespace_of(obj), name_of(obj), {"metadata": metadata})


def _key(kind: str, key: str) -> str:
    return f"{kind}|{key}"


def _is_held(obj: Json) -> bool:
    """It is being deleted and waits for this controller."""
    held_by = obj["metadata"].get("finalizers") or ()
    return is_leaving(obj) and (_FOREGROUND in held_by or _ORPHAN in held_by)


def _deletes_foreground(obj: Json) -> bool:
    return is_leaving(obj) and _FOREGROUND in (obj["metadata"].get("finalizers") or ())


def _is_known_kind(reference: Json) -> bool:
    kind, version = str(reference.get("kind")), str(reference.get("apiVersion") or "")
    found = find_kind(kind, version)
    return found is not None and found.group == version.rpartition("/")[0]


def _blocks(obj: Json, uid: str) -> bool:
    """Whether it is a dependent that its owner has to wait for."""
    return any(o.get("uid") == uid and o.get("blockOwnerDeletion") for o in owners_of(obj))
