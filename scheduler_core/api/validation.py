"""Whether an object makes sense: what kube-apiserver 1.36 would refuse, as far as it matters here.

`validate` gives every fault it finds as (field path, reason), in kube-apiserver's wording.
Parsing faults come first; a field that could not be read is not complained about twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from .cluster_objects import (
    Deployment,
    Job,
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    StatefulSet,
)
from .errors import (
    FieldError,
    InvalidObject,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from .kinds import kind_of
from .metadata import KubeObject, subject_of
from .native import NativePodGroup, Workload
from .native.rules import pod_group_faults, workload_faults
from .node import Node
from .pod import Pod
from .podgroup import PodGroup
from .reader import Reader
from .resource_names import is_extended_resource
from .syntax import check_dns_label, check_dns_subdomain, check_label_key, check_label_value
from .taints import TAINT_EFFECTS
from .validation_controllers import deployment_faults, job_faults, replica_set_faults
from .validation_pod import pod_faults
from .validation_selectors import label_faults, label_selector_faults

__all__ = ["check", "status_message", "validate"]

#: the largest value that a user's own PriorityClass may have
HIGHEST_USER_PRIORITY: Final = 1_000_000_000

_INT32: Final = 2**31 - 1
_PREEMPTION_POLICIES: Final = ("Never", "PreemptLowerPriority")
_INDEX = re.compile(r"[.\[]")


def validate(raw: object) -> list[FieldError]:
    """Every fault of an object, as (field path, reason); none means that it is accepted."""
    try:
        kind = kind_of(raw)
    except InvalidObject as error:
        return [(error.field_path, error.message)]
    reader = Reader(raw)
    found = kind.type.read(reader)
    unreadable = [(fault.field_path, fault.message) for fault in reader.faults]
    paths = tuple(path for path, _ in unreadable)
    senseless = [
        fault
        for fault in (*_metadata_faults(found), *_faults_of(found))
        if not any(_overlaps(fault[0], path) for path in paths)
    ]
    return unreadable + senseless


def check(raw: object) -> None:
    """Raises:
    InvalidObject: with every fault that `validate` finds.
    """
    faults = validate(raw)
    if not faults:
        return
    kind = raw.get("kind") if isinstance(raw, Mapping) else None
    subject = subject_of(raw, kind if isinstance(kind, str) else "object")
    raise InvalidObject.of([InvalidObject(path, reason) for path, reason in faults], subject)


def status_message(kind: str, name: str, faults: Iterable[FieldError]) -> str:
    """What kube-apiserver says of an object it refuses (422).

    `kind` is written with its group if it has one (`PodGroup.scheduling.x-k8s.io`).
    """
    lines = [f"{path}: {reason}" for path, reason in faults]
    text = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    return f'{kind} "{name}" is invalid: {text}'


def _overlaps(path: str, unreadable: str) -> bool:
    """Whether a fault at `path` may only follow from something unreadable at, in or around it."""
    return path == unreadable or _within(path, unreadable) or _within(unreadable, path)


def _within(path: str, outer: str) -> bool:
    return path.startswith(outer) and bool(_INDEX.match(path, len(outer)))


def _faults_of(found: KubeObject) -> Iterator[FieldError]:
    rule = _RULES.get(type(found))
    return iter(()) if rule is None else rule(found)


def _metadata_faults(found: KubeObject) -> Iterator[FieldError]:
    if found.name:
        check_name = check_dns_label if isinstance(found, Namespace) else check_dns_subdomain
        problem = check_name(found.name)
        if problem:
            yield "metadata.name", invalid(found.name, problem)
    problem = check_dns_label(found.namespace) if found.namespace else ""
    if problem:
        yield "metadata.namespace", invalid(found.namespace, problem)
    yield from label_faults("metadata.labels", found.labels)
    for key in found.annotations:
        # Annotation keys may be written in capitals, the prefix too.
        problem = check_label_key(key.lower())
        if problem:
            yield "metadata.annotations", invalid(key, problem)


def _node_faults(node: Node) -> Iterator[FieldError]:
    seen = set()
    for index, taint in enumerate(node.taints):
        # kube-apiserver says metadata.taints, although they are in the spec.
        path = f"metadata.taints[{index}]"
        problem = check_label_key(taint.key)
        if problem:
            yield f"{path}.key", invalid(taint.key, problem)
        problem = check_label_value(taint.value)
        if problem:
            yield f"{path}.value", invalid(taint.value, problem)
        if not taint.effect:
            yield f"{path}.effect", required()
        elif taint.effect not in TAINT_EFFECTS:
            yield f"{path}.effect", unsupported(taint.effect, TAINT_EFFECTS)
        if (taint.key, taint.effect) in seen:
            entry = {"key": taint.key, "value": taint.value, "effect": taint.effect}
            yield path, duplicate({name: text for name, text in entry.items() if text})
        seen.add((taint.key, taint.effect))
    status = Reader(node.raw).child("status").raw
    for field in ("capacity", "allocatable"):
        yield from _node_resource_faults(f"status.{field}", status.get(field) or {})


def _node_resource_faults(path: str, amounts: object) -> Iterator[FieldError]:
    if not isinstance(amounts, Mapping):
        return
    quantities = Reader({"amounts": amounts}).quantities("amounts")
    for name, nano in quantities.items():
        problem = check_label_key(name)
        if problem:
            yield f"{path}[{name}]", invalid(name, problem)
        elif is_extended_resource(name) and nano % 10**9:
            yield f"{path}[{name}]", invalid(amounts[name], "must be an integer")


def _pod_group_faults(group: PodGroup) -> Iterator[FieldError]:
    count, timeout = group.min_member, group.schedule_timeout_seconds
    for path, number, least in (
        ("spec.minMember", count, 1),
        ("spec.scheduleTimeoutSeconds", timeout, 0),
    ):
        if number is not None and number < least:
            rule = f"{path} in body should be greater than or equal to {least}"
            yield path, invalid(number, rule)
        elif number is not None and number > _INT32:
            yield path, invalid(number, f"{path} in body should be less than or equal to {_INT32}")


def _priority_class_faults(priority: PriorityClass) -> Iterator[FieldError]:
    if priority.name.startswith("system-"):
        if (priority.name, priority.value) not in _SYSTEM_CLASSES:
            yield (
                "metadata.name",
                forbidden(
                    "priority class names with 'system-' prefix are reserved for system use only"
                ),
            )
    elif priority.value > HIGHEST_USER_PRIORITY:
        rule = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        yield "value", forbidden(rule)
    if priority.value < -_INT32 - 1:
        yield "value", invalid(priority.value, "must fit into 32 bits")
    if priority.preemption_policy not in _PREEMPTION_POLICIES:
        policy = unsupported(priority.preemption_policy, _PREEMPTION_POLICIES)
        yield "preemptionPolicy", policy


_SYSTEM_CLASSES: Final = frozenset(
    {("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)}
)


def _selector_faults(
    found: PodDisruptionBudget | StatefulSet,
) -> Iterator[FieldError]:
    return label_selector_faults("spec.selector", found.selector)


_RULES: Final[Mapping[type, Callable[[Any], Iterator[FieldError]]]] = MappingProxyType(
    {
        Pod: pod_faults,
        Node: _node_faults,
        PodGroup: _pod_group_faults,
        NativePodGroup: pod_group_faults,
        Workload: workload_faults,
        PriorityClass: _priority_class_faults,
        PodDisruptionBudget: _selector_faults,
        Deployment: deployment_faults,
        Job: job_faults,
        ReplicaSet: replica_set_faults,
        StatefulSet: _selector_faults,
    }
)
