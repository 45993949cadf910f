"""Is there room for a gang's minResources in the cluster as a whole?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from scheduler_core.api import PODS, PodGroup, assigned_requests, format_resource
from scheduler_core.framework.nodes import Int64, NodeInfos
from scheduler_core.plugins.noderesources.amounts import allocatable_column, requested_column

__all__ = ["describe_gap", "resource_gap"]


def resource_gap(group: PodGroup, nodes: NodeInfos, members_on: Iterable[str]) -> Mapping[str, int]:
    """What is missing of minResources, and of room for minMember pods; empty if nothing is.

    What the gang's own pods take, on the nodes ``members_on``, counts as free. A node that is
    overcommitted has nothing to give; it takes nothing away from what others have.
    """
    wanted = {**(group.min_resources or {}), PODS: group.min_member}
    own = _own_usage(group.key, nodes, members_on)
    gap = {}
    for resource, amount in wanted.items():
        free = _free(nodes, resource).copy()
        for row, usage in own.items():
            free[row] += usage.get(resource, 0)
        missing = amount - int(np.maximum(free, 0).sum())
        if missing > 0:
            gap[resource] = missing
    return gap


def describe_gap(gap: Mapping[str, int]) -> str:
    """``cpu 2, memory 4Gi``, in the order of the names."""
    return ", ".join(f"{name} {format_resource(name, gap[name])}" for name in sorted(gap))


def _free(nodes: NodeInfos, resource: str) -> Int64:
    if resource == PODS:
        return nodes.allowed_pod_number - nodes.pod_count
    return allocatable_column(nodes, resource) - requested_column(nodes, resource)


def _own_usage(
    group_key: str, nodes: NodeInfos, members_on: Iterable[str]
) -> dict[int, dict[str, int]]:
    """row -> what the gang's pods take there."""
    answer: dict[int, dict[str, int]] = {}
    for name in set(members_on):
        row = nodes.index_of(name)
        if row < 0:
            continue
        usage = answer.setdefault(row, {})
        for pod in nodes[row].pods:
            if pod.pod_group_key == group_key:
                usage[PODS] = usage.get(PODS, 0) + 1
                for resource, amount in assigned_requests(pod).items():
                    usage[resource] = usage.get(resource, 0) + amount
    return answer
