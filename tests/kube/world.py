"""A server, a proxy with faults before it, a witness past the proxy, and workers behind it."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from dashboard.sandbox_api.serving import ApiThread, OneSandbox, Sandbox, token_hash
from dashboard.sandbox_parts import start_controllers
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
from tests.kube.proxy import FaultyProxy

Json = dict[str, Any]
TOKEN = "let-me-in"
NODES, CPUS = 5, 8
ALL = NODES * CPUS
#: seconds of one request: where servers fall silent, and where one is merely busy with other tests
IMPATIENT, PATIENT = 1.0, 10.0


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

    def __init__(
        self, url: str, identity: str = "", silence: float = 60.0, timeout: float = PATIENT
    ) -> None:
        self.cluster = KubeCluster(
            connect(Token(url, TOKEN)),
            qps=-1,
            fields=LIVE_PODS,
            patience=Patience(timeout, budget=60.0),
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
        "podMaxBackoffSeconds": 1,
    }


def node(name: str, cpus: int) -> Json:
    capacity = {"cpu": str(cpus), "memory": "640Gi", "pods": "1000"}
    labels = {"kubernetes.io/hostname": name}
    ready = {"type": "Ready", "status": "True"}
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": capacity, "conditions": [ready]},
    }


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

    def run_controllers(self) -> None:
        """Kubelet, volumes and the others."""
        self._stack.callback(start_controllers(self.sandbox))

    def add_node(self, name: str, cpus: int) -> None:
        self.room[name] = cpus
        self.sandbox.create("Node", node(name, cpus))

    def worker(
        self,
        identity: str = "",
        url: str = "",
        silence: float = 60.0,
        timeout: float = PATIENT,
    ) -> Worker:
        worker = Worker(url or self.proxy.url, identity, silence, timeout)
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

    def bindings_through_the_proxy(self) -> int:
        return sum("/binding" in line for line in self.proxy.requests)

    def check(self, pods: int) -> None:
        """Each pod on one node, each node within its capacity, each binding carried out once."""
        time.sleep(0.3)
        assert self.witness.bound == pods
        assert all(len(nodes) == 1 for nodes in self.witness.places.values())
        assert self.witness.overcommitted == []
        found = self.sandbox.list("Pod").items
        assert all(p["spec"].get("nodeName") for p in found)


@contextmanager
def opened() -> Iterator[World]:
    with ExitStack() as stack:
        yield World(stack)
