"""OpenAPI documents: what kubectl checks manifests against, and how it learns what to merge.

v2 at `/openapi/v2` (JSON, and protobuf for whoever asks for it), v3 at `/openapi/v3/...`, one
document for each version of the API. Descriptions are left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

from scheduler_core.ports import Json

from .catalog import Catalog, Served
from .messages import JSON, TEXT, Answer, Request
from .openapi_proto import encode_document
from .schema import AnyType, Field, ListType, MapType, Scalar, Struct, Type, struct

__all__ = ["document"]

_PROTO: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_PROTO_V2: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_TIME: Final = f"{_META}.Time"
_MICRO_TIME: Final = f"{_META}.MicroTime"
_NOT_FOUND: Final = Answer(404, "404 page not found\n", TEXT)

_COMMON: Final[dict[str, Json]] = {
    _QUANTITY: {"type": "string"},
    _INT_OR_STRING: {"type": "string", "format": "int-or-string"},
    _TIME: {"type": "string", "format": "date-time"},
    _MICRO_TIME: {"type": "string", "format": "date-time"},
}
_SCALARS: Final[dict[str, Json]] = {
    "string": {"type": "string"},
    "boolean": {"type": "boolean"},
    "number": {"type": "number", "format": "double"},
}
_REFERENCES: Final = {
    "quantity": _QUANTITY,
    "int-or-string": _INT_OR_STRING,
    "time": _TIME,
    "microtime": _MICRO_TIME,
}


def document(catalog: Catalog, request: Request) -> Answer:
    """The document at the request's path."""
    path = request.path.rstrip("/")
    if path == "/openapi/v2":
        return _v2(catalog, request.headers.get("accept", ""))
    if path == "/openapi/v3":
        return Answer(200, _v3_index(catalog))
    for group, version in _versions(catalog):
        if path == f"/openapi/v3/{_group_path(group, version)}":
            return Answer(200, _v3(catalog, group, version))
    return _NOT_FOUND


def _v2(catalog: Catalog, accept: str) -> Answer:
    for clause in accept.split(","):
        media = clause.partition(";")[0].strip()
        if media in (_PROTO, _PROTO_V2):
            return Answer(200, _v2_proto(catalog), _PROTO_V2)
        if media in (JSON, "*/*", "application/*"):
            break
    return Answer(200, _v2_json(catalog), JSON)


@lru_cache(maxsize=2)
def _v2_json(catalog: Catalog) -> Json:
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1.36.2"},
        "paths": dict(_paths(catalog.resources, "#/definitions/", _v2_parameters, _v2_answer)),
        "definitions": _definitions(catalog.resources, "#/definitions/"),
    }


@lru_cache(maxsize=2)
def _v2_proto(catalog: Catalog) -> bytes:
    return encode_document(_v2_json(catalog))


def _versions(catalog: Catalog) -> Iterator[tuple[str, str]]:
    yield "", "v1"
    for group, versions in catalog.groups():
        for version in versions:
            yield group, version


def _group_path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


@lru_cache(maxsize=2)
def _v3_index(catalog: Catalog) -> Json:
    paths = {}
    for group, version in _versions(catalog):
        path = _group_path(group, version)
        text = json.dumps(_v3(catalog, group, version), sort_keys=True)
        digest = hashlib.sha512(text.encode()).hexdigest().upper()
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return {"paths": paths}


@lru_cache(maxsize=64)
def _v3(catalog: Catalog, group: str, version: str) -> Json:
    served = tuple(catalog.of_version(group, version))
    prefix = "#/components/schemas/"
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.2"},
        "paths": dict(_paths(served, prefix, _v3_parameters, _v3_answer)),
        "components": {"schemas": _definitions(served, prefix, v3=True)},
    }


# -- definitions ---------------------------------------------------------------------------------


def _definitions(served: tuple[Served, ...], prefix: str, *, v3: bool = False) -> dict[str, Json]:
    found: dict[str, Json] = dict(_COMMON)
    if v3:
        found[_INT_OR_STRING] = {
            "format": "int-or-string",
            "oneOf": [{"type": "integer"}, {"type": "string"}],
        }
        found[_QUANTITY] = {"oneOf": [{"type": "string"}, {"type": "number"}]}
    for each in served:
        _describe(found, each.struct, prefix)
        name = _name(each.struct)
        kind = {"group": each.group, "version": each.version, "kind": each.kind}
        found[name] = {**found[name], "x-kubernetes-group-version-kind": [kind]}
        found[f"{name}List"] = _list(each, prefix + name, prefix)
    for name in ("ListMeta", "DeleteOptions", "Status"):
        _describe(found, struct(name), prefix)
    return dict(sorted(found.items()))


def _list(served: Served, item: str, prefix: str) -> Json:
    kind = {"group": served.group, "version": served.version, "kind": served.list_name}
    return {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"$ref": f"{prefix}{_META}.ListMeta"},
            "items": {"type": "array", "items": {"$ref": item}},
        },
        "x-kubernetes-group-version-kind": [kind],
    }


def _name(of: Struct) -> str:
    # Events have a name of their own here, because two groups have them.
    return f"{of.package}.{'Event' if of.name == 'CoreEvent' else of.name}"


def _describe(found: dict[str, Json], of: Struct, prefix: str) -> None:
    name = _name(of)
    if name in found:
        return
    made: Json = {"type": "object"}
    found[name] = made  # first, as types may contain themselves
    properties = {
        field.name: _property(found, field, prefix)
        for field in sorted(of.fields.values(), key=lambda f: f.name)
    }
    if properties:
        made["properties"] = properties
    required = sorted(field.name for field in of.fields.values() if field.required)
    if required:
        made["required"] = required
    if of.atomic:
        made["x-kubernetes-map-type"] = "atomic"
    if of.open:
        made["x-kubernetes-preserve-unknown-fields"] = True


def _property(found: dict[str, Json], field: Field, prefix: str) -> Json:
    made = _type(found, field.type, prefix)
    if isinstance(field.type, ListType):
        made.update(_list_rules(field.type))
    elif isinstance(field.type, MapType) and field.type.atomic:
        made["x-kubernetes-map-type"] = "atomic"
    if field.retains_keys:
        known = made.get("x-kubernetes-patch-strategy")
        made["x-kubernetes-patch-strategy"] = f"{known},retainKeys" if known else "retainKeys"
    return made


def _list_rules(of: ListType) -> Json:
    made: Json = {"x-kubernetes-list-type": "map" if of.keys else "set" if of.is_set else "atomic"}
    if of.keys:
        made["x-kubernetes-list-map-keys"] = list(of.keys)
    if of.merge_key:
        made["x-kubernetes-patch-merge-key"] = of.merge_key
    if of.merge_key or of.merges_values:
        made["x-kubernetes-patch-strategy"] = "merge"
    return made


def _type(found: dict[str, Json], of: Type, prefix: str) -> Json:
    if isinstance(of, Struct):
        if not of.package:
            return _inline(found, of, prefix)
        _describe(found, of, prefix)
        return {"$ref": prefix + _name(of)}
    if isinstance(of, ListType):
        return {"type": "array", "items": _type(found, of.item, prefix)}
    if isinstance(of, MapType):
        return {"type": "object", "additionalProperties": _type(found, of.value, prefix)}
    if isinstance(of, AnyType):
        return {} if not of.atomic else {"x-kubernetes-preserve-unknown-fields": True}
    return _scalar(of, prefix)


def _inline(found: dict[str, Json], of: Struct, prefix: str) -> Json:
    """A part of a custom resource: it has no name of its own."""
    properties = {key: _property(found, field, prefix) for key, field in of.fields.items()}
    made: Json = {"type": "object"}
    if properties:
        made["properties"] = properties
    return made


def _scalar(of: Scalar, prefix: str) -> Json:
    if of.name == "integer":
        return {"type": "integer", "format": of.go}
    reference = _REFERENCES.get(of.name)
    return {"$ref": prefix + reference} if reference else dict(_SCALARS[of.name])


# -- paths ---------------------------------------------------------------------------------------

_PARAMETERS: Final = {
    "patch": ("dryRun", "fieldManager", "fieldValidation", "force"),
    "post": ("dryRun", "fieldManager", "fieldValidation"),
    "put": ("dryRun", "fieldManager", "fieldValidation"),
    "delete": ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"),
    "get": (),
}
_ACTIONS: Final = {"patch": "patch", "post": "post", "put": "put", "delete": "delete", "get": "get"}
_KINDS_OF: Final = {
    "force": "boolean",
    "orphanDependents": "boolean",
    "gracePeriodSeconds": "integer",
}


def _paths(
    served: tuple[Served, ...],
    prefix: str,
    parameters: Callable[[str], list[Json]],
    answer: Callable[[str], Json],
) -> Iterator[tuple[str, Json]]:
    for each in served:
        scope = "/namespaces/{namespace}" if each.namespaced else ""
        base = f"/{_group_path(each.group, each.version)}{scope}/{each.plural}"
        reference = prefix + _name(each.struct)

        def operations(
            methods: tuple[str, ...], each: Served = each, reference: str = reference
        ) -> Json:
            kind = {"group": each.group, "version": each.version, "kind": each.kind}
            return {
                method: {
                    "operationId": f"{method}{each.kind}",
                    "parameters": parameters(method),
                    "responses": {"200": answer(reference)},
                    "x-kubernetes-action": _ACTIONS[method],
                    "x-kubernetes-group-version-kind": kind,
                }
                for method in methods
            }

        yield base, operations(("get", "post"))
        yield f"{base}/{{name}}", operations(("delete", "get", "patch", "put"))


def _v2_parameters(method: str) -> list[Json]:
    return [
        {"name": name, "in": "query", "type": _KINDS_OF.get(name, "string")}
        for name in _PARAMETERS[method]
    ]


def _v3_parameters(method: str) -> list[Json]:
    return [
        {"name": name, "in": "query", "schema": {"type": _KINDS_OF.get(name, "string")}}
        for name in _PARAMETERS[method]
    ]


def _v2_answer(reference: str) -> Json:
    return {"description": "OK", "schema": {"$ref": reference}}


def _v3_answer(reference: str) -> Json:
    return {"description": "OK", "content": {JSON: {"schema": {"$ref": reference}}}}
