"""Conditions and nominations of pods: strategic merge patches of the status subresource.

Strategic, so that a condition which a kubelet writes at the same moment stays; with the uid, so
that a namesake of the pod is a Conflict.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from scheduler_core.api.kinds import KINDS
from scheduler_core.ports import Conflict, Json, PodCondition

from .api import KubeApi
from .resources import object_path
from .transport import STRATEGIC_PATCH

__all__ = ["micro_time", "patch_pod_status", "second_time"]

_POD: Final = KINDS["Pod"]


def second_time(seconds: float) -> str:
    """metav1.Time."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_time(seconds: float) -> str:
    """metav1.MicroTime."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def patch_pod_status(
    api: KubeApi,
    namespace: str,
    name: str,
    uid: str,
    condition: PodCondition | None,
    nominated_node_name: str | None,
    *,
    seen: Callable[[], Json | None],
    now: float,
) -> None:
    """Write what differs; nothing where nothing does.

    Args:
        seen: the pod as a watch last showed it; it is read where there is none.
    """
    path = object_path(_POD, "v1", namespace, name)
    pod = seen()
    if pod is None or pod.get("metadata", {}).get("uid") != uid:
        pod = api.get(path)
        found = pod.get("metadata", {}).get("uid")
        if uid and found != uid:
            text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
            raise Conflict(f'Operation cannot be fulfilled on pods "{name}": {text}')
    status: dict[str, Any] = {}
    entry = _changed(pod, condition, now) if condition is not None else None
    if entry is not None:
        status["conditions"] = [entry]
    nominated = (pod.get("status") or {}).get("nominatedNodeName", "")
    if nominated_node_name is not None and nominated_node_name != nominated:
        status["nominatedNodeName"] = nominated_node_name or None
    if not status:
        return
    patch = {"metadata": {"uid": uid} if uid else {}, "status": status}
    api.call(
        "PATCH",
        f"{path}/status",
        body=patch,
        content_type=STRATEGIC_PATCH,
        repeatable=True,
    )


def _changed(pod: Json, condition: PodCondition, now: float) -> Json | None:
    """The condition to write; None where the pod has it. Its time moves only with its status; what
    it no longer says is taken away."""
    known = (pod.get("status") or {}).get("conditions") or ()
    old: Json = next((c for c in known if c.get("type") == condition.type), {})
    wanted = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason or None,
        "message": condition.message or None,
    }
    if old and all(old.get(key) == value for key, value in wanted.items()):
        return None
    entry: dict[str, Any] = {k: v for k, v in wanted.items() if v is not None or old.get(k)}
    if old.get("status") != condition.status:
        entry["lastTransitionTime"] = second_time(now)
    return entry
