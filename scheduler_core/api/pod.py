"""Pod, parsed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field
from operator import attrgetter
from typing import Final

from .affinity import Affinity, TopologySpreadConstraint
from .containers import Container, PodResourceClaim, ResourceStatus, Volume
from .content import content_of, digest
from .interning import Interned
from .metadata import Condition, KubeObject, read_metadata
from .pod_spec import DEFAULT_SCHEDULER_NAME, PodSpec, PodStatus, read_containers, read_volumes
from .reader import EMPTY, Raw, Reader
from .signature import anonymous, signature_of
from .taints import Toleration

__all__ = ["DEFAULT_SCHEDULER_NAME", "POD_GROUP_LABEL", "Pod"]

#: the label by which a pod belongs to a PodGroup of scheduling.x-k8s.io in its namespace
POD_GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"


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

    spec: PodSpec
    status: PodStatus
    volumes: tuple[Volume, ...]
    node_name: str = ""

    # Filled by api.resources where the status counts too; what the spec alone tells is kept there.
    _assigned_requests: Mapping[str, int] | None = field(default=None, init=False)
    _nonzero_requests: tuple[int, int] | None = field(default=None, init=False)
    _signature: bytes | None = field(default=None, init=False)

    @property
    def scheduler_name(self) -> str:
        return self.spec.scheduler_name

    @property
    def priority(self) -> int:
        return self.spec.priority

    @property
    def priority_class_name(self) -> str:
        return self.spec.priority_class_name

    @property
    def preemption_policy(self) -> str:
        return self.spec.preemption_policy

    @property
    def node_selector(self) -> Mapping[str, str] | None:
        return self.spec.node_selector

    @property
    def affinity(self) -> Affinity:
        return self.spec.affinity

    @property
    def tolerations(self) -> tuple[Toleration, ...]:
        return self.spec.tolerations

    @property
    def topology_spread_constraints(self) -> tuple[TopologySpreadConstraint, ...]:
        return self.spec.topology_spread_constraints

    @property
    def scheduling_gates(self) -> tuple[str, ...]:
        return self.spec.scheduling_gates

    @property
    def containers(self) -> tuple[Container, ...]:
        return self.spec.containers

    @property
    def init_containers(self) -> tuple[Container, ...]:
        return self.spec.init_containers

    @property
    def pod_requests(self) -> Mapping[str, int]:
        return self.spec.pod_requests

    @property
    def pod_limits(self) -> Mapping[str, int]:
        return self.spec.pod_limits

    @property
    def overhead(self) -> Mapping[str, int]:
        return self.spec.overhead

    @property
    def resource_claims(self) -> tuple[PodResourceClaim, ...]:
        return self.spec.resource_claims

    @property
    def host_network(self) -> bool:
        return self.spec.host_network

    @property
    def host_users(self) -> bool:
        return self.spec.host_users

    @property
    def restart_policy(self) -> str:
        return self.spec.restart_policy

    @property
    def termination_grace_period_seconds(self) -> int | None:
        return self.spec.termination_grace_period_seconds

    @property
    def scheduling_group(self) -> str:
        return self.spec.scheduling_group

    @property
    def phase(self) -> str:
        return self.status.phase

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return self.status.conditions

    @property
    def nominated_node_name(self) -> str:
        return self.status.nominated_node_name

    @property
    def start_time(self) -> float | None:
        return self.status.start_time

    @property
    def container_statuses(self) -> Mapping[str, ResourceStatus]:
        return self.status.container_statuses

    @property
    def init_container_statuses(self) -> Mapping[str, ResourceStatus]:
        return self.status.init_container_statuses

    @property
    def status_resources(self) -> ResourceStatus:
        return self.status.status_resources

    @property
    def resize_infeasible(self) -> bool:
        return self.status.resize_infeasible

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
        raw = {**self.raw, "spec": {**(self.raw.get("spec") or EMPTY), "nodeName": node_name}}
        copy: Pod = object.__new__(Pod)
        for set_slot, value in zip(_SET_SLOT.values(), _ALL_SLOTS(self), strict=True):
            set_slot(copy, value)
        _SET_SLOT["raw"](copy, raw)
        _SET_SLOT["node_name"](copy, node_name)
        return copy

    @classmethod
    def read(cls, reader: Reader) -> Pod:
        """Parse as far as possible; faults stay with the reader."""
        return _read_pod(reader)


def _refuse(pod: Pod, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


# What dataclass makes of `frozen` and `slots` together knows the fields alone, not the properties.
Pod.__setattr__ = _refuse  # type: ignore[method-assign, assignment]

_SLOTS: Final = (*KubeObject.__slots__, *Pod.__slots__)
_KEPT: Final = tuple(slot for slot in _SLOTS if slot.startswith("_"))
# Slots read all at once and written without a look-up: every pod that is assumed is copied.
_ALL_SLOTS: Final = attrgetter(*_SLOTS)
_SET_SLOT: Final = {slot: getattr(Pod, slot).__set__ for slot in _SLOTS}


#: specs and statuses by their content, those of the last few thousand templates
_SPECS: Final = Interned[PodSpec](2048)
_STATUSES: Final = Interned[PodStatus](2048)
_NO_STATUS: Final = PodStatus()


def _sign(pod: Pod) -> bytes:
    spec = pod.spec
    plain = spec.signature and not spec.volumes and not spec.resource_claims
    is_alone = not plain and (not spec.signature or spec.has_claims_of_a_pods_own)
    own = (pod.name, pod.uid) if is_alone else ()
    try:
        return signature_of(pod.raw, spec.signature, own)
    except ValueError:
        # Something in it is not JSON (a date out of YAML): then it is like no other.
        return signature_of(EMPTY, b"", (pod.name, pod.uid))


def _read_pod(reader: Reader) -> Pod:
    spec_reader = reader.child("spec")
    exact = _content(_without_node(spec_reader.raw))
    content = anonymous(exact, spec_reader.raw)
    spec = _SPECS.get(content)
    volumes = None
    if spec is None:
        # Faults are told in this order: containers, metadata, the rest of the spec, status.
        containers = read_containers(spec_reader)
        metadata = read_metadata(reader, namespaced=True)
        spec = PodSpec.read(spec_reader, containers, digest(content) if content else b"")
        if content and not reader.faults:
            _SPECS.keep(content, spec)
    else:
        metadata = read_metadata(reader, namespaced=True)
        if content is not exact:  # the same but for the name of a volume
            volumes = read_volumes(spec_reader)
    values = {
        **metadata,
        "spec": spec,
        "status": _read_status(reader),
        "volumes": spec.volumes if volumes is None else volumes,
        "node_name": spec_reader.text("nodeName"),
    }
    return _made(values)


def _made(values: Mapping[str, object]) -> Pod:
    """A pod of all its fields' values; half the cost of asking the class for it."""
    pod: Pod = object.__new__(Pod)
    for slot, value in values.items():
        _SET_SLOT[slot](pod, value)
    for slot in _KEPT:
        _SET_SLOT[slot](pod, None)
    return pod


def _read_status(reader: Reader) -> PodStatus:
    if reader.raw.get("status") is None:
        return _NO_STATUS
    status_reader = reader.child("status")
    content = _content(status_reader.raw)
    status = _STATUSES.get(content)
    if status is None:
        status = PodStatus.read(status_reader)
        if content and not reader.faults:
            _STATUSES.keep(content, status)
    return status


def _without_node(spec: Raw) -> Raw:
    if "nodeName" not in spec:
        return spec
    rest = dict(spec)
    del rest["nodeName"]
    return rest


def _content(raw: Raw) -> bytes:
    """`content_of`, or nothing where something is not JSON: then nothing is shared."""
    try:
        return content_of(raw)
    except ValueError:
        return b""
