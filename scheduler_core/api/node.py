"""Node, parsed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from .metadata import Condition, KubeObject, read_conditions, read_metadata
from .reader import Reader, nothing
from .resource_names import scheduler_amounts
from .taints import Taint

__all__ = ["HOSTNAME_LABEL", "REGION_LABELS", "ZONE_LABELS", "Node", "NodeImage", "zone_key"]

HOSTNAME_LABEL: Final = "kubernetes.io/hostname"

#: the older label wins where a node has both (kube-scheduler 1.36, node tree)
ZONE_LABELS: Final = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
REGION_LABELS: Final = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")


@dataclass(frozen=True, slots=True)
class NodeImage:
    """An image that lies on a node: all its names, and its size in bytes."""

    names: tuple[str, ...]
    size: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Node(KubeObject):
    """A node.

    Attributes:
        allocatable, capacity: {resource: amount}, cpu in millicores, the rest in base units;
            only resources that the scheduler knows. Allocatable falls back to capacity if it is
            absent, as the API server does.
        zone_key: region and zone in one text, "" if it has neither (kube-scheduler's node tree).
    """

    provider_id: str = ""
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    allocatable: Mapping[str, int] = field(default_factory=nothing)
    capacity: Mapping[str, int] = field(default_factory=nothing)
    images: tuple[NodeImage, ...] = ()
    declared_features: frozenset[str] = frozenset()
    conditions: tuple[Condition, ...] = ()
    zone_key: str = ""

    def condition(self, type_: str) -> Condition | None:
        """Its condition of this type, if it has one."""
        return next((c for c in self.conditions if c.type == type_), None)

    @classmethod
    def read(cls, reader: Reader) -> Node:
        """Parse as far as possible; faults stay with the reader."""
        return _read_node(reader)


def zone_key(labels: Mapping[str, str]) -> str:
    """Region and zone of a node as one text; "" if it has neither label."""
    region = next((labels[key] for key in REGION_LABELS if key in labels), "")
    zone = next((labels[key] for key in ZONE_LABELS if key in labels), "")
    return f"{region}:\x00:{zone}" if region or zone else ""


def _read_node(reader: Reader) -> Node:
    spec = reader.child("spec")
    status = reader.child("status")
    meta = read_metadata(reader, namespaced=False)
    capacity = scheduler_amounts(status.quantities("capacity"))
    return Node(
        **meta,
        provider_id=spec.text("providerID"),
        unschedulable=spec.boolean("unschedulable"),
        taints=tuple(map(Taint.read, spec.items("taints"))),
        allocatable=scheduler_amounts(status.quantities("allocatable"))
        if status.has("allocatable")
        else capacity,
        capacity=capacity,
        images=tuple(
            NodeImage(entry.texts("names"), entry.integer("sizeBytes"))
            for entry in status.items("images")
        ),
        declared_features=frozenset(status.texts("declaredFeatures")),
        conditions=read_conditions(status),
        zone_key=zone_key(meta["labels"]),
    )
