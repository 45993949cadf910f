"""The rules of GangScheduling (gang.md, section 3), one named case each. The group's own cycle is
in tests/core/scheduler/test_pod_group_cycle.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scheduler_core.api import Pod
from scheduler_core.config import configuration_from
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import (
    ASSIGNED_POD_ADD,
    UNSCHEDULABLE_POD_ADD,
    ActionType,
    ClusterEvent,
    EventResource,
)
from scheduler_core.framework.interface import (
    EnqueueExtensions,
    PermitPlugin,
    PostFilterPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    QueueSortPlugin,
    ReservePlugin,
)
from scheduler_core.framework.runtime.waiting_pods import PermitWait, WaitingPod
from scheduler_core.framework.status import Code
from scheduler_core.plugins.gang_scheduling import GangScheduling
from scheduler_core.plugins.gang_scheduling.plugin import LOST_A_MEMBER, PERMIT_TIMEOUT
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.testing.builders import (
    NativePodGroupBuilder,
    PodBuilder,
    make_native_pod_group,
    make_node,
    make_pod,
)
from tests.plugins.support import FakeHandle, hint

VERSIONS = (
    "scheduling.k8s.io/v1alpha2",
    "scheduling.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1beta1",
)
UNKNOWN_GROUP = 'waiting for pods\'s pod group "g" to appear in scheduling queue'
TOO_FEW_KNOWN = "waiting for minCount pods from a gang to appear in scheduling queue"
TOO_FEW_PLACED = "waiting for minCount pods from a gang to be scheduled"


class GangHandle(FakeHandle):
    """Remembers which pods a plugin asked to activate."""

    def __init__(self) -> None:
        super().__init__([make_node("n").obj()])
        self.activated: list[str] = []

    def activate(self, pods: Mapping[str, Pod]) -> None:
        self.activated.extend(pods)


def member(name: str, group: str = "g") -> PodBuilder:
    return make_pod(name).scheduling_group(group)


class Gang:
    """The plugin, one PodGroup, and pods that come through Reserve and Permit one by one."""

    def __init__(self, group: NativePodGroupBuilder | None, *pods: PodBuilder) -> None:
        self.handle = GangHandle()
        self.plugin = GangScheduling({}, self.handle)
        self.pods = {pod.name: pod for pod in (builder.obj() for builder in pods)}
        if group is not None:
            self.handle.watch(group.obj())
        self.handle.watch(*self.pods.values())
        self.outcomes: dict[str, str] = {}

    def enqueue(self, name: str) -> tuple[Code, str]:
        status = self.plugin.pre_enqueue(self.pods[name])
        return status.code, status.message

    def permit(self, name: str, *, in_group_cycle: bool = False) -> tuple[Code, str, float]:
        """Reserve and Permit; a Wait parks the pod."""
        pod, state = self.pods[name].with_node_name("n"), CycleState()
        state.pod_group_cycle = in_group_cycle
        assert self.plugin.reserve(state, pod, "n").is_success
        status, timeout = self.plugin.permit(state, pod, "n")
        if status.is_wait and not in_group_cycle:
            deadline = self.handle.clock.now() + timeout
            waits = [PermitWait(self.plugin.name, timeout, deadline, status.message)]
            self.park(pod, waits)
        return status.code, status.message, timeout

    def park(self, pod: Pod, waits: list[PermitWait]) -> None:
        self.handle.waiting_pods.add(WaitingPod(pod, "n", waits, self.handle.changed.append))

    def lose(self, name: str, *, in_group_cycle: bool = False) -> None:
        state = CycleState()
        state.pod_group_cycle = in_group_cycle
        self.plugin.unreserve(state, self.pods[name].with_node_name("n"), "n")

    def ends(self) -> dict[str, str]:
        """Waits that have ended: pod -> allowed, or the reason."""
        return {
            w.pod.name: "allowed" if w.status.is_success else w.status.message
            for w in self.handle.waiting_pods
            if w.status is not None
        }


def gang(min_count: int, *names: str, version: str = VERSIONS[0]) -> Gang:
    group = make_native_pod_group("g").api_version(version).gang(min_count)
    return Gang(group, *(member(name) for name in names))


# -- PreEnqueue ----------------------------------------------------------------------------------

UNRESOLVABLE = Code.UNSCHEDULABLE_AND_UNRESOLVABLE


@pytest.mark.parametrize(
    "found, name, expected",
    [
        pytest.param(
            Gang(None, make_pod("a")), "a", (Code.SUCCESS, ""), id="no schedulingGroup: Success"
        ),
        pytest.param(
            Gang(None, member("a")),
            "a",
            (UNRESOLVABLE, UNKNOWN_GROUP),
            id="PodGroup missing: UnschedulableAndUnresolvable",
        ),
        pytest.param(
            gang(3, "a", "b"),
            "a",
            (UNRESOLVABLE, TOO_FEW_KNOWN),
            id="known pods < minCount: UnschedulableAndUnresolvable",
        ),
        pytest.param(gang(2, "a", "b"), "a", (Code.SUCCESS, ""), id="known pods = minCount"),
        pytest.param(
            Gang(make_native_pod_group("g", 2), member("a"), member("b").node("n")),
            "a",
            (Code.SUCCESS, ""),
            id="bound pods are known pods",
        ),
        pytest.param(
            Gang(make_native_pod_group("g", 2), member("a"), member("b").phase("Succeeded")),
            "a",
            (UNRESOLVABLE, TOO_FEW_KNOWN),
            id="pods that have ended are not",
        ),
        pytest.param(
            Gang(make_native_pod_group("g", 2), member("a"), member("b", "h")),
            "a",
            (UNRESOLVABLE, TOO_FEW_KNOWN),
            id="nor are those of another group",
        ),
        pytest.param(
            Gang(make_native_pod_group("g", 2), member("a"), member("b").namespace("ml")),
            "a",
            (UNRESOLVABLE, TOO_FEW_KNOWN),
            id="nor those of another namespace",
        ),
        pytest.param(
            Gang(make_native_pod_group("g").basic(), member("a")),
            "a",
            (Code.SUCCESS, ""),
            id="policy basic: no quorum",
        ),
    ],
)
def test_pre_enqueue(found: Gang, name: str, expected: tuple[Code, str]) -> None:
    assert found.enqueue(name) == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_pre_enqueue_reads_min_count_of_every_version(version: str) -> None:
    assert gang(2, "a", version=version).enqueue("a") == (UNRESOLVABLE, TOO_FEW_KNOWN)
    assert gang(1, "a", version=version).enqueue("a") == (Code.SUCCESS, "")


# -- Permit --------------------------------------------------------------------------------------


def test_permit_without_a_group_is_success() -> None:
    assert Gang(None, make_pod("a")).permit("a") == (Code.SUCCESS, "", 0.0)


def test_permit_of_a_basic_group_is_success() -> None:
    found = Gang(make_native_pod_group("g").basic(), member("a"))
    assert found.permit("a") == (Code.SUCCESS, "", 0.0)


def test_permit_without_the_pod_group_is_an_error() -> None:
    code, message, _ = Gang(None, member("a")).permit("a")
    assert code is Code.ERROR
    assert message == ('failed to get podGroup default/g: podgroup.scheduling.k8s.io "g" not found')


def test_scheduled_below_min_count_waits_five_minutes_and_activates_the_unscheduled() -> None:
    found = gang(3, "a", "b", "c")
    assert found.permit("a") == (Code.WAIT, TOO_FEW_PLACED, 300.0)
    assert PERMIT_TIMEOUT == 300.0
    assert found.handle.activated == ["default/b", "default/c"]


def test_quorum_allows_all_assumed_members() -> None:
    found = gang(3, "a", "b", "c", "d")
    for name in ("a", "b"):
        assert found.permit(name)[0] is Code.WAIT
    assert found.permit("c") == (Code.SUCCESS, "", 0.0)
    assert found.ends() == {"a": "allowed", "b": "allowed"}
    assert found.permit("d")[0] is Code.SUCCESS


def test_bound_pods_count_for_the_quorum() -> None:
    found = Gang(make_native_pod_group("g", 2), member("a"), member("b").node("n"))
    assert found.permit("a")[0] is Code.SUCCESS


def test_a_pod_that_was_bound_after_reserve_counts_once() -> None:
    found = gang(3, "a", "b", "c")
    found.permit("a")
    found.handle.watch(found.pods["a"].with_node_name("n"))
    assert found.permit("b")[0] is Code.WAIT
    assert found.permit("c")[0] is Code.SUCCESS


def test_a_deleted_pod_counts_no_more() -> None:
    found = gang(2, "a", "b", "c")
    found.permit("a")
    found.handle.informer("Pod").delete("default/a")
    assert found.permit("b")[0] is Code.WAIT


def test_unreserve_takes_a_pod_out_of_the_count() -> None:
    found = gang(2, "a", "b", "c")
    found.permit("a", in_group_cycle=True)
    found.lose("a", in_group_cycle=True)
    assert found.permit("b")[0] is Code.WAIT
    assert found.permit("c")[0] is Code.SUCCESS


def test_permit_in_the_group_cycle_neither_activates_nor_allows() -> None:
    """Nothing of it may outlast the cycle, which is reverted; the second Permit run does it."""
    found = gang(2, "a", "b")
    found.permit("a")
    found.handle.activated.clear()
    assert found.permit("b", in_group_cycle=True)[0] is Code.SUCCESS
    assert found.ends() == {}
    alone = gang(2, "a", "b")
    assert alone.permit("a", in_group_cycle=True)[0] is Code.WAIT
    assert alone.handle.activated == []


# -- losing a member -----------------------------------------------------------------------------


def waiting_for_a_person(found: Gang, *names: str) -> None:
    """Members that have made the quorum and wait for another plugin."""
    for name in names:
        pod = found.pods[name].with_node_name("n")
        found.plugin.reserve(CycleState(), pod, "n")
        found.park(pod, [PermitWait("ManualApproval", 900.0, 2000.0)])


def test_a_gang_below_min_count_is_given_up_as_a_whole() -> None:
    found = gang(3, "a", "b", "c")
    waiting_for_a_person(found, "a", "b", "c")
    found.handle.waiting_pods.remove(found.pods["b"].uid)
    found.lose("b")
    assert found.ends() == {"a": LOST_A_MEMBER, "c": LOST_A_MEMBER}
    assert found.permit("b")[0] is Code.WAIT  # those that were turned down do not count


def test_a_gang_that_still_has_min_count_goes_on() -> None:
    found = gang(2, "a", "b", "c")
    waiting_for_a_person(found, "a", "b", "c")
    found.handle.waiting_pods.remove(found.pods["b"].uid)
    found.lose("b")
    assert found.ends() == {}


def test_the_group_cycle_gives_nothing_up() -> None:
    found = gang(3, "a", "b", "c")
    waiting_for_a_person(found, "a", "b")
    found.permit("c", in_group_cycle=True)
    found.lose("c", in_group_cycle=True)
    assert found.ends() == {}


def test_members_of_a_basic_group_go_on_alone() -> None:
    found = Gang(make_native_pod_group("g").basic(), member("a"), member("b"))
    waiting_for_a_person(found, "a", "b")
    found.handle.waiting_pods.remove(found.pods["b"].uid)
    found.lose("b")
    assert found.ends() == {}


# -- events --------------------------------------------------------------------------------------

GROUP_ADD = ClusterEvent(EventResource.NATIVE_POD_GROUP, ActionType.ADD)
GROUP_UPDATE = ClusterEvent(EventResource.NATIVE_POD_GROUP, ActionType.UPDATE)
OTHER_GROUP_ADD = ClusterEvent(EventResource.POD_GROUP, ActionType.ADD)


def group(min_count: int, name: str = "g") -> NativePodGroupBuilder:
    return make_native_pod_group(name).api_version(VERSIONS[2]).gang(min_count)


@pytest.mark.parametrize(
    "event, old, new, answer",
    [
        pytest.param(UNSCHEDULABLE_POD_ADD, None, member("b"), "Queue", id="Pod Add: same group"),
        pytest.param(ASSIGNED_POD_ADD, None, member("b").node("n"), "Queue", id="bound Pod Add"),
        pytest.param(UNSCHEDULABLE_POD_ADD, None, member("b", "h"), "Skip", id="another group's"),
        pytest.param(
            UNSCHEDULABLE_POD_ADD,
            None,
            member("b").namespace("ml"),
            "Skip",
            id="another namespace's",
        ),
        pytest.param(UNSCHEDULABLE_POD_ADD, None, make_pod("b"), "Skip", id="a pod without group"),
        pytest.param(GROUP_ADD, None, group(2), "Queue", id="PodGroup Add: same group"),
        pytest.param(GROUP_ADD, None, group(2, "h"), "Skip", id="another PodGroup"),
        pytest.param(OTHER_GROUP_ADD, None, group(2), "Unregistered", id="coscheduling's PodGroup"),
        pytest.param(GROUP_UPDATE, group(3), group(2), "Queue", id="1.37: minCount goes down"),
        pytest.param(GROUP_UPDATE, group(2), group(3), "Skip", id="1.37: minCount goes up"),
        pytest.param(
            GROUP_UPDATE, group(2), group(2).label(a="b"), "Skip", id="a status or label changes"
        ),
        pytest.param(
            GROUP_UPDATE, group(2), group(2).uid("another"), "Queue", id="a PodGroup made anew"
        ),
    ],
)
def test_what_brings_a_held_pod_back(event: ClusterEvent, old: Any, new: Any, answer: str) -> None:
    plugin = GangScheduling({}, GangHandle())
    objects = [builder and builder.obj() for builder in (old, new)]
    assert hint(plugin, event, member("a").obj(), *objects) == answer


# -- configuration -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "point, implemented",
    [
        pytest.param(PreEnqueuePlugin, True, id="PreEnqueue"),
        pytest.param(ReservePlugin, True, id="Reserve"),
        pytest.param(PermitPlugin, True, id="Permit"),
        pytest.param(EnqueueExtensions, True, id="EventsToRegister"),
        pytest.param(QueueSortPlugin, False, id="no QueueSort: PrioritySort's order holds"),
        pytest.param(PreFilterPlugin, False, id="no PreFilter: no backoff of its own"),
        pytest.param(PostFilterPlugin, False, id="no PostFilter"),
    ],
)
def test_extension_points(point: type, implemented: bool) -> None:
    assert issubclass(GangScheduling, point) == implemented


def test_it_is_off_unless_a_profile_names_it() -> None:
    head = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    multi_point = {"plugins": {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}}}
    both = configuration_from(
        {**head, "profiles": [{"schedulerName": "a"}, {"schedulerName": "b", **multi_point}]},
        in_tree_registry(),
    )
    off, on = both.profiles
    assert "GangScheduling" not in off.plugin_names()
    for point in ("preEnqueue", "reserve", "permit"):
        assert "GangScheduling" in [ref.name for ref in on.plugins[point]]
