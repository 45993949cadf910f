"""The observer of a benchmark: it reads every record, as the recorder of a worker does."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from scheduler_core.ports import Observer
from scheduler_core.records import BindingRecord, CycleRecord, Outcome, ScoreMatrix

__all__ = ["RecordReader"]


class RecordReader(Observer):
    """Sums up the cycles and reads each CycleRecord with its matrix.

    A record whose parts are made when they are asked for must not look free of charge: of each one
    every field is read (of the best nodes, which follow from the matrix, how many they are and the
    first); of the matrix every array is fetched, ``total`` and ``rejection`` are added up over all
    nodes, and of ``raw`` and ``normalized`` every plugin's row is touched at both ends. The sum of
    all that is ``checksum``.

    Attributes:
        attempts: pod uid -> outcome of its last attempt, for every pod seen.
        failed_bindings: bindings that were refused.
    """

    def __init__(self) -> None:
        self.durations: list[float] = []
        self.point_seconds: defaultdict[str, float] = defaultdict(float)
        self.plugin_seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
        self.attempts: dict[str, Outcome] = {}
        self.failed_bindings = 0
        self.checksum = 0

    def forget(self) -> None:
        """Begin to count anew; what became of the pods is kept."""
        self.durations.clear()
        self.point_seconds.clear()
        self.plugin_seconds.clear()

    def cycle_finished(self, record: CycleRecord) -> None:
        self.durations.append(record.duration)
        self.attempts[record.pod.uid] = record.outcome
        for point, seconds in record.point_seconds.items():
            self.point_seconds[point] += seconds
        for plugin, seconds in record.plugin_seconds.items():
            self.plugin_seconds[plugin] += seconds
        self.checksum += _read(record)
        if record.matrix is not None:
            self.checksum += _read_matrix(record.matrix)

    def binding_finished(self, record: BindingRecord) -> None:
        self.failed_bindings += not record.bound


def _read(record: CycleRecord) -> int:
    texts = (record.profile, record.node, record.nominated_node, record.message, record.plugin)
    counts = record.nodes_total + record.nodes_evaluated + record.nodes_feasible + record.ties
    lists = len(record.victims) + len(record.unschedulable_plugins) + len(record.pod_group)
    rejected = sum(rejection.nodes for rejection in record.rejections)
    best = len(record.best) + (record.best[0].total if record.best else 0)
    times = int(record.started_at >= 0) + record.sequence + record.attempt + record.priority
    depths = record.depths.active + record.depths.unschedulable
    score = record.score or 0
    return sum(map(len, texts)) + counts + lists + rejected + best + times + depths + score


def _read_matrix(matrix: ScoreMatrix) -> int:
    add = np.add.reduce
    read = int(add(matrix.total)) + int(add(matrix.rejection)) + int(add(matrix.weights))
    first, last = matrix.normalized[:, 0].tolist(), matrix.normalized[:, -1].tolist()
    for raw, low, high in zip(matrix.raw, first, last, strict=True):
        read += raw.item(0) + raw.item(-1) + low + high
    return read + len(matrix.node_names) + len(matrix.reasons) + matrix.scored
