"""Turns a wait at Permit into the record that observers get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from scheduler_core.api import KubeObject, Pod, assigned_requests
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.runtime.waiting_pods import WaitingPod
from scheduler_core.plugins.helpers.gangs import GangDirectory, GangId
from scheduler_core.plugins.manual_approval import REQUESTED_BY, ManualApproval
from scheduler_core.pod_cycle import PodCycle
from scheduler_core.records import (
    NodeUse,
    PendingPlugin,
    Rest,
    Verdict,
    WaitingPodRecord,
    WaitOutcome,
)

MANUAL_APPROVAL: Final = ManualApproval.name
GONE: Final = "the pod was deleted"


@dataclass(slots=True, eq=False)
class Parked:
    """One pod that waits: its cycle, its gang, and what people have said of it.

    Attributes:
        gang: None where the pod names none, or its PodGroup does not exist.
        gang_uid: uid of that PodGroup, or "". A wait belongs to the gang with which it began.
        approved_by: users whose approvals count, in the order in which they came.
        node_use: the resources that the pod asks for, on its node.
        note: why it was let go without a person, for people to read.
        told_deadline: the one that observers were told last.
        let_go_before: its wait, where it was let go before and is on its way again. By when, when,
            by whom and under which terms that was stays, whatever the configuration says by now.
        rest: it was turned down, and does not ask again for so long.
    """

    cycle: PodCycle
    waiting: WaitingPod
    gang: GangId | None
    gang_uid: str = ""
    approved_by: list[str] = field(default_factory=list)
    node_use: Mapping[str, NodeUse] = field(default_factory=dict)
    note: str = ""
    told_deadline: float = float("inf")
    let_go_before: WaitingPodRecord | None = None
    rest: Rest | None = None

    @property
    def uid(self) -> str:
        return self.waiting.pod.uid

    @property
    def asks(self) -> bool:
        """A person still has to be heard, or the rest of the gang has."""
        return MANUAL_APPROVAL in self.waiting.pending_plugins

    @property
    def is_approved_by_time(self) -> bool:
        """Its terms let it go where nobody has decided by its deadline."""
        terms = self.waiting.terms
        return terms is not None and terms.at_deadline is Verdict.APPROVE


def waiting_record(parked: Parked, gangs: GangDirectory) -> WaitingPodRecord:
    """The state of a pod that waits, or waited, at Permit."""
    cycle, waiting, pod = parked.cycle, parked.waiting, parked.waiting.pod
    before = parked.let_go_before
    named = gangs.gang_of(pod)
    group = gangs.group(named) if named is not None else None
    pending = tuple(PendingPlugin(w.plugin, w.deadline, w.reason) for w in waiting.waits)
    ended = waiting.status is not None
    return WaitingPodRecord(
        cycle=cycle.sequence,
        pod=cycle.ref,
        node=waiting.node_name,
        profile=cycle.framework.profile_name,
        priority=pod.priority,
        since=cycle.waiting_since,
        deadline=before.deadline if before is not None else waiting.first_deadline,
        pending=() if ended else pending,
        pod_group=named.key if named is not None else "",
        group_min_member=gangs.min_member(named) if named is not None else 0,
        needs_approval=MANUAL_APPROVAL in waiting.asked_plugins,
        requested_by=requester(pod, group),
        requests=dict(assigned_requests(pod)),
        outcome=waiting.outcome,
        message=_message(parked),
        resolved_by=waiting.resolved_by,
        resolved_at=waiting.resolved_at,
        gang_uid=parked.gang_uid,
        terms=(before.terms if before is not None else None) or waiting.terms,
        approved_by=tuple(parked.approved_by),
        node_use=parked.node_use,
        let_go=waiting.outcome is WaitOutcome.ALLOWED,
        rest=parked.rest,
    )


def _message(parked: Parked) -> str:
    """Why the wait ended, for people to read."""
    status, outcome = parked.waiting.status, parked.waiting.outcome
    if status is None:
        return ""
    if outcome is WaitOutcome.REMOVED and status.message == "removed":
        return GONE  # the framework's own word for it is "removed"
    return status.message or parked.note


def ended(
    record: WaitingPodRecord,
    outcome: WaitOutcome,
    message: str,
    now: float,
    rest: Rest | None = None,
) -> WaitingPodRecord:
    """A wait that ended otherwise than by its WaitingPod. Who let it go, and when, stays."""
    stays = record.let_go and outcome is WaitOutcome.ALLOWED
    at = record.resolved_at if stays else None
    return replace(
        record,
        outcome=outcome,
        message=message,
        pending=(),
        resolved_by=record.resolved_by if stays else "",
        resolved_at=now if at is None else at,
        let_go=False,
        rest=rest,
    )


def bound_by_another(pod: Pod) -> str:
    """Nobody here let it go: it was bound by hand, or by another scheduler."""
    return f"bound by another to {pod.node_name}"


def requester(pod: Pod, group: KubeObject | None) -> str:
    """A gang asks as a whole: its PodGroup speaks for members that name nobody."""
    own = pod.annotations.get(REQUESTED_BY, "")
    return own or (group.annotations.get(REQUESTED_BY, "") if group is not None else "")


def node_use(pod: Pod, node: NodeInfo | None) -> dict[str, NodeUse]:
    """What the node has of each resource that the pod asks for; ``node`` is without the pod."""
    if node is None:
        return {}
    use = {}
    for name, amount in assigned_requests(pod).items():
        before = node.requested.get(name, 0)
        use[name] = NodeUse(node.allocatable.get(name, 0), before, before + amount)
    return use
