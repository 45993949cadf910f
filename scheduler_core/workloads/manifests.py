"""Manifests of the nodes, pods and gangs that workloads make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler_core.api.pod import DEFAULT_SCHEDULER_NAME, POD_GROUP_LABEL
from scheduler_core.cluster.kubelet import RUN_SECONDS
from scheduler_core.ports import Json

__all__ = [
    "APPROVAL_LABEL",
    "GPU",
    "REQUESTED_BY",
    "WORKLOAD_LABEL",
    "gang",
    "member_label",
    "namespace",
    "node",
    "pod",
]

GPU = "nvidia.com/gpu"
APPROVAL_LABEL = "kubesched.io/approval"
REQUESTED_BY = "kubesched.io/requested-by"
#: on everything that a workload makes
WORKLOAD_LABEL = "kubesched.io/workload"

_READY = {
    "type": "Ready",
    "status": "True",
    "reason": "KubeletReady",
    "message": "kubelet is posting ready status",
}


def namespace(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def node(
    name: str,
    zone: str,
    amounts: Mapping[str, str],
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Json] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
) -> Json:
    """A node. `zone` is its region and one letter, or "-" and one; `images`: name -> bytes."""
    amounts = {"pods": "110", **amounts}
    spec: Json = {"providerID": f"sandbox://{name}"}
    if taints:
        spec["taints"] = list(taints)
    if unschedulable:
        spec["unschedulable"] = True
    status: Json = {"capacity": dict(amounts), "conditions": [dict(_READY)]}
    if images:
        status["images"] = [{"names": [image], "sizeBytes": size} for image, size in images.items()]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/region": zone[:-1].rstrip("-") or zone,
                "topology.kubernetes.io/zone": zone,
                **(labels or {}),
            },
        },
        "spec": spec,
        "status": status,
    }


def pod(
    name: str,
    in_namespace: str,
    requests: Mapping[str, str],
    *,
    workload: str,
    run_seconds: float | None,
    image: str,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Json | None = None,
    scheduler_name: str = DEFAULT_SCHEDULER_NAME,
) -> Json:
    """A pod with one container; it ends after `run_seconds`, or never (None)."""
    notes = dict(annotations or {})
    if run_seconds is not None:
        notes[RUN_SECONDS] = f"{run_seconds:g}"
    resources: Json = {"requests": dict(requests)}
    if GPU in requests:
        resources["limits"] = {GPU: requests[GPU]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": in_namespace,
            "labels": {WORKLOAD_LABEL: workload, **(labels or {})},
            "annotations": notes,
        },
        "spec": {
            "schedulerName": scheduler_name,
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": image, "resources": resources}],
            **(spec or {}),
        },
    }


def gang(
    name: str,
    in_namespace: str,
    min_member: int,
    *,
    workload: str,
    timeout_seconds: int | None = None,
    requested_by: str = "",
) -> Json:
    """A PodGroup; with `requested_by` it asks for a person's approval."""
    metadata: Json = {
        "name": name,
        "namespace": in_namespace,
        "labels": {WORKLOAD_LABEL: workload},
    }
    if requested_by:
        metadata["labels"][APPROVAL_LABEL] = "required"
        metadata["annotations"] = {REQUESTED_BY: requested_by}
    spec: Json = {"minMember": min_member}
    if timeout_seconds is not None:
        spec["scheduleTimeoutSeconds"] = timeout_seconds
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": spec,
    }


def member_label(gang_name: str) -> dict[str, str]:
    """What makes a pod a member of a gang of its namespace."""
    return {POD_GROUP_LABEL: gang_name}
