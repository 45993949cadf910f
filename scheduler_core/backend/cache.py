"""Cache: nodes and the pods on them, as watched and as assumed."""

from __future__ import annotations

import itertools
import logging
from collections import OrderedDict
from collections.abc import Iterator

from scheduler_core.api import Node, Pod, assigned_requests, nonzero_requests
from scheduler_core.backend.image_states import ImageStates
from scheduler_core.backend.node_tree import NodeTree
from scheduler_core.framework.node_info import NodeInfo

log = logging.getLogger(__name__)


class CacheError(Exception):
    """What was asked contradicts what the cache knows."""


class Cache:
    """What runs where (kube-scheduler 1.36, backend/cache).

    A pod's life here: assumed (counted on its node, not yet seen in the cluster), then confirmed by
    the watch, updated, removed; or forgotten while it is assumed. An assumed pod does not expire.
    Pods are known by uid. Pods on a node that is not known keep a ghost NodeInfo (its ``node`` is
    None), which no snapshot contains.
    """

    def __init__(self) -> None:
        #: uid -> pod, assumed ones included.
        self._pods: dict[str, Pod] = {}
        self._assumed: set[str] = set()
        #: name -> NodeInfo, ghosts included; the most recently changed last.
        self._nodes: OrderedDict[str, NodeInfo] = OrderedDict()
        self._tree = NodeTree()
        self._images = ImageStates()
        self._generations = itertools.count(1)
        self._generation = 0

    # -- what is known -----------------------------------------------------------------------------

    @property
    def node_count(self) -> int:
        """Ghosts count, as in ``scheduler_cache_size{type="nodes"}``."""
        return len(self._nodes)

    @property
    def pod_count(self) -> int:
        """Assumed ones count."""
        return len(self._pods)

    @property
    def assumed_count(self) -> int:
        return len(self._assumed)

    def get_pod(self, pod: Pod) -> Pod | None:
        """The cache's own version of a pod (by uid), or None."""
        return self._pods.get(pod.uid)

    def is_assumed_pod(self, pod: Pod) -> bool:
        return pod.uid in self._assumed

    def node_info(self, name: str) -> NodeInfo | None:
        """The live NodeInfo of a node or ghost. Not to be changed."""
        return self._nodes.get(name)

    def pods(self) -> Iterator[Pod]:
        """Every pod on a node, assumed ones included."""
        return iter(self._pods.values())

    def assumed_pods(self) -> Iterator[Pod]:
        return (self._pods[uid] for uid in self._assumed)

    def node_infos(self) -> Iterator[tuple[str, NodeInfo]]:
        """(name, live NodeInfo), ghosts included. Not to be changed."""
        return iter(self._nodes.items())

    # -- for the Snapshot --------------------------------------------------------------------------

    @property
    def generation(self) -> int:
        """That of the latest change of any node."""
        return self._generation

    @property
    def order_version(self) -> int:
        """Grows whenever nodes come, go or change zone."""
        return self._tree.version

    def node_order(self) -> list[str]:
        """Names of the nodes in the order of the snapshot: round robin over the zones."""
        return self._tree.order()

    def changed_since(self, generation: int) -> Iterator[NodeInfo]:
        """Nodes (no ghosts) that changed after ``generation``, the latest change first."""
        for info in reversed(self._nodes.values()):
            if info.generation <= generation:
                return
            if info.node is not None:
                yield info

    def copy_of(self, info: NodeInfo) -> NodeInfo:
        """A copy for a snapshot; how many nodes have an image is counted now."""
        twin = info.clone()
        if info.node is not None:
            twin.image_sizes = self._images.summary(info.node)
        return twin

    # -- nodes -------------------------------------------------------------------------------------

    def add_node(self, node: Node) -> None:
        """A node came, or came back: pods that were bound to its name are on it."""
        info = self._nodes.get(node.name)
        if info is None:
            info = self._nodes[node.name] = NodeInfo()
        elif info.node is not None:
            self._images.remove(info.node)
        self._tree.put(node)
        self._images.add(node)
        info.set_node(node)
        self._touch(node.name, info)

    def update_node(self, node: Node) -> None:
        """A node changed; one that was not known is added."""
        self.add_node(node)

    def remove_node(self, node: Node) -> None:
        """A node went. Its pods stay, on a ghost, until they are removed.

        Raises:
            CacheError: it is not known.
        """
        info = self._nodes.get(node.name)
        if info is None or info.node is None:
            raise CacheError(f"node {node.name} is not found")
        self._images.remove(info.node)
        self._tree.remove(node.name)
        info.set_node(None)
        if info.pods:
            self._touch(node.name, info)
        else:
            del self._nodes[node.name]

    # -- pods --------------------------------------------------------------------------------------

    def assume_pod(self, pod: Pod) -> None:
        """Count a pod on ``pod.node_name`` before the cluster knows.

        Raises:
            CacheError: it is here already.
        """
        if pod.uid in self._pods:
            raise CacheError(f"pod {_name(pod)} is in the cache, so can't be assumed")
        self._put(pod)
        self._assumed.add(pod.uid)

    def forget_pod(self, pod: Pod) -> None:
        """Take back an assumption; one that is gone already is no error.

        Raises:
            CacheError: the pod is bound, or was assumed on another node.
        """
        known = self._pods.get(pod.uid)
        if known is None:
            return
        if known.node_name != pod.node_name:
            raise CacheError(
                f"pod {_name(pod)} was assumed on {pod.node_name} but assigned to {known.node_name}"
            )
        if pod.uid not in self._assumed:
            raise CacheError(f"pod {_name(pod)} wasn't assumed so cannot be forgotten")
        self._take(known)

    def add_pod(self, pod: Pod) -> None:
        """A bound pod was seen; this confirms an assumed one, wherever it was bound.

        Raises:
            CacheError: it has been added before.
        """
        known = self._pods.get(pod.uid)
        if known is None:
            self._put(pod)
            return
        if pod.uid not in self._assumed:
            raise CacheError(f"pod {_name(pod)} was already in added state")
        if known.node_name != pod.node_name:
            log.warning(
                "pod %s was assumed on node %s but bound to node %s",
                pod.key,
                known.node_name,
                pod.node_name,
            )
        self._replace(known, pod)

    def update_pod(self, pod: Pod) -> None:
        """A bound pod changed.

        Raises:
            CacheError: it is not known, is assumed, or is on another node than before.
        """
        known = self._pods.get(pod.uid)
        if known is None:
            raise CacheError(
                f"pod {_name(pod)} is not added to scheduler cache, so cannot be updated"
            )
        if pod.uid in self._assumed:
            raise CacheError(f"assumed pod {_name(pod)} should not be updated")
        if known.node_name != pod.node_name:
            raise CacheError(
                f"pod {_name(pod)} was added to {known.node_name} but updated on {pod.node_name}"
            )
        self._replace(known, pod)

    def remove_pod(self, pod: Pod) -> None:
        """A bound or assumed pod went. The last known state may lack its node.

        Raises:
            CacheError: it is not known, or is on another node.
        """
        known = self._pods.get(pod.uid)
        if known is None:
            raise CacheError(
                f"pod {_name(pod)} is not found in scheduler cache, so cannot be removed from it"
            )
        if pod.node_name and known.node_name != pod.node_name:
            raise CacheError(
                f"pod {_name(pod)} was added to {known.node_name} but removed from {pod.node_name}"
            )
        self._take(known)

    # -- internals ---------------------------------------------------------------------------------

    def _put(self, pod: Pod) -> None:
        info = self._nodes.get(pod.node_name)
        if info is None:
            info = self._nodes[pod.node_name] = NodeInfo()
        info.add_pod(pod)
        self._pods[pod.uid] = pod
        self._touch(pod.node_name, info)

    def _take(self, pod: Pod) -> None:
        del self._pods[pod.uid]
        self._assumed.discard(pod.uid)
        info = self._nodes[pod.node_name]
        info.remove_pod(pod)
        if info.node is None and not info.pods:
            del self._nodes[pod.node_name]
        else:
            self._touch(pod.node_name, info)

    def _replace(self, known: Pod, pod: Pod) -> None:
        """A newer version of a pod; most say of it only how it fares."""
        if known.node_name != pod.node_name or not _counts_alike(known, pod):
            self._take(known)
            self._put(pod)
            return
        del self._pods[pod.uid]
        self._pods[pod.uid] = pod
        self._assumed.discard(pod.uid)
        info = self._nodes[pod.node_name]
        info.replace_pod(known, pod)
        self._move_on(pod.node_name, info)

    def _touch(self, name: str, info: NodeInfo) -> None:
        self._move_on(name, info)
        info.content_generation = info.generation

    def _move_on(self, name: str, info: NodeInfo) -> None:
        info.generation = self._generation = next(self._generations)
        self._nodes.move_to_end(name)


def _counts_alike(old: Pod, new: Pod) -> bool:
    """Whether two versions of a pod, with the same uid and node, are the same to every plugin that
    looks at the pods on a node: all but the status is equal, and what it counts for. (Specs with
    the same content are one object.)"""
    return (
        old.spec is new.spec
        and old.volumes == new.volumes
        and old.labels == new.labels
        and old.annotations == new.annotations
        and old.owner_references == new.owner_references
        and old.finalizers == new.finalizers
        and old.is_terminating == new.is_terminating
        and assigned_requests(old) == assigned_requests(new)
        and nonzero_requests(old) == nonzero_requests(new)
    )


def _name(pod: Pod) -> str:
    return f"{pod.uid}({pod.key})"
