"""How many of the pods that a constraint selects are on each node, and in each domain.

Everything that PodTopologySpread counts is counted here. Counts are kept from cycle to cycle, by
what is counted: they follow the nodes that change (``helpers.tally``), and so do their sums by
domain.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from scheduler_core.api import LabelSelector, Node, Pod, find_untolerated
from scheduler_core.framework.nodes import Bool, NodeInfos, NodeTable
from scheduler_core.plugins.helpers.domain_counts import (
    DomainCounts,
    DomainSums,
    domain_counter,
    topology,
)
from scheduler_core.plugins.helpers.node_matching import pod_selects_mask
from scheduler_core.plugins.helpers.tally import Count, PodKind, pod_tally
from scheduler_core.plugins.pod_topology_spread.constraints import Constraint

__all__ = ["Spread", "carries_keys", "domain_totals", "keys_mask", "matching_pods", "spreads"]


@dataclass(slots=True)
class Spread:
    """A hard constraint and the domains it is held against."""

    constraint: Constraint
    domains: DomainCounts

    def room(self) -> int:
        """The largest number of matching pods that a domain may have after the pod came to it."""
        size, minimum = self.domains.size_and_minimum()
        if size < self.constraint.min_domains:
            minimum = 0
        return minimum + self.constraint.max_skew

    def clone(self) -> Spread:
        return Spread(self.constraint, self.domains.clone())


def matching_pods(
    table: NodeTable, namespace: str, selector: LabelSelector | None
) -> Count[PodKind]:
    """Pods of the namespace that the selector selects and that are not being deleted. No selector,
    and the empty one, count none."""
    pods = pod_tally(table)
    pods.update()
    if selector is None or selector.is_empty:
        return pods.count("nothing", lambda kind: 0, ())

    def counts(kind: PodKind) -> int:
        return not kind.terminating and selector.matches(dict(kind.labels))

    return pods.count(("PodTopologySpread", namespace, selector), counts, (namespace,))


def spreads(pod: Pod, constraints: Sequence[Constraint], table: NodeTable) -> list[Spread]:
    """Domains of hard constraints: those of nodes that carry every key and that the policies of the
    constraint admit."""
    keys = tuple(c.topology_key for c in constraints)
    return [Spread(c, DomainCounts(_domain_sums(pod, c, table, keys, False))) for c in constraints]


def domain_totals(
    pod: Pod, constraint: Constraint, table: NodeTable, keys: tuple[str, ...]
) -> DomainSums:
    """Pods on nodes that the policies admit and that carry all ``keys``. Nodes without the label
    have a number too."""
    return _domain_sums(pod, constraint, table, keys, True)


def _domain_sums(
    pod: Pod,
    constraint: Constraint,
    table: NodeTable,
    keys: tuple[str, ...],
    count_unlabelled: bool,
) -> DomainSums:
    return domain_counter(
        matching_pods(table, pod.namespace, constraint.selector),
        table,
        constraint.topology_key,
        among=(keys, _policies(pod, constraint)),
        admitted=lambda: _carrying(table, keys) & _admitted(pod, constraint, table),
        count_unlabelled=count_unlabelled,
    ).sums()


def carries_keys(node: Node, constraints: Iterable[Constraint]) -> bool:
    """Whether the node has every topology key."""
    return all(c.topology_key in node.labels for c in constraints)


def keys_mask(nodes: NodeInfos, constraints: Iterable[Constraint]) -> Bool | None:
    """bool, shape (n,): nodes that have every topology key; None: all of them."""
    mask: Bool | None = None
    for constraint in constraints:
        has = topology(nodes.table, constraint.topology_key).has_label(nodes)
        if has is not None:
            mask = has if mask is None else mask & has
    return mask


def _carrying(table: NodeTable, keys: Iterable[str]) -> Bool:
    mask = np.ones(len(table), dtype=bool)
    for key in keys:
        mask &= table.label(key) >= 0
    return mask


def _policies(pod: Pod, constraint: Constraint) -> Hashable:
    """What of the pod decides which nodes the policies of a constraint admit."""
    selector: Hashable = None
    if constraint.honor_affinity:
        affinity = pod.affinity.node_affinity
        required = affinity.required if affinity is not None else None
        if pod.node_selector or required is not None:
            selector = (frozenset((pod.node_selector or {}).items()), required)
    return selector, pod.tolerations if constraint.honor_taints else None


def _admitted(pod: Pod, constraint: Constraint, nodes: NodeInfos) -> Bool:
    """bool, shape (n,): ``Constraint.admits`` of all nodes."""
    if constraint.honor_affinity:
        mask = pod_selects_mask(nodes, pod)
    else:
        mask = np.ones(len(nodes), dtype=bool)
    if constraint.honor_taints:
        tolerations = pod.tolerations
        tainted = nodes.over_taints(
            ("PodTopologySpread", tolerations),
            lambda taints: find_untolerated(taints, tolerations) is not None,
        )
        mask &= ~tainted.astype(bool, copy=False)
    return mask
