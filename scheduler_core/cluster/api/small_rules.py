"""Faults of the smaller kinds: budgets, priorities, services, config maps, namespaces
(kube-apiserver 1.36, pkg/apis/{core,storage,policy,scheduling} validation)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from scheduler_core.api.errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    required,
)
from scheduler_core.api.reader import Reader
from scheduler_core.api.selectors import label_selector
from scheduler_core.api.syntax import check_dns_label
from scheduler_core.api.validation_selectors import label_faults, label_selector_faults
from scheduler_core.ports import Json

from .common_rules import IMMUTABLE, Rule, as_json, changed_faults, choice_faults, name_faults
from .storage_rules import STORAGE_RULES
from .workload_rules import int_or_percent_faults, not_negative

__all__ = ["SMALL_RULES"]

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
    yield from choice_faults("spec.unhealthyPodEvictionPolicy", policy, choices)
    counts = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    yield from not_negative(new.get("status") or {}, "status", counts)


def _budget_as_go_writes(spec: Json) -> str:
    names = {
        "MinAvailable": "minAvailable", "Selector": "selector", "MaxUnavailable": "maxUnavailable",
        "UnhealthyPodEvictionPolicy": "unhealthyPodEvictionPolicy",
    }  # fmt: skip
    parts = (f'"{go}":{as_json(spec.get(field))}' for go, field in names.items())
    return "{" + ",".join(parts) + "}"


def _priority_class(old: Json | None, new: Json) -> Iterator[FieldError]:
    if old is not None and old.get("value") != new.get("value"):
        yield "value", forbidden("may not be changed in an update.")
    yield from changed_faults(old, new, ("preemptionPolicy",))


def _definition(old: Json | None, new: Json) -> Iterator[FieldError]:
    spec = new.get("spec") or {}
    if spec.get("scope"):
        yield from choice_faults("spec.scope", spec["scope"], ("Cluster", "Namespaced"))
    for index, version in enumerate(spec.get("versions") or []):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            yield f"spec.versions[{index}].schema.openAPIV3Schema", required()
    strategy = (spec.get("conversion") or {}).get("strategy")
    yield from choice_faults("spec.conversion.strategy", strategy, ("None", "Webhook"))
    if old is not None and (old.get("spec") or {}).get("scope") != spec.get("scope"):
        yield "spec.scope", invalid(spec.get("scope"), IMMUTABLE)


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
    yield from choice_faults(
        "spec.sessionAffinity", spec.get("sessionAffinity"), ("ClientIP", "None")
    )
    yield from choice_faults("spec.type", kind, _TYPES)
    if address and address != "None" and not _is_address(address):
        why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        yield "spec.clusterIPs[0]", invalid(address, why)


def _service_port(path: str, port: Json, several: bool, names: set[str]) -> Iterator[FieldError]:
    name = port.get("name") or ""
    if several and not name:
        yield f"{path}.name", required()
    elif name:
        yield from name_faults(f"{path}.name", name, check_dns_label)
        if name in names:
            yield f"{path}.name", duplicate(name)
        names.add(name)
    number, target = port.get("port") or 0, port.get("targetPort")
    if not 1 <= number <= 65535:
        yield f"{path}.port", invalid(number, _PORT_RANGE)
    yield from choice_faults(f"{path}.protocol", port.get("protocol"), ("SCTP", "TCP", "UDP"))
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
        **STORAGE_RULES,
        "ConfigMap": _config_map,
        "CustomResourceDefinition": _definition,
        "Namespace": _namespace,
        "PodDisruptionBudget": _budget,
        "PriorityClass": _priority_class,
        "Service": _service,
    }
)
