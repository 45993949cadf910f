"""The kinds this package knows: where each lives in the API, and what parses it.

To add a kind: a class with `from_dict` in one of the object modules, and a row here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from .cluster_objects import (
    Event,
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from .errors import InvalidObject, invalid, required
from .metadata import KubeObject
from .node import Node
from .pod import Pod
from .podgroup import PodGroup
from .reader import Raw
from .storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

__all__ = ["KINDS", "Kind", "kind_of", "parse_object"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object.

    Attributes:
        api_version: as written in manifests (`v1`, `storage.k8s.io/v1`).
        plural: the name in URLs.
        short_names: what kubectl also takes.
        type: the class that it is parsed into.
        also: further apiVersions under which the same kind is accepted.
    """

    kind: str
    api_version: str
    plural: str
    namespaced: bool
    type: type[KubeObject]
    short_names: tuple[str, ...] = ()
    also: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        """The API group, "" for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]

    @property
    def singular(self) -> str:
        return self.kind.lower()

    def parse(self, raw: Raw) -> KubeObject:
        """The object of this kind that `raw` describes; see `KubeObject.from_dict`."""
        return self.type.from_dict(raw)


def _table(*kinds: Kind) -> Mapping[str, Kind]:
    return MappingProxyType({kind.kind: kind for kind in kinds})


_STORAGE = "storage.k8s.io/v1"

#: kind -> Kind
KINDS: Final[Mapping[str, Kind]] = _table(
    Kind("Namespace", "v1", "namespaces", False, Namespace, ("ns",)),
    Kind("Node", "v1", "nodes", False, Node, ("no",)),
    Kind("Pod", "v1", "pods", True, Pod, ("po",)),
    Kind(
        "PodGroup",
        "scheduling.x-k8s.io/v1alpha1",
        "podgroups",
        True,
        PodGroup,
        ("pg", "pgs"),
    ),
    Kind(
        "PriorityClass",
        "scheduling.k8s.io/v1",
        "priorityclasses",
        False,
        PriorityClass,
        ("pc",),
    ),
    Kind("Event", "events.k8s.io/v1", "events", True, Event, ("ev",), also=("v1",)),
    Kind("Service", "v1", "services", True, Service, ("svc",)),
    Kind(
        "ReplicationController",
        "v1",
        "replicationcontrollers",
        True,
        ReplicationController,
        ("rc",),
    ),
    Kind("ReplicaSet", "apps/v1", "replicasets", True, ReplicaSet, ("rs",)),
    Kind("StatefulSet", "apps/v1", "statefulsets", True, StatefulSet, ("sts",)),
    Kind(
        "PodDisruptionBudget",
        "policy/v1",
        "poddisruptionbudgets",
        True,
        PodDisruptionBudget,
        ("pdb",),
    ),
    Kind("PersistentVolume", "v1", "persistentvolumes", False, PersistentVolume, ("pv",)),
    Kind(
        "PersistentVolumeClaim",
        "v1",
        "persistentvolumeclaims",
        True,
        PersistentVolumeClaim,
        ("pvc",),
    ),
    Kind("StorageClass", _STORAGE, "storageclasses", False, StorageClass, ("sc",)),
    Kind("CSINode", _STORAGE, "csinodes", False, CSINode),
    Kind("CSIDriver", _STORAGE, "csidrivers", False, CSIDriver),
    Kind(
        "CSIStorageCapacity",
        _STORAGE,
        "csistoragecapacities",
        True,
        CSIStorageCapacity,
    ),
    Kind("VolumeAttachment", _STORAGE, "volumeattachments", False, VolumeAttachment),
)


def kind_of(raw: object) -> Kind:
    """The kind of an object by its `kind` and `apiVersion`.

    Raises:
        InvalidObject: one of them is missing or not known here.
    """
    if not isinstance(raw, Mapping):
        raise InvalidObject("", invalid(raw, "must be an object"), raw)
    name, version = raw.get("kind"), raw.get("apiVersion")
    for key, found in (("kind", name), ("apiVersion", version)):
        if not isinstance(found, str) or not found:
            raise InvalidObject(key, required(), found)
    kind = KINDS.get(str(name))
    if kind is None:
        raise InvalidObject("kind", invalid(name, f"known kinds are {', '.join(KINDS)}"), name)
    if version != kind.api_version and version not in kind.also:
        known = " or ".join((kind.api_version, *kind.also))
        raise InvalidObject("apiVersion", invalid(version, f"{kind.kind} is {known}"), version)
    return kind


def parse_object(raw: Raw) -> KubeObject:
    """Parse an object of any known kind.

    Raises:
        InvalidObject: the kind is not known, or the object is malformed.
    """
    return kind_of(raw).parse(raw)
