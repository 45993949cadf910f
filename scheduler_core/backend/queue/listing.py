"""The queue as people see it: one line per pod, each place in the order of its pods' turns."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler_core.api.native.membership import group_key
from scheduler_core.framework.types import QueuedPodInfo
from scheduler_core.records import PodRef, QueuedPod


def lines(infos: Iterable[QueuedPodInfo]) -> tuple[QueuedPod, ...]:
    """One line per pod, positions from 1."""
    return tuple(_line(info, position) for position, info in enumerate(infos, 1))


def by_age(infos: Iterable[QueuedPodInfo]) -> list[QueuedPodInfo]:
    """Longest here first: the order in which the timeout will move them."""
    return sorted(infos, key=lambda info: info.timestamp)


def _line(info: QueuedPodInfo, position: int) -> QueuedPod:
    pod = info.pod
    plugin, reason = info.reason_plugin, info.reason
    if info.gating_plugin:
        plugin, reason = info.gating_plugin, info.gating_message
    return QueuedPod(
        pod=PodRef(pod.uid, pod.namespace, pod.name),
        position=position,
        priority=pod.priority,
        attempts=info.attempts,
        added_at=info.timestamp,
        backoff_until=info.backoff_until,
        plugin=plugin,
        reason=reason,
        pod_group=pod.pod_group_key or group_key(pod),
    )
