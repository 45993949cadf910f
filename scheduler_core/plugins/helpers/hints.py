"""Questions that several queueing hints ask."""

from __future__ import annotations

from typing import Any

from scheduler_core.api import Pod
from scheduler_core.framework.events import QueueingHint

__all__ = ["held_a_node", "is_own_pod", "queue_if", "queue_own_pod"]


def queue_if(condition: bool) -> QueueingHint:
    return QueueingHint.QUEUE if condition else QueueingHint.SKIP


def is_own_pod(pod: Pod, new: Any) -> bool:
    """Whether an event is about the waiting pod itself."""
    return isinstance(new, Pod) and new.uid == pod.uid


def queue_own_pod(pod: Pod, _old: Any, new: Any) -> QueueingHint:
    """A hint: the event is about the waiting pod itself."""
    return queue_if(is_own_pod(pod, new))


def held_a_node(gone: Any) -> bool:
    """Whether a deleted pod had a node, or was nominated to one, and so leaves room."""
    return isinstance(gone, Pod) and bool(gone.node_name or gone.nominated_node_name)
