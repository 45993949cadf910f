"""DynamicResources for pods without claims as in kube-scheduler 1.36; others are told why not."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import NODE_ADD, ActionType, ClusterEvent, EventResource
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.status import SUCCESS, error, unresolvable, unschedulable
from scheduler_core.plugins.dynamic_resources import DynamicResources
from scheduler_core.testing.builders import make_node, make_pod
from scheduler_core.testing.harness import Harness
from tests.plugins.support import FakeHandle, filter_both, hint, score_both

PLAIN = make_pod("own").obj()
REASON = "pod has resource claims: dynamic resource allocation is not supported by this scheduler"


def with_claim() -> dict[str, Any]:
    raw = make_pod("own").raw()
    raw["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]
    return raw


class TestWithoutClaims:
    handle = FakeHandle([make_node("n1").obj(), make_node("n2").obj()])
    plugin = DynamicResources({}, handle)

    def test_pre_filter_skips(self) -> None:
        _, status = self.plugin.pre_filter(CycleState(), PLAIN, self.handle.nodes)
        assert status.is_skip
        assert filter_both(self.plugin, PLAIN, self.handle.nodes) == [SUCCESS, SUCCESS]

    def test_it_scores_0_everywhere_and_never_skips_scoring(self) -> None:
        scores = self.plugin.score_nodes(CycleState(), PLAIN, self.handle.nodes)
        assert score_both(self.plugin, PLAIN, self.handle.nodes) == [0, 0]
        normalized = self.plugin.normalize_score(CycleState(), PLAIN, self.handle.nodes, scores)
        assert normalized.tolist() == [0, 0]

    def test_post_filter_has_nothing_to_free(self) -> None:
        state = CycleState()
        self.plugin.pre_filter(state, PLAIN, self.handle.nodes)
        answer = self.plugin.post_filter(state, PLAIN, NodeStatuses(2))
        assert answer == (None, unschedulable("no new claims to deallocate"))

    def test_post_filter_is_an_error_where_pre_filter_did_not_get_so_far(self) -> None:
        answer = self.plugin.post_filter(CycleState(), PLAIN, NodeStatuses(2))
        assert answer == (None, error("not found"))

    def test_there_is_nothing_to_reserve_or_bind(self) -> None:
        state = CycleState()
        assert self.plugin.pre_enqueue(PLAIN).is_success
        assert self.plugin.reserve(state, PLAIN, "n1").is_success
        self.plugin.unreserve(state, PLAIN, "n1")
        assert self.plugin.pre_bind_pre_flight(state, PLAIN, "n1").is_skip
        assert self.plugin.pre_bind(state, PLAIN, "n1").is_success


def test_a_pod_with_claims_is_turned_down() -> None:
    handle = FakeHandle([make_node("n1").obj()])
    plugin, pod, state = DynamicResources({}, handle), Pod.from_dict(with_claim()), CycleState()
    _, status = plugin.pre_filter(state, pod, handle.nodes)
    assert status == unresolvable(REASON)
    assert filter_both(plugin, pod, handle.nodes) == [unresolvable(REASON)]
    answer = plugin.post_filter(state, pod, NodeStatuses(1))
    assert answer == (None, unschedulable("still not schedulable"))


class TestMessages:
    """What the owner of a pod reads."""

    def message(self, pod: Any, *names: str) -> str:
        harness = Harness(nodes=[make_node(n).capacity(cpu="1") for n in names], pods=[pod])
        harness.settle()
        return str(harness.condition("own")["message"])

    def test_a_pod_with_claims(self) -> None:
        assert self.message(with_claim(), "n1").startswith(
            f"0/1 nodes are available: {REASON}. still not schedulable"
        )

    def test_a_pod_that_fits_nowhere(self) -> None:
        text = self.message(make_pod("own").req(cpu="2"), "n1", "n2")
        assert text == (
            "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, "
            "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
        )

    def test_pre_filter_that_ended_earlier(self) -> None:
        """The whole text as a real kube-scheduler 1.36.2 wrote it."""
        assert self.message(make_pod("own").pvc("nope"), "n1", "n2") == (
            '0/2 nodes are available: persistentvolumeclaim "nope" not found. not found'
        )


def event(resource: EventResource, action: ActionType) -> ClusterEvent:
    return ClusterEvent(resource, action)


GENERATED = event(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)


@pytest.mark.parametrize(
    "what, new, answer",
    [
        pytest.param(NODE_ADD, make_node("n").obj(), "Queue", id="node added"),
        pytest.param(
            event(EventResource.NODE, ActionType.UPDATE_NODE_LABEL),
            make_node("n").obj(),
            "Queue",
            id="node relabelled",
        ),
        pytest.param(
            event(EventResource.NODE, ActionType.UPDATE_NODE_ALLOCATABLE),
            make_node("n").obj(),
            "Queue",
            id="node grew",
        ),
        pytest.param(
            event(EventResource.DEVICE_CLASS, ActionType.ADD), None, "Queue", id="class added"
        ),
        pytest.param(
            event(EventResource.DEVICE_CLASS, ActionType.UPDATE), None, "Queue", id="class changed"
        ),
        pytest.param(
            event(EventResource.RESOURCE_SLICE, ActionType.ADD), None, "Queue", id="slice added"
        ),
        pytest.param(
            event(EventResource.RESOURCE_SLICE, ActionType.UPDATE),
            None,
            "Queue",
            id="slice changed",
        ),
        pytest.param(
            event(EventResource.RESOURCE_CLAIM, ActionType.ADD), None, "Queue", id="claim added"
        ),
        pytest.param(
            event(EventResource.RESOURCE_CLAIM, ActionType.UPDATE),
            None,
            "Queue",
            id="claim changed",
        ),
        pytest.param(GENERATED, PLAIN, "Queue", id="own claims generated"),
        pytest.param(GENERATED, make_pod("x").obj(), "Skip", id="another pod's claims generated"),
        pytest.param(
            event(EventResource.NODE, ActionType.UPDATE_NODE_TAINT),
            make_node("n").obj(),
            "Unregistered",
            id="node's taints changed",
        ),
    ],
)
def test_hints(what: ClusterEvent, new: Any, answer: str) -> None:
    assert hint(DynamicResources({}, FakeHandle()), what, PLAIN, None, new) == answer
