"""Which volume may be bound to which claim: the scheduler and the binder of claims agree on it
(Kubernetes 1.36)."""

from __future__ import annotations

from typing import Final

from .storage import PersistentVolume, PersistentVolumeClaim, StorageClass

__all__ = ["BOUND_BY_CONTROLLER", "can_be_bound", "can_provision", "is_bound_to", "may_serve"]

#: Annotation of volumes and claims: whose counterpart was chosen for them, not by their user.
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"

#: The provisioner of classes whose volumes are made by hand.
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


def can_provision(storage_class: StorageClass) -> bool:
    """Whether somebody makes volumes of this class."""
    return storage_class.provisioner not in ("", _NO_PROVISIONER)


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is kept for, or bound to, this claim. A reference without uid, as users
    write it, means whatever claim has that name."""
    reference = volume.claim_ref
    if reference is None:
        return False
    if (reference.namespace, reference.name) != (claim.namespace, claim.name):
        return False
    return reference.uid in ("", claim.uid)


def may_serve(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """What even a volume that is kept for the claim has to meet. Its class is not looked at."""
    if volume.claim_ref is not None and not is_bound_to(volume, claim):
        return False
    return (
        volume.capacity >= claim.request
        and volume.volume_mode == claim.volume_mode
        and volume.volume_attributes_class_name == claim.volume_attributes_class_name
        and not volume.is_terminating
    )


def can_be_bound(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """What a volume has to meet beyond that if it is kept for nobody."""
    return (
        volume.phase == "Available"
        and (claim.selector is None or claim.selector.matches(volume.labels))
        and set(claim.access_modes) <= set(volume.access_modes)
    )
