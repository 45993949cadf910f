"""What is checked and filled in against other objects: namespaces and priorities."""

from __future__ import annotations

from typing import Final

from scheduler_core.ports import Json

from .errors import forbidden, not_found
from .objects import name_of
from .resources import RESOURCES, Resource
from .store import Transaction

__all__ = ["PERMANENT_NAMESPACES", "admit_pod", "admit_pod_group", "require_namespace"]

#: cannot be deleted
PERMANENT_NAMESPACES: Final = frozenset({"default", "kube-system"})


def require_namespace(tx: Transaction, resource: Resource, namespace: str, name: str) -> None:
    """Raises:
    ApiError: 404 where the namespace is not there, 403 where it is being deleted.
    """
    found = tx.get("Namespace", namespace)
    if found is None:
        raise not_found(RESOURCES["Namespace"], namespace)
    if found["metadata"].get("deletionTimestamp"):
        why = (
            f"unable to create new content in namespace {namespace} because it is being terminated"
        )
        raise forbidden(resource, name, why)


def admit_pod(tx: Transaction, resource: Resource, pod: Json) -> None:
    """Fill in the priority and say that a gated pod is not to be scheduled yet.

    Raises:
        ApiError: 403 where the PriorityClass is missing or contradicts the priority given.
    """
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return  # validation names it
    _admit_priority(tx, resource, pod, spec)
    gates = spec.get("schedulingGates")
    status = pod.get("status")
    if gates and not spec.get("nodeName") and isinstance(status, dict):
        status["conditions"] = [
            {
                "lastProbeTime": None,
                "lastTransitionTime": tx.timestamp,
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "reason": "SchedulingGated",
                "status": "False",
                "type": "PodScheduled",
            }
        ]


def admit_pod_group(tx: Transaction, resource: Resource, group: Json) -> None:
    """Fill in the priority of a native PodGroup that names a PriorityClass, or of any where there
    is a default one. (In Kubernetes 1.36 that comes with the gate WorkloadAwarePreemption.)

    Raises:
        ApiError: 403 as for a pod.
    """
    spec = group.get("spec")
    if not isinstance(spec, dict):
        return  # validation names it
    if spec.get("priorityClassName") or spec.get("priority") is not None or _default_class(tx):
        _fill_priority(tx, resource, group, spec)


def _admit_priority(tx: Transaction, resource: Resource, pod: Json, spec: Json) -> None:
    found = _fill_priority(tx, resource, pod, spec)
    policy = found.get("preemptionPolicy") if found else None
    spec.setdefault("preemptionPolicy", policy or "PreemptLowerPriority")


def _fill_priority(tx: Transaction, resource: Resource, obj: Json, spec: Json) -> Json | None:
    """The PriorityClass that the priority comes from, if there is one."""
    name = spec.get("priorityClassName")
    found = _named_class(tx, resource, obj, name) if name else _default_class(tx)
    priority = int(found.get("value", 0)) if found else 0
    if found and not name:
        spec["priorityClassName"] = name_of(found)
    given = spec.get("priority")
    if given is not None and given != priority:
        noun = "pod" if resource.kind == "Pod" else "pod group"
        why = (
            f"the integer value of priority ({given}) must not be provided in {noun} spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name"
        )
        raise forbidden(resource, name_of(obj), why)
    spec["priority"] = priority
    return found


def _named_class(tx: Transaction, resource: Resource, obj: Json, name: str) -> Json:
    found = tx.get("PriorityClass", str(name))
    if found is None:
        raise forbidden(resource, name_of(obj), f"no PriorityClass with name {name} was found")
    return found


def _default_class(tx: Transaction) -> Json | None:
    """The class with globalDefault; of several, the one with the lowest value."""
    classes = [c for c in tx.objects("PriorityClass").values() if c.get("globalDefault")]
    return min(classes, key=lambda c: int(c.get("value", 0)), default=None)
