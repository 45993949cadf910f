"""What is served under which path: the built-in kinds, and those of CustomResourceDefinitions."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from scheduler_core.api.native import NATIVE_POD_GROUP
from scheduler_core.ports import Json

from ..resources import RESOURCES, Resource
from .schema import Struct, struct

__all__ = ["ALL_VERBS", "BUILT_IN", "REVIEWS", "SCALE", "Catalog", "Served", "Subresource"]

ALL_VERBS: Final = (
    "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
)  # fmt: skip
_PART_VERBS: Final = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class Subresource:
    """A part of an object with a path of its own.

    Attributes:
        kind: what is sent and answered there; group and version where they are not the parent's.
    """

    name: str
    kind: str
    verbs: tuple[str, ...] = _PART_VERBS
    group: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """One resource of one API version.

    Attributes:
        resource: how the store knows it.
        struct: its fields; `open` for custom resources that keep what nobody described.
        unconditional: an update may leave out the resourceVersion.
        creates_on_update: an update of what is not there creates it.
        returns_deleted: a delete answers with the object, not with a Status.
        custom: it is described by a CustomResourceDefinition.
        columns: a custom resource's own columns of tables.
        fill: fills in what a custom resource's schema has defaults for.
        scale_paths: where a custom resource has the replicas that are wanted, those that are
            there, and the text of the selector.
    """

    resource: Resource
    group: str
    version: str
    plural: str
    kind: str
    singular: str
    namespaced: bool
    struct: Struct
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[Subresource, ...] = ()
    unconditional: bool = True
    creates_on_update: bool = False
    returns_deleted: bool = False
    custom: bool = False
    columns: tuple[Mapping[str, object], ...] = ()
    list_kind: str = ""
    fill: Callable[[Json], None] | None = None
    scale_paths: tuple[str, str, str] | None = None

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_name(self) -> str:
        return self.list_kind or f"{self.kind}List"

    @property
    def qualified(self) -> str:
        """The resource in messages: `pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def storage_hash(self) -> str:
        """What discovery calls the version that is stored (apiserver's StorageVersionHash)."""
        text = f"{self.group}/{self.version}/{self.kind}"
        return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()

    def subresource(self, name: str) -> Subresource | None:
        return next((part for part in self.subresources if part.name == name), None)


def _status(kind: str) -> Subresource:
    return Subresource("status", kind)


SCALE: Final = Subresource("scale", "Scale", _PART_VERBS, "autoscaling", "v1")


@dataclass(frozen=True, slots=True)
class _Row:
    """A built-in kind as the table below gives it; the rest is in the store's Resource."""

    kind: str
    short: str = ""
    in_all: bool = False
    status: bool = False
    scale: bool = False
    more: tuple[Subresource, ...] = ()
    unconditional: bool = True
    creates_on_update: bool = False
    returns_deleted: bool = False
    verbs: tuple[str, ...] = ALL_VERBS
    struct: str = ""
    api_version: str = ""
    stored: str = ""


_ROWS: Final = (
    _Row("ConfigMap", "cm"),
    _Row("Event", "ev", struct="CoreEvent", api_version="v1", creates_on_update=True),
    _Row(
        "Namespace",
        "ns",
        status=True,
        returns_deleted=True,
        verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
    ),
    _Row("Node", "no", status=True),
    _Row("PersistentVolumeClaim", "pvc", status=True, returns_deleted=True),
    _Row("PersistentVolume", "pv", status=True, returns_deleted=True),
    _Row(
        "Pod",
        "po",
        in_all=True,
        status=True,
        returns_deleted=True,
        more=(
            Subresource("binding", "Binding", ("create",)),
            Subresource("eviction", "Eviction", ("create",), "policy", "v1"),
        ),
    ),
    _Row("ReplicationController", "rc", in_all=True, status=True, scale=True),
    _Row("Service", "svc", in_all=True, status=True, returns_deleted=True, creates_on_update=True),
    _Row("Deployment", "deploy", in_all=True, status=True, scale=True),
    _Row("ReplicaSet", "rs", in_all=True, status=True, scale=True),
    _Row("StatefulSet", "sts", in_all=True, status=True, scale=True),
    _Row("Event", "ev", creates_on_update=True),
    _Row("Job", in_all=True, status=True),
    _Row("PodDisruptionBudget", "pdb", status=True, unconditional=False),
    _Row("CSIDriver", returns_deleted=True, unconditional=False),
    _Row("CSINode", returns_deleted=True, unconditional=False),
    _Row("CSIStorageCapacity", unconditional=False),
    _Row("StorageClass", "sc", returns_deleted=True),
    _Row("VolumeAttachment", status=True, returns_deleted=True, unconditional=False),
    _Row("CustomResourceDefinition", "crd crds", status=True, unconditional=False),
    _Row("PriorityClass", "pc"),
    _Row("PodGroup", stored=NATIVE_POD_GROUP, status=True),
    _Row("Workload"),
    _Row("DeviceClass"),
    _Row("ResourceClaim", status=True),
    _Row("ResourceClaimTemplate"),
    _Row("ResourceSlice"),
    _Row("Lease", creates_on_update=True, unconditional=False),
)

#: kinds that are answered and not stored: (group, version, plural) -> (kind, namespaced)
REVIEWS: Final[Mapping[tuple[str, str, str], tuple[str, bool]]] = MappingProxyType(
    {
        ("authentication.k8s.io", "v1", "selfsubjectreviews"): ("SelfSubjectReview", False),
        ("authorization.k8s.io", "v1", "localsubjectaccessreviews"): (
            "LocalSubjectAccessReview", True,
        ),
        ("authorization.k8s.io", "v1", "selfsubjectaccessreviews"): (
            "SelfSubjectAccessReview", False,
        ),
        ("authorization.k8s.io", "v1", "selfsubjectrulesreviews"): (
            "SelfSubjectRulesReview", False,
        ),
        ("authorization.k8s.io", "v1", "subjectaccessreviews"): ("SubjectAccessReview", False),
        ("", "v1", "bindings"): ("Binding", True),
    }
)  # fmt: skip


def _served(row: _Row) -> Served:
    resource = RESOURCES[row.stored or row.kind]
    group, _, version = (row.api_version or resource.api_version).rpartition("/")
    parts = (
        *row.more,
        *((SCALE,) if row.scale else ()),
        *((_status(row.kind),) if row.status else ()),
    )
    categories = ("all",) if row.in_all else ()
    if row.kind == "CustomResourceDefinition":
        categories = ("api-extensions",)
    return Served(
        resource,
        group,
        version,
        resource.plural,
        row.kind,
        row.kind.lower(),
        resource.namespaced,
        struct(row.struct or row.kind),
        tuple(row.short.split()),
        categories,
        row.verbs,
        parts,
        row.unconditional,
        row.creates_on_update,
        row.returns_deleted,
    )


#: the built-in resources, in the order in which discovery names them
BUILT_IN: Final = tuple(_served(row) for row in _ROWS)

#: the order of groups in discovery; custom ones follow
_GROUPS: Final = (
    "",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "batch",
    "policy",
    "storage.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "resource.k8s.io",
)


class Catalog:
    """What is served at one moment. It is made anew when a definition changes."""

    def __init__(self, custom: Sequence[Served] = ()) -> None:
        self.resources: tuple[Served, ...] = (*BUILT_IN, *custom)
        self._by_path = {(r.group, r.version, r.plural): r for r in self.resources}
        self._groups: dict[str, list[str]] = {group: [] for group in _GROUPS}
        versions = [(r.group, r.version) for r in self.resources]
        versions += [(group, version) for group, version, _ in REVIEWS]
        for group, version in versions:
            known = self._groups.setdefault(group, [])
            if version not in known:
                known.append(version)
        for known in self._groups.values():
            known.sort(key=_version_rank)

    def find(self, group: str, version: str, plural: str) -> Served | None:
        return self._by_path.get((group, version, plural))

    def by_kind(self, group: str, version: str, kind: str) -> Served | None:
        return next(
            (r for r in self.resources if (r.group, r.version, r.kind) == (group, version, kind)),
            None,
        )

    def of_version(self, group: str, version: str) -> list[Served]:
        """The resources of one version, by name."""
        found = [r for r in self.resources if (r.group, r.version) == (group, version)]
        return sorted(found, key=lambda r: r.plural)

    def groups(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Each group but the core one, with its versions, the preferred one first."""
        for group, versions in self._groups.items():
            if group:
                yield group, versions

    def versions(self, group: str) -> Sequence[str]:
        """Empty where there is no such group."""
        return self._groups.get(group, ())


def _version_rank(version: str) -> tuple[int, int, int]:
    """Stable before beta before alpha, the newest first."""
    number, _, rest = version.removeprefix("v").partition("alpha")
    stage = 2 if rest else 0
    if not rest:
        number, _, rest = version.removeprefix("v").partition("beta")
        stage = 1 if rest else 0
    digits = int(number) if number.isdigit() else 0
    return (stage, -digits, -int(rest) if rest.isdigit() else 0)
