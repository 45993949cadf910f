"""What is served, as clients ask for it: plain and aggregated discovery."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from scheduler_core.ports import Json

from .catalog import REVIEWS, Catalog, Served, Subresource

__all__ = ["AGGREGATED", "aggregated", "api_group", "api_groups", "api_versions", "resource_list"]

#: what a client that takes aggregated discovery says in its Accept header
AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"


def api_versions(address: str) -> Json:
    """`/api`."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def api_groups(catalog: Catalog) -> Json:
    """`/apis`."""
    groups = [_group(catalog, name) for name, _ in catalog.groups()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(catalog: Catalog, group: str) -> Json:
    """`/apis/<group>`."""
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(catalog, group)}


def _group(catalog: Catalog, group: str) -> Json:
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version}
        for version in catalog.versions(group)
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def resource_list(catalog: Catalog, group: str, version: str) -> Json:
    """`/api/v1`, `/apis/<group>/<version>`."""
    name = f"{group}/{version}" if group else version
    entries = [entry for _, entry in sorted(_entries(catalog, group, version), key=lambda e: e[0])]
    found: Json = {"kind": "APIResourceList", "groupVersion": name, "resources": entries}
    return {**found, "apiVersion": "v1"} if group else found


def _entries(catalog: Catalog, group: str, version: str) -> Iterator[tuple[str, Json]]:
    for served in catalog.of_version(group, version):
        yield served.plural, _resource(served)
        for part in served.subresources:
            name = f"{served.plural}/{part.name}"
            yield name, _subresource(served, part, name)
    for (of_group, of_version, plural), (kind, namespaced) in REVIEWS.items():
        if (of_group, of_version) == (group, version):
            yield (
                plural,
                {
                    "name": plural,
                    "singularName": kind.lower(),
                    "namespaced": namespaced,
                    "kind": kind,
                    "verbs": ["create"],
                },
            )


def _resource(served: Served) -> Json:
    found: dict[str, Any] = {
        "name": served.plural,
        "singularName": served.singular,
        "namespaced": served.namespaced,
        "kind": served.kind,
        "verbs": list(served.verbs),
        "storageVersionHash": served.storage_hash,
    }
    if served.short_names:
        found["shortNames"] = list(served.short_names)
    if served.categories:
        found["categories"] = list(served.categories)
    return found


def _subresource(served: Served, part: Subresource, name: str) -> Json:
    found: dict[str, Any] = {
        "name": name,
        "singularName": "",
        "namespaced": served.namespaced,
        "kind": part.kind,
        "verbs": list(part.verbs),
    }
    if part.group:
        found["group"], found["version"] = part.group, part.version
    return found


# -- aggregated ----------------------------------------------------------------------------------


def aggregated(catalog: Catalog, *, core: bool, version: str = "v2") -> Json:
    """`/api` or `/apis` with all resources at once (apidiscovery.k8s.io)."""
    names = [""] if core else [name for name, _ in catalog.groups()]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": [_discovered_group(catalog, name) for name in names],
    }


def _discovered_group(catalog: Catalog, group: str) -> Json:
    return {
        "metadata": {"name": group} if group else {},
        "versions": [
            {
                "version": version,
                "resources": _discovered(catalog, group, version),
                "freshness": "Current",
            }
            for version in catalog.versions(group)
        ],
    }


def _discovered(catalog: Catalog, group: str, version: str) -> list[Json]:
    found = [
        (served.plural, _discovered_resource(served))
        for served in catalog.of_version(group, version)
    ]
    for (of_group, of_version, plural), (kind, namespaced) in REVIEWS.items():
        if (of_group, of_version) == (group, version):
            found.append(
                (
                    plural,
                    {
                        "resource": plural,
                        "responseKind": _kind(kind),
                        "scope": _scope(namespaced),
                        "singularResource": kind.lower(),
                        "verbs": ["create"],
                    },
                )
            )
    return [entry for _, entry in sorted(found, key=lambda pair: pair[0])]


def _discovered_resource(served: Served) -> Json:
    kind = _kind(served.kind)
    if served.custom:
        kind = {"group": served.group, "version": served.version, "kind": served.kind}
    found: dict[str, Any] = {
        "resource": served.plural,
        "responseKind": kind,
        "scope": _scope(served.namespaced),
        "singularResource": served.singular,
        "verbs": list(served.verbs),
    }
    if served.short_names:
        found["shortNames"] = list(served.short_names)
    if served.categories:
        found["categories"] = list(served.categories)
    parts = sorted(served.subresources, key=lambda part: part.name)
    if parts:
        found["subresources"] = [
            {
                "subresource": part.name,
                "responseKind": _kind(part.kind, part.group, part.version)
                if not served.custom
                else kind,
                "verbs": list(part.verbs),
            }
            for part in parts
        ]
    return found


def _kind(kind: str, group: str = "", version: str = "") -> Json:
    return {"group": group, "version": version, "kind": kind}


def _scope(namespaced: bool) -> str:
    return "Namespaced" if namespaced else "Cluster"
