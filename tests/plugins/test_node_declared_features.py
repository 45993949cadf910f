"""NodeDeclaredFeatures, rule by rule (kube-scheduler 1.36)."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import NODE_ADD, ActionType, ClusterEvent, EventResource
from scheduler_core.framework.status import SUCCESS, unresolvable
from scheduler_core.plugins.node_declared_features import NodeDeclaredFeatures
from scheduler_core.testing.builders import make_node, make_pod
from tests.plugins.support import FakeHandle, filter_both, hint

REJECTED = unresolvable("node(s) didn't match Pod's required features")
RESTART = "RestartAllContainersOnContainerExits"
NETWORK = "UserNamespacesHostNetworkSupport"
RULES = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}]


def pod(*, init: bool = False, rules: Any = (), uid: str = "own", **spec: Any) -> Pod:
    raw = make_pod("own").uid(uid).raw()
    container = {"name": "c", "image": "i", "restartPolicyRules": list(rules)}
    raw["spec"] |= spec | ({"initContainers": [container]} if init else {"containers": [container]})
    return Pod.from_dict(raw)


@pytest.mark.parametrize(
    "own, needed",
    [
        pytest.param(pod(), set(), id="nothing"),
        pytest.param(pod(rules=RULES), {RESTART}, id="a container restarts all"),
        pytest.param(pod(rules=RULES, init=True), {RESTART}, id="an init container restarts all"),
        pytest.param(pod(rules=[{"action": "Restart"}]), set(), id="a container restarts itself"),
        pytest.param(
            pod(hostNetwork=True, hostUsers=False), {NETWORK}, id="host network, no users"
        ),
        pytest.param(pod(hostNetwork=True), set(), id="host network"),
        pytest.param(pod(hostUsers=False), set(), id="no host users"),
        pytest.param(
            pod(rules=RULES, hostNetwork=True, hostUsers=False), {RESTART, NETWORK}, id="both"
        ),
    ],
)
def test_what_a_pod_needs(own: Pod, needed: set[str]) -> None:
    declared = [(), (RESTART,), (NETWORK,), (NETWORK, "Other", RESTART)]
    nodes = [make_node(f"n{i}").declared_features(*f).obj() for i, f in enumerate(declared)]
    handle = FakeHandle(nodes)
    plugin, state = NodeDeclaredFeatures({}, handle), CycleState()
    _, status = plugin.pre_filter(state, own, handle.nodes)
    assert status.is_skip is not bool(needed)
    if needed:
        expected = [SUCCESS if needed <= set(f) else REJECTED for f in declared]
        assert filter_both(plugin, own, handle.nodes, state) == expected


UPDATE = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_OTHER)
FEATURES = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_DECLARED_FEATURE)
PLAIN, WITH = make_node("n").obj(), make_node("n").declared_features(RESTART).obj()


@pytest.mark.parametrize(
    "event, old, new, answer",
    [
        pytest.param(NODE_ADD, None, PLAIN, "Queue", id="node added"),
        pytest.param(FEATURES, PLAIN, WITH, "Queue", id="features changed"),
        pytest.param(FEATURES, WITH, WITH, "Skip", id="features as before"),
        pytest.param(UPDATE, pod(rules=RULES), pod(), "Queue", id="own needs changed"),
        pytest.param(UPDATE, pod(), pod(priority=1), "Skip", id="own pod changed otherwise"),
        pytest.param(
            UPDATE,
            pod(rules=RULES, uid="x"),
            pod(uid="x"),
            "Skip",
            id="another pod's needs changed",
        ),
    ],
)
def test_hints(event: ClusterEvent, old: Any, new: Any, answer: str) -> None:
    assert hint(NodeDeclaredFeatures({}, FakeHandle()), event, pod(), old, new) == answer
