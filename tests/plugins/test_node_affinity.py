"""NodeAffinity, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.errors import PluginConfigError
from scheduler_core.framework.events import NODE_ADD, ActionType, ClusterEvent, EventResource
from scheduler_core.framework.status import SKIP, SUCCESS, Code, unresolvable
from scheduler_core.framework.types import PreFilterResult
from scheduler_core.plugins.node_affinity import NodeAffinity
from scheduler_core.testing.builders import make_node, make_pod
from tests.plugins.support import FakeHandle, filter_both, hint, score_both

NOT_SELECTED = unresolvable("node(s) didn't match Pod's node affinity/selector")
NOT_ENFORCED = unresolvable("node(s) didn't match scheduler-enforced node affinity")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
LABEL_CHANGED = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)

NODES = [
    make_node("n0").label(disk="ssd", cpus="16").obj(),
    make_node("n1").label(disk="hdd", cpus="many").obj(),
    make_node("n2").obj(),
]


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def term(*expressions: dict[str, Any], fields: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"matchExpressions": list(expressions), "matchFields": list(fields)}


def requiring(*terms: dict[str, Any]) -> Pod:
    selector = {"nodeSelectorTerms": list(terms)}
    return make_pod("p").affinity({"nodeAffinity": {REQUIRED: selector}}).obj()


def preferring(*weighted: tuple[int, dict[str, Any]]) -> Pod:
    entries = [{"weight": weight, "preference": preference} for weight, preference in weighted]
    return make_pod("p").affinity({"nodeAffinity": {PREFERRED: entries}}).obj()


def name_in(*names: str) -> dict[str, Any]:
    return term(fields=(expression("metadata.name", "In", *names),))


def plugin(**args: Any) -> NodeAffinity:
    return NodeAffinity(args, FakeHandle())


@pytest.mark.parametrize(
    "pod, fitting",
    [
        pytest.param(make_pod("p").node_selector(disk="ssd").obj(), "n0", id="node-selector"),
        pytest.param(make_pod("p").node_selector().obj(), "n0 n1 n2", id="empty-node-selector"),
        pytest.param(requiring(term(expression("disk", "In", "ssd", "hdd"))), "n0 n1", id="in"),
        pytest.param(
            requiring(term(expression("disk", "In", "ssd", *"abcdefgh"))), "n0", id="in-many"
        ),
        pytest.param(
            requiring(term(expression("disk", "NotIn", "ssd"))), "n1 n2", id="not-in-takes-absent"
        ),
        pytest.param(requiring(term(expression("disk", "Exists"))), "n0 n1", id="exists"),
        pytest.param(requiring(term(expression("disk", "DoesNotExist"))), "n2", id="absent"),
        pytest.param(requiring(term(expression("cpus", "Gt", "8"))), "n0", id="gt-needs-a-number"),
        pytest.param(requiring(term(expression("cpus", "Lt", "8"))), "", id="lt"),
        pytest.param(requiring(term(expression("cpus", "Gt", "x"))), "", id="gt-of-no-number"),
        pytest.param(requiring(term(expression("disk", "Bad", "ssd"))), "", id="unknown-operator"),
        pytest.param(
            requiring(term(expression("disk", "In", "ssd"), expression("cpus", "In", "many"))),
            "",
            id="requirements-are-anded",
        ),
        pytest.param(
            requiring(term(expression("disk", "In", "ssd")), term(expression("disk", "In", "hdd"))),
            "n0 n1",
            id="terms-are-ored",
        ),
        pytest.param(requiring(term()), "", id="an-empty-term-matches-nothing"),
        pytest.param(requiring(), "", id="no-terms-match-nothing"),
        pytest.param(requiring(name_in("n1")), "n1", id="by-name"),
        pytest.param(requiring(name_in("n0", "n1")), "", id="two-names-in-one-list-do-not-parse"),
        pytest.param(requiring(name_in("n0"), name_in("n1")), "n0 n1", id="two-names-in-two-terms"),
        pytest.param(
            requiring(term(fields=(expression("metadata.name", "NotIn", "n0"),))),
            "n1 n2",
            id="not-that-name",
        ),
        pytest.param(
            make_pod("p").node_selector(disk="ssd").node_affinity_in("cpus", "many").obj(),
            "",
            id="selector-and-affinity",
        ),
    ],
)
def test_filter(pod: Pod, fitting: str) -> None:
    statuses = filter_both(plugin(), pod, FakeHandle(NODES).nodes)
    assert [n.name for n, s in zip(NODES, statuses, strict=True) if s == SUCCESS] == fitting.split()
    assert {s for s in statuses if s != SUCCESS} <= {NOT_SELECTED}


def test_added_affinity_is_looked_at_first() -> None:
    enforcing = plugin(
        addedAffinity={
            REQUIRED: {"nodeSelectorTerms": [term(expression("disk", "In", "ssd", "hdd"))]}
        }
    )
    pod = make_pod("p").node_selector(disk="ssd").obj()
    statuses = filter_both(enforcing, pod, FakeHandle(NODES).nodes)
    assert statuses == [SUCCESS, NOT_SELECTED, NOT_ENFORCED]


@pytest.mark.parametrize(
    "pod, expected",
    [
        pytest.param(make_pod("p").obj(), (None, SKIP), id="nothing-to-match"),
        pytest.param(make_pod("p").node_selector().obj(), (None, SUCCESS), id="empty-selector"),
        pytest.param(preferring(), (None, SKIP), id="only-preferred"),
        pytest.param(requiring(), (None, SUCCESS), id="no-terms"),
        pytest.param(
            requiring(name_in("n0"), name_in("n1", "n2")),
            (PreFilterResult(frozenset({"n0", "n1", "n2"})), SUCCESS),
            id="union-over-terms",
        ),
        pytest.param(
            requiring(name_in("n0"), term(expression("disk", "Exists"))),
            (None, SUCCESS),
            id="a-term-without-names-lifts-the-restriction",
        ),
        pytest.param(
            requiring(
                term(
                    fields=(
                        expression("metadata.name", "In", "n0", "n1"),
                        expression("metadata.name", "In", "n1", "n2"),
                    )
                )
            ),
            (PreFilterResult(frozenset({"n1"})), SUCCESS),
            id="intersection-inside-a-term",
        ),
        pytest.param(
            requiring(
                term(
                    fields=(
                        expression("metadata.name", "In", "n0"),
                        expression("metadata.name", "In", "n1"),
                    )
                )
            ),
            (None, unresolvable("pod affinity terms conflict")),
            id="conflict",
        ),
    ],
)
def test_pre_filter(pod: Pod, expected: object) -> None:
    assert plugin().pre_filter(CycleState(), pod, FakeHandle(NODES).nodes) == expected


def test_added_required_affinity_is_never_skipped() -> None:
    enforcing = plugin(addedAffinity={REQUIRED: {"nodeSelectorTerms": [term()]}})
    status = enforcing.pre_filter(CycleState(), make_pod("p").obj(), FakeHandle(NODES).nodes)[1]
    assert status == SUCCESS


def test_score_sums_the_weights_of_matching_terms() -> None:
    ssd, any_disk = term(expression("disk", "In", "ssd")), term(expression("disk", "Exists"))
    scoring = plugin(addedAffinity={PREFERRED: [{"weight": 10, "preference": any_disk}]})
    pod = preferring((5, ssd), (0, any_disk), (90, term()))
    nodes, state = FakeHandle(NODES).nodes, CycleState()
    assert scoring.pre_score(state, pod, nodes) == SUCCESS
    assert score_both(scoring, pod, nodes, state) == [15, 10, 0]
    raw = scoring.score_nodes(state, pod, nodes)
    assert scoring.normalize_score(state, pod, nodes, raw).tolist() == [100, 66, 0]


@pytest.mark.parametrize(
    "pod, code",
    [
        pytest.param(make_pod("p").obj(), Code.SKIP, id="no-preferred-list"),
        pytest.param(preferring(), Code.SUCCESS, id="an-empty-list-is-no-skip"),
        pytest.param(
            preferring((1, term(expression("disk", "Gt", "x")))), Code.ERROR, id="does-not-parse"
        ),
    ],
)
def test_pre_score(pod: Pod, code: Code) -> None:
    assert plugin().pre_score(CycleState(), pod, FakeHandle(NODES).nodes).code is code


def test_added_affinity_that_does_not_parse_is_refused() -> None:
    bad = [term(expression("disk", "Exists")), term(expression("disk", "Bad"))]
    with pytest.raises(PluginConfigError) as raised:
        plugin(addedAffinity={REQUIRED: {"nodeSelectorTerms": bad}})
    path = f"addedAffinity.{REQUIRED}.nodeSelectorTerms[1]"
    assert str(raised.value) == f'{path}: "Bad" is not a valid node selector operator'


def test_hints() -> None:
    pod = make_pod("p").node_selector(disk="ssd").obj()
    assert hint(plugin(), NODE_ADD, pod, None, NODES[0]) == "Queue"
    assert hint(plugin(), NODE_ADD, pod, None, NODES[1]) == "Skip"
    assert hint(plugin(), LABEL_CHANGED, pod, NODES[1], NODES[0]) == "Queue"
    assert hint(plugin(), LABEL_CHANGED, pod, NODES[0], NODES[0]) == "Skip"
    enforcing = plugin(addedAffinity={REQUIRED: {"nodeSelectorTerms": [term()]}})
    assert hint(enforcing, NODE_ADD, pod, None, NODES[0]) == "Skip"
