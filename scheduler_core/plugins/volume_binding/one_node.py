"""The plain form: which volumes a pod would use on one node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler_core.api import Node
from scheduler_core.api.storage import PersistentVolume, PersistentVolumeClaim
from scheduler_core.api.volume_matching import (
    can_be_bound,
    can_provision,
    is_bound_to,
    may_serve,
)
from scheduler_core.framework.status import Status, error
from scheduler_core.plugins.helpers.csi_migration import admits
from scheduler_core.plugins.volume_binding.pod_claims import (
    DelayedClaim,
    PodClaims,
    PodVolumes,
    StaticBinding,
)
from scheduler_core.plugins.volume_binding.volumes import StorageView, rejection

__all__ = ["find_pod_volumes"]


def find_pod_volumes(claims: PodClaims, node: Node, view: StorageView) -> PodVolumes | Status:
    """What to bind and to provision for the pod on this node, or why it cannot run there."""
    try:
        admitted, exist = _check_bound(claims, node, view)
    except ValueError as fault:
        return error(f"could not translate pv: {fault}")
    found, satisfied, has_space = _check_delayed(claims.delayed, node, view)
    if admitted and satisfied and has_space and exist:
        return found
    return rejection(
        not_admitted=not admitted,
        nothing_to_bind=not satisfied,
        no_space=not has_space,
        volume_gone=not exist,
    )


def _check_bound(claims: PodClaims, node: Node, view: StorageView) -> tuple[bool, bool]:
    """(the volumes admit the node, they exist); the first bad one decides."""
    csi_node = view.csi_node(node.name)
    for claim in claims.bound:
        volume = view.volume(claim.volume_name)
        if volume is None:
            return True, False
        if not admits(volume, node, csi_node):
            return False, True
    return True, True


def _check_delayed(
    delayed: Sequence[DelayedClaim], node: Node, view: StorageView
) -> tuple[PodVolumes, bool, bool]:
    """(volumes, whether there are some for all claims, whether there is space to make them)."""
    provisioning = [c for c in delayed if c.has_selected_node]
    if any(c.claim.selected_node != node.name for c in provisioning):
        return PodVolumes(), False, True
    bindings: list[StaticBinding] = []
    taken: dict[str, PersistentVolume] = {}
    others = (c for c in delayed if not c.has_selected_node)
    for wanted in sorted(others, key=lambda c: c.claim.request):
        volume = _find_volume(wanted.claim, view, node, taken)
        if volume is None:
            provisioning.append(wanted)
        else:
            taken[volume.name] = volume
            bindings.append(StaticBinding(volume, wanted.claim))
    for wanted in provisioning:
        allowed = wanted.storage_class.admits(node.labels)
        if not can_provision(wanted.storage_class) or not allowed:
            return PodVolumes(), False, True
        if not _has_space(wanted, node, view):
            return PodVolumes(), True, False
    made = tuple(wanted.claim for wanted in provisioning)
    return PodVolumes(tuple(bindings), made), True, True


def _find_volume(
    claim: PersistentVolumeClaim,
    view: StorageView,
    node: Node,
    taken: Mapping[str, PersistentVolume],
) -> PersistentVolume | None:
    """The volume that is kept for the claim, if the node suits it; else the smallest that fits."""
    smallest: PersistentVolume | None = None
    for volume in view.volumes_of_class(claim.storage_class_name or ""):
        if volume.name in taken or not may_serve(volume, claim):
            continue
        admitted = volume.admits(node.labels, "")
        if is_bound_to(volume, claim):
            return volume if admitted else None
        if not admitted or not can_be_bound(volume, claim):
            continue
        if smallest is None or volume.capacity < smallest.capacity:
            smallest = volume
    return smallest


def _has_space(wanted: DelayedClaim, node: Node, view: StorageView) -> bool:
    capacities = view.capacities_for(wanted.claim, wanted.storage_class)
    if capacities is None:
        return True
    topologies = (c.node_topology for c in capacities)
    return any(t is not None and t.matches(node.labels) for t in topologies)
