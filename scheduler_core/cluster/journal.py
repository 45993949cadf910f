"""What a sandbox writes down, and the port that keeps it.

A `Write` is one change of one object. A journal that holds all of them, or a snapshot and all
that came after it, is enough to build the same store again (`SandboxCluster.restore`).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from scheduler_core.ports import Json

__all__ = ["FateUnknownError", "Journal", "MemoryJournal", "StoreSnapshot", "Verb", "Write"]

#: `terminate` sets the deletionTimestamp, `delete` takes the object away
Verb = Literal["create", "update", "patch", "status", "bind", "event", "terminate", "delete"]


@dataclass(frozen=True, slots=True)
class Write:
    """One change of one object, as it is kept.

    Attributes:
        resource_version: grows by at least one with every write of the store.
        at: time of day of the sandbox's clock, seconds.
        key: `namespace/name`, or the name alone for kinds without namespace.
        actor: on whose behalf: a user, `scheduler`, `kubelet`, a workload.
        object: the whole object after the write (for `delete`: its last state). Never changed.
    """

    resource_version: int
    at: float
    verb: Verb
    kind: str
    key: str
    uid: str
    actor: str
    object: Json

    @property
    def type(self) -> Literal["ADDED", "MODIFIED", "DELETED"]:
        """The watch event that tells it."""
        if self.verb == "delete":
            return "DELETED"
        if self.verb == "create":
            return "ADDED"
        return "MODIFIED"


@dataclass(frozen=True, slots=True)
class StoreSnapshot:
    """Every object of a store at one moment. `at`: time of day of the sandbox's clock."""

    resource_version: int
    at: float
    objects: tuple[Json, ...]


class FateUnknownError(Exception):
    """Nobody can tell whether a batch was kept: only who reads the journal anew knows its state."""


class Journal(Protocol):
    """Keeps writes for good."""

    def append(self, writes: Sequence[Write]) -> None:
        """Keep all of `writes` or, raising anything else than `FateUnknownError`, none of them.

        Called by one thread at a time, in order of resource_version. When it returns, the writes
        outlive the process. An adapter that cannot tell whether a batch was kept (a lost
        connection at commit) must find out before it raises, however long that takes.

        Raises:
            FateUnknownError: it could not find out before its time was over; no more may come.
        """

    def close(self) -> None:
        """No more comes: called by the thread that appended, at its end, so that what belongs to
        that thread (a database connection) can be given back. By default nothing is done."""
        return


class MemoryJournal(Journal):
    """A journal that outlives its sandbox, not its process: for tests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._writes: list[Write] = []
        self.batches = 0

    def append(self, writes: Sequence[Write]) -> None:
        with self._lock:
            self._writes.extend(writes)
            self.batches += 1

    @property
    def writes(self) -> tuple[Write, ...]:
        """All that was kept, in order."""
        with self._lock:
            return tuple(self._writes)
