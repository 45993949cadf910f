"""A pod's spec and status, parsed. Equal specs are parsed once and shared by their pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from .affinity import NO_AFFINITY, Affinity, TopologySpreadConstraint
from .containers import Container, HostPort, PodResourceClaim, ResourceStatus, Volume
from .errors import required
from .metadata import Condition, read_conditions
from .reader import EMPTY, Reader, nothing
from .taints import Toleration

__all__ = ["DEFAULT_SCHEDULER_NAME", "PodSpec", "PodStatus", "read_containers", "read_volumes"]

DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"

_NO_STATUS: Final = ResourceStatus()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PodSpec:
    """All of a pod's spec but nodeName; see `Pod` for the fields.

    Shared by every pod whose spec has the same content, so it knows nothing of a single pod.

    Attributes:
        signature: 16 bytes that stand for the content, see `api.signature`; none if that is not
            all JSON.
    """

    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    priority: int = 0
    priority_class_name: str = ""
    preemption_policy: str = "PreemptLowerPriority"
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
    signature: bytes = b""

    # Filled by api.resources and api.validation_pod on first use; derived from the fields above, so
    # never stale.
    _requests: Mapping[str, int] | None = field(default=None, init=False)
    _nonzero_requests: tuple[int, int] | None = field(default=None, init=False)
    _scoring_requests: Mapping[str, int] | None = field(default=None, init=False)
    _host_ports: tuple[HostPort, ...] | None = field(default=None, init=False)
    _is_sound: bool = field(default=False, init=False)

    @classmethod
    def read(cls, spec: Reader, containers: tuple[Container, ...], signature: bytes) -> PodSpec:
        """Parse as far as possible; `containers` are those of `read_containers`."""
        has = spec.raw.__contains__
        affinity = spec.optional_child("affinity")
        resources = spec.child("resources")
        return cls(
            scheduler_name=spec.text("schedulerName") or DEFAULT_SCHEDULER_NAME,
            priority=spec.integer("priority"),
            priority_class_name=spec.text("priorityClassName"),
            preemption_policy=spec.text("preemptionPolicy") or "PreemptLowerPriority",
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
            volumes=read_volumes(spec),
            resource_claims=tuple(map(PodResourceClaim.read, spec.items("resourceClaims"))),
            host_network=spec.boolean("hostNetwork"),
            host_users=spec.boolean("hostUsers", True),
            restart_policy=spec.text("restartPolicy") or "Always",
            termination_grace_period_seconds=spec.optional_integer("terminationGracePeriodSeconds"),
            scheduling_group=spec.child("schedulingGroup").text("podGroupName")
            if has("schedulingGroup")
            else "",
            signature=signature,
        )

    @property
    def has_claims_of_a_pods_own(self) -> bool:
        """Whether claims are made in the name of each pod with this spec."""
        return any(volume.is_ephemeral for volume in self.volumes) or any(
            claim.resource_claim_template_name for claim in self.resource_claims
        )


def read_containers(spec: Reader) -> tuple[Container, ...]:
    """The containers of a spec; none is a fault."""
    containers = tuple(map(Container.read, spec.items("containers")))
    if not containers:
        spec.fault("containers", required())
    return containers


def read_volumes(spec: Reader) -> tuple[Volume, ...]:
    return tuple(map(Volume.read, spec.items("volumes")))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PodStatus:
    """A pod's status; see `Pod` for the fields. Shared by pods whose status has the same content.

    Attributes:
        reports_resources: whether anything in it can change what the pod counts for on its node.
    """

    phase: str = "Pending"
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    start_time: float | None = None
    container_statuses: Mapping[str, ResourceStatus] = field(default_factory=nothing)
    init_container_statuses: Mapping[str, ResourceStatus] = field(default_factory=nothing)
    status_resources: ResourceStatus = _NO_STATUS
    resize_infeasible: bool = False
    reports_resources: bool = False

    @classmethod
    def read(cls, status: Reader) -> PodStatus:
        """Parse as far as possible; faults stay with the reader."""
        conditions = read_conditions(status)
        phase = status.text("phase") or "Pending"
        nominated = status.text("nominatedNodeName")
        start = status.time("startTime")
        containers = _container_statuses(status, "containerStatuses")
        init_containers = _container_statuses(status, "initContainerStatuses")
        whole = ResourceStatus.read(status)
        return cls(
            phase=phase,
            conditions=conditions,
            nominated_node_name=nominated,
            start_time=start,
            container_statuses=containers,
            init_container_statuses=init_containers,
            status_resources=whole,
            resize_infeasible=any(
                c.type == "PodResizePending" and c.reason == "Infeasible" for c in conditions
            ),
            # Without what is requested now, nothing that is allocated is looked at.
            reports_resources=any(
                found.requests is not None
                for found in (whole, *containers.values(), *init_containers.values())
            ),
        )


def _container_statuses(status: Reader, key: str) -> Mapping[str, ResourceStatus]:
    if not status.has(key):
        return EMPTY
    return {entry.text("name"): ResourceStatus.read(entry) for entry in status.items(key)}
