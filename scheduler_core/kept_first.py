"""What people allowed is kept for good before it is acted on.

A binding cannot be taken back. If the scheduler bound first and died before it could say so, the
next one would find a pod that is bound, and could only guess whether it was let go, under which
terms, and who was let go with it. So a binding that follows from a wait for people begins when the
end of that wait is kept (docs/design/007). Scheduler thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scheduler_core.pod_cycle import PodCycle
from scheduler_core.ports import Ledger

__all__ = ["Kept", "KeptFirst"]


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """What is put on the scheduler's inbox when the ends of these waits are kept."""

    cycles: tuple[PodCycle, ...]


class KeptFirst:
    """Cycles that are let go, until that is kept.

    Args:
        ledger: who keeps it; None: nobody, and nothing waits for it.
        start: begins a binding.
        post: puts a message on the scheduler's inbox; called on any thread.
    """

    def __init__(
        self,
        ledger: Ledger | None,
        start: Callable[[PodCycle], None],
        post: Callable[[Kept], None],
    ) -> None:
        self._ledger = ledger
        self._start = start
        self._post = post
        self._cycles: dict[str, PodCycle] = {}
        #: Those of them of which the ledger has not been asked.
        self._new: list[PodCycle] = []

    def start(self, cycle: PodCycle, *, was_asked: bool) -> None:
        """Begin a binding: at once where nobody had a word on it."""
        if self._ledger is None or not was_asked:
            self._start(cycle)
            return
        self._cycles[cycle.pod.uid] = cycle
        self._new.append(cycle)

    def ask(self) -> None:
        """All that is let go in this turn has been told. Not earlier: of a gang nobody is bound
        before it is kept of all that they were let go."""
        if self._ledger is None or not self._new:
            return
        kept = Kept(tuple(self._new))
        self._new.clear()
        self._ledger.when_kept(lambda: self._post(kept))

    def kept(self, message: Kept) -> list[PodCycle]:
        """Those of them that are still to be bound; they are no longer here."""
        cycles = [c for c in message.cycles if self._cycles.get(c.pod.uid) is c]
        for cycle in cycles:
            del self._cycles[cycle.pod.uid]
        return cycles

    def give_up(self) -> list[PodCycle]:
        """The scheduler ends; the next one takes up who is left here."""
        left, self._cycles = list(self._cycles.values()), {}
        self._new.clear()
        return left
