"""Coscheduling: every rule of scheduler-plugins' coscheduling (gang.md, section 2), named after it.
`test_gang_rules.py` has the list of all."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.api import KINDS, Pod, PodGroup, validate
from scheduler_core.cluster.resources import RESOURCES
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.errors import PluginConfigError
from scheduler_core.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    UNSCHEDULABLE_POD_ADD,
    ActionType,
    ClusterEvent,
    EventResource,
)
from scheduler_core.framework.interface import (
    EnqueueExtensions,
    FilterPlugin,
    PermitPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from scheduler_core.framework.status import SUCCESS, unschedulable
from scheduler_core.framework.types import QueuedPodInfo
from scheduler_core.plugins.coscheduling import Coscheduling
from scheduler_core.plugins.coscheduling.args import CoschedulingArgs
from scheduler_core.testing.builders import PodBuilder, make_node, make_pod, make_pod_group
from tests.plugins.gang_loop import GangLoop
from tests.plugins.support import FakeHandle, hint

GROUP_CHANGED = ClusterEvent(EventResource.POD_GROUP, ActionType.UPDATE)
TAINT_CHANGED = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)


def member(name: str, gang: str = "gang") -> PodBuilder:
    return make_pod(name).pod_group(gang).req(cpu="1")


def members(count: int, gang: str = "gang") -> list[Pod]:
    return [member(f"{gang}-{i}", gang).obj() for i in range(count)]


def gang_of(
    count: int, args: dict[str, Any] | None = None, **more: Any
) -> tuple[GangLoop, list[Pod]]:
    """A loop that knows a gang of ``count`` members, all of which are needed."""
    loop = GangLoop(args, **more)
    pods = members(count)
    loop.add(make_pod_group("gang", count).obj(), *pods)
    return loop, pods


@pytest.mark.parametrize(
    "point, implemented",
    [
        pytest.param(QueueSortPlugin, True, id="QueueSort"),
        pytest.param(PreEnqueuePlugin, False, id="no PreEnqueue"),
        pytest.param(PreFilterPlugin, True, id="PreFilter"),
        pytest.param(FilterPlugin, False, id="no Filter"),
        pytest.param(PostFilterPlugin, True, id="PostFilter"),
        pytest.param(ScorePlugin, False, id="no Score"),
        pytest.param(ReservePlugin, True, id="Reserve"),
        pytest.param(PermitPlugin, True, id="Permit"),
        pytest.param(PreBindPlugin, False, id="no PreBind"),
        pytest.param(EnqueueExtensions, True, id="EventsToRegister"),
    ],
)
def test_extension_points(point: type, implemented: bool) -> None:
    assert issubclass(Coscheduling, point) == implemented


class TestTheCustomResource:
    """PodGroup of scheduling.x-k8s.io/v1alpha1, as kubectl and the API server know it."""

    def test_names(self) -> None:
        kind = KINDS["PodGroup"]
        assert (kind.api_version, kind.plural) == ("scheduling.x-k8s.io/v1alpha1", "podgroups")
        assert tuple(kind.short_names) == ("pg", "pgs")

    def test_it_is_namespaced_and_its_status_is_a_subresource(self) -> None:
        resource = RESOURCES["PodGroup"]
        assert (resource.namespaced, resource.has_status) == (True, True)

    @pytest.mark.parametrize(
        "spec, path",
        [
            pytest.param({"minMember": 1}, "", id="minMember 1"),
            pytest.param({"minMember": 0}, "spec.minMember", id="minMember is at least 1"),
            pytest.param({"minMember": 2**31}, "spec.minMember", id="minMember is an int32"),
            pytest.param(
                {"minMember": 1, "minResources": {"cpu": "2", "memory": "1Gi"}},
                "",
                id="minResources is a ResourceList",
            ),
            pytest.param(
                {"minMember": 1, "minResources": {"cpu": "two"}},
                "spec.minResources[cpu]",
                id="of quantities",
            ),
            pytest.param(
                {"minMember": 1, "scheduleTimeoutSeconds": 30}, "", id="scheduleTimeoutSeconds"
            ),
            pytest.param(
                {"minMember": 1, "scheduleTimeoutSeconds": 2**31},
                "spec.scheduleTimeoutSeconds",
                id="scheduleTimeoutSeconds is an int32",
            ),
        ],
    )
    def test_spec(self, spec: dict[str, Any], path: str) -> None:
        raw = {**make_pod_group("g").raw(), "spec": spec}
        assert [field for field, _ in validate(raw)] == ([path] if path else [])

    @pytest.mark.parametrize(
        "phase", ["Pending", "Scheduling", "Running", "Unknown", "Finished", "Failed"]
    )
    def test_status(self, phase: str) -> None:
        status = {
            "phase": phase,
            "occupiedBy": "default/train",
            "running": 1,
            "succeeded": 2,
            "failed": 3,
            "scheduleStartTime": "1970-01-01T00:01:40Z",
        }
        group = PodGroup.from_dict({**make_pod_group("g").raw(), "status": status})
        assert (group.phase, group.occupied_by) == (phase, "default/train")
        assert (group.running, group.succeeded, group.failed) == (1, 2, 3)
        assert group.schedule_start_time == 100.0

    def test_membership_is_a_label(self) -> None:
        assert make_pod("p").label({"scheduling.x-k8s.io/pod-group": "g"}).obj().pod_group_key == (
            "default/g"
        )


class TestQueueSort:
    """Higher priority; failure time, creation time of the group, else first attempt; name."""

    def less(self, handle: FakeHandle, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        plugin = Coscheduling({}, handle)
        assert not (plugin.less(a, b) and plugin.less(b, a))
        return plugin.less(a, b)

    @pytest.mark.parametrize(
        "a, b",
        [
            pytest.param(
                (member("a").priority(5), 9.0), (member("b").priority(1), 1.0), id="priority"
            ),
            pytest.param((member("b", "old"), 9.0), (member("a", "new"), 1.0), id="older-group"),
            pytest.param((member("a", "old"), 9.0), (member("b", "old"), 1.0), id="name-in-group"),
            pytest.param((make_pod("b"), 150.0), (member("a", "new"), 1.0), id="single-by-attempt"),
            pytest.param(
                (make_pod("b"), 1.0), (member("a", "lost"), 2.0), id="group-missing-is-single"
            ),
            pytest.param(
                (member("a", "old").namespace("a"), 1.0),
                (member("a", "old").namespace("b"), 1.0),
                id="namespace-first",
            ),
        ],
    )
    def test_order(self, a: tuple[PodBuilder, float], b: tuple[PodBuilder, float]) -> None:
        handle = FakeHandle()
        handle.watch(make_pod_group("old").created(100.0).obj())
        handle.watch(make_pod_group("new").created(200.0).obj())
        first, second = (QueuedPodInfo(p.obj(), 0.0, initial_attempt=t) for p, t in (a, b))
        assert self.less(handle, first, second)

    def test_a_failed_group_goes_behind_younger_ones_until_it_succeeds(self) -> None:
        loop = GangLoop()
        failed, young = members(2, "failed"), members(1, "young")
        loop.add(make_pod_group("failed", 2).created(100.0).obj(), *failed)
        loop.add(make_pod_group("young", 1).created(500.0).obj(), *young)
        infos = [QueuedPodInfo(pod, initial_attempt=0.0) for pod in (failed[0], young[0])]
        assert loop.plugin.less(*infos)
        loop.schedule(failed[0])
        loop.advance(60)
        assert not loop.plugin.less(*infos)
        for pod in failed:
            loop.schedule(pod)
        assert loop.plugin.less(*infos)


class TestPreFilter:
    def pre_filter(self, loop: GangLoop, pod: Pod) -> str:
        result, status = loop.plugin.pre_filter(CycleState(), pod, loop.handle.nodes)
        assert result is None
        # Never plain Unschedulable: preemption must not be tried.
        assert status.code.label in ("Success", "UnschedulableAndUnresolvable")
        return status.message

    @pytest.mark.parametrize(
        "pod",
        [
            pytest.param(make_pod("single"), id="no-label"),
            pytest.param(member("orphan", "nowhere"), id="no-such-group"),
        ],
    )
    def test_pods_without_a_gang_pass(self, pod: PodBuilder) -> None:
        assert self.pre_filter(GangLoop(), pod.obj()) == ""

    def test_too_few_siblings(self) -> None:
        loop, pods = gang_of(2)
        loop.add(make_pod_group("gang", 3).obj())
        assert self.pre_filter(loop, pods[0]) == (
            "pre-filter pod gang-0 cannot find enough sibling pods, "
            "current pods number: 2, minMember of group: 3"
        )

    def test_members_of_another_namespace_do_not_count(self) -> None:
        loop, pods = gang_of(2)
        loop.add(make_pod_group("gang", 3).obj(), member("x").namespace("other").obj())
        assert "cannot find enough sibling pods" in self.pre_filter(loop, pods[0])

    def test_members_that_have_ended_do_not_count(self) -> None:
        loop, pods = gang_of(2)
        loop.add(member("gang-1").phase("Succeeded").obj())
        assert "cannot find enough sibling pods" in self.pre_filter(loop, pods[0])

    def test_gated_members_count_as_missing(self) -> None:
        loop, pods = gang_of(3)
        loop.add(member("gang-2").gate("a.b/wait").obj())
        assert self.pre_filter(loop, pods[0]) == (
            "pre-filter pod gang-0 waits for gated pods in the same PodGroup, "
            "ungated pods number: 2, minMember of group: 3"
        )

    @pytest.mark.parametrize(
        "wanted, gap",
        [
            pytest.param({"cpu": "4"}, "", id="just-enough"),
            pytest.param({"cpu": "4500m", "memory": "200Gi"}, "cpu 500m, memory 100Gi", id="gap"),
            pytest.param({"example.com/gpu": "1"}, "example.com/gpu 1", id="nobody-offers-it"),
        ],
    )
    def test_min_resources(self, wanted: dict[str, str], gap: str) -> None:
        loop, pods = gang_of(2, cpu="4")
        loop.add(make_pod_group("gang", 2).min_resources(wanted).obj())
        assert self.pre_filter(loop, pods[0]) == (f"resource gap: {gap}" if gap else "")

    def test_min_resources_counts_room_for_the_pods_themselves(self) -> None:
        loop, pods = gang_of(2)
        loop.handle.cache.update_node(make_node("n").allocatable(cpu="9", pods="1").obj())
        loop.handle.refresh()
        loop.add(make_pod_group("gang", 2).min_resources(cpu="1").obj())
        assert self.pre_filter(loop, pods[0]) == "resource gap: pods 1"

    def test_min_resources_does_not_hold_the_gangs_own_pods_against_it(self) -> None:
        loop, pods = gang_of(3, cpu="3")
        loop.schedule(pods[0])
        loop.add(make_pod_group("gang", 3).min_resources(cpu="3").obj())
        assert self.pre_filter(loop, pods[1]) == ""

    def test_an_overcommitted_node_takes_nothing_from_others(self) -> None:
        loop, pods = gang_of(2, cpu="1")
        loop.handle.bind(make_pod("fat").req(cpu="50").node("n").obj())
        loop.handle.cache.add_node(make_node("m").allocatable(cpu="2").obj())
        loop.handle.refresh()
        loop.add(make_pod_group("gang", 2).min_resources(cpu="2").obj())
        assert self.pre_filter(loop, pods[0]) == ""

    def test_min_resources_that_were_there_are_believed_for_the_permit_time(self) -> None:
        loop, pods = gang_of(2, {"permitWaitingTimeSeconds": 30}, cpu="4")
        loop.add(make_pod_group("gang", 2).min_resources(cpu="4").obj())
        assert self.pre_filter(loop, pods[0]) == ""
        loop.handle.bind(make_pod("thief").req(cpu="4").node("n").obj())
        loop.handle.refresh()
        loop.handle.clock.advance(29)
        assert self.pre_filter(loop, pods[1]) == ""
        loop.handle.clock.advance(1)
        assert self.pre_filter(loop, pods[1]) == "resource gap: cpu 4"

    def test_a_gang_in_backoff(self) -> None:
        loop, pods = gang_of(3, {"podGroupBackoffSeconds": 20})
        loop.fail_filter(pods[0])
        assert self.pre_filter(loop, pods[1]) == "podGroup default/gang failed recently"
        loop.handle.clock.advance(20)
        assert self.pre_filter(loop, pods[1]) == ""


class TestPermit:
    def test_a_pod_without_a_gang_is_bound_at_once(self) -> None:
        assert GangLoop().schedule(make_pod("single").obj()) == "bound"

    def test_a_label_without_its_group_is_rejected(self) -> None:
        assert GangLoop().schedule(member("orphan", "nowhere").obj()) == "PodGroup not found"

    def test_all_or_nothing(self) -> None:
        loop, pods = gang_of(3)
        assert [loop.schedule(pod) for pod in pods[:2]] == ["waiting", "waiting"]
        assert loop.bound == []
        assert loop.schedule(pods[2]) == "bound"
        assert sorted(loop.bound) == ["gang-0", "gang-1", "gang-2"]

    def test_more_than_min_member_need_not_wait(self) -> None:
        loop, pods = gang_of(2)
        late = member("late").obj()
        loop.add(late)
        for pod in pods:
            loop.schedule(pod)
        assert loop.schedule(late) == "bound"

    def test_two_gangs_of_one_name_in_two_namespaces_are_two(self) -> None:
        loop, pods = gang_of(2)
        others = [member(f"gang-{i}").namespace("other").obj() for i in range(2)]
        loop.add(make_pod_group("gang", 2).namespace("other").obj(), *others)
        assert loop.schedule(pods[0]) == "waiting"
        assert loop.schedule(others[0]) == "waiting"
        assert loop.bound == []

    def test_only_the_first_member_activates_its_siblings(self) -> None:
        loop, pods = gang_of(3)
        loop.schedule(pods[1])
        assert loop.activated == ["default/gang-0", "default/gang-2"]
        loop.schedule(pods[0])
        assert loop.activated == []

    @pytest.mark.parametrize(
        "group_timeout, args, expected",
        [
            pytest.param(7, {"permitWaitingTimeSeconds": 30}, 7.0, id="of-the-group"),
            pytest.param(None, {"permitWaitingTimeSeconds": 30}, 30.0, id="of-the-arguments"),
            pytest.param(0, {"permitWaitingTimeSeconds": 30}, 30.0, id="zero-is-none"),
            pytest.param(None, {}, 60.0, id="default"),
            pytest.param(None, {"permitWaitingTimeSeconds": 0}, 60.0, id="zero-in-arguments"),
        ],
    )
    def test_how_long_it_waits(
        self, group_timeout: int | None, args: dict[str, int], expected: float
    ) -> None:
        loop, pods = gang_of(2, args)
        group = make_pod_group("gang", 2)
        loop.add((group if group_timeout is None else group.timeout(group_timeout)).obj())
        status, timeout = loop.plugin.permit(CycleState(), pods[0], "n")
        assert (status.is_wait, timeout) == (True, expected)
        assert status.message == "waits for its gang default/gang: 1 of 2 members have a node"

    def test_bound_members_count(self) -> None:
        loop, pods = gang_of(3)
        for pod in pods[:2]:
            loop.handle.bind(pod.with_node_name("n"))
        assert loop.schedule(pods[2]) == "bound"

    def test_a_deleted_member_counts_no_more(self) -> None:
        loop, pods = gang_of(3)
        loop.add(member("spare").obj())
        loop.handle.bind(pods[0].with_node_name("n"))
        loop.schedule(pods[1])
        loop.handle.informer("Pod").delete(pods[0].key)
        assert loop.schedule(pods[2]) == "waiting"

    def test_the_same_member_counts_once(self) -> None:
        loop, pods = gang_of(2)
        for _ in range(2):
            assert loop.plugin.permit(CycleState(), pods[0], "n")[0].is_wait


class TestPostFilter:
    def test_a_pod_without_a_gang(self) -> None:
        assert GangLoop().fail_filter(make_pod("single").obj()) == (None, unschedulable())

    def test_a_complete_gang_is_kept(self) -> None:
        loop, pods = gang_of(2)
        extra = member("extra").obj()
        loop.add(extra)
        for pod in pods:
            loop.schedule(pod)
        assert loop.fail_filter(extra) == (None, unschedulable())

    @pytest.mark.parametrize(
        "percentage, placed, kept",
        [
            pytest.param(10, 9, True, id="a-tenth-is-missing"),
            pytest.param(10, 8, False, id="two-tenths-are-missing"),
            pytest.param(50, 5, True, id="as-much-as-allowed"),
            pytest.param(0, 9, False, id="nothing-may-be-missing"),
            pytest.param(100, 0, True, id="never-given-up"),
        ],
    )
    def test_the_threshold(self, percentage: int, placed: int, kept: bool) -> None:
        loop, pods = gang_of(10, {"podGroupRejectPercentage": percentage})
        for pod in pods[:placed]:
            loop.schedule(pod)
        result, status = loop.fail_filter(pods[placed])
        assert result is None
        assert len(loop.waiting_names()) == (placed if kept else 0)
        assert status == (
            unschedulable()
            if kept
            else unschedulable(
                f"PodGroup default/gang gets rejected due to Pod gang-{placed} is unschedulable "
                "even after PostFilter"
            )
        )
        assert set(loop.turned_down.values()) <= {"optimistic rejection in PostFilter"}

    def test_it_stamps_the_failure_time(self) -> None:
        """So that the gang goes behind younger ones."""
        loop, pods = gang_of(2)
        young = members(1, "young")
        loop.add(make_pod_group("gang", 2).created(100.0).obj())
        loop.add(make_pod_group("young", 1).created(500.0).obj(), *young)
        infos = [QueuedPodInfo(pod, initial_attempt=0.0) for pod in (pods[0], young[0])]
        assert loop.plugin.less(*infos)
        loop.fail_filter(pods[0])
        assert not loop.plugin.less(*infos)

    def test_it_drops_the_permitted_mark(self) -> None:
        loop, pods = gang_of(2, cpu="4")
        loop.add(make_pod_group("gang", 2).min_resources(cpu="4").obj())
        loop.schedule(pods[0])
        loop.fail_filter(pods[1])
        loop.handle.bind(make_pod("thief").req(cpu="4").node("n").obj())
        loop.handle.refresh()
        assert loop.schedule(pods[0]) == "resource gap: cpu 4"

    def test_backoff_is_off_by_default(self) -> None:
        loop, pods = gang_of(3)
        loop.fail_filter(pods[0])
        assert loop.schedule(pods[0]) == "waiting"

    def test_backoff_needs_enough_pods(self) -> None:
        loop, pods = gang_of(3, {"podGroupBackoffSeconds": 20})
        loop.add(make_pod_group("gang", 4).obj())
        loop.fail_filter(pods[0])
        loop.add(make_pod_group("gang", 3).obj())
        assert loop.schedule(pods[0]) == "waiting"

    def test_other_gangs_are_left_alone(self) -> None:
        loop, pods = gang_of(3)
        others = members(2, "other")
        loop.add(make_pod_group("other", 2).obj(), *others)
        loop.schedule(others[0])
        loop.schedule(pods[0])
        loop.fail_filter(pods[1])
        assert loop.waiting_names() == ["other-0"]


class TestUnreserve:
    def test_one_expiry_cancels_the_whole_gang(self) -> None:
        loop, pods = gang_of(3)
        loop.schedule(pods[0])
        loop.handle.clock.advance(10)
        loop.schedule(pods[1])
        loop.advance(50)
        assert loop.waiting_names() == []
        assert loop.turned_down == {
            "gang-0": "rejected due to timeout after waiting 1m0s at plugin Coscheduling",
            "gang-1": "rejection in Unreserve",
        }

    def test_a_rejection_by_another_plugin_cancels_the_whole_gang(self) -> None:
        loop, pods = gang_of(3)
        for pod in pods[:2]:
            loop.schedule(pod)
        waiting = loop.waiting("gang-1")
        assert waiting is not None
        waiting.reject("Other", "somebody else says no")
        loop.settle()
        assert loop.turned_down == {
            "gang-1": "somebody else says no",
            "gang-0": "rejection in Unreserve",
        }

    def test_it_stamps_the_failure_time(self) -> None:
        loop, pods = gang_of(2)
        loop.schedule(pods[0])
        loop.advance(60)
        gang = loop.plugin._gangs.known("default/gang")
        assert gang is not None and gang.failed_at == loop.handle.clock.now()

    def test_a_cancelled_gang_starts_from_zero(self) -> None:
        loop, pods = gang_of(3)
        for pod in pods[:2]:
            loop.schedule(pod)
        loop.advance(60)
        assert loop.schedule(pods[2]) == "waiting"
        assert loop.activated == ["default/gang-0", "default/gang-1"]
        for pod in pods[:2]:
            loop.schedule(pod)
        assert sorted(loop.bound) == ["gang-0", "gang-1", "gang-2"]

    def test_members_that_are_being_turned_down_make_no_quorum(self) -> None:
        loop, pods = gang_of(3)
        for pod in pods[:2]:
            loop.schedule(pod)
        # The loop has not acted on the rejections yet.
        loop.plugin.unreserve(CycleState(), pods[0], "n")
        status, _ = loop.plugin.permit(CycleState(), pods[2], "n")
        assert status.is_wait

    def test_a_failed_binding_cancels_who_still_waits(self) -> None:
        loop, pods = gang_of(2)
        loop.add(make_pod_group("gang", 2).obj())
        for pod in pods:
            loop.schedule(pod)
        loop.add(make_pod_group("gang", 4).obj())
        late = [member("late").obj(), member("later").obj()]
        loop.add(*late)
        assert loop.schedule(late[0]) == "waiting"
        loop.fail_binding(pods[0])
        assert loop.turned_down == {"late": "rejection in Unreserve"}

    def test_it_is_idempotent_and_needs_no_reserve(self) -> None:
        loop, pods = gang_of(2)
        assert loop.plugin.reserve(CycleState(), pods[0], "n") == SUCCESS
        for pod in (pods[0], pods[0], make_pod("single").obj(), member("x", "nowhere").obj()):
            loop.plugin.unreserve(CycleState(), pod, "n")
        assert loop.schedule(pods[0]) == "waiting"

    def test_the_permitted_mark_is_dropped(self) -> None:
        loop, pods = gang_of(2, cpu="4")
        loop.add(make_pod_group("gang", 2).min_resources(cpu="4").obj())
        loop.schedule(pods[0])
        loop.advance(60)
        loop.handle.bind(make_pod("thief").req(cpu="4").node("n").obj())
        loop.handle.refresh()
        assert loop.schedule(pods[0]) == "resource gap: cpu 4"


class TestEvents:
    def test_siblings_and_the_group_wake_a_member(self) -> None:
        loop, pods = gang_of(3)
        for event in (UNSCHEDULABLE_POD_ADD, ASSIGNED_POD_ADD):
            assert hint(loop.plugin, event, pods[0], None, pods[1]) == "Queue"
            assert hint(loop.plugin, event, pods[0], None, make_pod("other").obj()) == "Skip"
        group, other = make_pod_group("gang", 9).obj(), make_pod_group("other").obj()
        assert hint(loop.plugin, GROUP_CHANGED, pods[0], None, group) == "Queue"
        assert hint(loop.plugin, GROUP_CHANGED, pods[0], None, other) == "Skip"

    def test_room_wakes_a_gang_that_failed_at_min_resources_only(self) -> None:
        loop, pods = gang_of(2, cpu="1")
        gone, node = make_pod("gone").node("n").obj(), make_node("new").obj()
        for event, old, new in (
            (ASSIGNED_POD_DELETE, gone, None),
            (NODE_ADD, None, node),
            (TAINT_CHANGED, node, node),
        ):
            loop.add(make_pod_group("gang", 2).obj())
            assert loop.plugin.pre_filter(CycleState(), pods[0], loop.handle.nodes)[1].is_success
            assert hint(loop.plugin, event, pods[0], old, new) == "Skip"
            loop.add(make_pod_group("gang", 2).min_resources(cpu="9").obj())
            assert loop.schedule(pods[0]).startswith("resource gap")
            assert hint(loop.plugin, event, pods[0], old, new) == "Queue"

    def test_a_sign_of_life_wakes_a_gang_whose_backoff_has_ended(self) -> None:
        loop, pods = gang_of(3, {"podGroupBackoffSeconds": 20})
        loop.fail_filter(pods[0])
        loop.schedule(pods[1])
        gone = make_pod("gone").node("n").obj()
        assert hint(loop.plugin, ASSIGNED_POD_DELETE, pods[1], gone) == "Skip"
        loop.handle.clock.advance(20)
        assert hint(loop.plugin, ASSIGNED_POD_DELETE, pods[1], gone) == "Queue"


@pytest.mark.parametrize(
    "args, message",
    [
        pytest.param(
            {"permitWaitingTimeSeconds": -1},
            "permitWaitingTimeSeconds: Invalid value: -1: not in valid range [0, inf)",
            id="negative-wait",
        ),
        pytest.param(
            {"podGroupBackoffSeconds": -1},
            "podGroupBackoffSeconds: Invalid value: -1: not in valid range [0, inf)",
            id="negative-backoff",
        ),
        pytest.param(
            {"podGroupRejectPercentage": 101},
            "podGroupRejectPercentage: Invalid value: 101: not in valid range [0, 100]",
            id="percentage",
        ),
        pytest.param(
            {"podGroupRejectPercentage": -1},
            "podGroupRejectPercentage: Invalid value: -1: not in valid range [0, 100]",
            id="negative-percentage",
        ),
    ],
)
def test_bad_arguments(args: dict[str, int], message: str) -> None:
    with pytest.raises(PluginConfigError) as raised:
        Coscheduling(args, FakeHandle())
    assert str(raised.value) == message


def test_default_arguments() -> None:
    assert CoschedulingArgs.read({}) == CoschedulingArgs(60, 0, 10)


def test_gangs_that_are_gone_are_forgotten() -> None:
    loop = GangLoop()
    for i in range(300):
        name = f"g{i}"
        pods = members(2, name)
        loop.add(make_pod_group(name, 2).obj(), *pods)
        loop.schedule(pods[0])
        loop.advance(60)
        loop.handle.informer("PodGroup").delete(f"default/{name}")
        for pod in pods:
            loop.handle.informer("Pod").delete(pod.key)
    assert len(loop.plugin._gangs._gangs) <= 65
