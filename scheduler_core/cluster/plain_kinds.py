"""Kinds that the sandbox stores and that no scheduler reads: they need no class of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from scheduler_core.api.errors import FieldError, invalid
from scheduler_core.api.syntax import check_dns_subdomain
from scheduler_core.ports import Json

__all__ = ["PLAIN_KINDS", "PlainKind", "named_faults"]


_RESOURCE: Final = "resource.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class PlainKind:
    """One such kind; see `Resource` for the fields."""

    kind: str
    api_version: str
    plural: str
    namespaced: bool
    validate: Callable[[Json], list[FieldError]]
    has_status: bool = False
    has_generation: bool = False


def named_faults(obj: Json) -> list[FieldError]:
    """What is wrong with the name, the one thing that every object has."""
    name = obj.get("metadata", {}).get("name") or ""
    if not name:
        return [("metadata.name", "Required value: name or generateName is required")]
    problem = check_dns_subdomain(str(name))
    return [("metadata.name", invalid(name, problem))] if problem else []


def _lease_faults(lease: Json) -> list[FieldError]:
    """kube-apiserver 1.36, ValidateLeaseSpec."""
    faults = named_faults(lease)
    spec = lease.get("spec")
    for field in ("leaseDurationSeconds", "leaseTransitions"):
        value = spec.get(field) if isinstance(spec, dict) else None
        least = 1 if field == "leaseDurationSeconds" else 0
        if isinstance(value, int) and value < least:
            rule = "must be greater than 0" if least else "must be greater than or equal to 0"
            faults.append((f"spec.{field}", invalid(value, rule)))
    return faults


def _definition_faults(definition: Json) -> list[FieldError]:
    """kube-apiserver 1.36, ValidateCustomResourceDefinition: what the names have to agree in."""
    faults = named_faults(definition)
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    wanted = f"{names.get('plural', '')}.{spec.get('group', '')}"
    name = str(definition.get("metadata", {}).get("name") or "")
    if name and name != wanted:
        faults.append(("metadata.name", invalid(name, 'must be spec.names.plural+"."+spec.group')))
    for path, value in (
        ("spec.group", spec.get("group")),
        ("spec.scope", spec.get("scope")),
        ("spec.names.plural", names.get("plural")),
        ("spec.names.kind", names.get("kind")),
    ):
        if not value:
            faults.append((path, "Required value"))
    stored = [v for v in spec.get("versions") or [] if v.get("storage")]
    if len(stored) != 1:
        rule = "must have exactly one version marked as storage version"
        faults.append(("spec.versions", invalid(spec.get("versions"), rule)))
    return faults


#: the kinds
PLAIN_KINDS: Final = (
    PlainKind("ConfigMap", "v1", "configmaps", True, named_faults),
    # A stock kube-scheduler waits for these lists before it schedules anything.
    PlainKind("DeviceClass", _RESOURCE, "deviceclasses", False, named_faults),
    PlainKind("ResourceClaim", _RESOURCE, "resourceclaims", True, named_faults, has_status=True),
    PlainKind("ResourceClaimTemplate", _RESOURCE, "resourceclaimtemplates", True, named_faults),
    PlainKind("ResourceSlice", _RESOURCE, "resourceslices", False, named_faults),
    PlainKind("Lease", "coordination.k8s.io/v1", "leases", True, _lease_faults),
    PlainKind(
        "CustomResourceDefinition",
        "apiextensions.k8s.io/v1",
        "customresourcedefinitions",
        False,
        _definition_faults,
        has_status=True,
        has_generation=True,
    ),
)
