"""What is worked out once for all pods that say the same, and answers that still hold."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler_core.api import Pod
from scheduler_core.framework.interface import Informer
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.plugins.helpers.same import same_objects
from scheduler_core.plugins.inter_pod_affinity.counting import Subject
from scheduler_core.plugins.inter_pod_affinity.terms import (
    OwnTerms,
    matches_all,
    parse_error,
    preferred_terms,
)
from scheduler_core.plugins.inter_pod_affinity.weights import PairWeights, WeightedSums

__all__ = ["Kept"]


class Kept:
    """What is known of all pods with one signature, and kept for the next one.

    Attributes:
        problem: why its terms do not parse; "" if they do.
        matches_itself: the pod matches all its required affinity terms.
        statuses: of all nodes, never written to; they follow from ``statuses_from``.
        weights: what they follow from is ``weights_from``.
    """

    __slots__ = (
        "matches_itself",
        "own",
        "preferred",
        "problem",
        "statuses",
        "statuses_from",
        "subject",
        "weights",
        "weights_from",
    )

    def __init__(self, pod: Pod, namespaces: Informer) -> None:
        namespace = namespaces.get(pod.namespace)
        self.problem = parse_error(pod)
        self.own = OwnTerms.of(pod, namespaces)
        self.preferred = preferred_terms(pod, namespaces)
        self.matches_itself = matches_all(self.own.affinity, pod)
        self.subject = Subject.of(pod, namespace.labels if namespace is not None else {})
        self.statuses = NodeStatuses(0)
        self.statuses_from: list[object] = []
        self.weights = PairWeights(())
        self.weights_from: list[object] = []

    def pair_weights(self, parts: Sequence[WeightedSums]) -> PairWeights:
        """The sums of these; the same object as before if they are the same."""
        inputs = [part.sums for part in parts]
        if not self.weights_from or not same_objects(self.weights_from, inputs):
            self.weights, self.weights_from = PairWeights(parts), [*inputs]
        return self.weights
