"""Which events may make a pod schedulable that InterPodAffinity rejected (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.api import Node, Pod
from scheduler_core.framework.events import QueueingHint
from scheduler_core.framework.interface import Informer
from scheduler_core.plugins.helpers.hints import held_a_node, is_own_pod, queue_if
from scheduler_core.plugins.inter_pod_affinity.terms import OwnTerms, matches_all

__all__ = ["after_node_change", "after_pod_change"]


def after_pod_change(pod: Pod, namespaces: Informer, old: Any, new: Any) -> QueueingHint:
    """A pod came, went, or has other labels."""
    if is_own_pod(pod, new):
        return QueueingHint.QUEUE
    versions = [version for version in (old, new) if isinstance(version, Pod)]
    if not all(held_a_node(version) for version in versions):
        return QueueingHint.SKIP
    own = OwnTerms.of(pod, namespaces)
    if isinstance(old, Pod) and isinstance(new, Pod):
        helps = not matches_all(own.affinity, old) and matches_all(own.affinity, new)
        gone = matches_all(own.anti_affinity, old) and not matches_all(own.anti_affinity, new)
        return queue_if(helps or gone)
    if isinstance(new, Pod):
        return queue_if(matches_all(own.affinity, new))
    if not isinstance(old, Pod):
        return QueueingHint.SKIP
    theirs = OwnTerms.of(old, namespaces).anti_affinity
    return queue_if(matches_all(own.anti_affinity, old) or matches_all(theirs, pod))


def after_node_change(pod: Pod, namespaces: Informer, old: Any, new: Any) -> QueueingHint:
    """A node came or has other labels."""
    if not isinstance(new, Node):
        return QueueingHint.SKIP
    own = OwnTerms.of(pod, namespaces)
    wanted = {term.topology_key for term in own.affinity}
    avoided = {term.topology_key for term in own.anti_affinity}
    if not isinstance(old, Node):
        # A new domain has no pods yet that are to be kept away from.
        return queue_if(bool(avoided) or any(key in new.labels for key in wanted))
    reached = any(key in new.labels and _changed(key, old.labels, new.labels) for key in wanted)
    left = any(key in old.labels and _changed(key, old.labels, new.labels) for key in avoided)
    return queue_if(reached or left)


def _changed(key: str, old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    return old.get(key) != new.get(key)
