"""A wait as a row, and the row as a wait again."""

from __future__ import annotations

from typing import Any

from dashboard.columns import text
from dashboard.models import WaitingPod
from scheduler_core.records import (
    ApprovalTerms,
    NodeUse,
    PendingPlugin,
    PodRef,
    Verdict,
    WaitingPodRecord,
)


def fill_waiting(row: WaitingPod, record: WaitingPodRecord) -> None:
    row.namespace, row.name = record.pod.namespace, record.pod.name
    row.node, row.profile, row.priority = record.node, record.profile, record.priority
    row.pod_group, row.group_min_member = record.pod_group, record.group_min_member
    row.since, row.deadline, row.cycle = record.since, record.deadline, record.cycle
    row.needs_approval = record.needs_approval
    # A wait belongs to the gang with which it began, also when the PodGroup has gone meanwhile.
    row.gang_uid = record.gang_uid or row.gang_uid
    row.terms = terms_json(record.terms)
    row.node_use = {
        name: [int(use.allocatable), int(use.before), int(use.after)]
        for name, use in record.node_use.items()
    }
    row.requested_by = text(record.requested_by, 253)
    row.requests = {name: int(amount) for name, amount in record.requests.items()}
    row.pending = [
        {"plugin": item.plugin, "deadline": item.deadline, "reason": text(item.reason)}
        for item in record.pending
    ]


def waiting_record(row: WaitingPod) -> WaitingPodRecord:
    """The wait as a scheduler takes it up again; the reverse of ``fill_waiting``."""
    return WaitingPodRecord(
        cycle=row.cycle,
        pod=PodRef(row.uid, row.namespace, row.name),
        node=row.node,
        profile=row.profile,
        priority=row.priority,
        since=row.since,
        deadline=row.deadline,
        pending=tuple(
            PendingPlugin(p["plugin"], p["deadline"], p.get("reason", "")) for p in row.pending
        ),
        pod_group=row.pod_group,
        group_min_member=row.group_min_member,
        needs_approval=row.needs_approval,
        requested_by=row.requested_by,
        requests=dict(row.requests),
        gang_uid=row.gang_uid,
        terms=_terms(row.terms),
        approved_by=tuple(item["user"] for item in row.approvals),
        node_use={name: NodeUse(*use) for name, use in row.node_use.items()},
        message=row.message,
        resolved_by=row.resolved_by,
        resolved_at=row.resolved_at,
        let_go=row.unbound,
    )


def terms_json(terms: ApprovalTerms | None) -> dict[str, Any]:
    """``{}`` where nobody has to approve."""
    if terms is None:
        return {}
    return {
        "policy": text(terms.policy, 253),
        "reason": text(terms.reason),
        "approvers": terms.approvers,
        "requester_may_approve": terms.requester_may_approve,
        "groups": [text(name) for name in terms.groups],
        "at_deadline": terms.at_deadline.value,
    }


def _terms(stored: dict[str, Any]) -> ApprovalTerms | None:
    if not stored:
        return None
    return ApprovalTerms(
        policy=stored["policy"],
        reason=stored["reason"],
        approvers=stored["approvers"],
        requester_may_approve=stored["requester_may_approve"],
        groups=tuple(stored["groups"]),
        at_deadline=Verdict(stored["at_deadline"]),
    )
