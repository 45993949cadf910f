"""Faults of claims, volumes, storage classes and CSINodes (kube-apiserver 1.36,
pkg/apis/{core,storage} validation)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from scheduler_core.api.errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from scheduler_core.api.quantity import parse_nano
from scheduler_core.api.reader import Reader
from scheduler_core.api.selectors import label_selector
from scheduler_core.api.syntax import check_dns_subdomain, check_label_key
from scheduler_core.api.validation_selectors import label_selector_faults
from scheduler_core.ports import Json

from .common_rules import IMMUTABLE, Rule, as_json, changed_faults, choice_faults, name_faults
from .workload_rules import not_negative

__all__ = ["STORAGE_RULES"]

_ACCESS: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_MODES: Final = ("Block", "Filesystem")
_POSITIVE: Final = "must be greater than zero"


def _claim(old: Json | None, new: Json) -> Iterator[FieldError]:
    spec = new.get("spec") or {}
    modes = spec.get("accessModes") or []
    if not modes:
        yield "spec.accessModes", required("at least 1 access mode is required")
    yield from _access_faults(modes)
    yield from label_selector_faults("spec.selector", label_selector(Reader(spec), "selector"))
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if asked is None:
        yield "spec.resources[storage]", required()
    elif _nano(asked) <= 0:
        yield "spec.resources[storage]", invalid(asked, _POSITIVE)
    yield from name_faults(
        "spec.storageClassName", spec.get("storageClassName"), check_dns_subdomain
    )
    yield from choice_faults("spec.volumeMode", spec.get("volumeMode"), _MODES)
    yield from _claim_changes(old, spec)


def _claim_changes(old: Json | None, spec: Json) -> Iterator[FieldError]:
    if old is None:
        return
    before = old.get("spec") or {}
    # A volume may be named, and a class be filled in, once; sizes have a rule of their own.
    fixed = ("accessModes", "selector", "volumeMode", "dataSource", "dataSourceRef")
    once = ("volumeName", "storageClassName")
    moved = any(before.get(field) != spec.get(field) for field in fixed)
    moved = moved or any(
        before.get(field) and before.get(field) != spec.get(field) for field in once
    )
    is_bound = (old.get("status") or {}).get("phase") == "Bound"
    resized = before.get("resources") != spec.get("resources")
    if moved or (resized and not is_bound):
        why = (
            "spec is immutable after creation except resources.requests and "
            "volumeAttributesClassName for bound claims"
        )
        yield "spec", forbidden(why)
    have = ((old.get("status") or {}).get("capacity") or {}).get("storage")
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if resized and have and asked and _nano(asked) < _nano(have):
        path = "spec.resources.requests.storage"
        yield path, forbidden("field can not be less than status.capacity")


def _access_faults(modes: Sequence[str]) -> Iterator[FieldError]:
    for mode in modes:
        yield from choice_faults("spec.accessModes", mode, _ACCESS)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        why = "may not use ReadWriteOncePod with other access modes"
        yield "spec.accessModes", forbidden(why)


def _nano(quantity: Any) -> int:
    try:
        return parse_nano(quantity)
    except ValueError:
        return 0


_SOURCES: Final = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "rbd", "quobyte",
    "cephfs", "iscsi", "cinder", "fc", "flocker", "azureFile", "vsphereVolume", "azureDisk",
    "photonPersistentDisk", "portworxVolume", "scaleIO", "local", "storageos", "csi", "flexVolume",
)  # fmt: skip
_HOST_PATHS: Final = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate",
    "Socket",
)  # fmt: skip


def _volume(old: Json | None, new: Json) -> Iterator[FieldError]:
    spec = new.get("spec") or {}
    modes, capacity = spec.get("accessModes") or [], spec.get("capacity")
    if not modes:
        yield "spec.accessModes", required()
    yield from _access_faults(modes)
    if not capacity:
        yield "spec.capacity", required()
    if not capacity or list(capacity) != ["storage"]:
        yield "spec.capacity", unsupported(capacity, ("storage",))
    elif _nano(capacity["storage"]) <= 0:
        yield "spec.capacity[storage]", invalid(capacity["storage"], _POSITIVE)
    policy = spec.get("persistentVolumeReclaimPolicy")
    yield from choice_faults(
        "spec.persistentVolumeReclaimPolicy", policy, ("Delete", "Recycle", "Retain")
    )
    yield from _affinity_faults(spec)
    yield from _source_faults(spec)
    yield from name_faults(
        "spec.storageClassName", spec.get("storageClassName"), check_dns_subdomain
    )
    yield from choice_faults("spec.volumeMode", spec.get("volumeMode"), _MODES)
    before = (old or {}).get("spec") or {}
    if old is not None and any(before.get(s) != spec.get(s) for s in _SOURCES):
        why = "spec.persistentvolumesource is immutable after creation"
        yield "spec.persistentvolumesource", forbidden(why)
    if old is not None and before.get("volumeMode") != spec.get("volumeMode"):
        yield "volumeMode", invalid(spec.get("volumeMode"), IMMUTABLE)
    if before.get("nodeAffinity") and before["nodeAffinity"] != spec.get("nodeAffinity"):
        why = f"{IMMUTABLE}, except for updating from beta label to GA"
        yield "nodeAffinity", invalid(spec.get("nodeAffinity"), why)


def _affinity_faults(spec: Json) -> Iterator[FieldError]:
    affinity = spec.get("nodeAffinity")
    if affinity is not None and not affinity.get("required"):
        path = "spec.nodeAffinity.required"
        yield path, required("must specify required node constraints")


def _source_faults(spec: Json) -> Iterator[FieldError]:
    given = [source for source in _SOURCES if spec.get(source) is not None]
    if not given:
        yield "spec", required("must specify a volume type")
    for source in given[1:]:
        yield f"spec.{source}", forbidden("may not specify more than 1 volume type")
    if given[:1] == ["hostPath"]:
        place = spec["hostPath"]
        if not place.get("path"):
            yield "spec.hostPath.path", required()
        yield from choice_faults("spec.hostPath.type", place.get("type"), _HOST_PATHS)
    if given[:1] == ["csi"]:
        for field in ("driver", "volumeHandle"):
            if not spec["csi"].get(field):
                yield f"spec.csi.{field}", required()
    if given[:1] == ["local"] and spec.get("nodeAffinity") is None:
        yield "spec.nodeAffinity", required("Local volume requires node affinity")


def _storage_class(old: Json | None, new: Json) -> Iterator[FieldError]:
    provisioner = new.get("provisioner")
    if not provisioner:
        yield "provisioner", required()
    else:
        yield from name_faults("provisioner", provisioner.lower(), check_label_key)
    if any(not key for key in new.get("parameters") or {}):
        yield "parameters", invalid("", "field can not be empty.")
    yield from choice_faults("reclaimPolicy", new.get("reclaimPolicy"), ("Delete", "Retain"))
    binding = new.get("volumeBindingMode")
    yield from choice_faults("volumeBindingMode", binding, ("Immediate", "WaitForFirstConsumer"))
    yield from changed_faults(
        old, new, ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
    )


def _csi_node(old: Json | None, new: Json) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, driver in enumerate((new.get("spec") or {}).get("drivers") or []):
        path = f"spec.drivers[{index}]"
        name = str(driver.get("name") or "")
        if not name:
            yield f"{path}.name", required()
        else:
            yield from name_faults(f"{path}.name", name.lower(), check_dns_subdomain)
        if not driver.get("nodeID"):
            yield f"{path}.nodeID", required()
        yield from not_negative(driver.get("allocatable") or {}, f"{path}.allocatable", ("count",))
        yield from _topology_faults(path, driver.get("topologyKeys") or [])
        if name and name in names:
            yield f"{path}.name", duplicate(name)
        names.add(name)
    yield from _driver_changes(old, new)


def _driver_changes(old: Json | None, new: Json) -> Iterator[FieldError]:
    """Drivers come and go; what is said of one stays, but for its capacity."""
    known = {d.get("name"): d for d in ((old or {}).get("spec") or {}).get("drivers") or []}
    for driver in (new.get("spec") or {}).get("drivers") or []:
        before = known.get(driver.get("name"))
        fixed = ("nodeID", "topologyKeys")
        if before and any(before.get(field) != driver.get(field) for field in fixed):
            names = ("Name", "name"), ("NodeID", "nodeID"), ("TopologyKeys", "topologyKeys")
            parts = [f'"{go}":{as_json(driver.get(field))}' for go, field in names]
            parts.append(f'"Allocatable":{as_json(driver.get("allocatable"))}')
            yield "spec.drivers", f"Invalid value: {{{','.join(parts)}}}: {IMMUTABLE}"


def _topology_faults(path: str, keys: Sequence[str]) -> Iterator[FieldError]:
    for index, key in enumerate(keys):
        if not key:
            yield path, required()
        elif key in keys[:index]:
            yield path, duplicate(key)
        yield from name_faults(path, key, check_label_key)


#: kind -> its rules
STORAGE_RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "CSINode": _csi_node,
        "PersistentVolume": _volume,
        "PersistentVolumeClaim": _claim,
        "StorageClass": _storage_class,
    }
)
