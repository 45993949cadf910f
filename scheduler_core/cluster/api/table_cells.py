"""The cells of each kind's table (kube-apiserver 1.36, printersinternal)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from scheduler_core.api.reader import parse_time
from scheduler_core.ports import Json

from .label_text import selector_text
from .pod_cells import pod_cells
from .spans import since

__all__ = ["CELLS", "Cells", "age"]

#: (object, now) -> cells
Cells = Callable[[Json, float], list[Any]]

_NONE: Final = "<none>"
_UNKNOWN: Final = "<unknown>"


def age(obj: Json, now: float) -> str:
    """How long the object has been there."""
    return elapsed(obj["metadata"].get("creationTimestamp"), now)


def elapsed(text: Any, now: float) -> str:
    """How long ago a time is; `<unknown>` without one."""
    return since(parse_time(text), now) if isinstance(text, str) and text else _UNKNOWN


def _name(obj: Json) -> str:
    return str(obj["metadata"]["name"])


def _node(obj: Json, now: float) -> list[Any]:
    status, info = obj.get("status", {}), obj.get("status", {}).get("nodeInfo") or {}
    addresses = status.get("addresses") or []

    def address(kind: str) -> str:
        return next((a["address"] for a in addresses if a.get("type") == kind), _NONE)

    return [
        _name(obj),
        _node_status(obj),
        ",".join(_roles(obj)) or _NONE,
        age(obj, now),
        info.get("kubeletVersion", ""),
        address("InternalIP"),
        address("ExternalIP"),
        info.get("osImage") or _UNKNOWN,
        info.get("kernelVersion") or _UNKNOWN,
        info.get("containerRuntimeVersion") or _UNKNOWN,
    ]


def _node_status(obj: Json) -> str:
    conditions = obj.get("status", {}).get("conditions") or []
    ready = next((c for c in conditions if c.get("type") == "Ready"), None)
    words = ["Unknown"] if ready is None else ["Ready" if ready["status"] == "True" else "NotReady"]
    if obj.get("spec", {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(obj: Json) -> list[str]:
    prefix, found = "node-role.kubernetes.io/", set()
    for key, value in (obj["metadata"].get("labels") or {}).items():
        if key.startswith(prefix) and key != prefix:
            found.add(key.removeprefix(prefix))
        elif key == "kubernetes.io/role" and value:
            found.add(value)
    return sorted(found)


def _namespace(obj: Json, now: float) -> list[Any]:
    return [_name(obj), obj.get("status", {}).get("phase", ""), age(obj, now)]


def _config_map(obj: Json, now: float) -> list[Any]:
    entries = len(obj.get("data") or {}) + len(obj.get("binaryData") or {})
    return [_name(obj), entries, age(obj, now)]


def _template(obj: Json) -> list[str]:
    """Names and images of the containers of a template."""
    spec = (obj.get("spec", {}).get("template") or {}).get("spec") or {}
    containers = spec.get("containers") or []
    names = ",".join(str(c.get("name", "")) for c in containers)
    return [names, ",".join(str(c.get("image", "")) for c in containers)]


def _selector(obj: Json) -> str:
    return selector_text(obj.get("spec", {}).get("selector")) or _NONE


def _deployment(obj: Json, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    return [
        _name(obj),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj, now),
        *_template(obj),
        _selector(obj),
    ]


def _replicas(obj: Json, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    return [
        _name(obj),
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(obj, now),
        *_template(obj),
        _selector(obj),
    ]


def _stateful_set(obj: Json, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [_name(obj), ready, age(obj, now), *_template(obj)]


def _job(obj: Json, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    wanted, done = spec.get("completions"), status.get("succeeded", 0)
    parallelism = spec.get("parallelism", 0)
    if wanted is not None:
        completions = f"{done}/{wanted}"
    else:
        completions = f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"
    return [
        _name(obj),
        _job_status(obj),
        completions,
        _duration(status, now),
        age(obj, now),
        *_template(obj),
        _selector(obj),
    ]


def _job_status(obj: Json) -> str:
    conditions = obj.get("status", {}).get("conditions") or []
    true = {c.get("type") for c in conditions if c.get("status") == "True"}
    if "Complete" in true:
        return "Complete"
    if "Failed" in true:
        return "Failed"
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if "Suspended" in true:
        return "Suspended"
    if "FailureTarget" in true:
        return "FailureTarget"
    return "SuccessCriteriaMet" if "SuccessCriteriaMet" in true else "Running"


def _duration(status: Json, now: float) -> str:
    began, ended = status.get("startTime"), status.get("completionTime")
    if not began:
        return ""
    return elapsed(began, parse_time(ended) if ended else now)


def _service(obj: Json, now: float) -> list[Any]:
    spec = obj.get("spec", {})
    kind = spec.get("type", "ClusterIP")
    ports = ",".join(_port(port) for port in spec.get("ports") or []) or _NONE
    return [
        _name(obj),
        kind,
        spec.get("clusterIP") or _NONE,
        _external(obj, kind),
        ports,
        age(obj, now),
        selector_text(spec.get("selector")) or _NONE,
    ]


def _port(port: Json) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{node}/{port.get('protocol', 'TCP')}"


def _external(obj: Json, kind: str) -> str:
    spec = obj.get("spec", {})
    own = list(spec.get("externalIPs") or [])
    if kind == "ExternalName":
        return str(spec.get("externalName", ""))
    if kind == "LoadBalancer":
        found = (obj.get("status", {}).get("loadBalancer") or {}).get("ingress") or []
        addresses = [str(i.get("ip") or i.get("hostname") or "") for i in found] + own
        return ",".join(addresses) or "<pending>"
    return ",".join(own) or _NONE


def _event(obj: Json, now: float) -> list[Any]:
    """Of either version: their fields have different names."""
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    series = obj.get("series") or {}
    at = obj.get("eventTime")
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or at
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp")
    count = series.get("count") or obj.get("count") or obj.get("deprecatedCount") or 1
    reporter = obj.get("reportingComponent") or obj.get("reportingController") or ""
    shown = source.get("component") or reporter
    host = source.get("host") or obj.get("reportingInstance") or ""
    return [
        elapsed(series.get("lastObservedTime") or last or first, now),
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}",
        about.get("fieldPath", ""),
        f"{shown}, {host}" if host else shown,
        str(obj.get("message") or obj.get("note") or "").strip(),
        elapsed(first, now),
        count,
        _name(obj),
    ]


_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(found: Sequence[str] | None) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (found or ()))


def _volume(obj: Json, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    claim = spec.get("claimRef")
    phase = status.get("phase", "")
    return [
        _name(obj),
        (spec.get("capacity") or {}).get("storage", "0"),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        "Terminating" if obj["metadata"].get("deletionTimestamp") else phase,
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason", ""),
        age(obj, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _claim(obj: Json, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    bound = bool(spec.get("volumeName"))
    phase = status.get("phase", "")
    return [
        _name(obj),
        "Terminating" if obj["metadata"].get("deletionTimestamp") else phase,
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", "") if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or "<unset>",
        age(obj, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _storage_class(obj: Json, now: float) -> list[Any]:
    annotations = obj["metadata"].get("annotations") or {}
    default = annotations.get("storageclass.kubernetes.io/is-default-class") == "true"
    return [
        f"{_name(obj)} (default)" if default else _name(obj),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode") or "<unset>",
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


def _csi_node(obj: Json, now: float) -> list[Any]:
    return [_name(obj), len(obj.get("spec", {}).get("drivers") or []), age(obj, now)]


def _attachment(obj: Json, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    return [
        _name(obj),
        spec.get("attacher", ""),
        (spec.get("source") or {}).get("persistentVolumeName", ""),
        spec.get("nodeName", ""),
        bool(status.get("attached")),
        age(obj, now),
    ]


def _priority_class(obj: Json, now: float) -> list[Any]:
    default, policy = bool(obj.get("globalDefault")), obj.get("preemptionPolicy", "")
    return [_name(obj), obj.get("value", 0), default, age(obj, now), policy]


def _budget(obj: Json, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    return [
        _name(obj),
        "N/A" if least is None else str(least),
        "N/A" if most is None else str(most),
        status.get("disruptionsAllowed", 0),
        age(obj, now),
    ]


def _lease(obj: Json, now: float) -> list[Any]:
    return [_name(obj), obj.get("spec", {}).get("holderIdentity") or "", age(obj, now)]


def _pod_group(obj: Json, now: float) -> list[Any]:
    spec = obj.get("spec", {})
    policy = spec.get("schedulingPolicy") or {}
    named = next((word for key, word in _GROUP_POLICIES.items() if key in policy), _NONE)
    template = (spec.get("podGroupTemplateRef") or {}).get("workload") or {}
    conditions = obj.get("status", {}).get("conditions") or []
    found = {c.get("type"): c for c in conditions}.get("PodGroupScheduled", {})
    status = "Scheduled" if found.get("status") == "True" else found.get("reason") or "Pending"
    return [_name(obj), named, template.get("workloadName") or _NONE, status, age(obj, now)]


_GROUP_POLICIES: Final = {"gang": "Gang", "basic": "Basic"}


def _workload(obj: Json, now: float) -> list[Any]:
    return [_name(obj), age(obj, now)]


def _csi_driver(obj: Json, now: float) -> list[Any]:
    spec = obj.get("spec", {})
    audiences = [request.get("audience", "") for request in spec.get("tokenRequests") or []]
    return [
        _name(obj),
        bool(spec.get("attachRequired", True)),
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        ",".join(audiences) or "<unset>",
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or _NONE,
        age(obj, now),
    ]


def _scale(obj: Json, now: float) -> list[Any]:
    wanted, there = obj["spec"].get("replicas", 0), obj["status"].get("replicas", 0)
    return [_name(obj), wanted, there, age(obj, now)]


#: kind -> what makes its cells
CELLS: Final[Mapping[str, Cells]] = MappingProxyType(
    {
        "ConfigMap": _config_map,
        "CSIDriver": _csi_driver,
        "CSINode": _csi_node,
        "Deployment": _deployment,
        "Event": _event,
        "Job": _job,
        "Lease": _lease,
        "Namespace": _namespace,
        "Node": _node,
        "PersistentVolume": _volume,
        "PersistentVolumeClaim": _claim,
        "Pod": pod_cells,
        "PodDisruptionBudget": _budget,
        "PodGroup": _pod_group,
        "PriorityClass": _priority_class,
        "ReplicaSet": _replicas,
        "ReplicationController": _replicas,
        "Scale": _scale,
        "Service": _service,
        "StatefulSet": _stateful_set,
        "StorageClass": _storage_class,
        "VolumeAttachment": _attachment,
        "Workload": _workload,
    }
)
