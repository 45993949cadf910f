"""Storage objects, as the volume plugins need them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from .metadata import KubeObject, read_metadata
from .quantity import nano_to_value
from .reader import Reader, nothing
from .selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    label_selector,
    node_requirement,
    node_selector,
)

__all__ = [
    "BIND_COMPLETED",
    "SELECTED_NODE",
    "CSIDriver",
    "CSINode",
    "CSIStorageCapacity",
    "ClaimReference",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "StorageClass",
    "VolumeAttachment",
]

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


@dataclass(frozen=True, slots=True)
class ClaimReference:
    """The claim that a volume is bound, or reserved, to."""

    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PersistentVolume(KubeObject):
    """A volume.

    Attributes:
        capacity: bytes.
        source: JSON key of its source (`csi`, `local`, `nfs`, ...), or "".
        driver, volume_handle: of a csi source, else "".
        node_affinity: None admits every node.
    """

    capacity: int = 0
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str = ""
    node_affinity: NodeSelector | None = None
    claim_ref: ClaimReference | None = None
    source: str = ""
    driver: str = ""
    volume_handle: str = ""
    phase: str = "Pending"

    def admits(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether it can be used on a node with these labels and this name."""
        return self.node_affinity is None or self.node_affinity.matches(labels, name)

    @classmethod
    def read(cls, reader: Reader) -> PersistentVolume:
        spec = reader.child("spec")
        csi = spec.child("csi")
        claim = spec.optional_child("claimRef")
        return cls(
            **read_metadata(reader, namespaced=False),
            capacity=nano_to_value(spec.quantities("capacity").get("storage", 0)),
            access_modes=spec.texts("accessModes"),
            storage_class_name=_storage_class(reader, spec) or "",
            volume_mode=spec.text("volumeMode") or "Filesystem",
            volume_attributes_class_name=spec.text("volumeAttributesClassName"),
            node_affinity=node_selector(spec.child("nodeAffinity"), "required"),
            claim_ref=None
            if claim is None
            else ClaimReference(claim.text("namespace"), claim.text("name"), claim.text("uid")),
            source=_volume_source(spec),
            driver=csi.text("driver"),
            volume_handle=csi.text("volumeHandle"),
            phase=reader.child("status").text("phase") or "Pending",
        )


_NO_SOURCE: Final = frozenset(
    (
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    )
)


def _volume_source(spec: Reader) -> str:
    return next((k for k, v in spec.raw.items() if k not in _NO_SOURCE and v is not None), "")


def _storage_class(reader: Reader, spec: Reader) -> str | None:
    """The class by the old annotation, else by the field; None if neither is there."""
    old = reader.child("metadata").text_map("annotations").get(_BETA_CLASS)
    if old is not None:
        return old
    return spec.text("storageClassName") if spec.has("storageClassName") else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PersistentVolumeClaim(KubeObject):
    """A claim.

    Attributes:
        request: bytes.
        storage_class_name: None if absent, "" if it explicitly asks for no class.
        selector: None if absent.
    """

    request: int = 0
    access_modes: tuple[str, ...] = ()
    storage_class_name: str | None = None
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str = ""
    volume_name: str = ""
    selector: LabelSelector | None = None
    phase: str = "Pending"

    @property
    def is_fully_bound(self) -> bool:
        """Whether it has a volume and the binding is complete."""
        return bool(self.volume_name) and BIND_COMPLETED in self.annotations

    @property
    def selected_node(self) -> str:
        """The node that the scheduler chose for provisioning, or ""."""
        return self.annotations.get(SELECTED_NODE, "")

    @classmethod
    def read(cls, reader: Reader) -> PersistentVolumeClaim:
        spec = reader.child("spec")
        requests = spec.child("resources").quantities("requests")
        return cls(
            **read_metadata(reader, namespaced=True),
            request=nano_to_value(requests.get("storage", 0)),
            access_modes=spec.texts("accessModes"),
            storage_class_name=_storage_class(reader, spec),
            volume_mode=spec.text("volumeMode") or "Filesystem",
            volume_attributes_class_name=spec.text("volumeAttributesClassName"),
            volume_name=spec.text("volumeName"),
            selector=label_selector(spec, "selector"),
            phase=reader.child("status").text("phase") or "Pending",
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StorageClass(KubeObject):
    """A storage class.

    Attributes:
        volume_binding_mode: None if absent (only in objects that no API server defaulted).
        allowed_topologies: None admits every node; terms are ORed.
    """

    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: NodeSelector | None = None

    @property
    def waits_for_consumer(self) -> bool:
        """Whether its claims are bound only when a pod is scheduled."""
        return self.volume_binding_mode == "WaitForFirstConsumer"

    def admits(self, labels: Mapping[str, str]) -> bool:
        """Whether allowedTopologies admit a node with these labels."""
        return self.allowed_topologies is None or self.allowed_topologies.matches(labels, "")

    @classmethod
    def read(cls, reader: Reader) -> StorageClass:
        terms = tuple(
            NodeSelectorTerm(
                tuple(
                    node_requirement(e.text("key"), "In", e.texts("values"))
                    for e in entry.items("matchLabelExpressions")
                )
            )
            for entry in reader.items("allowedTopologies")
        )
        return cls(
            **read_metadata(reader, namespaced=False),
            provisioner=reader.text("provisioner"),
            volume_binding_mode=reader.text("volumeBindingMode") or None,
            allowed_topologies=NodeSelector(terms) if terms else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CSINode(KubeObject):
    """CSI drivers of the node of the same name.

    Attributes:
        limits: {driver: volumes it can attach}; drivers without a limit are absent.
        drivers: names of all drivers.
    """

    limits: Mapping[str, int] = field(default_factory=nothing)
    drivers: tuple[str, ...] = ()

    @classmethod
    def read(cls, reader: Reader) -> CSINode:
        drivers = list(reader.child("spec").items("drivers"))
        limits = {}
        for driver in drivers:
            count = driver.child("allocatable").optional_integer("count")
            if count is not None:
                limits[driver.text("name")] = count
        return cls(
            **read_metadata(reader, namespaced=False),
            limits=limits,
            drivers=tuple(driver.text("name") for driver in drivers),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CSIDriver(KubeObject):
    """A CSI driver."""

    storage_capacity: bool = False
    attach_required: bool = True

    @classmethod
    def read(cls, reader: Reader) -> CSIDriver:
        spec = reader.child("spec")
        return cls(
            **read_metadata(reader, namespaced=False),
            storage_capacity=spec.boolean("storageCapacity"),
            attach_required=spec.boolean("attachRequired", True),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CSIStorageCapacity(KubeObject):
    """Free storage of a class in a part of the cluster; capacity, limit in bytes, None = unknown.

    Attributes:
        node_topology: nodes it speaks of; None selects none.
    """

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: int | None = None
    maximum_volume_size: int | None = None

    @property
    def limit(self) -> int | None:
        """The largest volume that can be made: maximumVolumeSize if set, else the capacity."""
        return self.capacity if self.maximum_volume_size is None else self.maximum_volume_size

    @classmethod
    def read(cls, reader: Reader) -> CSIStorageCapacity:
        capacity = reader.quantity("capacity")
        largest = reader.quantity("maximumVolumeSize")
        return cls(
            **read_metadata(reader, namespaced=True),
            storage_class_name=reader.text("storageClassName"),
            node_topology=label_selector(reader, "nodeTopology"),
            capacity=None if capacity is None else nano_to_value(capacity),
            maximum_volume_size=None if largest is None else nano_to_value(largest),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class VolumeAttachment(KubeObject):
    """A volume attached, or to be attached, to a node."""

    attacher: str = ""
    node_name: str = ""
    persistent_volume_name: str = ""
    attached: bool = False

    @classmethod
    def read(cls, reader: Reader) -> VolumeAttachment:
        spec = reader.child("spec")
        return cls(
            **read_metadata(reader, namespaced=False),
            attacher=spec.text("attacher"),
            node_name=spec.text("nodeName"),
            persistent_volume_name=spec.child("source").text("persistentVolumeName"),
            attached=reader.child("status").boolean("attached"),
        )
