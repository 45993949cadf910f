"""Audit rows: who did what, when, with which comment, and what came of it.

Written in the transaction of the action itself, so that there is no action without its row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from dashboard.models import AuditEntry, SchedulerRun, WaitingPod

_TARGET_LENGTH = 600
#: The attribute of a user object that acts by an API token.
_BY = "audit_token"


def acts_by_token(user: Any, prefix: str) -> None:
    """From now on this user object acts by an API token: its rows say by which."""
    setattr(user, _BY, prefix)


def write(
    user: Any,
    verb: AuditEntry.Verb,
    target: str,
    *,
    comment: str = "",
    outcome: AuditEntry.Outcome = AuditEntry.Outcome.DONE,
    message: str = "",
    detail: Mapping[str, Any] | None = None,
    run: SchedulerRun | None = None,
    waiting_pod: WaitingPod | None = None,
) -> AuditEntry:
    """One audit row. ``user`` is a Django user, or None for the system itself. ``detail`` gets
    ``token``, the prefix of the API token by which the user acts, if any."""
    token = getattr(user, _BY, "")
    return AuditEntry.objects.create(
        at=timezone.now(),
        user=user if user is not None and user.pk else None,
        username=user.get_username() if user is not None else "",
        verb=verb,
        target=target[:_TARGET_LENGTH],
        comment=comment,
        outcome=outcome,
        message=message,
        detail={**(detail or {}), **({"token": token} if token else {})},
        run=run,
        waiting_pod=waiting_pod,
    )


def settle_config(run_id: int, version: int, refusal: str = "") -> None:
    """Say on the rows of a run's changes what the scheduler made of ``version`` and of those that
    it never saw because ``version`` followed them at once."""
    sent = AuditEntry.objects.filter(
        run=run_id, verb=AuditEntry.Verb.CHANGE_CONFIG, outcome=AuditEntry.Outcome.SENT
    )
    for entry in sent:
        changed = entry.detail.get("version", 0)
        if changed > version:
            continue
        if changed < version:
            entry.outcome = AuditEntry.Outcome.TOO_LATE
            entry.message = f"Version {version} came before it was used."
        elif refusal:
            entry.outcome, entry.message = AuditEntry.Outcome.REFUSED, refusal
        else:
            entry.outcome = AuditEntry.Outcome.APPLIED
        entry.save(update_fields=["outcome", "message"])
