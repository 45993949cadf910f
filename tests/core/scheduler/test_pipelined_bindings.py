"""Bindings that no thread waits for: a cluster in this process tells later what became of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from scheduler_core.algorithm import SmallestName
from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.journal import MemoryJournal, Write
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.config import configuration_from
from scheduler_core.executor import KeyedThreadPool
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.scheduler import Scheduler
from scheduler_core.testing.builders import make_node, make_pod
from scheduler_core.testing.observer import RecordingObserver

#: Seconds after which a thread is taken to hang; never waited for where all is well.
LONGEST = 60.0


class Gate(MemoryJournal):
    """Keeps a batch when it is let through, or refuses it with ``fault``."""

    def __init__(self) -> None:
        super().__init__()
        self.open = threading.Event()
        self.open.set()
        self.fault: OSError | None = None

    def append(self, writes: Sequence[Write]) -> None:
        assert self.open.wait(LONGEST)
        if self.fault is not None:
            raise self.fault
        super().append(writes)


class World:
    """A scheduler on a sandbox with a journal."""

    def __init__(self, pods: int) -> None:
        self.clock = VirtualClock(1_000_000.0)
        self.journal = Gate()
        self.cluster = SandboxCluster(self.clock, self.journal, pace=0.001)
        self.observer = RecordingObserver()
        self.pool = KeyedThreadPool(threads=2)
        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
        }
        self.scheduler = Scheduler(
            configuration_from(document, in_tree_registry()),
            self.cluster.as_actor("scheduler"),
            clock=self.clock,
            executor=self.pool,
            observers=[self.observer],
            tie_breaker=SmallestName(),
        )
        self.cluster.create("Node", make_node("n1").capacity(cpu="64").raw())
        for number in range(pods):
            self.cluster.create("Pod", make_pod(f"p{number}").req(cpu="1").raw())
        self.scheduler.start()

    def close(self) -> None:
        self.journal.open.set()
        self.scheduler.stop()
        self.cluster.close()

    def turn_until(self, reached: Callable[[], bool]) -> None:
        """Between turns the threads of the journal and of bindings have the interpreter."""
        end = time.monotonic() + LONGEST
        while not reached():
            if not self.scheduler.run_once():
                time.sleep(0.002)
            assert time.monotonic() < end, "it came to rest before that"

    def nodes(self) -> list[str]:
        return [pod["spec"].get("nodeName", "") for pod in self.cluster.list("Pod").items]


@pytest.fixture
def world() -> Iterator[World]:
    world = World(pods=3)
    yield world
    world.close()


def test_decisions_go_on_while_bindings_wait_to_be_kept(world: World) -> None:
    batches = world.journal.batches
    world.journal.open.clear()
    world.turn_until(lambda: len(world.observer.cycles) == 3)
    assert world.nodes() == ["", "", ""]
    assert world.observer.bindings == []
    world.journal.open.set()
    world.turn_until(lambda: len(world.observer.bindings) == 3)
    assert world.nodes() == ["n1"] * 3
    assert all(end.bound and "Bind" in end.point_seconds for end in world.observer.bindings)
    assert world.journal.batches <= batches + 4  # not one for each


def test_a_pod_is_said_to_be_scheduled_once_it_is_bound(world: World) -> None:
    world.turn_until(lambda: len(world.observer.bindings) == 3)
    world.scheduler.stop()
    world.cluster.close()
    notes = [event["note"] for event in world.cluster.list("Event").items]
    assert sorted(notes) == [f"Successfully assigned default/p{n} to n1" for n in range(3)]
    verbs = [write.verb for write in world.journal.writes if write.actor == "scheduler"]
    assert verbs.index("bind") < verbs.index("create")


def test_a_binding_that_is_not_kept_is_tried_again(world: World) -> None:
    world.journal.fault = OSError("no space left on device")
    world.turn_until(lambda: len(world.observer.bindings) == 3)
    (message,) = {end.message for end in world.observer.bindings}
    assert message == (
        'running Bind plugin "DefaultBinder": the sandbox cannot keep its writes: '
        "no space left on device"
    )
    assert not any(end.bound for end in world.observer.bindings)
    world.journal.fault = None
    world.clock.advance(30.0)
    world.turn_until(lambda: world.nodes() == ["n1"] * 3)


def test_stopping_waits_for_bindings_under_way(world: World) -> None:
    world.journal.open.clear()
    world.turn_until(lambda: len(world.observer.cycles) == 3)
    threading.Timer(0.05, world.journal.open.set).start()
    world.scheduler.stop()
    assert [end.bound for end in world.observer.bindings] == [True] * 3
