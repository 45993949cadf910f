"""ManualApproval alone, and together with Coscheduling."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.errors import PluginConfigError
from scheduler_core.framework.events import ActionType, ClusterEvent, EventResource
from scheduler_core.framework.status import SUCCESS
from scheduler_core.plugins.manual_approval import APPROVAL_KEY, REQUESTED_BY, ManualApproval
from scheduler_core.testing.builders import PodBuilder, make_pod, make_pod_group
from tests.plugins.gang_loop import GangLoop
from tests.plugins.support import FakeHandle, hint

ASKS = {APPROVAL_KEY: "required"}
LABEL_CHANGED = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_LABEL)
GROUP_CHANGED = ClusterEvent(EventResource.POD_GROUP, ActionType.UPDATE)


def test_the_keys_users_write() -> None:
    assert APPROVAL_KEY == "kubesched.io/approval"
    assert REQUESTED_BY == "kubesched.io/requested-by"


@pytest.mark.parametrize(
    "pod, args, waits",
    [
        pytest.param(make_pod("p"), {}, False, id="asks-for-nothing"),
        pytest.param(make_pod("p").label(ASKS), {}, True, id="by-label"),
        pytest.param(make_pod("p").annotation(ASKS), {}, True, id="by-annotation"),
        pytest.param(
            make_pod("p").label({APPROVAL_KEY: "no"}), {}, False, id="another-value-asks-nothing"
        ),
        pytest.param(
            make_pod("p").label(team="ml"),
            {"selector": {"matchLabels": {"team": "ml"}}},
            True,
            id="by-selector",
        ),
        pytest.param(
            make_pod("p").label(team="web"),
            {
                "selector": {
                    "matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["web"]}]
                }
            },
            False,
            id="not-selected",
        ),
        pytest.param(make_pod("p"), {"selector": {}}, True, id="the-empty-selector-is-everything"),
    ],
)
def test_who_waits(pod: PodBuilder, args: dict[str, Any], waits: bool) -> None:
    status, timeout = ManualApproval(args, FakeHandle()).permit(CycleState(), pod.obj(), "n")
    assert status.is_wait is waits
    assert timeout == (900.0 if waits else 0.0)
    assert status.message == ("waits for a person's approval" if waits else "")


def test_the_timeout_is_the_arguments() -> None:
    plugin = ManualApproval({"timeoutSeconds": 45}, FakeHandle())
    assert plugin.permit(CycleState(), make_pod("p").label(ASKS).obj(), "n")[1] == 45.0


def test_a_native_gangs_group_cycle_is_not_held_up() -> None:
    state = CycleState()
    state.pod_group_cycle = True
    plugin = ManualApproval({}, FakeHandle())
    assert plugin.permit(state, make_pod("p").label(ASKS).obj(), "n") == (SUCCESS, 0.0)


@pytest.mark.parametrize(
    "group_labels, sibling, own, waits",
    [
        pytest.param(ASKS, make_pod("b"), make_pod("a"), True, id="the-group-asks"),
        pytest.param({}, make_pod("b").label(ASKS), make_pod("a"), True, id="a-sibling-asks"),
        pytest.param({}, make_pod("b"), make_pod("a").label(ASKS), True, id="the-pod-asks"),
        pytest.param({}, make_pod("b"), make_pod("a"), False, id="nobody-asks"),
        pytest.param(
            {},
            make_pod("b").namespace("other").label(ASKS),
            make_pod("a"),
            False,
            id="another-namespace",
        ),
    ],
)
def test_gangs(group_labels: dict[str, str], sibling: Any, own: Any, waits: bool) -> None:
    handle = FakeHandle()
    plugin = ManualApproval({}, handle)
    pod = own.pod_group("g").obj()
    handle.watch(
        make_pod_group("g", 2).label(group_labels).obj(), sibling.pod_group("g").obj(), pod
    )
    assert plugin.permit(CycleState(), pod, "n")[0].is_wait is waits


def test_events() -> None:
    plugin = ManualApproval({}, FakeHandle())
    pod = make_pod("p").pod_group("g").obj()
    assert hint(plugin, LABEL_CHANGED, pod, pod, pod) == "Queue"
    assert hint(plugin, LABEL_CHANGED, pod, pod, make_pod("other").obj()) == "Skip"
    assert hint(plugin, GROUP_CHANGED, pod, None, make_pod_group("g").obj()) == "Queue"
    assert hint(plugin, GROUP_CHANGED, pod, None, make_pod_group("h").obj()) == "Skip"
    group, counted = make_pod_group("g").obj(), make_pod_group("g").phase("Scheduling").obj()
    assert hint(plugin, GROUP_CHANGED, pod, group, counted) == "Skip"
    assert hint(plugin, GROUP_CHANGED, pod, group, make_pod_group("g", 2).obj()) == "Queue"
    unlabelled = make_pod_group("g").label({"kubesched.io/approval": "no"}).obj()
    assert hint(plugin, GROUP_CHANGED, pod, group, unlabelled) == "Queue"


@pytest.mark.parametrize(
    "args, message",
    [
        pytest.param(
            {"timeoutSeconds": 901},
            "timeoutSeconds: Invalid value: 901: not in valid range [1, 900]",
            id="too-long",
        ),
        pytest.param(
            {"timeoutSeconds": 0},
            "timeoutSeconds: Invalid value: 0: not in valid range [1, 900]",
            id="no-time-at-all",
        ),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
            'selector: "Near" is not a valid label selector operator',
            id="bad-operator",
        ),
        pytest.param(
            {"selector": {"matchLabels": {"a": 1}}},
            "selector.matchLabels[a]: Invalid value: 1: must be a string",
            id="bad-type",
        ),
    ],
)
def test_bad_arguments(args: dict[str, Any], message: str) -> None:
    with pytest.raises(PluginConfigError) as raised:
        ManualApproval(args, FakeHandle())
    assert str(raised.value) == message


class TestWithCoscheduling:
    """Quorum first, then a person: a member binds when both plugins have let it go."""

    def gang(self, count: int) -> tuple[GangLoop, list[Pod]]:
        loop = GangLoop(approval={})
        pods = [make_pod(f"m{i}").pod_group("g").obj() for i in range(count)]
        loop.add(make_pod_group("g", count).label(ASKS).obj(), *pods)
        return loop, pods

    def test_the_quorum_counts_members_that_wait_for_approval(self) -> None:
        loop, pods = self.gang(3)
        assert [loop.schedule(pod) for pod in pods] == ["waiting"] * 3
        pending = {w.pod.name: w.pending_plugins for w in loop.handle.waiting_pods}
        assert pending == dict.fromkeys(("m0", "m1", "m2"), ("ManualApproval",))

    def test_approving_the_gang_binds_it(self) -> None:
        loop, pods = self.gang(3)
        for pod in pods:
            loop.schedule(pod)
        loop.approve("m0", "m1", "m2")
        assert sorted(loop.bound) == ["m0", "m1", "m2"]

    def test_approval_before_the_quorum_still_waits_for_it(self) -> None:
        loop, pods = self.gang(2)
        loop.schedule(pods[0])
        loop.approve("m0")
        assert loop.bound == []
        assert loop.waiting_names() == ["m0"]
        loop.schedule(pods[1])
        assert loop.bound == ["m0"]
        # The member that made up the quorum asks on its own.
        assert loop.waiting_names() == ["m1"]

    def test_one_denial_ends_the_gang(self) -> None:
        loop, pods = self.gang(3)
        for pod in pods:
            loop.schedule(pod)
        loop.deny("m1")
        assert loop.bound == []
        assert loop.turned_down == {
            "m1": "denied by alice",
            "m0": "rejection in Unreserve",
            "m2": "rejection in Unreserve",
        }

    def test_the_gang_ends_at_its_earliest_members_deadline(self) -> None:
        loop, pods = self.gang(2)
        loop.schedule(pods[0])
        loop.handle.clock.advance(50)
        loop.schedule(pods[1])
        loop.advance(849)
        assert loop.waiting_names() == ["m0", "m1"]
        loop.advance(1)
        assert loop.waiting_names() == []
        assert loop.turned_down["m0"] == (
            "rejected due to timeout after waiting 15m0s at plugin ManualApproval"
        )

    def test_a_gang_without_quorum_gives_up_before_anyone_is_asked_for_long(self) -> None:
        loop, pods = self.gang(2)
        loop.schedule(pods[0])
        loop.advance(60)
        assert loop.turned_down == {
            "m0": "rejected due to timeout after waiting 1m0s at plugin Coscheduling"
        }
