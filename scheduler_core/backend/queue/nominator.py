"""PodNominator: which pods preemption has promised which node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler_core.api import Pod
from scheduler_core.framework.interface import Informer
from scheduler_core.framework.types import NominatingInfo

_UNCHANGED = NominatingInfo()


class PodNominator:
    """Nominated pods by node, known by uid (kube-scheduler 1.36).

    With an informer, a pod that is gone or bound is not nominated.
    """

    def __init__(self, pods: Informer | None = None) -> None:
        self._informer = pods
        self._node_of: dict[str, str] = {}
        self._pods: dict[str, dict[str, Pod]] = {}

    def __len__(self) -> int:
        return len(self._node_of)

    @property
    def nominated(self) -> Mapping[str, str]:
        """uid -> node."""
        return self._node_of

    def nominated_pods_for_node(self, node_name: str) -> Sequence[Pod]:
        """In the order in which they were nominated."""
        return [*self._pods.get(node_name, {}).values()]

    def nominated_nodes(self) -> Sequence[str]:
        """Nodes with at least one nominated pod."""
        return [*self._pods]

    def nominated_node_for_pod(self, pod: Pod) -> str:
        """The node that a pod is nominated to, or ""."""
        return self._node_of.get(pod.uid, "")

    def add(self, pod: Pod, nominating: NominatingInfo = _UNCHANGED) -> None:
        """Nominate a pod to ``nominating.node_name`` if that overrides, else as its status says.

        What was known of the pod before is forgotten.
        """
        self.delete(pod)
        node = nominating.node_name if nominating.override else pod.nominated_node_name
        if not node or self._is_settled(pod):
            return
        self._node_of[pod.uid] = node
        self._pods.setdefault(node, {})[pod.uid] = pod

    def update(self, old: Pod, new: Pod) -> None:
        """A pod changed. Where neither version carries a nomination the one in memory stays: its
        status is still on the way."""
        kept = self._node_of.get(old.uid, "")
        if kept and not old.nominated_node_name and not new.nominated_node_name:
            self.delete(old)
            self.add(new, NominatingInfo(kept, override=True))
            return
        self.delete(old)
        self.add(new)

    def delete(self, pod: Pod) -> None:
        """Forget a pod; an unknown one changes nothing."""
        node = self._node_of.pop(pod.uid, None)
        if node is None:
            return
        pods = self._pods[node]
        del pods[pod.uid]
        if not pods:
            del self._pods[node]

    def _is_settled(self, pod: Pod) -> bool:
        if self._informer is None:
            return False
        current = self._informer.get(pod.key)
        return current is None or current.is_assigned
