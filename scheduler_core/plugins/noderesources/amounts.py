"""One resource on every node as columns, and on one node as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from scheduler_core.api import CPU, MEMORY, PODS, is_scalar_resource
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.nodes import Int64, NodeInfos

__all__ = [
    "allocatable_column",
    "counts_for_scoring",
    "nonzero_requested",
    "nonzero_requested_column",
    "offered_amount",
    "requested_column",
]


def offered_amount(offers: Mapping[str, int], resource: str) -> int:
    """What a node with these ``NodeInfo.allocatable`` offers; ``pods`` is no resource here."""
    return 0 if resource == PODS else offers.get(resource, 0)


def nonzero_requested(info: NodeInfo, resource: str) -> int:
    """What the pods on a node count for in scoring: with defaults for cpu and memory."""
    if resource == CPU:
        return info.nonzero_cpu
    if resource == MEMORY:
        return info.nonzero_memory
    return info.requested.get(resource, 0)


def allocatable_column(nodes: NodeInfos, resource: str) -> Int64:
    """int64, shape (n,): ``allocatable`` of every node."""
    return _column(nodes, nodes.table.column_allocatable, nodes.resource_index(resource))


def requested_column(nodes: NodeInfos, resource: str) -> Int64:
    """int64, shape (n,): the sum of the pods' requests on every node."""
    return _sums(nodes, nodes.table.column_requested, nodes.resource_index(resource))


def nonzero_requested_column(nodes: NodeInfos, resource: str) -> Int64:
    """int64, shape (n,): ``nonzero_requested`` of every node."""
    if resource == CPU:
        return _sums(nodes, nodes.table.column_nonzero, 0)
    if resource == MEMORY:
        return _sums(nodes, nodes.table.column_nonzero, 1)
    return requested_column(nodes, resource)


def _column(nodes: NodeInfos, matrix: Int64, index: int) -> Int64:
    if index < 0:
        return np.zeros(len(nodes), dtype=np.int64)
    # One column is taken before rows are gathered: a subset then copies n numbers, not n x r.
    return cast(Int64, nodes.gather(matrix[:, index]))


def _sums(nodes: NodeInfos, matrix: Int64, index: int) -> Int64:
    if index < 0:
        return np.zeros(len(nodes), dtype=np.int64)
    return cast(Int64, nodes.gather_sums(matrix[:, index]))


def counts_for_scoring(resource: str, own: int) -> bool:
    """Whether a resource is scored at all: a scalar that the pod does not ask for is left out."""
    return own > 0 or not is_scalar_resource(resource)
