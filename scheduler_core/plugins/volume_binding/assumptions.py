"""Volumes and claims as the scheduler writes them."""

from __future__ import annotations

from scheduler_core.api.storage import SELECTED_NODE, PersistentVolume, PersistentVolumeClaim
from scheduler_core.api.volume_matching import BOUND_BY_CONTROLLER, is_bound_to

__all__ = ["kept_for", "with_selected_node"]


def kept_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume with a reference to the claim; itself if nothing has to be changed."""
    chosen = not is_bound_to(volume, claim)
    complete = volume.claim_ref is not None and volume.claim_ref.uid == claim.uid
    if not chosen and complete:
        return volume
    metadata = dict(volume.raw["metadata"])
    if chosen:
        metadata["annotations"] = {**volume.annotations, BOUND_BY_CONTROLLER: "yes"}
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
        "resourceVersion": claim.resource_version,
    }
    spec = {**volume.raw["spec"], "claimRef": reference}
    return PersistentVolume.from_dict({**volume.raw, "metadata": metadata, "spec": spec})


def with_selected_node(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """The claim that asks its provisioner for a volume that the node can use."""
    annotations = {**claim.annotations, SELECTED_NODE: node_name}
    metadata = {**claim.raw["metadata"], "annotations": annotations}
    return PersistentVolumeClaim.from_dict({**claim.raw, "metadata": metadata})
