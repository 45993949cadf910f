"""Faults of the smaller kinds: storage, budgets, priorities, services, config maps, namespaces
(kube-apiserver 1.36, pkg/apis/{core,storage,policy,scheduling} validation)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from scheduler_core.api.syntax import check_dns_label, check_dns_subdomain, check_label_key
from scheduler_core.api.validation_selectors import label_faults, label_selector_faults
from scheduler_core.ports import Json

from .workload_rules import int_or_percent_faults, not_negative

__all__ = ["SMALL_RULES", "Rule"]

#: (the object that is there or None, the new one) -> faults
Rule = Callable[[Json | None, Json], Iterator[FieldError]]

_IMMUTABLE: Final = "field is immutable"
_ACCESS: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_MODES: Final = ("Block", "Filesystem")
_POSITIVE: Final = "must be greater than zero"


def _changed(
    old: Json | None, new: Json, fields: Sequence[str], path: str = ""
) -> Iterator[FieldError]:
    for field in fields if old is not None else ():
        if (old or {}).get(field) != new.get(field):
            yield f"{path}{field}", invalid(new.get(field), _IMMUTABLE)


def _one_of(path: str, value: Any, choices: Sequence[str]) -> Iterator[FieldError]:
    if value is not None and value not in choices:
        yield path, unsupported(value, choices)


def _named(path: str, value: Any, check: Callable[[str], str]) -> Iterator[FieldError]:
    problem = check(value) if value else ""
    if problem:
        yield path, invalid(value, problem)


# -- storage -------------------------------------------------------------------------------------


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
    yield from _named("spec.storageClassName", spec.get("storageClassName"), check_dns_subdomain)
    yield from _one_of("spec.volumeMode", spec.get("volumeMode"), _MODES)
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
        yield from _one_of("spec.accessModes", mode, _ACCESS)
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
    yield from _one_of(
        "spec.persistentVolumeReclaimPolicy", policy, ("Delete", "Recycle", "Retain")
    )
    yield from _affinity_faults(spec)
    yield from _source_faults(spec)
    yield from _named("spec.storageClassName", spec.get("storageClassName"), check_dns_subdomain)
    yield from _one_of("spec.volumeMode", spec.get("volumeMode"), _MODES)
    before = (old or {}).get("spec") or {}
    if old is not None and any(before.get(s) != spec.get(s) for s in _SOURCES):
        why = "spec.persistentvolumesource is immutable after creation"
        yield "spec.persistentvolumesource", forbidden(why)
    if old is not None and before.get("volumeMode") != spec.get("volumeMode"):
        yield "volumeMode", invalid(spec.get("volumeMode"), _IMMUTABLE)
    if before.get("nodeAffinity") and before["nodeAffinity"] != spec.get("nodeAffinity"):
        why = f"{_IMMUTABLE}, except for updating from beta label to GA"
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
        yield from _one_of("spec.hostPath.type", place.get("type"), _HOST_PATHS)
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
        yield from _named("provisioner", provisioner.lower(), check_label_key)
    if any(not key for key in new.get("parameters") or {}):
        yield "parameters", invalid("", "field can not be empty.")
    yield from _one_of("reclaimPolicy", new.get("reclaimPolicy"), ("Delete", "Retain"))
    binding = new.get("volumeBindingMode")
    yield from _one_of("volumeBindingMode", binding, ("Immediate", "WaitForFirstConsumer"))
    yield from _changed(
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
            yield from _named(f"{path}.name", name.lower(), check_dns_subdomain)
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
            parts = [f'"{go}":{_json(driver.get(field))}' for go, field in names]
            parts.append(f'"Allocatable":{_json(driver.get("allocatable"))}')
            yield "spec.drivers", f"Invalid value: {{{','.join(parts)}}}: {_IMMUTABLE}"


def _topology_faults(path: str, keys: Sequence[str]) -> Iterator[FieldError]:
    for index, key in enumerate(keys):
        if not key:
            yield path, required()
        elif key in keys[:index]:
            yield path, duplicate(key)
        yield from _named(path, key, check_label_key)


# -- budgets and priorities ----------------------------------------------------------------------


def _budget(old: Json | None, new: Json) -> Iterator[FieldError]:
    spec = new.get("spec") or {}
    for field in ("minAvailable", "maxUnavailable"):
        value = spec.get(field)
        yield from int_or_percent_faults(f"spec.{field}", value)
        if isinstance(value, str) and re.fullmatch("[0-9]+%", value) and int(value[:-1]) > 100:
            yield f"spec.{field}", invalid(value, "must not be greater than 100%")
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        why = "minAvailable and maxUnavailable cannot be both set"
        yield "spec", f"Invalid value: {_budget_as_go_writes(spec)}: {why}"
    yield from label_selector_faults("spec.selector", label_selector(Reader(spec), "selector"))
    policy = spec.get("unhealthyPodEvictionPolicy")
    choices = ("AlwaysAllow", "IfHealthyBudget")
    yield from _one_of("spec.unhealthyPodEvictionPolicy", policy, choices)
    counts = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    yield from not_negative(new.get("status") or {}, "status", counts)


def _budget_as_go_writes(spec: Json) -> str:
    names = {
        "MinAvailable": "minAvailable", "Selector": "selector", "MaxUnavailable": "maxUnavailable",
        "UnhealthyPodEvictionPolicy": "unhealthyPodEvictionPolicy",
    }  # fmt: skip
    parts = (f'"{go}":{_json(spec.get(field))}' for go, field in names.items())
    return "{" + ",".join(parts) + "}"


def _json(value: Any) -> str:
    return invalid(value, "").removeprefix("Invalid value: ").removesuffix(": ")


def _priority_class(old: Json | None, new: Json) -> Iterator[FieldError]:
    if old is not None and old.get("value") != new.get("value"):
        yield "value", forbidden("may not be changed in an update.")
    yield from _changed(old, new, ("preemptionPolicy",))


def _definition(old: Json | None, new: Json) -> Iterator[FieldError]:
    spec = new.get("spec") or {}
    if spec.get("scope"):
        yield from _one_of("spec.scope", spec["scope"], ("Cluster", "Namespaced"))
    for index, version in enumerate(spec.get("versions") or []):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            yield f"spec.versions[{index}].schema.openAPIV3Schema", required()
    strategy = (spec.get("conversion") or {}).get("strategy")
    yield from _one_of("spec.conversion.strategy", strategy, ("None", "Webhook"))
    if old is not None and (old.get("spec") or {}).get("scope") != spec.get("scope"):
        yield "spec.scope", invalid(spec.get("scope"), _IMMUTABLE)


# -- services and config maps --------------------------------------------------------------------

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PORT_RANGE: Final = "must be between 1 and 65535, inclusive"


def _service(old: Json | None, new: Json) -> Iterator[FieldError]:
    spec = new.get("spec") or {}
    ports = spec.get("ports") or []
    kind, address = spec.get("type"), spec.get("clusterIP")
    if not ports and kind != "ExternalName" and address != "None":
        yield "spec.ports", required()
    if kind == "ExternalName" and not spec.get("externalName"):
        yield "spec.externalName", required()
    names: set[str] = set()
    for index, port in enumerate(ports):
        yield from _service_port(f"spec.ports[{index}]", port, len(ports) > 1, names)
    yield from label_faults("spec.selector", spec.get("selector") or {})
    yield from _one_of("spec.sessionAffinity", spec.get("sessionAffinity"), ("ClientIP", "None"))
    yield from _one_of("spec.type", kind, _TYPES)
    if address and address != "None" and not _is_address(address):
        why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        yield "spec.clusterIPs[0]", invalid(address, why)


def _service_port(path: str, port: Json, several: bool, names: set[str]) -> Iterator[FieldError]:
    name = port.get("name") or ""
    if several and not name:
        yield f"{path}.name", required()
    elif name:
        yield from _named(f"{path}.name", name, check_dns_label)
        if name in names:
            yield f"{path}.name", duplicate(name)
        names.add(name)
    number, target = port.get("port") or 0, port.get("targetPort")
    if not 1 <= number <= 65535:
        yield f"{path}.port", invalid(number, _PORT_RANGE)
    yield from _one_of(f"{path}.protocol", port.get("protocol"), ("SCTP", "TCP", "UDP"))
    if isinstance(target, int) and not 1 <= target <= 65535:
        yield f"{path}.targetPort", invalid(target, _PORT_RANGE)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)
_MOST_DATA: Final = 1024 * 1024


def _config_map(old: Json | None, new: Json) -> Iterator[FieldError]:
    text, binary = new.get("data") or {}, new.get("binaryData") or {}
    for field, values in (("data", text), ("binaryData", binary)):
        for key in sorted(values):
            for problem in _config_key_faults(key):
                yield f"{field}[{key}]", invalid(key, problem)
            if field == "data" and key in binary:
                yield f"data[{key}]", invalid(key, "duplicate of key present in binaryData")
    size = sum(len(value.encode()) for value in text.values())
    size += sum(len(value) * 3 // 4 for value in binary.values())
    if size > _MOST_DATA:
        yield "[]", f"Too long: may not be more than {_MOST_DATA} bytes"
    if old is None or not old.get("immutable"):
        return
    why = forbidden("field is immutable when `immutable` is set")
    if not new.get("immutable"):
        yield "immutable", why
    for field in ("data", "binaryData"):
        if (old.get(field) or {}) != (new.get(field) or {}):
            yield field, why


def _config_key_faults(key: str) -> Iterator[str]:
    if key in (".", ".."):
        yield f"must not be '{key}'"
    elif not _CONFIG_KEY.fullmatch(key):
        yield (
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
            "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
            "'[-._a-zA-Z0-9]+')"
        )


def _namespace(old: Json | None, new: Json) -> Iterator[FieldError]:
    phase = (new.get("status") or {}).get("phase")
    going = bool(new["metadata"].get("deletionTimestamp"))
    wanted = "Terminating" if going else "Active"
    if old is not None and phase not in (None, wanted):
        empty = "not empty" if going else "empty"
        why = f"may only be '{wanted}' if `deletionTimestamp` is {empty}"
        yield "status.Phase", invalid(phase, why)


#: kind -> its rules
SMALL_RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "CSINode": _csi_node,
        "ConfigMap": _config_map,
        "CustomResourceDefinition": _definition,
        "Namespace": _namespace,
        "PersistentVolume": _volume,
        "PersistentVolumeClaim": _claim,
        "PodDisruptionBudget": _budget,
        "PriorityClass": _priority_class,
        "Service": _service,
        "StorageClass": _storage_class,
    }
)
