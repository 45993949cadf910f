"""ImageLocality: prefers nodes that have the pod's images already (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.interface import MAX_NODE_SCORE, Handle, ScorePlugin, Scores
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.nodes import NodeInfos

__all__ = ["ImageLocality", "normalized_image_name"]

_MIB: Final = 1024 * 1024
#: Images that are smaller in sum earn nothing.
_MIN_BYTES: Final = 23 * _MIB
#: Per container: images that are larger in sum earn no more.
_MAX_BYTES_PER_CONTAINER: Final = 1000 * _MIB


class ImageLocality(ScorePlugin):
    """The sum of the sizes of the pod's images on the node, each scaled by the share of nodes that
    have it (so that an image that is on one node only does not draw all its pods there)."""

    name = "ImageLocality"

    def is_node_local(self, pod: Pod) -> bool:
        return True

    def __init__(self, _args: Mapping[str, Any], handle: Handle) -> None:
        self._handle = handle

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        if not node_info.image_sizes:
            return 0
        total_nodes = len(self._handle.nodes)
        found = 0
        for image in _images(pod):
            size, nodes_with_image = node_info.image_sizes.get(image, (0, 0))
            found += _scaled(size, nodes_with_image, total_nodes)
        largest = _MAX_BYTES_PER_CONTAINER * _containers(pod)
        clamped = max(_MIN_BYTES, min(found, largest))
        return MAX_NODE_SCORE * (clamped - _MIN_BYTES) // (largest - _MIN_BYTES)

    def score_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Scores:
        found = np.zeros(len(nodes), dtype=np.int64)
        for image in _images(pod):
            _add_image(found, nodes, image, len(self._handle.nodes))
        largest = _MAX_BYTES_PER_CONTAINER * _containers(pod)
        clamped = np.clip(found, _MIN_BYTES, largest)
        answer: Scores = MAX_NODE_SCORE * (clamped - _MIN_BYTES) // (largest - _MIN_BYTES)
        return answer


def _add_image(found: Scores, nodes: NodeInfos, image: str, total_nodes: int) -> None:
    """Add one image's scaled size to ``found`` (int64, shape (n,))."""
    codes, distinct = nodes.derived(
        f"ImageLocality/{image}", lambda info: info.image_sizes.get(image)
    )
    if distinct:
        # Code -1, "not on this node", points at the last entry.
        sizes = [*(_scaled(size, count, total_nodes) for size, count in distinct), 0]
        found += np.array(sizes, dtype=np.int64)[codes]


def _scaled(size: int, nodes_with_image: int, total_nodes: int) -> int:
    # The order of these operations decides the truncation.
    return int(size * (nodes_with_image / total_nodes)) if total_nodes else 0


def _images(pod: Pod) -> list[str]:
    """Image names of containers, init containers and image volumes, each as often as it occurs."""
    images = [c.image for c in (*pod.init_containers, *pod.containers)]
    images.extend(v.image for v in pod.volumes if v.image)
    return [normalized_image_name(image) for image in images]


def _containers(pod: Pod) -> int:
    return len(pod.containers) + len(pod.init_containers)


def normalized_image_name(name: str) -> str:
    """With ``:latest`` if there is no tag and no digest; ``host:5000/x`` has no tag."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"
