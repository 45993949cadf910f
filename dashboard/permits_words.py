"""What a person reads after deciding: who was first, when, and how a wait ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from django.utils import timezone

from dashboard.models import WaitingPod
from dashboard.permits_models import Decision
from scheduler_core.records import Verdict

GIVEN: Final = {Verdict.APPROVE: "approved", Verdict.DENY: "denied"}
_ENDED: Final = {
    WaitingPod.State.ALLOWED: "was allowed",
    WaitingPod.State.REJECTED: "was rejected",
    WaitingPod.State.TIMED_OUT: "has timed out",
    WaitingPod.State.PREEMPTED: "was preempted",
    WaitingPod.State.REMOVED: "is gone",
    WaitingPod.State.BROKEN: "has lost its node, or its gang has",
}


def moment(seconds: float | None) -> str:
    """A time of day, with its zone."""
    if seconds is None:
        return "an unknown time"
    at = datetime.fromtimestamp(seconds, tz=timezone.get_current_timezone())
    return f"{at:%Y-%m-%d %H:%M:%S %Z}"


def ended(row: WaitingPod) -> str:
    """``was rejected by Coscheduling at ...: its gang was given up``."""
    by = f" by {row.resolved_by}" if row.resolved_by else ""
    at = f" at {moment(row.resolved_at)}" if row.resolved_at is not None else ""
    said = f": {row.message}" if row.message else ""
    return f"{_ENDED[WaitingPod.State(row.state)]}{by}{at}{said}"


def already(verdict: str, by: str, at: float | None, row: WaitingPod) -> str:
    """``Already approved by olga at ...``, and how the wait ended, if it did. Where the word
    decided the pod, everyone whose approval counted is named."""
    names = [given["user"] for given in row.approvals]
    if verdict == Verdict.APPROVE == row.decision_verdict and by == row.decision_user and names:
        by = _listed(names)
    end = f"; it {_ENDED[WaitingPod.State(row.state)]}" if not row.is_open else ""
    return f"Already {GIVEN[Verdict(verdict)]} by {by} at {moment(at)}{end}."


def recorded(row: WaitingPod) -> str:
    """An approval that alone is not enough."""
    missing = row.approvers_needed - len(row.approvals)
    people = "one more person has" if missing == 1 else f"{missing} more people have"
    return f"Approved, {len(row.approvals)} of {row.approvers_needed}; {people} to approve."


def taken_back(covers: Sequence[Decision]) -> str:
    """``covers``: approvals of the whole gang that count in its stead."""
    if not covers:
        return "Your approval is taken back; the scheduler applies it."
    names = _listed([word.username for word in covers])
    return f"Your approval is taken back; that of the whole gang by {names} covers the pod."


def _listed(names: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
