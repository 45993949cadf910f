"""What becomes of a pod that holds a node: it waits at Permit, its binding runs, or is held.

Scheduler thread only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from scheduler_core.api import Pod
from scheduler_core.binding_cycle import BindingCycle, BindingDone
from scheduler_core.cycle_record import binding_record
from scheduler_core.framework.runtime.waiting_pods import WaitingPodsMap
from scheduler_core.framework.status import Status, error
from scheduler_core.held_bindings import Backoff, HeldBindings
from scheduler_core.kept_first import Kept, KeptFirst
from scheduler_core.metrics import SchedulerMetrics
from scheduler_core.observers import ObserverSet
from scheduler_core.plugins.gang_scheduling import GangScheduling
from scheduler_core.plugins.helpers.gangs import GangId
from scheduler_core.pod_cycle import PodCycle
from scheduler_core.ports import Ledger, PodCondition
from scheduler_core.schedule_one import Parts
from scheduler_core.waiting_record import MANUAL_APPROVAL
from scheduler_core.waiting_room import WaitingRoom

__all__ = ["AfterPermit"]

NOT_BEGUN: Final = "the scheduler stopped before the binding began; the next one goes on"


class AfterPermit:
    """Owns the waiting room, and the bindings that are held; starts and ends binding cycles.

    Args:
        waiting_pods: the map that plugins see through their handle.
        ledger: keeps what observers are told; None: nobody does.
        post: puts a message on the scheduler's inbox; called on any thread.
        backoff: between two tries of a binding that is held.
        undo: gives a cycle's node back and requeues its pod, with the reason.

    Attributes:
        waiting_room: pods parked at Permit.
        kept_first: pods that people allowed, until that is kept; then they are bound.
        held: members of gangs whose binding is tried again.
        is_taking_up: the pod whose cycle runs waited before a restart.
    """

    def __init__(
        self,
        parts: Parts,
        binding: BindingCycle,
        waiting_pods: WaitingPodsMap,
        observers: ObserverSet,
        ledger: Ledger | None,
        post: Callable[[Kept], None],
        metrics: SchedulerMetrics | None,
        backoff: Backoff,
        undo: Callable[[PodCycle, Status], None],
    ) -> None:
        self._cache = parts.cache
        self._queue = parts.queue
        self._writer = parts.writer
        self._clock = parts.clock
        self._binding = binding
        self._pods = parts.informers.informer("Pod")
        self._nodes = parts.informers.informer("Node")
        self._waiting_pods = waiting_pods
        self._observers = observers
        self._metrics = metrics
        self._undo = undo
        self._not_begun: list[PodCycle] = []
        self.is_taking_up = False
        self.kept_first = KeptFirst(ledger, binding.start, post)
        self.waiting_room = WaitingRoom(
            waiting_pods,
            parts.informers,
            observers,
            parts.clock,
            is_assumed=parts.cache.is_assumed_pod,
            on_allowed=self.start_binding,
            on_rejected=self._reject_waiting,
            on_broken=lambda gang, text: self.held.gang_broken(gang, text),
            native=[n for n, fw in parts.profiles.items() if fw.has_plugin(GangScheduling.name)],
        )
        self.held = HeldBindings(
            self._pods,
            self._nodes,
            self.waiting_room.directory,
            parts.clock,
            backoff,
            is_on_its_way=self._is_on_its_way,
            retry=binding.retry,
            finish=self._end_binding,
            tell=self._tell_held,
        )

    # -- bindings --------------------------------------------------------------------------------

    def start_binding(self, cycle: PodCycle) -> None:
        """Every Permit plugin has allowed."""
        self._queue.done(cycle.pod.uid)
        if self._metrics is not None:
            self._metrics.binding_began()
        waiting = cycle.waiting
        asked = waiting is not None and MANUAL_APPROVAL in waiting.asked_plugins
        self.kept_first.start(cycle, was_asked=asked or self.is_taking_up)

    def begin_kept(self, message: Kept) -> None:
        """That they were let go is kept: their bindings begin. Keeping it takes a moment, and as
        long as the ledger is away; what changed meanwhile is looked at first, of a gang all at
        once, so that it is not bound in part."""
        cycles = self.kept_first.kept(message)
        own = {cycle.pod.uid: self._lost_meanwhile(cycle) for cycle in cycles}
        reasons = {**self._of_siblings(cycles, own), **{u: why for u, why in own.items() if why}}
        # Whose own loss it is comes last: where its node is gone the whole gang is broken.
        for cycle in sorted(cycles, key=lambda cycle: bool(own[cycle.pod.uid])):
            reason = reasons.get(cycle.pod.uid)
            if reason is None:
                self._binding.start(cycle)
                continue
            self._end_binding(cycle, error(reason))
            if self._is_gone(cycle.pod):
                self.waiting_room.remove(cycle.pod)
        for uid, reason in reasons.items():
            self.waiting_room.give_up(uid, reason)

    def _lost_meanwhile(self, cycle: PodCycle) -> str:
        """Why it cannot be bound any more; "" where it can."""
        if self._is_gone(cycle.pod):
            return f"{cycle.pod.key} was deleted before it was bound"
        if self._nodes.get(cycle.node_name) is None:
            return f"node {cycle.node_name} was deleted before {cycle.pod.key} was bound"
        if self.waiting_room.has_lost_its_group(cycle.pod.uid):
            return f"the PodGroup of {cycle.pod.key} was deleted before it was bound"
        return ""

    def _of_siblings(self, cycles: Sequence[PodCycle], own: Mapping[str, str]) -> dict[str, str]:
        """Members of gangs that cannot go either, because another one cannot: its node is gone, or
        it is, and without it they are too few."""
        directory = self.waiting_room.directory
        gangs: defaultdict[GangId, list[PodCycle]] = defaultdict(list)
        for cycle in cycles:
            gang = directory.gang_of(cycle.pod)
            if gang is not None:
                gangs[gang].append(cycle)
        found: dict[str, str] = {}
        for gang, members in gangs.items():
            lost = [cycle for cycle in members if own[cycle.pod.uid]]
            if not lost:
                continue
            left = sum(
                1
                for pod in directory.members(gang)
                if not own.get(pod.uid) and (pod.node_name or self._is_on_its_way(pod))
            )
            if left < directory.min_member(gang) or not all(self._is_gone(c.pod) for c in lost):
                found.update((cycle.pod.uid, own[lost[0].pod.uid]) for cycle in members)
        return found

    def _is_gone(self, pod: Pod) -> bool:
        found: Pod | None = self._pods.get(pod.key)
        return found is None or found.uid != pod.uid

    def finish_binding(self, done: BindingDone) -> None:
        """A binding has ended: so does its cycle, or the binding is held."""
        status = self.held.ended(done.cycle, done.status)
        if status is None:
            return
        done.untold |= status.is_success and not done.status.is_success
        done.status = status
        self._binding.tell(done)
        self._end_binding(done.cycle, status)

    def begin_no_more(self) -> None:
        """The scheduler stops: bindings that have not begun are left to the next one."""
        self._not_begun += self.kept_first.give_up()

    def give_up(self) -> None:
        """The scheduler has stopped: end bindings that have not begun, and those that are held.
        Nothing of it is written to a cluster that is away."""
        self.begin_no_more()
        not_begun, self._not_begun = self._not_begun, []
        for cycle in not_begun:
            self._binding_over(cycle, error(NOT_BEGUN))
        for cycle, status in self.held.give_up():
            self._binding_over(cycle, status)

    def _reject_waiting(self, cycle: PodCycle, status: Status) -> None:
        self._undo(cycle, status)
        if self._metrics is not None:
            self._metrics.attempt_ended(cycle, status, self._clock.now())

    def _end_binding(self, cycle: PodCycle, status: Status) -> None:
        if not status.is_success:
            self._undo(cycle, status)
        self._binding_over(cycle, status)

    def _binding_over(self, cycle: PodCycle, status: Status) -> None:
        self.waiting_room.binding_finished(cycle, status)
        if cycle.state.pods_to_activate:
            pods, cycle.state.pods_to_activate = cycle.state.pods_to_activate, {}
            self._queue.activate(pods.values())
        self._observers.tell(
            "binding_finished",
            binding_record(
                cycle, status.is_success, status.message, status.plugin, self._clock.now()
            ),
        )
        if self._metrics is not None:
            self._metrics.attempt_ended(cycle, status, self._clock.now())

    # -- gangs whose members are not all bound ---------------------------------------------------

    def _is_on_its_way(self, pod: Pod) -> bool:
        """It holds a node, and waits for nobody."""
        return self._cache.is_assumed_pod(pod) and self._waiting_pods.get(pod.uid) is None

    def _tell_held(self, cycle: PodCycle, failure: str, text: str) -> None:
        """On the pod, as of any binding that fails, and beside the approval that it had."""
        self._writer.emit_event(
            cycle.pod,
            type="Warning",
            reason="FailedScheduling",
            action="Binding",
            note=text,
            reporting_controller=cycle.framework.profile_name,
        )
        pod: Pod = self._pods.get(cycle.pod.key) or cycle.pod
        condition = PodCondition("PodScheduled", "False", "SchedulerError", text)
        self._writer.patch_status(pod, condition, cycle.node_name)
        self.waiting_room.binding_held(cycle, failure, text)

    # -- what happens around ---------------------------------------------------------------------

    def waiting_pod_deleted(self, pod: Pod) -> bool:
        """Whether it waited here, or its binding was held."""
        held = self.held.pod_deleted(pod)
        return self.waiting_room.remove(pod) or held

    def pod_bound(self, pod: Pod) -> None:
        """Whoever bound it."""
        self.held.pod_bound(pod)
        self.waiting_room.bound(pod)

    def node_deleted(self, name: str) -> None:
        """Pods that hold the node are told."""
        self.held.node_deleted(name)
        self.waiting_room.node_deleted(name)
