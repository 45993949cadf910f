"""What the server fills in, per kind (defaulting and admission of kube-apiserver 1.36)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from scheduler_core.api.pod import DEFAULT_SCHEDULER_NAME
from scheduler_core.api.quantity import parse_nano
from scheduler_core.ports import Json

__all__ = ["apply_defaults", "qos_class"]

_TOLERATE_SECONDS: Final = 300
_EVICTING_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_QOS_RESOURCES: Final = ("cpu", "memory")


def apply_defaults(kind: str, obj: Json) -> None:
    """Fill in what was left out; `obj` belongs to the caller and is changed.

    What has the wrong type is left alone: validation comes afterwards and names it.
    """
    fill = _DEFAULTS.get(kind)
    if fill is not None:
        fill(obj)


def _pod(obj: Json) -> None:
    spec = _object(obj, "spec")
    if spec is None:
        return
    _pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    for container in _containers(spec):
        _requests_from_limits(container["resources"])
        if spec.get("hostNetwork"):
            _host_ports(container)
    _tolerations(spec)
    status = _object(obj, "status")
    if status is not None:
        if not status.get("phase"):
            status["phase"] = "Pending"
        status.setdefault("qosClass", qos_class(spec))


def _pod_spec(spec: Json) -> None:
    """What a pod's own spec and a template's have in common."""
    for key, value in _POD_SPEC.items():
        spec.setdefault(key, value)
    spec.setdefault("securityContext", {})
    for container in _containers(spec):
        _container(container)


_POD_SPEC: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": DEFAULT_SCHEDULER_NAME,
        "terminationGracePeriodSeconds": 30,
    }
)


def _container(container: Json) -> None:
    container.setdefault("imagePullPolicy", _pull_policy(container.get("image")))
    container.setdefault("resources", {})
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for port in _ports(container):
        port.setdefault("protocol", "TCP")


def _ports(container: Json) -> Iterator[Json]:
    ports = container.get("ports")
    return (p for p in (ports if isinstance(ports, list) else ()) if isinstance(p, dict))


def _host_ports(container: Json) -> None:
    for port in _ports(container):
        if "containerPort" in port:
            port.setdefault("hostPort", port["containerPort"])


def _requests_from_limits(resources: Any) -> None:
    limits = resources.get("limits") if isinstance(resources, dict) else None
    if not isinstance(limits, dict) or not limits:
        return
    requests = resources.setdefault("requests", {})
    if isinstance(requests, dict):
        for name, quantity in limits.items():
            requests.setdefault(name, quantity)


def _pull_policy(image: Any) -> str:
    last = image.rpartition("/")[2] if isinstance(image, str) else ""
    if "@" in last:
        return "IfNotPresent"
    _, _, tag = last.partition(":")
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _tolerations(spec: Json) -> None:
    found = spec.get("tolerations")
    if found is not None and not isinstance(found, list):
        return
    present = found or []
    if not all(isinstance(toleration, dict) for toleration in present):
        return
    added = [
        {
            "effect": "NoExecute",
            "key": key,
            "operator": "Exists",
            "tolerationSeconds": _TOLERATE_SECONDS,
        }
        for key in _EVICTING_TAINTS
        if not any(_tolerates_eviction(toleration, key) for toleration in present)
    ]
    if added:
        spec["tolerations"] = [*present, *added]


def _tolerates_eviction(toleration: Json, key: str) -> bool:
    return toleration.get("key") in (key, None, "") and toleration.get("effect") in (
        "NoExecute",
        None,
        "",
    )


def qos_class(spec: Json) -> str:
    """Guaranteed, Burstable or BestEffort, from the containers' cpu and memory."""
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    guaranteed = True
    for container in _containers(spec):
        resources = container.get("resources")
        of_container = resources if isinstance(resources, dict) else {}
        _add_up(requests, of_container.get("requests"))
        found = _add_up(limits, of_container.get("limits"))
        guaranteed = guaranteed and found == len(_QOS_RESOURCES)
    if not requests and not limits:
        return "BestEffort"
    if guaranteed and requests == limits:
        return "Guaranteed"
    return "Burstable"


def _add_up(total: dict[str, int], amounts: Any) -> int:
    """Add positive cpu and memory to `total`; how many of the two there were."""
    if not isinstance(amounts, dict):
        return 0
    found = 0
    for name in _QOS_RESOURCES:
        try:
            nano = parse_nano(amounts[name]) if name in amounts else 0
        except ValueError:
            continue  # validation names it
        if nano > 0:
            found += 1
            total[name] = total.get(name, 0) + nano
    return found


def _node(obj: Json) -> None:
    _object(obj, "spec")
    status = _object(obj, "status")
    if status is not None and "allocatable" not in status and "capacity" in status:
        status["allocatable"] = status["capacity"]


def _namespace(obj: Json) -> None:
    spec = _object(obj, "spec")
    if spec is not None:
        spec.setdefault("finalizers", ["kubernetes"])
    status = _object(obj, "status")
    if status is not None:
        status.setdefault("phase", "Active")
    labels = _object(obj["metadata"], "labels")
    if labels is not None:
        labels.setdefault("kubernetes.io/metadata.name", obj["metadata"].get("name", ""))


def _priority_class(obj: Json) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _disruption_budget(obj: Json) -> None:
    status = _object(obj, "status")
    if status is not None:
        for key in ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"):
            status.setdefault(key, 0)


def _storage_class(obj: Json) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _claim(obj: Json) -> None:
    spec = _object(obj, "spec")
    if spec is not None:
        spec.setdefault("volumeMode", "Filesystem")
    status = _object(obj, "status")
    if status is not None:
        status.setdefault("phase", "Pending")


def _volume(obj: Json) -> None:
    spec = _object(obj, "spec")
    if spec is not None:
        spec.setdefault("volumeMode", "Filesystem")
        spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    status = _object(obj, "status")
    if status is not None:
        status.setdefault("phase", "Pending")


def _template(spec: Json) -> None:
    template = _object(spec, "template")
    of_pod = _object(template, "spec") if template is not None else None
    if of_pod is not None:
        _pod_spec(of_pod)


def _replica_set(obj: Json) -> None:
    spec = _object(obj, "spec")
    if spec is None:
        return
    spec.setdefault("replicas", 1)
    _template(spec)
    status = _object(obj, "status")
    if status is not None:
        status.setdefault("replicas", 0)


def _deployment(obj: Json) -> None:
    spec = _object(obj, "spec")
    if spec is None:
        return
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = _object(spec, "strategy")
    if strategy is not None:
        strategy.setdefault("type", "RollingUpdate")
        rolling = _object(strategy, "rollingUpdate") if _rolls(strategy) else None
        if rolling is not None:
            rolling.setdefault("maxSurge", "25%")
            rolling.setdefault("maxUnavailable", "25%")
    _template(spec)
    _object(obj, "status")


def _stateful_set(obj: Json) -> None:
    spec = _object(obj, "spec")
    if spec is None:
        return
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = _object(spec, "updateStrategy")
    if strategy is not None:
        strategy.setdefault("type", "RollingUpdate")
        rolling = _object(strategy, "rollingUpdate") if _rolls(strategy) else None
        if rolling is not None:
            rolling.setdefault("partition", 0)
    _template(spec)


def _rolls(strategy: Json) -> bool:
    return bool(strategy["type"] == "RollingUpdate")


def _job(obj: Json) -> None:
    spec = _object(obj, "spec")
    if spec is None:
        return
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed")
    _template(spec)
    _object(obj, "status")


def _object(parent: Json, key: str) -> Json | None:
    """The object at `key`, made if it is not there; None if it is something else."""
    found = parent.get(key)
    if found is None:
        found = parent[key] = {}
    return found if isinstance(found, dict) else None


def _containers(spec: Json) -> Iterator[Json]:
    for key in ("initContainers", "containers"):
        found = spec.get(key)
        for container in found if isinstance(found, list) else ():
            if isinstance(container, dict):
                yield container


_DEFAULTS: Final[Mapping[str, Callable[[Json], None]]] = MappingProxyType(
    {
        "Deployment": _deployment,
        "Job": _job,
        "Namespace": _namespace,
        "Node": _node,
        "PersistentVolume": _volume,
        "PersistentVolumeClaim": _claim,
        "Pod": _pod,
        "PodDisruptionBudget": _disruption_budget,
        "PriorityClass": _priority_class,
        "ReplicaSet": _replica_set,
        "ReplicationController": _replica_set,
        "StatefulSet": _stateful_set,
        "StorageClass": _storage_class,
    }
)
