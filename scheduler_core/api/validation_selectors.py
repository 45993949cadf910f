"""Faults of labels, label selectors and node selectors, in kube-apiserver's wording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .errors import FieldError, forbidden, invalid, required
from .selectors import (
    FIELD_NAME,
    LABEL_OPERATORS,
    NODE_OPERATORS,
    LabelSelector,
    NodeSelectorTerm,
    Requirement,
)
from .syntax import check_label_key, check_label_value

__all__ = [
    "label_faults",
    "label_selector_faults",
    "node_selector_term_faults",
    "weight_faults",
]


def label_faults(path: str, labels: Mapping[str, str]) -> Iterator[FieldError]:
    """Keys and values of a set of labels."""
    for key, value in labels.items():
        problem = check_label_key(key)
        if problem:
            yield path, invalid(key, problem)
        problem = check_label_value(value)
        if problem:
            yield path, invalid(value, problem)


def label_selector_faults(path: str, selector: LabelSelector | None) -> Iterator[FieldError]:
    """matchLabels and matchExpressions; an absent selector has no faults."""
    if selector is None:
        return
    yield from label_faults(f"{path}.matchLabels", dict(selector.match_labels))
    for index, requirement in enumerate(selector.match_expressions):
        at = f"{path}.matchExpressions[{index}]"
        if requirement.operator not in LABEL_OPERATORS:
            detail = "not a valid selector operator"
            yield f"{at}.operator", invalid(requirement.operator, detail)
        else:
            yield from _number_of_values(at, requirement)
        yield from _key_and_values(at, requirement)


def node_selector_term_faults(path: str, term: NodeSelectorTerm) -> Iterator[FieldError]:
    """matchExpressions and matchFields of one term."""
    for index, requirement in enumerate(term.match_expressions):
        at = f"{path}.matchExpressions[{index}]"
        if requirement.operator not in NODE_OPERATORS:
            detail = "not a valid selector operator"
            yield f"{at}.operator", invalid(requirement.operator, detail)
        else:
            yield from _number_of_values(at, requirement)
        yield from _key_and_values(at, requirement)
    for index, requirement in enumerate(term.match_fields):
        yield from _field_faults(f"{path}.matchFields[{index}]", requirement)


def weight_faults(path: str, weight: int) -> Iterator[FieldError]:
    """The weight of a preferred term."""
    if not 1 <= weight <= 100:
        yield f"{path}.weight", invalid(weight, "must be in the range 1-100")


def _number_of_values(at: str, requirement: Requirement) -> Iterator[FieldError]:
    operator, values = requirement.operator, requirement.values
    if operator in ("In", "NotIn") and not values:
        rule = "must be specified when `operator` is 'In' or 'NotIn'"
        yield f"{at}.values", required(rule)
    elif operator in ("Exists", "DoesNotExist") and values:
        rule = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield f"{at}.values", forbidden(rule)
    elif operator in ("Gt", "Lt") and len(values) != 1:
        rule = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        yield f"{at}.values", required(rule)


def _key_and_values(at: str, requirement: Requirement) -> Iterator[FieldError]:
    problem = check_label_key(requirement.key)
    if problem:
        yield f"{at}.key", invalid(requirement.key, problem)
    for index, value in enumerate(requirement.values):
        problem = check_label_value(value)
        if problem:
            yield f"{at}.values[{index}]", invalid(value, problem)


def _field_faults(at: str, requirement: Requirement) -> Iterator[FieldError]:
    if requirement.operator not in ("In", "NotIn"):
        yield f"{at}.operator", invalid(requirement.operator, "not a valid selector operator")
    elif len(requirement.values) != 1:
        rule = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield f"{at}.values", required(rule)
    if requirement.key != FIELD_NAME:
        yield f"{at}.key", invalid(requirement.key, "not a valid field selector key")
