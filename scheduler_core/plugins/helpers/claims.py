"""What the volume plugins ask about a pod's PersistentVolumeClaims."""

from __future__ import annotations

from typing import Any

from scheduler_core.api import Pod
from scheduler_core.api.storage import PersistentVolumeClaim
from scheduler_core.framework.events import QueueingHint
from scheduler_core.plugins.helpers.hints import queue_if

__all__ = [
    "claim_not_found",
    "is_made_for",
    "not_made_for",
    "queue_if_claim_is_named",
    "queue_if_claim_is_used",
]


def claim_not_found(name: str) -> str:
    """As the API server says it."""
    return f'persistentvolumeclaim "{name}" not found'


def is_made_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Whether the claim of an ephemeral volume belongs to this pod, and is not a namesake."""
    owner = claim.controller
    return claim.namespace == pod.namespace and owner is not None and owner.uid == pod.uid


def not_made_for(claim: PersistentVolumeClaim, pod: Pod) -> str:
    """Why a namesake does not do."""
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def queue_if_claim_is_named(pod: Pod, _old: Any, new: Any) -> QueueingHint:
    """A hint: the pod names the claim in a volume of its own (claims of ephemeral volumes are not
    named)."""
    return queue_if(
        isinstance(new, PersistentVolumeClaim)
        and new.namespace == pod.namespace
        and any(volume.claim_name == new.name for volume in pod.volumes)
    )


def queue_if_claim_is_used(pod: Pod, _old: Any, new: Any) -> QueueingHint:
    """A hint: the claim is one of the pod's, those of ephemeral volumes among them."""
    return queue_if(
        isinstance(new, PersistentVolumeClaim)
        and new.namespace == pod.namespace
        and new.name in pod.claim_names()
    )
