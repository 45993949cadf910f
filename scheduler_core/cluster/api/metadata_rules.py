"""Faults of metadata, as kube-apiserver 1.36 finds and counts them.

Source: apimachinery's ValidateObjectMetaAccessor and ValidateObjectMetaAccessorUpdate. An update
is looked at by the registry and once more by the kind; each fault is told as often as it is seen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from scheduler_core.api.errors import FieldError, forbidden, invalid, required
from scheduler_core.api.syntax import (
    check_dns_label,
    check_dns_subdomain,
    check_label_key,
    check_label_value,
)
from scheduler_core.ports import Json

__all__ = ["created_faults", "updated_faults"]

Check = Callable[[str], str]

_LABEL_KEY: Final = "a valid label key"
_MOST_ANNOTATIONS: Final = 256 * 1024
_STANDARD_FINALIZERS: Final = frozenset(
    {"foregroundDeletion", "kubernetes", "orphan", "kubernetes.io/pv-protection"}
)
_FIXED: Final = ("name", "namespace", "uid", "creationTimestamp")


def _path_segment(name: str) -> str:
    if name in (".", ".."):
        return f"may not be '{name}'"
    found = [f"may not contain '{sign}'" for sign in ("/", "%") if sign in name]
    return "; ".join(found)


#: kinds whose names are not DNS subdomains
_NAMES: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "Event v1": _path_segment,
        "Namespace": check_dns_label,
        "PodDisruptionBudget": _path_segment,
        "Service": check_dns_label,
        "StatefulSet": check_dns_label,
    }
)
#: kinds of which the core API's own rules for metadata demand known or qualified finalizers
_CHECKED_BY_CORE: Final = frozenset(
    {
        "CSIDriver", "CSINode", "CSIStorageCapacity", "ConfigMap", "Deployment", "Event", "Job",
        "Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim", "Pod", "PodGroup",
        "PriorityClass", "ReplicaSet", "ReplicationController", "Service", "StatefulSet",
        "StorageClass", "VolumeAttachment", "Workload",
    }
)  # fmt: skip
#: kind -> how often an update looks at the metadata for itself, and beside what it was
_LOOKS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "CSIStorageCapacity", "ConfigMap", "Job", "Namespace", "Node",
                "PersistentVolumeClaim", "Pod", "StorageClass",
            ),
            (1, 1),
        ),
        "CSINode": (1, 0),
        "Event v1": (0, 0),
        "PersistentVolume": (2, 0),
        "PodDisruptionBudget": (0, 0),
        "VolumeAttachment": (1, 0),
    }
)  # fmt: skip


def created_faults(kind: str, metadata: Json) -> list[FieldError]:
    """`kind`: as in the paths of this module's tables; "Event v1" is the core group's."""
    return list(_faults(kind, metadata, _NAMES.get(kind, check_dns_subdomain)))


def updated_faults(kind: str, old: Json, new: Json) -> tuple[list[FieldError], list[FieldError]]:
    """What the registry says before the kind's own faults, and what the kind says."""
    alone, beside = _LOOKS.get(kind, (0, 1))
    # The names of objects that are there are not looked at again.
    own = [fault for fault in _faults(kind, new, _path_segment) if fault[0] != "metadata.name"]
    changed = list(_changes(old, new))
    return [*own, *changed], [*(own * alone), *(changed * beside)]


def _faults(kind: str, metadata: Json, check_name: Check) -> Iterator[FieldError]:
    yield from _name_faults(metadata, check_name)
    generation = metadata.get("generation")
    if isinstance(generation, int) and generation < 0:
        yield "metadata.generation", invalid(generation, "must be greater than or equal to 0")
    yield from _described_faults(metadata)
    is_core = kind in _CHECKED_BY_CORE
    for index, finalizer in enumerate(metadata.get("finalizers") or ()):
        yield from _finalizer_faults(index, str(finalizer), is_core)


def _described_faults(metadata: Json) -> Iterator[FieldError]:
    """Labels, annotations and owners, which both looks at an object take in."""
    labels = metadata.get("labels") or {}
    for key in sorted(labels):
        problem = check_label_key(key)
        if problem:
            # Newer code looks at the keys of labels, with a name of its own for them.
            yield "metadata.labels", invalid(key, problem.replace("a qualified name", _LABEL_KEY))
    for key in sorted(labels):
        problem = check_label_value(labels[key])
        if problem:
            yield "metadata.labels", invalid(labels[key], problem)
    yield from _annotation_faults(metadata.get("annotations") or {})
    yield from _owner_faults(metadata.get("ownerReferences") or [])


def _name_faults(metadata: Json, check_name: Check) -> Iterator[FieldError]:
    prefix, name = metadata.get("generateName"), metadata.get("name")
    if prefix:
        # A dash at the end is what generated names are for.
        problem = check_name(prefix[:-1] + "a" if prefix.endswith("-") else prefix)
        if problem:
            yield "metadata.generateName", _wrong_name(prefix, problem)
    if not name:
        yield "metadata.name", required("name or generateName is required")
        return
    for problem in filter(None, check_name(name).split("; ")):
        yield "metadata.name", _wrong_name(name, problem)


def _wrong_name(name: str, problem: str) -> str:
    # Long names are shown whole, and counted in characters.
    return f'Invalid value: "{name}": {problem.replace(" bytes", " characters")}'


def _annotation_faults(annotations: Mapping[str, Any]) -> Iterator[FieldError]:
    size = 0
    for key in sorted(annotations):
        problem = check_label_key(key.lower())
        if problem:
            yield "metadata.annotations", invalid(key, problem)
        size += len(key.encode()) + len(str(annotations[key]).encode())
    if size > _MOST_ANNOTATIONS:
        yield (
            "metadata.annotations",
            f"Too long: may not be more than {_MOST_ANNOTATIONS} bytes",
        )


def _owner_faults(owners: list[Json]) -> Iterator[FieldError]:
    path = "metadata.ownerReferences"
    for owner in owners:
        version = str(owner.get("apiVersion") or "")
        if not version.rpartition("/")[2]:
            yield f"{path}.apiVersion", invalid(version, "version must not be empty")
        for field in ("kind", "name", "uid"):
            if not owner.get(field):
                yield f"{path}.{field}", invalid(owner.get(field) or "", "must not be empty")
        if version == "v1" and owner.get("kind") == "Event":
            why = "/v1, Kind=Event is disallowed from being an owner"
            yield path, invalid(_as_go_writes(owner), why)
    controllers = [owner for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        why = (
            "Only one reference can have Controller set to true. Found "
            f'"true" in references for {controllers[0].get("kind")}/{controllers[0].get("name")} '
            f"and {controllers[1].get('kind')}/{controllers[1].get('name')}"
        )
        shown = json.dumps([_as_go_writes(owner) for owner in owners], separators=(",", ":"))
        yield path, f"Invalid value: {shown}: {why}"


def _as_go_writes(owner: Json) -> Json:
    order = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
    return {key: owner[key] for key in order if key in owner}


def _finalizer_faults(index: int, name: str, is_core: bool) -> Iterator[FieldError]:
    problem = check_label_key(name)
    if problem:
        yield "metadata.finalizers", invalid(name, problem)
        return
    if is_core and "/" not in name and name not in _STANDARD_FINALIZERS:
        why = "name is neither a standard finalizer name nor is it fully qualified"
        yield f"metadata.finalizers[{index}]", invalid(name, why)


def _changes(old: Json, new: Json) -> Iterator[FieldError]:
    if old.get("deletionTimestamp"):
        known = old.get("finalizers") or []
        added = [name for name in new.get("finalizers") or [] if name not in known]
        if added:
            why = (
                "no new finalizers can be added if the object is being deleted, found new "
                f"finalizers {_go_texts(added)}"
            )
            yield "metadata.finalizers", forbidden(why)
    gone = new.get("deletionTimestamp")
    if gone and gone != old.get("deletionTimestamp"):
        yield "metadata.deletionTimestamp", invalid(gone, "field is immutable")
    for field in _FIXED:
        if new.get(field) != old.get(field):
            yield f"metadata.{field}", invalid(new.get(field), "field is immutable")
    yield from _described_faults(new)


def _go_texts(texts: list[str]) -> str:
    shown = ", ".join(f'"{text}"' for text in texts)
    return f"[]string{{{shown}}}"
