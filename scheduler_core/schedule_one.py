"""The scheduling cycle of one pod (kube-scheduler 1.36, ``schedulingCycle``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter

from scheduler_core.algorithm import NO_NODES_AVAILABLE, SchedulingAlgorithm
from scheduler_core.api import Pod
from scheduler_core.api_writer import ApiWriter
from scheduler_core.backend.cache import Cache, CacheError
from scheduler_core.backend.informers import Informers
from scheduler_core.backend.queue.scheduling_queue import SchedulingQueue
from scheduler_core.backend.snapshot import Snapshot
from scheduler_core.failure_handler import CLEAR_NOMINATION, FailureHandler, fit_error_of_one
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import ASSIGNED_POD_DELETE
from scheduler_core.framework.runtime.waiting_pods import PermitWait, go_duration
from scheduler_core.framework.status import Code, Status, error, unresolvable
from scheduler_core.framework.types import NominatingInfo, QueuedPodInfo
from scheduler_core.pod_cycle import PodCycle
from scheduler_core.ports import Clock
from scheduler_core.profile import Profiles
from scheduler_core.records import Outcome, WaitingPodRecord


@dataclass(frozen=True, slots=True)
class Parts:
    """The state that the cycles of a scheduler work on; the Scheduler owns it."""

    cache: Cache
    snapshot: Snapshot
    queue: SchedulingQueue
    informers: Informers
    profiles: Profiles
    writer: ApiWriter
    failures: FailureHandler
    clock: Clock


class SchedulingCycle:
    """From a popped pod to "assumed, reserved and permitted", "parked at Permit" or "requeued".

    Args:
        start_binding: takes over a cycle that passed Permit.
        park: takes over a cycle that has to wait at Permit.
    """

    def __init__(
        self,
        parts: Parts,
        algorithm: SchedulingAlgorithm,
        start_binding: Callable[[PodCycle], None],
        park: Callable[[PodCycle, list[PermitWait]], None],
    ) -> None:
        self._parts = parts
        self._algorithm = algorithm
        self._start_binding = start_binding
        self._park = park

    def run(
        self,
        info: QueuedPodInfo,
        sequence: int,
        restored: WaitingPodRecord | None = None,
        gang_runs: bool = False,
    ) -> PodCycle | None:
        """One scheduling cycle; None where the pod needs none (already assumed).

        ``restored`` is the wait that the pod was in before a restart: its node is tried first.
        ``gang_runs``: a part of its gang is bound, and it was let go with it.
        """
        started, pod = perf_counter(), info.pod
        framework = self._parts.profiles[pod.scheduler_name]
        cycle = PodCycle(sequence, info, pod, framework, self._parts.clock.now(), started)
        cycle.state.gang_runs = gang_runs
        if pod.deletion_timestamp is not None:
            self.skip_deleted(cycle)
            return cycle
        if self._parts.cache.is_assumed_pod(pod):
            self._parts.queue.done(pod.uid)
            return None
        self._parts.snapshot.update(self._parts.cache)
        # 1. Which node?
        preferred = restored.node if restored is not None else pod.nominated_node_name
        result = cycle.result = self._algorithm.schedule(
            framework,
            cycle.state,
            pod,
            percentage=self._parts.profiles.percentage(pod.scheduler_name),
            preferred_node=preferred,
        )
        if not result.status.is_success:
            self._no_node(cycle)
            return cycle
        cycle.algorithm_seconds = perf_counter() - started
        # 2. Take it: assume, Reserve, Permit.
        waits = self._take(cycle)
        if waits is None:
            return cycle
        self.proceed(cycle, waits)
        return cycle

    def proceed(self, cycle: PodCycle, waits: list[PermitWait]) -> None:
        """3. Bind, or wait."""
        if waits:
            cycle.outcome = Outcome.WAITING
            # So that others see where the pod is going; a failure clears it again.
            self._parts.writer.patch_status(cycle.pod, nominated_node_name=cycle.node_name)
            self._tell_waiting(cycle, waits)
            self._park(cycle, waits)
        else:
            self._start_binding(cycle)
        self._activate(cycle)

    def _tell_waiting(self, cycle: PodCycle, waits: list[PermitWait]) -> None:
        """For ``kubectl describe``; kube-scheduler says nothing until the wait has ended."""
        plugins = "; ".join(
            f"{wait.plugin} ({wait.reason or 'waits'}), at most {go_duration(wait.timeout)}"
            for wait in waits
        )
        self._parts.writer.emit_event(
            cycle.pod,
            type="Normal",
            reason="WaitingOnPermit",
            action="Scheduling",
            note=f"{cycle.node_name} is held for the pod, which is not bound yet: {plugins}",
            reporting_controller=cycle.framework.profile_name,
        )

    def turn_down(self, info: QueuedPodInfo, sequence: int, status: Status) -> PodCycle:
        """A cycle that ends before it begins: somebody has said no already."""
        started, pod = perf_counter(), info.pod
        framework = self._parts.profiles[pod.scheduler_name]
        cycle = PodCycle(sequence, info, pod, framework, self._parts.clock.now(), started)
        self._give_up(cycle, status)
        return cycle

    def try_node(self, pod: Pod, node_name: str, gang_runs: bool = False) -> Status:
        """Whether the pod fits on one node of the snapshot now: PreFilter and Filter alone."""
        framework = self._parts.profiles[pod.scheduler_name]
        node = framework.nodes.get(node_name)
        if node is None:
            return unresolvable("the node is gone")
        state = CycleState()
        state.gang_runs = gang_runs
        outcome = framework.run_pre_filter(state, pod)
        if not outcome.status.is_success:
            return outcome.status
        wanted = outcome.result.node_names
        if wanted is not None and node_name not in wanted:
            return unresolvable("the pod may no longer run there")
        return framework.run_filter_plugins_with_nominated_pods(state, pod, node)

    # -- steps -----------------------------------------------------------------------------------

    def skip_deleted(self, cycle: PodCycle) -> None:
        """The pod is going: it needs no node."""
        pod = cycle.pod
        cycle.outcome = Outcome.SKIPPED
        cycle.message = f"skip schedule deleting pod: {pod.key}"
        self._parts.writer.emit_event(
            pod,
            type="Warning",
            reason="FailedScheduling",
            action="Scheduling",
            note=cycle.message,
            reporting_controller=cycle.framework.profile_name,
        )
        self._parts.queue.done(pod.uid)

    def _no_node(self, cycle: PodCycle) -> None:
        result = cycle.result
        assert result is not None
        cycle.status = result.status
        cycle.fit_error = result.fit_error if result.status.is_rejected else None
        if cycle.fit_error is None or not len(result.nodes):
            cycle.algorithm_seconds = perf_counter() - cycle.started
            self._fail_without_post_filter(cycle)
            return
        nominating = self.post_filter(cycle)
        cycle.algorithm_seconds = perf_counter() - cycle.started
        self._parts.failures.handle(cycle, nominating)

    def _fail_without_post_filter(self, cycle: PodCycle) -> None:
        if cycle.fit_error is not None:  # an empty cluster: no plugin is recorded
            cycle.status = Status(cycle.status.code, (NO_NODES_AVAILABLE,))
            cycle.fit_error = None
        self._parts.failures.handle(cycle, CLEAR_NOMINATION)

    def post_filter(self, cycle: PodCycle) -> NominatingInfo:
        """Run PostFilter for a pod that fits nowhere; what it does to the nomination."""
        framework, fit = cycle.framework, cycle.fit_error
        assert fit is not None and fit.diagnosis.node_statuses is not None
        if not framework.post_filter_plugins:
            return CLEAR_NOMINATION
        result, status = framework.run_post_filter(
            cycle.state, cycle.pod, fit.diagnosis.node_statuses
        )
        fit.diagnosis.post_filter_message = status.message
        if result is None:
            return NominatingInfo()
        cycle.victims = result.victims
        return result.nominating

    def _take(self, cycle: PodCycle) -> list[PermitWait] | None:
        """Assume, Reserve, Permit. None: the cycle has failed and the pod is requeued."""
        framework, state = cycle.framework, cycle.state
        assert cycle.result is not None
        node_name = cycle.node_name = cycle.result.node_name
        assumed = cycle.assumed = cycle.pod.with_node_name(node_name)
        try:
            self._parts.cache.assume_pod(assumed)
        except CacheError as exc:
            cycle.assumed = None
            self._give_up(cycle, error(exc))
            return None
        self._parts.queue.nominator.delete(assumed)
        status = framework.run_reserve(state, assumed, node_name)
        if status.is_success:
            status, waits = framework.run_permit(state, assumed, node_name)
            if status.is_success:
                return waits
        self.undo(cycle, status)
        return None

    def undo(self, cycle: PodCycle, status: Status) -> None:
        """Give the node back after Reserve, Permit, or any part of the binding cycle failed:
        Unreserve in reverse order, forget, tell other pods that there is room, requeue."""
        assumed = cycle.assumed
        assert assumed is not None
        cycle.framework.run_unreserve(cycle.state, assumed, cycle.node_name)
        self._forget(assumed)
        if status.is_rejected:
            # The pod that was turned down must not be woken by its own leaving.
            self._give_up(cycle, status)
            self._room_was_made(assumed)
        else:
            self._room_was_made(assumed)
            self._give_up(cycle, status)

    def _forget(self, assumed: Pod) -> None:
        if self._parts.cache.is_assumed_pod(assumed):
            self._parts.cache.forget_pod(assumed)

    def _room_was_made(self, assumed: Pod) -> None:
        self._parts.queue.move_all_to_active_or_backoff_queue(
            ASSIGNED_POD_DELETE, assumed, None, pre_check=lambda pod: pod.uid != assumed.uid
        )

    def _give_up(self, cycle: PodCycle, status: Status) -> None:
        cycle.status = status
        rejected = status.is_rejected and status.code is not Code.ERROR
        cycle.fit_error = fit_error_of_one(cycle.pod, status) if rejected else None
        self._parts.failures.handle(cycle, CLEAR_NOMINATION)

    def _activate(self, cycle: PodCycle) -> None:
        pods: Mapping[str, Pod] = cycle.state.pods_to_activate
        if pods:
            cycle.state.pods_to_activate = {}
            self._parts.queue.activate(pods.values())
