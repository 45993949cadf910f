"""Binding a pod, and setting its conditions, as kube-apiserver 1.36 does them."""

from __future__ import annotations

from typing import Final

from scheduler_core.ports import ApiError, Json, PodCondition

from .errors import conflict
from .objects import name_of
from .resources import RESOURCES
from .store import Transaction
from .verbs import find, require_uid

__all__ = ["bind", "patch_status", "put_status", "with_condition"]

_SCHEDULED: Final = PodCondition("PodScheduled", "True")


def bind(tx: Transaction, namespace: str, name: str, uid: str, node: str) -> Json:
    """Put a pod on a node (which need not exist, as on the real server)."""
    resource = RESOURCES["Pod"]
    if not node:
        raise ApiError(500, "", "target.name: Required value")
    pod = find(tx, resource, namespace, name)
    require_uid(resource, pod, uid)
    problem = _unbindable(pod)
    if problem:
        raise conflict("pods/binding", name, problem)
    status = with_condition(pod.get("status", {}), _SCHEDULED, tx.timestamp)
    status.pop("nominatedNodeName", None)
    bound = {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": status}
    return tx.put("bind", resource, bound)


def _unbindable(pod: Json) -> str:
    name, spec = name_of(pod), pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def patch_status(
    tx: Transaction,
    namespace: str,
    name: str,
    uid: str,
    condition: PodCondition | None,
    nominated_node_name: str | None,
) -> Json:
    """Set one condition and/or the nomination; writes nothing where that changes nothing."""
    resource = RESOURCES["Pod"]
    pod = find(tx, resource, namespace, name)
    require_uid(resource, pod, uid)
    old = pod.get("status", {})
    status = dict(old)
    if condition is not None:
        status = with_condition(status, condition, tx.timestamp)
    if nominated_node_name:
        status["nominatedNodeName"] = nominated_node_name
    elif nominated_node_name == "":
        status.pop("nominatedNodeName", None)
    if status == old:
        return pod
    return tx.put("status", resource, {**pod, "status": status})


def put_status(tx: Transaction, namespace: str, name: str, uid: str, fields: Json) -> Json:
    """Set these fields of the status, which the server's own parts know to be sound."""
    resource = RESOURCES["Pod"]
    pod = find(tx, resource, namespace, name)
    require_uid(resource, pod, uid)
    return tx.put("status", resource, {**pod, "status": {**pod.get("status", {}), **fields}})


def with_condition(status: Json, condition: PodCondition, now: str) -> Json:
    """A copy of a status with this condition; lastTransitionTime moves only with its status."""
    conditions = status.get("conditions") or []
    old = next((c for c in conditions if c.get("type") == condition.type), None)
    unmoved = old is not None and old.get("status") == condition.status
    entry: Json = {
        "lastProbeTime": None,
        "lastTransitionTime": old["lastTransitionTime"] if old is not None and unmoved else now,
        "status": condition.status,
        "type": condition.type,
    }
    if condition.reason:
        entry["reason"] = condition.reason
    if condition.message:
        entry["message"] = condition.message
    if old is None:
        return {**status, "conditions": [*conditions, entry]}
    return {**status, "conditions": [entry if c is old else c for c in conditions]}
