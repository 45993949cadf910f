"""What GangScheduling knows of a group: its PodGroup, its pods, which of them hold a node."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler_core.api import NATIVE_POD_GROUP, NativePodGroup, Pod
from scheduler_core.api.native.membership import (
    SCHEDULING_GROUP_INDEX,
    group_key,
    scheduling_group_index,
)
from scheduler_core.framework.interface import Handle, WaitingPod

__all__ = ["Members"]


class Members:
    """All native groups, as one profile sees them. Scheduler thread only."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._groups = handle.informer(NATIVE_POD_GROUP)
        self._pods = handle.informer("Pod")
        self._pods.add_indexer(SCHEDULING_GROUP_INDEX, scheduling_group_index)
        #: group -> uids of pods that passed Reserve and have not been unreserved since
        self._reserved: dict[str, set[str]] = {}

    def group(self, key: str) -> NativePodGroup | None:
        """The PodGroup "namespace/name", if it exists."""
        found = self._groups.get(key)
        return found if isinstance(found, NativePodGroup) else None

    def known(self, key: str) -> list[Pod]:
        """Every pod of the group that has not ended, wherever it is."""
        return [p for p in self._pods.by_index(SCHEDULING_GROUP_INDEX, key) if isinstance(p, Pod)]

    def reserve(self, pod: Pod) -> None:
        self._reserved.setdefault(group_key(pod), set()).add(pod.uid)

    def unreserve(self, pod: Pod) -> None:
        key = group_key(pod)
        held = self._reserved.get(key)
        if held is None:
            return
        held.discard(pod.uid)
        if not held:
            del self._reserved[key]

    def scheduled(self, key: str) -> set[str]:
        """uids of the pods that hold a node: bound, binding, or waiting."""
        pods = self.known(key)
        bound = {pod.uid for pod in pods if pod.node_name}
        held = self._reserved.get(key)
        if held is None:
            return bound
        # What is bound, or gone, need not be remembered any longer.
        held &= {pod.uid for pod in pods} - bound
        if not held:
            del self._reserved[key]
        return bound | held

    def unscheduled(self, key: str) -> list[Pod]:
        """Pods of the group that hold no node."""
        scheduled = self.scheduled(key)
        return [pod for pod in self.known(key) if pod.uid not in scheduled]

    def waiting(self, key: str) -> Iterator[WaitingPod]:
        """Members that wait at Permit; one that every plugin has allowed is on its way already."""
        for pod in self.known(key):
            waiting = self._handle.get_waiting_pod(pod.uid)
            if waiting is not None and waiting.pending_plugins:
                yield waiting
