"""What came of people's words while no scheduler ran: heard in the order in which they were said.

Members of a gang go as one, so the first thing that decides one of them decides all: a denial, the
last approval that was missing, or time. What came after that came too late, save an approval that
was taken back: nobody has acted on it. Heard pod by pod, as the waits are taken up again, a later
denial of one member would win over an approval of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from scheduler_core.records import ApprovalTerms, PermitDecision, Verdict, WaitingPodRecord
from scheduler_core.waiting_record import MANUAL_APPROVAL

__all__ = ["Heard", "hear", "strictest"]

_NEVER = float("inf")
_ONE = ApprovalTerms()


@dataclass(frozen=True, slots=True)
class Heard:
    """What decided waits that go as one.

    Attributes:
        is_approved: everybody needed had approved all of them, or their time did.
        denial: the word that ended them.
        too_late: ids of words that were given when time had ended the waits.
        overruled: ids of denials that were given when all had been approved.
    """

    is_approved: bool = False
    denial: PermitDecision | None = None
    too_late: frozenset[int] = frozenset()
    overruled: frozenset[int] = frozenset()


def hear(
    members: Sequence[WaitingPodRecord],
    words: Iterable[PermitDecision],
    terms: Mapping[str, ApprovalTerms],
) -> Heard:
    """``members``: all that waited together; ``words``: on them; ``terms``: by uid, those by which
    the words are judged; the default is the record's own."""
    ordered = sorted(words, key=lambda word: word.decision_id)
    waits = {
        record.pod.uid: _Wait(record, terms.get(record.pod.uid) or record.terms or _ONE)
        for record in members
    }
    for word in ordered:
        # What a record counts may have been said at any time; the words say when.
        waits[word.pod_uid].users.discard(word.user)
    too_late: set[int] = set()
    overruled: set[int] = set()
    for word in ordered:
        # Not the last of them: a whole gang's approval that stands in for one that was taken back
        # was given before.
        if _is_over(word, _end_by_time(waits.values())[0]):
            too_late.add(word.decision_id)
            continue
        wait = waits[word.pod_uid]
        if _is_over(word, wait.own_end):
            continue
        if word.verdict is not Verdict.DENY:
            wait.take(word)
        elif all(wait.is_ready for wait in waits.values()):
            overruled.add(word.decision_id)
        else:
            return Heard(denial=word)
    is_approved = bool(ordered) and all(wait.is_ready for wait in waits.values())
    if too_late:
        is_approved = _end_by_time(waits.values())[1]
    return Heard(is_approved, None, frozenset(too_late), frozenset(overruled))


def strictest(one: ApprovalTerms, other: ApprovalTerms | None) -> ApprovalTerms:
    """Terms whose approvals are enough under both; None: nobody has to approve."""
    if other is None:
        return one
    by_time = one.at_deadline is other.at_deadline is Verdict.APPROVE
    return ApprovalTerms(
        approvers=max(one.approvers, other.approvers),
        requester_may_approve=one.requester_may_approve and other.requester_may_approve,
        at_deadline=Verdict.APPROVE if by_time else Verdict.DENY,
    )


@dataclass(slots=True, eq=False)
class _Wait:
    """One member, and who has approved it so far."""

    record: WaitingPodRecord
    terms: ApprovalTerms
    users: set[str] = field(init=False)
    #: When people are out of time; None: they are not asked, or not any more.
    asked_until: float | None = field(init=False)
    #: When the first of the other plugins that it waits for is.
    others_until: float = field(init=False)

    def __post_init__(self) -> None:
        self.users = set(self.record.approved_by)
        pending = {item.plugin: item.deadline for item in self.record.pending}
        self.asked_until = pending.pop(MANUAL_APPROVAL, None)
        self.others_until = min(pending.values(), default=_NEVER)

    @property
    def is_decided(self) -> bool:
        return self.asked_until is None or len(self.users) >= self.terms.approvers

    @property
    def is_ready(self) -> bool:
        """It waits for the others alone."""
        return self.is_decided and self.others_until == _NEVER

    @property
    def own_end(self) -> float:
        """Words on it are too late from then on, whatever becomes of the others."""
        if self.asked_until is None or self.is_decided:
            return self.others_until
        return min(self.asked_until, self.others_until)

    def take(self, word: PermitDecision) -> None:
        if word.verdict is Verdict.REVOKE:
            self.users.discard(word.user)
        elif self.terms.requester_may_approve or word.user != self.record.requested_by:
            self.users.add(word.user)


def _end_by_time(waits: Iterable[_Wait]) -> tuple[float, bool]:
    """When time ends all of them, as things stand, and whether it approves them
    (``WaitingGangs.end_by_time``). Where all is said already that is what they end with."""
    turned_down, approved, last = _NEVER, 0.0, 0.0
    for wait in waits:
        turned_down = min(turned_down, wait.others_until)
        if wait.asked_until is None:
            continue
        last = max(last, wait.asked_until)
        if wait.is_decided:
            continue
        if wait.terms.at_deadline is Verdict.APPROVE:
            approved = max(approved, wait.asked_until)
        else:
            turned_down = min(turned_down, wait.asked_until)
    if turned_down == _NEVER and last:
        return approved or last, True
    return turned_down, False


def _is_over(word: PermitDecision, end: float) -> bool:
    return word.at is not None and word.at >= end
