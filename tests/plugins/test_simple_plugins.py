"""The plugins that take one screen: gates, sort, cordon, name, binder; and the normalisation."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import (
    NODE_ADD,
    NODE_DELETE,
    ActionType,
    ClusterEvent,
    EventResource,
)
from scheduler_core.framework.status import SUCCESS, Code, error, unresolvable
from scheduler_core.framework.types import QueuedPodInfo
from scheduler_core.plugins.default_binder import DefaultBinder
from scheduler_core.plugins.helpers.normalize import default_normalize
from scheduler_core.plugins.node_name import NodeName
from scheduler_core.plugins.node_unschedulable import NodeUnschedulable
from scheduler_core.plugins.priority_sort import PrioritySort
from scheduler_core.plugins.scheduling_gates import SchedulingGates
from scheduler_core.ports import Conflict
from scheduler_core.testing.builders import make_node, make_pod
from tests.plugins.support import FakeHandle, filter_both, hint

TAINT_CHANGED = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)
TOLERATION_CHANGED = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_TOLERATION)
GATES_GONE = ClusterEvent(
    EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
)


class TestSchedulingGates:
    plugin = SchedulingGates({}, FakeHandle())

    def test_a_pod_without_gates_may_be_queued(self) -> None:
        assert self.plugin.pre_enqueue(make_pod("web").obj()) == SUCCESS

    def test_a_gated_pod_is_told_its_gates(self) -> None:
        status = self.plugin.pre_enqueue(make_pod("web").gate("a.b/quota", "a.b/image").obj())
        assert status == unresolvable("waiting for scheduling gates: [a.b/quota a.b/image]")

    def test_only_its_own_last_gate_wakes_a_pod(self) -> None:
        own, other = make_pod("web").gate("g").obj(), make_pod("other").obj()
        assert hint(self.plugin, GATES_GONE, own, own, make_pod("web").obj()) == "Queue"
        assert hint(self.plugin, GATES_GONE, own, other, other) == "Skip"


class TestPrioritySort:
    plugin = PrioritySort({}, FakeHandle())

    @pytest.mark.parametrize(
        "a, b, first",
        [
            pytest.param((5, 9.0), (1, 1.0), "a", id="higher-priority-first"),
            pytest.param((1, 1.0), (1, 2.0), "a", id="equal-priority-earlier-entry-first"),
            pytest.param((-1, 1.0), (0, 9.0), "b", id="negative-priority-last"),
            pytest.param((0, 3.0), (0, 3.0), "", id="equal-in-all"),
        ],
    )
    def test_order(self, a: tuple[int, float], b: tuple[int, float], first: str) -> None:
        one, two = self.queued("one", *a), self.queued("two", *b)
        assert self.plugin.less(one, two) is (first == "a")
        assert self.plugin.less(two, one) is (first == "b")

    @staticmethod
    def queued(name: str, priority: int, timestamp: float) -> QueuedPodInfo:
        return QueuedPodInfo(make_pod(name).priority(priority).obj(), timestamp)


class TestNodeUnschedulable:
    plugin = NodeUnschedulable({}, FakeHandle())
    rejected = unresolvable("node(s) were unschedulable")

    @pytest.mark.parametrize(
        "pod, expected",
        [
            pytest.param(make_pod("web").obj(), rejected, id="cordoned"),
            pytest.param(
                make_pod("web").toleration("node.kubernetes.io/unschedulable").obj(),
                SUCCESS,
                id="tolerated-by-key",
            ),
            pytest.param(make_pod("web").toleration().obj(), SUCCESS, id="tolerates-everything"),
            pytest.param(
                make_pod("web")
                .toleration("node.kubernetes.io/unschedulable", effect="NoExecute")
                .obj(),
                rejected,
                id="tolerates-another-effect",
            ),
        ],
    )
    def test_a_cordoned_node(self, pod: Pod, expected: object) -> None:
        nodes = FakeHandle([make_node("open").obj(), make_node("shut").unschedulable().obj()]).nodes
        assert filter_both(self.plugin, pod, nodes) == [SUCCESS, expected]

    def test_hints(self) -> None:
        pod, is_open = make_pod("web").obj(), make_node("n").obj()
        shut = make_node("n").unschedulable().obj()
        assert hint(self.plugin, NODE_ADD, pod, None, is_open) == "Queue"
        assert hint(self.plugin, NODE_ADD, pod, None, shut) == "Skip"
        assert hint(self.plugin, TAINT_CHANGED, pod, shut, is_open) == "Queue"
        assert hint(self.plugin, TAINT_CHANGED, pod, is_open, is_open) == "Skip"
        tolerant = make_pod("web").toleration("node.kubernetes.io/unschedulable").obj()
        assert hint(self.plugin, TOLERATION_CHANGED, pod, pod, tolerant) == "Queue"
        assert hint(self.plugin, TOLERATION_CHANGED, pod, pod, pod) == "Skip"
        other = make_pod("other").toleration().obj()
        assert hint(self.plugin, TOLERATION_CHANGED, pod, other, other) == "Skip"
        assert hint(self.plugin, NODE_DELETE, pod, is_open, None) == "Unregistered"


class TestNodeName:
    plugin = NodeName({}, FakeHandle())
    rejected = unresolvable("node(s) didn't match the requested node name")

    @pytest.mark.parametrize(
        "wanted, expected",
        [
            pytest.param("", [SUCCESS, SUCCESS], id="no-name"),
            pytest.param("n1", [rejected, SUCCESS], id="one-of-them"),
            pytest.param("n7", [rejected, rejected], id="unknown-node"),
        ],
    )
    def test_names(self, wanted: str, expected: list[object]) -> None:
        nodes = FakeHandle([make_node("n0").obj(), make_node("n1").obj()]).nodes
        pod = make_pod("web").node(wanted).obj() if wanted else make_pod("web").obj()
        assert filter_both(self.plugin, pod, nodes) == expected

    def test_any_new_node_may_be_the_one(self) -> None:
        pod = make_pod("web").node("n9").obj()
        assert hint(self.plugin, NODE_ADD, pod, None, make_node("x").obj()) == "Queue"


class TestDefaultBinder:
    def test_it_binds_by_uid(self) -> None:
        handle = FakeHandle()
        pod = make_pod("web").uid("u-1").obj()
        assert DefaultBinder({}, handle).bind(CycleState(), pod, "n1") == SUCCESS
        assert handle.cluster.bound == [("default", "web", "u-1", "n1")]

    def test_a_refusal_is_an_error_in_the_words_of_the_api(self) -> None:
        handle = FakeHandle()
        handle.cluster.refusal = Conflict('pod web is already assigned to node "n0"')
        status = DefaultBinder({}, handle).bind(CycleState(), make_pod("web").obj(), "n1")
        assert status == error('pod web is already assigned to node "n0"')
        assert status.code is Code.ERROR


@pytest.mark.parametrize(
    "raw, reverse, expected",
    [
        pytest.param([], False, [], id="no-nodes"),
        pytest.param([0, 0], False, [0, 0], id="all-zero"),
        pytest.param([0, 0], True, [100, 100], id="all-zero-reversed"),
        pytest.param([1, 2, 3], False, [33, 66, 100], id="truncated"),
        pytest.param([1, 2, 3], True, [67, 34, 0], id="reversed-after-truncation"),
    ],
)
def test_default_normalize(raw: list[int], reverse: bool, expected: list[int]) -> None:
    scores = default_normalize(np.array(raw, dtype=np.int64), reverse=reverse)
    assert scores.dtype == np.int64
    assert scores.tolist() == expected
