"""The columns of each kind's table (kube-apiserver 1.36, printersinternal)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from scheduler_core.ports import Json

__all__ = ["COLUMNS", "Column"]

_DESCRIPTIONS: Final[Mapping[str, str]] = json.loads(
    (Path(__file__).parent / "schemas.json").read_text()
)["descriptions"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        of: the field whose description the column has; "" where `text` is its own.
        priority: 0 is shown always, 1 with `-o wide`.
    """

    name: str
    of: str = ""
    type: str = "string"
    format: str = ""
    priority: int = 0
    text: str = ""

    @property
    def definition(self) -> Json:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": _DESCRIPTIONS[self.of] if self.of else self.text,
            "priority": self.priority,
        }


_NAME: Final = Column("Name", "ObjectMeta.name", format="name")
_AGE: Final = Column("Age", "ObjectMeta.creationTimestamp")
_CONTAINERS: Final = Column(
    "Containers", priority=1, text="Names of each container in the template."
)
_IMAGES: Final = Column(
    "Images", priority=1, text="Images referenced by each container in the template."
)


def _wide(name: str, of: str = "", text: str = "") -> Column:
    return Column(name, of, priority=1, text=text)


def _said(name: str, text: str, kind: str = "string") -> Column:
    return Column(name, type=kind, text=text)


def _volume_mode() -> Column:
    return _wide("VolumeMode", text="Whether the volume is a file system or a block device.")


_REPLICAS: Final = (
    Column("Desired", "ReplicaSetSpec.replicas", "integer"),
    Column("Current", "ReplicaSetStatus.replicas", "integer"),
    Column("Ready", "ReplicaSetStatus.readyReplicas", "integer"),
    _AGE,
    _CONTAINERS,
    _IMAGES,
    _wide("Selector", text="Selects the pods that count. It must match the template's labels."),
)

#: kind -> columns; other kinds have a name and the time of their creation
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = MappingProxyType(
    {
        "Pod": (
            _NAME,
            _said("Ready", "The aggregate readiness state of this pod for accepting traffic."),
            _said("Status", "The aggregate status of the containers in this pod."),
            _said(
                "Restarts",
                "The number of times the containers in this pod have been restarted and when the "
                "last container in this pod has restarted.",
            ),
            _AGE,
            _wide("IP", "PodStatus.podIP"),
            _wide("Node", "PodSpec.nodeName"),
            _wide("Nominated Node", "PodStatus.nominatedNodeName"),
            _wide("Readiness Gates", "PodSpec.readinessGates"),
        ),
        "Node": (
            _NAME,
            _said("Status", "The status of the node"),
            _said("Roles", "The roles of the node"),
            _AGE,
            Column("Version", "NodeSystemInfo.kubeletVersion"),
            _wide("Internal-IP", "NodeStatus.addresses"),
            _wide("External-IP", "NodeStatus.addresses"),
            _wide("OS-Image", "NodeSystemInfo.osImage"),
            _wide("Kernel-Version", "NodeSystemInfo.kernelVersion"),
            _wide("Container-Runtime", "NodeSystemInfo.containerRuntimeVersion"),
        ),
        "Namespace": (_NAME, _said("Status", "The status of the namespace"), _AGE),
        "ConfigMap": (_NAME, _said("Data", "Number of entries in the map."), _AGE),
        "Deployment": (
            _NAME,
            _said("Ready", "Number of the pod with ready state"),
            Column("Up-to-date", "DeploymentStatus.updatedReplicas"),
            Column("Available", "DeploymentStatus.availableReplicas"),
            _AGE,
            _CONTAINERS,
            _IMAGES,
            _wide(
                "Selector",
                text="Label selector for pods. Existing ReplicaSets whose pods are selected by "
                "this will be the ones affected by this deployment. It must match the pod "
                "template's labels.",
            ),
        ),
        "ReplicaSet": (_NAME, *_REPLICAS),
        "ReplicationController": (_NAME, *_REPLICAS),
        "StatefulSet": (
            _NAME,
            _said("Ready", "Number of the pod with ready state"),
            _AGE,
            _CONTAINERS,
            _IMAGES,
        ),
        "Job": (
            _NAME,
            _said("Status", "Status of the job."),
            _said("Completions", "How many pods have to succeed, and how many have."),
            _said("Duration", "Time between the start and the end of the job."),
            _AGE,
            _CONTAINERS,
            _IMAGES,
            _wide("Selector", text="Selects the pods that count."),
        ),
        "Service": (
            _NAME,
            Column("Type", "ServiceSpec.type"),
            Column("Cluster-IP", "ServiceSpec.clusterIP"),
            Column("External-IP", "ServiceSpec.externalIPs"),
            Column("Port(s)", "ServiceSpec.ports"),
            _AGE,
            _wide("Selector", "ServiceSpec.selector"),
        ),
        "Event": (
            Column("Last Seen", "CoreEvent.lastTimestamp"),
            _said("Type", "Normal or Warning."),
            _said("Reason", "Why it happened, in one word."),
            _said("Object", "What it is about."),
            _wide("Subobject", text="The part of the object that it is about."),
            _wide("Source", text="Who reports it."),
            _said("Message", "What happened."),
            _wide("First Seen", text="When it was seen first."),
            _wide("Count", text="How often it was seen."),
            Column("Name", "ObjectMeta.name", format="name", priority=1),
        ),
        "PersistentVolume": (
            _NAME,
            _said("Capacity", "How much the volume holds."),
            _said("Access Modes", "How the volume can be mounted."),
            _said("Reclaim Policy", "What becomes of the volume when its claim is gone."),
            _said("Status", "Whether the volume is free, bound or released."),
            _said("Claim", "The claim that the volume is bound to."),
            _said("StorageClass", "The class that the volume belongs to."),
            _said("VolumeAttributesClass", "The attributes class of the volume."),
            _said("Reason", "Why the volume is in a failed state."),
            _AGE,
            _volume_mode(),
        ),
        "PersistentVolumeClaim": (
            _NAME,
            _said("Status", "Whether the claim is pending, bound or lost."),
            Column("Volume", "PersistentVolumeClaimSpec.volumeName"),
            _said("Capacity", "How much the bound volume holds."),
            _said("Access Modes", "How the bound volume can be mounted."),
            _said("StorageClass", "The class that is asked for."),
            _said("VolumeAttributesClass", "The attributes class that is asked for."),
            _AGE,
            _volume_mode(),
        ),
        "StorageClass": (
            _NAME,
            Column("Provisioner", "StorageClass.provisioner"),
            Column("ReclaimPolicy", "StorageClass.reclaimPolicy"),
            Column("VolumeBindingMode", "StorageClass.volumeBindingMode"),
            Column("AllowVolumeExpansion", "StorageClass.allowVolumeExpansion"),
            _AGE,
        ),
        "CSINode": (_NAME, _said("Drivers", "Number of drivers on the node.", "integer"), _AGE),
        "VolumeAttachment": (
            _NAME,
            Column("Attacher", "VolumeAttachmentSpec.attacher", format="name"),
            _said("PV", "The volume that is attached."),
            Column("Node", "VolumeAttachmentSpec.nodeName"),
            _said("Attached", "Whether it is attached.", "boolean"),
            _AGE,
        ),
        "PriorityClass": (
            _NAME,
            Column("Value", "PriorityClass.value"),
            Column("Global-Default", "PriorityClass.globalDefault", "boolean"),
            _AGE,
            Column("PreemptionPolicy", "PriorityClass.preemptionPolicy"),
        ),
        "PodDisruptionBudget": (
            _NAME,
            _said("Min Available", "The minimum number of pods that must be available."),
            _said("Max Unavailable", "The maximum number of pods that may be unavailable."),
            _said(
                "Allowed Disruptions", "Calculated number of pods that may be disrupted.", "integer"
            ),
            _AGE,
        ),
        "Lease": (_NAME, _said("Holder", "Who holds the lease."), _AGE),
    }
)
