"""Waits of before a restart that have not been taken up again yet, and words on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from scheduler_core.observers import ObserverSet
from scheduler_core.ports import Clock
from scheduler_core.records import PermitDecision, Verdict, WaitingPodRecord, WaitOutcome
from scheduler_core.waiting_record import ended

__all__ = ["RestoredWaits"]


class RestoredWaits:
    """By uid, in the order in which the waits began. Scheduler thread only."""

    def __init__(self, observers: ObserverSet, clock: Clock) -> None:
        self._observers = observers
        self._clock = clock
        self._records: dict[str, WaitingPodRecord] = {}
        self._decisions: dict[str, list[PermitDecision]] = {}
        #: (pod group, its uid) -> uids
        self._gangs: dict[tuple[str, str], dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[WaitingPodRecord]:
        """A stable view."""
        return iter(tuple(self._records.values()))

    def add(self, records: Iterable[WaitingPodRecord]) -> None:
        """Waits that were open when the last worker ended."""
        for record in sorted(records, key=lambda record: record.since):
            self._records[record.pod.uid] = record
            if record.pod_group:
                key = (record.pod_group, record.gang_uid)
                self._gangs.setdefault(key, {})[record.pod.uid] = None

    def complete(self, is_bound: Callable[[WaitingPodRecord], bool]) -> None:
        """A gang is let go as one. Where a member is bound already, or its row says that it was let
        go, so were those that waited with it, although the last worker died before it could say so:
        whoever denied one of them after that, or took an approval back, was too late.
        """
        for record in self:
            if not (record.let_go or is_bound(record)):
                continue
            for sibling in self.gang_of(record):
                # A row that was still open: what came after it was told cannot have been recorded.
                waited = record.resolved_at is None or sibling.since < record.resolved_at
                if sibling is not record and waited:
                    self._records[sibling.pod.uid] = replace(sibling, let_go=True)

    def first(self) -> WaitingPodRecord | None:
        """The longest wait."""
        return next(iter(self._records.values()), None)

    def take(self, uid: str) -> WaitingPodRecord | None:
        """The wait goes on; it is no longer here."""
        record = self._records.pop(uid, None)
        if record is not None and record.pod_group:
            key = (record.pod_group, record.gang_uid)
            del self._gangs[key][uid]
            if not self._gangs[key]:
                del self._gangs[key]
        return record

    def gang_of(self, record: WaitingPodRecord) -> list[WaitingPodRecord]:
        """Members of the record's gang that are still here."""
        uids = self._gangs.get((record.pod_group, record.gang_uid), {})
        return [self._records[uid] for uid in uids] if record.pod_group else []

    def keep_decision(self, decision: PermitDecision) -> bool:
        """Keep a word on a pod that is still to be restored; whether it is."""
        record = self._records.get(decision.pod_uid)
        if record is None or decision.since not in (None, record.since):
            return False
        self._decisions.setdefault(decision.pod_uid, []).append(decision)
        return True

    def decisions(self, uid: str) -> Sequence[PermitDecision]:
        """The words on a pod, in the order in which they were given; they are no longer here."""
        return self._decisions.pop(uid, [])

    def denial(self, record: WaitingPodRecord) -> PermitDecision | None:
        """A denial of this pod, or of a member of its gang, that was given in time."""
        if record.let_go:
            return None
        for uid in [record.pod.uid, *(item.pod.uid for item in self.gang_of(record))]:
            for decision in self._decisions.get(uid, ()):
                if decision.verdict is Verdict.DENY and not _is_late(decision, record):
                    return decision
        return None

    def drop(self, uid: str, outcome: WaitOutcome, message: str) -> WaitingPodRecord | None:
        """The wait is over; say so, also to those who had a word on it."""
        record = self.take(uid)
        if record is None:
            return None
        told = ended(record, outcome, message, self._clock.now())
        self._observers.tell("pod_resolved", told)
        for decision in self.decisions(uid):
            came_true = _COMES_TRUE.get(decision.verdict) is outcome
            self._observers.tell("decision_applied", decision, came_true, message)
        return record


#: How a wait ends when a word on it comes true.
_COMES_TRUE: Final = {
    Verdict.APPROVE: WaitOutcome.ALLOWED,
    Verdict.DENY: WaitOutcome.REJECTED,
}


def _is_late(decision: PermitDecision, record: WaitingPodRecord) -> bool:
    return decision.at is not None and decision.at >= record.deadline
