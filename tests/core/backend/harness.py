"""A queue with virtual time and plugins that do what a test tells them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scheduler_core.api import Pod
from scheduler_core.backend.informers import Informers
from scheduler_core.backend.queue import SchedulingQueue
from scheduler_core.clock import VirtualClock
from scheduler_core.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from scheduler_core.framework.interface import PreEnqueuePlugin
from scheduler_core.framework.status import SUCCESS, Status, unresolvable
from scheduler_core.framework.types import QueuedPodInfo
from scheduler_core.testing.builders import make_pod

PROFILE = "default-scheduler"
START = 1_000.0


def event(resource: EventResource, action: ActionType) -> ClusterEvent:
    return ClusterEvent(resource, action)


def registered(
    resource: EventResource, action: ActionType, hint: Any = None
) -> ClusterEventWithHint:
    return ClusterEventWithHint(ClusterEvent(resource, action), hint)


def priority_sort(a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
    """The reference's default order."""
    if a.pod.priority != b.pod.priority:
        return a.pod.priority > b.pod.priority
    return a.timestamp < b.timestamp


def always(hint: QueueingHint) -> Any:
    return lambda pod, old, new: hint


class Gate(PreEnqueuePlugin):
    """Holds pods while it is shut (or those with the label ``held``)."""

    name = "Gate"

    def __init__(self, name: str = "Gate", *, shut: bool = False) -> None:
        self.name = name  # type: ignore[misc]
        self.shut = shut
        self.asked: list[str] = []

    def pre_enqueue(self, pod: Pod) -> Status:
        self.asked.append(pod.name)
        if self.shut or "held" in pod.labels:
            return unresolvable(f"{self.name} is shut")
        return SUCCESS


class BrokenGate(Gate):
    def pre_enqueue(self, pod: Pod) -> Status:
        raise RuntimeError("boom")


class Bench:
    """A SchedulingQueue on a bench: clock, informer, gates and hints within reach."""

    def __init__(
        self,
        hints: Mapping[str, Sequence[ClusterEventWithHint]] | None = None,
        gates: Sequence[PreEnqueuePlugin] = (),
        **more: Any,
    ) -> None:
        self.clock = VirtualClock(START)
        self.pods = Informers().informer("Pod")
        self.queue = SchedulingQueue(
            more.pop("less", priority_sort),
            self.clock,
            pre_enqueue={PROFILE: gates},
            hints={PROFILE: hints or {}},
            pods=self.pods,
            **more,
        )

    def add(self, *names: str, **how: Any) -> list[Pod]:
        """New pods, in order."""
        pods = [_pod(name, **how) for name in names]
        for pod in pods:
            self.pods.set(pod)
            self.queue.add(pod)
        return pods

    def pop(self) -> QueuedPodInfo:
        info = self.queue.pop()
        assert info is not None
        return info

    def pop_names(self) -> list[str]:
        """Pop until nothing comes; every pod is done at once."""
        names = []
        while (info := self.queue.pop()) is not None:
            self.queue.done(info.pod.uid)
            names.append(info.pod.name)
        return names

    def reject(self, info: QueuedPodInfo, *plugins: str, pending: Sequence[str] = ()) -> None:
        """The attempt failed because of these plugins; none of them: an error."""
        info.unschedulable_plugins = set(plugins)
        info.pending_plugins = set(pending)
        self.queue.add_unschedulable_if_not_present(info)

    def rejected(self, name: str, *plugins: str, **how: Any) -> QueuedPodInfo:
        """A new pod that plugins have rejected once."""
        self.add(name, **how)
        info = self.pop()
        assert info.pod.name == name
        self.reject(info, *plugins)
        return info

    def place(self, name: str) -> str:
        return self.queue.place_of(f"default/{name}")


def _pod(name: str, *, priority: int = 0, labels: Mapping[str, str] | None = None) -> Pod:
    return make_pod(name).priority(priority).label(labels or {}).obj()
