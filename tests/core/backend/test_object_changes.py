from __future__ import annotations

import pytest

from scheduler_core.backend.object_changes import node_change_events, pod_change_events
from scheduler_core.testing.builders import NodeBuilder, PodBuilder, make_node, make_pod


def base_pod() -> PodBuilder:
    return make_pod("p").req(cpu="2", memory="1Gi").label(app="web").gate("g1", "g2")


def gated(*gates: str) -> PodBuilder:
    return make_pod("p").req(cpu="2", memory="1Gi").label(app="web").gate(*gates)


def with_claim_status() -> dict[str, object]:
    raw = base_pod().raw()
    raw["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "gpu-x"}]
    return raw


@pytest.mark.parametrize(
    "new, labels",
    [
        pytest.param(base_pod(), ["UnschedulablePodUpdate"], id="nothing-plain-update"),
        pytest.param(
            base_pod().annotation(x="y"), ["UnschedulablePodUpdate"], id="annotation-plain-update"
        ),
        pytest.param(base_pod().label(app="db"), ["UnschedulablePodUpdatePodLabel"], id="label"),
        pytest.param(
            make_pod("p").req(cpu="1", memory="1Gi").label(app="web").gate("g1", "g2"),
            ["UnschedulablePodUpdatePodScaleDown"],
            id="request-lower",
        ),
        pytest.param(
            make_pod("p").req(cpu="2").label(app="web").gate("g1", "g2"),
            ["UnschedulablePodUpdatePodScaleDown"],
            id="request-gone",
        ),
        pytest.param(
            make_pod("p").req(cpu="3", memory="1Gi").label(app="web").gate("g1", "g2"),
            ["UnschedulablePodUpdate"],
            id="request-higher-is-no-scale-down",
        ),
        pytest.param(
            gated(), ["UnschedulablePodUpdatePodSchedulingGatesEliminated"], id="last-gate-gone"
        ),
        pytest.param(gated("g1"), ["UnschedulablePodUpdate"], id="one-of-two-gates-gone"),
        pytest.param(
            base_pod().toleration("a"), ["UnschedulablePodUpdatePodToleration"], id="toleration"
        ),
        pytest.param(
            gated().label(app="db").toleration("a"),
            [
                "UnschedulablePodUpdatePodLabel",
                "UnschedulablePodUpdatePodSchedulingGatesEliminated",
                "UnschedulablePodUpdatePodToleration",
            ],
            id="several",
        ),
        pytest.param(
            base_pod().node("n1").label(app="db"),
            ["AssignedPodUpdatePodLabel"],
            id="bound-pod-is-AssignedPod",
        ),
    ],
)
def test_pod_changes(new: PodBuilder, labels: list[str]) -> None:
    assert [e.label for e in pod_change_events(base_pod().obj(), new.obj())] == labels


def test_generated_resource_claims() -> None:
    new = type(base_pod().obj()).from_dict(with_claim_status())
    labels = [e.label for e in pod_change_events(base_pod().obj(), new)]
    assert labels == ["UnschedulablePodUpdatePodGeneratedResourceClaim"]


def test_an_in_place_resize_that_came_through_is_a_scale_down() -> None:
    def resized(reported: str) -> PodBuilder:
        pod = make_pod("p").container("c", requests={"cpu": "1"}).node("n1")
        return pod.container_status("c", requests={"cpu": reported})

    events = pod_change_events(resized("2").obj(), resized("1").obj())
    assert [e.label for e in events] == ["AssignedPodUpdatePodScaleDown"]


def test_a_pod_without_an_older_version_is_a_plain_update() -> None:
    assert [e.label for e in pod_change_events(None, base_pod().obj())] == [
        "UnschedulablePodUpdate"
    ]


def base_node() -> NodeBuilder:
    return make_node("n").capacity(cpu="4").condition("Ready", "True").taint("t")


@pytest.mark.parametrize(
    "new, labels",
    [
        pytest.param(base_node(), [], id="nothing"),
        pytest.param(base_node().condition("Ready", "True"), [], id="heartbeat"),
        pytest.param(base_node().taint("u"), ["NodeUpdateNodeTaint"], id="taint"),
        pytest.param(base_node().unschedulable(), [], id="cordoned"),
        pytest.param(
            make_node("n").capacity(cpu="5").condition("Ready", "True").taint("t"),
            ["NodeUpdateNodeAllocatable"],
            id="allocatable",
        ),
        pytest.param(base_node().label(a="b"), ["NodeUpdateNodeLabel"], id="label"),
        pytest.param(
            base_node().condition("Ready", "False"), ["NodeUpdateNodeCondition"], id="condition"
        ),
        pytest.param(base_node().annotation(a="b"), ["NodeUpdateNodeAnnotation"], id="annotation"),
        pytest.param(
            base_node().declared_features("X"), ["NodeUpdateNodeDeclaredFeature"], id="feature"
        ),
        pytest.param(
            base_node().taint("u").label(a="b"),
            ["NodeUpdateNodeTaint", "NodeUpdateNodeLabel"],
            id="several",
        ),
    ],
)
def test_node_changes(new: NodeBuilder, labels: list[str]) -> None:
    assert [e.label for e in node_change_events(base_node().obj(), new.obj())] == labels


def test_uncordoning_counts_as_a_taint_change() -> None:
    events = node_change_events(base_node().unschedulable().obj(), base_node().obj())
    assert [e.label for e in events] == ["NodeUpdateNodeTaint"]
