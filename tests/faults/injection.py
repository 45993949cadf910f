"""The layer that fails: a process dies, or its connection to the database does, around a commit.

It stands between Django and its database driver, so that what fails is what fails in life: before
a COMMIT has reached the server (nothing is kept) or after it (all is kept, and nobody is told).
Everything is deterministic: a fault is a ``Shot`` at a named point, fired at its n-th passing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections

__all__ = [
    "AWAY_POINTS",
    "COMMIT_POINTS",
    "EVERYWHERE",
    "Faults",
    "FaultyDatabase",
    "Killed",
    "Shot",
    "points_of",
]

#: Where a process commits: what it is about to do.
WORKER_COMMITS: Final = (
    "lease",  # a lease is taken, renewed or given back
    "start",  # the wish for a state, or what became of it, is written on the run
    "journal",  # the sandbox keeps a write: a status, an object of a user
    "bind",  # the sandbox keeps a binding
    "snapshot",  # the sandbox keeps a snapshot
    "record",  # the recorder keeps what the scheduler told
    "inbox",  # the permit inbox looks under the run's lock
)
WEB_COMMITS: Final = (
    "decide",  # a person's word
    "configure",  # another configuration
)
WAYS: Final = (
    "connection lost before",
    "connection lost after",
    "killed before",
    "killed after",
)
#: The connection is lost around a COMMIT, and the database stays away for a while: whoever asks
#: what has become of it gets no answer.
AWAY_WAYS: Final = ("database away before", "database away after")
EVERYWHERE: Final = "every commit"


def points_of(where: str) -> list[str]:
    """The names of the faults at one kind of commit."""
    return [f"{way} {where}" for way in WAYS]


COMMIT_POINTS: Final = tuple(
    point for where in (*WORKER_COMMITS, *WEB_COMMITS) for point in points_of(where)
)
AWAY_POINTS: Final = tuple(f"{way} {where}" for where in ("journal", "bind") for way in AWAY_WAYS)


class Killed(BaseException):
    """The process that was at work is no more: nothing it would do on its way out happens."""


@dataclass(slots=True)
class Shot:
    """One fault. ``where`` may be ``EVERYWHERE``; ``passings``: how many commits are spared."""

    way: str
    where: str
    passings: int = 0

    @property
    def point(self) -> str:
        return f"{self.way} {self.where}"


class Faults:
    """What is to fail, what has failed, and whether the process at work is still alive."""

    def __init__(self, shots: list[Shot] | None = None) -> None:
        self.shots = shots or []
        self.fired: Counter[str] = Counter()
        self.commits: Counter[str] = Counter()
        self.log: list[str] = []
        #: The database cannot be reached by anybody.
        self.away = False
        #: Called when the database goes away at a commit.
        self.goes_away: Callable[[], None] = self._goes_away
        self._where = "elsewhere"
        self._dead = False

    @contextmanager
    def within(self, where: str) -> Iterator[None]:
        """Commits inside are of this kind, unless something inside says otherwise."""
        before, self._where = self._where, where
        try:
            yield
        finally:
            self._where = before

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """What is done here is no part of the product: nothing fails."""
        shots, away, self.shots, self.away = self.shots, self.away, [], False
        with self.within("elsewhere"):
            try:
                yield
            finally:
                self.shots, self.away = shots, away

    @property
    def dead(self) -> bool:
        """The process at work has been killed, and is on its way out."""
        return self._dead

    def note(self, point: str) -> None:
        """A fault that is not one of a commit has happened."""
        self.fired[point] += 1
        self.log.append(point)

    def _goes_away(self) -> None:
        self.away = True

    def kill(self) -> None:
        """The process at work dies here."""
        self._dead = True
        raise Killed

    def bury(self) -> None:
        """It is gone, with its connection; another one is at work."""
        self._dead = False
        connection.close()

    def check(self) -> None:
        """Before every statement."""
        if self._dead:
            raise Killed
        if self.away:
            raise OperationalError("the database is away")

    def passing(self, when: str) -> str:
        """The way in which this commit fails ``when`` (before, after), or ""."""
        if when == "before":
            self.commits[self._where] += 1
        for shot in self.shots:
            if shot.where not in (self._where, EVERYWHERE) or not shot.way.endswith(when):
                continue
            if self._where == "elsewhere":
                continue
            if shot.passings > 0:
                shot.passings -= 1
                continue
            self.shots.remove(shot)
            self.note(f"{shot.way} {self._where}")
            return shot.way
        return ""


class FaultyDatabase:
    """The default connection of this thread, as ``faults`` will have it."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Until the end of the block every statement and every commit goes through here."""
        wrapper: Any = connections[DEFAULT_DB_ALIAS]
        commit = wrapper._commit
        with ExitStack() as stack:
            stack.enter_context(wrapper.execute_wrapper(self._execute))
            wrapper._commit = lambda: self._around(commit, in_transaction=True)
            stack.callback(delattr, wrapper, "_commit")
            yield

    def _execute(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        self._faults.check()
        writes = sql.lstrip()[:6].upper() in ("INSERT", "UPDATE", "DELETE")
        if writes and not connection.in_atomic_block:
            return self._around(lambda: execute(sql, params, many, context), in_transaction=False)
        return execute(sql, params, many, context)

    def _around(self, commit: Callable[[], Any], *, in_transaction: bool) -> Any:
        self._faults.check()
        way = self._faults.passing("before")
        if way:
            if in_transaction:
                # Django may commit what is open when it goes back to autocommit.
                connection.connection.rollback()
            self._fail(way)
        found = commit()
        way = self._faults.passing("after")
        if way:
            self._fail(way)
        return found

    def _fail(self, way: str) -> None:
        if way.startswith("killed"):
            self._faults.kill()
        if way in AWAY_WAYS:
            self._faults.goes_away()
        raise OperationalError(way)
