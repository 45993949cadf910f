"""Which events may make a pod schedulable that PodTopologySpread rejected (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scheduler_core.api import Node, Pod
from scheduler_core.framework.events import QueueingHint
from scheduler_core.plugins.helpers.hints import held_a_node, is_own_pod, queue_if
from scheduler_core.plugins.pod_topology_spread.constraints import Constraint
from scheduler_core.plugins.pod_topology_spread.counting import carries_keys

__all__ = ["after_node_change", "after_pod_change"]


def after_pod_change(
    pod: Pod, constraints: Sequence[Constraint], old: Any, new: Any
) -> QueueingHint:
    """A pod came, went, or has other labels; or the pod itself tolerates more.

    ``constraints`` are the hard ones of ``pod``.
    """
    versions = [version for version in (old, new) if isinstance(version, Pod)]
    if not all(_is_involved(pod, version) for version in versions):
        return QueueingHint.SKIP
    if isinstance(old, Pod) and isinstance(new, Pod):
        return queue_if(_change_matters(pod, constraints, old, new))
    return queue_if(any(c.selects(p.labels) for p in versions for c in constraints))


def _is_involved(pod: Pod, other: Pod) -> bool:
    return is_own_pod(pod, other) or (other.namespace == pod.namespace and held_a_node(other))


def _change_matters(pod: Pod, constraints: Sequence[Constraint], old: Pod, new: Pod) -> bool:
    tolerates_more = is_own_pod(pod, new) and old.tolerations != new.tolerations
    if tolerates_more and any(c.honor_taints for c in constraints):
        return True  # nodes whose taints are tolerated now take part
    return any(c.selects(old.labels) != c.selects(new.labels) for c in constraints)


def after_node_change(constraints: Sequence[Constraint], old: Any, new: Any) -> QueueingHint:
    """A node came, went, or has other labels or taints."""
    before = isinstance(old, Node) and carries_keys(old, constraints)
    after = isinstance(new, Node) and carries_keys(new, constraints)
    if isinstance(old, Node) and isinstance(new, Node) and before and after:
        moved = _moved(old.labels, new.labels, constraints)
        return queue_if(moved or old.taints != new.taints)
    return queue_if(before != after)


def _moved(
    old: Mapping[str, str], new: Mapping[str, str], constraints: Sequence[Constraint]
) -> bool:
    return any(old[c.topology_key] != new[c.topology_key] for c in constraints)
