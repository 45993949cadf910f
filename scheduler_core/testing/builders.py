"""Fluent builders of Kubernetes objects for tests, examples and demonstrations.

    pod = make_pod("web-1").req(cpu="1", memory="1Gi").label(app="web").priority(5).obj()
    node = make_node("n1").capacity(cpu="4", memory="32Gi", pods="110").obj()

Every step returns the builder; `raw()` gives the JSON (a fresh copy each time), `obj()` the parsed
object. Uids follow from kind, namespace and name, so they are the same in every run. Label and
resource names that are no Python identifiers go in as a mapping: `.label({"example.com/a": "b"})`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from scheduler_core.api import (
    HOSTNAME_LABEL,
    NATIVE_POD_GROUP,
    Namespace,
    NativePodGroup,
    Node,
    PodGroup,
    PriorityClass,
)
from scheduler_core.api.native import TemplateRef, dialect_of

from .object_builder import CREATED, ObjectBuilder, resource_list, uid_for
from .pod_builder import PodBuilder

__all__ = [
    "CREATED",
    "NamespaceBuilder",
    "NativePodGroupBuilder",
    "NodeBuilder",
    "ObjectBuilder",
    "PodBuilder",
    "PodGroupBuilder",
    "PriorityClassBuilder",
    "make_namespace",
    "make_native_pod_group",
    "make_node",
    "make_pod",
    "make_pod_group",
    "make_priority_class",
    "uid_for",
]


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
        self._status()["capacity"] = {"pods": "110", **resource_list(amounts, more)}
        return self

    def allocatable(self, amounts: Mapping[str, Any] | None = None, /, **more: Any) -> Self:
        self._status()["allocatable"] = {"pods": "110", **resource_list(amounts, more)}
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
        self._spec()["minResources"] = resource_list(amounts, more)
        return self

    def timeout(self, seconds: int) -> Self:
        """scheduleTimeoutSeconds."""
        self._spec()["scheduleTimeoutSeconds"] = seconds
        return self

    def phase(self, phase: str) -> Self:
        self._status()["phase"] = phase
        return self


class NativePodGroupBuilder(ObjectBuilder[NativePodGroup]):
    """Builds a PodGroup of scheduling.k8s.io, in the names of Kubernetes 1.36 unless told so."""

    kind = NATIVE_POD_GROUP

    def api_version(self, version: str) -> Self:
        """Written in another version (`scheduling.k8s.io/v1beta1`); to be said first."""
        self._raw["apiVersion"] = version
        return self

    def gang(self, min_count: int) -> Self:
        self._spec()["schedulingPolicy"] = {"gang": {"minCount": min_count}}
        return self

    def basic(self) -> Self:
        self._spec()["schedulingPolicy"] = {"basic": {}}
        return self

    def template(self, workload: str, name: str) -> Self:
        """The Workload's template that it was made from."""
        dialect = dialect_of(self._raw["apiVersion"])
        ref = dialect.write_template_ref(TemplateRef(workload, name))
        self._spec()[dialect.template_ref_field] = ref
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


def make_native_pod_group(name: str, min_count: int = 1) -> NativePodGroupBuilder:
    """A gang of scheduling.k8s.io in namespace `default`."""
    return NativePodGroupBuilder(name).gang(min_count)


def make_namespace(name: str) -> NamespaceBuilder:
    """A namespace, with the label that the API server gives it."""
    return NamespaceBuilder(name).label({"kubernetes.io/metadata.name": name})


def make_priority_class(name: str, value: int) -> PriorityClassBuilder:
    """A priority class."""
    return PriorityClassBuilder(name).value(value)
