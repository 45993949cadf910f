"""A sandbox in virtual time, somebody who places pods in it by hand, and an observer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.config import SchedulerConfiguration, configuration_from, default_configuration
from scheduler_core.observations import Observation
from scheduler_core.observing import ObservingScheduler, OpenObservation
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.ports import Observer
from scheduler_core.testing.harness import API_VERSION


class Notes(Observer):
    """What was told, oldest first."""

    def __init__(self) -> None:
        self.all: list[Observation] = []

    def pod_observed(self, record: Observation) -> None:
        self.all.append(record)


def configuration(*profiles: Mapping[str, Any]) -> SchedulerConfiguration:
    if not profiles:
        return default_configuration(in_tree_registry())
    document = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration"}
    return configuration_from({**document, "profiles": list(profiles)}, in_tree_registry())


class Watching:
    """Starts to observe once ``nodes`` and ``pods`` are there."""

    def __init__(
        self,
        *,
        nodes: Iterable[Any] = (),
        pods: Iterable[Any] = (),
        config: SchedulerConfiguration | None = None,
    ) -> None:
        self.clock = VirtualClock(1_000_000.0)
        self.cluster = SandboxCluster(self.clock)
        self.create("Node", *nodes)
        self.create("Pod", *pods)
        self._observe(config, ())

    def again(self, left_open: Iterable[OpenObservation]) -> None:
        """Another observer, of the same run."""
        self._observe(None, left_open)

    def _observe(
        self, config: SchedulerConfiguration | None, left_open: Iterable[OpenObservation]
    ) -> None:
        self.notes = Notes()
        self.observer = ObservingScheduler(
            config or configuration(),
            self.cluster,
            clock=self.clock,
            observers=[self.notes],
        )
        self.observer.start(left_open)
        self.settle()

    def create(self, kind: str, *builders: Any) -> None:
        for builder in builders:
            self.cluster.create(kind, builder.raw() if hasattr(builder, "raw") else builder)

    def pod(self, builder: Any, *, look: bool = True) -> str:
        """A pod comes; its uid. ``look``: let the observer see it before anything else happens."""
        made = self.cluster.create("Pod", builder.raw())
        if look:
            self.settle()
        return str(made["metadata"]["uid"])

    def place(self, name: str, node: str) -> None:
        """The other scheduler's decision, not taken in yet."""
        uid = self.cluster.get("Pod", "default", name)["metadata"]["uid"]
        self.cluster.bind("default", name, uid, node)

    def nominate(self, name: str, node: str) -> None:
        """Preemption made room there."""
        uid = self.cluster.get("Pod", "default", name)["metadata"]["uid"]
        self.cluster.patch_pod_status("default", name, uid, nominated_node_name=node)
        self.settle()

    def delete(self, kind: str, name: str) -> None:
        namespace = "" if kind == "Node" else "default"
        self.cluster.delete(kind, namespace, name, grace_period_seconds=0)

    def settle(self) -> None:
        for _ in range(1_000):
            if not self.observer.run_once():
                return
        raise AssertionError("the observer never comes to rest")

    def last(self, name: str) -> Observation:
        """The latest word on a pod, once everything is taken in."""
        self.settle()
        return [note for note in self.notes.all if note.pod.name == name][-1]

    def words(self, name: str) -> list[Observation]:
        """Every word on a pod."""
        self.settle()
        return [note for note in self.notes.all if note.pod.name == name]
