"""Coscheduling of kubernetes-sigs/scheduler-plugins: the members of a PodGroup
(scheduling.x-k8s.io) are bound together, or none is.

A member that fits waits at Permit and holds its node until minMember members hold one. It counts
as soon as it has passed Permit here, also while another plugin (ManualApproval) has it wait, so a
gang is complete before a person has decided. Whatever ends the wait of one member otherwise - a
timeout, a denial, a failed binding - unreserves it, and that turns down all waiting members.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from scheduler_core.api import Pod, PodGroup
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from scheduler_core.framework.interface import (
    EnqueueExtensions,
    Handle,
    PermitPlugin,
    PostFilterPlugin,
    PreFilterPlugin,
    QueueSortPlugin,
    ReservePlugin,
    WaitingPod,
)
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.status import SUCCESS, Status, unresolvable, unschedulable, wait
from scheduler_core.framework.types import PostFilterResult, PreFilterResult, QueuedPodInfo
from scheduler_core.plugins.coscheduling.args import CoschedulingArgs
from scheduler_core.plugins.coscheduling.gangs import Gangs, Stall
from scheduler_core.plugins.coscheduling.min_resources import describe_gap, resource_gap
from scheduler_core.plugins.helpers.hints import queue_if, queue_own_gang

__all__ = ["Coscheduling"]

#: Seconds to wait where neither the PodGroup nor the arguments say how long.
_DEFAULT_WAIT: Final = 60.0


class Coscheduling(
    EnqueueExtensions,
    QueueSortPlugin,
    PreFilterPlugin,
    PostFilterPlugin,
    ReservePlugin,
    PermitPlugin,
):
    """Args: ``permitWaitingTimeSeconds``, ``podGroupBackoffSeconds``, ``podGroupRejectPercentage``.

    Raises:
        PluginConfigError: a negative number, or a percentage above 100.
    """

    name = "Coscheduling"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._args = CoschedulingArgs.read(args)
        self._handle = handle
        self._gangs = Gangs(handle)

    # -- QueueSort -------------------------------------------------------------------------------

    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        """Higher priority, then the older gang, then the name, so that members stay together.

        A gang that failed goes by the time of its failure, behind those that have not been tried.
        """
        if a.pod.priority != b.pod.priority:
            return a.pod.priority > b.pod.priority
        time_a, time_b = self._queue_time(a), self._queue_time(b)
        if time_a != time_b:
            return time_a < time_b
        return a.key < b.key

    def _queue_time(self, info: QueuedPodInfo) -> float:
        own = info.timestamp if info.initial_attempt is None else info.initial_attempt
        group = self._gangs.group_of(info.pod)
        if group is None:
            return own
        gang = self._gangs.known(group.key)
        if gang is not None and gang.failed_at is not None:
            return gang.failed_at
        return own if group.creation_timestamp is None else group.creation_timestamp

    # -- PreFilter -------------------------------------------------------------------------------

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeInfos
    ) -> tuple[PreFilterResult | None, Status]:
        """Turn down at once a gang that cannot be complete. Never asks for preemption."""
        group = self._gangs.group_of(pod)
        if group is None or state.gang_runs:
            return None, SUCCESS
        gang = self._gangs.memory(group.key)
        now = self._handle.clock.now()
        if now < gang.backoff_until:
            gang.stall = Stall.BACKOFF
            return None, unresolvable(f"podGroup {group.key} failed recently")
        gang.stall = Stall.NONE
        status = self._check_members(pod, group)
        if status.is_success and group.min_resources is not None and now >= gang.fits_until:
            status = self._check_resources(group, nodes, now)
        return None, status

    def _check_members(self, pod: Pod, group: PodGroup) -> Status:
        members = self._gangs.members(group.key)
        if len(members) < group.min_member:
            return unresolvable(
                f"pre-filter pod {pod.name} cannot find enough sibling pods, "
                f"current pods number: {len(members)}, minMember of group: {group.min_member}"
            )
        free = sum(not member.scheduling_gates for member in members)
        if free < group.min_member:
            return unresolvable(
                f"pre-filter pod {pod.name} waits for gated pods in the same PodGroup, "
                f"ungated pods number: {free}, minMember of group: {group.min_member}"
            )
        return SUCCESS

    def _check_resources(self, group: PodGroup, nodes: NodeInfos, now: float) -> Status:
        gang = self._gangs.memory(group.key)
        gap = resource_gap(group, nodes, self._gangs.placed_nodes(group.key).values())
        if gap:
            gang.stall = Stall.RESOURCE_GAP
            return unresolvable(f"resource gap: {describe_gap(gap)}")
        gang.fits_until = now + self._args.permit_waiting_time
        return SUCCESS

    # -- Permit ----------------------------------------------------------------------------------

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        """Wait for the quorum; the member that makes it up releases the others."""
        if not pod.pod_group_key:
            return SUCCESS, 0.0
        group = self._gangs.group_of(pod)
        if group is None:
            return unschedulable("PodGroup not found"), 0.0
        placed = self._gangs.place(group.key, pod, node_name)
        if placed >= group.min_member:
            self._gangs.memory(group.key).failed_at = None
            for waiting in self._waiting_members(group.key):
                waiting.allow(self.name)
            return SUCCESS, 0.0
        if state.gang_runs:
            return SUCCESS, 0.0
        if placed == 1:
            self._ask_for_siblings(state, pod, group)
        text = f"waits for its gang {group.key}: {placed} of {group.min_member} members have a node"
        return wait(text), self._timeout(group)

    def _timeout(self, group: PodGroup) -> float:
        return float(
            group.schedule_timeout_seconds or self._args.permit_waiting_time or _DEFAULT_WAIT
        )

    def _ask_for_siblings(self, state: CycleState, pod: Pod, group: PodGroup) -> None:
        """Have the other members tried right after this one, past their backoff."""
        for member in self._gangs.members(group.key):
            if member.uid != pod.uid and not member.node_name:
                state.pods_to_activate[member.key] = member

    # -- PostFilter ------------------------------------------------------------------------------

    def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        """A member fits nowhere: give up the gang unless it is (nearly) complete."""
        group = self._gangs.group_of(pod)
        if group is None:
            return None, unschedulable()
        missing = group.min_member - len(self._gangs.placed_nodes(group.key))
        if missing <= 0 or missing * 100 <= self._args.reject_percentage * group.min_member:
            return None, unschedulable()
        self._give_up(group.key, "optimistic rejection in PostFilter")
        self._back_off(group)
        return None, unschedulable(
            f"PodGroup {group.key} gets rejected due to Pod {pod.name} is unschedulable "
            "even after PostFilter"
        )

    def _back_off(self, group: PodGroup) -> None:
        if self._args.backoff and len(self._gangs.members(group.key)) >= group.min_member:
            until = self._handle.clock.now() + self._args.backoff
            self._gangs.memory(group.key).backoff_until = until

    # -- Reserve ---------------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """One member lost its node: the gang loses all that have not been bound yet."""
        key = pod.pod_group_key
        gang = self._gangs.known(key) if key else None
        if gang is None:
            return
        gang.placed.pop(pod.uid, None)
        self._give_up(key, "rejection in Unreserve")

    def _give_up(self, key: str, message: str) -> None:
        gang = self._gangs.memory(key)
        for waiting in self._waiting_members(key):
            waiting.reject(self.name, message)
            # At once, not at its own Unreserve: it must not make up a quorum in between.
            gang.placed.pop(waiting.pod.uid, None)
        gang.fits_until = 0.0
        gang.failed_at = self._handle.clock.now()

    def _waiting_members(self, key: str) -> Iterator[WaitingPod]:
        """Members that wait at Permit; one that every plugin has allowed is on its way already."""
        # By uid, not over all waiting pods: there may be thousands of other gangs' pods.
        uids = [pod.uid for pod in self._gangs.members(key)]
        for uid in dict.fromkeys([*uids, *self._gangs.memory(key).placed]):
            waiting = self._handle.get_waiting_pod(uid)
            if waiting is not None and waiting.pending_plugins:
                yield waiting

    # -- events ----------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Besides a new sibling and a changed PodGroup: room in the cluster, for gangs that failed
        at minResources, and any such sign of life, for gangs whose backoff has ended."""
        pod, node = EventResource.POD, EventResource.NODE
        group = ClusterEvent(EventResource.POD_GROUP, ActionType.ADD | ActionType.UPDATE)
        # The taint event is registered, because it would be with "always Queue" otherwise.
        room = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE | ActionType.UPDATE_NODE_TAINT
        return (
            ClusterEventWithHint(ClusterEvent(pod, ActionType.ADD), self._after_pod_add),
            ClusterEventWithHint(group, queue_own_gang),
            ClusterEventWithHint(ClusterEvent(pod, ActionType.DELETE), self._after_room_change),
            ClusterEventWithHint(ClusterEvent(node, room), self._after_room_change),
        )

    def _after_pod_add(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        if isinstance(new, Pod) and new.pod_group_key == pod.pod_group_key:
            return QueueingHint.QUEUE
        return self._after_room_change(pod, old, new)

    def _after_room_change(self, pod: Pod, _old: Any, _new: Any) -> QueueingHint:
        gang = self._gangs.known(pod.pod_group_key)
        if gang is None:
            return QueueingHint.SKIP
        rested = gang.stall is Stall.BACKOFF and self._handle.clock.now() >= gang.backoff_until
        return queue_if(rested or gang.stall is Stall.RESOURCE_GAP)
