"""Volumes and capacities as the filters look at them, and what the filters say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from scheduler_core.api import KubeObject
from scheduler_core.api.storage import (
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from scheduler_core.framework.interface import Handle
from scheduler_core.framework.status import Status, unresolvable
from scheduler_core.plugins.volume_binding.assume_cache import AssumeCache

__all__ = [
    "StorageView",
    "rejection",
]

_BY_CLASS: Final = "VolumeBinding/class"

_NOT_ADMITTED: Final = "node(s) didn't match PersistentVolume's node affinity"
_NOTHING_TO_BIND: Final = "node(s) didn't find available persistent volumes to bind"
_NO_SPACE: Final = "node(s) did not have enough free storage"
_VOLUME_GONE: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


def rejection(
    *, not_admitted: bool, nothing_to_bind: bool, no_space: bool, volume_gone: bool
) -> Status:
    """The reasons that apply, in kube-scheduler's order."""
    reasons = (
        (not_admitted, _NOT_ADMITTED),
        (nothing_to_bind, _NOTHING_TO_BIND),
        (no_space, _NO_SPACE),
        (volume_gone, _VOLUME_GONE),
    )
    return unresolvable(*(text for applies, text in reasons if applies))


class StorageView:
    """Storage objects by the questions that are asked about them."""

    def __init__(self, handle: Handle, volumes: AssumeCache[PersistentVolume]) -> None:
        self._volumes = volumes
        handle.informer("PersistentVolume").add_indexer(_BY_CLASS, _class_of)
        self._csi_nodes = handle.informer("CSINode")
        self._drivers = handle.informer("CSIDriver")
        self._capacities = handle.informer("CSIStorageCapacity")
        self._capacities.add_indexer(_BY_CLASS, _class_of)

    def volume(self, name: str) -> PersistentVolume | None:
        return self._volumes.get(name)

    def volumes_of_class(self, name: str) -> list[PersistentVolume]:
        return self._volumes.by_index(_BY_CLASS, name)

    def csi_node(self, name: str) -> CSINode | None:
        found: CSINode | None = self._csi_nodes.get(name)
        return found

    def csi_nodes(self) -> Iterable[CSINode]:
        return self._csi_nodes.list()

    def capacities_for(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass
    ) -> list[CSIStorageCapacity] | None:
        """Where there is room for the claim's volume; None where that is not to be asked: the
        driver does not publish capacities, or the claim has no size."""
        driver = self._drivers.get(storage_class.provisioner)
        if driver is None or not driver.storage_capacity or not claim.request:
            return None
        known: Iterable[CSIStorageCapacity] = self._capacities.by_index(
            _BY_CLASS, storage_class.name
        )
        return [c for c in known if c.limit is not None and c.limit >= claim.request]


def _class_of(obj: KubeObject) -> tuple[str, ...]:
    return (str(getattr(obj, "storage_class_name", "")),)
