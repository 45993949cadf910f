"""Builder of pods; see `builders`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from scheduler_core.api import POD_GROUP_LABEL, Pod, format_time, is_extended_resource

from .object_builder import ObjectBuilder, resource_list

__all__ = ["PodBuilder"]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


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
        asked = resource_list(requests, more)
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
            key: resource_list(amounts, {})
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
        self._spec()["resources"] = {"requests": resource_list(requests, more)}
        return self

    def overhead(self, overhead: Mapping[str, Any] | None = None, /, **more: Any) -> Self:
        self._spec()["overhead"] = resource_list(overhead, more)
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

    def scheduling_group(self, name: str) -> Self:
        """It belongs to this PodGroup of scheduling.k8s.io (native gangs)."""
        self._spec()["schedulingGroup"] = {"podGroupName": name}
        return self

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
            entry["resources"] = {"requests": resource_list(requests, {})}
        if allocated is not None:
            entry["allocatedResources"] = resource_list(allocated, {})
        field = "initContainerStatuses" if init else "containerStatuses"
        self._status().setdefault(field, []).append(entry)
        return self


def _in_term(key: str, values: Sequence[str]) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
