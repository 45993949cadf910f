"""What pages are sent: typed frames, the rows in them, and how frames of one topic merge.

The contract is docs/design/002. Whoever makes a frame (recorder, permits, API) makes it here, so
that a pushed frame and an answer from the database look the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypedDict, cast

import numpy as np
import orjson

from dashboard import groups
from dashboard.models import SchedulerRun, SchedulingCycle, SecondSample, WaitingPod
from scheduler_core.records import ClusterUsage, CycleRecord, QueueDepths, QueuedPod, QueueListing

#: Most cycles in one frame, and most lines of each queue.
CYCLES_PER_FRAME: Final = 50
QUEUE_LINES: Final = 100
#: Seconds of throughput and depths that a page keeps.
SECONDS_KEPT: Final = 600
WORST_NODES: Final = 12
TOTALS: Final = (
    "scheduled",
    "unschedulable",
    "error",
    "waiting",
    "skipped",
    "bound",
    "bind_failed",
)
DEPTHS: Final = ("active", "backoff", "unschedulable", "gated", "in_flight", "waiting")
QUEUES: Final = ("active", "backoff", "unschedulable", "gated")

Frame = dict[str, Any]


class CycleRow(TypedDict):
    """One line of the decisions list."""

    sequence: int
    commit_seq: int
    pod: str
    namespace: str
    name: str
    uid: str
    pod_group: str
    attempt: int
    profile: str
    priority: int
    outcome: str
    node: str
    score: int | None
    ties: int
    nodes_total: int
    nodes_feasible: int
    duration_ms: float
    started_at: float
    message: str
    plugin: str
    bound: bool | None
    has_matrix: bool


class QueueRow(TypedDict):
    """One line of the queues page."""

    pod: str
    uid: str
    position: int
    priority: int
    attempts: int
    added_at: float
    backoff_until: float | None
    plugin: str
    reason: str
    pod_group: str


class DecisionRow(TypedDict):
    """What people decided about a waiting pod; ``applied``: the scheduler knows of it."""

    verdict: str
    user: str
    at: float | None
    comment: str
    applied: bool


class WaitingRow(TypedDict):
    """One wait at Permit."""

    id: int
    uid: str
    pod: str
    namespace: str
    name: str
    node: str
    pod_group: str
    group_min_member: int
    gang_uid: str
    profile: str
    priority: int
    since: float
    deadline: float
    pending: list[dict[str, Any]]
    needs_approval: bool
    requested_by: str
    requests: dict[str, int]
    node_use: dict[str, list[int]]
    terms: dict[str, Any]
    approvals: list[dict[str, Any]]
    approvers_needed: int
    state: str
    message: str
    resolved_by: str
    resolved_at: float | None
    decision: DecisionRow | None
    cycle: int
    commit_seq: int


class LeaseRow(TypedDict):
    """Whether a worker carries the run."""

    fresh: bool
    holder: str


class RunFrame(TypedDict):
    """A run's state."""

    type: Literal["run"]
    run: int
    seq: int
    state: str
    desired_state: str
    message: str
    lease: LeaseRow
    config_version: int
    applied_config_version: int
    config_error: str


# --- rows -----------------------------------------------------------------------------------


def cycle_row(cycle: SchedulingCycle, has_matrix: bool) -> CycleRow:
    """A cycle as lists show it."""
    return {
        "sequence": cycle.sequence,
        "commit_seq": cycle.commit_seq,
        "pod": f"{cycle.namespace}/{cycle.name}",
        "namespace": cycle.namespace,
        "name": cycle.name,
        "uid": cycle.pod_uid,
        "pod_group": cycle.pod_group,
        "attempt": cycle.attempt,
        "profile": cycle.profile,
        "priority": cycle.priority,
        "outcome": str(cycle.outcome),
        "node": cycle.node,
        "score": cycle.score,
        "ties": cycle.ties,
        "nodes_total": cycle.nodes_total,
        "nodes_feasible": cycle.nodes_feasible,
        "duration_ms": round(cycle.duration * 1000, 3),
        "started_at": cycle.started_at,
        "message": cycle.message,
        "plugin": cycle.plugin,
        "bound": cycle.bound,
        "has_matrix": has_matrix,
    }


def told_row(
    record: CycleRecord, commit_seq: int, bound: bool | None, has_matrix: bool
) -> CycleRow:
    """As ``cycle_row``, of a cycle that has just been told."""
    pod = record.pod
    return {
        "sequence": record.sequence,
        "commit_seq": commit_seq,
        "pod": pod.key,
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "pod_group": record.pod_group,
        "attempt": record.attempt,
        "profile": record.profile,
        "priority": record.priority,
        "outcome": record.outcome.value,
        "node": record.node,
        "score": None if record.score is None else int(record.score),
        "ties": int(record.ties),
        "nodes_total": int(record.nodes_total),
        "nodes_feasible": int(record.nodes_feasible),
        "duration_ms": round(record.duration * 1000, 3),
        "started_at": record.started_at,
        "message": record.message.replace("\x00", "\ufffd"),
        "plugin": record.plugin,
        "bound": bound,
        "has_matrix": has_matrix,
    }


def waiting_row(row: WaitingPod) -> WaitingRow:
    """A wait as the waiting page shows it."""
    decision: DecisionRow | None = None
    if row.decision_verdict:
        decision = {
            "verdict": str(row.decision_verdict),
            "user": row.decision_user,
            "at": row.decision_at,
            "comment": row.decision_comment,
            "applied": row.decision_applied_at is not None,
        }
    return {
        "id": row.pk,
        "uid": row.uid,
        "pod": f"{row.namespace}/{row.name}",
        "namespace": row.namespace,
        "name": row.name,
        "node": row.node,
        "pod_group": row.pod_group,
        "group_min_member": row.group_min_member,
        "gang_uid": row.gang_uid,
        "profile": row.profile,
        "priority": row.priority,
        "since": row.since,
        "deadline": row.deadline,
        "pending": row.pending,
        "needs_approval": row.needs_approval,
        "requested_by": row.requested_by,
        "requests": row.requests,
        "node_use": row.node_use,
        "terms": row.terms,
        "approvals": row.approvals,
        "approvers_needed": row.approvers_needed,
        "state": str(row.state),
        "message": row.message,
        "resolved_by": row.resolved_by,
        "resolved_at": row.resolved_at,
        "decision": decision,
        "cycle": row.cycle,
        "commit_seq": row.commit_seq,
    }


def queue_row(pod: QueuedPod) -> QueueRow:
    """A queued pod as the queues page shows it."""
    return {
        "pod": pod.pod.key,
        "uid": pod.pod.uid,
        "position": pod.position,
        "priority": pod.priority,
        "attempts": pod.attempts,
        "added_at": pod.added_at,
        "backoff_until": pod.backoff_until,
        "plugin": pod.plugin,
        "reason": pod.reason,
        "pod_group": pod.pod_group,
    }


def depths_dict(depths: QueueDepths) -> dict[str, int]:
    """Depths by the name of the place."""
    return {name: int(getattr(depths, name)) for name in DEPTHS}


def throughput_point(sample: SecondSample) -> list[int]:
    """``[t, scheduled, unschedulable, error]``."""
    return [sample.second, sample.scheduled, sample.unschedulable, sample.error]


def depths_point(sample: SecondSample) -> list[int]:
    """``[t, active, backoff, unschedulable, gated, in_flight, waiting]``."""
    return [sample.second, *(getattr(sample, f"depth_{name}") for name in DEPTHS)]


def totals(run: SchedulerRun) -> dict[str, int]:
    """The run's counters."""
    return {name: getattr(run, name) for name in TOTALS}


# --- listings -------------------------------------------------------------------------------


def pack(value: object) -> bytes:
    """JSON, compressed, as listings are stored."""
    return zlib.compress(orjson.dumps(value), 1)


def unpack(blob: bytes) -> dict[str, Any]:
    """What was packed."""
    return cast(dict[str, Any], orjson.loads(zlib.decompress(blob)))


def listing_dict(listing: QueueListing) -> dict[str, Any]:
    """A whole queue listing: ``at, depths`` and every line of each place."""
    answer: dict[str, Any] = {"at": listing.at, "depths": depths_dict(listing.depths)}
    for name in QUEUES:
        answer[name] = [queue_row(pod) for pod in getattr(listing, name)]
    return answer


def usage_dict(usage: ClusterUsage) -> dict[str, Any]:
    """Node usage in short: sums, ten bins per resource, and the twelve fullest nodes.

    A node's fraction of a resource it does not have is 0, and the bins leave that node out.
    """
    has = usage.allocatable > 0
    fractions = np.divide(
        usage.requested, usage.allocatable, out=np.zeros(usage.requested.shape), where=has
    )
    bins = np.clip((fractions * 10).astype(np.int64), 0, 9)
    fullest = fractions.max(axis=1, initial=0.0)
    worst = np.argsort(-fullest, kind="stable")[:WORST_NODES]
    return {
        "at": usage.at,
        "resources": list(usage.resources),
        "nodes": len(usage.node_names),
        "allocatable": usage.allocatable.sum(axis=0).tolist(),
        "requested": usage.requested.sum(axis=0).tolist(),
        "histogram": {
            name: np.bincount(bins[has[:, i], i], minlength=10).tolist()
            for i, name in enumerate(usage.resources)
        },
        "worst": [
            {
                "node": usage.node_names[i],
                "fractions": [round(float(value), 4) for value in fractions[i]],
                "pods": int(usage.pods[i]),
                "allowed_pods": int(usage.allowed_pods[i]),
            }
            for i in worst
        ],
    }


# --- frames ---------------------------------------------------------------------------------


def overview_frame(
    run: SchedulerRun,
    since: int,
    samples: Sequence[SecondSample],
    usage: Mapping[str, Any] | None,
    queued: int,
) -> Frame:
    """The overview after a commit; ``samples`` are the seconds that changed, oldest first."""
    return {
        "type": groups.OVERVIEW,
        "run": run.pk,
        "from": since,
        "seq": run.commit_seq,
        "state": str(run.state),
        "throughput": [throughput_point(sample) for sample in samples],
        "depths": [depths_point(sample) for sample in samples],
        "totals": totals(run),
        "usage": usage,
        "recorder": {
            "queued": queued,
            "matrices_dropped": run.matrices_dropped,
            "rows_refused": run.rows_refused,
            "back_pressure_seconds": round(run.back_pressure_seconds, 3),
        },
    }


def cycles_frame(run_id: int, since: int, seq: int, rows: Sequence[CycleRow]) -> Frame:
    """The newest of the given rows, newest last, and how many did not fit."""
    newest = sorted(rows, key=lambda row: row["sequence"])[-CYCLES_PER_FRAME:]
    return {
        "type": groups.CYCLES,
        "run": run_id,
        "from": since,
        "seq": seq,
        "cycles": newest,
        "skipped": len(rows) - len(newest),
    }


def queues_frame(run_id: int, seq: int, listing: Mapping[str, Any]) -> Frame:
    """The first lines of each place of the queue."""
    frame: Frame = {"type": groups.QUEUES, "run": run_id, "seq": seq}
    frame["at"], frame["depths"] = listing["at"], listing["depths"]
    for name in QUEUES:
        frame[name] = listing[name][:QUEUE_LINES]
    return frame


def empty_listing(at: float) -> dict[str, Any]:
    """The queue of a run that has told nothing yet."""
    return {"at": at, "depths": depths_dict(QueueDepths()), **{name: [] for name in QUEUES}}


def waiting_frame(
    run_id: int, since: int, seq: int, now: float, rows: Iterable[WaitingPod]
) -> Frame:
    """Waits that changed, ended ones included."""
    return {
        "type": groups.WAITING,
        "run": run_id,
        "from": since,
        "seq": seq,
        "now": now,
        "pods": [waiting_row(row) for row in rows],
    }


def run_frame(run: SchedulerRun, fresh: bool, holder: str) -> RunFrame:
    """The run's state, wished and real."""
    return {
        "type": "run",
        "run": run.pk,
        "seq": run.commit_seq,
        "state": str(run.state),
        "desired_state": str(run.desired_state),
        "message": run.message,
        "lease": {"fresh": fresh, "holder": holder},
        "config_version": run.config_version,
        "applied_config_version": run.applied_config_version,
        "config_error": run.config_error,
    }
