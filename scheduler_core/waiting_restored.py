"""Waits of before a restart that have not been taken up again yet, and words on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
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
from scheduler_core.waiting_record import ended
from scheduler_core.waiting_words import Heard, hear, strictest

__all__ = ["TOO_LATE", "RestoredRests", "RestoredWaits"]

TOO_LATE: Final = "given after the deadline"
OVERRULED: Final = "all was approved before that"
LET_GO: Final = "it was let go before the worker stopped"
APPROVED_MEANWHILE: Final = "all of its gang was approved while no worker ran"


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


@dataclass(slots=True, eq=False)
class _Story:
    """Waits that go as one, as they were found, and what was said of them."""

    members: dict[str, WaitingPodRecord] = field(default_factory=dict)
    words: list[PermitDecision] = field(default_factory=list)
    terms: dict[str, ApprovalTerms] = field(default_factory=dict)
    heard: Heard | None = None

    def hear(self) -> Heard:
        if self.heard is None:
            self.heard = hear(list(self.members.values()), self.words, self.terms)
        return self.heard


class RestoredWaits:
    """By uid, in the order in which the waits began. Scheduler thread only."""

    def __init__(self, observers: ObserverSet, clock: Clock) -> None:
        self._observers = observers
        self._clock = clock
        self._records: dict[str, WaitingPodRecord] = {}
        self._decisions: dict[str, list[PermitDecision]] = {}
        #: (pod group, its uid) -> uids
        self._gangs: dict[tuple[str, str], dict[str, None]] = {}
        #: By uid; the members of a gang have one. They outlive the records that are taken.
        self._stories: dict[str, _Story] = {}

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[WaitingPodRecord]:
        """A stable view."""
        return iter(tuple(self._records.values()))

    def add(self, records: Iterable[WaitingPodRecord]) -> None:
        """Waits that were open when the last worker ended."""
        stories: dict[tuple[str, str], _Story] = {}
        for record in sorted(records, key=lambda record: record.since):
            uid, key = record.pod.uid, (record.pod_group, record.gang_uid)
            self._records[uid] = record
            story = _Story()
            if record.pod_group:
                self._gangs.setdefault(key, {})[uid] = None
                story = stories.setdefault(key, story)
            if not record.let_go:
                story.members[uid] = record
                self._stories[uid] = story

    def complete(
        self,
        terms_now: Callable[[WaitingPodRecord], ApprovalTerms | None],
        is_there: Callable[[WaitingPodRecord], bool],
    ) -> None:
        """A gang is let go as one. Where the row of a member says that it was let go, so were those
        that waited with it: whoever denied one of them after that, or took an approval back, was
        too late. Nobody is bound before that is a row, so who is bound without one was bound by
        somebody else, which is no approval, neither of it nor of its gang.

        So is a gang of which all was said while no worker ran, if all its members are there.

        ``terms_now``: under the configuration that is in force. The last worker may have gone by it
        and died before it could say so.
        """
        for record in self:
            if record.pod.uid in self._stories:
                strict = strictest(record.terms or ApprovalTerms(), terms_now(record))
                self._stories[record.pod.uid].terms[record.pod.uid] = strict
        for record in self:
            if record.let_go:
                self._complete_gang_of(record)
        for story in {id(story): story for story in self._stories.values()}.values():
            if story.hear().is_approved and all(map(is_there, story.members.values())):
                for record in map(self._records.__getitem__, story.members):
                    if record.pod_group and record.needs_approval and not record.let_go:
                        self._note_let_go(record, APPROVED_MEANWHILE)

    def _complete_gang_of(self, record: WaitingPodRecord) -> None:
        """It was let go: so were those that waited with it."""
        for member in self.gang_of(record):
            if _waited_with(member, record) and member.needs_approval and not member.let_go:
                self._note_let_go(member, LET_GO)

    def _note_let_go(self, record: WaitingPodRecord, text: str) -> None:
        """Said of all at once, before anything else of one of them: where this worker dies, too,
        the next one must not find a part of the gang undecided."""
        known = self._records[record.pod.uid] = replace(record, let_go=True)
        told = ended(known, WaitOutcome.ALLOWED, text, self._clock.now())
        self._observers.tell("pod_resolved", replace(told, let_go=True))

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

    def awaits(self, pod_group: str, gang_uid: str) -> bool:
        """Whether a member of the gang is still here."""
        return (pod_group, gang_uid) in self._gangs

    def keep_decision(self, decision: PermitDecision) -> bool:
        """Keep a word on a pod that is still to be restored; whether it is."""
        record = self._records.get(decision.pod_uid)
        if record is None or decision.since not in (None, record.since):
            return False
        self._decisions.setdefault(decision.pod_uid, []).append(decision)
        story = self._stories.get(decision.pod_uid)
        if story is not None:
            story.words.append(decision)
            story.heard = None
        return True

    def decisions(self, uid: str) -> Sequence[PermitDecision]:
        """The words on a pod, in the order in which they were given; they are no longer here."""
        return self._decisions.pop(uid, [])

    def denial(self, record: WaitingPodRecord) -> PermitDecision | None:
        """The denial of this pod, or of a member of its gang, that ended its wait."""
        story = self._stories.get(record.pod.uid)
        return story.hear().denial if story is not None and not record.let_go else None

    def refusal(self, decision: PermitDecision) -> str:
        """Why a word that is kept here no longer counts, or ""."""
        story = self._stories.get(decision.pod_uid)
        if story is None:
            return ""
        if decision.decision_id in story.hear().too_late:
            return TOO_LATE
        return OVERRULED if decision.decision_id in story.hear().overruled else ""

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
