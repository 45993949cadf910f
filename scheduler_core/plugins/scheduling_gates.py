"""SchedulingGates: a pod with scheduling gates does not enter activeQ (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler_core.api import Pod
from scheduler_core.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
)
from scheduler_core.framework.interface import EnqueueExtensions, PreEnqueuePlugin
from scheduler_core.framework.status import SUCCESS, Status, unresolvable
from scheduler_core.plugins.helpers.hints import queue_own_pod
from scheduler_core.plugins.helpers.stateless import StatelessPlugin

__all__ = ["SchedulingGates"]

_GATES_ELIMINATED = ClusterEvent(
    EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
)


class SchedulingGates(StatelessPlugin, EnqueueExtensions, PreEnqueuePlugin):
    """Holds a pod until its last gate is gone."""

    name = "SchedulingGates"

    def pre_enqueue(self, pod: Pod) -> Status:
        if not pod.scheduling_gates:
            return SUCCESS
        return unresolvable(f"waiting for scheduling gates: [{' '.join(pod.scheduling_gates)}]")

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (ClusterEventWithHint(_GATES_ELIMINATED, queue_own_pod),)
