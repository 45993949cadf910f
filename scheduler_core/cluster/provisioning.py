"""Volumes as a CSI provisioner makes them for a claim."""

from __future__ import annotations

from typing import Final

from scheduler_core.api import Node
from scheduler_core.api.storage import PersistentVolumeClaim, StorageClass
from scheduler_core.ports import Json

__all__ = ["PROVISIONED_BY", "new_volume"]

PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"

_ZONE: Final = "topology.kubernetes.io/zone"


def new_volume(
    claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node | None
) -> Json:
    """A PersistentVolume of exactly the size that the claim asks for, kept for it.

    It can be used where the class's topology, or else the zone, is that of `node`; without a node,
    in the first place that the class allows.
    """
    name = f"pvc-{claim.uid}"
    wanted = claim.raw["spec"]
    spec: Json = {
        "accessModes": list(claim.access_modes),
        "capacity": {"storage": wanted.get("resources", {}).get("requests", {}).get("storage")},
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": claim.namespace,
            "name": claim.name,
            "uid": claim.uid,
        },
        "csi": {"driver": storage_class.provisioner, "volumeHandle": name},
        "persistentVolumeReclaimPolicy": storage_class.raw.get("reclaimPolicy") or "Delete",
        "storageClassName": storage_class.name,
        "volumeMode": claim.volume_mode,
    }
    if claim.volume_attributes_class_name:
        spec["volumeAttributesClassName"] = claim.volume_attributes_class_name
    place = _place(storage_class, node)
    if place:
        terms = [{"matchExpressions": [_is_in(key, value) for key, value in sorted(place.items())]}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    annotations = {PROVISIONED_BY: storage_class.provisioner}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": spec}


def _is_in(key: str, value: str) -> Json:
    return {"key": key, "operator": "In", "values": [value]}


def _place(storage_class: StorageClass, node: Node | None) -> dict[str, str]:
    """{topology label: value} of where the volume is made."""
    allowed = storage_class.allowed_topologies
    if node is None:
        first = allowed.terms[0].match_expressions if allowed is not None else ()
        return {r.key: r.values[0] for r in first if r.values}
    keys = {_ZONE}
    if allowed is not None:
        keys = {r.key for term in allowed.terms for r in term.match_expressions}
    return {key: node.labels[key] for key in keys if key in node.labels}
