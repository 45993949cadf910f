"""Which CSI volumes a pod uses, by claim or directly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from scheduler_core.api import Pod, Volume
from scheduler_core.api.storage import PersistentVolumeClaim, VolumeAttachment
from scheduler_core.framework.interface import Handle
from scheduler_core.framework.status import Status, error, unresolvable
from scheduler_core.plugins.helpers.claims import claim_not_found, is_made_for, not_made_for
from scheduler_core.plugins.helpers.csi_migration import (
    csi_volume,
    driver_of_plugin,
    inline_volume,
    is_migratable,
)

__all__ = ["CsiVolumes", "Volumes"]

#: "driver/handle" -> driver
Volumes = Mapping[str, str]

#: In front of the made-up handle of a claim without a volume: no driver's handle begins like this.
_UNBOUND: Final = "\x00unbound"


class CsiVolumes:
    """Looks claims, volumes and classes up as the watch last showed them."""

    def __init__(self, handle: Handle) -> None:
        self._claims = handle.informer("PersistentVolumeClaim")
        self._volumes = handle.informer("PersistentVolume")
        self._classes = handle.informer("StorageClass")

    def of_pod(self, pod: Pod, *, has_csi_node: bool, is_new: bool) -> Volumes | Status:
        """The pod's volumes that count.

        Args:
            has_csi_node: whether the node in question has a CSINode; without one in-tree volumes
                are not counted.
            is_new: it is to be scheduled; then all of its claims must be there.

        Returns:
            Its volumes, or why they cannot be told.
        """
        found: dict[str, str] = {}
        for volume in pod.volumes:
            if volume.source in ("persistentVolumeClaim", "ephemeral"):
                known = self._by_claim(pod, volume, has_csi_node, is_new)
            else:
                known = _direct(volume, has_csi_node)
            if isinstance(known, Status):
                return known
            if known is not None and all(known):
                found["/".join(known)] = known[0]
        return found

    def of_attachment(self, attachment: VolumeAttachment) -> tuple[str, str] | None:
        """("driver/handle", driver) of a VolumeAttachment; None where it does not count."""
        if not attachment.attacher or not attachment.persistent_volume_name:
            return None
        volume = self._volumes.get(attachment.persistent_volume_name)
        if volume is None or volume.source != "csi":
            return None
        return f"{attachment.attacher}/{volume.volume_handle}", attachment.attacher

    def _by_claim(
        self, pod: Pod, volume: Volume, has_csi_node: bool, is_new: bool
    ) -> tuple[str, str] | Status | None:
        name = volume.claim_of(pod.name)
        if not name:
            return error("PersistentVolumeClaim had no name")
        claim = self._claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            text = f"looking up PVC {pod.namespace}/{name}: {claim_not_found(name)}"
            return unresolvable(text) if is_new else None
        if volume.is_ephemeral and not is_made_for(claim, pod):
            return error(not_made_for(claim, pod))
        return self._of_claim(claim, has_csi_node)

    def _of_claim(self, claim: PersistentVolumeClaim, has_csi_node: bool) -> tuple[str, str] | None:
        volume = self._volumes.get(claim.volume_name) if claim.volume_name else None
        if volume is None:
            return self._unbound(claim, has_csi_node)
        if is_migratable(volume) and not has_csi_node:
            return None
        try:
            return csi_volume(volume)
        except ValueError:
            return None

    def _unbound(self, claim: PersistentVolumeClaim, has_csi_node: bool) -> tuple[str, str] | None:
        """A volume that will be made by the class's provisioner, or that is not known yet."""
        found = self._classes.get(claim.storage_class_name) if claim.storage_class_name else None
        if found is None:
            return None
        handle = f"{_UNBOUND}-{claim.key}"
        driver = driver_of_plugin(found.provisioner)
        if driver is None:
            return found.provisioner, handle
        return (driver, handle) if has_csi_node else None


def _direct(volume: Volume, has_csi_node: bool) -> tuple[str, str] | Status | None:
    if not has_csi_node:
        return None
    try:
        return inline_volume(volume)
    except ValueError as fault:
        return error(f"converting volume({volume.name}) from inline to csi: {fault}")
