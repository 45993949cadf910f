"""People's words on pods that wait at Permit: whose counts, and when it is enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from scheduler_core.observers import ObserverSet
from scheduler_core.plugins.helpers.gangs import GangDirectory, GangId
from scheduler_core.plugins.manual_approval import ManualApproval
from scheduler_core.records import ApprovalTerms, PermitDecision, Verdict, WaitOutcome
from scheduler_core.waiting_gangs import WaitingGangs
from scheduler_core.waiting_record import MANUAL_APPROVAL, Parked, requester
from scheduler_core.waiting_restored import TOO_LATE

__all__ = ["Approvals", "denial_text"]

_ONE: Final = ApprovalTerms()
OUT_OF_TIME: Final = "denied: nobody decided in time"
AT_DEADLINE: Final = "nobody decided in time, which approves it here"
EARLIER_WAIT: Final = "it was said of an earlier wait of this pod, which has ended"
LET_GO_BEFORE: Final = "the pod was let go before that; it is on its way to its node"


class Approvals:
    """Counts approvals, and lets pods go: a gang as one, when all its members here wait for people
    alone and all of them are approved. One by one they could be bound while another is denied.

    """

    def __init__(
        self,
        gangs: WaitingGangs,
        directory: GangDirectory,
        observers: ObserverSet,
        on_deadline_change: Callable[[Parked], None],
        is_awaited: Callable[[GangId], bool] = lambda _gang: False,
    ) -> None:
        self._gangs = gangs
        self._directory = directory
        self._observers = observers
        self._on_deadline_change = on_deadline_change
        self._is_awaited = is_awaited
        #: Pods that are let go whoever has approved them: by uid.
        self._waived: set[str] = set()
        #: Those of them that were let go before, and whose gang may be bound in part: by uid.
        self._let_go_before: set[str] = set()
        #: More words are to be heard before anybody is let go.
        self._hears = False

    def decide(self, parked: Parked, decision: PermitDecision) -> None:
        """Apply a person's word to a pod that waits; the observer is told whether it counted."""
        applied, text = self._apply(parked, decision)
        self._observers.tell("decision_applied", decision, applied, text)

    def hear(self, parked: Parked, words: Sequence[tuple[PermitDecision, str]]) -> None:
        """What was said while no scheduler ran, with the reasons why some of it does not count.
        All is heard before anything comes of it: an approval may have been taken back."""
        self._hears = True
        for decision, refusal in words:
            if refusal:
                self._observers.tell("decision_applied", decision, False, refusal)
            else:
                self.decide(parked, decision)
        self._hears = False
        if words and parked.waiting.status is None:
            self.review(parked)

    def _apply(self, parked: Parked, decision: PermitDecision) -> tuple[bool, str]:
        waiting = parked.waiting
        if decision.since not in (None, parked.cycle.waiting_since):
            return False, EARLIER_WAIT
        if waiting.status is not None:
            return _after_the_end(parked, decision)
        if decision.at is not None and decision.at >= self._end_by_time(parked):
            return False, TOO_LATE
        if decision.verdict is not Verdict.APPROVE and parked.uid in self._let_go_before:
            if not self._is_stranded(parked):
                return False, LET_GO_BEFORE
            self._waived.discard(parked.uid)
            self._let_go_before.discard(parked.uid)
        if decision.verdict is Verdict.DENY:
            return self._deny(parked, decision)
        if not parked.asks:
            return False, "the pod does not wait for an approval"
        if decision.verdict is Verdict.REVOKE:
            return self._revoke(parked, decision.user)
        return self._approve(parked, decision.user)

    def _is_stranded(self, parked: Parked) -> bool:
        """It was let go, but those who went with it are gone, and it waits for members again: it is
        not on its way to its node, and what people say of it counts."""
        if parked.gang is None or self._is_awaited(parked.gang):
            return False
        return any(plugin != MANUAL_APPROVAL for plugin in parked.waiting.pending_plugins)

    def _end_by_time(self, parked: Parked) -> float:
        """Its deadline. An approved member has none of its own: it waits until time ends the wait
        of its gang, also where no worker was there to end it."""
        own = parked.waiting.deadline
        return own if own != float("inf") else self._gangs.end_by_time(parked.gang)

    # -- approve ---------------------------------------------------------------------------------

    def _approve(self, parked: Parked, user: str) -> tuple[bool, str]:
        terms = parked.waiting.terms or _ONE
        if not terms.requester_may_approve and user == self._requester(parked):
            return False, f"{user} asked for the pod; somebody else has to approve it"
        if user not in parked.approved_by:
            parked.approved_by.append(user)
        if not self._is_enough(parked):
            return True, f"approved by {len(parked.approved_by)} of {terms.approvers}"
        if self.review(parked):
            return True, "approved"
        return True, "approved; it counts when the whole gang is approved"

    def _requester(self, parked: Parked) -> str:
        pod = parked.waiting.pod
        gang = self._directory.gang_of(pod)
        return requester(pod, self._directory.group(gang) if gang is not None else None)

    def waive(self, parked: Parked, note: str = "", *, let_go: bool = False) -> None:
        """The pod needs no more words: its time has decided, or it was ``let_go`` before, which
        nobody can undo: others of its gang may be bound. ``review`` acts on it."""
        self._waived.add(parked.uid)
        if let_go:
            self._let_go_before.add(parked.uid)
        parked.note = note

    def is_let_go(self, parked: Parked) -> bool:
        """It was let go before, and is on its way to its node again."""
        return parked.uid in self._let_go_before

    def _is_enough(self, parked: Parked) -> bool:
        """Enough different people."""
        if parked.uid in self._waived:
            return True
        needed = (parked.waiting.terms or _ONE).approvers
        return len(set(parked.approved_by)) >= needed

    def review(self, parked: Parked) -> bool:
        """Something about the pod has changed: let it, or its gang, go if all is said; whether it
        is on its way."""
        if not parked.asks:
            return False
        enough = self._is_enough(parked)
        parked.waiting.satisfy(MANUAL_APPROVAL, enough)
        self._on_deadline_change(parked)
        alone = parked.waiting.pending_plugins == (MANUAL_APPROVAL,)
        self._gangs.mark(parked, enough and alone)
        if self._hears:
            return enough and parked.gang is None
        if parked.gang is not None:
            return self.release(parked.gang)
        if enough:
            self._let_go(parked)
        return enough

    def release(self, gang: GangId) -> bool:
        """Let a gang go if every member here is ready. Not while the end of a member has not been
        acted on: it may take the others along; nor while a member of before a restart is still to
        be taken up, which may not be approved."""
        if not self._gangs.all_ready(gang):
            return False
        members = self._gangs.members(gang)
        if self._is_awaited(gang) and not all(map(self.is_let_go, members)):
            return False
        if any(member.waiting.status is not None for member in members):
            return False
        for member in members:
            self._let_go(member)
        return True

    def _let_go(self, parked: Parked) -> None:
        waiting = parked.waiting
        waiting.allow(MANUAL_APPROVAL)
        if waiting.status is None:
            return
        before = parked.let_go_before
        if before is not None and before.resolved_by:
            waiting.resolved_by = before.resolved_by
        elif parked.approved_by:
            waiting.resolved_by = f"user:{parked.approved_by[-1]}"

    def forget(self, parked: Parked) -> None:
        """The pod waits no more."""
        self._waived.discard(parked.uid)
        self._let_go_before.discard(parked.uid)

    # -- take back, deny -------------------------------------------------------------------------

    def _revoke(self, parked: Parked, user: str) -> tuple[bool, str]:
        if user not in parked.approved_by:
            return False, "there is no approval to take back"
        parked.approved_by.remove(user)
        self.review(parked)
        return True, "taken back"

    def _deny(self, parked: Parked, decision: PermitDecision) -> tuple[bool, str]:
        """One denial ends the wait of the whole gang."""
        text = denial_text(decision)
        for member in self._gangs.members(parked.gang) or [parked]:
            if member.waiting.status is None:
                member.waiting.reject(MANUAL_APPROVAL, text)
                member.waiting.resolved_by = f"user:{decision.user}"
        self._keep_away(parked, text)
        return True, "denied"

    def expire(self, parked: Parked, now: float) -> bool:
        """Nobody has decided in time; whether the wait ends. That denies it as a person does: the
        whole gang's wait ends, it stays away for a while, and others get its room."""
        waiting = parked.waiting
        if not waiting.expire(now) or waiting.status is None:
            return False
        for member in self._gangs.members(parked.gang):
            if not self.is_let_go(member):
                member.waiting.time_out(MANUAL_APPROVAL, waiting.status.message)
        self._keep_away(parked, OUT_OF_TIME)
        return True

    @staticmethod
    def _keep_away(parked: Parked, text: str) -> None:
        plugin = parked.cycle.framework.plugin(MANUAL_APPROVAL)
        if isinstance(plugin, ManualApproval):
            parked.rest = plugin.turned_down(parked.waiting.pod, text)


def _after_the_end(parked: Parked, decision: PermitDecision) -> tuple[bool, str]:
    """The wait has just ended; a denial of the whole gang reaches its members one by one."""
    same, outcome = parked.waiting.resolved_by == f"user:{decision.user}", parked.waiting.outcome
    if same and decision.verdict is Verdict.DENY and outcome is WaitOutcome.REJECTED:
        return True, "denied"
    if same and decision.verdict is Verdict.APPROVE and outcome is WaitOutcome.ALLOWED:
        return True, "approved"
    return False, "the pod no longer waits for a decision"


def denial_text(decision: PermitDecision) -> str:
    """What the pod's owner reads: ``denied by alice: not this week``."""
    text = f"denied by {decision.user}"
    return f"{text}: {decision.comment}" if decision.comment else text
