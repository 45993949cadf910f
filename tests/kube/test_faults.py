"""A scheduler on a cluster whose network and server fail: every pod ends bound exactly once, no
node is ever asked for more than it has, and memory does not grow."""

from __future__ import annotations

import random
import resource
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dashboard.sandbox_api.serving import ApiThread, OneSandbox, Sandbox, token_hash
from scheduler_core.clock import RealClock
from scheduler_core.cluster.api.server import ApiServer
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.config import configuration_from
from scheduler_core.executor import KeyedThreadPool
from scheduler_core.kube.access import Token
from scheduler_core.kube.api import Patience
from scheduler_core.kube.cluster import LIVE_PODS, KubeCluster
from scheduler_core.kube.connect import connect
from scheduler_core.kube.election import LeaderElector, LeaseSettings
from scheduler_core.kube.reflector import WatchOptions
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.ports import WatchEvent
from scheduler_core.scheduler import Scheduler
from tests.kube.proxy import Deed, FaultyProxy, forward, refusal

Json = dict[str, Any]
TOKEN = "let-me-in"
NODES, CPUS = 5, 8
ALL = NODES * CPUS
PATIENCE = Patience(timeout=1.0, budget=60.0)


class Witness:
    """Watches the pods past the proxy, and remembers where each has been."""

    def __init__(self, cluster: KubeCluster, room: dict[str, int]) -> None:
        self.places: dict[str, set[str]] = defaultdict(set)
        self._room = room
        self._of: dict[str, Json] = {}
        self.overcommitted: list[str] = []
        cluster.list_watch("Pod", self._told)

    def _told(self, event: WatchEvent) -> None:
        if event.type == "SYNCED":
            return
        uid = event.object["metadata"]["uid"]
        node = event.object["spec"].get("nodeName")
        if event.type == "DELETED":
            self._of.pop(uid, None)
            return
        self._of[uid] = event.object
        if node:
            self.places[uid].add(node)
            used = sum(1 for pod in self._of.values() if pod["spec"].get("nodeName") == node)
            if used > self._room[node]:
                self.overcommitted.append(node)

    @property
    def bound(self) -> int:
        return len(self.places)

    @property
    def pods(self) -> int:
        return len(self._of)


class Worker:
    """A scheduler with a thread of its own, behind the proxy; a candidate if it has an identity."""

    def __init__(self, url: str, identity: str = "", silence: float = 60.0) -> None:
        self.cluster = KubeCluster(
            connect(Token(url, TOKEN)),
            qps=-1,
            fields=LIVE_PODS,
            patience=PATIENCE,
            options=WatchOptions(silence=silence),
        )
        self.scheduler = Scheduler(
            configuration_from(_config(), in_tree_registry()),
            self.cluster,
            clock=RealClock(),
            executor=KeyedThreadPool(16),
        )
        self.stopped = threading.Event()
        self.elector: LeaderElector | None = None
        if identity:
            settings = LeaseSettings("kubesched", "default", 3.0, 2.0, 0.4)
            self.elector = self.cluster.elect(settings, identity)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        if self.elector is not None:
            self.elector.start()
            while not self.leads and not self.stopped.is_set():
                time.sleep(0.02)
        if self.stopped.is_set():
            return
        self.scheduler.start()
        self.scheduler.run(self._ended)

    @property
    def leads(self) -> bool:
        return self.elector is None or self.elector.leads

    def _ended(self) -> bool:
        return not self.leads or self.stopped.is_set()

    def start(self) -> Worker:
        self._thread.start()
        return self

    def close(self) -> None:
        self.stopped.set()
        self._thread.join(20)
        self.scheduler.stop()
        if self.elector is not None:
            self.elector.stop()
        self.cluster.close()


def _config() -> Json:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler"}],
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 2,
    }


def node(name: str, cpus: int) -> Json:
    capacity = {"cpu": str(cpus), "memory": "640Gi", "pods": "1000"}
    return {"metadata": {"name": name}, "status": {"capacity": capacity}}


def pod(name: str, cpu: str = "1") -> Json:
    container = {"name": "c", "image": "a", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}


class World:
    """A server, a proxy with faults before it, a witness past the proxy, workers behind it."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.sandbox = stack.enter_context(SandboxCluster(RealClock(), history=100_000))
        server = ApiThread(OneSandbox(Sandbox(ApiServer(self.sandbox), token_hash(TOKEN))))
        server.start()
        stack.callback(server.stop)
        self.url = server.url
        self.proxy = stack.enter_context(FaultyProxy(server.address))
        self.direct = stack.enter_context(KubeCluster(connect(Token(server.url, TOKEN)), qps=-1))
        self.room: dict[str, int] = {}
        self.witness = Witness(self.direct, self.room)
        for index in range(NODES):
            self.add_node(f"n{index}", CPUS)

    def add_node(self, name: str, cpus: int) -> None:
        self.room[name] = cpus
        self.sandbox.create("Node", node(name, cpus))

    def worker(self, identity: str = "", url: str = "", silence: float = 60.0) -> Worker:
        worker = Worker(url or self.proxy.url, identity, silence)
        self._stack.callback(worker.close)
        return worker.start()

    def add_pods(self, count: int, prefix: str = "p", cpu: str = "1") -> None:
        with self.sandbox.batch("test") as batch:
            for index in range(count):
                batch.create("Pod", pod(f"{prefix}{index}", cpu))

    def wait_for(self, bound: int, seconds: float = 60.0) -> None:
        end = time.monotonic() + seconds
        while self.witness.bound < bound:
            assert time.monotonic() < end, f"{self.witness.bound} of {bound} pods are bound"
            time.sleep(0.02)

    def check(self, pods: int) -> None:
        """Each pod on one node, each node within its capacity, each binding carried out once."""
        time.sleep(0.3)
        assert self.witness.bound == pods
        assert all(len(nodes) == 1 for nodes in self.witness.places.values())
        assert self.witness.overcommitted == []
        found = self.sandbox.list("Pod").items
        assert all(p["spec"].get("nodeName") for p in found)


@pytest.fixture
def world() -> Iterator[World]:
    with ExitStack() as stack:
        yield World(stack)


def sometimes(part: float, deed: Deed, matching: str, seed: int = 1) -> Callable[[str], Deed]:
    chance = random.Random(seed)

    def rule(line: str) -> Deed:
        return deed if matching in line and chance.random() < part else "forward"

    return rule


@pytest.mark.parametrize(
    ("part", "deed", "matching"),
    [
        pytest.param(0.4, "lose", "/binding", id="answers to bindings are lost"),
        pytest.param(0.4, "drop", "/binding", id="bindings are cut before they arrive"),
        pytest.param(0.2, "silent", "/binding", id="a server that does not answer bindings"),
        pytest.param(0.3, refusal(409, "Conflict"), "/binding", id="409 that did nothing"),
        pytest.param(0.4, refusal(429, "TooManyRequests", 1), "", id="a storm of 429"),
        pytest.param(0.3, refusal(500, "InternalError"), "/binding", id="500"),
        pytest.param(0.3, "lose", "", id="answers to everything are lost"),
    ],
)
def test_every_pod_ends_bound_once(world: World, part: float, deed: Deed, matching: str) -> None:
    world.proxy.rule = sometimes(part, deed, matching)
    world.worker()
    world.add_pods(ALL)
    world.wait_for(ALL)
    world.check(ALL)


def test_watches_are_cut_again_and_again(world: World) -> None:
    world.worker()
    for index in range(8):
        world.add_pods(5, f"r{index}-")
        time.sleep(0.15)
        world.proxy.cut_watches()
    world.wait_for(ALL)
    world.check(ALL)


def test_every_connection_is_cut_again_and_again(world: World) -> None:
    world.worker()
    for index in range(8):
        world.add_pods(5, f"r{index}-")
        time.sleep(0.05)
        world.proxy.cut()
    world.wait_for(ALL)
    world.check(ALL)


def test_410_in_mid_watch(world: World) -> None:
    """Watches are cut, and what happened meanwhile is forgotten by the server."""
    world.worker()
    world.add_pods(20, "a")
    world.wait_for(20)
    expired = refusal(410, "Expired")
    world.proxy.rule = lambda line: expired if "watch=true" in line else "forward"
    world.proxy.cut_watches()
    world.sandbox.delete("Pod", "default", "a0", grace_period_seconds=0)
    world.add_pods(21, "b")
    time.sleep(1.0)
    world.proxy.rule = lambda line: "forward"
    world.wait_for(ALL + 1)
    world.check(ALL + 1)


def test_a_server_that_is_away_and_comes_back(world: World) -> None:
    away = refusal(503, "ServiceUnavailable")
    world.worker()
    world.add_pods(20, "a")
    time.sleep(0.1)
    world.proxy.rule = lambda line: away
    world.proxy.cut_watches()
    world.add_pods(20, "b")
    time.sleep(4.0)
    asked = len(world.proxy.requests)
    time.sleep(1.0)
    assert len(world.proxy.requests) - asked < 400  # no storm
    world.proxy.rule = lambda line: "forward"
    world.wait_for(ALL)
    world.check(ALL)


def test_a_server_that_stops_answering(world: World) -> None:
    """Also the watches fall silent; connections stay open and nothing comes."""
    world.worker(silence=2.0)
    world.add_pods(20, "a")
    world.wait_for(20)
    world.proxy.rule = lambda line: "silent"
    world.proxy.cut_watches()
    world.add_pods(20, "b")
    time.sleep(2.5)
    world.proxy.rule = lambda line: "forward"
    world.wait_for(ALL)
    world.check(ALL)


def test_two_workers_fight_for_the_lease(world: World) -> None:
    """The first one's renewals hang while its bindings would still get through; the other takes
    over, and at no moment do both lead."""
    first = world.worker("first")
    world.add_pods(10, "a")
    world.wait_for(10)
    second = world.worker("second", world.url)
    with Watching(first, second) as watching:
        world.proxy.rule = lambda line: "silent" if "/leases/" in line else "forward"
        world.add_pods(ALL - 10, "b")
        watching.wait_until(lambda: second.leads)
        world.wait_for(ALL)
        world.proxy.rule = forward  # the first one is a candidate again, and stays one
        world.sandbox.delete("Pod", "default", "a0", grace_period_seconds=0)
        world.add_pods(1, "c")
        world.wait_for(ALL + 1)
        time.sleep(1.0)
        assert (first.leads, second.leads) == (False, True)
    assert watching.most == 1
    world.check(ALL + 1)


class Watching:
    """How many led at once, at each moment."""

    def __init__(self, *workers: Worker) -> None:
        self.most = 0
        self._workers = workers
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Watching:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.003):
            self.most = max(self.most, sum(worker.leads for worker in self._workers))

    def wait_until(self, condition: Callable[[], bool], seconds: float = 30.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "it did not happen in time"
            time.sleep(0.02)


@pytest.mark.slow
def test_5000_pods_at_once(world: World) -> None:
    """Ten more than fit: what fits is bound, the others wait, and memory is what pods need."""
    for index in range(50):
        world.add_node(f"big{index}", 99)
    worker = world.worker()
    before = _resident()
    world.add_pods(5000)
    world.wait_for(4990, 120)
    time.sleep(0.5)
    assert world.witness.bound == 4990
    assert all(len(nodes) == 1 for nodes in world.witness.places.values())
    assert world.witness.overcommitted == []
    assert worker.cluster.troubles == {}
    # Server, witness and scheduler are all in this process.
    assert _resident() - before < 300_000_000


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()
