"""ImageStates: which nodes have which container images, and how large these are."""

from __future__ import annotations

from scheduler_core.api import Node


class _Image:
    __slots__ = ("nodes", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.nodes: set[str] = set()


class ImageStates:
    """All images on all nodes.

    The size of an image is what the first node that had it reported; it is forgotten when the image
    is gone everywhere (kube-scheduler 1.36, ImageLocality).
    """

    __slots__ = ("_images", "_summaries", "_version")

    def __init__(self) -> None:
        self._images: dict[str, _Image] = {}
        self._summaries: dict[str, tuple[int, dict[str, tuple[int, int]]]] = {}
        self._version = 0

    def add(self, node: Node) -> None:
        for image in node.images:
            for name in image.names:
                self._images.setdefault(name, _Image(image.size)).nodes.add(node.name)
        if node.images:
            self._version += 1

    def remove(self, node: Node) -> None:
        for image in node.images:
            for name in image.names:
                self._forget(name, node.name)
        self._summaries.pop(node.name, None)
        if node.images:
            self._version += 1

    def summary(self, node: Node) -> dict[str, tuple[int, int]]:
        """image name -> (size in bytes, number of nodes that have it now). Not to be changed."""
        if not node.images:
            return {}
        known = self._summaries.get(node.name)
        if known is not None and known[0] == self._version:
            return known[1]
        summary = {
            name: (self._images[name].size, len(self._images[name].nodes))
            for image in node.images
            for name in image.names
        }
        self._summaries[node.name] = (self._version, summary)
        return summary

    def _forget(self, name: str, node_name: str) -> None:
        image = self._images.get(name)
        if image is None:
            return
        image.nodes.discard(node_name)
        if not image.nodes:
            del self._images[name]
