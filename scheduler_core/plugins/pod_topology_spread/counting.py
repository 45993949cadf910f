"""How many of the pods that a constraint selects are on each node, and in each domain.

Everything that PodTopologySpread counts is counted here. Per node counts come from the tally, which
follows the nodes that change; domains are summed up from them once per cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from scheduler_core.api import LabelSelector, Node, Pod, find_untolerated
from scheduler_core.framework.nodes import Bool, Int64, NodeInfos
from scheduler_core.plugins.helpers.domain_counts import DomainCounts
from scheduler_core.plugins.helpers.node_matching import pod_selects_mask
from scheduler_core.plugins.helpers.tally import PodKind, pod_tally
from scheduler_core.plugins.pod_topology_spread.constraints import Constraint

__all__ = ["Spread", "SpreadCounter", "carries_keys", "keys_mask"]


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


class SpreadCounter:
    """Counts pods for constraints; one per plugin."""

    def __init__(self) -> None:
        self._pods = pod_tally()

    def update(self, nodes: NodeInfos) -> None:
        """To be called before counting in a cycle."""
        self._pods.update(nodes)

    def per_node(self, namespace: str, selector: LabelSelector | None) -> Int64:
        """int64, shape (n,), all nodes of the snapshot: pods of the namespace that the selector
        selects and that are not being deleted. No selector, and the empty one, count none."""
        if selector is None or selector.is_empty:
            return self._pods.totals(np.zeros(len(self._pods.kinds), dtype=bool))

        def counts(kind: PodKind) -> bool:
            if kind.namespace != namespace or kind.terminating:
                return False
            return selector.matches(dict(kind.labels))

        return self._pods.totals(self._pods.answers((namespace, selector), counts))

    def spreads(
        self, pod: Pod, constraints: Sequence[Constraint], nodes: NodeInfos
    ) -> list[Spread]:
        """Domains of hard constraints: those of nodes that carry every key and that the policies
        of the constraint admit."""
        table = nodes.table
        carrying = keys_mask(table, constraints)
        return [
            Spread(
                c,
                DomainCounts.of(
                    table,
                    c.topology_key,
                    self.per_node(pod.namespace, c.selector),
                    carrying & _admitted(pod, c, table),
                ),
            )
            for c in constraints
        ]

    def domain_totals(
        self, pod: Pod, constraint: Constraint, nodes: NodeInfos, carrying: Bool | None
    ) -> Int64:
        """int64, shape (codes + 1,), by label code of the constraint's key: pods on nodes that the
        policies admit and (where given) that are ``carrying``. Nodes without the label share the
        domain of the empty value; the last entry is the number of theirs."""
        table = nodes.table
        column = table.label_column(constraint.topology_key)
        counted = _admitted(pod, constraint, table)
        if carrying is not None:
            counted = counted & carrying
        size = len(column.values)
        codes = np.where(column.codes < 0, size, column.codes)
        per_node = self.per_node(pod.namespace, constraint.selector) * counted
        totals = np.bincount(codes, weights=per_node, minlength=size + 1).astype(np.int64)
        empty = column.code_of("")
        if empty >= 0:
            totals[[empty, size]] = totals[empty] + totals[size]
        return totals


def carries_keys(node: Node, constraints: Iterable[Constraint]) -> bool:
    """Whether the node has every topology key."""
    return all(c.topology_key in node.labels for c in constraints)


def keys_mask(nodes: NodeInfos, constraints: Iterable[Constraint]) -> Bool:
    """bool, shape (n,): nodes that have every topology key."""
    mask = np.ones(len(nodes), dtype=bool)
    for constraint in constraints:
        mask &= nodes.label(constraint.topology_key) >= 0
    return mask


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
