"""Containers, their ports and volumes, and what their statuses say about resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from .errors import required
from .reader import EMPTY, Raw, Reader, nothing

__all__ = [
    "RESTART_ALL_CONTAINERS",
    "Container",
    "ContainerPort",
    "HostPort",
    "PodResourceClaim",
    "ResourceStatus",
    "Volume",
    "ports_conflict",
]

WILDCARD_IP: Final = "0.0.0.0"  # noqa: S104 - an address pods ask for, nothing is bound to it
RESTART_ALL_CONTAINERS: Final = "RestartAllContainers"


@dataclass(frozen=True, slots=True)
class ContainerPort:
    """A declared port; `host_port` 0 means none, `protocol` has its default."""

    container_port: int
    host_port: int = 0
    host_ip: str = ""
    protocol: str = "TCP"
    name: str = ""

    @classmethod
    def read(cls, reader: Reader) -> ContainerPort:
        return cls(
            reader.integer("containerPort"),
            reader.integer("hostPort"),
            reader.text("hostIP"),
            reader.text("protocol") or "TCP",
            reader.text("name"),
        )


@dataclass(frozen=True, slots=True, order=True)
class HostPort:
    """An address that a pod occupies on its node (kube-scheduler 1.36, NodePorts)."""

    ip: str
    protocol: str
    port: int

    def conflicts(self, other: HostPort) -> bool:
        """Whether both cannot be on one node. `::` is no wildcard, only 0.0.0.0 is."""
        if self.port != other.port or self.protocol != other.protocol:
            return False
        return self.ip == other.ip or WILDCARD_IP in (self.ip, other.ip)


def ports_conflict(wanted: Iterable[HostPort], used: Iterable[HostPort]) -> bool:
    """Whether any port of `wanted` conflicts with one of `used`."""
    taken = tuple(used)
    return any(port.conflicts(other) for port in wanted for other in taken)


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A container or init container.

    Attributes:
        requests, limits: {resource: nano-units}, as written; nothing is defaulted.
        restart_policy: "" or Always (sidecar), OnFailure, Never.
        restart_rule_actions: actions of its restartPolicyRules.
        claims: names of the pod's resource claims that it uses.
    """

    name: str
    image: str = ""
    requests: Mapping[str, int] = field(default_factory=nothing)
    limits: Mapping[str, int] = field(default_factory=nothing)
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""
    restart_rule_actions: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()

    @property
    def is_restartable(self) -> bool:
        """Whether, as an init container, it is a sidecar."""
        return self.restart_policy == "Always"

    @classmethod
    def read(cls, reader: Reader) -> Container:
        name = reader.text("name")
        if not name:
            reader.fault("name", required())
        resources = reader.child("resources")
        return cls(
            name=name,
            image=reader.text("image"),
            requests=resources.quantities("requests"),
            limits=resources.quantities("limits"),
            ports=tuple(map(ContainerPort.read, reader.items("ports"))),
            restart_policy=reader.text("restartPolicy"),
            restart_rule_actions=tuple(
                rule.text("action") for rule in reader.items("restartPolicyRules")
            ),
            claims=tuple(claim.text("name") for claim in resources.items("claims")),
        )


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    """Resources that the kubelet reports for a container, or for the pod as a whole.

    Attributes:
        requests: status.resources.requests in nano-units; None if status.resources is absent.
        allocated: status.allocatedResources in nano-units.
    """

    requests: Mapping[str, int] | None = None
    allocated: Mapping[str, int] = field(default_factory=nothing)

    @classmethod
    def read(cls, reader: Reader) -> ResourceStatus:
        """From a container status or a pod status: both use the same two field names."""
        resources = reader.optional_child("resources")
        return cls(
            None if resources is None else resources.quantities("requests"),
            reader.quantities("allocatedResources"),
        )


@dataclass(frozen=True, slots=True)
class PodResourceClaim:
    """An entry of spec.resourceClaims."""

    name: str
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""

    @classmethod
    def read(cls, reader: Reader) -> PodResourceClaim:
        return cls(
            reader.text("name"),
            reader.text("resourceClaimName"),
            reader.text("resourceClaimTemplateName"),
        )


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume of a pod.

    Attributes:
        source: the JSON key of its source (`persistentVolumeClaim`, `ephemeral`, `csi`, `image`,
            `gcePersistentDisk`, `awsElasticBlockStore`, `rbd`, `iscsi`, `emptyDir`, ...), or "".
        spec: the source's own JSON.
        claim_name: name of the claim for source `persistentVolumeClaim`, else "".
        image: image reference for source `image`, else "".
    """

    name: str
    source: str
    spec: Raw
    claim_name: str = ""
    image: str = ""

    @property
    def is_ephemeral(self) -> bool:
        """Whether a claim of its own is made for it."""
        return self.source == "ephemeral"

    def claim_of(self, pod_name: str) -> str:
        """The name of the claim behind it in the pod's namespace, or "" if there is none."""
        return f"{pod_name}-{self.name}" if self.is_ephemeral else self.claim_name

    @classmethod
    def read(cls, reader: Reader) -> Volume:
        source = next((k for k, v in reader.raw.items() if k != "name" and v is not None), "")
        spec = reader.child(source) if source else Reader(EMPTY)
        return cls(
            reader.text("name"),
            source,
            spec.raw,
            spec.text("claimName") if source == "persistentVolumeClaim" else "",
            spec.text("reference") if source == "image" else "",
        )

    def __hash__(self) -> int:
        return hash((self.name, self.source))
