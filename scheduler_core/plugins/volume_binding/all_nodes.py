"""The vector form: on which nodes a pod's claims have, or can get, their volumes.

Every step is a question about one volume, class or capacity, asked of all nodes at once. Masks
are bool, shape (n,).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from scheduler_core.api import LabelSelector, NodeSelector, NodeSelectorTerm
from scheduler_core.api.storage import PersistentVolume
from scheduler_core.api.volume_matching import (
    can_be_bound,
    can_provision,
    is_bound_to,
    may_serve,
)
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import Bool, NodeInfos
from scheduler_core.framework.status import Status, error
from scheduler_core.plugins.helpers.csi_migration import (
    csi_affinity,
    is_migratable,
    is_migrated_on,
)
from scheduler_core.plugins.helpers.node_matching import selector_mask, term_mask
from scheduler_core.plugins.volume_binding.pod_claims import DelayedClaim, PodClaims
from scheduler_core.plugins.volume_binding.volumes import StorageView, rejection

__all__ = ["AllNodes"]


class AllNodes:
    """One pod's claims against all nodes."""

    def __init__(self, nodes: NodeInfos, view: StorageView) -> None:
        self._nodes = nodes
        self._view = view
        self._not_admitted = self._none()
        self._nothing_to_bind = self._none()
        self._no_space = self._none()
        self._volume_gone = self._none()
        self._statuses = NodeStatuses(len(nodes))
        #: volume -> nodes on which one of the pod's claims has taken it.
        self._taken: dict[str, Bool] = {}

    def check(self, claims: PodClaims) -> NodeStatuses:
        """One status per node."""
        self._check_bound(claims)
        self._check_delayed(claims.delayed)
        outcomes = np.stack(
            [self._not_admitted, self._nothing_to_bind, self._no_space, self._volume_gone]
        )
        for bits in np.unique(outcomes, axis=1).T.tolist():
            if any(bits):
                hit = (outcomes == np.array(bits)[:, None]).all(axis=0)
                self._statuses.reject(hit, _rejection(bits))
        return self._statuses

    def _none(self) -> Bool:
        return np.zeros(len(self._nodes), dtype=bool)

    # -- bound claims ------------------------------------------------------------------------------

    def _check_bound(self, claims: PodClaims) -> None:
        going = ~self._none()
        for claim in claims.bound:
            volume = self._view.volume(claim.volume_name)
            if volume is None:
                self._volume_gone |= going
                return
            admitted = self._admitted(volume, going)
            self._not_admitted |= going & ~admitted & (self._statuses.ids == 0)
            going &= admitted
            if not going.any():
                return

    def _admitted(self, volume: PersistentVolume, going: Bool) -> Bool:
        """Where a volume in use can be reached; in-tree ones by their driver's labels on nodes
        whose driver has taken them over."""
        own = self._affinity_mask(volume.node_affinity)
        if not is_migratable(volume):
            return own
        drivers = (c.name for c in self._view.csi_nodes() if is_migrated_on(volume, c))
        migrated = self._rows_of(drivers)
        if not migrated.any():
            return own
        try:
            theirs = self._affinity_mask(csi_affinity(volume))
        except ValueError as fault:
            self._statuses.reject(migrated & going, error(f"could not translate pv: {fault}"))
            theirs = self._none()
        return np.where(migrated, theirs, own)

    # -- claims that wait for their first consumer -------------------------------------------------

    def _check_delayed(self, delayed: Sequence[DelayedClaim]) -> None:
        selected = [c for c in delayed if c.has_selected_node]
        for wanted in selected:
            self._nothing_to_bind |= ~self._rows_of((wanted.claim.selected_node,))
        going = ~self._nothing_to_bind
        provisioning = [(wanted, going.copy()) for wanted in selected]
        others = (c for c in delayed if not c.has_selected_node)
        by_size = sorted(others, key=lambda c: c.claim.request)
        provisioning += [(wanted, going & ~self._match(wanted, going)) for wanted in by_size]
        for wanted, where in provisioning:
            self._provision(wanted, where & going, going)

    def _match(self, wanted: DelayedClaim, going: Bool) -> Bool:
        """Where the claim finds a volume: that kept for it, or the smallest that is free."""
        claim = wanted.claim
        known = self._view.volumes_of_class(claim.storage_class_name or "")
        usable = [volume for volume in known if may_serve(volume, claim)]
        matched, open_ = self._none(), going.copy()
        for volume in usable:
            if is_bound_to(volume, claim):
                here = open_ & ~self._taken_at(volume)
                matched |= self._take(volume, here)
                open_ &= ~here  # kept for the claim: there is no other choice
        free = [v for v in usable if v.claim_ref is None and can_be_bound(v, claim)]
        for volume in sorted(free, key=lambda v: v.capacity):
            if not open_.any():
                break
            here = self._take(volume, open_ & ~self._taken_at(volume))
            matched |= here
            open_ &= ~here
        return matched

    def _taken_at(self, volume: PersistentVolume) -> Bool:
        known = self._taken.get(volume.name)
        return self._none() if known is None else known

    def _take(self, volume: PersistentVolume, where: Bool) -> Bool:
        """The volume is used where it can be, of ``where``; returns these nodes."""
        here = where & self._affinity_mask(volume.node_affinity)
        if here.any():
            self._taken[volume.name] = self._taken_at(volume) | here
        return here

    def _provision(self, wanted: DelayedClaim, where: Bool, going: Bool) -> None:
        """Nodes of ``where`` on which no volume can be made leave ``going``."""
        if not can_provision(wanted.storage_class):
            impossible = where
        elif wanted.storage_class.allowed_topologies is not None:
            allowed = selector_mask(self._nodes, wanted.storage_class.allowed_topologies)
            impossible = where & ~allowed
        else:
            impossible = self._none()
        self._nothing_to_bind |= impossible
        going &= ~impossible
        capacities = self._view.capacities_for(wanted.claim, wanted.storage_class)
        if capacities is None:
            return
        room = self._none()
        for capacity in capacities:
            if capacity.node_topology is not None:
                room |= self._label_mask(capacity.node_topology)
        full = where & ~impossible & ~room
        self._no_space |= full
        going &= ~full

    # -- masks -------------------------------------------------------------------------------------

    def _rows_of(self, names: Iterable[str]) -> Bool:
        mask = self._none()
        for name in names:
            row = self._nodes.index_of(name)
            if row >= 0:
                mask[row] = True
        return mask

    def _label_mask(self, selector: LabelSelector) -> Bool:
        mask = ~self._none()
        for requirement in selector.requirements:
            mask &= self._nodes.matches(requirement)
        return mask

    def _affinity_mask(self, affinity: NodeSelector | None) -> Bool:
        """Nodes that a volume's node affinity admits; to it every node's name is ""."""
        if affinity is None:
            return ~self._none()
        mask = self._none()
        for term in affinity.terms:
            if term.error or not all(r.matches_value("") for r in term.match_fields):
                continue
            if term.match_expressions:
                mask |= term_mask(self._nodes, NodeSelectorTerm(term.match_expressions))
            elif term.match_fields:
                mask |= True
        return mask


def _rejection(bits: Sequence[bool]) -> Status:
    return rejection(
        not_admitted=bits[0], nothing_to_bind=bits[1], no_space=bits[2], volume_gone=bits[3]
    )
