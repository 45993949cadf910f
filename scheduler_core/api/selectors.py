"""Label selectors and node selectors, and what they match.

One `Requirement` looks at one value, so a caller that keeps distinct values in a column can ask
`matches_value` once per distinct value. Rules: kube-scheduler 1.36 with apimachinery's label
requirements. Objects are hashable and can serve as cache keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from .errors import show
from .reader import Reader
from .syntax import check_label_key, check_label_value, parse_int64

__all__ = [
    "EVERYTHING",
    "FIELD_NAME",
    "LABEL_OPERATORS",
    "NODE_OPERATORS",
    "LabelSelector",
    "NodeSelector",
    "NodeSelectorTerm",
    "PreferredSchedulingTerm",
    "Requirement",
    "field_requirement",
    "label_requirement",
    "label_selector",
    "node_requirement",
    "node_selector",
    "node_selector_term",
]

LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
NODE_OPERATORS: Final = (*LABEL_OPERATORS, "Gt", "Lt")

#: the only field that matchFields knows
FIELD_NAME: Final = "metadata.name"


@dataclass(frozen=True, slots=True)
class Requirement:
    """`key operator values` on labels (or, in matchFields, on the node's name).

    Attributes:
        error: why it does not parse ("" if it does). Such a requirement matches nothing, and a
            node selector term that holds one matches nothing.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()
    error: str = field(default="", compare=False)
    _bound: int | None = field(default=None, compare=False, repr=False)

    def matches_value(self, value: str | None) -> bool:
        """Whether a label of this value matches; None stands for "the key is absent"."""
        if self.error:
            return False
        operator = self.operator
        if operator == "In":
            return value is not None and value in self.values
        if operator == "NotIn":
            return value is None or value not in self.values
        if operator == "Exists":
            return value is not None
        if operator == "DoesNotExist":
            return value is None
        return self._compares(value)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether a set of labels matches."""
        return self.matches_value(labels.get(self.key))

    def _compares(self, value: str | None) -> bool:
        number = None if value is None else parse_int64(value)
        if number is None or self._bound is None:
            return False
        return number > self._bound if self.operator == "Gt" else number < self._bound

    def __str__(self) -> str:
        if self.operator in ("Exists", "DoesNotExist"):
            return f"{self.key} {self.operator}"
        return f"{self.key} {self.operator} [{', '.join(self.values)}]"


def label_requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """A requirement of a label selector (In, NotIn, Exists, DoesNotExist)."""
    if operator not in LABEL_OPERATORS:
        error = f"{show(operator)} is not a valid label selector operator"
        return Requirement(key, operator, values, error)
    return Requirement(key, operator, values, _label_fault(key, operator, values))


def node_requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """A requirement of a node selector's matchExpressions (also Gt and Lt)."""
    if operator not in NODE_OPERATORS:
        error = f"{show(operator)} is not a valid node selector operator"
        return Requirement(key, operator, values, error)
    error = _label_fault(key, operator, values)
    bound = parse_int64(values[0]) if operator in ("Gt", "Lt") and len(values) == 1 else None
    return Requirement(key, operator, values, error, bound)


def field_requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """A requirement of matchFields: metadata.name, In or NotIn, exactly one value."""
    if operator not in ("In", "NotIn"):
        error = f"{show(operator)} is not a valid node field selector operator"
    elif len(values) != 1:
        error = "must have exactly one value"
    else:
        error = ""
    return Requirement(key, operator, values, error)


def _label_fault(key: str, operator: str, values: tuple[str, ...]) -> str:
    if operator in ("In", "NotIn") and not values:
        return "for 'in', 'notin' operators, values set can't be empty"
    if operator in ("Exists", "DoesNotExist") and values:
        return "values set must be empty for exists and does not exist"
    if operator in ("Gt", "Lt"):
        if len(values) != 1:
            return "for 'Gt', 'Lt' operators, exactly one value is required"
        if parse_int64(values[0]) is None:
            return "for 'Gt', 'Lt' operators, the value must be an integer"
    problem = check_label_key(key)
    if problem:
        return f"key {show(key)}: {problem}"
    for value in values:
        problem = check_label_value(value)
        if problem:
            return f"value {show(value)}: {problem}"
    return ""


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements, ANDed; without any it matches everything.

    A selector that is absent (nil) is None in this package, and matches nothing.

    Attributes:
        requirements: matchLabels as In requirements, sorted by key, then matchExpressions.
        labels: how many of them come from matchLabels.
    """

    requirements: tuple[Requirement, ...] = ()
    labels: int = field(default=0, compare=False)

    @property
    def match_labels(self) -> tuple[tuple[str, str], ...]:
        """(key, value) of matchLabels."""
        return tuple((r.key, r.values[0]) for r in self.requirements[: self.labels])

    @property
    def match_expressions(self) -> tuple[Requirement, ...]:
        return self.requirements[self.labels :]

    @property
    def is_empty(self) -> bool:
        """Whether it is `{}`."""
        return not self.requirements

    @property
    def error(self) -> str:
        """Why it does not parse ("" if it does); such a selector matches nothing."""
        return next((r.error for r in self.requirements if r.error), "")

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        # A requirement that does not parse matches nothing, so it needs no check of its own.
        return all(r.matches_value(labels.get(r.key)) for r in self.requirements)

    def with_requirements(self, *more: Requirement) -> LabelSelector:
        """This selector AND `more` (matchLabelKeys, deduced selectors)."""
        return LabelSelector(self.requirements + more, self.labels)

    def __str__(self) -> str:
        return ", ".join(map(str, self.requirements)) or "everything"

    @classmethod
    def from_labels(cls, labels: Mapping[str, str]) -> LabelSelector:
        """Selects objects that carry all `labels` (a Service's selector)."""
        requirements = (label_requirement(k, "In", (v,)) for k, v in sorted(labels.items()))
        return cls(tuple(requirements), len(labels))


#: the selector `{}`
EVERYTHING: Final = LabelSelector()


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """Requirements on a node's labels and fields, ANDed; an empty term matches nothing."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.match_expressions and not self.match_fields

    @property
    def error(self) -> str:
        """Why it does not parse ("" if it does); such a term matches nothing."""
        return next((r.error for r in self.match_expressions + self.match_fields if r.error), "")

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether a node with these labels and this name is selected."""
        if self.is_empty:
            return False
        if not all(r.matches_value(labels.get(r.key)) for r in self.match_expressions):
            return False
        return all(_field_matches(r, name) for r in self.match_fields)

    def node_names(self) -> frozenset[str] | None:
        """The names that metadata.name In requirements leave, or None if there is none.

        Several values in one list count here although they do not parse for `matches`:
        kube-scheduler's PreFilter takes them (NodeAffinity).
        """
        names: frozenset[str] | None = None
        for requirement in self.match_fields:
            if requirement.key == FIELD_NAME and requirement.operator == "In":
                found = frozenset(requirement.values)
                names = found if names is None else names & found
        return names


def _field_matches(requirement: Requirement, name: str) -> bool:
    # A field that is not known reads as empty text, not as an absent key.
    return requirement.matches_value(name if requirement.key == FIELD_NAME else "")


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Terms, ORed; without terms it matches no node."""

    terms: tuple[NodeSelectorTerm, ...] = ()

    @property
    def error(self) -> str:
        """Why its first bad term does not parse ("" if all do); the others still count."""
        return next((t.error for t in self.terms if t.error), "")

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether a node with these labels and this name is selected."""
        return any(term.matches(labels, name) for term in self.terms)


@dataclass(frozen=True, slots=True)
class PreferredSchedulingTerm:
    """A node selector term and its weight."""

    weight: int
    preference: NodeSelectorTerm


def label_selector(reader: Reader, key: str) -> LabelSelector | None:
    """The LabelSelector at `key`; None (matches nothing) if it is not there."""
    found = reader.optional_child(key)
    if found is None:
        return None
    labels = found.text_map("matchLabels")
    requirements = [label_requirement(k, "In", (v,)) for k, v in sorted(labels.items())]
    requirements.extend(
        label_requirement(entry.text("key"), entry.text("operator"), entry.texts("values"))
        for entry in found.items("matchExpressions")
    )
    return LabelSelector(tuple(requirements), len(labels)) if requirements else EVERYTHING


def node_selector_term(reader: Reader) -> NodeSelectorTerm:
    """The NodeSelectorTerm that `reader` stands at."""
    return NodeSelectorTerm(
        tuple(
            node_requirement(e.text("key"), e.text("operator"), e.texts("values"))
            for e in reader.items("matchExpressions")
        ),
        tuple(
            field_requirement(e.text("key"), e.text("operator"), e.texts("values"))
            for e in reader.items("matchFields")
        ),
    )


def node_selector(reader: Reader, key: str) -> NodeSelector | None:
    """The NodeSelector at `key`; None if it is not there."""
    found = reader.optional_child(key)
    if found is None:
        return None
    return NodeSelector(tuple(map(node_selector_term, found.items("nodeSelectorTerms"))))
