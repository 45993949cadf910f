"""A sandbox in virtual time with a kubelet, and a scheduler that takes the first node that fits."""

from __future__ import annotations

from typing import Any

from scheduler_core.api import (
    SCHEDULING_EFFECTS,
    Node,
    Pod,
    find_untolerated,
    host_ports,
    pod_requests,
)
from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.kubelet import SandboxKubelet
from scheduler_core.cluster.pod_group_status import PodGroupController
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.ports import PodCondition
from scheduler_core.workloads.base import Workload, WorkloadRunner

START = 1_800_000_000.0
Json = dict[str, Any]


class FirstFit:
    """Binds what fits, one pod after another; says so of what does not."""

    def __init__(self, cluster: SandboxCluster) -> None:
        self._cluster = cluster
        self._pods: dict[str, Pod] = {}
        self._seen = -1
        self.bound = 0

    def run(self) -> None:
        version = self._cluster.resource_version
        if version == self._seen:
            return
        nodes = [Node.from_dict(n) for n in self._cluster.list("Node").items]
        pods = [self._parsed(p) for p in self._cluster.list("Pod").items]
        self._place(nodes, pods)
        self._seen = self._cluster.resource_version

    def _parsed(self, raw: Json) -> Pod:
        uid = raw["metadata"]["uid"]
        known = self._pods.get(uid)
        if known is None or known.raw is not raw:
            known = self._pods[uid] = Pod.from_dict(raw)
        return known

    def _place(self, nodes: list[Node], pods: list[Pod]) -> None:
        used: dict[str, dict[str, int]] = {node.name: {} for node in nodes}
        for pod in pods:
            if pod.node_name in used and not pod.is_terminal:
                _add(used[pod.node_name], pod)
        for pod in pods:
            if pod.is_assigned or pod.scheduling_gates:
                continue
            found = next((n for n in nodes if _fits(pod, n, used[n.name])), None)
            if found is None:
                said = PodCondition("PodScheduled", "False", "Unschedulable", "no node")
                self._cluster.patch_pod_status(pod.namespace, pod.name, pod.uid, condition=said)
                continue
            self._cluster.bind(pod.namespace, pod.name, pod.uid, found.name)
            _add(used[found.name], pod)
            self.bound += 1


def _add(used: dict[str, int], pod: Pod) -> None:
    for name, amount in {**pod_requests(pod), "pods": 1}.items():
        used[name] = used.get(name, 0) + amount
    for port in host_ports(pod):
        used[f"port {port.port}"] = 1


def _fits(pod: Pod, node: Node, used: dict[str, int]) -> bool:
    if node.unschedulable or not pod.selects_node(node.labels, node.name):
        return False
    if find_untolerated(node.taints, pod.tolerations, SCHEDULING_EFFECTS) is not None:
        return False
    if any(f"port {port.port}" in used for port in host_ports(pod)):
        return False
    return all(
        used.get(name, 0) + amount <= node.allocatable.get(name, 0)
        for name, amount in {**pod_requests(pod), "pods": 1}.items()
    )


class World:
    """Everything that lives in a sandbox, step by step."""

    def __init__(self, workload: Workload, *, schedules: bool = True) -> None:
        self.clock = VirtualClock(START)
        self.cluster = SandboxCluster(self.clock, events_kept=0)
        self.runner = WorkloadRunner(workload, self.cluster)
        self.kubelet = SandboxKubelet(self.cluster, keep_terminal=50)
        self.groups = PodGroupController(self.cluster)
        self.scheduler = FirstFit(self.cluster) if schedules else None

    def run(self, seconds: float, step: float = 1.0) -> None:
        end = self.clock.now() + seconds
        while self.clock.now() < end:
            for part in (self.runner, self.kubelet, self.groups):
                deadline = part.next_deadline()
                if deadline is not None and deadline <= self.clock.now():
                    part.tick(self.clock.now())
            if self.scheduler is not None:
                self.scheduler.run()
            self.clock.advance(step)

    def pods(self) -> list[Json]:
        return list(self.cluster.list("Pod").items)
