"""What a person sees before deciding: the pod and its gang, the nodes they hold, who else wants the
room, who has approved so far, and how much time is left. Docs: docs/approvals.md."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from dashboard import commits, frames
from dashboard.models import RunListing, SchedulerRun, WaitingPod
from dashboard.permits_models import Decision, GangApproval
from dashboard.permits_rules import Actor, asks_for_own
from scheduler_core.plugins.noderesources.fit import TOO_MANY_PODS

#: Most others that are named; the counts are of all.
MOST_RIVALS: Final = 20
#: Who turns a pod down for want of room.
_ROOM: Final = ("NodeResourcesFit",)
_WAITING_QUEUES: Final = ("active", "backoff", "unschedulable")


def detail(run: SchedulerRun, pk: int, user: Any) -> dict[str, Any]:
    """One wait, and what there is to know before deciding on it.

    Raises:
        WaitingPod.DoesNotExist: there is no such wait in this run.
    """
    row = WaitingPod.objects.get(run=run, pk=pk)
    now = commits.run_clock(run.pk)
    members = [row]
    if row.pod_group and row.is_open:
        same = _open(run).filter(pod_group=row.pod_group, gang_uid=row.gang_uid)
        members = list(same.order_by("since", "pk"))
    beside = _beside(run, members)
    return {
        **frames.waiting_row(row),
        "run": run.pk,
        "seq": run.commit_seq,
        "now": now,
        "seconds_left": max(0.0, row.deadline - now) if row.is_open else 0.0,
        "may": _may(row, user),
        "said": [_word(said) for said in Decision.objects.filter(waiting_pod=row)],
        "gang": _gang(row.gang, members, _standing(run, [row.gang])) if row.pod_group else None,
        "nodes": _nodes(members, beside),
        "rivals": rivals(run, members, beside),
    }


def gangs(run: SchedulerRun, pod_group: str = "", gang_uid: str = "") -> dict[str, Any]:
    """Every gang that waits, or those of a name, or one of them: what it holds, where, and since
    when; the longest wait first."""
    rows = _open(run).exclude(pod_group="")
    if pod_group:
        rows = rows.filter(pod_group=pod_group)
    if gang_uid:
        rows = rows.filter(gang_uid=gang_uid)
    members: dict[tuple[str, str], list[WaitingPod]] = {}
    for row in rows.order_by("since", "pk"):
        members.setdefault(row.gang, []).append(row)
    standing = _standing(run, list(members))
    return {
        "run": run.pk,
        "seq": run.commit_seq,
        "now": commits.run_clock(run.pk),
        "gangs": [_gang(gang, found, standing) for gang, found in members.items()],
    }


def _beside(run: SchedulerRun, members: Sequence[WaitingPod]) -> list[WaitingPod]:
    """Others that wait on the same nodes, the longest wait first."""
    nodes = {row.node for row in members}
    own = {row.pk for row in members}
    there = _open(run).filter(node__in=nodes).order_by("since", "pk")
    return [row for row in there if row.pk not in own]


def rivals(
    run: SchedulerRun, members: Sequence[WaitingPod], waiting: Sequence[WaitingPod]
) -> dict[str, Any]:
    """Who else wants the room: pods of others that wait on the same nodes, and pods in the queue
    that fit nowhere for want of a resource that ``members`` hold (as of the latest listing)."""
    queued = _queued_for_room(run, {name for row in members for name in row.requests})
    return {
        "waiting_total": len(waiting),
        "waiting": [
            {
                "id": row.pk,
                "pod": f"{row.namespace}/{row.name}",
                "pod_group": row.pod_group,
                "gang_uid": row.gang_uid,
                "node": row.node,
                "priority": row.priority,
                "since": row.since,
                "requests": row.requests,
            }
            for row in waiting[:MOST_RIVALS]
        ],
        "queued_total": len(queued),
        "queued": queued[:MOST_RIVALS],
    }


def _open(run: SchedulerRun) -> Any:
    return WaitingPod.objects.filter(run=run, state__in=WaitingPod.OPEN)


def _may(row: WaitingPod, user: Any) -> dict[str, Any]:
    """What this person may do, and why not."""
    actor = Actor(user)
    refusal = actor.refusal(row)
    own = asks_for_own(row, actor.name)
    given = any(item["user"] == actor.name for item in row.approvals)
    why = refusal or ("You asked for this pod yourself." if own else "")
    return {
        "approve": row.is_open and row.needs_approval and not why and not given,
        "deny": row.is_open and not refusal,
        "revoke": row.is_open and not refusal and given,
        "why": why,
    }


def _word(said: Decision) -> dict[str, Any]:
    return {
        "verdict": str(said.verdict),
        "user": said.username,
        "at": said.at,
        "comment": said.comment,
        "gang": said.gang,
        "applied": said.applied,
        "message": said.message,
    }


def _standing(
    run: SchedulerRun, gangs: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], list[dict[str, Any]]]:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    names = {name for name, _ in gangs}
    rows = GangApproval.objects.filter(
        run=run, state=GangApproval.State.STANDING, pod_group__in=names
    )
    for row in rows.order_by("pk"):
        said = {"user": row.username, "at": row.at, "comment": row.comment}
        found.setdefault((row.pod_group, row.gang_uid), []).append(said)
    return found


def _gang(
    gang: tuple[str, str],
    members: Sequence[WaitingPod],
    standing: dict[tuple[str, str], list[dict[str, Any]]],
) -> dict[str, Any]:
    name, uid = gang
    return {
        "pod_group": name,
        "uid": uid,
        "min_member": max((row.group_min_member for row in members), default=0),
        "members": len(members),
        "approved": sum(row.decision_verdict == WaitingPod.Verdict.APPROVE for row in members),
        "approvers_needed": max((row.approvers_needed for row in members), default=1),
        "standing": standing.get(gang, []),
        "priority": max((row.priority for row in members), default=0),
        "since": min((row.since for row in members), default=0.0),
        "deadline": min((row.deadline for row in members), default=0.0),
        "requested_by": sorted({row.requested_by for row in members if row.requested_by}),
        "waits_for": sorted({item["plugin"] for row in members for item in row.pending}),
        "requests": _sum(row.requests for row in members),
        "nodes": _nodes(members),
    }


def _nodes(
    members: Sequence[WaitingPod], beside: Sequence[WaitingPod] = ()
) -> list[dict[str, Any]]:
    """The nodes that are held, with their usage without and with these pods: ``use`` is
    ``{resource: [allocatable, before, after]}`` as of when the last pod was parked there, one of
    these or one ``beside`` them."""
    by_node: dict[str, list[WaitingPod]] = {}
    for row in members:
        by_node.setdefault(row.node, []).append(row)
    others: dict[str, list[WaitingPod]] = {}
    for row in beside:
        others.setdefault(row.node, []).append(row)
    answer = []
    for node, rows in sorted(by_node.items()):
        asked = _sum(row.requests for row in rows)
        latest = max(rows, key=lambda row: (row.since, row.pk))
        seen = {name: use for row in others.get(node, ()) for name, use in _newer(row, latest)}
        use = {
            name: [allocatable, max(0, after - asked.get(name, 0)), after]
            for name, (allocatable, _, after) in (latest.node_use | seen).items()
        }
        answer.append(
            {
                "node": node,
                "pods": len(rows),
                "since": min(row.since for row in rows),
                "at": latest.since,
                "requests": asked,
                "use": use,
            }
        )
    return answer


def _newer(row: WaitingPod, latest: WaitingPod) -> Iterable[tuple[str, list[int]]]:
    """What a pod that was parked after ``latest`` found of the resources that both ask for."""
    if row.since <= latest.since:
        return ()
    return [(name, use) for name, use in row.node_use.items() if name in latest.node_use]


def _sum(parts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def _queued_for_room(run: SchedulerRun, held: Collection[str]) -> list[dict[str, Any]]:
    """``held``: names of resources."""
    blob = (
        RunListing.objects.filter(run=run, topic=RunListing.Topic.QUEUES)
        .values_list("blob", flat=True)
        .first()
    )
    if blob is None:
        return []
    listing = frames.unpack(bytes(blob))
    return [
        {key: pod[key] for key in ("pod", "uid", "pod_group", "priority", "reason")}
        for queue in _WAITING_QUEUES
        for pod in listing[queue]
        if pod["plugin"] in _ROOM and _is_lacking(pod["reason"], held)
    ]


def _is_lacking(reason: str, held: Collection[str]) -> bool:
    """Whether most nodes want for one of these, in NodeResourcesFit's words (``QueuedPod.reason``
    is the dominant one). Every pod holds a pod's place."""
    return reason == TOO_MANY_PODS or reason.removeprefix("Insufficient ") in held
