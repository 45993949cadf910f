"""What a scheduler's records look like as columns: text made safe, numbers made plain."""

from __future__ import annotations

from typing import Any

from dashboard import frames
from dashboard.models import SchedulingCycle, WaitingPod
from scheduler_core.records import BindingRecord, CycleRecord, WaitingPodRecord


def cycle_columns(
    run_id: int, commit_seq: int, record: CycleRecord, dropped: bool
) -> SchedulingCycle:
    return SchedulingCycle(
        run_id=run_id,
        sequence=record.sequence,
        commit_seq=commit_seq,
        pod_uid=record.pod.uid,
        namespace=record.pod.namespace,
        name=record.pod.name,
        pod_group=record.pod_group,
        attempt=record.attempt,
        profile=record.profile,
        priority=record.priority,
        outcome=record.outcome.value,
        node=record.node,
        score=None if record.score is None else int(record.score),
        ties=int(record.ties),
        nodes_total=int(record.nodes_total),
        nodes_evaluated=int(record.nodes_evaluated),
        nodes_feasible=int(record.nodes_feasible),
        started_at=record.started_at,
        duration=record.duration,
        message=text(record.message),
        plugin=text(record.plugin, 253),
        matrix_dropped=dropped,
        has_nodes=dropped or record.matrix is not None,
        detail=_detail(record),
    )


def _detail(record: CycleRecord) -> dict[str, Any]:
    return {
        "point_seconds": {point: float(s) for point, s in record.point_seconds.items()},
        "plugin_seconds": [
            [point, plugin, float(s)] for (point, plugin), s in record.plugin_seconds.items()
        ],
        "rejections": [
            {
                "plugin": item.plugin,
                "reason": text(item.reason),
                "nodes": int(item.nodes),
                "resolvable": bool(item.resolvable),
            }
            for item in record.rejections
        ],
        "best": [
            {
                "node": item.node,
                "total": int(item.total),
                "plugins": {
                    name: [int(value) for value in values] for name, values in item.plugins.items()
                },
            }
            for item in record.best
        ],
        "unschedulable_plugins": list(record.unschedulable_plugins),
        "nominated_node": record.nominated_node,
        "victims": list(record.victims),
        "depths": frames.depths_dict(record.depths),
    }


def binding_columns(end: BindingRecord) -> dict[str, Any]:
    return {
        "node": end.node,
        "bound": end.bound,
        "finished_at": end.finished_at,
        "duration": end.duration,
        "message": text(end.message),
        "plugin": end.plugin,
        "point_seconds": {point: float(s) for point, s in end.point_seconds.items()},
    }


def fill_waiting(row: WaitingPod, record: WaitingPodRecord) -> None:
    row.namespace, row.name = record.pod.namespace, record.pod.name
    row.node, row.profile, row.priority = record.node, record.profile, record.priority
    row.pod_group, row.group_min_member = record.pod_group, record.group_min_member
    row.since, row.deadline, row.cycle = record.since, record.deadline, record.cycle
    row.needs_approval = record.needs_approval
    row.requested_by = text(record.requested_by, 253)
    row.requests = {name: int(amount) for name, amount in record.requests.items()}
    row.pending = [
        {"plugin": item.plugin, "deadline": item.deadline, "reason": text(item.reason)}
        for item in record.pending
    ]


def text(value: str, limit: int | None = None) -> str:
    """Text from the cluster as a database takes it: no NUL, not too long."""
    return value.replace("\x00", "\ufffd")[:limit]
