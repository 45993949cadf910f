"""What a pod asks of a node, as kube-scheduler 1.36 counts it.

Amounts leave this module in the scheduler's units: cpu in millicores, everything else in base
units. They are summed exactly (nano-units) and rounded up once per pod, so two containers of 500u
cpu are 1m together, and two such pods of 1u are 2m. Resources that the scheduler does not know,
and amounts of 0, are left out. Results are kept, on the spec that pods share where the status
does not count.

    pod_requests       the pod that is being scheduled: its spec alone
    assigned_requests  a pod on a node: what the kubelet reports counts too (in-place resize)
    nonzero_requests   a pod on a node, cpu and memory with defaults: what scoring sees
    scoring_requests   the pod that is being scheduled, as NodeResourcesFit scores it
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from .containers import WILDCARD_IP, Container, HostPort, ResourceStatus
from .pod import Pod
from .pod_spec import PodSpec
from .quantity import NANO
from .resource_names import (
    CPU,
    MEMORY,
    is_known_resource,
    is_pod_level_resource,
    scheduler_amount,
)

__all__ = [
    "DEFAULT_MEMORY_REQUEST",
    "DEFAULT_MILLI_CPU_REQUEST",
    "assigned_requests",
    "host_ports",
    "nonzero_requests",
    "pod_requests",
    "scoring_requests",
]

#: millicores that a container without cpu request counts for in scoring
DEFAULT_MILLI_CPU_REQUEST: Final = 100
#: bytes that a container without memory request counts for in scoring (200 MiB)
DEFAULT_MEMORY_REQUEST: Final = 200 * 1024 * 1024

_Nanos = Mapping[str, int]
_DEFAULTS: Final[_Nanos] = MappingProxyType(
    {CPU: DEFAULT_MILLI_CPU_REQUEST * NANO // 1000, MEMORY: DEFAULT_MEMORY_REQUEST * NANO}
)
_NO_DEFAULTS: Final[_Nanos] = MappingProxyType({})


def pod_requests(pod: Pod) -> Mapping[str, int]:
    """{resource: amount} that the spec asks for: init containers, sidecars, pod level, overhead."""
    spec = pod.spec
    kept = spec._requests
    if kept is None:
        nanos = _requests(pod, _NO_DEFAULTS, use_status=False)
        kept = _amounts(nanos)
        object.__setattr__(spec, "_requests", kept)
    return kept


def assigned_requests(pod: Pod) -> Mapping[str, int]:
    """{resource: amount} that a pod takes on its node, resizes under way included."""
    if not pod.status.reports_resources:
        return pod_requests(pod)
    kept = pod._assigned_requests
    if kept is None:
        kept = _amounts(_requests(pod, _NO_DEFAULTS, use_status=True))
        asked = pod_requests(pod)
        if kept == asked:  # no resize under way: one mapping for all such pods
            kept = asked
        object.__setattr__(pod, "_assigned_requests", kept)
    return kept


def nonzero_requests(pod: Pod) -> tuple[int, int]:
    """(millicores, bytes) that a pod on a node counts for in scoring.

    A container without a request counts for 100m or 200 MiB; an explicit 0 stays 0. A pod with
    pod-level requests gets a default only for what it does not ask for at all.
    """
    owner: Pod | PodSpec = pod if pod.status.reports_resources else pod.spec
    kept = owner._nonzero_requests
    if kept is None:
        nanos = _requests(pod, _nonzero_defaults(pod), use_status=pod.status.reports_resources)
        kept = (
            scheduler_amount(CPU, nanos.get(CPU, 0)),
            scheduler_amount(MEMORY, nanos.get(MEMORY, 0)),
        )
        object.__setattr__(owner, "_nonzero_requests", kept)
    return kept


def scoring_requests(pod: Pod) -> Mapping[str, int]:
    """{resource: amount} of the pod being scheduled in NodeResourcesFit's score.

    With the defaults of `nonzero_requests`, and without pod-level requests, as the reference does.
    """
    spec = pod.spec
    kept = spec._scoring_requests
    if kept is None:
        nanos = _requests(pod, _DEFAULTS, use_status=False, pod_level=False)
        kept = _amounts(nanos)
        object.__setattr__(spec, "_scoring_requests", kept)
    return kept


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Host ports of containers and sidecars; other init containers do not count (NodePorts)."""
    spec = pod.spec
    kept = spec._host_ports
    if kept is None:
        holders = (*spec.containers, *(c for c in spec.init_containers if c.is_restartable))
        kept = tuple(
            HostPort(port.host_ip or WILDCARD_IP, port.protocol, port.host_port)
            for container in holders
            for port in container.ports
            if port.host_port > 0
        )
        object.__setattr__(spec, "_host_ports", kept)
    return kept


def _nonzero_defaults(pod: Pod) -> _Nanos:
    if not any(map(is_pod_level_resource, pod.pod_requests)):
        return _DEFAULTS
    asked = _requests(pod, _NO_DEFAULTS, use_status=pod.status.reports_resources)
    return {name: nano for name, nano in _DEFAULTS.items() if name not in asked}


def _requests(
    pod: Pod, defaults: _Nanos, *, use_status: bool, pod_level: bool = True
) -> dict[str, int]:
    """The exact requests of a pod in nano-units: R(pod, defaults)."""
    total: dict[str, int] = {}
    for container in pod.containers:
        _add(total, _container_requests(pod, container, defaults, use_status))
    if pod.init_containers:
        total = _with_init_containers(pod, total, defaults, use_status)
    if pod_level:
        total.update(_pod_level_requests(pod, use_status))
    _add(total, pod.overhead)
    return total


def _with_init_containers(
    pod: Pod, main: dict[str, int], defaults: _Nanos, use_status: bool
) -> dict[str, int]:
    """Sidecars run beside everything after them; the other init containers one after another."""
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod.init_containers:
        requests = _container_requests(
            pod, container, defaults, use_status and container.is_restartable, init=True
        )
        if container.is_restartable:
            _add(main, requests)
            _add(sidecars, requests)
            _raise_to(peak, sidecars)
        else:
            running = dict(requests)
            _add(running, sidecars)
            _raise_to(peak, running)
    _raise_to(main, peak)
    return main


def _container_requests(
    pod: Pod, container: Container, defaults: _Nanos, use_status: bool, *, init: bool = False
) -> _Nanos:
    requests = container.requests
    if use_status:
        statuses = pod.init_container_statuses if init else pod.container_statuses
        status = statuses.get(container.name)
        if status is not None and status.requests is not None:
            requests = _reported(pod, requests, status)
    if not defaults:
        return requests
    return {**defaults, **requests}


def _pod_level_requests(pod: Pod, use_status: bool) -> _Nanos:
    if not pod.pod_requests:
        return {}
    requests = pod.pod_requests
    if use_status and pod.status_resources.requests is not None:
        requests = _reported(pod, requests, pod.status_resources)
    return {name: nano for name, nano in requests.items() if is_pod_level_resource(name)}


def _reported(pod: Pod, spec: _Nanos, status: ResourceStatus) -> _Nanos:
    """The largest of spec, status.resources and allocatedResources; spec not if it cannot be."""
    largest: dict[str, int] = {} if pod.resize_infeasible else dict(spec)
    _raise_to(largest, status.requests or {})
    _raise_to(largest, status.allocated)
    return largest


def _add(total: dict[str, int], more: _Nanos) -> None:
    for name, nano in more.items():
        total[name] = total.get(name, 0) + nano


def _raise_to(total: dict[str, int], other: _Nanos) -> None:
    for name, nano in other.items():
        if nano > total.get(name, -1):
            total[name] = nano


def _amounts(nanos: _Nanos) -> Mapping[str, int]:
    amounts = {
        name: scheduler_amount(name, nano)
        for name, nano in nanos.items()
        if nano and is_known_resource(name)
    }
    return MappingProxyType(amounts)
