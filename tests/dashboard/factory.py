"""Records as a scheduler tells them, and fakes of what stands around the recorder."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from dashboard.merging import merge
from dashboard.models import Cluster, SchedulerRun
from dashboard.publisher import Publisher
from scheduler_core.records import (
    BindingRecord,
    ClusterUsage,
    CycleRecord,
    NodeScores,
    Outcome,
    PendingPlugin,
    PodRef,
    QueueDepths,
    QueuedPod,
    QueueListing,
    Rejection,
    ScoreMatrix,
    WaitingPodRecord,
    WaitOutcome,
)

NOW = 1_800_000_000.0


def make_run(name: str = "run", **columns: Any) -> SchedulerRun:
    cluster = Cluster.objects.create(name=f"c-{name}")
    return SchedulerRun.objects.create(cluster=cluster, name=name, **columns)


def pod(name: str = "p", namespace: str = "default") -> PodRef:
    return PodRef(f"uid-{name}", namespace, name)


def matrix(nodes: int = 4, seed: int = 0, names: tuple[str, ...] = ()) -> ScoreMatrix:
    """Node 0 is rejected, node 1 was not evaluated, the rest is scored."""
    random = np.random.default_rng(seed)
    rejection = np.full(nodes, -1, dtype=np.int32)
    rejection[:1], rejection[1:2] = 0, -2
    normalized = random.integers(0, 101, (2, nodes)).astype(np.int8)
    normalized[:, :2] = -1
    raw = np.maximum(normalized, 0).astype(np.int64)
    raw[1, 2:] += 1000
    weights = np.array([1, 3], dtype=np.int64)
    total = weights @ np.maximum(normalized, 0).astype(np.int64)
    total[:2] = -1
    return ScoreMatrix(
        node_names=names or tuple(f"node-{i}" for i in range(nodes)),
        plugins=("NodeResourcesFit", "TaintToleration"),
        weights=weights,
        raw=raw,
        normalized=normalized,
        total=total,
        rejection=rejection,
        reasons=(("NodeName", "node(s) didn't match the requested node name", "Unschedulable"),),
        scored=True,
    )


def cycle(
    sequence: int = 1, name: str = "p", outcome: str = "scheduled", **fields: Any
) -> CycleRecord:
    good = outcome in {"scheduled", "waiting"}
    values: dict[str, Any] = {
        "sequence": sequence,
        "pod": pod(name),
        "attempt": 1,
        "profile": "default-scheduler",
        "priority": 0,
        "outcome": Outcome(outcome),
        "started_at": NOW + sequence,
        "duration": 0.002,
        "node": "node-2" if good else "",
        "score": 250 if good else None,
        "ties": 1,
        "nodes_total": 4,
        "nodes_evaluated": 3,
        "nodes_feasible": 2,
        "point_seconds": {"Filter": 0.001},
        "plugin_seconds": {("Filter", "NodeName"): 0.0005},
        "rejections": (Rejection("NodeName", "node(s) didn't match", 1, True),),
        "best": (NodeScores("node-2", 250, {"NodeResourcesFit": (70, 70, 70)}),),
        "message": "" if good else "0/4 nodes are available: 1 node(s) didn't match.",
        "depths": QueueDepths(active=3, waiting=1),
    }
    return CycleRecord(**{**values, **fields})


def binding(sequence: int = 1, name: str = "p", bound: bool = True, **fields: Any) -> BindingRecord:
    return BindingRecord(sequence, pod(name), "node-2", bound, NOW + sequence + 0.5, 0.01, **fields)


def wait(
    sequence: int = 1, name: str = "p", *, deadline: float | None = None, **fields: Any
) -> WaitingPodRecord:
    until = NOW * 10 if deadline is None else deadline
    values: dict[str, Any] = {
        "cycle": sequence,
        "pod": pod(name),
        "node": "node-2",
        "profile": "default-scheduler",
        "priority": 0,
        "since": NOW,
        "deadline": until,
        "pending": (PendingPlugin("ManualApproval", until, "waits for a person"),),
        "needs_approval": True,
        "requested_by": "alice",
        "requests": {"cpu": 500},
    }
    return WaitingPodRecord(**{**values, **fields})


def resolved(
    sequence: int = 1, name: str = "p", outcome: str = "allowed", **fields: Any
) -> WaitingPodRecord:
    values = {"message": "", "resolved_by": "ManualApproval", "resolved_at": NOW + 9, **fields}
    return wait(sequence, name, pending=(), outcome=WaitOutcome(outcome), **values)


def listing(active: int = 2, at: float = NOW) -> QueueListing:
    pods = tuple(
        QueuedPod(pod(f"q{i}"), i + 1, 0, 1, at - i, plugin="NodeName", reason="no node")
        for i in range(active)
    )
    return QueueListing(at, QueueDepths(active=active), pods, (), (), ())


def usage(nodes: int = 3) -> ClusterUsage:
    allocatable = np.full((nodes, 2), 1000, dtype=np.int64)
    allocatable[0, 1] = 0
    requested = np.zeros((nodes, 2), dtype=np.int64)
    requested[-1] = [1000, 250]
    return ClusterUsage(
        NOW,
        tuple(f"node-{i}" for i in range(nodes)),
        ("cpu", "nvidia.com/gpu"),
        allocatable,
        requested,
        np.arange(nodes, dtype=np.int64),
        np.full(nodes, 110, dtype=np.int64),
    )


class FakePublisher(Publisher):
    """Keeps frames instead of sending them."""

    def __init__(self) -> None:
        self.frames: list[tuple[int, str, Any]] = []
        self._guard = threading.Lock()

    def publish(self, run_id: int, topic: str, frame: Any) -> None:
        with self._guard:
            self.frames.append((run_id, topic, frame))

    def close(self, timeout: float = 2.0) -> None:
        pass

    def of(self, topic: str) -> list[Any]:
        with self._guard:
            return [frame for _, t, frame in self.frames if t == topic]

    def merged(self, topic: str) -> Any:
        """All frames of a topic as a stalled page would get them."""
        frames: Sequence[Any] = self.of(topic)
        whole = frames[0]
        for frame in frames[1:]:
            whole = merge(topic, whole, frame)
        return whole
