"""Node affinity, pod (anti-)affinity terms and topology spread constraints of a pod."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .reader import EMPTY, Reader
from .selectors import (
    LabelSelector,
    NodeSelector,
    PreferredSchedulingTerm,
    label_selector,
    node_selector,
    node_selector_term,
)

__all__ = [
    "DO_NOT_SCHEDULE",
    "NO_AFFINITY",
    "SCHEDULE_ANYWAY",
    "Affinity",
    "NodeAffinity",
    "PodAffinity",
    "PodAffinityTerm",
    "TopologySpreadConstraint",
    "WeightedPodAffinityTerm",
]

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class NodeAffinity:
    """Required and preferred node affinity; None means that the list is not there at all."""

    required: NodeSelector | None = None
    preferred: tuple[PreferredSchedulingTerm, ...] | None = None

    @classmethod
    def read(cls, reader: Reader) -> NodeAffinity:
        preferred = None
        if reader.has(_PREFERRED):
            preferred = tuple(
                PreferredSchedulingTerm(
                    entry.integer("weight"), node_selector_term(entry.child("preference"))
                )
                for entry in reader.items(_PREFERRED)
            )
        return cls(node_selector(reader, _REQUIRED), preferred)


@dataclass(frozen=True, slots=True)
class PodAffinityTerm:
    """Pods that a term speaks of, and the topology in which it speaks of them.

    Attributes:
        label_selector: None matches no pod.
        namespaces: listed namespaces.
        namespace_selector: None is absent; the selector `{}` is every namespace.
    """

    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: frozenset[str] = frozenset()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()

    @property
    def error(self) -> str:
        """Why one of its selectors does not parse ("" if both do)."""
        for selector in (self.label_selector, self.namespace_selector):
            if selector is not None and selector.error:
                return selector.error
        return ""

    def namespaces_of(self, owner_namespace: str) -> frozenset[str]:
        """The namespaces it names; the owner's own only if it says nothing about namespaces."""
        if not self.namespaces and self.namespace_selector is None:
            return frozenset((owner_namespace,))
        return self.namespaces

    def matches(
        self,
        owner_namespace: str,
        namespace: str,
        labels: Mapping[str, str],
        namespace_labels: Mapping[str, str] = EMPTY,
    ) -> bool:
        """Whether a pod in `namespace` with `labels` is meant (kube-scheduler, InterPodAffinity).

        `namespace_labels` are those of the pod's namespace: the own pod's terms, whose namespace
        selectors were resolved to names before, are evaluated with none.
        """
        if self.label_selector is None:
            return False
        selected = self.namespace_selector
        if namespace not in self.namespaces_of(owner_namespace) and not (
            selected is not None and selected.matches(namespace_labels)
        ):
            return False
        return self.label_selector.matches(labels)

    @classmethod
    def read(cls, reader: Reader) -> PodAffinityTerm:
        return cls(
            reader.text("topologyKey"),
            label_selector(reader, "labelSelector"),
            frozenset(reader.texts("namespaces")),
            label_selector(reader, "namespaceSelector"),
            reader.texts("matchLabelKeys"),
            reader.texts("mismatchLabelKeys"),
        )


@dataclass(frozen=True, slots=True)
class WeightedPodAffinityTerm:
    """A preferred term and its weight (positive also for anti-affinity)."""

    weight: int
    term: PodAffinityTerm


@dataclass(frozen=True, slots=True)
class PodAffinity:
    """Required and preferred terms, of affinity or of anti-affinity."""

    required: tuple[PodAffinityTerm, ...] = ()
    preferred: tuple[WeightedPodAffinityTerm, ...] = ()

    @classmethod
    def read(cls, reader: Reader) -> PodAffinity:
        return cls(
            tuple(map(PodAffinityTerm.read, reader.items(_REQUIRED))),
            tuple(
                WeightedPodAffinityTerm(
                    entry.integer("weight"), PodAffinityTerm.read(entry.child("podAffinityTerm"))
                )
                for entry in reader.items(_PREFERRED)
            ),
        )


@dataclass(frozen=True, slots=True)
class Affinity:
    """spec.affinity; a part that is absent is None."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None

    @classmethod
    def read(cls, reader: Reader) -> Affinity:
        node = reader.optional_child("nodeAffinity")
        pod = reader.optional_child("podAffinity")
        anti = reader.optional_child("podAntiAffinity")
        return cls(
            None if node is None else NodeAffinity.read(node),
            None if pod is None else PodAffinity.read(pod),
            None if anti is None else PodAffinity.read(anti),
        )


#: the affinity of a pod that has none
NO_AFFINITY: Final = Affinity()


@dataclass(frozen=True, slots=True)
class TopologySpreadConstraint:
    """One spread constraint.

    Attributes:
        label_selector: None matches no pod.
        min_domains: None counts as 1.
        node_affinity_policy, node_taints_policy: Honor or Ignore, defaults applied.
    """

    max_skew: int
    topology_key: str
    when_unsatisfiable: str = DO_NOT_SCHEDULE
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"

    @property
    def is_hard(self) -> bool:
        """Whether it keeps pods off nodes (DoNotSchedule)."""
        return self.when_unsatisfiable == DO_NOT_SCHEDULE

    @classmethod
    def read(cls, reader: Reader) -> TopologySpreadConstraint:
        return cls(
            reader.integer("maxSkew"),
            reader.text("topologyKey"),
            reader.text("whenUnsatisfiable"),
            label_selector(reader, "labelSelector"),
            reader.texts("matchLabelKeys"),
            reader.optional_integer("minDomains"),
            reader.text("nodeAffinityPolicy") or "Honor",
            reader.text("nodeTaintsPolicy") or "Ignore",
        )
