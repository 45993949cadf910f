"""NodeInfo: one node with the pods on it, summed up. The unit of cache and snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from scheduler_core.api import (
    NO_AFFINITY,
    HostPort,
    Node,
    Pod,
    assigned_requests,
    host_ports,
    nonzero_requests,
)

Key = TypeVar("Key")


class NodeInfo:
    """A node, its pods, and running sums of what they ask for.

    Invariants: ``requested``, ``nonzero_*``, ``used_ports``, ``pvc_ref_counts`` and the affinity
    lists are exactly the sums over ``pods``. Only the Cache (or the holder of a clone) calls the
    mutators. Removing a pod moves the last pod into its place, as the reference does; preemption's
    order depends on it.
    """

    __slots__ = (
        "content_generation",
        "generation",
        "image_sizes",
        "node",
        "nonzero_cpu",
        "nonzero_memory",
        "pods",
        "pods_with_affinity",
        "pods_with_required_anti_affinity",
        "pvc_ref_counts",
        "requested",
        "used_ports",
    )

    def __init__(self, node: Node | None = None, pods: tuple[Pod, ...] = ()) -> None:
        #: None for a ghost: pods are bound to a name of which no Node is known.
        self.node = node
        #: Changes whenever anything here changes; larger is newer. Set by the Cache.
        self.generation = 0
        #: Changes with what a plugin may read: not where a pod's status alone changed.
        self.content_generation = 0
        self.pods: list[Pod] = []
        self.pods_with_affinity: list[Pod] = []
        self.pods_with_required_anti_affinity: list[Pod] = []
        #: resource -> sum of requests (cpu in millicores, the rest in base units).
        self.requested: dict[str, int] = {}
        #: millicores and bytes, with 100m / 200Mi for containers that ask nothing.
        self.nonzero_cpu = 0
        self.nonzero_memory = 0
        self.used_ports: dict[HostPort, int] = {}
        #: "namespace/claim" -> number of pods on this node that name it. Claims of ephemeral
        #: volumes are not among them, as in kube-scheduler.
        self.pvc_ref_counts: dict[str, int] = {}
        #: image name -> (size in bytes, number of nodes that had it when this was copied).
        self.image_sizes: dict[str, tuple[int, int]] = {}
        for pod in pods:
            self.add_pod(pod)

    @property
    def name(self) -> str:
        return self.node.name if self.node is not None else ""

    @property
    def allocatable(self) -> Mapping[str, int]:
        """resource -> amount (cpu in millicores); empty for a ghost."""
        return self.node.allocatable if self.node is not None else {}

    @property
    def allowed_pod_number(self) -> int:
        return self.allocatable.get("pods", 0)

    def add_pod(self, pod: Pod) -> None:
        self.pods.append(pod)
        affinity = pod.affinity
        if affinity is not NO_AFFINITY:
            if affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None:
                self.pods_with_affinity.append(pod)
            if affinity.pod_anti_affinity is not None and affinity.pod_anti_affinity.required:
                self.pods_with_required_anti_affinity.append(pod)
        self._account(pod, 1)

    def remove_pod(self, pod: Pod) -> bool:
        """Take the pod with this uid off; False where it is not here."""
        mine = _swap_remove(self.pods, pod.uid)
        if mine is None:
            return False
        _swap_remove(self.pods_with_affinity, pod.uid)
        _swap_remove(self.pods_with_required_anti_affinity, pod.uid)
        self._account(mine, -1)
        return True

    def replace_pod(self, old: Pod, new: Pod) -> None:
        """``new`` is ``old`` that counts for the same. The order is as after ``remove_pod`` and
        ``add_pod``."""
        for pods in (self.pods, self.pods_with_affinity, self.pods_with_required_anti_affinity):
            if pods and _swap_remove(pods, old.uid) is not None:
                pods.append(new)

    def set_node(self, node: Node | None) -> None:
        self.node = node

    def clone(self) -> NodeInfo:
        """A copy that can be changed without changing this one; pods and nodes are shared."""
        twin = NodeInfo.__new__(NodeInfo)
        twin.node = self.node
        twin.generation = self.generation
        twin.content_generation = self.content_generation
        twin.pods = self.pods.copy()
        twin.pods_with_affinity = self.pods_with_affinity.copy()
        twin.pods_with_required_anti_affinity = self.pods_with_required_anti_affinity.copy()
        twin.requested = self.requested.copy()
        twin.nonzero_cpu = self.nonzero_cpu
        twin.nonzero_memory = self.nonzero_memory
        twin.used_ports = self.used_ports.copy()
        twin.pvc_ref_counts = self.pvc_ref_counts.copy()
        twin.image_sizes = self.image_sizes
        return twin

    def _account(self, pod: Pod, sign: int) -> None:
        requested = self.requested
        for name, amount in assigned_requests(pod).items():
            total = requested.get(name, 0) + sign * amount
            if total:
                requested[name] = total
            else:  # so that the sums are the same whatever has been here before
                requested.pop(name, None)
        cpu, memory = nonzero_requests(pod)
        self.nonzero_cpu += sign * cpu
        self.nonzero_memory += sign * memory
        for port in host_ports(pod):
            _count(self.used_ports, port, sign)
        for volume in pod.volumes:
            if volume.claim_name:
                _count(self.pvc_ref_counts, f"{pod.namespace}/{volume.claim_name}", sign)

    def __repr__(self) -> str:
        return f"NodeInfo({self.name!r}, pods={len(self.pods)}, generation={self.generation})"


def _count(counts: dict[Key, int], key: Key, sign: int) -> None:
    count = counts.get(key, 0) + sign
    if count > 0:
        counts[key] = count
    else:
        counts.pop(key, None)


def _swap_remove(pods: list[Pod], uid: str) -> Pod | None:
    for i, pod in enumerate(pods):
        if pod.uid == uid:
            last = pods.pop()
            if i < len(pods):
                pods[i] = last
            return pod
    return None
