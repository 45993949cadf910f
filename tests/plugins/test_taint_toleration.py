"""TaintToleration, rule by rule."""

from __future__ import annotations

import pytest

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState, StateNotFound
from scheduler_core.framework.events import NODE_ADD, ActionType, ClusterEvent, EventResource
from scheduler_core.framework.status import SUCCESS, unresolvable
from scheduler_core.plugins.taint_toleration import TaintToleration
from scheduler_core.testing.builders import make_node, make_pod
from tests.plugins.support import FakeHandle, filter_both, hint, score_both

PLUGIN = TaintToleration({}, FakeHandle())
REJECTED = unresolvable("node(s) had untolerated taint(s)")
TAINT_CHANGED = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)
TOLERATION_CHANGED = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_TOLERATION)


@pytest.mark.parametrize(
    "effect, pod, expected",
    [
        pytest.param("NoSchedule", make_pod("p").obj(), REJECTED, id="no-schedule"),
        pytest.param("NoExecute", make_pod("p").obj(), REJECTED, id="no-execute"),
        pytest.param("PreferNoSchedule", make_pod("p").obj(), SUCCESS, id="only-preferred"),
        pytest.param(
            "NoSchedule", make_pod("p").toleration("gpu", "a100").obj(), SUCCESS, id="equal-value"
        ),
        pytest.param(
            "NoSchedule", make_pod("p").toleration("gpu", "t4").obj(), REJECTED, id="other-value"
        ),
        pytest.param("NoSchedule", make_pod("p").toleration("gpu").obj(), SUCCESS, id="exists"),
        pytest.param(
            "NoSchedule",
            make_pod("p").toleration("gpu", effect="NoExecute").obj(),
            REJECTED,
            id="other-effect",
        ),
        pytest.param(
            "NoSchedule",
            make_pod("p").toleration("gpu", "1", operator="Gt").obj(),
            REJECTED,
            id="gt-is-gated",
        ),
    ],
)
def test_filter(effect: str, pod: Pod, expected: object) -> None:
    nodes = FakeHandle([make_node("n").taint("gpu", "a100", effect).obj()]).nodes
    assert filter_both(PLUGIN, pod, nodes) == [expected]


def test_score_counts_untolerated_soft_taints() -> None:
    soft = "PreferNoSchedule"
    nodes = FakeHandle(
        [
            make_node("clean").obj(),
            make_node("one").taint("a", effect=soft).obj(),
            make_node("two").taint("a", effect=soft).taint("b", effect=soft).obj(),
            make_node("hard").taint("a").obj(),
        ]
    ).nodes
    # A toleration for another effect does not help against a soft taint.
    pod = make_pod("p").toleration("b", effect="NoSchedule").obj()
    state = CycleState()
    assert PLUGIN.pre_score(state, pod, nodes) == SUCCESS
    raw = score_both(PLUGIN, pod, nodes, state)
    assert raw == [0, 1, 2, 0]
    normalized = PLUGIN.normalize_score(state, pod, nodes, PLUGIN.score_nodes(state, pod, nodes))
    assert normalized.tolist() == [100, 50, 0, 100]


def test_score_without_pre_score_is_an_error() -> None:
    nodes = FakeHandle([make_node("n").obj()]).nodes
    with pytest.raises(StateNotFound) as raised:
        PLUGIN.score_nodes(CycleState(), make_pod("p").obj(), nodes)
    text = 'failed to read "PreScoreTaintToleration" from cycleState: not found'
    assert str(raised.value) == text


def test_hints() -> None:
    pod = make_pod("p").toleration("a").obj()
    clean, mine = make_node("n").obj(), make_node("n").taint("a").obj()
    theirs = make_node("n").taint("b").obj()
    assert hint(PLUGIN, NODE_ADD, pod, None, mine) == "Queue"
    assert hint(PLUGIN, NODE_ADD, pod, None, theirs) == "Skip"
    assert hint(PLUGIN, TAINT_CHANGED, pod, theirs, clean) == "Queue"
    assert hint(PLUGIN, TAINT_CHANGED, pod, clean, mine) == "Skip"
    assert hint(PLUGIN, TOLERATION_CHANGED, pod, pod, pod) == "Queue"
    assert hint(PLUGIN, TOLERATION_CHANGED, pod, pod, make_pod("other").obj()) == "Skip"
