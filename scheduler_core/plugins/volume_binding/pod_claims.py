"""A pod's claims by how they get their volumes."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.api import Pod, Volume
from scheduler_core.api.storage import (
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from scheduler_core.framework.interface import Informer
from scheduler_core.framework.status import SUCCESS, Status, error, unresolvable
from scheduler_core.plugins.helpers.claims import claim_not_found, is_made_for, not_made_for
from scheduler_core.plugins.volume_binding.assume_cache import AssumeCache

__all__ = [
    "DelayedClaim",
    "PodClaims",
    "PodVolumes",
    "StaticBinding",
    "check_claims",
    "sort_claims",
]


@dataclass(frozen=True, slots=True)
class DelayedClaim:
    """An unbound claim that waits for its first consumer, and its class."""

    claim: PersistentVolumeClaim
    storage_class: StorageClass

    @property
    def has_selected_node(self) -> bool:
        """Whether provisioning has been asked for already."""
        return SELECTED_NODE in self.claim.annotations


@dataclass(frozen=True, slots=True)
class PodClaims:
    """Attributes:
    bound: claims that have their volume.
    delayed: claims that the scheduler finds a volume for, or has one made.
    immediate: claims that somebody else has to bind first.
    """

    bound: tuple[PersistentVolumeClaim, ...] = ()
    delayed: tuple[DelayedClaim, ...] = ()
    immediate: tuple[PersistentVolumeClaim, ...] = ()


@dataclass(frozen=True, slots=True)
class StaticBinding:
    """A claim, and the existing volume for it."""

    volume: PersistentVolume
    claim: PersistentVolumeClaim


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """What has to be done for a pod's delayed claims on one node."""

    bindings: tuple[StaticBinding, ...] = ()
    provisions: tuple[PersistentVolumeClaim, ...] = ()


def check_claims(pod: Pod, claims: Informer) -> tuple[bool, Status]:
    """Whether the pod uses any claim, and why it cannot be scheduled with them (else Success)."""
    found = False
    for volume in pod.volumes:
        if volume.source not in ("persistentVolumeClaim", "ephemeral"):
            continue
        found = True
        fault = _fault(pod, volume, claims)
        if fault:
            return True, unresolvable(fault)
    return found, SUCCESS


def _fault(pod: Pod, volume: Volume, claims: Informer) -> str:
    name = volume.claim_of(pod.name)
    claim: PersistentVolumeClaim | None = claims.get(f"{pod.namespace}/{name}")
    if claim is None:
        missing = (
            f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        )
        return missing if volume.is_ephemeral else claim_not_found(name)
    if claim.phase == "Lost":
        gone = f'bound to non-existent persistentvolume "{claim.volume_name}"'
        return f'persistentvolumeclaim "{name}" {gone}'
    if claim.is_terminating:
        return f'persistentvolumeclaim "{name}" is being deleted'
    if volume.is_ephemeral and not is_made_for(claim, pod):
        return not_made_for(claim, pod)
    return ""


def sort_claims(
    pod: Pod, claims: AssumeCache[PersistentVolumeClaim], classes: Informer
) -> PodClaims | Status:
    """The pod's claims by kind, or an Error. ``check_claims`` has been through them before."""
    bound: list[PersistentVolumeClaim] = []
    delayed: list[DelayedClaim] = []
    immediate: list[PersistentVolumeClaim] = []
    for name in pod.claim_names():
        claim = claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            return error(f'error getting PVC "{pod.namespace}/{name}": {claim_not_found(name)}')
        if claim.is_fully_bound:
            bound.append(claim)
            continue
        class_name = claim.storage_class_name or ""
        found: StorageClass | None = classes.get(class_name) if class_name else None
        if found is not None and found.volume_binding_mode is None:
            return error(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        if found is not None and found.waits_for_consumer and not claim.volume_name:
            delayed.append(DelayedClaim(claim, found))
        else:
            immediate.append(claim)
    return PodClaims(tuple(bound), tuple(delayed), tuple(immediate))
