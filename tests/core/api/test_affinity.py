"""Which pods an affinity term speaks of."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.api import PodAffinityTerm
from scheduler_core.api.reader import Reader

SELECTOR = {"matchLabels": {"app": "web"}}
PROD = {"matchLabels": {"env": "prod"}}
NOT_PROD = {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]}


@pytest.mark.parametrize(
    ("term", "namespace", "namespace_labels", "matches"),
    [
        pytest.param({"labelSelector": SELECTOR}, "own", {}, True, id="own namespace"),
        pytest.param({"labelSelector": SELECTOR}, "other", {}, False, id="other namespace"),
        pytest.param({}, "own", {}, False, id="no label selector matches nothing"),
        pytest.param({"labelSelector": {}}, "own", {}, True, id="empty label selector"),
        pytest.param(
            {"labelSelector": SELECTOR, "namespaces": ["other"]}, "other", {}, True, id="listed"
        ),
        pytest.param(
            {"labelSelector": SELECTOR, "namespaces": ["other"]},
            "own",
            {},
            False,
            id="listing others leaves the own out",
        ),
        pytest.param(
            {"labelSelector": SELECTOR, "namespaces": [], "namespaceSelector": PROD},
            "own",
            {},
            False,
            id="a selector leaves the own out",
        ),
        pytest.param(
            {"labelSelector": SELECTOR, "namespaceSelector": PROD},
            "other",
            {"env": "prod"},
            True,
            id="selected",
        ),
        pytest.param(
            {"labelSelector": SELECTOR, "namespaceSelector": {}},
            "other",
            {},
            True,
            id="empty selector: every namespace",
        ),
        pytest.param(
            {"labelSelector": SELECTOR, "namespaceSelector": NOT_PROD},
            "other",
            {},
            True,
            id="NotIn matches a namespace without labels",
        ),
        pytest.param(
            {"labelSelector": SELECTOR, "namespaces": ["a"], "namespaceSelector": PROD},
            "a",
            {},
            True,
            id="listed or selected",
        ),
    ],
)
def test_a_term_matches(
    term: dict[str, Any], namespace: str, namespace_labels: dict[str, str], matches: bool
) -> None:
    parsed = PodAffinityTerm.read(Reader({"topologyKey": "zone", **term}))
    assert parsed.error == ""
    assert parsed.matches("own", namespace, {"app": "web"}, namespace_labels) is matches
    assert (
        not parsed.matches("own", namespace, {"app": "x"}, namespace_labels)
        or not term["labelSelector"]
    )


def test_a_term_that_does_not_parse_says_why_and_matches_nothing() -> None:
    selector = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    parsed = PodAffinityTerm.read(Reader({"topologyKey": "z", "labelSelector": selector}))
    assert parsed.error == '"Near" is not a valid label selector operator'
    assert not parsed.matches("own", "own", {})
