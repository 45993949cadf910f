"""Runs the controllers of a sandbox: listens for them, and calls each for the keys that changed."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from scheduler_core.ports import ApiError, Json, WatchEvent

from ..inbox import WatchInbox, no_wake
from ..sandbox import ActingView, SandboxCluster
from .index import Index

__all__ = ["Controller", "ControllerManager"]

log = logging.getLogger(__name__)

_FIRST_RETRY: Final = 0.25
_LONGEST_RETRY: Final = 60.0


class Controller(Protocol):
    """One controller.

    Attributes:
        actor: in whose name it writes (as in kube-controller-manager).
        kinds: what it wants to hear of.
    """

    actor: str
    kinds: Sequence[str]

    def affected(self, event: WatchEvent, before: Json | None) -> Iterable[str]:
        """Keys to look at because of an event; `before` is the object's last known state.

        Called for every event of `kinds`: it must be quick.
        """

    def reconcile(self, view: ActingView, key: str, now: float) -> float | None:
        """Bring what `key` names closer to what is wanted.

        Returns:
            When to look again although nothing happens: a time of day of the sandbox.

        Raises:
            ApiError: the key is tried again later.
        """


@dataclass(slots=True)
class _Work:
    """What one controller has to look at."""

    controller: Controller
    changed: dict[str, None] = field(default_factory=dict)  # in order of their first change
    later: list[tuple[float, str]] = field(default_factory=list)  # a heap
    failures: dict[str, int] = field(default_factory=dict)

    def due(self, now: float) -> list[str]:
        while self.later and self.later[0][0] <= now:
            self.changed[heapq.heappop(self.later)[1]] = None
        keys, self.changed = list(self.changed), {}
        return keys

    def plan(self, key: str, at: float) -> None:
        if (at, key) not in self.later:
            heapq.heappush(self.later, (at, key))


class ControllerManager:
    """Part of a sandbox: everything happens in `tick`, so that virtual time repeats it."""

    def __init__(
        self,
        cluster: SandboxCluster,
        make: Sequence[Callable[[Index], Controller]],
        *,
        wake: Callable[[], None] = no_wake,
    ) -> None:
        """
        Args:
            make: the controllers' constructors; those named first hear, and act, first.
            wake: called, on any thread, when there is something to tick for.
        """
        self._cluster = cluster
        self._index = Index()
        self._work = [_Work(constructor(self._index)) for constructor in make]
        kinds = dict.fromkeys(kind for work in self._work for kind in work.controller.kinds)
        self._listeners = {
            kind: [work for work in self._work if kind in work.controller.kinds] for kind in kinds
        }
        self._waiting_for_lists = len(kinds)
        self._inbox = WatchInbox(wake)
        self._inbox.watch(cluster, *kinds)

    def stop(self) -> None:
        """Hear of nothing more."""
        self._inbox.stop()

    def next_deadline(self) -> float | None:
        """When `tick` has something to do: a time of day; None if nothing is planned."""
        now = self._cluster.clock.now()
        if self._inbox or any(work.changed for work in self._work):
            return now
        return min((work.later[0][0] for work in self._work if work.later), default=None)

    def tick(self, now: float) -> None:
        """Take in what has happened, then let each controller act."""
        for event in self._inbox.take():
            self._hear(event)
        if self._waiting_for_lists > 0:
            return  # what is not listed yet must not be taken for gone
        for work in self._work:
            keys = work.due(now)
            if keys:
                self._act(work, keys, now)

    def _hear(self, event: WatchEvent) -> None:
        if event.type == "SYNCED":
            self._waiting_for_lists -= 1
            return
        before = self._index.apply(event)
        for work in self._listeners[event.kind]:
            for key in work.controller.affected(event, before):
                work.changed[key] = None

    def _act(self, work: _Work, keys: list[str], now: float) -> None:
        try:
            with self._cluster.batch(work.controller.actor) as view:
                for key in keys:
                    self._reconcile(work, view, key, now)
        except ApiError as refusal:
            # The journal failed: nothing of it happened. Every step looks before it acts.
            log.warning("%s waits for the sandbox: %s", work.controller.actor, refusal)
            for key in keys:
                work.plan(key, now + 1.0)

    def _reconcile(self, work: _Work, view: ActingView, key: str, now: float) -> None:
        try:
            again = work.controller.reconcile(view, key, now)
        except ApiError as refusal:
            if refusal.code >= 500:
                raise
            self._retry(work, key, now, refusal)
            return
        work.failures.pop(key, None)
        if again is not None:
            work.plan(key, max(again, now))

    def _retry(self, work: _Work, key: str, now: float, refusal: ApiError) -> None:
        failures = work.failures[key] = work.failures.get(key, 0) + 1
        if refusal.code not in (404, 409):  # somebody else was faster: nothing to tell
            log.log(
                logging.WARNING if failures == 1 else logging.DEBUG,
                "%s: %s: %s",
                work.controller.actor,
                key,
                refusal,
            )
        work.plan(key, now + min(_LONGEST_RETRY, _FIRST_RETRY * 2 ** min(failures, 10)))
