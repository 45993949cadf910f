"""Kinds that a CustomResourceDefinition describes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from scheduler_core.api.errors import FieldError, invalid, unsupported
from scheduler_core.api.kinds import find_kind
from scheduler_core.ports import Json

from ..plain_kinds import named_faults
from ..resources import RESOURCES, Resource
from .catalog import Served, Subresource
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
        validate=lambda obj: [*named_faults(obj), *_faults(raw, obj, "", top=True)],
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
            columns=tuple(version.get("additionalPrinterColumns") or ()),
            list_kind=str(names.get("listKind") or ""),
        )
        for version in spec["versions"]
        if version.get("served")
    ]


def _subresources(kind: str, version: Json) -> Iterator[Subresource]:
    parts = version.get("subresources") or {}
    if "status" in parts:
        yield Subresource("status", kind)


def _schema_of(version: Json) -> Json:
    found = (version.get("schema") or {}).get("openAPIV3Schema")
    return found if isinstance(found, dict) else {"x-kubernetes-preserve-unknown-fields": True}


# -- fields --------------------------------------------------------------------------------------


def _struct_of(kind: str, group: str, version: Json) -> Struct:
    raw = _schema_of(version)
    made = _type_of(raw, kind)
    found = made if isinstance(made, Struct) else Struct(kind, group, open=True)
    found.package = ".".join([*reversed(group.split(".")), str(version["name"])])
    fields = {
        **found.fields,
        "apiVersion": _field("apiVersion", ANY),
        "kind": _field("kind", ANY),
        "metadata": _field("metadata", struct("ObjectMeta")),
    }
    found.fields = MappingProxyType(fields)
    return found


def _field(name: str, of: Type) -> Field:
    return Field(name, of, False, False, True)


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
        fields = {key: _field(key, _type_of(part, key.title())) for key, part in properties.items()}
        keeps = bool(raw.get("x-kubernetes-preserve-unknown-fields"))
        return Struct(name, "", MappingProxyType(fields), atomic, keeps)
    more = raw.get("additionalProperties")
    if isinstance(more, Mapping):
        return MapType(_type_of(more, f"{name}Value"), atomic)
    if raw.get("type") == "object" and not raw.get("x-kubernetes-preserve-unknown-fields"):
        return Struct(name, "", MappingProxyType({}), atomic, open=bool(more))
    return AnyType(atomic=atomic)


# -- validation ----------------------------------------------------------------------------------


def _faults(raw: Any, value: Any, path: str, *, top: bool = False) -> Iterator[FieldError]:
    """What a structural schema forbids (the part of OpenAPI v3 that definitions may use)."""
    if not isinstance(raw, Mapping):
        return
    if value is None and raw.get("nullable"):
        return
    wanted = raw.get("type")
    if wanted and not raw.get("x-kubernetes-int-or-string") and not _is_a(value, str(wanted)):
        shown = f"{path} in body must be of type {wanted}: {_type_name(value)!r}".replace("'", '"')
        yield path, invalid(_type_name(value), shown)
        return
    yield from _value_faults(raw, value, path)
    if isinstance(value, dict):
        yield from _member_faults(raw, value, path, top)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _faults(raw.get("items"), item, f"{path}[{index}]")


def _member_faults(
    raw: Mapping[str, Any], value: Json, path: str, top: bool
) -> Iterator[FieldError]:
    for key in raw.get("required") or ():
        if key not in value:
            yield f"{path}.{key}" if path else key, "Required value"
    properties, more = raw.get("properties") or {}, raw.get("additionalProperties")
    for key, part in value.items():
        if top and key in _IDENTITY:
            continue
        inner = properties.get(key, more)
        yield from _faults(inner, part, f"{path}.{key}" if path else key)


def _value_faults(raw: Mapping[str, Any], value: Any, path: str) -> Iterator[FieldError]:
    for rule, fits, words in _LIMITS:
        limit = raw.get(rule)
        if limit is not None and not fits(value, limit):
            yield path, invalid(value, f"{path} in body should {words.format(limit)}")
    if raw.get("enum") and value not in raw["enum"]:
        yield path, unsupported(value, raw["enum"])
    pattern = raw.get("pattern")
    if pattern and isinstance(value, str) and not _matches(str(pattern), value):
        yield path, invalid(value, f"{path} in body should match '{pattern}'")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_LIMITS: Final[tuple[tuple[str, Callable[[Any, Any], bool], str], ...]] = (
    ("minimum", lambda v, n: not _number(v) or v >= n, "be greater than or equal to {}"),
    ("maximum", lambda v, n: not _number(v) or v <= n, "be less than or equal to {}"),
    ("minLength", lambda v, n: not isinstance(v, str) or len(v) >= n, "be at least {} chars long"),
    ("maxLength", lambda v, n: not isinstance(v, str) or len(v) <= n, "be at most {} chars long"),
    ("minItems", lambda v, n: not isinstance(v, list) or len(v) >= n, "have at least {} items"),
    ("maxItems", lambda v, n: not isinstance(v, list) or len(v) <= n, "have at most {} items"),
)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern)
    except re.error:
        return None  # Go's expressions are not all Python's


def _matches(pattern: str, value: str) -> bool:
    compiled = _compiled(pattern)
    return compiled is None or compiled.search(value) is not None


def _is_a(value: Any, wanted: str) -> bool:
    if wanted == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if wanted == "number":
        return _number(value)
    kinds: dict[str, type] = {"string": str, "boolean": bool, "object": dict, "array": list}
    return isinstance(value, kinds.get(wanted, object))


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    names = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object"}
    return names.get(type(value), "array")
