"""The kinds this package knows: where each lives in the API, and what parses it.

To add a kind: a class with `from_dict` in one of the object modules, and a row here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from .cluster_objects import (
    Deployment,
    Event,
    Job,
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
from .native import NATIVE_POD_GROUP, NativePodGroup, Workload
from .native.dialects import SERVED_VERSION, VERSIONS
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

__all__ = ["KINDS", "Kind", "find_kind", "kind_of", "parse_object"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object.

    Attributes:
        kind: its name in here; that in manifests, unless two API groups have kinds of one name.
        api_version: as written in manifests (`v1`, `storage.k8s.io/v1`).
        plural: the name in URLs.
        short_names: what kubectl also takes.
        type: the class that it is parsed into.
        also: further apiVersions under which the same kind is accepted.
        manifest_kind: the `kind` of manifests where it differs from `kind`; see `written`.
    """

    kind: str
    api_version: str
    plural: str
    namespaced: bool
    type: type[KubeObject]
    short_names: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    manifest_kind: str = ""

    @property
    def written(self) -> str:
        """The `kind` of manifests."""
        return self.manifest_kind or self.kind

    @property
    def versions(self) -> tuple[str, ...]:
        """Every apiVersion that is accepted."""
        return (self.api_version, *self.also)

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
        NATIVE_POD_GROUP,
        SERVED_VERSION,
        "podgroups",
        True,
        NativePodGroup,
        also=tuple(version for version in VERSIONS if version != SERVED_VERSION),
        manifest_kind="PodGroup",
    ),
    Kind(
        "Workload",
        SERVED_VERSION,
        "workloads",
        True,
        Workload,
        also=tuple(version for version in VERSIONS if version != SERVED_VERSION),
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
    Kind("Deployment", "apps/v1", "deployments", True, Deployment, ("deploy",)),
    Kind("StatefulSet", "apps/v1", "statefulsets", True, StatefulSet, ("sts",)),
    Kind("Job", "batch/v1", "jobs", True, Job),
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


#: kind as written in manifests -> those that it may be
_WRITTEN: Final[Mapping[str, tuple[Kind, ...]]] = MappingProxyType(
    {
        name: tuple(kind for kind in KINDS.values() if kind.written == name)
        for name in dict.fromkeys(kind.written for kind in KINDS.values())
    }
)


def find_kind(name: str, api_version: str) -> Kind | None:
    """The kind that manifests write so, by its API group; None if it is not known.

    Of kinds that share a name the first one is meant where the group does not tell.
    """
    candidates = _WRITTEN.get(name, ())
    group = api_version.rpartition("/")[0]
    served = [k for k in candidates if group in {v.rpartition("/")[0] for v in k.versions}]
    return next(iter((*served, *candidates)), None)


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
    kind = find_kind(str(name), str(version))
    if kind is None:
        known = ", ".join(_WRITTEN)
        raise InvalidObject("kind", invalid(name, f"known kinds are {known}"), name)
    if version not in kind.versions:
        known = " or ".join(v for k in _WRITTEN[kind.written] for v in k.versions)
        raise InvalidObject("apiVersion", invalid(version, f"{kind.written} is {known}"), version)
    return kind


def parse_object(raw: Raw) -> KubeObject:
    """Parse an object of any known kind.

    Raises:
        InvalidObject: the kind is not known, or the object is malformed.
    """
    return kind_of(raw).parse(raw)
