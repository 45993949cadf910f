"""What this door to the store fills in and adds, beyond what every door does.

Nodes that come in here are not ready until someone says that they are, and services get an
address. (A workload's own nodes do not come in here.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from scheduler_core.ports import Json

from ..errors import forbidden, invalid
from ..resources import Resource
from ..store import Transaction
from . import schema
from .catalog import Served
from .event_rules import event_faults

__all__ = ["admit_created", "admit_default_class", "complete"]

NOT_READY: Final = "node.kubernetes.io/not-ready"


def complete(served: Served, obj: Json) -> None:
    """Defaults of kinds that no scheduler reads; `obj` is changed."""
    fill = served.fill if served.custom else _DEFAULTS.get(served.kind)
    if fill is not None:
        fill(obj)


def admit_created(served: Served, tx: Transaction, resource: Resource, obj: Json) -> None:
    """Called with each new object, after its defaults.

    Raises:
        ApiError: 422, for what is demanded of those alone that come in here.
    """
    if resource.has_status and "status" not in obj and not served.custom:
        empty = schema.zero(served.struct).get("status")
        if empty is not None:
            obj["status"] = empty
    if resource.kind == "CustomResourceDefinition":
        versions = obj["spec"].get("versions") or []
        obj["status"]["storedVersions"] = [v.get("name") for v in versions if v.get("storage")]
    elif resource.kind == "Event":
        faults = event_faults(obj, core=not served.group)
        if faults:
            raise invalid(resource, str(obj["metadata"].get("name") or ""), faults)
    elif resource.kind == "Node":
        _taint(obj)
    elif resource.kind == "PriorityClass":
        admit_default_class(tx, resource, obj)
    elif resource.kind == "Service":
        _give_address(tx, obj)


def admit_default_class(tx: Transaction, resource: Resource, obj: Json) -> None:
    """Raises:
    ApiError: 403, another class is the default one.
    """
    if not obj.get("globalDefault"):
        return
    name = str(obj["metadata"].get("name") or "")
    for other in tx.objects(resource.kind).values():
        if other.get("globalDefault") and other["metadata"]["name"] != name:
            raise forbidden(
                resource,
                name,
                f"PriorityClass {other['metadata']['name']} is already marked as default. Only "
                "one default can exist",
            )


def _taint(node: Json) -> None:
    """kube-apiserver 1.36, TaintNodesByCondition."""
    spec = node.get("spec")
    if not isinstance(spec, dict):
        return
    taints = spec.get("taints") or []
    if not isinstance(taints, list):
        return
    known = any(
        isinstance(t, dict) and t.get("key") == NOT_READY and t.get("effect") == "NoSchedule"
        for t in taints
    )
    if not known:
        spec["taints"] = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]


def _service(obj: Json) -> None:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    spec.setdefault("sessionAffinity", "None")
    if spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {"clientIP": {"timeoutSeconds": 10800}})
    spec.setdefault("type", "ClusterIP")
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    for port in spec.get("ports") or []:
        port.setdefault("protocol", "TCP")
        if not port.get("targetPort"):
            port["targetPort"] = port.get("port", 0)


#: 10.96.0.0/16, of which the first address is the API server's own
_ADDRESSES: Final = range(2, 65_534)


def _give_address(tx: Transaction, service: Json) -> None:
    spec = service.get("spec")
    if not isinstance(spec, dict) or spec.get("type") == "ExternalName":
        return
    if not spec.get("clusterIP"):
        taken = {other.get("spec", {}).get("clusterIP") for other in tx.objects("Service").values()}
        addresses = (f"10.96.{number >> 8}.{number & 255}" for number in _ADDRESSES)
        spec["clusterIP"] = next(address for address in addresses if address not in taken)
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def _definition(obj: Json) -> None:
    spec = obj.get("spec") or {}
    spec.setdefault("conversion", {"strategy": "None"})
    names = spec.get("names") or {}
    kind = str(names.get("kind") or "")
    names.setdefault("singular", kind.lower())
    names.setdefault("listKind", f"{kind}List")


def _job(obj: Json) -> None:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    if spec.get("manualSelector") is None:
        spec["manualSelector"] = False
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels and not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(labels)


def _node(obj: Json) -> None:
    spec, status = obj.get("spec"), obj.get("status")
    if isinstance(spec, dict):
        blocks = spec.get("podCIDRs") or []
        if spec.get("podCIDR") and blocks[:1] != [spec["podCIDR"]]:
            spec["podCIDRs"] = [spec["podCIDR"]]
        elif blocks:
            spec["podCIDR"] = blocks[0]
    if isinstance(status, dict) and status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def _pod(obj: Json) -> None:
    spec, status = obj.get("spec"), obj.get("status")
    if isinstance(spec, dict) and spec.get("serviceAccount"):
        spec.setdefault("serviceAccountName", spec["serviceAccount"])
    elif isinstance(spec, dict) and spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    for volume in (spec.get("volumes") or []) if isinstance(spec, dict) else []:
        if list(volume) == ["name"]:
            volume["emptyDir"] = {}
    if not isinstance(status, dict):
        return
    addresses = status.get("podIPs") or []
    first = addresses[0].get("ip", "") if addresses else ""
    if status.get("podIP") and status["podIP"] != first:
        status["podIPs"] = [{"ip": status["podIP"]}]
    elif first:
        status["podIP"] = first


def _stateful_set(obj: Json) -> None:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    for moment in ("whenDeleted", "whenScaled"):
        policy.setdefault(moment, "Retain")
    for claim in spec.get("volumeClaimTemplates") or []:
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
        claim.setdefault("status", {}).setdefault("phase", "Pending")


def _volume(obj: Json) -> None:
    spec = obj.get("spec")
    place = spec.get("hostPath") if isinstance(spec, dict) else None
    if isinstance(place, dict):
        place.setdefault("type", "")


_DEFAULTS: Final[Mapping[str, Callable[[Json], None]]] = MappingProxyType(
    {
        "CustomResourceDefinition": _definition,
        "Job": _job,
        "Node": _node,
        "PersistentVolume": _volume,
        "Pod": _pod,
        "Service": _service,
        "StatefulSet": _stateful_set,
    }
)
