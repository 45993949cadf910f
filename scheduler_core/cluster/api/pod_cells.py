"""A pod's line in a table: what its containers make of its status (printersinternal, printPod)."""

from __future__ import annotations

from typing import Any, Final

from scheduler_core.api.reader import parse_time
from scheduler_core.ports import Json

from .spans import since

__all__ = ["pod_cells"]

_NONE: Final = "<none>"


def pod_cells(pod: Json, now: float) -> list[Any]:
    """Name, ready, status, restarts, age, IP, node, nominated node, readiness gates."""
    spec, status = pod.get("spec", {}), pod.get("status", {})
    ips = status.get("podIPs") or []
    address = ips[0].get("ip") if ips else status.get("podIP")
    created = pod["metadata"].get("creationTimestamp")
    return [
        pod["metadata"]["name"],
        f"{_ready(pod)}/{_total(spec)}",
        _reason(pod),
        _restarts(pod, now),
        since(parse_time(created), now) if created else "<unknown>",
        address or _NONE,
        spec.get("nodeName") or _NONE,
        status.get("nominatedNodeName") or _NONE,
        _gates(pod),
    ]


def _is_sidecar(container: Json) -> bool:
    return container.get("restartPolicy") == "Always"


def _total(spec: Json) -> int:
    sidecars = [c for c in spec.get("initContainers") or [] if _is_sidecar(c)]
    return len(spec.get("containers") or []) + len(sidecars)


def _ready(pod: Json) -> int:
    spec, status = pod.get("spec", {}), pod.get("status", {})
    sidecars = {c.get("name") for c in spec.get("initContainers") or [] if _is_sidecar(c)}
    started = [
        found
        for found in status.get("initContainerStatuses") or []
        if found.get("name") in sidecars and found.get("started") and found.get("ready")
    ]
    running = [
        found
        for found in status.get("containerStatuses") or []
        if found.get("ready") and "running" in (found.get("state") or {})
    ]
    return len(started) + len(running)


def _reason(pod: Json) -> str:
    status = pod.get("status", {})
    reason = str(status.get("reason") or status.get("phase") or "")
    for condition in status.get("conditions") or []:
        if (
            condition.get("type") == "PodScheduled"
            and condition.get("reason") == "SchedulingGated"
            and condition.get("status") == "False"
        ):
            reason = "SchedulingGated"
    starting = _initializing(pod)
    reason = starting or _of_containers(pod, reason)
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        return reason if status.get("phase") in ("Succeeded", "Failed") else "Terminating"
    return reason


def _initializing(pod: Json) -> str:
    """What the first init container that has not done its work says; "" if there is none."""
    inits = pod.get("spec", {}).get("initContainers") or []
    known = {c.get("name"): c for c in inits}
    for index, found in enumerate(pod.get("status", {}).get("initContainerStatuses") or []):
        state = found.get("state") or {}
        ended, waits = state.get("terminated"), state.get("waiting")
        if ended is not None and ended.get("exitCode") == 0:
            continue
        if _is_sidecar(known.get(found.get("name"), {})) and found.get("started"):
            continue
        if ended is not None:
            return f"Init:{ended.get('reason') or _ending(ended)}"
        if waits and waits.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waits['reason']}"
        return f"Init:{index}/{len(inits)}"
    return ""


def _ending(ended: Json) -> str:
    signal = ended.get("signal")
    return f"Signal:{signal}" if signal else f"ExitCode:{ended.get('exitCode', 0)}"


def _of_containers(pod: Json, reason: str) -> str:
    running = False
    for found in reversed(pod.get("status", {}).get("containerStatuses") or []):
        state = found.get("state") or {}
        waits, ended = state.get("waiting"), state.get("terminated")
        if waits and waits.get("reason"):
            reason = waits["reason"]
        elif ended is not None:
            reason = ended.get("reason") or _ending(ended)
        elif found.get("ready") and "running" in state:
            running = True
    if reason == "Completed" and running:
        conditions = pod.get("status", {}).get("conditions") or []
        ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
        return "Running" if ready else "NotReady"
    return reason


def _restarts(pod: Json, now: float) -> str:
    statuses = pod.get("status", {}).get("containerStatuses") or []
    count = sum(int(found.get("restartCount") or 0) for found in statuses)
    ends = [
        ((found.get("lastState") or {}).get("terminated") or {}).get("finishedAt")
        for found in statuses
    ]
    last = max((parse_time(end) for end in ends if end), default=None)
    return str(count) if not count or last is None else f"{count} ({since(last, now)} ago)"


def _gates(pod: Json) -> str:
    gates = pod.get("spec", {}).get("readinessGates") or []
    if not gates:
        return _NONE
    conditions = {c.get("type"): c for c in pod.get("status", {}).get("conditions") or []}
    open_ = [g for g in gates if conditions.get(g.get("conditionType"), {}).get("status") == "True"]
    return f"{len(open_)}/{len(gates)}"
