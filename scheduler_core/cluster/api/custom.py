"""Kinds that a CustomResourceDefinition describes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from scheduler_core.api.errors import FieldError, invalid
from scheduler_core.api.kinds import find_kind
from scheduler_core.ports import Json

from ..plain_kinds import named_faults
from ..resources import RESOURCES, Resource
from .catalog import SCALE, Served, Subresource
from .custom_schema import fill_defaults, schema_faults
from .json_paths import find_path
from .schema import ANY, AnyType, Field, ListType, MapType, Struct, Type, struct

__all__ = ["POD_GROUP_DEFINITION", "resource_of_definition", "served_by"]

#: the gang kind that every sandbox knows; users may look at it like at any other definition
POD_GROUP_DEFINITION: Final[Json] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "podgroups.scheduling.x-k8s.io",
        "annotations": {
            "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"
        },
    },
    "spec": {
        "group": "scheduling.x-k8s.io",
        "names": {
            "kind": "PodGroup",
            "listKind": "PodGroupList",
            "plural": "podgroups",
            "singular": "podgroup",
            "shortNames": ["pg", "pgs"],
        },
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "minMember": {
                                        "type": "integer", "format": "int32", "minimum": 1,
                                    },
                                    "minResources": {
                                        "type": "object",
                                        "additionalProperties": {
                                            "anyOf": [{"type": "integer"}, {"type": "string"}],
                                            "x-kubernetes-int-or-string": True,
                                        },
                                    },
                                    "scheduleTimeoutSeconds": {
                                        "type": "integer", "format": "int32",
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            },
                        },
                    }
                },
            }
        ],
    },
}  # fmt: skip

_IDENTITY: Final = ("apiVersion", "kind", "metadata")


def resource_of_definition(definition: Json) -> Resource:
    """How the store knows the kind; the sandbox's own kinds have their place there already."""
    spec = definition["spec"]
    names, group = spec["names"], str(spec["group"])
    kind = str(names["kind"])
    stored = next((v for v in spec["versions"] if v.get("storage")), spec["versions"][0])
    known = find_kind(kind, f"{group}/{stored['name']}")
    if known is not None and known.group == group:
        return RESOURCES[known.kind]
    raw = _schema_of(stored)
    return Resource(
        f"{kind}.{group}",
        f"{group}/{stored['name']}",
        str(names["plural"]),
        spec.get("scope") == "Namespaced",
        kind,
        tuple(f"{group}/{v['name']}" for v in spec["versions"] if v is not stored),
        validate=lambda obj: [
            *named_faults(obj),
            *schema_faults(raw, obj),
            *_scale_faults(stored, obj),
        ],
        has_status="status" in (stored.get("subresources") or {}),
        has_generation=True,
    )


def served_by(definition: Json) -> list[Served]:
    """Each version that a definition serves."""
    spec = definition["spec"]
    names = spec["names"]
    resource = resource_of_definition(definition)
    return [
        Served(
            resource,
            str(spec["group"]),
            str(version["name"]),
            resource.plural,
            str(names["kind"]),
            str(names.get("singular") or str(names["kind"]).lower()),
            resource.namespaced,
            _struct_of(str(names["kind"]), str(spec["group"]), version),
            tuple(names.get("shortNames") or ()),
            tuple(names.get("categories") or ()),
            subresources=tuple(_subresources(str(names["kind"]), version)),
            unconditional=False,
            custom=True,
            fill=partial(fill_defaults, _schema_of(version)),
            scale_paths=_scale_paths(version),
            columns=tuple(version.get("additionalPrinterColumns") or ()),
            list_kind=str(names.get("listKind") or ""),
        )
        for version in spec["versions"]
        if version.get("served")
    ]


def _subresources(kind: str, version: Json) -> Iterator[Subresource]:
    parts = version.get("subresources") or {}
    if "scale" in parts:
        yield SCALE
    if "status" in parts:
        yield Subresource("status", kind)


def _scale_paths(version: Json) -> tuple[str, str, str] | None:
    """Where the replicas wanted, those there, and the selector are; None without that part."""
    part = (version.get("subresources") or {}).get("scale")
    if part is None:
        return None
    fields = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
    wanted, there, selector = (str(part.get(field) or "") for field in fields)
    return wanted, there, selector


def _scale_faults(version: Json, obj: Json) -> list[FieldError]:
    paths = _scale_paths(version)
    replicas = find_path(obj, paths[0]) if paths else None
    if isinstance(replicas, int) and replicas < 0:
        return [(paths[0] if paths else "", invalid(replicas, "should be a non-negative integer"))]
    return []


def _schema_of(version: Json) -> Json:
    found = (version.get("schema") or {}).get("openAPIV3Schema")
    return found if isinstance(found, dict) else {"x-kubernetes-preserve-unknown-fields": True}


# -- fields --------------------------------------------------------------------------------------


def _struct_of(kind: str, group: str, version: Json) -> Struct:
    raw = _schema_of(version)
    made = _type_of(raw, kind)
    found = made if isinstance(made, Struct) else Struct(kind, group, open=True, lenient=True)
    found.package = ".".join([*reversed(group.split(".")), str(version["name"])])
    fields = {
        "apiVersion": _field("apiVersion", ANY),
        "kind": _field("kind", ANY),
        "metadata": _field("metadata", struct("ObjectMeta")),
        **{k: v for k, v in found.fields.items() if k not in _IDENTITY},
    }
    found.fields = MappingProxyType(fields)
    return found


def _field(name: str, of: Type, *, nullable: bool = False) -> Field:
    return Field(name, of, False, False, True, nullable=nullable)


def _nullable(raw: Any) -> bool:
    return isinstance(raw, Mapping) and bool(raw.get("nullable"))


def _type_of(raw: Any, name: str) -> Type:
    """Lists and maps as they are described; what a value is, validation says."""
    if not isinstance(raw, Mapping):
        return AnyType(atomic=False)
    if raw.get("type") == "array":
        item = _type_of(raw.get("items"), f"{name}Item")
        kind = raw.get("x-kubernetes-list-type", "atomic")
        keys = tuple(raw.get("x-kubernetes-list-map-keys") or ()) if kind == "map" else ()
        return ListType(item, keys, kind == "set")
    atomic = raw.get("x-kubernetes-map-type") == "atomic"
    properties = raw.get("properties")
    if isinstance(properties, Mapping):
        fields = {
            key: _field(key, _type_of(part, key.title()), nullable=_nullable(part))
            for key, part in properties.items()
        }
        keeps = bool(raw.get("x-kubernetes-preserve-unknown-fields"))
        return Struct(name, "", MappingProxyType(fields), atomic, keeps, lenient=True)
    more = raw.get("additionalProperties")
    if isinstance(more, Mapping):
        return MapType(_type_of(more, f"{name}Value"), atomic)
    if raw.get("type") == "object" and not raw.get("x-kubernetes-preserve-unknown-fields"):
        return Struct(name, "", MappingProxyType({}), atomic, open=bool(more), lenient=True)
    return AnyType(atomic=atomic)
