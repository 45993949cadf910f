"""``/metrics/resources``: what each pod asks for (kube-scheduler 1.36, ``metrics/resources``).

As the scheduler counts it: the sum of the containers, or what an init container needs at its time
if that is more, with sidecars, pod-level resources and overhead. Zeros are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from scheduler_core.api import Pod
from scheduler_core.api.containers import Container
from scheduler_core.api.quantity import NANO
from scheduler_core.api.resource_names import (
    is_attachable_volume_resource,
    is_extended_resource,
    is_hugepages_resource,
    is_pod_level_resource,
)
from scheduler_core.metrics import Metric, Samples
from scheduler_core.metrics.store import Labels, Value

__all__ = ["CATALOG", "samples_of"]

_LABELS: Final = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
_REQUEST: Final = "kube_pod_resource_request"
_LIMIT: Final = "kube_pod_resource_limit"
_Nanos = Mapping[str, int]

CATALOG: Final[Mapping[str, Metric]] = {
    _REQUEST: Metric(
        _REQUEST,
        "gauge",
        "What a pod asks for, as the scheduler counts it; cpu in cores, memory in bytes.",
        _LABELS,
        stability="STABLE",
    ),
    _LIMIT: Metric(
        _LIMIT,
        "gauge",
        "What a pod may use at most, as the scheduler counts it.",
        _LABELS,
        stability="STABLE",
    ),
}


def samples_of(pods: Iterable[Pod]) -> Samples:
    """Requests and limits of each pod, one series per resource."""
    requests: dict[Labels, Value] = {}
    limits: dict[Labels, Value] = {}
    for pod in pods:
        asked = _total(pod, "requests", pod.pod_requests)
        _put(requests, pod, asked)
        most = _total(pod, "limits", pod.pod_limits)
        _put(limits, pod, most)
    return {_REQUEST: requests, _LIMIT: limits}


def _put(into: dict[Labels, Value], pod: Pod, amounts: _Nanos) -> None:
    namespace, name = pod.namespace, pod.name
    for resource, nano in amounts.items():
        if nano:
            labels = (
                namespace,
                name,
                pod.node_name,
                pod.scheduler_name,
                str(pod.priority),
                resource,
                _unit(resource),
            )
            into[labels] = nano / NANO


def _total(pod: Pod, which: str, pod_level: _Nanos) -> dict[str, int]:
    total: dict[str, int] = {}
    for container in pod.containers:
        _add(total, _of(container, which))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod.init_containers:
        amounts = _of(container, which)
        if container.is_restartable:
            _add(total, amounts)
            _add(sidecars, amounts)
            _raise_to(peak, sidecars)
        else:
            running = dict(amounts)
            _add(running, sidecars)
            _raise_to(peak, running)
    _raise_to(total, peak)
    total |= {name: nano for name, nano in pod_level.items() if is_pod_level_resource(name)}
    # Overhead comes on top of limits only where there are some.
    _add(total, {n: v for n, v in pod.overhead.items() if which == "requests" or n in total})
    return total


def _of(container: Container, which: str) -> _Nanos:
    return container.requests if which == "requests" else container.limits


def _add(total: dict[str, int], more: _Nanos) -> None:
    for name, nano in more.items():
        total[name] = total.get(name, 0) + nano


def _raise_to(total: dict[str, int], other: _Nanos) -> None:
    for name, nano in other.items():
        if nano > total.get(name, -1):
            total[name] = nano


@lru_cache(maxsize=1024)
def _unit(resource: str) -> str:
    if resource == "cpu":
        return "cores"
    if resource in ("memory", "storage", "ephemeral-storage") or is_hugepages_resource(resource):
        return "bytes"
    if is_attachable_volume_resource(resource) or is_extended_resource(resource):
        return "integer"
    return ""
