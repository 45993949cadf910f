"""Snapshot: the nodes as one scheduling cycle sees them."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler_core.backend.cache import Cache
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.nodes import NodeTable, Rows


class Snapshot:
    """Copies of the cache's NodeInfos and their columns, brought up to date by generation.

    Only nodes that changed since the last update are copied. After any sequence of changes it
    equals one made from scratch, save that the number of nodes with an image is the one at the time
    of a node's last copy (as in kube-scheduler 1.36).
    """

    def __init__(self) -> None:
        #: The nodes in order; the same object for the life of the snapshot.
        self.nodes = NodeTable()
        self._generation = 0
        self._order_version = 0

    def update(self, cache: Cache) -> None:
        if cache.order_version != self._order_version:
            self._rebuild(cache)
            self._order_version = cache.order_version
        elif cache.generation != self._generation:
            self._refresh(cache)
        self._generation = cache.generation

    @property
    def rows_with_affinity(self) -> Rows:
        """intp, ascending: rows of nodes with pods that have pod (anti-)affinity."""
        return self.nodes.rows_with_affinity

    @property
    def rows_with_required_anti_affinity(self) -> Rows:
        """intp, ascending: rows of nodes with pods that have required anti-affinity."""
        return self.nodes.rows_with_required_anti_affinity

    @property
    def used_pvcs(self) -> Mapping[str, int]:
        """ "namespace/claim" -> number of pods that use it, over all nodes."""
        return self.nodes.used_pvcs

    def _refresh(self, cache: Cache) -> None:
        nodes = self.nodes
        for info in cache.changed_since(self._generation):
            row = nodes.row_of[info.name]
            copy, before = cache.copy_of(info), nodes[row]
            if (
                copy.content_generation == before.content_generation
                and copy.image_sizes == before.image_sizes
            ):
                nodes.replace_row(row, copy)
            else:
                nodes.refresh_row(row, copy)

    def _rebuild(self, cache: Cache) -> None:
        """The copies that are here already, where they are still good, else new ones."""
        mine = dict(zip(self.nodes.names, self.nodes, strict=True))
        infos: list[NodeInfo] = []
        for name in cache.node_order():
            info = cache.node_info(name)
            if info is None:
                raise LookupError(f"node {name} is in the node tree but not in the cache")
            copy = mine.get(name)
            if copy is None or copy.generation != info.generation:
                copy = cache.copy_of(info)
            infos.append(copy)
        self.nodes.rebuild(infos)
