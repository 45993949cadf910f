"""What a gang's waits come to: one word for the whole gang.

No I/O. ``waits`` are the rows of one wait of one gang, of all its pods so far, ended ones too; a
pod without a gang is a gang of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dashboard.models import WaitingPod
from dashboard.webhooks.models import WebhookEndpoint

WAITING: Final = "waiting"
APPROVED: Final = "approved"
DENIED: Final = "denied"
ALLOWED: Final = "allowed"
EXPIRED: Final = "expired"

_State = WaitingPod.State
_Verdict = WaitingPod.Verdict
_Event = WebhookEndpoint.Event


def key(row: WaitingPod) -> str:
    """What rows of the same gang have in common, within a run."""
    return row.pod_group or f"pod:{row.uid}"


def outcome(waits: Sequence[WaitingPod]) -> str:
    """``waiting``, ``approved`` (people or a policy), ``denied`` (a person), ``allowed`` (nobody
    was asked), ``expired``, or the state that ended it: ``rejected``, ``preempted``, ``removed``,
    ``broken``."""
    if any(row.decision_verdict == _Verdict.DENY for row in waits):
        return DENIED
    if any(row.state == _State.BROKEN for row in waits):
        return str(_State.BROKEN)
    if any(is_alive(row) for row in waits):
        return APPROVED if _all_approved(waits) else WAITING
    if any(row.state == _State.TIMED_OUT for row in waits):
        return EXPIRED
    allowed = sum(row.state == _State.ALLOWED for row in waits)
    if allowed and allowed >= waits[0].group_min_member:
        return APPROVED if needs_approval(waits) else ALLOWED
    ended = [row for row in waits if row.state != _State.ALLOWED] or waits
    return str(max(ended, key=lambda row: (row.resolved_at or 0.0, row.pk)).state)


def event(outcome: str) -> str:
    """The event that tells of an outcome."""
    if outcome == WAITING:
        return _Event.WAITING
    return _Event.EXPIRED if outcome == EXPIRED else _Event.DECIDED


def is_alive(row: WaitingPod) -> bool:
    """It waits, or was let go by a person and is not bound yet: it can still come to grief."""
    return row.is_open or row.unbound


def needs_approval(waits: Sequence[WaitingPod]) -> bool:
    return any(row.needs_approval for row in waits)


def _all_approved(waits: Sequence[WaitingPod]) -> bool:
    """Everyone who is asked for has been approved, and nobody is still to come who is not."""
    members = [row for row in waits if is_alive(row) or row.state == _State.ALLOWED]
    asked = [row for row in members if row.needs_approval]
    if not asked or any(row.decision_verdict != _Verdict.APPROVE for row in asked):
        return False
    as_gang = any(given.get("gang") for row in asked for given in row.approvals)
    return as_gang or len(members) >= waits[0].group_min_member
