"""A scheduler around a plugin, small enough for one test: real informers, real waiting pods, a
clock that stands still, and a cluster that remembers its bindings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from scheduler_core.api import KINDS, KubeObject, Node, Pod
from scheduler_core.backend.cache import Cache
from scheduler_core.backend.informers import Informers, ObjectInformer
from scheduler_core.backend.snapshot import Snapshot
from scheduler_core.clock import VirtualClock
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import ClusterEvent, QueueingHint
from scheduler_core.framework.interface import EnqueueExtensions, FilterPlugin, ScorePlugin
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.runtime.waiting_pods import WaitingPod, WaitingPodsMap
from scheduler_core.framework.status import Status
from scheduler_core.ports import ApiError

#: class -> the kind's name
_KIND_OF = {kind.type: name for name, kind in KINDS.items()}


class FakeCluster:
    """Takes bindings; refuses all once ``refusal`` is set."""

    def __init__(self) -> None:
        self.bound: list[tuple[str, str, str, str]] = []
        self.refusal: ApiError | None = None

    def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.bound.append((namespace, name, uid, node))


class FakeHandle:
    """The part of ``Handle`` that in-tree plugins use, with behaviour."""

    profile_name = "default-scheduler"

    def __init__(self, nodes: Sequence[Node] = (), pods: Iterable[Pod] = ()) -> None:
        #: What else the profile has.
        self.plugins = {"Coscheduling", "GangScheduling", "ManualApproval"}
        self.cache = Cache()
        self.snapshot = Snapshot()
        self.informers = Informers()
        self.clock = VirtualClock(1000.0)
        self.cluster = FakeCluster()
        self.waiting_pods = WaitingPodsMap()
        #: Waiting pods that changed, in order; what the scheduler's loop would act on.
        self.changed: list[WaitingPod] = []
        for node in nodes:
            self.cache.add_node(node)
        for pod in pods:
            self.bind(pod)
        self.refresh()

    def has_plugin(self, name: str) -> bool:
        return name in self.plugins

    @property
    def nodes(self) -> NodeInfos:
        return self.snapshot.nodes

    def refresh(self) -> None:
        self.snapshot.update(self.cache)

    def informer(self, kind: str) -> ObjectInformer:
        return self.informers.informer(kind)

    def get_waiting_pod(self, uid: str) -> WaitingPod | None:
        return self.waiting_pods.get(uid)

    def watch(self, *objects: KubeObject) -> None:
        """The informers show these objects."""
        for obj in objects:
            self.informer(_KIND_OF[type(obj)]).set(obj)

    def bind(self, pod: Pod) -> None:
        """The pod is on its node, in cache and informer."""
        self.cache.add_pod(pod)
        self.watch(pod)


def info(node: Node, *pods: Pod) -> NodeInfo:
    """One node with pods on it."""
    return NodeInfo(node, tuple(pods))


def filter_both(
    plugin: FilterPlugin, pod: Pod, nodes: NodeInfos, state: CycleState | None = None
) -> list[Status]:
    """Statuses of all nodes; both forms are asked and must agree."""
    state = state or CycleState()
    vector = list(plugin.filter_nodes(state, pod, nodes))
    plain = [plugin.filter(state, pod, node) for node in nodes]
    assert plain == vector, f"{plugin.name}: plain {plain}, vector {vector}"
    return vector


def score_both(
    plugin: ScorePlugin, pod: Pod, nodes: NodeInfos, state: CycleState | None = None
) -> list[int]:
    """Raw scores of all nodes; both forms are asked and must agree."""
    state = state or CycleState()
    vector = plugin.score_nodes(state, pod, nodes)
    assert vector.dtype == np.int64
    assert vector.shape == (len(nodes),)
    plain = [plugin.score(state, pod, node) for node in nodes]
    assert plain == vector.tolist(), f"{plugin.name}: plain {plain}, vector {vector.tolist()}"
    return plain


def hint(
    plugin: EnqueueExtensions, event: ClusterEvent, pod: Pod, old: Any = None, new: Any = None
) -> str:
    """What the plugin says to an event: Queue, Skip, or Unregistered."""
    answers = [
        registered.hint(pod, old, new) if registered.hint else QueueingHint.QUEUE
        for registered in plugin.events_to_register()
        if event.matched_by(registered.event)
    ]
    if not answers:
        return "Unregistered"
    return "Queue" if QueueingHint.QUEUE in answers else "Skip"
