"""Questions that several queueing hints ask."""

from __future__ import annotations

from typing import Any

from scheduler_core.api import Pod, PodGroup
from scheduler_core.framework.events import QueueingHint

__all__ = ["held_a_node", "is_own_pod", "queue_if", "queue_own_gang", "queue_own_pod"]


def queue_if(condition: bool) -> QueueingHint:
    return QueueingHint.QUEUE if condition else QueueingHint.SKIP


def is_own_pod(pod: Pod, new: Any) -> bool:
    """Whether an event is about the waiting pod itself."""
    return isinstance(new, Pod) and new.uid == pod.uid


def queue_own_pod(pod: Pod, _old: Any, new: Any) -> QueueingHint:
    """A hint: the event is about the waiting pod itself."""
    return queue_if(is_own_pod(pod, new))


def queue_own_gang(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """A hint: the waiting pod's PodGroup is new, or asks for something else than before.

    Its status is not looked at: a controller counts members there all the time, which would wake
    a gang that was turned down a moment ago.
    """
    if not isinstance(new, PodGroup) or new.key != pod.pod_group_key:
        return QueueingHint.SKIP
    return queue_if(not isinstance(old, PodGroup) or _request(old) != _request(new))


def _request(group: PodGroup) -> tuple[object, ...]:
    return (
        group.uid,
        group.labels,
        group.annotations,
        group.min_member,
        group.min_resources,
        group.schedule_timeout_seconds,
    )


def held_a_node(gone: Any) -> bool:
    """Whether a deleted pod had a node, or was nominated to one, and so leaves room."""
    return isinstance(gone, Pod) and bool(gone.node_name or gone.nominated_node_name)
