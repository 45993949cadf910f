"""Faults of a pod's spec, in kube-apiserver's wording."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from .affinity import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from .containers import Container, ContainerPort
from .errors import FieldError, duplicate, forbidden, invalid, required, unsupported
from .pod import Pod
from .quantity import NANO, format_quantity
from .resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_extended_resource
from .resource_names import is_hugepages_resource as is_hugepages
from .syntax import check_dns_label, check_dns_subdomain, check_label_key, check_label_value
from .taints import NO_EXECUTE, TAINT_EFFECTS, Toleration
from .validation_selectors import (
    label_faults,
    label_selector_faults,
    node_selector_term_faults,
    weight_faults,
)

__all__ = ["pod_faults"]

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_POLICIES: Final = ("Honor", "Ignore")


def pod_faults(pod: Pod) -> Iterator[FieldError]:
    """Everything about the spec of a pod that the API server would refuse.

    A spec without fault is looked at once for all pods that share it.
    """
    spec = pod.spec
    is_shared = pod.volumes is spec.volumes
    if spec._is_sound and is_shared:
        return _node_name_faults(pod)
    first = [
        *_container_faults(pod),
        *_resource_faults("spec", pod.pod_requests, pod.pod_limits, pod_level=True),
    ]
    others = [*_scheduling_faults(pod), *_placement_faults(pod), *_volume_faults(pod)]
    if is_shared and not first and not others:
        object.__setattr__(spec, "_is_sound", True)
    return iter((*first, *_node_name_faults(pod), *others))


def _placement_faults(pod: Pod) -> Iterator[FieldError]:
    yield from label_faults("spec.nodeSelector", pod.node_selector or {})
    for index, toleration in enumerate(pod.tolerations):
        yield from _toleration_faults(f"spec.tolerations[{index}]", toleration)
    yield from _affinity_faults(pod.affinity)
    yield from _spread_faults(pod.topology_spread_constraints)


def _node_name_faults(pod: Pod) -> Iterator[FieldError]:
    if not pod.node_name:
        return
    problem = check_dns_subdomain(pod.node_name)
    if problem:
        yield "spec.nodeName", invalid(pod.node_name, problem)
    if pod.scheduling_gates:
        rule = "cannot be set until all schedulingGates have been cleared"
        yield "spec.nodeName", forbidden(rule)


def _scheduling_faults(pod: Pod) -> Iterator[FieldError]:
    for path, value, supported in (
        ("spec.restartPolicy", pod.restart_policy, ("Always", "OnFailure", "Never")),
        ("spec.preemptionPolicy", pod.preemption_policy, ("Never", "PreemptLowerPriority")),
    ):
        if value not in supported:
            yield path, unsupported(value, supported)
    for index, gate in enumerate(pod.scheduling_gates):
        problem = check_label_key(gate)
        if problem:
            yield f"spec.schedulingGates[{index}]", invalid(gate, problem)
        if gate in pod.scheduling_gates[:index]:
            yield f"spec.schedulingGates[{index}]", duplicate(gate)


def _container_faults(pod: Pod) -> Iterator[FieldError]:
    names: set[str] = set()
    host_ports: set[str] = set()
    for field, containers in (
        ("containers", pod.containers),
        ("initContainers", pod.init_containers),
    ):
        for index, container in enumerate(containers):
            path = f"spec.{field}[{index}]"
            problem = check_dns_label(container.name)
            if problem:
                yield f"{path}.name", invalid(container.name, problem)
            if container.name in names:
                yield f"{path}.name", duplicate(container.name)
            names.add(container.name)
            if not container.image:
                yield f"{path}.image", required()
            yield from _resource_faults(path, container.requests, container.limits)
            yield from _port_faults(pod, path, container, host_ports)


def _resource_faults(
    path: str,
    requests: Mapping[str, int],
    limits: Mapping[str, int],
    *,
    pod_level: bool = False,
) -> Iterator[FieldError]:
    path = f"{path}.resources"
    for field, amounts in (("requests", requests), ("limits", limits)):
        for name, nano in amounts.items():
            problem = _resource_name_fault(name, pod_level)
            if problem:
                yield f"{path}.{field}[{name}]", problem
            elif is_extended_resource(name) and nano % NANO:
                yield f"{path}.{field}[{name}]", invalid(_show(name, nano), "must be an integer")
    yield from _limit_faults(path, requests, limits)


def _resource_name_fault(name: str, pod_level: bool) -> str:
    """Why a resource cannot be asked for by this name, or ""."""
    if pod_level:
        if name in (CPU, MEMORY) or is_hugepages(name):
            return ""
        return unsupported(name, ("cpu", "hugepages-", "memory"))
    problem = check_label_key(name)
    if problem:
        return invalid(name, problem)
    if "/" not in name:
        if name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_hugepages(name):
            return ""
        return invalid(name, "must be a standard resource for containers")
    if "kubernetes.io/" not in name and not is_extended_resource(name):
        return invalid(name, "doesn't follow extended resource name standard")
    return ""


def _show(name: str, nano: int) -> str:
    return format_quantity(nano, binary=name != CPU)


def _limit_faults(
    path: str, requests: Mapping[str, int], limits: Mapping[str, int]
) -> Iterator[FieldError]:
    for name, nano in requests.items():
        limit = limits.get(name)
        amount = _show(name, nano)
        if is_extended_resource(name) or is_hugepages(name):
            if limit is None:
                rule = "Limit must be set for non overcommitable resources"
                yield f"{path}.limits", required(rule)
            elif nano != limit:
                rule = f"must be equal to {name} limit of {_show(name, limit)}"
                yield f"{path}.requests", invalid(amount, rule)
        elif limit is not None and nano > limit:
            rule = f"must be less than or equal to {name} limit of {_show(name, limit)}"
            yield f"{path}.requests", invalid(amount, rule)
    named = {*requests, *limits}
    if any(map(is_hugepages, named)) and not named & {CPU, MEMORY}:
        yield path, forbidden("HugePages require cpu or memory")


def _port_faults(
    pod: Pod, path: str, container: Container, host_ports: set[str]
) -> Iterator[FieldError]:
    for index, port in enumerate(container.ports):
        at = f"{path}.ports[{index}]"
        if not port.container_port:
            yield f"{at}.containerPort", required()
        for field, number in (
            ("containerPort", port.container_port),
            ("hostPort", port.host_port),
        ):
            if number and not 1 <= number <= 65535:
                yield f"{at}.{field}", invalid(number, "must be between 1 and 65535, inclusive")
        if port.protocol not in _PROTOCOLS:
            yield f"{at}.protocol", unsupported(port.protocol, _PROTOCOLS)
        if port.host_ip and not _is_ip(port.host_ip):
            rule = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            yield f"{at}.hostIP", invalid(port.host_ip, rule)
        yield from _host_port_faults(pod, at, port, host_ports)


def _host_port_faults(
    pod: Pod, at: str, port: ContainerPort, taken: set[str]
) -> Iterator[FieldError]:
    if not port.host_port:
        return
    if pod.host_network and port.host_port != port.container_port:
        rule = "must match `containerPort` when `hostNetwork` is true"
        yield f"{at}.hostPort", invalid(port.host_port, rule)
    text = f"{port.protocol}/{port.host_ip}/{port.host_port}"
    if text in taken:
        yield f"{at}.hostPort", duplicate(text)
    taken.add(text)


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def _toleration_faults(path: str, toleration: Toleration) -> Iterator[FieldError]:
    key, operator = toleration.key, toleration.operator
    problem = check_label_key(key) if key else ""
    if problem:
        yield f"{path}.key", invalid(key, problem)
    if not key and operator != "Exists":
        rule = (
            'operator must be Exists when `key` is empty, which means "match all values and '
            'all keys"'
        )
        yield f"{path}.operator", invalid(operator, rule)
    if operator in ("", "Equal"):
        problem = check_label_value(toleration.value)
        if problem:
            yield f"{path}.operator", invalid(toleration.value, problem)
    elif operator != "Exists":
        yield f"{path}.operator", unsupported(operator, ("Equal", "Exists"))
    elif toleration.value:
        rule = "value must be empty when `operator` is 'Exists'"
        yield f"{path}.operator", invalid(toleration.value, rule)
    if toleration.toleration_seconds is not None and toleration.effect != NO_EXECUTE:
        rule = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield f"{path}.effect", invalid(toleration.effect, rule)
    if toleration.effect and toleration.effect not in TAINT_EFFECTS:
        yield f"{path}.effect", unsupported(toleration.effect, TAINT_EFFECTS)


def _affinity_faults(affinity: Affinity) -> Iterator[FieldError]:
    node = affinity.node_affinity
    if node is not None and node.required is not None:
        path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
        if not node.required.terms:
            yield path, required("must have at least one node selector term")
        for index, term in enumerate(node.required.terms):
            yield from node_selector_term_faults(f"{path}[{index}]", term)
    if node is not None:
        for index, preferred in enumerate(node.preferred or ()):
            path = f"spec.affinity.nodeAffinity.{_PREFERRED}[{index}]"
            yield from weight_faults(path, preferred.weight)
            yield from node_selector_term_faults(f"{path}.preference", preferred.preference)
    yield from _pod_affinity_faults("spec.affinity.podAffinity", affinity.pod_affinity)
    yield from _pod_affinity_faults("spec.affinity.podAntiAffinity", affinity.pod_anti_affinity)


def _pod_affinity_faults(path: str, affinity: PodAffinity | None) -> Iterator[FieldError]:
    if affinity is None:
        return
    for index, term in enumerate(affinity.required):
        yield from _term_faults(f"{path}.{_REQUIRED}[{index}]", term)
    for index, preferred in enumerate(affinity.preferred):
        at = f"{path}.{_PREFERRED}[{index}]"
        yield from weight_faults(at, preferred.weight)
        yield from _term_faults(f"{at}.podAffinityTerm", preferred.term)


def _term_faults(path: str, term: PodAffinityTerm) -> Iterator[FieldError]:
    yield from label_selector_faults(f"{path}.labelSelector", term.label_selector)
    yield from label_selector_faults(f"{path}.namespaceSelector", term.namespace_selector)
    for name in sorted(term.namespaces):
        problem = check_dns_label(name)
        if problem:
            yield f"{path}.namespaces", invalid(name, problem)
    yield from _topology_key_faults(path, term.topology_key)


def _topology_key_faults(path: str, key: str) -> Iterator[FieldError]:
    if not key:
        yield f"{path}.topologyKey", required("can not be empty")
        return
    problem = check_label_key(key)
    if problem:
        yield f"{path}.topologyKey", invalid(key, problem)


def _spread_faults(constraints: Iterable[TopologySpreadConstraint]) -> Iterator[FieldError]:
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        path = f"spec.topologySpreadConstraints[{index}]"
        yield from _constraint_faults(path, constraint)
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in seen:
            yield f"{path}.{{topologyKey, whenUnsatisfiable}}", duplicate(f"{{{', '.join(pair)}}}")
        seen.add(pair)


def _constraint_faults(path: str, constraint: TopologySpreadConstraint) -> Iterator[FieldError]:
    if constraint.max_skew <= 0:
        yield f"{path}.maxSkew", invalid(constraint.max_skew, "must be greater than zero")
    yield from _topology_key_faults(path, constraint.topology_key)
    action = constraint.when_unsatisfiable
    if action not in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY):
        supported = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
        yield f"{path}.whenUnsatisfiable", unsupported(action, supported)
    domains = constraint.min_domains
    if domains is not None and domains <= 0:
        yield f"{path}.minDomains", invalid(domains, "must be greater than zero")
    elif domains is not None and action != DO_NOT_SCHEDULE:
        rule = f"can only use minDomains if whenUnsatisfiable={DO_NOT_SCHEDULE}, not {action}"
        yield f"{path}.minDomains", invalid(domains, rule)
    for field, policy in (
        ("nodeAffinityPolicy", constraint.node_affinity_policy),
        ("nodeTaintsPolicy", constraint.node_taints_policy),
    ):
        if policy not in _POLICIES:
            yield f"{path}.{field}", unsupported(policy, _POLICIES)
    yield from label_selector_faults(f"{path}.labelSelector", constraint.label_selector)
    if constraint.match_label_keys and constraint.label_selector is None:
        rule = "must not be specified when labelSelector is not set"
        yield f"{path}.matchLabelKeys", forbidden(rule)


def _volume_faults(pod: Pod) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, volume in enumerate(pod.volumes):
        path = f"spec.volumes[{index}]"
        problem = check_dns_label(volume.name) if volume.name else ""
        if not volume.name:
            yield f"{path}.name", required()
        elif problem:
            yield f"{path}.name", invalid(volume.name, problem)
        elif volume.name in names:
            yield f"{path}.name", duplicate(volume.name)
        names.add(volume.name)
        if volume.source == "persistentVolumeClaim" and not volume.claim_name:
            yield f"{path}.persistentVolumeClaim.claimName", required()
