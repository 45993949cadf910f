"""What every controller that makes pods has to know about them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from scheduler_core.ports import Json

from ..objects import clone, name_of, namespace_of, uid_of

__all__ = [
    "controller_reference",
    "has_ended",
    "is_active",
    "is_leaving",
    "is_ready",
    "pod_from_template",
    "ready_since",
    "set_condition",
    "worth_deleting_first",
]

_COST: Final = "controller.kubernetes.io/pod-deletion-cost"


def has_ended(pod: Json) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def is_leaving(pod: Json) -> bool:
    """Whether its deletion has been asked for."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def is_active(pod: Json) -> bool:
    """Counts as a replica: it has not ended, and nobody wants it gone."""
    return not has_ended(pod) and not is_leaving(pod)


def _condition(pod: Json, kind: str) -> Json | None:
    conditions = pod["status"].get("conditions") or ()
    return next((c for c in conditions if c.get("type") == kind), None)


def is_ready(pod: Json) -> bool:
    return (_condition(pod, "Ready") or {}).get("status") == "True"


def ready_since(pod: Json) -> str:
    """When it became ready, as Kubernetes writes times; "" where it is not."""
    found = _condition(pod, "Ready") or {}
    return str(found.get("lastTransitionTime") or "") if found.get("status") == "True" else ""


def controller_reference(owner: Json) -> Json:
    """The owner reference of what `owner` controls."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_from_template(
    owner: Json, template: Json, *, name: str = "", finalizers: Iterable[str] = ()
) -> Json:
    """A pod as its controller creates it; its name begins with the owner's if none is given."""
    wanted = template.get("metadata") or {}
    metadata: dict[str, Any] = {
        "namespace": namespace_of(owner),
        "labels": dict(wanted.get("labels") or {}),
        "annotations": dict(wanted.get("annotations") or {}),
        "ownerReferences": [controller_reference(owner)],
    }
    metadata.update({"name": name} if name else {"generateName": f"{name_of(owner)}-"})
    if not metadata["annotations"]:
        del metadata["annotations"]
    held_by = [*(wanted.get("finalizers") or ()), *finalizers]
    if held_by:
        metadata["finalizers"] = held_by
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": clone(template.get("spec") or {}),
    }


def worth_deleting_first(pods: list[Json]) -> list[Json]:
    """Active pods in the order in which a ReplicaSet gives them up.

    kube-controller-manager 1.36, `ActivePodsWithRanks`: without a node before with one; Pending
    before Running; not ready before ready; a lower pod-deletion-cost first; more of the set on the
    same node first; ready for less time first; younger first.
    """
    crowd: dict[str, int] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName") or ""
        crowd[node] = crowd.get(node, 0) + 1
    # Youngest first, then a stable sort by all that counts more. Times of one format sort as text.
    by_age = sorted(pods, key=lambda p: p["metadata"].get("creationTimestamp") or "", reverse=True)
    by_readiness = sorted(by_age, key=ready_since, reverse=True)
    return sorted(
        by_readiness,
        key=lambda pod: (
            bool(pod["spec"].get("nodeName")),
            pod["status"].get("phase") == "Running",
            is_ready(pod),
            _deletion_cost(pod),
            -crowd[pod["spec"].get("nodeName") or ""],
        ),
    )


def _deletion_cost(pod: Json) -> int:
    try:
        return int((pod["metadata"].get("annotations") or {}).get(_COST) or 0)
    except ValueError:
        return 0


def set_condition(
    conditions: list[Json],
    kind: str,
    status: str,
    reason: str,
    message: str,
    now: str,
    *,
    updated: bool = False,
) -> list[Json]:
    """`conditions` with this one; its time of transition moves only with its status.

    `updated`: the kind of condition that also has a `lastUpdateTime` (a Deployment's).
    """
    old = next((c for c in conditions if c.get("type") == kind), None)
    moved = old is None or old.get("status") != status
    if old is not None and not moved and old.get("reason") == reason:
        # As in the reference: a message that changes (it may name a new pod each time) is no news.
        return conditions
    entry: Json = {
        "type": kind,
        "status": status,
        "lastTransitionTime": now if old is None or moved else old.get("lastTransitionTime", now),
        "reason": reason,
        "message": message,
    }
    if updated:
        entry["lastUpdateTime"] = now
    return [*(c for c in conditions if c is not old), entry]
