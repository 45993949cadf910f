"""The ClusterRoles against what a run against the Kubernetes API really asked for: not one verb
less, not one more."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from dashboard.models import SchedulerRun
from dashboard.observe.services import default_config
from dashboard.sandbox_api.serving import ApiThread, OneSandbox, Sandbox, token_hash
from scheduler_core.api import NATIVE_POD_GROUP
from scheduler_core.clock import RealClock
from scheduler_core.cluster.api.server import ApiServer
from scheduler_core.cluster.kubelet import SandboxKubelet
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.cluster.volume_controller import VolumeController
from scheduler_core.config import configuration_from, load_configuration
from scheduler_core.executor import KeyedThreadPool
from scheduler_core.kube.access import Token
from scheduler_core.kube.cluster import KubeCluster
from scheduler_core.kube.connect import connect
from scheduler_core.kube.election import LeaseSettings
from scheduler_core.observations import Observation
from scheduler_core.observing import ObservingScheduler
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.ports import Observer
from scheduler_core.scheduler import Scheduler
from scheduler_core.testing.builders import (
    make_native_pod_group,
    make_node,
    make_pod,
    make_priority_class,
)
from tests.deploy.manifests import objects
from tests.deploy.recording import Need, RecordingEndpoint

TOKEN = "t0ken"
PATIENCE = 30.0
CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "kubesched",
            "plugins": {
                "queueSort": {
                    "disabled": [{"name": "*"}],
                    "enabled": [{"name": "Coscheduling"}],
                },
                "multiPoint": {
                    "enabled": [
                        {"name": name}
                        for name in ("GangScheduling", "Coscheduling", "ManualApproval")
                    ]
                },
            },
        }
    ],
}


class World:
    """A sandbox behind its HTTP API, and a scheduler of it that is watched."""

    def __init__(self, stack: ExitStack, **options: Any) -> None:
        self.sandbox = stack.enter_context(SandboxCluster(RealClock()))
        server = ApiThread(OneSandbox(Sandbox(ApiServer(self.sandbox), token_hash(TOKEN))))
        server.start()
        stack.callback(server.stop)
        self.endpoint = RecordingEndpoint(connect(Token(server.url, TOKEN)))
        self.cluster = stack.enter_context(KubeCluster(self.endpoint, qps=-1, **options))
        self.parts: list[Any] = [
            VolumeController(self.sandbox),
            SandboxKubelet(self.sandbox, stop_seconds=0.0),
        ]
        for part in self.parts:
            stack.callback(part.stop)
        config = configuration_from(CONFIG, in_tree_registry())
        self.scheduler: Scheduler | ObservingScheduler = Scheduler(
            config, self.cluster, executor=KeyedThreadPool(8)
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        stack.callback(self._end)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        self.scheduler.start()
        self.scheduler.run(self._stop.is_set)
        self.scheduler.stop()

    def _end(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(PATIENCE)

    def create(self, kind: str, *builders: Any) -> None:
        for builder in builders:
            self.sandbox.create(kind, builder.raw() if hasattr(builder, "raw") else builder)

    def until(self, done: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not done():
            for part in self.parts:
                part.tick(time.time())
            assert time.monotonic() < end, f"not within {PATIENCE:g} s: {what}"
            time.sleep(0.02)

    def node_of(self, name: str) -> str:
        return str(self.sandbox.get("Pod", "default", name)["spec"].get("nodeName", ""))

    def uses(self, *need: str) -> Callable[[], bool]:
        return lambda: need in self.endpoint.used


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def pod(name: str, cpu: str = "1", group: str = "", priority: str = "") -> dict[str, Any]:
    builder = make_pod(name).req(cpu=cpu).scheduler_name("kubesched")
    raw = (builder.scheduling_group(group) if group else builder).raw()
    if priority:
        raw["spec"]["priorityClassName"] = priority
    return raw


def allowed(role: str) -> set[Need]:
    """Every single permission of a ClusterRole and of the Role of the same name."""
    found = [o for o in objects(role) if o["kind"] in ("ClusterRole", "Role")]
    assert found
    return {
        (group, resource, verb)
        for one in found
        for rule in one["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def lease() -> tuple[str, str]:
    """Name and namespace, of the configuration that a new run begins with."""
    config = load_configuration(default_config(SchedulerRun.Mode.SCHEDULE), in_tree_registry())
    election = config.leader_election
    return election.resource_name, election.resource_namespace


def test_the_lease_of_a_new_run_may_be_written() -> None:
    name, namespace = lease()
    (role,) = [o for o in objects("schedule") if o["kind"] == "Role"]
    (binding,) = [o for o in objects("schedule") if o["kind"] == "RoleBinding"]
    assert {role["metadata"]["namespace"], binding["metadata"]["namespace"]} == {namespace}
    named = [rule for rule in role["rules"] if rule["verbs"] != ["create"]]
    assert [rule["resourceNames"] for rule in named] == [[name]]


def test_schedule_may_do_what_scheduling_does(stack: ExitStack) -> None:
    world = World(stack)
    name, namespace = lease()
    elector = world.cluster.elect(LeaseSettings(name, namespace, 3.0, 2.0, 0.2), "worker-1")
    elector.start()
    stack.callback(elector.stop)
    world.until(lambda: elector.leads, "the lease is ours")
    world.create("Node", make_node("n").capacity(cpu="8", memory="8Gi").zone("a"))
    world.create("PriorityClass", make_priority_class("high", 10))
    _volumes(world)
    world.start()
    # A binding whose answer is lost is looked after.
    world.endpoint.lose_next_bind = True
    world.create("Pod", pod("plain", "2"))
    world.until(lambda: world.node_of("plain") == "n", "a pod is bound")
    # A gang.
    world.create(NATIVE_POD_GROUP, make_native_pod_group("g", 2))
    world.create("Pod", pod("one", group="g"), pod("two", group="g"))
    world.until(lambda: world.node_of("two") == "n", "a gang is bound")
    # A volume that is bound in advance.
    raw = make_pod("stateful").req(cpu=1).scheduler_name("kubesched").pvc("data").raw()
    world.create("Pod", raw)
    world.until(lambda: world.node_of("stateful") == "n", "a pod with a volume is bound")
    # One that is provisioned for it.
    raw = make_pod("dynamic").req(cpu=1).scheduler_name("kubesched").pvc("scratch").raw()
    world.create("Pod", raw)
    world.until(lambda: world.node_of("dynamic") == "n", "a volume is provisioned")
    # Preemption.
    world.create("Pod", pod("greedy", "2"))
    world.until(lambda: world.node_of("greedy") == "n", "the node is full")
    world.create("Pod", pod("urgent", "3", priority="high"))
    world.until(lambda: world.node_of("urgent") == "n", "a pod is preempted")
    # The same event again: a series.
    regarding = world.sandbox.get("Pod", "default", "urgent")
    words: Any = {"type": "Warning", "reason": "FailedScheduling", "action": "Scheduling"}
    for _ in range(3):
        world.cluster.emit_event(regarding, note="again", reporting_controller="kubesched", **words)
    world.until(world.uses("events.k8s.io", "events", "create"), "events are written")
    world.until(world.uses("events.k8s.io", "events", "patch"), "an event became a series")
    world.until(world.uses("coordination.k8s.io", "leases", "update"), "the lease is renewed")
    assert allowed("schedule") == world.endpoint.used


def _volumes(world: World) -> None:
    mode = {"volumeBindingMode": "WaitForFirstConsumer"}
    local = {"metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner", **mode}
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "local": {"path": "/data"},
        "nodeAffinity": {
            "required": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n"]}
                        ]
                    }
                ]
            }
        },
    }
    claim = {
        "storageClassName": "local",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    fast = {"metadata": {"name": "fast"}, "provisioner": "example.org/fast", **mode}
    world.create("StorageClass", local, fast)
    world.create("PersistentVolume", {"metadata": {"name": "pv"}, "spec": volume})
    world.create("PersistentVolumeClaim", {"metadata": {"name": "data"}, "spec": claim})
    provisioned = {**claim, "storageClassName": "fast"}
    world.create("PersistentVolumeClaim", {"metadata": {"name": "scratch"}, "spec": provisioned})


class Told(Observer):
    def __init__(self) -> None:
        self.of: list[Observation] = []

    def pod_observed(self, record: Observation) -> None:
        self.of.append(record)


def test_observe_reads_and_nothing_else(stack: ExitStack) -> None:
    """The observer of a new run, beside which another scheduler places pods."""
    world = World(stack)
    config = load_configuration(default_config(SchedulerRun.Mode.OBSERVE), in_tree_registry())
    told = Told()
    world.scheduler = ObservingScheduler(config, world.cluster, observers=[told])
    world.create("Node", make_node("n").capacity(cpu="8", memory="8Gi"))
    _volumes(world)
    world.start()
    world.until(lambda: world.scheduler.is_synced, "everything is listed")
    kinds = {need[1] for need in world.endpoint.used}
    for resource in kinds:
        world.until(
            lambda resource=resource: any(  # type: ignore[misc]
                need[1:] == (resource, "watch") for need in world.endpoint.used
            ),
            f"{resource} are watched",
        )
    raw = make_pod("theirs").req(cpu=1).pvc("data").raw()
    world.create("Pod", raw, pod("waiting", "100"))
    world.until(lambda: len(told.of) >= 2, "pods that wait are looked at")
    world.sandbox.bind("default", "theirs", "", "n")
    world.until(lambda: any(one.actual == "n" for one in told.of), "a placement is seen")
    role = allowed("observe")
    assert role == world.endpoint.used
    assert {verb for _, _, verb in role} == {"list", "watch"}
