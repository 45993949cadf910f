"""The kinds that the sandbox stores, and how each behaves on the server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from scheduler_core.api.errors import FieldError
from scheduler_core.api.kinds import KINDS, find_kind
from scheduler_core.api.native import NATIVE_POD_GROUP
from scheduler_core.api.validation import validate
from scheduler_core.ports import Json

from .plain_kinds import PLAIN_KINDS

__all__ = ["RESOURCES", "Resource", "kind_name"]

#: kinds whose status is written through the status subresource alone
_WITH_STATUS: Final = frozenset(
    {
        NATIVE_POD_GROUP,
        "Deployment",
        "Job",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "PodDisruptionBudget",
        "PodGroup",
        "ReplicaSet",
        "ReplicationController",
        "Service",
        "StatefulSet",
        "VolumeAttachment",
    }
)

#: kinds whose metadata.generation counts the changes of what is asked for (kube-apiserver 1.36)
_WITH_GENERATION: Final = frozenset(
    {
        NATIVE_POD_GROUP,
        "Deployment",
        "Job",
        "Pod",
        "PodDisruptionBudget",
        "PodGroup",
        "PriorityClass",
        "ReplicaSet",
        "ReplicationController",
        "StatefulSet",
        "Workload",
    }
)


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind as the server knows it.

    Attributes:
        kind: the name by which the store knows it.
        written: `kind` in the objects themselves; two API groups may have kinds of one name.
        also: further apiVersions under which the same kind is accepted.
        validate: every fault of an object; none means that it is accepted.
        has_status: an update leaves the status alone, and a status patch leaves the rest alone.
        has_generation: changes of anything but metadata and status are counted.
    """

    kind: str
    api_version: str
    plural: str
    namespaced: bool
    written: str
    also: tuple[str, ...] = ()
    validate: Callable[[Json], list[FieldError]] = validate
    has_status: bool = False
    has_generation: bool = False

    @property
    def group(self) -> str:
        """The API group, "" for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def qualified(self) -> str:
        """The resource in messages: `pods`, `podgroups.scheduling.x-k8s.io`."""
        return f"{self.plural}.{self._said}" if self._said else self.plural

    @property
    def qualified_kind(self) -> str:
        """The kind in messages: `Pod`, `PodGroup.scheduling.x-k8s.io`."""
        return f"{self.written}.{self._said}" if self._said else self.written

    @property
    def _said(self) -> str:
        # Events are of the core group whenever the server speaks of them.
        return "" if self.kind == "Event" else self.group


#: kind -> Resource
RESOURCES: Final[Mapping[str, Resource]] = MappingProxyType(
    {
        kind.kind: Resource(
            kind.kind,
            kind.api_version,
            kind.plural,
            kind.namespaced,
            kind.written,
            kind.also,
            has_status=kind.kind in _WITH_STATUS,
            has_generation=kind.kind in _WITH_GENERATION,
        )
        for kind in KINDS.values()
    }
    | {
        plain.kind: Resource(
            plain.kind,
            plain.api_version,
            plain.plural,
            plain.namespaced,
            plain.kind,
            validate=plain.validate,
            has_status=plain.has_status,
            has_generation=plain.has_generation,
        )
        for plain in PLAIN_KINDS
    }
)


def kind_name(obj: Json) -> str:
    """The name by which the store knows an object's kind; as it is written where it is unknown."""
    written = str(obj.get("kind", ""))
    version = str(obj.get("apiVersion") or "")
    found = find_kind(written, version)
    group = version.rpartition("/")[0]
    if found is not None and (
        not version or group in {v.rpartition("/")[0] for v in found.versions}
    ):
        return found.kind
    if written in RESOURCES or not group:
        return written
    # A custom resource: kinds of one name may be in several groups.
    return f"{written}.{group}"
