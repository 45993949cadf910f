"""Node selectors over all nodes at once: one comparison per requirement on interned label codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from scheduler_core.api import NodeSelector, NodeSelectorTerm, Pod, Requirement
from scheduler_core.api.selectors import FIELD_NAME
from scheduler_core.framework.nodes import Bool, NodeInfos

__all__ = ["labels_mask", "pod_selects_mask", "selector_mask", "term_mask"]

#: Above this many values one lookup in a set is quicker than a comparison per value.
_MANY_VALUES: Final = 8


def labels_mask(nodes: NodeInfos, labels: Mapping[str, str]) -> Bool:
    """bool, shape (n,): nodes that carry all ``labels`` (a pod's spec.nodeSelector)."""
    mask = np.ones(len(nodes), dtype=bool)
    for key, value in labels.items():
        mask &= _has_any(nodes, key, (value,))
    return mask


def term_mask(nodes: NodeInfos, term: NodeSelectorTerm) -> Bool:
    """bool, shape (n,): nodes that one term selects. An empty term, and one that does not parse,
    selects none."""
    if term.is_empty or term.error:
        return np.zeros(len(nodes), dtype=bool)
    mask = np.ones(len(nodes), dtype=bool)
    for requirement in term.match_expressions:
        mask &= _requirement_mask(nodes, requirement)
    for requirement in term.match_fields:
        mask &= _field_mask(nodes, requirement)
    return mask


def selector_mask(nodes: NodeInfos, selector: NodeSelector) -> Bool:
    """bool, shape (n,): nodes that any term selects."""
    mask = np.zeros(len(nodes), dtype=bool)
    for term in selector.terms:
        mask |= term_mask(nodes, term)
    return mask


def pod_selects_mask(nodes: NodeInfos, pod: Pod) -> Bool:
    """bool, shape (n,): nodes that spec.nodeSelector and the required node affinity admit."""
    mask = labels_mask(nodes, pod.node_selector or {})
    affinity = pod.affinity.node_affinity
    if affinity is not None and affinity.required is not None:
        mask &= selector_mask(nodes, affinity.required)
    return mask


def _requirement_mask(nodes: NodeInfos, requirement: Requirement) -> Bool:
    operator = requirement.operator
    if operator == "In":
        return _has_any(nodes, requirement.key, requirement.values)
    if operator == "NotIn":
        return ~_has_any(nodes, requirement.key, requirement.values)
    if operator == "Exists":
        return nodes.label(requirement.key) >= 0
    if operator == "DoesNotExist":
        return nodes.label(requirement.key) < 0
    return nodes.matches(requirement)  # Gt, Lt: asked once per distinct value


def _has_any(nodes: NodeInfos, key: str, values: tuple[str, ...]) -> Bool:
    codes = nodes.label(key)
    column = nodes.table.label_column(key)
    wanted = [column.code_of(value) for value in values]
    if len(wanted) > _MANY_VALUES:
        return np.isin(codes, np.array(wanted, dtype=codes.dtype))
    mask = np.zeros(len(nodes), dtype=bool)
    for code in wanted:
        mask |= codes == code
    return mask


def _field_mask(nodes: NodeInfos, requirement: Requirement) -> Bool:
    if requirement.key != FIELD_NAME:
        # A field that is not known reads as empty text on every node.
        return np.full(len(nodes), requirement.matches_value(""), dtype=bool)
    named = np.zeros(len(nodes), dtype=bool)
    for name in requirement.values:
        row = nodes.index_of(name)
        if row >= 0:
            named[row] = True
    return named if requirement.operator == "In" else ~named
