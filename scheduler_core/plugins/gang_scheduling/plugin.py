"""GangScheduling of kube-scheduler 1.36 (alpha there): the pods of a native PodGroup are bound when
minCount of them can be, or none is.

Pods name their group in ``spec.schedulingGroup.podGroupName``. PreEnqueue keeps them from the queue
until minCount of them exist; then the scheduler tries the group as a whole
(``schedule_one_podgroup``), and Permit says whether enough of it found a node. Where a member comes
to Permit on its own, as after a restart, it waits there for the others.

One thing differs from the reference. When a member is lost between Permit and its binding (denied,
timed out, not bound) so that fewer than minCount are left, the members that still wait are turned
down as well: the reference would bind them, and leave a part of the gang running.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from scheduler_core.api import NativePodGroup, Pod
from scheduler_core.api.native.membership import group_key
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
    PreEnqueuePlugin,
    ReservePlugin,
)
from scheduler_core.framework.status import SUCCESS, Status, error, unresolvable, wait
from scheduler_core.plugins.gang_scheduling.members import Members
from scheduler_core.plugins.helpers.hints import queue_if

__all__ = ["LOST_A_MEMBER", "PERMIT_TIMEOUT", "GangScheduling"]

#: Seconds that a member waits for the others; nobody can set another time.
PERMIT_TIMEOUT: Final = 300.0

NOT_ENOUGH_KNOWN: Final = "waiting for minCount pods from a gang to appear in scheduling queue"
NOT_ENOUGH_PLACED: Final = "waiting for minCount pods from a gang to be scheduled"
LOST_A_MEMBER: Final = "the gang has lost a member and is below its minCount"


class GangScheduling(EnqueueExtensions, PreEnqueuePlugin, ReservePlugin, PermitPlugin):
    """Enable it at multiPoint: Reserve does the counting that Permit decides by. No arguments."""

    name = "GangScheduling"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._members = Members(handle)
        self._handle = handle

    # -- PreEnqueue ------------------------------------------------------------------------------

    def pre_enqueue(self, pod: Pod) -> Status:
        """Hold the pod back until its PodGroup and minCount pods of it are there."""
        key = group_key(pod)
        if not key:
            return SUCCESS
        group = self._members.group(key)
        if group is None:
            name = pod.scheduling_group
            return unresolvable(
                f'waiting for pods\'s pod group "{name}" to appear in scheduling queue'
            )
        if len(self._members.known(key)) < group.min_count:
            return unresolvable(NOT_ENOUGH_KNOWN)
        return SUCCESS

    # -- Reserve ---------------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        if pod.scheduling_group:
            self._members.reserve(pod)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        if not pod.scheduling_group:
            return
        self._members.unreserve(pod)
        if not state.pod_group_cycle:
            self._give_up_what_is_left(group_key(pod))

    def _give_up_what_is_left(self, key: str) -> None:
        group = self._members.group(key)
        if group is None or len(self._members.scheduled(key)) >= group.min_count:
            return
        for waiting in list(self._members.waiting(key)):
            waiting.reject(self.name, LOST_A_MEMBER)
            # At once, not at its own Unreserve: it must not make up a quorum in between.
            self._members.unreserve(waiting.pod)

    # -- Permit ----------------------------------------------------------------------------------

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        """Success once minCount pods are assumed or bound, which releases those that wait."""
        key = group_key(pod)
        if not key:
            return SUCCESS, 0.0
        group = self._members.group(key)
        if group is None:
            name = pod.scheduling_group
            return error(
                f'failed to get podGroup {key}: podgroup.scheduling.k8s.io "{name}" not found'
            ), 0.0
        if not group.spec.is_gang:
            return SUCCESS, 0.0
        placed = self._members.scheduled(key) | {pod.uid}
        if len(placed) < group.min_count and state.gang_runs:
            return SUCCESS, 0.0
        if len(placed) < group.min_count:
            self._ask_for_the_others(state, key, pod)
            return wait(NOT_ENOUGH_PLACED), PERMIT_TIMEOUT
        if not state.pod_group_cycle:
            for waiting in list(self._members.waiting(key)):
                waiting.allow(self.name)
        return SUCCESS, 0.0

    def _ask_for_the_others(self, state: CycleState, key: str, pod: Pod) -> None:
        """Have the members that hold no node tried right after this one. In the group's own cycle
        they are being tried already."""
        if state.pod_group_cycle:
            return
        others = self._members.unscheduled(key)
        self._handle.activate({p.key: p for p in others if p.uid != pod.uid})

    # -- events ----------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """A new sibling, the group's PodGroup; and a lower minCount, which Kubernetes 1.37 has."""
        pod, group = EventResource.POD, EventResource.NATIVE_POD_GROUP
        changed = ActionType.ADD | ActionType.UPDATE
        return (
            ClusterEventWithHint(ClusterEvent(pod, ActionType.ADD), _after_pod_add),
            ClusterEventWithHint(ClusterEvent(group, changed), _after_group_change),
        )


def _after_pod_add(pod: Pod, _old: Any, new: Any) -> QueueingHint:
    key = group_key(pod)
    return queue_if(bool(key) and isinstance(new, Pod) and group_key(new) == key)


def _after_group_change(pod: Pod, old: Any, new: Any) -> QueueingHint:
    if not isinstance(new, NativePodGroup) or new.key != group_key(pod):
        return QueueingHint.SKIP
    if not isinstance(old, NativePodGroup) or old.uid != new.uid:
        return QueueingHint.QUEUE
    return queue_if(new.min_count < old.min_count)
