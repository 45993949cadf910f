"""Label and node selectors: operators, nil and empty, and what a parse error does."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.api import EVERYTHING, LabelSelector, NodeSelector, NodeSelectorTerm
from scheduler_core.api.reader import Reader
from scheduler_core.api.selectors import (
    Requirement,
    field_requirement,
    label_requirement,
    label_selector,
    node_requirement,
    node_selector,
)


@pytest.mark.parametrize(
    ("requirement", "value", "matches"),
    [
        pytest.param(("In", "a", "b"), "a", True, id="In: listed"),
        pytest.param(("In", "a", "b"), "c", False, id="In: not listed"),
        pytest.param(("In", "a"), None, False, id="In: absent"),
        pytest.param(("In", ""), "", True, id="In: empty value"),
        pytest.param(("NotIn", "a"), "a", False, id="NotIn: listed"),
        pytest.param(("NotIn", "a"), "b", True, id="NotIn: not listed"),
        pytest.param(("NotIn", "a"), None, True, id="NotIn: absent matches"),
        pytest.param(("Exists",), "", True, id="Exists: empty value"),
        pytest.param(("Exists",), None, False, id="Exists: absent"),
        pytest.param(("DoesNotExist",), "a", False, id="DoesNotExist: there"),
        pytest.param(("DoesNotExist",), None, True, id="DoesNotExist: absent matches"),
        pytest.param(("Gt", "5"), "6", True, id="Gt: greater"),
        pytest.param(("Gt", "5"), "5", False, id="Gt: equal"),
        pytest.param(("Gt", "5"), "10", True, id="Gt: compares numbers, not text"),
        pytest.param(("Gt", "5"), None, False, id="Gt: absent"),
        pytest.param(("Gt", "5"), "x", False, id="Gt: value is no integer"),
        pytest.param(("Gt", "5"), "6.5", False, id="Gt: value is a fraction"),
        pytest.param(("Gt", "5"), "9223372036854775808", False, id="Gt: value beyond 64 bits"),
        pytest.param(("Lt", "5"), "-7", True, id="Lt: negative"),
        pytest.param(("Lt", "5"), "5", False, id="Lt: equal"),
        pytest.param(("Lt", "5"), " 4", False, id="Lt: blank before the number"),
        pytest.param(("Lt", "5"), "1_0", False, id="Lt: underscore"),
    ],
)
def test_a_requirement_on_one_value(
    requirement: tuple[str, ...], value: str | None, matches: bool
) -> None:
    operator, *values = requirement
    parsed = node_requirement("key", operator, tuple(values))
    assert parsed.error == ""
    assert parsed.matches_value(value) is matches
    assert parsed.matches({} if value is None else {"key": value}) is matches


@pytest.mark.parametrize(
    ("parsed", "error"),
    [
        pytest.param(
            node_requirement("k", "Near", ("a",)),
            '"Near" is not a valid node selector operator',
            id="node: bad operator",
        ),
        pytest.param(
            label_requirement("k", "Gt", ("1",)),
            '"Gt" is not a valid label selector operator',
            id="label: Gt is for nodes only",
        ),
        pytest.param(
            node_requirement("k", "In", ()),
            "for 'in', 'notin' operators, values set can't be empty",
            id="In without values",
        ),
        pytest.param(
            node_requirement("k", "Exists", ("a",)),
            "values set must be empty for exists and does not exist",
            id="Exists with values",
        ),
        pytest.param(
            node_requirement("k", "Gt", ("1", "2")),
            "for 'Gt', 'Lt' operators, exactly one value is required",
            id="Gt with two values",
        ),
        pytest.param(
            node_requirement("k", "Lt", ("many",)),
            "for 'Gt', 'Lt' operators, the value must be an integer",
            id="Lt with a word",
        ),
        pytest.param(
            field_requirement("metadata.name", "In", ("a", "b")),
            "must have exactly one value",
            id="field: two names",
        ),
        pytest.param(
            field_requirement("metadata.name", "Exists", ()),
            '"Exists" is not a valid node field selector operator',
            id="field: bad operator",
        ),
    ],
)
def test_a_requirement_that_does_not_parse_matches_nothing(parsed: Requirement, error: str) -> None:
    assert parsed.error == error
    assert not any(map(parsed.matches_value, ("a", "1", "", None)))


def test_a_bad_key_does_not_parse() -> None:
    assert node_requirement("bad key", "Exists", ()).error.startswith('key "bad key": name part')
    assert node_requirement("k", "In", ("bad value!",)).error.startswith('value "bad value!": ')


def read(raw: dict[str, Any]) -> LabelSelector | None:
    return label_selector(Reader(raw), "selector")


def test_a_selector_that_is_absent_is_none_and_an_empty_one_matches_everything() -> None:
    assert read({}) is None
    assert read({"selector": None}) is None
    empty = read({"selector": {}})
    assert empty == EVERYTHING
    assert empty is not None
    assert empty.is_empty
    assert empty.matches({})
    assert empty.matches({"a": "b"})


def test_labels_and_expressions_are_anded() -> None:
    selector = read(
        {
            "selector": {
                "matchLabels": {"b": "2", "a": "1"},
                "matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["x"]}],
            }
        }
    )
    assert selector is not None
    assert selector.match_labels == (("a", "1"), ("b", "2"))
    assert [r.key for r in selector.match_expressions] == ["c"]
    assert selector.matches({"a": "1", "b": "2"})
    assert not selector.matches({"a": "1", "b": "2", "c": "x"})
    assert not selector.matches({"a": "1"})
    assert str(selector) == "a In [1], b In [2], c NotIn [x]"


def test_a_selector_with_one_bad_requirement_matches_nothing() -> None:
    selector = read({"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}})
    assert selector is not None
    assert selector.error == '"Near" is not a valid label selector operator'
    assert not selector.matches({})


def test_further_requirements_are_anded() -> None:
    selector = LabelSelector.from_labels({"app": "web"})
    narrowed = selector.with_requirements(label_requirement("v", "In", ("2",)))
    assert selector.matches({"app": "web", "v": "1"})
    assert not narrowed.matches({"app": "web", "v": "1"})
    assert narrowed.matches({"app": "web", "v": "2"})


ON_A = node_requirement("zone", "In", ("a",))
BAD = node_requirement("zone", "Gt", ("x",))
NAMED = field_requirement("metadata.name", "In", ("n1",))
NOT_NAMED = field_requirement("metadata.name", "NotIn", ("n1",))
TWO_NAMES = field_requirement("metadata.name", "In", ("n1", "n2"))


@pytest.mark.parametrize(
    ("terms", "matches"),
    [
        pytest.param([], False, id="no terms match no node"),
        pytest.param([NodeSelectorTerm()], False, id="an empty term matches nothing"),
        pytest.param([NodeSelectorTerm((ON_A,))], True, id="expression"),
        pytest.param([NodeSelectorTerm((), (NAMED,))], True, id="field"),
        pytest.param([NodeSelectorTerm((), (NOT_NAMED,))], False, id="field NotIn"),
        pytest.param([NodeSelectorTerm((ON_A,), (NOT_NAMED,))], False, id="ANDed"),
        pytest.param([NodeSelectorTerm(), NodeSelectorTerm((ON_A,))], True, id="terms are ORed"),
        pytest.param([NodeSelectorTerm((BAD,))], False, id="a parse error does not match"),
        pytest.param(
            [NodeSelectorTerm((BAD,)), NodeSelectorTerm((ON_A,))],
            True,
            id="a parse error leaves the other terms alone",
        ),
        pytest.param([NodeSelectorTerm((ON_A, BAD))], False, id="a parse error spoils its term"),
        pytest.param([NodeSelectorTerm((), (TWO_NAMES,))], False, id="two names match no node"),
    ],
)
def test_node_selector_terms(terms: list[NodeSelectorTerm], matches: bool) -> None:
    assert NodeSelector(tuple(terms)).matches({"zone": "a"}, "n1") is matches


@pytest.mark.parametrize(
    ("term", "names"),
    [
        pytest.param(NodeSelectorTerm((ON_A,)), None, id="no name asked for"),
        pytest.param(NodeSelectorTerm((), (NAMED,)), {"n1"}, id="one name"),
        pytest.param(NodeSelectorTerm((), (TWO_NAMES,)), {"n1", "n2"}, id="two names count"),
        pytest.param(NodeSelectorTerm((), (TWO_NAMES, NAMED)), {"n1"}, id="intersection"),
        pytest.param(NodeSelectorTerm((), (NOT_NAMED,)), None, id="NotIn does not restrict"),
    ],
)
def test_names_that_a_term_leaves(term: NodeSelectorTerm, names: set[str] | None) -> None:
    assert term.node_names() == names


def test_a_node_selector_is_read_from_json() -> None:
    raw = {
        "required": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [{"key": "gpus", "operator": "Gt", "values": ["2"]}],
                    "matchFields": [
                        {"key": "metadata.name", "operator": "In", "values": ["n1"]},
                    ],
                }
            ]
        }
    }
    selector = node_selector(Reader(raw), "required")
    assert selector is not None
    assert selector.matches({"gpus": "8"}, "n1")
    assert not selector.matches({"gpus": "8"}, "n2")
    assert not selector.matches({"gpus": "2"}, "n1")
    assert hash(selector) == hash(node_selector(Reader(raw), "required"))
