"""A pod with volumes on real threads: the loop goes on while a binding thread waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from scheduler_core.clock import RealClock
from scheduler_core.cluster.driver import Driver
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.cluster.sandbox_clock import AS_FAST_AS_POSSIBLE, ScaledClock
from scheduler_core.cluster.volume_controller import VolumeController
from scheduler_core.config import default_configuration
from scheduler_core.executor import KeyedThreadPool
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.scheduler import Scheduler
from scheduler_core.testing.builders import make_node, make_pod
from tests.contract.support import eventually


class Running:
    """A sandbox and a scheduler, each on its own thread."""

    def __init__(self, speed: float) -> None:
        self.clock = ScaledClock(RealClock(), speed)
        self.cluster = SandboxCluster(self.clock)
        self.scheduler = Scheduler(
            default_configuration(in_tree_registry()),
            self.cluster.as_actor("scheduler"),
            clock=self.clock,
            executor=KeyedThreadPool(4),
        )
        self.driver = Driver(self.clock, may_jump=lambda: not self.scheduler.is_busy)
        self.stopping = threading.Event()
        self.loop = threading.Thread(target=self.scheduler.run, args=(self.stopping.is_set,))
        self.cluster.create("Node", make_node("n0").zone("a").raw())
        raw = {"metadata": {"name": "fast"}, "provisioner": "csi.example.com"}
        self.create("StorageClass", {**raw, "volumeBindingMode": "WaitForFirstConsumer"})

    def create(self, kind: str, raw: dict[str, Any]) -> None:
        self.cluster.create(kind, raw)

    def start(self, *, controllers: bool) -> None:
        makers = (VolumeController,) if controllers else ()
        self.driver.start([make(self.cluster, wake=self.driver.wake) for make in makers])
        self.scheduler.start()
        self.loop.start()

    def pod_with_claim(self, name: str) -> None:
        spec = {
            "storageClassName": "fast",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        }
        self.create("PersistentVolumeClaim", {"metadata": {"name": name}, "spec": spec})
        self.create("Pod", make_pod(name).pvc(name).raw())

    def node_of(self, name: str) -> str:
        return str(self.cluster.get("Pod", "default", name)["spec"].get("nodeName", ""))

    def selected_node(self, name: str) -> str:
        claim = self.cluster.get("PersistentVolumeClaim", "default", name)
        annotations = claim["metadata"].get("annotations") or {}
        return str(annotations.get("volume.kubernetes.io/selected-node", ""))

    def stop(self) -> float:
        """How long it took, in seconds."""
        began = time.monotonic()
        self.stopping.set()
        self.loop.join()
        self.scheduler.stop()
        self.driver.stop()
        return time.monotonic() - began


@pytest.fixture(params=[1.0, 50.0, AS_FAST_AS_POSSIBLE], ids=["real", "50x", "fastest"])
def running(request: pytest.FixtureRequest) -> Iterator[Running]:
    world = Running(request.param)
    yield world
    world.cluster.close()


def test_it_is_bound_once_its_volume_is(running: Running) -> None:
    running.start(controllers=True)
    running.pod_with_claim("web")
    eventually(lambda: running.node_of("web") == "n0")
    assert running.stop() < 5.0


def test_others_do_not_wait_and_the_end_does_not_either(running: Running) -> None:
    """Nobody makes the volume; that is no reason to hold anything else up."""
    running.start(controllers=False)
    running.pod_with_claim("stuck")
    eventually(lambda: running.selected_node("stuck") == "n0")
    running.create("Pod", make_pod("other").raw())
    eventually(lambda: running.node_of("other") == "n0")
    assert running.node_of("stuck") == ""
    assert running.stop() < 5.0
