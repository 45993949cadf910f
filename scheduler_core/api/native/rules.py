"""What kube-apiserver 1.36 refuses of a PodGroup or Workload, at creation and at an update."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..errors import FieldError, duplicate, invalid, required
from ..reader import Raw
from ..syntax import check_dns_label, check_label_key
from .checks import chosen, too_many, union_fault
from .dialects import dialect_of
from .form import Dialect
from .objects import NativePodGroup, Workload

__all__ = ["pod_group_faults", "update_faults", "workload_faults"]

MOST_TEMPLATES: Final = 8
MOST_TOPOLOGY_KEYS: Final = 1
MOST_CLAIMS: Final = 4

_POLICIES: Final = ("basic", "gang")
_INT32: Final = 2**31 - 1
_IMMUTABLE: Final = "field is immutable"


def pod_group_faults(group: NativePodGroup) -> Iterator[FieldError]:
    """Every fault of a PodGroup that is well-formed."""
    spec = _object(group.raw, "spec")
    field = group.dialect.template_ref_field
    ref = spec.get(field)
    if isinstance(ref, Mapping):
        yield from group.dialect.template_ref_faults(ref, f"spec.{field}")
    yield from _group_faults(spec, "spec", group.dialect)


def workload_faults(workload: Workload) -> Iterator[FieldError]:
    """Every fault of a Workload that is well-formed."""
    spec = _object(workload.raw, "spec")
    owner = spec.get("controllerRef")
    if isinstance(owner, Mapping):
        for field in ("kind", "name"):
            if not owner.get(field):
                yield f"spec.controllerRef.{field}", required()
    path = "spec.podGroupTemplates"
    templates = [t for t in spec.get("podGroupTemplates") or () if isinstance(t, Mapping)]
    if not templates:
        yield path, required("must have at least one item")
    elif len(templates) > MOST_TEMPLATES:
        yield path, too_many(len(templates), MOST_TEMPLATES)
    else:
        yield from _template_faults(templates, path, dialect_of(workload.api_version))


def _template_faults(
    templates: list[Mapping[str, Any]], path: str, dialect: Dialect
) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, template in enumerate(templates):
        at, name = f"{path}[{index}]", str(template.get("name") or "")
        problem = check_dns_label(name) if name else ""
        if not name:
            yield f"{at}.name", required()
        elif problem:
            yield f"{at}.name", invalid(name, problem)
        elif name in seen:
            yield at, duplicate({"name": name})
        seen.add(name)
        yield from _group_faults(template, at, dialect)


def _group_faults(spec: Raw, path: str, dialect: Dialect) -> Iterator[FieldError]:
    policy = _object(spec, "schedulingPolicy")
    yield from union_fault(chosen(policy, _POLICIES), _POLICIES, f"{path}.schedulingPolicy")
    gang = policy.get("gang")
    if isinstance(gang, Mapping):
        yield from _min_count_fault(gang.get("minCount"), f"{path}.schedulingPolicy.gang.minCount")
    constraints = spec.get("schedulingConstraints")
    if isinstance(constraints, Mapping):
        yield from _topology_faults(constraints, f"{path}.schedulingConstraints.topology")
    claims = spec.get("resourceClaims")
    if isinstance(claims, list) and len(claims) > MOST_CLAIMS:
        yield f"{path}.resourceClaims", too_many(len(claims), MOST_CLAIMS)
    yield from dialect.disruption_mode_faults(spec.get("disruptionMode"), f"{path}.disruptionMode")


def _min_count_fault(count: Any, path: str) -> Iterator[FieldError]:
    if not count:
        yield path, required()
    elif isinstance(count, int) and count < 1:
        yield path, invalid(count, "must be greater than or equal to 1")
    elif isinstance(count, int) and count > _INT32:
        yield path, invalid(count, f"must be less than or equal to {_INT32}")


def _topology_faults(constraints: Raw, path: str) -> Iterator[FieldError]:
    found = [entry for entry in constraints.get("topology") or () if isinstance(entry, Mapping)]
    if len(found) > MOST_TOPOLOGY_KEYS:
        yield path, too_many(len(found), MOST_TOPOLOGY_KEYS)
        return
    for index, entry in enumerate(found):
        key = str(entry.get("key") or "")
        problem = check_label_key(key) if key else ""
        if not key:
            yield f"{path}[{index}].key", required()
        elif problem:
            yield f"{path}[{index}].key", invalid(key, problem)


# -- updates -------------------------------------------------------------------------------------


def update_faults(old: Raw, new: Raw) -> list[FieldError]:
    """What an update of a PodGroup or Workload changes that may not change: the whole spec, save
    the minCount of a gang from Kubernetes 1.37 on."""
    before, after = _object(old, "spec"), _object(new, "spec")
    if before == after:
        return []
    if dialect_of(new.get("apiVersion")).min_count_may_change:
        before, after = _without_min_count(before), _without_min_count(after)
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return [(f"spec.{name}", invalid(after.get(name), _IMMUTABLE)) for name in changed]


def _without_min_count(spec: Raw) -> Raw:
    answer = _freed(spec)
    templates = spec.get("podGroupTemplates")
    if isinstance(templates, list):
        freed = [_freed(entry) if isinstance(entry, Mapping) else entry for entry in templates]
        answer = {**answer, "podGroupTemplates": freed}
    return answer


def _freed(group: Raw) -> Raw:
    policy = group.get("schedulingPolicy")
    gang = policy.get("gang") if isinstance(policy, Mapping) else None
    if not isinstance(policy, Mapping) or not isinstance(gang, Mapping):
        return group
    rest = {key: value for key, value in gang.items() if key != "minCount"}
    return {**group, "schedulingPolicy": {**policy, "gang": rest}}


def _object(raw: Raw, key: str) -> Raw:
    found = raw.get(key)
    return found if isinstance(found, Mapping) else {}
