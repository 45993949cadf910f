"""What a scheduler's records look like as columns: text made safe, numbers made plain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dashboard import best_nodes, bulk, frames
from dashboard.told import Told
from scheduler_core.records import BindingRecord, CycleRecord

#: Times are kept to a tenth of a microsecond.
_DIGITS: Final = 7

#: In the order of ``cycle_values``.
CYCLE: Final = (
    "run_id",
    "sequence",
    "commit_seq",
    "pod_uid",
    "namespace",
    "name",
    "pod_group",
    "attempt",
    "profile",
    "priority",
    "outcome",
    "node",
    "score",
    "ties",
    "nodes_total",
    "nodes_evaluated",
    "nodes_feasible",
    "started_at",
    "duration",
    "message",
    "plugin",
    "matrix_dropped",
    "has_nodes",
    "bound",
    "binding",
    "detail",
)


def cycle_values(
    run_id: int, commit_seq: int, told: PreparedCycle, end: BindingRecord | None
) -> bulk.Row:
    """A row of SchedulingCycle."""
    record = told.record
    return (
        run_id,
        record.sequence,
        commit_seq,
        record.pod.uid,
        record.pod.namespace,
        record.pod.name,
        record.pod_group,
        record.attempt,
        record.profile,
        record.priority,
        record.outcome.value,
        record.node,
        None if record.score is None else int(record.score),
        int(record.ties),
        int(record.nodes_total),
        int(record.nodes_evaluated),
        int(record.nodes_feasible),
        record.started_at,
        record.duration,
        text(record.message),
        text(record.plugin, 253),
        told.dropped,
        told.dropped or record.matrix is not None,
        None if end is None else end.bound,
        None if end is None else binding_text(end),
        told.detail,
    )


@dataclass(frozen=True, slots=True)
class PreparedCycle:
    """A cycle whose costly column is made, before the transaction begins."""

    record: CycleRecord
    dropped: bool
    detail: str


def prepare_cycles(cycles: Sequence[Told]) -> dict[int, PreparedCycle]:
    """Cycles that were told, by their sequence number.

    Raises:
        TypeError, ValueError: a record holds what is no fact of a cycle.
    """
    known = [(told, told.record) for told in cycles if isinstance(told.record, CycleRecord)]
    new = [record for told, record in known if told.best is None]
    packed = iter(best_nodes.pack_all(new))
    return {
        record.sequence: PreparedCycle(
            record, told.dropped, _detail(record, next(packed) if told.best is None else told.best)
        )
        for told, record in known
    }


def _detail(record: CycleRecord, best: best_nodes.Packed) -> str:
    return bulk.json_text(
        {
            "point_seconds": {
                point: round(float(s), _DIGITS) for point, s in record.point_seconds.items()
            },
            "plugin_seconds": [
                [point, plugin, round(float(s), _DIGITS)]
                for (point, plugin), s in record.plugin_seconds.items()
            ],
            "rejections": [
                {
                    "plugin": item.plugin,
                    "reason": item.reason,
                    "nodes": int(item.nodes),
                    "resolvable": bool(item.resolvable),
                }
                for item in record.rejections
            ],
            "best": best,
            "unschedulable_plugins": list(record.unschedulable_plugins),
            "nominated_node": record.nominated_node,
            "victims": list(record.victims),
            "depths": frames.depths_dict(record.depths),
        }
    )


def binding_text(end: BindingRecord) -> str:
    """The end of a binding cycle, as JSON."""
    return bulk.json_text(
        {
            "node": end.node,
            "bound": end.bound,
            "finished_at": end.finished_at,
            "duration": end.duration,
            "message": end.message,
            "plugin": end.plugin,
            "point_seconds": {point: float(s) for point, s in end.point_seconds.items()},
        }
    )


def text(value: str, limit: int | None = None) -> str:
    """Text from the cluster as a database takes it: no NUL, not too long."""
    return value.replace("\x00", "\ufffd")[:limit]
