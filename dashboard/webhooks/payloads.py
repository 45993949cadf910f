"""The text of a message. Its form is that of docs/webhooks.md."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import orjson

from dashboard.models import SchedulerRun, WaitingPod
from dashboard.rest import shapes
from dashboard.webhooks import gangs

#: Pods of one gang that a message names; ``pods_total`` counts all of them.
MOST_PODS: Final = 100
TEST: Final = "webhook.test"


def gang_body(
    run: SchedulerRun,
    waits: Sequence[WaitingPod],
    outcome: str,
    *,
    sequence: int,
    at: datetime,
) -> str:
    """The body that tells that a gang has come to ``outcome``.

    ``sequence`` counts the messages about this wait of the gang from 1.
    """
    first = waits[0]
    current = [row for row in waits if gangs.is_alive(row)] or list(waits)
    data: dict[str, Any] = {
        "run": shapes.run_brief(run),
        "gang": shapes.gang_brief(first),
        "namespace": first.namespace,
        "sequence": sequence,
        "outcome": outcome,
        "needs_approval": gangs.needs_approval(waits),
        "approvals_needed": max(shapes.approvals_needed(row) for row in waits),
        "approvers": _approvers(waits),
        "denied_by": _denied_by(waits),
        "requested_by": sorted({row.requested_by for row in waits if row.requested_by}),
        "deadline": shapes.moment(min(row.deadline for row in current)),
        "message": _message(waits, outcome),
        "resolved_by": _resolved_by(waits),
        "pods_total": len(waits),
        "pods": [_pod(row) for row in [*current, *(r for r in waits if r not in current)]][
            :MOST_PODS
        ],
        "links": shapes.gang_links(first) if first.pod_group else shapes.pod_links(first),
    }
    return body(gangs.event(outcome), at, data)


def test_body(at: datetime) -> str:
    """The body of a message that a person sends to try an endpoint out."""
    return body(TEST, at, {"message": "A test: this endpoint gets KubeSched's messages."})


def body(type: str, at: datetime, data: dict[str, Any]) -> str:
    return orjson.dumps({"type": type, "timestamp": shapes.iso(at), "data": data}).decode()


def _pod(row: WaitingPod) -> dict[str, Any]:
    return {
        "uid": row.uid,
        "wait": row.pk,
        "namespace": row.namespace,
        "name": row.name,
        "node": row.node,
        "priority": row.priority,
        "requests": row.requests,
        "requested_by": row.requested_by,
        "state": row.state,
        "since": shapes.moment(row.since),
        "deadline": shapes.moment(row.deadline),
        "needs_approval": row.needs_approval,
        "decision": shapes.decision(row),
    }


def _approvers(waits: Sequence[WaitingPod]) -> list[dict[str, Any]]:
    """Everyone whose approval counts, with their first word and how many pods it is for."""
    people: dict[str, dict[str, Any]] = {}
    for row in waits:
        for given in shapes.approvals(row):
            known = people.setdefault(given["user"], {**given, "pods": 0})
            known["pods"] += 1
    return sorted(people.values(), key=lambda given: (given["at"], given["user"]))


def _denied_by(waits: Sequence[WaitingPod]) -> dict[str, Any] | None:
    for row in waits:
        if row.decision_verdict == WaitingPod.Verdict.DENY:
            return shapes.decision(row)
    return None


def _message(waits: Sequence[WaitingPod], outcome: str) -> str:
    """Why it ended, in the scheduler's words; "" while it waits."""
    if outcome == gangs.WAITING:
        return ""
    late = [row for row in waits if row.state == WaitingPod.State.TIMED_OUT]
    said = late if outcome == gangs.EXPIRED and late else waits
    return next((row.message for row in reversed(said) if row.message), "")


def _resolved_by(waits: Sequence[WaitingPod]) -> str:
    return next((row.resolved_by for row in reversed(waits) if row.resolved_by), "")
