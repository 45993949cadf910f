"""A cluster trace as Kubernetes objects and as timed events, and its live replay.

How a row becomes an object, exactly:

- node: `cpu` = cpu_milli "m", `memory` = memory_mib "Mi", `pods` = 256; with GPUs the extended
  resource `alibabacloud.com/gpu-milli` = gpu x 1000 and the label
  `alibabacloud.com/gpu-card-model`; always the label `kubernetes.io/hostname`.
- pod (namespace `default`): one container that requests cpu, memory and, with GPUs, num_gpu x
  gpu_milli of `alibabacloud.com/gpu-milli` (limit = request). gpu_spec "A|B" is a required node
  affinity, card model In [A, B].
- events in order of time; at the same second deletions come first, then additions in file order.
  So a pod whose deletion_time is its creation_time would be deleted before it is there: that
  deletion means nothing, and the pod stays.
"""

from __future__ import annotations

import enum
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from scheduler_core.api.pod import DEFAULT_SCHEDULER_NAME
from scheduler_core.ports import Json, NotFound

from .base import WorkloadCluster, create_if_absent, create_set, delete_if_present
from .manifests import WORKLOAD_LABEL
from .trace_format import (
    Fault,
    Trace,
    TraceError,
    TraceNode,
    TracePod,
    find_trace,
    load_trace,
)

__all__ = [
    "CARD_MODEL",
    "GPU_MILLI",
    "Action",
    "Fault",
    "Timeline",
    "Trace",
    "TraceError",
    "TraceEvent",
    "TraceNode",
    "TracePod",
    "TraceWorkload",
    "find_trace",
    "load_trace",
    "node_object",
    "pod_object",
    "trace_events",
]

GPU_MILLI: Final = "alibabacloud.com/gpu-milli"
CARD_MODEL: Final = "alibabacloud.com/gpu-card-model"
NAMESPACE: Final = "default"

_PODS_ON_A_NODE: Final = 256
_IMAGE: Final = "registry.example/trace-task:v1"

#: a live replay takes this long, in seconds, unless a speed is given
FIT_SECONDS: Final = 300.0
#: idle times of the trace longer than this, in its seconds, are cut down to it
IDLE_SECONDS: Final = 600
#: a deletion waits for the pod's first decision at most this long, in seconds
_PATIENCE: Final = 5.0
_LOOK_AGAIN: Final = 0.1


def node_object(node: TraceNode) -> Json:
    """The node's manifest."""
    labels = {"kubernetes.io/hostname": node.name}
    capacity = {
        "cpu": f"{node.cpu_milli}m",
        "memory": f"{node.memory_mib}Mi",
        "pods": str(_PODS_ON_A_NODE),
    }
    if node.gpus:
        labels[CARD_MODEL] = node.model
        capacity[GPU_MILLI] = str(node.gpus * 1000)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": labels},
        "spec": {},
        "status": {"capacity": capacity, "allocatable": dict(capacity)},
    }


def pod_object(pod: TracePod, scheduler_name: str = DEFAULT_SCHEDULER_NAME) -> Json:
    """The pod's manifest."""
    requests = {"cpu": f"{pod.cpu_milli}m", "memory": f"{pod.memory_mib}Mi"}
    resources: Json = {"requests": requests}
    if pod.gpus:
        amount = str(pod.gpus * pod.gpu_milli)
        requests[GPU_MILLI] = amount
        resources["limits"] = {GPU_MILLI: amount}
    spec: Json = {
        "schedulerName": scheduler_name,
        "containers": [{"name": "task", "image": _IMAGE, "resources": resources}],
    }
    if pod.models:
        spec["affinity"] = _on_cards(pod.models)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod.name,
            "namespace": NAMESPACE,
            "labels": {WORKLOAD_LABEL: TraceWorkload.name},
        },
        "spec": spec,
    }


def _on_cards(models: Sequence[str]) -> Json:
    expression = {"key": CARD_MODEL, "operator": "In", "values": list(models)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


class Action(enum.IntEnum):
    """What happens; at the same second the lower one first."""

    DELETE = 0
    ADD = 1


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """`pod` is added or deleted at `time` (seconds of the trace)."""

    time: int
    action: Action
    pod: TracePod


def trace_events(pods: Iterable[TracePod]) -> list[TraceEvent]:
    """Every addition and deletion, in the order given in the module's documentation."""
    events = []
    for pod in pods:
        events.append(TraceEvent(pod.created, Action.ADD, pod))
        if pod.deleted is not None and pod.deleted > pod.created:
            events.append(TraceEvent(pod.deleted, Action.DELETE, pod))
    # The sort is stable: what is equal stays in file order.
    events.sort(key=lambda event: (event.time, event.action))
    return events


class Timeline:
    """From seconds of the trace to seconds after the start of its replay.

    A trace of months has long idle times; nine tenths of this one's pods come in its last fifth.
    So times between two events are shortened to `idle` seconds at most, and all is divided by the
    speed. Order and simultaneity stay as they are.
    """

    def __init__(
        self,
        times: Sequence[int],
        speed: float | None = None,
        *,
        fit: float = FIT_SECONDS,
        idle: int = IDLE_SECONDS,
    ) -> None:
        """
        Args:
            times: of all events, ascending.
            speed: seconds of the (shortened) trace per second; None: so that it takes `fit`
                seconds, but never slower than in reality.

        Raises:
            ValueError: the speed is not positive.
        """
        if speed is not None and not speed > 0:
            raise ValueError(f"a replay's speed must be positive, not {speed}")
        shortened = 0
        offsets = []
        previous = times[0] if times else 0
        for time in times:
            shortened += min(time - previous, idle)
            previous = time
            offsets.append(shortened)
        self.speed = max(1.0, shortened / fit) if speed is None else speed
        self._times = list(times)
        self._offsets = [offset / self.speed for offset in offsets]

    @property
    def duration(self) -> float:
        """Seconds from the first event to the last."""
        return self._offsets[-1] if self._offsets else 0.0

    def offset(self, index: int) -> float:
        """When the event of this index happens, in seconds after the start."""
        return self._offsets[index]

    def trace_time(self, offset: float) -> int:
        """The time in the trace of the latest event at `offset` seconds after the start."""
        index = bisect_right(self._offsets, offset) - 1
        return self._times[max(index, 0)] if self._times else 0


class TraceWorkload:
    """Replays a trace live: additions and deletions at their time in the trace, as `Timeline` says.

    A deletion that comes before the scheduler has looked at the pod (the replay is thousands of
    times faster than the trace) waits for that decision, at most 5 s.
    """

    name = "trace"

    def __init__(
        self,
        nodes: Sequence[TraceNode],
        pods: Sequence[TracePod],
        start: float | None = None,
        speed: float | None = None,
        *,
        fit: float = FIT_SECONDS,
        idle: int = IDLE_SECONDS,
        scheduler_name: str = DEFAULT_SCHEDULER_NAME,
    ) -> None:
        """
        Args:
            start: time of day of the first event; None: when it is run for the first time.
            speed, fit, idle: see `Timeline`.

        Raises:
            ValueError: the speed is not positive.
        """
        self._nodes = tuple(nodes)
        self._events = trace_events(pods)
        self.timeline = Timeline([e.time for e in self._events], speed, fit=fit, idle=idle)
        self._start = start
        self._scheduler_name = scheduler_name
        self._origin: float | None = None
        self._elapsed = 0.0
        self._has_nodes = False
        self._done = 0  # events that happened
        self._put_off: dict[str, float] = {}  # pod -> offset after which it is deleted anyway

    @property
    def progress(self) -> tuple[int, int]:
        """Events that have happened, and all events."""
        return self._done, len(self._events)

    def next_deadline(self) -> float | None:
        if self._origin is None:
            return (self._start or 0.0) if not self._has_nodes else 0.0
        deadlines = [self._origin + self._elapsed + _LOOK_AGAIN] if self._put_off else []
        if self._done < len(self._events):
            deadlines.append(self._due_at(self._origin))
        return min(deadlines, default=None)

    def run_due(self, now: float, cluster: WorkloadCluster) -> None:
        if not self._has_nodes:
            create_set(cluster, [node_object(node) for node in self._nodes])
            self._has_nodes = True
        if self._origin is None:
            self._origin = now - self._elapsed
        self._elapsed = now - self._origin
        self._delete_put_off(cluster)
        # The very sum that next_deadline gave: a rounding apart, it would be due and never happen.
        while self._is_due(self._origin, now):
            self._happen(self._events[self._done], cluster)
            self._done += 1

    def state(self) -> Json:
        return {
            "workload": self.name,
            "nodes": self._has_nodes,
            "events": len(self._events),
            "done": self._done,
            "elapsed": self._elapsed,
            "put_off": dict(self._put_off),
        }

    def load(self, state: Json) -> None:
        if state.get("workload") != self.name or state.get("events") != len(self._events):
            raise ValueError("this is not the state of this trace")
        try:
            self._has_nodes = bool(state["nodes"])
            self._done = int(state["done"])
            self._elapsed = float(state["elapsed"])
            self._put_off = {str(k): float(v) for k, v in state["put_off"].items()}
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the state of the trace is damaged: {error!r}") from error
        self._origin = None

    def _due_at(self, origin: float) -> float:
        return origin + self.timeline.offset(self._done)

    def _is_due(self, origin: float, now: float) -> bool:
        return self._done < len(self._events) and self._due_at(origin) <= now

    def _happen(self, event: TraceEvent, cluster: WorkloadCluster) -> None:
        if event.action is Action.ADD:
            create_if_absent(cluster, pod_object(event.pod, self._scheduler_name))
        elif _is_undecided(cluster, event.pod.name):
            self._put_off[event.pod.name] = self._elapsed + _PATIENCE
        else:
            delete_if_present(cluster, "Pod", NAMESPACE, event.pod.name, 0)

    def _delete_put_off(self, cluster: WorkloadCluster) -> None:
        for name, until in tuple(self._put_off.items()):
            if self._elapsed >= until or not _is_undecided(cluster, name):
                delete_if_present(cluster, "Pod", NAMESPACE, name, 0)
                del self._put_off[name]


def _is_undecided(cluster: WorkloadCluster, name: str) -> bool:
    """Whether the pod is there, on no node, and was not found unschedulable yet."""
    try:
        pod = cluster.get("Pod", NAMESPACE, name)
    except NotFound:
        return True  # created in this very batch, so not to be read yet
    conditions = pod["status"].get("conditions") or []
    looked_at = any(condition["type"] == "PodScheduled" for condition in conditions)
    return not pod["spec"].get("nodeName") and not looked_at
