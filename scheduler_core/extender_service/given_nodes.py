"""GivenNodes: nodes that came whole with a call, among those that are known here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scheduler_core.api import InvalidObject, Node
from scheduler_core.extender_service.args import InvalidArgs
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.nodes import NodeInfos, NodeTable

__all__ = ["GivenNodes"]

Raw = Mapping[str, Any]


class GivenNodes:
    """Reading a node costs far more than comparing it, and most are the same from call to call:
    what was read is kept, one version per node. For the scheduler thread alone."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[Raw, Node]] = {}

    def among(self, table: NodeTable, given: Sequence[Raw]) -> NodeInfos:
        """The nodes of ``table``, those that came in another version as they came (with the pods
        that are known to be on them), and new ones.

        Raises:
            InvalidArgs: a node cannot be read; the text says which.
        """
        changed: dict[str, NodeInfo] = {}
        for index, raw in enumerate(given):
            known = table.get(raw["metadata"]["name"])
            if known is not None and known.node is not None and _is_same(known.node, raw):
                continue
            node = self._node(raw, index)
            info = known.clone() if known is not None else NodeInfo()
            info.set_node(node)
            changed[node.name] = info
        if len(self._read) > 2 * len(given) + len(table):  # most of them have left
            self._read.clear()
        if not changed:
            return table
        infos = [changed.pop(info.name, info) for info in table]
        return NodeTable([*infos, *changed.values()])

    def _node(self, raw: Raw, index: int) -> Node:
        name = raw["metadata"]["name"]
        read = self._read.get(name)
        if read is not None and read[0] == raw:
            return read[1]
        try:
            node = Node.from_dict(dict(raw))
        except InvalidObject as exc:
            raise InvalidArgs(f"Nodes.items[{index}]: {exc}") from None
        self._read[name] = (raw, node)
        return node


def _is_same(known: Node, raw: Raw) -> bool:
    """By uid and version where it has them, else by what is in it."""
    meta = raw["metadata"]
    version = meta.get("resourceVersion")
    if version:
        return bool(version == known.resource_version and meta.get("uid") == known.uid)
    mine = known.raw
    return all(raw.get(part) == mine.get(part) for part in ("metadata", "spec", "status"))
