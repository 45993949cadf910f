"""Turns a finished PodCycle into the records that observers get."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from scheduler_core.api import Pod, PodGroup, assigned_requests
from scheduler_core.framework.interface import Informer
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.runtime.scoring import NodePluginScores
from scheduler_core.framework.status import Code
from scheduler_core.pod_cycle import PodCycle
from scheduler_core.records import (
    BindingRecord,
    CycleRecord,
    NodeScores,
    PendingPlugin,
    QueueDepths,
    Rejection,
    ScoreMatrix,
    WaitingPodRecord,
)

#: How many of the best nodes a CycleRecord carries.
BEST_NODES = 20

#: An extender may drop a node without a word.
NO_REASON = "no reason given"

MANUAL_APPROVAL = "ManualApproval"
REQUESTED_BY = "kubesched.io/requested-by"


def cycle_record(cycle: PodCycle, depths: QueueDepths) -> CycleRecord:
    """The CycleRecord of an attempt whose scheduling cycle has just ended."""
    result = cycle.result
    plugins = cycle.fit_error.diagnosis.unschedulable_plugins if cycle.fit_error else set()
    timings = cycle.timings
    return CycleRecord(
        sequence=cycle.sequence,
        pod=cycle.ref,
        attempt=cycle.info.attempts,
        profile=cycle.framework.profile_name,
        priority=cycle.pod.priority,
        outcome=cycle.outcome,
        started_at=cycle.started_at,
        duration=perf_counter() - cycle.started,
        node=cycle.node_name,
        score=result.best_total if result else None,
        ties=result.ties if result else 0,
        nominated_node=cycle.nominating.node_name,
        victims=cycle.victims,
        message=cycle.message,
        plugin=cycle.status.plugin,
        nodes_total=len(result.nodes) if result else 0,
        nodes_evaluated=result.evaluated if result else 0,
        nodes_feasible=len(result.feasible) if result else 0,
        point_seconds=dict(timings.points),
        plugin_seconds=dict(timings.plugins),
        rejections=rejections(cycle),
        best=best_nodes(cycle),
        unschedulable_plugins=tuple(sorted(plugins)),
        pod_group=cycle.pod.pod_group_key,
        matrix=score_matrix(cycle),
        depths=depths,
    )


def rejections(cycle: PodCycle) -> tuple[Rejection, ...]:
    """Nodes per plugin and reason, most nodes first."""
    result = cycle.result
    if result is None:
        return ()
    if result.statuses is None:
        if not result.status.is_rejected or not len(result.nodes):
            return ()
        status = result.status
        resolvable = status.code is Code.UNSCHEDULABLE
        return (Rejection(status.plugin, status.message, len(result.nodes), resolvable),)
    counts: dict[tuple[str, str, bool], int] = {}
    for status, count in result.statuses.counts():
        resolvable = status.code is Code.UNSCHEDULABLE
        for reason in status.reasons or (NO_REASON,):
            key = (status.plugin, reason, resolvable)
            counts[key] = counts.get(key, 0) + count
    rows = [Rejection(plugin, reason, n, can) for (plugin, reason, can), n in counts.items()]
    return tuple(sorted(rows, key=lambda r: (-r.nodes, r.plugin, r.reason)))


def best_nodes(cycle: PodCycle) -> tuple[NodeScores, ...]:
    """The best nodes, highest total first; among equals the chosen one, then snapshot order."""
    result = cycle.result
    if result is None or result.scores is None:
        return ()
    total, names = result.scores.total, result.nodes.names
    keep = min(BEST_NODES, len(total))
    order = _largest(total, keep)
    best = [_node_scores(result.scores, int(i), names[int(result.feasible[i])]) for i in order]
    return tuple(sorted(best, key=lambda s: (-s.total, s.node != result.node_name)))


def _largest(total: np.ndarray, keep: int) -> np.ndarray:
    if len(total) > keep:
        candidates = np.argpartition(-total, keep - 1)[:keep]
    else:
        candidates = np.arange(len(total))
    return candidates[np.argsort(-total[candidates], kind="stable")]


def _node_scores(scores: NodePluginScores, column: int, node: str) -> NodeScores:
    plugins = {
        name: (
            int(scores.raw[i, column]),
            int(scores.normalized[i, column]),
            scores.weighted(i, column),
        )
        for i, name in enumerate(scores.plugins)
    }
    return NodeScores(node, int(scores.total[column]), plugins)


def score_matrix(cycle: PodCycle) -> ScoreMatrix | None:
    """Every node of the cycle; None where no node was looked at."""
    result = cycle.result
    if result is None or not len(result.nodes):
        return None
    n = len(result.nodes)
    scores = result.scores
    p = len(scores.plugins) if scores is not None else 0
    raw = np.zeros((p, n), dtype=np.int64)
    normalized = np.full((p, n), -1, dtype=np.int8)
    total = np.full(n, -1, dtype=np.int64)
    if scores is not None:
        rows = result.feasible
        raw[:, rows] = scores.raw
        normalized[:, rows] = scores.normalized
        total[rows] = scores.total
    rejection, reasons = _rejection_ids(cycle, n)
    return ScoreMatrix(
        node_names=tuple(result.nodes.names),
        plugins=scores.plugins if scores is not None else (),
        weights=scores.weights if scores is not None else np.zeros(0, dtype=np.int64),
        raw=raw,
        normalized=normalized,
        total=total,
        rejection=rejection,
        reasons=reasons,
        scored=scores is not None,
    )


def _rejection_ids(cycle: PodCycle, n: int) -> tuple[np.ndarray, tuple[tuple[str, str, str], ...]]:
    """int32 (n,): index of the reason, -1 feasible, -2 not evaluated; and the reasons."""
    result = cycle.result
    assert result is not None
    if result.statuses is None:
        status = result.status
        if status.is_success:
            return np.full(n, -1, dtype=np.int32), ()
        reason = (status.plugin, status.message, status.code.label)
        return np.zeros(n, dtype=np.int32), (reason,)
    ids = result.statuses.ids
    table = result.statuses.table
    absent = result.statuses.absent_status
    reasons = [(s.plugin, ", ".join(s.reasons) or NO_REASON, s.code.label) for s in table[1:]]
    rejection = ids - 1
    if absent.reasons:
        reasons.append((absent.plugin, ", ".join(absent.reasons), absent.code.label))
        rejection = np.where(ids == NodeStatuses.ABSENT, len(reasons) - 1, rejection)
    return rejection.astype(np.int32), tuple(reasons)


def waiting_record(cycle: PodCycle, pod_groups: Informer) -> WaitingPodRecord:
    """The state of a pod that waits, or waited, at Permit."""
    waiting = cycle.waiting
    assert waiting is not None
    pod = waiting.pod
    group: PodGroup | None = pod_groups.get(pod.pod_group_key) if pod.pod_group_key else None
    pending = tuple(PendingPlugin(w.plugin, w.deadline, w.reason) for w in waiting.waits)
    ended = waiting.status is not None
    return WaitingPodRecord(
        cycle=cycle.sequence,
        pod=cycle.ref,
        node=waiting.node_name,
        profile=cycle.framework.profile_name,
        priority=pod.priority,
        since=cycle.waiting_since,
        deadline=waiting.first_deadline,
        pending=() if ended else pending,
        pod_group=pod.pod_group_key,
        group_min_member=group.min_member if group is not None else 0,
        needs_approval=MANUAL_APPROVAL in waiting.asked_plugins,
        requested_by=_requester(pod, group),
        requests=dict(assigned_requests(pod)),
        outcome=waiting.outcome,
        message=waiting.status.message if waiting.status is not None else "",
        resolved_by=waiting.resolved_by,
        resolved_at=waiting.resolved_at,
    )


def _requester(pod: Pod, group: PodGroup | None) -> str:
    """A gang asks as a whole: its PodGroup speaks for members that name nobody."""
    own = pod.annotations.get(REQUESTED_BY, "")
    return own or (group.annotations.get(REQUESTED_BY, "") if group is not None else "")


def binding_record(
    cycle: PodCycle, bound: bool, message: str, plugin: str, finished_at: float
) -> BindingRecord:
    """The end of a binding cycle."""
    return BindingRecord(
        cycle=cycle.sequence,
        pod=cycle.ref,
        node=cycle.node_name,
        bound=bound,
        finished_at=finished_at,
        duration=perf_counter() - cycle.binding_started,
        message=message,
        plugin=plugin,
        point_seconds=dict(cycle.binding_timings.points),
    )
