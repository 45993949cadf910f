"""What a word makes of a waiting row, in memory. Under the run's lock, and written by the caller.

The web process does it when a person speaks, the recorder when the scheduler has answered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from django.db.models import QuerySet

from dashboard.models import WaitingPod
from dashboard.permits_gangs import basis
from dashboard.permits_models import Decision, GangApproval
from dashboard.permits_rules import Actor, asks_for_own
from scheduler_core.plugins.manual_approval import ManualApproval
from scheduler_core.records import Verdict

__all__ = [
    "DECIDED_COLUMNS",
    "approve",
    "cover",
    "deny",
    "recount",
    "reopen",
    "take_back",
    "taken_back_in",
    "taken_back_of",
]

#: Columns that a word changes.
DECIDED_COLUMNS: Final = (
    "state",
    "approvals",
    "decision_verdict",
    "decision_user",
    "decision_at",
    "decision_comment",
    "decision_applied_at",
    "commit_seq",
)


def approve(row: WaitingPod, username: str, at: float, comment: str, gang: bool) -> None:
    """Add one person's approval to a row; with the last that is needed it is sent."""
    said = {"user": username, "at": at, "comment": comment, "gang": gang}
    row.approvals = [*row.approvals, said]
    if len(row.approvals) >= row.approvers_needed:
        _set_decision(row, Verdict.APPROVE, username, at, comment)


def deny(row: WaitingPod, username: str, at: float, comment: str) -> None:
    """Set a row to denied."""
    _set_decision(row, Verdict.DENY, username, at, comment)


def take_back(row: WaitingPod, username: str) -> None:
    """A person's approval counts no more."""
    row.approvals = [item for item in row.approvals if item["user"] != username]
    reopen(row)


def reopen(row: WaitingPod) -> None:
    """An approval is gone, or more are needed: the row is undecided unless there are enough."""
    if len(row.approvals) >= row.approvers_needed:
        return
    _set_undecided(row)


def cover(
    row: WaitingPod, standing: Iterable[GangApproval], taken_back: Collection[str]
) -> list[Decision]:
    """Have the approvals of its whole gang count for a row; the decisions to write, in their order.

    ``taken_back``: who has taken an approval of this member back. Theirs stands for others alone.
    One that was given when the member's time was over counts for it no more than its giver's word.
    """
    said: list[Decision] = []
    asked = (p["deadline"] for p in row.pending if p["plugin"] == ManualApproval.name)
    until = next(asked, row.deadline)
    for approval in standing:
        if row.state != WaitingPod.State.WAITING:
            break
        if approval.username in taken_back or not _counts(approval, row):
            continue
        at = max(approval.at, row.since)
        if at >= until:
            continue
        approve(row, approval.username, at, approval.comment, True)
        said.append(
            Decision(
                run_id=row.run_id,
                waiting_pod=row,
                verdict=Decision.Verdict.APPROVE,
                username=approval.username,
                at=at,
                comment=approval.comment,
                gang=True,
            )
        )
    return said


def taken_back_of(row: WaitingPod) -> set[str]:
    """Who has taken back an approval of this member, as far as it is written."""
    return taken_back_in([row]).get(row.pk, set())


def taken_back_in(rows: QuerySet[WaitingPod] | Sequence[WaitingPod]) -> dict[int, set[str]]:
    """Row -> who has taken back an approval of it; those of which nobody has are left out."""
    words = Decision.objects.filter(waiting_pod__in=rows, verdict=Verdict.REVOKE.value)
    found: defaultdict[int, set[str]] = defaultdict(set)
    for row, user in words.values_list("waiting_pod", "username"):
        found[row].add(user)
    return dict(found)


def recount(row: WaitingPod) -> None:
    """The scheduler has refused a word: what counts is what was said but for such words."""
    row.approvals = []
    _set_undecided(row)
    for said in Decision.objects.filter(waiting_pod=row).exclude(applied=False).order_by("pk"):
        if said.verdict == Verdict.DENY:
            deny(row, said.username, said.at, said.comment)
        elif said.verdict == Verdict.REVOKE:
            take_back(row, said.username)
        elif all(item["user"] != said.username for item in row.approvals):
            approve(row, said.username, said.at, said.comment, said.gang)
        if row.decision_at == said.at and row.decision_user == said.username:
            row.decision_applied_at = said.applied_at


def _set_undecided(row: WaitingPod) -> None:
    row.state = WaitingPod.State.WAITING
    row.decision_verdict = row.decision_user = row.decision_comment = ""
    row.decision_at = row.decision_applied_at = None


def _set_decision(row: WaitingPod, word: Verdict, username: str, at: float, comment: str) -> None:
    row.state = WaitingPod.State.SENT
    row.decision_verdict, row.decision_user = word.value, username
    row.decision_at, row.decision_comment = at, comment
    row.decision_applied_at = None


def _counts(approval: GangApproval, row: WaitingPod) -> bool:
    """Whether the person may still decide, also on this member, and has not done so; and whether
    it waits under terms that the person has seen."""
    if approval.user is None or not approval.user.is_active or basis(row) not in approval.bases:
        return False
    if any(item["user"] == approval.username for item in row.approvals):
        return False
    return not asks_for_own(row, approval.username) and not Actor(approval.user).refusal(row)
