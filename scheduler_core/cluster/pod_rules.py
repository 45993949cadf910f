"""Rules of pods on the API server: what may be changed, and how long an end takes."""

from __future__ import annotations

from typing import Any, Final

from scheduler_core.api.errors import FieldError, forbidden
from scheduler_core.ports import Json

__all__ = ["deletion_grace", "update_faults"]

_DEFAULT_GRACE: Final = 30
_GRACE: Final = "terminationGracePeriodSeconds"
_MAY_CHANGE: Final = frozenset(
    {
        "activeDeadlineSeconds",
        "containers",
        "initContainers",
        "schedulingGates",
        "tolerations",
    }
)
#: while it is gated, a pod may still be told where it may go
_MAY_CHANGE_GATED: Final = _MAY_CHANGE | {"affinity", "nodeSelector"}


def deletion_grace(pod: Json, asked: int | None) -> int:
    """Seconds between the wish that a pod be gone and its end.

    A pod that is on no node, or has ended, goes at once.
    """
    spec, status = pod.get("spec", {}), pod.get("status", {})
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    period = spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE) if asked is None else asked
    return 1 if period < 0 else int(period)


def update_faults(old: Json, new: Json) -> list[FieldError]:
    """What an update changes that a pod may not change (kube-apiserver 1.36)."""
    before, after = old.get("spec", {}), new.get("spec", {})
    if before == after or not isinstance(after, dict):
        return []
    faults = _gate_faults(before, after)
    allowed = _MAY_CHANGE_GATED if before.get("schedulingGates") else _MAY_CHANGE
    if _GRACE in before and before[_GRACE] < 0 and after.get(_GRACE) == 1:
        allowed = allowed | {_GRACE}
    if (
        _without(before, allowed) != _without(after, allowed)
        or not _same_but_image(before.get("containers"), after.get("containers"))
        or not _same_but_image(before.get("initContainers"), after.get("initContainers"))
        or not _only_added(before.get("tolerations"), after.get("tolerations"))
    ):
        faults.append(("spec", forbidden(_IMMUTABLE)))
    return faults


_IMMUTABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def _gate_faults(before: Json, after: Json) -> list[FieldError]:
    known = _gate_names(before)
    return [
        (
            f"spec.schedulingGates[{index}].name",
            forbidden(f"only deletion is allowed, but found new scheduling gate '{name}'"),
        )
        for index, name in enumerate(_gate_names(after))
        if name not in known
    ]


def _gate_names(spec: Json) -> list[Any]:
    gates = spec.get("schedulingGates") or []
    if not isinstance(gates, list):
        return []
    return [gate.get("name") for gate in gates if isinstance(gate, dict)]


def _without(spec: Json, fields: frozenset[str]) -> Json:
    return {key: value for key, value in spec.items() if key not in fields}


def _same_but_image(before: Any, after: Any) -> bool:
    def stripped(containers: Any) -> Any:
        if not isinstance(containers, list):
            return containers or []
        return [
            {k: v for k, v in c.items() if k != "image"} if isinstance(c, dict) else c
            for c in containers
        ]

    return bool(stripped(before) == stripped(after))


def _only_added(before: Any, after: Any) -> bool:
    kept = after if isinstance(after, list) else []
    return all(toleration in kept for toleration in before or [])
