"""The objects, their versions and their recent history. No threads here: the caller locks.

There are two views. *Committed* is what readers and watchers see. *Head* is committed plus the
writes that were accepted and wait for the journal: new requests are judged against it, so that
writes can be batched. Should the journal fail, head falls back to committed.
"""

from __future__ import annotations

import random
import uuid
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from scheduler_core.ports import Json

from .errors import expired, too_large_version
from .journal import StoreSnapshot, Verb, Write
from .objects import key_of, name_of, namespace_of, timestamp, uid_of
from .resources import Resource, kind_name
from .sharing import NoSharing, Sharing

__all__ = ["Change", "Store", "Transaction"]

# What generated names end in: no vowels, so that they spell nothing (as kube-apiserver does).
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5

# "Nothing was said of this key", where None says that the object is gone.
_ABSENT: Json = {}
# Verbs that change nothing but single values of the metadata: all parts are shared already.
_NOTHING_NEW: frozenset[Verb] = frozenset(("delete", "terminate"))
_NOTHING: Mapping[str, Json | None] = {}


def _overlaid(found: dict[str, Json], changed: Mapping[str, Json | None]) -> dict[str, Json]:
    for key, obj in changed.items():
        if obj is None:
            found.pop(key, None)
        else:
            found[key] = obj
    return found


@dataclass(frozen=True, slots=True)
class Change:
    """A committed write, and the object that it replaced (None for a new one)."""

    write: Write
    previous: Json | None


class Store:
    """Objects by kind and key, one resourceVersion for all of them."""

    def __init__(self, history: int, *, share: bool = True) -> None:
        """
        Args:
            history: how many changes are kept for watches that resume.
            share: whether equal parts of objects are kept once.
        """
        self._committed: dict[str, dict[str, Json]] = {}
        self._accepted: dict[str, dict[str, Json | None]] = {}
        self._last_accepted = 0
        self._history: deque[Change] = deque(maxlen=max(history, 1))
        self._forgotten = 0
        self.committed_version = 0
        self.sharing: Sharing | NoSharing = Sharing() if share else NoSharing()

    # -- reading ---------------------------------------------------------------------------------

    def get(self, kind: str, key: str) -> Json | None:
        """What readers see."""
        return self._committed.get(kind, {}).get(key)

    def objects(self, kind: str) -> Mapping[str, Json]:
        """What readers see of a kind, by key; to be read under the caller's lock."""
        return self._committed.get(kind, {})

    def head(self, kind: str, key: str) -> Json | None:
        """What a new write is judged against."""
        accepted = self._accepted.get(kind, _NOTHING).get(key, _ABSENT)
        return self.get(kind, key) if accepted is _ABSENT else accepted

    def head_objects(self, kind: str) -> dict[str, Json]:
        """All of a kind that a new write is judged against, by key."""
        return _overlaid(dict(self.objects(kind)), self._accepted.get(kind, _NOTHING))

    def changes_after(self, kind: str, version: int) -> Iterator[Change]:
        """The committed changes of a kind since `version`, oldest first.

        Raises:
            ApiError: 410 where some of them are forgotten, 504 where `version` lies ahead.
        """
        if version > self.committed_version:
            raise too_large_version(version, self.committed_version)
        if version < self._forgotten:
            raise expired(version, self._forgotten)
        return (
            change
            for change in self._history
            if change.write.resource_version > version and change.write.kind == kind
        )

    def objects_at(self, kind: str, version: int) -> dict[str, Json]:
        """All of a kind as it was at an earlier version, by key.

        Raises:
            ApiError: 410 where that is forgotten, 504 where `version` lies ahead.
        """
        found = dict(self.objects(kind))
        for change in reversed(list(self.changes_after(kind, version))):
            if change.previous is None:
                found.pop(change.write.key, None)
            else:
                found[change.write.key] = change.previous
        return found

    @property
    def kinds(self) -> Sequence[str]:
        return tuple(self._committed)

    @property
    def next_version(self) -> int:
        return self._last_accepted + 1

    # -- writing ---------------------------------------------------------------------------------

    def accept(self, writes: Sequence[Write]) -> None:
        """Make them the head; nobody sees them yet."""
        for write in writes:
            gone = write.verb == "delete"
            self._accepted.setdefault(write.kind, {})[write.key] = None if gone else write.object
        if writes:
            self._last_accepted = writes[-1].resource_version

    def commit(self, writes: Sequence[Write]) -> list[Change]:
        """Show them to readers."""
        changes = [self._apply(write) for write in writes]
        for write in writes:
            accepted = self._accepted.get(write.kind, {})
            head = accepted.get(write.key, _ABSENT)
            # A later write of the same object may wait still.
            if head is (None if write.verb == "delete" else write.object):
                del accepted[write.key]
        return changes

    def drop_accepted(self) -> None:
        """Forget every write that is not committed. Their resourceVersions are not used again."""
        self._accepted.clear()

    def _apply(self, write: Write) -> Change:
        objects = self._committed.setdefault(write.kind, {})
        previous = objects.get(write.key)
        if write.verb == "delete":
            objects.pop(write.key, None)
        else:
            objects[write.key] = write.object
        change = Change(write, previous)
        if len(self._history) == self._history.maxlen:
            self._forgotten = self._history[0].write.resource_version
        self._history.append(change)
        self.committed_version = write.resource_version
        self._last_accepted = max(self._last_accepted, write.resource_version)
        return change

    # -- restart ---------------------------------------------------------------------------------

    def load(self, snapshot: StoreSnapshot | None, writes: Sequence[Write]) -> None:
        """Fill an empty store. Writes that the snapshot holds already are skipped.

        Raises:
            ValueError: the writes are not in order.
        """
        if snapshot is not None:
            for obj in snapshot.objects:
                key = key_of(namespace_of(obj), name_of(obj))
                self._committed.setdefault(kind_name(obj), {})[key] = self.sharing.of(obj)
            self.committed_version = self._last_accepted = snapshot.resource_version
            self._forgotten = snapshot.resource_version
        for write in writes:
            if snapshot is not None and write.resource_version <= snapshot.resource_version:
                continue
            if write.resource_version <= self.committed_version:
                raise ValueError(
                    f"write {write.resource_version} comes after {self.committed_version}: "
                    "the journal is out of order"
                )
            self.sharing.of(write.object)
            self._apply(write)

    def snapshot(self, at: float) -> StoreSnapshot:
        """Every committed object, in order of kind and key."""
        objects = tuple(
            self._committed[kind][key]
            for kind in sorted(self._committed)
            for key in sorted(self._committed[kind])
        )
        return StoreSnapshot(self.committed_version, at, objects)


class Transaction:
    """One request: reads the head, collects writes that are accepted together or not at all."""

    def __init__(self, store: Store, now: float, actor: str, rng: random.Random) -> None:
        self._store = store
        self._own: dict[str, dict[str, Json | None]] = {}
        self._rng = rng
        self.now = now
        self.actor = actor
        self.writes: list[Write] = []

    @property
    def timestamp(self) -> str:
        """Now, as Kubernetes writes it."""
        return timestamp(self.now)

    def timestamp_in(self, seconds: float) -> str:
        """A later moment, as Kubernetes writes it."""
        return timestamp(self.now + seconds)

    def get(self, kind: str, key: str) -> Json | None:
        own = self._own.get(kind, _NOTHING).get(key, _ABSENT)
        return self._store.head(kind, key) if own is _ABSENT else own

    def objects(self, kind: str) -> dict[str, Json]:
        """All of a kind, by key."""
        return _overlaid(self._store.head_objects(kind), self._own.get(kind, _NOTHING))

    def put(self, verb: Verb, resource: Resource, obj: Json) -> Json:
        """Store `obj` (not kept itself: a copy with its resourceVersion is) and return it."""
        stored = self._write(verb, resource, obj)
        self._own.setdefault(resource.kind, {})[self.writes[-1].key] = stored
        return stored

    def remove(self, resource: Resource, obj: Json) -> Json:
        """Take an object away; returns its last state."""
        stored = self._write("delete", resource, obj)
        self._own.setdefault(resource.kind, {})[self.writes[-1].key] = None
        return stored

    def new_uid(self) -> str:
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))

    def new_suffix(self) -> str:
        """The end of a generated name."""
        return "".join(self._rng.choices(_SUFFIX_LETTERS, k=_SUFFIX_LENGTH))

    def _write(self, verb: Verb, resource: Resource, obj: Json) -> Json:
        version = self._store.next_version + len(self.writes)
        stored = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}
        key = key_of(namespace_of(stored), name_of(stored))
        if verb not in _NOTHING_NEW:
            self._store.sharing.of(stored, self.get(resource.kind, key) or _ABSENT)
        self.writes.append(
            Write(version, self.now, verb, resource.kind, key, uid_of(stored), self.actor, stored)
        )
        return stored
