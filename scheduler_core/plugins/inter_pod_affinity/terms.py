"""Affinity terms: those of the pod itself, with their namespaces resolved, and those of pods that
are on nodes already (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scheduler_core.api import LabelSelector, Namespace, Pod, PodAffinity, PodAffinityTerm
from scheduler_core.framework.interface import Informer

__all__ = [
    "ExistingTerm",
    "OwnTerm",
    "OwnTerms",
    "existing_anti_affinity",
    "matches_all",
    "parse_error",
    "preferred_terms",
    "resolve",
    "scoring_terms",
]

_NO_TERMS = PodAffinity()


@dataclass(frozen=True, slots=True)
class OwnTerm:
    """A term of the pod that is being scheduled.

    Attributes:
        namespaces: names; None is every namespace.
        selector: None matches no pod.
        weight: of a preferred term, negative for anti-affinity; 0 for a required one.
    """

    topology_key: str
    namespaces: frozenset[str] | None
    selector: LabelSelector | None
    weight: int = 0

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod in that namespace with these labels is meant."""
        if self.selector is None:
            return False
        if self.namespaces is not None and namespace not in self.namespaces:
            return False
        return self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class OwnTerms:
    """The required terms of the pod that is being scheduled."""

    affinity: tuple[OwnTerm, ...]
    anti_affinity: tuple[OwnTerm, ...]

    @classmethod
    def of(cls, pod: Pod, namespaces: Informer) -> OwnTerms:
        """Of a pod; ``namespaces`` shows the Namespace objects."""
        return cls(
            tuple(resolve(t, pod.namespace, namespaces) for t in _affinity(pod).required),
            tuple(resolve(t, pod.namespace, namespaces) for t in _anti_affinity(pod).required),
        )


def resolve(
    term: PodAffinityTerm, owner_namespace: str, namespaces: Informer, weight: int = 0
) -> OwnTerm:
    """A term whose namespaces are names.

    kube-scheduler also evaluates the selector itself afterwards, against no labels at all. So one
    that consists of NotIn and DoesNotExist means every namespace, as ``{}`` does.
    """
    selected = term.namespace_selector
    names: frozenset[str] | None = term.namespaces_of(owner_namespace)
    if selected is not None:
        names = None if selected.matches({}) else term.namespaces | _named(selected, namespaces)
    return OwnTerm(term.topology_key, names, term.label_selector, weight)


def _named(selector: LabelSelector, namespaces: Informer) -> frozenset[str]:
    known: Iterable[Namespace] = namespaces.list()
    return frozenset(n.name for n in known if selector.matches(n.labels))


def preferred_terms(pod: Pod, namespaces: Informer) -> tuple[OwnTerm, ...]:
    """The preferred terms of the pod that is being scheduled, anti-affinity with its weight
    negated."""
    own = pod.namespace
    return (
        *(resolve(w.term, own, namespaces, w.weight) for w in _affinity(pod).preferred),
        *(resolve(w.term, own, namespaces, -w.weight) for w in _anti_affinity(pod).preferred),
    )


def matches_all(terms: Sequence[OwnTerm], pod: Pod) -> bool:
    """Whether the pod matches every term; no terms match nothing."""
    return bool(terms) and all(t.matches(pod.namespace, pod.labels) for t in terms)


def parse_error(pod: Pod) -> str:
    """Why terms of the pod do not parse; "" if all do."""
    groups = (
        ("requiredAffinityTerms", _affinity(pod).required),
        ("requiredAntiAffinityTerms", _anti_affinity(pod).required),
        ("preferredAffinityTerms", [w.term for w in _affinity(pod).preferred]),
        ("preferredAntiAffinityTerms", [w.term for w in _anti_affinity(pod).preferred]),
    )
    faults = [
        f"{group}: {problem}"
        for group, terms in groups
        if (problem := next((t.error for t in terms if t.error), ""))
    ]
    return faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]" if faults else ""


class ExistingTerm(NamedTuple):
    """A term of a pod on a node; equal for all pods that say the same.

    Attributes:
        namespaces: those it names, or its owner's if it says nothing about namespaces.
        namespace_selector: evaluated against the labels of the other pod's namespace.
        weight: of a preferred term, negative for anti-affinity.
        required: a required term; its weight is the plugin's argument.
    """

    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    selector: LabelSelector
    weight: int
    required: bool

    def matches(self, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
        """Whether ``pod``, in a namespace with those labels, is meant."""
        if pod.namespace not in self.namespaces:
            selected = self.namespace_selector
            if selected is None or not selected.matches(namespace_labels):
                return False
        return self.selector.matches(pod.labels)


def existing_anti_affinity(pod: Pod) -> Iterable[ExistingTerm]:
    """Required anti-affinity terms of a pod on a node."""
    return _existing(pod, ((t, 0) for t in _anti_affinity(pod).required), required=True)


def scoring_terms(pod: Pod) -> Iterable[ExistingTerm]:
    """Terms of a pod on a node that bear on scores: all but required anti-affinity."""
    affinity, anti = _affinity(pod), _anti_affinity(pod)
    yield from _existing(pod, ((t, 0) for t in affinity.required), required=True)
    yield from _existing(pod, ((w.term, w.weight) for w in affinity.preferred))
    yield from _existing(pod, ((w.term, -w.weight) for w in anti.preferred))


def _existing(
    pod: Pod, weighted: Iterable[tuple[PodAffinityTerm, int]], required: bool = False
) -> Iterable[ExistingTerm]:
    for term, weight in weighted:
        if term.label_selector is None:
            continue  # matches no pod
        yield ExistingTerm(
            term.topology_key,
            term.namespaces_of(pod.namespace),
            term.namespace_selector,
            term.label_selector,
            weight,
            required,
        )


def _affinity(pod: Pod) -> PodAffinity:
    return pod.affinity.pod_affinity or _NO_TERMS


def _anti_affinity(pod: Pod) -> PodAffinity:
    return pod.affinity.pod_anti_affinity or _NO_TERMS
