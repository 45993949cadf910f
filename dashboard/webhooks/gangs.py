"""What a gang's waits come to: one word for the whole gang.

No I/O. ``waits`` are the rows of one wait of one gang, of all its pods so far, ended ones too; a
pod without a gang is a gang of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


#: Plugins that have a member wait for the others of its gang. (They are named here so that a
#: process that only sends need not load the scheduler; a test compares.)
QUORUM_PLUGINS: Final = frozenset({"Coscheduling", "GangScheduling"})
#: How a gang can end before its quorum waited, and be news all the same.
_NEWS_ANYWAY: Final = frozenset({APPROVED, DENIED, EXPIRED, str(_State.BROKEN)})


def key(row: WaitingPod) -> str:
    """What rows of the same gang have in common, within a run. By uid, where it is known: two gangs
    may share a name."""
    if not row.pod_group:
        return f"pod:{row.uid}"
    return f"gang:{row.gang_uid}" if row.gang_uid else row.pod_group


def one_by_one(rows: Sequence[WaitingPod]) -> Iterator[list[WaitingPod]]:
    """The waits of one gang in their order; ``rows`` of all of them, oldest first.

    The next begins with the first row that began after all before it had ended, unless they were
    all let go: a member that comes then joins them. (They may be bound or not: not to be told apart
    afterwards.)
    """
    waits: list[WaitingPod] = []
    for row in rows:
        if waits and _is_over(waits, row.since):
            yield waits
            waits = []
        waits.append(row)
    if waits:
        yield waits


def _is_over(waits: Sequence[WaitingPod], at: float) -> bool:
    if any(is_alive(row) or (row.resolved_at or 0.0) > at for row in waits):
        return False
    return any(row.state != _State.ALLOWED for row in waits)


def quorum_waits(changed: Sequence[WaitingPod]) -> bool:
    """Whether one of these members need not wait for the others any more: then none of its gang
    does. A pod without a gang never does."""
    return any(
        is_alive(row) and not any(item["plugin"] in QUORUM_PLUGINS for item in row.pending)
        for row in changed
    )


def is_news(outcome: str, told: str, quorum: bool) -> bool:
    """Whether there is something to tell of a gang of which ``told`` was the last that was told, ""
    for nothing yet. That it waits is told once its quorum does. One that is given up before, as
    happens to a gang without room again and again, is no news; what people have said is, and that
    its time is over."""
    if outcome == told:
        return False
    if told:
        return True
    return quorum if outcome == WAITING else quorum or outcome in _NEWS_ANYWAY


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
