"""Scheduling attempts: the next pod of the queue gets its cycle, which is numbered and told.

Scheduler thread only.
"""

from __future__ import annotations

from collections.abc import Callable

from scheduler_core.api import Pod
from scheduler_core.cycle_record import cycle_record
from scheduler_core.framework.status import Status
from scheduler_core.framework.types import QueuedPodInfo
from scheduler_core.metrics import SchedulerMetrics
from scheduler_core.observers import ObserverSet
from scheduler_core.plugins.helpers.gangs import quorum_plugin
from scheduler_core.pod_cycle import PodCycle
from scheduler_core.records import Outcome, QueueDepths, WaitingPodRecord
from scheduler_core.schedule_one import Parts, SchedulingCycle
from scheduler_core.schedule_one_podgroup import PodGroupCycle
from scheduler_core.waiting_room import WaitingRoom

__all__ = ["SchedulingAttempts"]


class SchedulingAttempts:
    """kube-scheduler's ``ScheduleOne``: a pod, or a native gang as a whole.

    Args:
        scheduling: the cycle of a pod alone.
        groups: the cycle of a native gang; None where no profile has them.
        waiting_room: knows what people approved of pods that are tried again.
        depths: pods in each place, for records.
        retry: False: a pod that does not fit is dropped from the queue.
        sequence: number of the first cycle.

    Attributes:
        sequence: number of the next cycle.
    """

    def __init__(
        self,
        parts: Parts,
        scheduling: SchedulingCycle,
        groups: PodGroupCycle | None,
        waiting_room: WaitingRoom,
        observers: ObserverSet,
        metrics: SchedulerMetrics | None,
        depths: Callable[[], QueueDepths],
        *,
        retry: bool,
        sequence: int,
    ) -> None:
        self._queue = parts.queue
        self._scheduling = scheduling
        self._groups = groups
        self._waiting_room = waiting_room
        self._observers = observers
        self._metrics = metrics
        self._depths = depths
        self._retry = retry
        self.sequence = sequence

    def schedule_next(self) -> bool:
        """Try the first pod of activeQ; whether there was one."""
        info = self._queue.pop()
        if info is None:
            return False
        self.attempt(info)
        return True

    def attempt(self, info: QueuedPodInfo) -> None:
        """Try a pod that was popped; of a native gang, the whole of it."""
        if self._groups is not None and self._groups.takes(info.pod):
            cycles = self._groups.run(info, self.sequence)
            for cycle in cycles:
                self._record(cycle)
        else:
            alone = self.schedule(info, self._waiting_room.carried(info.pod.uid))
            cycles = [alone] if alone is not None else []
        for cycle in cycles:
            self._waiting_room.tried_again(cycle)

    def schedule(self, info: QueuedPodInfo, before: WaitingPodRecord | None) -> PodCycle | None:
        """The cycle of one pod; None where it needs none.

        Args:
            before: the wait of which this attempt is the continuation; its node is tried first.
        """
        runs = before is not None and self.gang_runs(info.pod, before)
        cycle = self._scheduling.run(info, self.sequence, before, runs)
        if cycle is not None:
            self._record(cycle)
        return cycle

    def turn_down(self, info: QueuedPodInfo, status: Status) -> None:
        """A cycle that ends before it begins: somebody has said no already."""
        self._record(self._scheduling.turn_down(info, self.sequence, status))

    def record_advice(self, cycle: PodCycle) -> None:
        """Tell of a decision that was made for another scheduler."""
        cycle.sequence = self.sequence
        self.sequence += 1
        if self._observers.wants("cycle_finished"):
            self._observers.tell("cycle_finished", cycle_record(cycle, self._depths()))

    def gang_runs(self, pod: Pod, before: WaitingPodRecord) -> bool:
        """It was let go with its gang, of which a part is bound: whatever has become of the others,
        the quorum is no question any more."""
        directory = self._waiting_room.directory
        gang = directory.gang_of(pod)
        if gang is None or not (before.let_go and before.needs_approval):
            return False
        if any(item.plugin == quorum_plugin(gang.kind) for item in before.pending):
            return False  # it was not reached yet: somebody else has bound that one
        members = directory.members(gang)
        return any(member.node_name and member.uid != pod.uid for member in members)

    def _record(self, cycle: PodCycle) -> None:
        self.sequence += 1
        if not self._retry and cycle.outcome in (Outcome.UNSCHEDULABLE, Outcome.ERROR):
            self._queue.delete(cycle.pod)
        if self._observers.wants("cycle_finished"):
            self._observers.tell("cycle_finished", cycle_record(cycle, self._depths()))
        if self._metrics is not None:
            self._metrics.cycle_done(cycle)
