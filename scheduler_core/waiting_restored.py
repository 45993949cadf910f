"""Waits of before a restart that have not been taken up again yet, and words on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from scheduler_core.api import Pod
from scheduler_core.framework.interface import Informer
from scheduler_core.observers import ObserverSet
from scheduler_core.plugins.helpers.gangs import GangDirectory, GangId
from scheduler_core.ports import Clock
from scheduler_core.records import (
    ApprovalTerms,
    PermitDecision,
    Rest,
    Verdict,
    WaitingPodRecord,
    WaitOutcome,
)
from scheduler_core.waiting_record import MANUAL_APPROVAL, ended

__all__ = ["RestoredRests", "RestoredWaits"]


class RestoredRests:
    """When pods that were turned down before a restart are to be tried again.

    In the queue they would sleep for as long again, from the restart on."""

    def __init__(self, directory: GangDirectory, pods: Informer) -> None:
        self._directory = directory
        self._pods = pods
        self._rests: list[Rest] = []

    def add(self, rests: Iterable[Rest]) -> None:
        self._rests = sorted([*self._rests, *rests], key=lambda rest: -rest.until)

    def over(self, now: float) -> dict[str, Pod]:
        """The pods whose rest is over, by key."""
        found: dict[str, Pod] = {}
        while self._rests and self._rests[-1].until <= now:
            rest = self._rests.pop()
            found |= {pod.key: pod for pod in self._pods_of(rest) if not pod.node_name}
        return found

    def _pods_of(self, rest: Rest) -> Iterable[Pod]:
        if rest.kind in self._directory.kinds:
            return self._directory.members(GangId(rest.kind, rest.key))
        pod: Pod | None = self._pods.get(rest.key)
        return [pod] if pod is not None else []


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

    def complete(
        self,
        is_bound: Callable[[WaitingPodRecord], bool],
        terms_now: Callable[[WaitingPodRecord], ApprovalTerms | None],
    ) -> None:
        """A gang is let go as one. Where the row of a member says that it was let go, or a member
        is bound to the node that it held and all had been said by then, so were those that waited
        with it, although the last worker died before it could say so: whoever denied one of them
        after that, or took an approval back, was too late.

        Anybody may bind a pod. That it is bound is no approval, neither of it nor of its gang.

        ``terms_now``: under the configuration that is in force. The last worker may have gone by it
        and died before it could say so.
        """
        for record in self:
            members = [item for item in self.gang_of(record) if _waited_with(item, record)]
            members = members or [record]
            terms = [self._terms_met(member, terms_now(member)) for member in members]
            if record.let_go or (is_bound(record) and None not in terms):
                for member, met in zip(members, terms, strict=True):
                    if member.needs_approval and not member.let_go:
                        self._note_let_go(member, met)

    def _note_let_go(self, record: WaitingPodRecord, met: ApprovalTerms | None) -> None:
        """Said of all at once, before anything else of one of them: where this worker dies, too,
        the next one must not find a part of the gang undecided."""
        terms = record.terms and (met or record.terms)
        known = self._records[record.pod.uid] = replace(record, let_go=True, terms=terms)
        text = "it was let go before the worker stopped"
        told = ended(known, WaitOutcome.ALLOWED, text, self._clock.now())
        self._observers.tell("pod_resolved", replace(told, let_go=True))

    def _terms_met(
        self, record: WaitingPodRecord, now: ApprovalTerms | None
    ) -> ApprovalTerms | None:
        """The terms under which the wait needed no more words at some time; its own, if it did."""
        own = record.terms or ApprovalTerms()
        return next((t for t in (own, now) if t is not None and self._met(record, t)), None)

    def _met(self, record: WaitingPodRecord, terms: ApprovalTerms) -> bool:
        """Whatever was said after that."""
        asked = next((item for item in record.pending if item.plugin == MANUAL_APPROVAL), None)
        if record.let_go or asked is None:
            return True
        if terms.at_deadline is Verdict.APPROVE and asked.deadline <= self._clock.now():
            return True
        users = set(record.approved_by)
        for decision in self._decisions.get(record.pod.uid, ()):
            if len(users) >= terms.approvers or decision.verdict is Verdict.DENY:
                break
            if decision.verdict is Verdict.REVOKE:
                users.discard(decision.user)
            elif not _is_late(decision, record) and _may_approve(decision.user, record, terms):
                users.add(decision.user)
        return len(users) >= terms.approvers

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

    def drop(
        self, uid: str, outcome: WaitOutcome, message: str, rest: Rest | None = None
    ) -> WaitingPodRecord | None:
        """The wait is over; say so, also to those who had a word on it."""
        record = self.take(uid)
        if record is None:
            return None
        told = ended(record, outcome, message, self._clock.now(), rest)
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


def _waited_with(sibling: WaitingPodRecord, record: WaitingPodRecord) -> bool:
    """While a row was open, what came after it was told cannot have been recorded."""
    return record.resolved_at is None or sibling.since < record.resolved_at


def _may_approve(user: str, record: WaitingPodRecord, terms: ApprovalTerms) -> bool:
    return terms.requester_may_approve or user != record.requested_by


def _is_late(decision: PermitDecision, record: WaitingPodRecord) -> bool:
    return decision.at is not None and decision.at >= record.deadline
