"""Fluent builders of Kubernetes objects for tests, examples and demonstrations.

    pod = make_pod("web-1").req(cpu="1", memory="1Gi").label(app="web").priority(5).obj()
    node = make_node("n1").capacity(cpu="4", memory="32Gi", pods="110").obj()

Every step returns the builder; `raw()` gives the JSON (a fresh copy each time), `obj()` the parsed
object. Uids follow from kind, namespace and name, so they are the same in every run. Label and
resource names that are no Python identifiers go in as a mapping: `.label({"example.com/a": "b"})`.
"""

from __future__ import annotations

import copy
import hashlib
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Self, TypeVar, cast

from scheduler_core.api import (
    HOSTNAME_LABEL,
    KINDS,
    POD_GROUP_LABEL,
    KubeObject,
    Namespace,
    Node,
    Pod,
    PodGroup,
    PriorityClass,
    format_time,
    is_extended_resource,
)

__all__ = [
    "NamespaceBuilder",
    "NodeBuilder",
    "ObjectBuilder",
    "PodBuilder",
    "PodGroupBuilder",
    "PriorityClassBuilder",
    "make_namespace",
    "make_node",
    "make_pod",
    "make_pod_group",
    "make_priority_class",
    "uid_for",
]

T = TypeVar("T", bound=KubeObject)

#: when built objects were created, unless they say otherwise: 2026-01-01T00:00:00Z
CREATED = 1767225600.0

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def uid_for(kind: str, namespace: str, name: str) -> str:
    """The uid of a built object: the same for the same kind, namespace and name."""
    digest = hashlib.sha256(f"{kind}/{namespace}/{name}".encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))


class ObjectBuilder(Generic[T]):
    """What all kinds share: metadata."""

    kind = ""

    def __init__(self, name: str) -> None:
        kind = KINDS[self.kind]
        self._meta: dict[str, Any] = {"name": name}
        if kind.namespaced:
            self._meta["namespace"] = "default"
        self._raw: dict[str, Any] = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": self._meta,
        }

    def namespace(self, namespace: str) -> Self:
        self._meta["namespace"] = namespace
        return self

    def uid(self, uid: str) -> Self:
        self._meta["uid"] = uid
        return self

    def label(self, labels: Mapping[str, str] | None = None, /, **more: str) -> Self:
        self._meta.setdefault("labels", {}).update({**(labels or {}), **more})
        return self

    def annotation(self, annotations: Mapping[str, str] | None = None, /, **more: str) -> Self:
        self._meta.setdefault("annotations", {}).update({**(annotations or {}), **more})
        return self

    def owner(self, kind: str, name: str, api_version: str = "apps/v1", uid: str = "") -> Self:
        """A controlling owner."""
        namespace = self._meta.get("namespace", "")
        self._meta.setdefault("ownerReferences", []).append(
            {
                "apiVersion": api_version,
                "kind": kind,
                "name": name,
                "uid": uid or uid_for(kind, namespace, name),
                "controller": True,
            }
        )
        return self

    def created(self, seconds: float) -> Self:
        """When it was created, in seconds since 1970."""
        self._meta["creationTimestamp"] = format_time(seconds)
        return self

    def terminating(self, seconds: float = CREATED) -> Self:
        """Deletion has been asked for."""
        self._meta["deletionTimestamp"] = format_time(seconds)
        return self

    def resource_version(self, version: str) -> Self:
        self._meta["resourceVersion"] = version
        return self

    def raw(self) -> dict[str, Any]:
        """The object's JSON, a copy of its own."""
        raw = copy.deepcopy(self._raw)
        meta = raw["metadata"]
        meta.setdefault("uid", uid_for(self.kind, meta.get("namespace", ""), meta["name"]))
        meta.setdefault("creationTimestamp", format_time(CREATED))
        return raw

    def obj(self) -> T:
        """The parsed object.

        Raises:
            InvalidObject: what was put in is malformed.
        """
        return cast(T, KINDS[self.kind].parse(self.raw()))

    def _spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = self._raw.setdefault("spec", {})
        return spec

    def _status(self) -> dict[str, Any]:
        status: dict[str, Any] = self._raw.setdefault("status", {})
        return status


def _resources(amounts: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, str]:
    named = {name.replace("_", "-"): amount for name, amount in more.items()}
    return {name: str(amount) for name, amount in {**(amounts or {}), **named}.items()}


class PodBuilder(ObjectBuilder[Pod]):
    """Builds a Pod; it gets a container without requests if it is given none."""

    kind = "Pod"

    def raw(self) -> dict[str, Any]:
        raw = super().raw()
        spec = raw.setdefault("spec", {})
        spec.setdefault("containers", [{"name": "main", "image": "registry.example/main:1"}])
        spec.setdefault("schedulerName", "default-scheduler")
        raw.setdefault("status", {}).setdefault("phase", "Pending")
        return raw

    def req(self, requests: Mapping[str, Any] | None = None, /, **more: Any) -> Self:
        """One more container, with these requests: `.req(cpu="1", ephemeral_storage="1Gi")`.

        Resources that cannot be overcommitted (extended, huge pages) get the limit they need.
        """
        asked = _resources(requests, more)
        fixed = {
            name: amount
            for name, amount in asked.items()
            if is_extended_resource(name) or name.startswith("hugepages-")
        }
        return self.container(requests=asked, limits=fixed or None)

    def container(
        self,
        name: str = "",
        *,
        image: str = "",
        requests: Mapping[str, Any] | None = None,
        limits: Mapping[str, Any] | None = None,
        ports: Sequence[Mapping[str, Any]] = (),
    ) -> Self:
        """One more container."""
        return self._add("containers", "c", name, image, requests, limits, ports)

    def init_container(
        self,
        name: str = "",
        *,
        image: str = "",
        requests: Mapping[str, Any] | None = None,
        limits: Mapping[str, Any] | None = None,
        ports: Sequence[Mapping[str, Any]] = (),
        sidecar: bool = False,
    ) -> Self:
        """One more init container; a sidecar keeps running beside the containers."""
        self._add("initContainers", "i", name, image, requests, limits, ports)
        if sidecar:
            self._spec()["initContainers"][-1]["restartPolicy"] = "Always"
        return self

    def _add(
        self,
        field: str,
        prefix: str,
        name: str,
        image: str,
        requests: Mapping[str, Any] | None,
        limits: Mapping[str, Any] | None,
        ports: Sequence[Mapping[str, Any]],
    ) -> Self:
        containers = self._spec().setdefault(field, [])
        name = name or f"{prefix}{len(containers)}"
        entry: dict[str, Any] = {"name": name, "image": image or f"registry.example/{name}:1"}
        resources = {
            key: _resources(amounts, {})
            for key, amounts in (("requests", requests), ("limits", limits))
            if amounts is not None
        }
        if resources:
            entry["resources"] = resources
        if ports:
            entry["ports"] = [dict(port) for port in ports]
        containers.append(entry)
        return self

    def host_port(self, port: int, protocol: str = "TCP", ip: str = "") -> Self:
        """One more container, which takes a port of the node."""
        entry = {"containerPort": port, "hostPort": port, "protocol": protocol}
        return self.container(ports=[{**entry, "hostIP": ip} if ip else entry])

    def pod_req(self, requests: Mapping[str, Any] | None = None, /, **more: Any) -> Self:
        """Pod-level requests."""
        self._spec()["resources"] = {"requests": _resources(requests, more)}
        return self

    def overhead(self, overhead: Mapping[str, Any] | None = None, /, **more: Any) -> Self:
        self._spec()["overhead"] = _resources(overhead, more)
        return self

    def node(self, name: str) -> Self:
        """It is bound to this node."""
        self._spec()["nodeName"] = name
        return self

    def nominated(self, node: str) -> Self:
        self._status()["nominatedNodeName"] = node
        return self

    def scheduler_name(self, name: str) -> Self:
        self._spec()["schedulerName"] = name
        return self

    def priority(self, priority: int) -> Self:
        self._spec()["priority"] = priority
        return self

    def preemption_policy(self, policy: str) -> Self:
        self._spec()["preemptionPolicy"] = policy
        return self

    def gate(self, *names: str) -> Self:
        """Scheduling gates."""
        gates = self._spec().setdefault("schedulingGates", [])
        gates.extend({"name": name} for name in names)
        return self

    def pod_group(self, name: str) -> Self:
        """It belongs to this PodGroup of scheduling.x-k8s.io."""
        return self.label({POD_GROUP_LABEL: name})

    def node_selector(self, labels: Mapping[str, str] | None = None, /, **more: str) -> Self:
        self._spec()["nodeSelector"] = {**(labels or {}), **more}
        return self

    def toleration(
        self, key: str = "", value: str = "", effect: str = "", operator: str = ""
    ) -> Self:
        """A toleration; without key or value it tolerates whatever is there (Exists)."""
        operator = operator or ("Equal" if value else "Exists")
        entry = {"key": key, "operator": operator, "value": value, "effect": effect}
        tolerations = self._spec().setdefault("tolerations", [])
        tolerations.append({name: text for name, text in entry.items() if text})
        return self

    def affinity(self, affinity: Mapping[str, Any]) -> Self:
        """spec.affinity as JSON, whole."""
        self._spec()["affinity"] = dict(affinity)
        return self

    def node_affinity_in(self, key: str, *values: str) -> Self:
        """One more required term (terms are ORed): the node's label is one of `values`."""
        terms = (
            self._affinity("nodeAffinity")
            .setdefault(_REQUIRED, {})
            .setdefault("nodeSelectorTerms", [])
        )
        terms.append(_in_term(key, values))
        return self

    def preferred_node_affinity_in(self, weight: int, key: str, *values: str) -> Self:
        """One more preferred term."""
        terms = self._affinity("nodeAffinity").setdefault(_PREFERRED, [])
        terms.append({"weight": weight, "preference": _in_term(key, values)})
        return self

    def pod_affinity(
        self, topology_key: str, labels: Mapping[str, str], *, weight: int | None = None
    ) -> Self:
        """One more term of affinity to pods with `labels`; preferred if it has a weight."""
        return self._pod_term("podAffinity", topology_key, labels, weight)

    def pod_anti_affinity(
        self, topology_key: str, labels: Mapping[str, str], *, weight: int | None = None
    ) -> Self:
        """One more term of anti-affinity to pods with `labels`; preferred if it has a weight."""
        return self._pod_term("podAntiAffinity", topology_key, labels, weight)

    def _pod_term(
        self, part: str, topology_key: str, labels: Mapping[str, str], weight: int | None
    ) -> Self:
        term = {"topologyKey": topology_key, "labelSelector": {"matchLabels": dict(labels)}}
        if weight is None:
            self._affinity(part).setdefault(_REQUIRED, []).append(term)
        else:
            preferred = self._affinity(part).setdefault(_PREFERRED, [])
            preferred.append({"weight": weight, "podAffinityTerm": term})
        return self

    def _affinity(self, part: str) -> dict[str, Any]:
        found: dict[str, Any] = self._spec().setdefault("affinity", {}).setdefault(part, {})
        return found

    def spread(
        self,
        topology_key: str,
        labels: Mapping[str, str],
        *,
        max_skew: int = 1,
        when_unsatisfiable: str = "DoNotSchedule",
        **more: Any,
    ) -> Self:
        """A topology spread constraint; further fields by their JSON names (`minDomains=2`)."""
        constraints = self._spec().setdefault("topologySpreadConstraints", [])
        constraints.append(
            {
                "topologyKey": topology_key,
                "maxSkew": max_skew,
                "whenUnsatisfiable": when_unsatisfiable,
                "labelSelector": {"matchLabels": dict(labels)},
                **more,
            }
        )
        return self

    def pvc(self, *claims: str) -> Self:
        """Volumes of these claims."""
        volumes = self._spec().setdefault("volumes", [])
        for claim in claims:
            source = {"claimName": claim}
            volumes.append({"name": f"v{len(volumes)}", "persistentVolumeClaim": source})
        return self

    def volume(self, name: str, **source: Any) -> Self:
        """A volume with its source by JSON name: `.volume("data", emptyDir={})`."""
        self._spec().setdefault("volumes", []).append({"name": name, **source})
        return self

    def phase(self, phase: str) -> Self:
        self._status()["phase"] = phase
        return self

    def started(self, seconds: float) -> Self:
        """status.startTime, in seconds since 1970."""
        self._status()["startTime"] = format_time(seconds)
        return self

    def condition(self, type_: str, status: str, reason: str = "", message: str = "") -> Self:
        entry = {"type": type_, "status": status, "reason": reason, "message": message}
        conditions = self._status().setdefault("conditions", [])
        conditions.append({name: text for name, text in entry.items() if text})
        return self

    def container_status(
        self,
        name: str,
        *,
        requests: Mapping[str, Any] | None = None,
        allocated: Mapping[str, Any] | None = None,
        init: bool = False,
    ) -> Self:
        """Resources that the kubelet reports for a container."""
        entry: dict[str, Any] = {"name": name}
        if requests is not None:
            entry["resources"] = {"requests": _resources(requests, {})}
        if allocated is not None:
            entry["allocatedResources"] = _resources(allocated, {})
        field = "initContainerStatuses" if init else "containerStatuses"
        self._status().setdefault(field, []).append(entry)
        return self


def _in_term(key: str, values: Sequence[str]) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


class NodeBuilder(ObjectBuilder[Node]):
    """Builds a Node: 4 cpu, 32Gi and 110 pods unless told otherwise, with its hostname label."""

    kind = "Node"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.label({HOSTNAME_LABEL: name})

    def raw(self) -> dict[str, Any]:
        raw = super().raw()
        status = raw.setdefault("status", {})
        status.setdefault("capacity", {"cpu": "4", "memory": "32Gi", "pods": "110"})
        status.setdefault("allocatable", dict(status["capacity"]))
        return raw

    def capacity(self, amounts: Mapping[str, Any] | None = None, /, **more: Any) -> Self:
        """Capacity, and allocatable if that is not given; pods are 110 if left out."""
        self._status()["capacity"] = {"pods": "110", **_resources(amounts, more)}
        return self

    def allocatable(self, amounts: Mapping[str, Any] | None = None, /, **more: Any) -> Self:
        self._status()["allocatable"] = {"pods": "110", **_resources(amounts, more)}
        return self

    def zone(self, zone: str, region: str = "") -> Self:
        self.label({"topology.kubernetes.io/zone": zone})
        return self.label({"topology.kubernetes.io/region": region}) if region else self

    def taint(self, key: str, value: str = "", effect: str = "NoSchedule") -> Self:
        entry = {"key": key, "value": value, "effect": effect}
        taints = self._spec().setdefault("taints", [])
        taints.append({name: text for name, text in entry.items() if text})
        return self

    def unschedulable(self, cordoned: bool = True) -> Self:
        self._spec()["unschedulable"] = cordoned
        return self

    def image(self, *names: str, size: int) -> Self:
        """An image on the node, of `size` bytes."""
        images = self._status().setdefault("images", [])
        images.append({"names": list(names), "sizeBytes": size})
        return self

    def declared_features(self, *names: str) -> Self:
        self._status()["declaredFeatures"] = list(names)
        return self

    def condition(self, type_: str, status: str, reason: str = "") -> Self:
        entry = {"type": type_, "status": status, "reason": reason}
        conditions = self._status().setdefault("conditions", [])
        conditions.append({name: text for name, text in entry.items() if text})
        return self


class PodGroupBuilder(ObjectBuilder[PodGroup]):
    """Builds a PodGroup of scheduling.x-k8s.io."""

    kind = "PodGroup"

    def min_member(self, count: int) -> Self:
        self._spec()["minMember"] = count
        return self

    def min_resources(self, amounts: Mapping[str, Any] | None = None, /, **more: Any) -> Self:
        self._spec()["minResources"] = _resources(amounts, more)
        return self

    def timeout(self, seconds: int) -> Self:
        """scheduleTimeoutSeconds."""
        self._spec()["scheduleTimeoutSeconds"] = seconds
        return self

    def phase(self, phase: str) -> Self:
        self._status()["phase"] = phase
        return self


class NamespaceBuilder(ObjectBuilder[Namespace]):
    """Builds a Namespace."""

    kind = "Namespace"


class PriorityClassBuilder(ObjectBuilder[PriorityClass]):
    """Builds a PriorityClass."""

    kind = "PriorityClass"

    def value(self, value: int) -> Self:
        self._raw["value"] = value
        return self

    def global_default(self) -> Self:
        self._raw["globalDefault"] = True
        return self

    def preemption_policy(self, policy: str) -> Self:
        self._raw["preemptionPolicy"] = policy
        return self


def make_pod(name: str) -> PodBuilder:
    """A pod in namespace `default`."""
    return PodBuilder(name)


def make_node(name: str) -> NodeBuilder:
    """A node."""
    return NodeBuilder(name)


def make_pod_group(name: str, min_member: int = 1) -> PodGroupBuilder:
    """A PodGroup in namespace `default`."""
    return PodGroupBuilder(name).min_member(min_member)


def make_namespace(name: str) -> NamespaceBuilder:
    """A namespace, with the label that the API server gives it."""
    return NamespaceBuilder(name).label({"kubernetes.io/metadata.name": name})


def make_priority_class(name: str, value: int) -> PriorityClassBuilder:
    """A priority class."""
    return PriorityClassBuilder(name).value(value)
