"""Pod, parsed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from .affinity import NO_AFFINITY, Affinity, TopologySpreadConstraint
from .containers import Container, HostPort, PodResourceClaim, ResourceStatus, Volume
from .errors import required
from .metadata import Condition, KubeObject, read_conditions, read_metadata
from .reader import EMPTY, Reader, nothing
from .signature import signature_of, spec_signature
from .taints import Toleration

__all__ = ["DEFAULT_SCHEDULER_NAME", "POD_GROUP_LABEL", "Pod"]

DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"

#: the label by which a pod belongs to a PodGroup of scheduling.x-k8s.io in its namespace
POD_GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"

_NO_STATUS: Final = ResourceStatus()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Pod(KubeObject):
    """A pod.

    Attributes:
        priority: 0 if the pod has none.
        preemption_policy: PreemptLowerPriority or Never, default applied.
        node_name: "" until it is bound (or assumed).
        node_selector: None if absent; `{}` is something else (NodeAffinity's PreFilter).
        pod_requests, pod_limits: pod-level resources in nano-units; see `api.resources` for what
            the scheduler counts.
        overhead: nano-units.
        container_statuses: {container name: resources reported}, init containers apart.
        resize_infeasible: condition PodResizePending has reason Infeasible.
        start_time: seconds since 1970, or None.
        scheduling_group: spec.schedulingGroup.podGroupName (native gangs), or "".
    """

    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    priority: int = 0
    priority_class_name: str = ""
    preemption_policy: str = "PreemptLowerPriority"
    node_name: str = ""
    node_selector: Mapping[str, str] | None = None
    affinity: Affinity = NO_AFFINITY
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[str, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    pod_requests: Mapping[str, int] = field(default_factory=nothing)
    pod_limits: Mapping[str, int] = field(default_factory=nothing)
    overhead: Mapping[str, int] = field(default_factory=nothing)
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    host_network: bool = False
    host_users: bool = True
    restart_policy: str = "Always"
    termination_grace_period_seconds: int | None = None
    scheduling_group: str = ""
    phase: str = "Pending"
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    start_time: float | None = None
    container_statuses: Mapping[str, ResourceStatus] = field(default_factory=nothing)
    init_container_statuses: Mapping[str, ResourceStatus] = field(default_factory=nothing)
    status_resources: ResourceStatus = _NO_STATUS
    resize_infeasible: bool = False

    # Filled by api.resources on first use; derived from the fields above, so never stale.
    _requests: Mapping[str, int] | None = field(default=None, init=False)
    _assigned_requests: Mapping[str, int] | None = field(default=None, init=False)
    _nonzero_requests: tuple[int, int] | None = field(default=None, init=False)
    _scoring_requests: Mapping[str, int] | None = field(default=None, init=False)
    _host_ports: tuple[HostPort, ...] | None = field(default=None, init=False)
    _signature: bytes | None = field(default=None, init=False)

    @property
    def signature(self) -> bytes:
        """16 bytes, equal for pods that every plugin must treat alike; see `api.signature`.

        Worked out on first use and kept, also by `with_node_name`. Hashable and short: to compare
        two costs as much as to compare two integers.
        """
        kept = self._signature
        if kept is None:
            kept = _sign(self)
            object.__setattr__(self, "_signature", kept)
        return kept

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended: it holds nothing any more."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def is_assigned(self) -> bool:
        """Whether it has a node."""
        return bool(self.node_name)

    @property
    def pod_group_name(self) -> str:
        """The PodGroup (scheduling.x-k8s.io) that it belongs to by label, or ""."""
        return self.labels.get(POD_GROUP_LABEL, "")

    @property
    def pod_group_key(self) -> str:
        """`namespace/name` of that PodGroup, or ""."""
        name = self.labels.get(POD_GROUP_LABEL)
        return f"{self.namespace}/{name}" if name else ""

    def condition(self, type_: str) -> Condition | None:
        """Its condition of this type, if it has one."""
        return next((c for c in self.conditions if c.type == type_), None)

    def selects_node(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether spec.nodeSelector and the required node affinity admit a node."""
        if self.node_selector:
            for key, value in self.node_selector.items():
                if labels.get(key) != value:
                    return False
        affinity = self.affinity.node_affinity
        if affinity is None or affinity.required is None:
            return True
        return affinity.required.matches(labels, name)

    def claim_names(self) -> tuple[str, ...]:
        """The PersistentVolumeClaims it uses in its namespace, those of ephemeral volumes too."""
        names = (volume.claim_of(self.name) for volume in self.volumes)
        return tuple(name for name in names if name)

    def with_node_name(self, node_name: str) -> Pod:
        """A copy that stands on `node_name`: what the cache assumes and the API server stores."""
        raw = dict(self.raw)
        raw["spec"] = {**(raw.get("spec") or {}), "nodeName": node_name}
        copy: Pod = object.__new__(Pod)
        for slot in _SLOTS:
            object.__setattr__(copy, slot, getattr(self, slot))
        object.__setattr__(copy, "raw", raw)
        object.__setattr__(copy, "node_name", node_name)
        return copy

    @classmethod
    def read(cls, reader: Reader) -> Pod:
        """Parse as far as possible; faults stay with the reader."""
        return _read_pod(reader)


_SLOTS: Final = (*KubeObject.__slots__, *Pod.__slots__)


def _sign(pod: Pod) -> bytes:
    spec = pod.raw.get("spec") or EMPTY
    if "nodeName" in spec:
        spec = {key: value for key, value in spec.items() if key != "nodeName"}
    own = (pod.name, pod.uid) if _has_claims_of_its_own(pod) else ()
    try:
        return signature_of(pod.raw, spec_signature(spec), own)
    except ValueError:
        # Something in it is not JSON (a date out of YAML): then it is like no other.
        return signature_of(EMPTY, b"", (pod.key, pod.uid))


def _has_claims_of_its_own(pod: Pod) -> bool:
    """Whether claims are made in this pod's name."""
    return any(volume.is_ephemeral for volume in pod.volumes) or any(
        claim.resource_claim_template_name for claim in pod.resource_claims
    )


def _read_pod(reader: Reader) -> Pod:
    spec = reader.child("spec")
    status = reader.child("status")
    has = spec.raw.__contains__
    affinity = spec.optional_child("affinity")
    resources = spec.child("resources")
    conditions = read_conditions(status)
    containers = tuple(map(Container.read, spec.items("containers")))
    if not containers:
        spec.fault("containers", required())
    return Pod(
        **read_metadata(reader, namespaced=True),
        scheduler_name=spec.text("schedulerName") or DEFAULT_SCHEDULER_NAME,
        priority=spec.integer("priority"),
        priority_class_name=spec.text("priorityClassName"),
        preemption_policy=spec.text("preemptionPolicy") or "PreemptLowerPriority",
        node_name=spec.text("nodeName"),
        node_selector=spec.text_map("nodeSelector") if spec.has("nodeSelector") else None,
        affinity=NO_AFFINITY if affinity is None else Affinity.read(affinity),
        tolerations=tuple(map(Toleration.read, spec.items("tolerations"))),
        topology_spread_constraints=tuple(
            map(TopologySpreadConstraint.read, spec.items("topologySpreadConstraints"))
        ),
        scheduling_gates=tuple(gate.text("name") for gate in spec.items("schedulingGates")),
        containers=containers,
        init_containers=tuple(map(Container.read, spec.items("initContainers"))),
        pod_requests=resources.quantities("requests"),
        pod_limits=resources.quantities("limits"),
        overhead=spec.quantities("overhead"),
        volumes=tuple(map(Volume.read, spec.items("volumes"))) if has("volumes") else (),
        resource_claims=tuple(map(PodResourceClaim.read, spec.items("resourceClaims"))),
        host_network=spec.boolean("hostNetwork"),
        host_users=spec.boolean("hostUsers", True),
        restart_policy=spec.text("restartPolicy") or "Always",
        termination_grace_period_seconds=spec.optional_integer("terminationGracePeriodSeconds"),
        scheduling_group=spec.child("schedulingGroup").text("podGroupName")
        if has("schedulingGroup")
        else "",
        phase=status.text("phase") or "Pending",
        conditions=conditions,
        nominated_node_name=status.text("nominatedNodeName"),
        start_time=status.time("startTime"),
        container_statuses=_statuses(status, "containerStatuses"),
        init_container_statuses=_statuses(status, "initContainerStatuses"),
        status_resources=ResourceStatus.read(status),
        resize_infeasible=any(
            c.type == "PodResizePending" and c.reason == "Infeasible" for c in conditions
        ),
    )


def _statuses(status: Reader, key: str) -> Mapping[str, ResourceStatus]:
    if not status.has(key):
        return EMPTY
    return {entry.text("name"): ResourceStatus.read(entry) for entry in status.items(key)}
