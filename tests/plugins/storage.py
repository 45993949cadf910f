"""Storage objects for tests, one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scheduler_core.api import Pod
from scheduler_core.api.storage import (
    BIND_COMPLETED,
    SELECTED_NODE,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

ZONE = "topology.kubernetes.io/zone"
DRIVER = "csi.example.com"
BY_HAND = "kubernetes.io/no-provisioner"

Terms = Sequence[Mapping[str, Any]]


def is_in(key: str, *values: str) -> dict[str, Any]:
    """A node selector term."""
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def volume(
    name: str,
    *,
    size: str = "10Gi",
    cls: str = "",
    claim: str = "",
    claim_uid: str = "",
    phase: str = "",
    terms: Terms | None = None,
    labels: Mapping[str, str] | None = None,
    handle: str = "",
    source: Mapping[str, Any] | None = None,
    terminating: bool = False,
    **spec: Any,
) -> PersistentVolume:
    """Available unless it has a claim ("name" in namespace default)."""
    body: dict[str, Any] = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": cls,
        **(source or {"csi": {"driver": DRIVER, "volumeHandle": handle or name}}),
        **spec,
    }
    if terms is not None:
        body["nodeAffinity"] = {"required": {"nodeSelectorTerms": list(terms)}}
    if claim:
        body["claimRef"] = {"namespace": "default", "name": claim, "uid": claim_uid}
    meta: dict[str, Any] = {"name": name, "uid": f"pv-{name}", "labels": dict(labels or {})}
    if terminating:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {"phase": phase or ("Bound" if claim else "Available")}
    return PersistentVolume.from_dict({"metadata": meta, "spec": body, "status": status})


def claim(
    name: str,
    *,
    bound: str = "",
    cls: str | None = "",
    size: str = "1Gi",
    modes: Sequence[str] = ("ReadWriteOnce",),
    selected: str | None = None,
    owner: Pod | None = None,
    namespace: str = "default",
    phase: str = "",
    terminating: bool = False,
    **spec: Any,
) -> PersistentVolumeClaim:
    """``bound``: the volume that it is bound to; ``selected``: its selected-node annotation."""
    body: dict[str, Any] = {
        "accessModes": list(modes),
        "resources": {"requests": {"storage": size}},
        **spec,
    }
    annotations: dict[str, str] = {}
    if cls is not None:
        body["storageClassName"] = cls
    if bound:
        body["volumeName"] = bound
        annotations[BIND_COMPLETED] = "yes"
    if selected is not None:
        annotations[SELECTED_NODE] = selected
    meta: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": f"pvc-{namespace}-{name}",
        "annotations": annotations,
    }
    if owner is not None:
        reference = {"apiVersion": "v1", "kind": "Pod", "name": owner.name, "uid": owner.uid}
        meta["ownerReferences"] = [{**reference, "controller": True}]
    if terminating:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {"phase": phase or ("Bound" if bound else "Pending")}
    return PersistentVolumeClaim.from_dict({"metadata": meta, "spec": body, "status": status})


def storage_class(
    name: str,
    provisioner: str = DRIVER,
    *,
    waits: bool = True,
    mode: str | None = "",
    allowed: Sequence[Mapping[str, Sequence[str]]] = (),
) -> StorageClass:
    """``allowed``: allowedTopologies, each {label: values}; ``mode`` None leaves the mode out."""
    raw: dict[str, Any] = {"metadata": {"name": name}, "provisioner": provisioner}
    if mode is not None:
        raw["volumeBindingMode"] = mode or ("WaitForFirstConsumer" if waits else "Immediate")
    if allowed:
        raw["allowedTopologies"] = [
            {"matchLabelExpressions": [{"key": k, "values": list(v)} for k, v in term.items()]}
            for term in allowed
        ]
    return StorageClass.from_dict(raw)


def csi_node(
    name: str,
    limits: Mapping[str, int | None] | None = None,
    migrated: str = "",
) -> CSINode:
    """``limits``: {driver: count, or None for a driver without limit}."""
    drivers = [
        {"name": driver, "nodeID": name}
        | ({} if count is None else {"allocatable": {"count": count}})
        for driver, count in (limits or {}).items()
    ]
    key = "storage.alpha.kubernetes.io/migrated-plugins"
    meta = {"name": name, "annotations": {key: migrated} if migrated else {}}
    return CSINode.from_dict({"metadata": meta, "spec": {"drivers": drivers}})


def csi_driver(name: str = DRIVER, *, capacity: bool) -> CSIDriver:
    return CSIDriver.from_dict({"metadata": {"name": name}, "spec": {"storageCapacity": capacity}})


def free_space(
    name: str,
    cls: str,
    size: str | None,
    *,
    largest: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> CSIStorageCapacity:
    """``labels``: of the nodes it speaks of; None for none."""
    raw: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "kube-system"},
        "storageClassName": cls,
    }
    if size is not None:
        raw["capacity"] = size
    if largest is not None:
        raw["maximumVolumeSize"] = largest
    if labels is not None:
        raw["nodeTopology"] = {"matchLabels": dict(labels)}
    return CSIStorageCapacity.from_dict(raw)


def attachment(
    name: str, node: str, persistent_volume: str, driver: str = DRIVER
) -> VolumeAttachment:
    source = {"persistentVolumeName": persistent_volume}
    spec = {"attacher": driver, "nodeName": node, "source": source}
    return VolumeAttachment.from_dict({"metadata": {"name": name}, "spec": spec})
