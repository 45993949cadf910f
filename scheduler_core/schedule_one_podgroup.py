"""The scheduling cycle of a native pod group (kube-scheduler 1.36, ``schedule_one_podgroup.go``).

All queued members of a group are tried together on one snapshot: each is assumed and reserved in
its turn, so that the next one sees it, and all of it is taken back at the end. Only then, if enough
of them found a place, they are assumed again and go to Permit a second time, for good.

One step differs from the reference, for the sake of "all or none": the second run assumes all
feasible members before the first of them comes to Permit, and none is bound before Permit has seen
the last. The reference takes one member after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

from scheduler_core.algorithm import NO_NODES_AVAILABLE, SchedulingAlgorithm
from scheduler_core.api import NATIVE_POD_GROUP, NativePodGroup, Pod
from scheduler_core.api.native.membership import SCHEDULING_GROUP_INDEX, group_key
from scheduler_core.backend.cache import CacheError
from scheduler_core.failure_handler import CLEAR_NOMINATION, fit_error_of_one
from scheduler_core.framework.interface import Informer
from scheduler_core.framework.runtime.waiting_pods import PermitWait
from scheduler_core.framework.status import Code, Status, error, unschedulable
from scheduler_core.framework.types import NominatingInfo, QueuedPodInfo
from scheduler_core.plugins.gang_scheduling import GangScheduling
from scheduler_core.plugins.gang_scheduling.plugin import LOST_A_MEMBER
from scheduler_core.pod_cycle import PodCycle
from scheduler_core.pod_group_attempt import (
    GROUP_UNSCHEDULABLE,
    GroupAttempt,
    MemberAttempt,
    different_schedulers,
    in_turn,
)
from scheduler_core.pod_group_condition import GroupReason, PodGroupConditions
from scheduler_core.ports import Cluster, Executor
from scheduler_core.records import WaitingPodRecord
from scheduler_core.schedule_one import Parts, SchedulingCycle


def pod_group_cycle(
    parts: Parts,
    algorithm: SchedulingAlgorithm,
    single: SchedulingCycle,
    cluster: Cluster,
    executor: Executor,
    carried: Callable[[str], WaitingPodRecord | None],
    on_attempt: Callable[[str, str, float, float], None] | None,
) -> PodGroupCycle | None:
    """The cycle of groups, which writes their condition to the cluster on the executor.

    None where no profile has GangScheduling: then nobody watches native PodGroups either.
    """
    if not any(fw.has_plugin(GangScheduling.name) for fw in parts.profiles.values()):
        return None
    groups = parts.informers.informer(NATIVE_POD_GROUP)
    conditions = PodGroupConditions(cluster, executor, parts.clock, groups)
    pods = parts.informers.informer("Pod")
    return PodGroupCycle(parts, algorithm, single, pods, groups, conditions, carried, on_attempt)


class PodGroupCycle:
    """From one popped member to "its group is on its way", or "all of it is back in the queue".

    Args:
        single: the cycle of single pods, for what both have in common.
        pods, groups: informers of Pod and of the native PodGroup.
        carried: the wait that a pod (by uid) has an approval from, after a binding that failed; its
            node is tried first.
        on_attempt: hears of each cycle: profile, result (scheduled, unschedulable, error or
            waiting_on_preemption), seconds until places were found, and all its seconds.
    """

    def __init__(
        self,
        parts: Parts,
        algorithm: SchedulingAlgorithm,
        single: SchedulingCycle,
        pods: Informer,
        groups: Informer,
        conditions: PodGroupConditions,
        carried: Callable[[str], WaitingPodRecord | None],
        on_attempt: Callable[[str, str, float, float], None] | None = None,
    ) -> None:
        self._parts = parts
        self._algorithm = algorithm
        self._single = single
        self._pods = pods
        self._groups = groups
        self._conditions = conditions
        self._carried = carried
        self._on_attempt = on_attempt

    def takes(self, pod: Pod) -> bool:
        """Whether the pod is scheduled with its group: its profile has GangScheduling."""
        if not pod.scheduling_group:
            return False
        return self._parts.profiles[pod.scheduler_name].plugin(GangScheduling.name) is not None

    def run(self, info: QueuedPodInfo, sequence: int) -> list[PodCycle]:
        """One cycle of the group that a popped pod belongs to.

        Returns:
            The cycle of each member that was looked at, numbered from ``sequence``.
        """
        key, started = group_key(info.pod), perf_counter()
        infos = in_turn([info, *self._pop_siblings(key, info.pod)])
        cycles = [self._cycle(i, sequence + n) for n, i in enumerate(self._not_assumed(infos))]
        fault = different_schedulers(infos)
        if fault:
            for cycle in cycles:
                self._fail(cycle, error(fault))
            self._conditions.tell(key, GroupReason.ERROR, fault)
            self._observe(info, "error", started, perf_counter())
            return cycles
        members = []
        for cycle in cycles:
            if cycle.pod.deletion_timestamp is None:
                members.append(MemberAttempt(cycle))
            else:
                self._single.skip_deleted(cycle)
        if members:
            attempt = self._attempt(key, members)
            self._try(attempt)
            tried = perf_counter()
            self._settle(attempt)
            self._observe(info, attempt.result, started, tried)
        return cycles

    def _observe(self, info: QueuedPodInfo, result: str, started: float, tried: float) -> None:
        if self._on_attempt is not None:
            profile, seconds = info.pod.scheduler_name, perf_counter() - started
            self._on_attempt(profile, result, tried - started, seconds)

    def _cycle(self, info: QueuedPodInfo, sequence: int) -> PodCycle:
        framework = self._parts.profiles[info.pod.scheduler_name]
        now = self._parts.clock.now()
        return PodCycle(sequence, info, info.pod, framework, now, perf_counter())

    def _pop_siblings(self, key: str, popped: Pod) -> list[QueuedPodInfo]:
        siblings = self._pods.by_index(SCHEDULING_GROUP_INDEX, key)
        found = (self._parts.queue.pop_pod(pod) for pod in siblings if pod.uid != popped.uid)
        return [info for info in found if info is not None]

    def _not_assumed(self, infos: Sequence[QueuedPodInfo]) -> list[QueuedPodInfo]:
        """Those that need a cycle; the others are done with."""
        assumed = [info for info in infos if self._parts.cache.is_assumed_pod(info.pod)]
        for info in assumed:
            self._parts.queue.done(info.pod.uid)
        return [info for info in infos if info not in assumed]

    def _attempt(self, key: str, members: Sequence[MemberAttempt]) -> GroupAttempt:
        group = self._groups.get(key)
        found = group if isinstance(group, NativePodGroup) else None
        cache = self._parts.cache
        pods = self._pods.by_index(SCHEDULING_GROUP_INDEX, key)
        held = sum(bool(pod.node_name) or cache.is_assumed_pod(pod) for pod in pods)
        return GroupAttempt(key, found, members, held)

    # -- 1. on one snapshot ----------------------------------------------------------------------

    def _try(self, attempt: GroupAttempt) -> None:
        """Find a place for each member, and take everything back."""
        self._parts.snapshot.update(self._parts.cache)
        try:
            for member in attempt.members:
                member.cycle.started = perf_counter()
                self._try_member(member)
                member.tried = True
                member.cycle.seconds = perf_counter() - member.cycle.started
                if not attempt.judge(member):
                    return
        finally:
            for member in reversed(attempt.members):
                self._release(member.cycle)
            self._parts.snapshot.update(self._parts.cache)

    def _try_member(self, member: MemberAttempt) -> None:
        cycle = member.cycle
        cycle.state.pod_group_cycle = True
        node_name = self._find_node(member)
        if not node_name:
            return
        status = self._hold(cycle, node_name)
        if status.is_success:
            status = self._ask_permit(member)
        if not status.is_success:
            self._release(cycle)
            self._parts.snapshot.update(self._parts.cache)
            member.needs_preemption = False
            cycle.nominating = CLEAR_NOMINATION
            self._note(cycle, status)

    def _find_node(self, member: MemberAttempt) -> str:
        """The node to hold; that of a nomination where victims have to go first. "" if none."""
        cycle = member.cycle
        carried = self._carried(cycle.pod.uid)
        result = cycle.result = self._algorithm.schedule(
            cycle.framework,
            cycle.state,
            cycle.pod,
            percentage=self._parts.profiles.percentage(cycle.pod.scheduler_name),
            preferred_node=carried.node if carried is not None else cycle.pod.nominated_node_name,
        )
        if result.status.is_success:
            return result.node_name
        cycle.status = result.status
        cycle.fit_error = result.fit_error if result.status.is_rejected else None
        cycle.nominating = CLEAR_NOMINATION
        if cycle.fit_error is None:
            return ""
        if not result.size:
            cycle.status = Status(result.status.code, (NO_NODES_AVAILABLE,))
            cycle.fit_error = None
            return ""
        cycle.nominating = self._single.post_filter(cycle)
        member.needs_preemption = bool(cycle.nominating.override and cycle.nominating.node_name)
        return cycle.nominating.node_name if member.needs_preemption else ""

    def _ask_permit(self, member: MemberAttempt) -> Status:
        """Success: Permit let the member pass, or has it wait for the others."""
        cycle = member.cycle
        assert cycle.assumed is not None
        status, waits = cycle.framework.run_permit(cycle.state, cycle.assumed, cycle.node_name)
        if status.is_success:
            reasons = tuple(wait.reason for wait in waits if wait.reason)
            plugin = waits[0].plugin if waits else ""
            member.permit = Status(Code.WAIT, reasons, plugin) if waits else status
        return status

    def _hold(self, cycle: PodCycle, node_name: str) -> Status:
        """Assume and reserve; the next member of the group sees it in the snapshot."""
        cycle.node_name = node_name
        assumed = cycle.pod.with_node_name(node_name)
        try:
            self._parts.cache.assume_pod(assumed)
        except CacheError as exc:
            return error(exc)
        cycle.assumed = assumed
        self._parts.queue.nominator.delete(assumed)
        self._parts.snapshot.update(self._parts.cache)
        return cycle.framework.run_reserve(cycle.state, assumed, node_name)

    def _release(self, cycle: PodCycle) -> None:
        """Take back what ``_hold`` did, if it did."""
        assumed = cycle.assumed
        if assumed is None:
            return
        cycle.framework.run_unreserve(cycle.state, assumed, cycle.node_name)
        if self._parts.cache.is_assumed_pod(assumed):
            self._parts.cache.forget_pod(assumed)
        cycle.assumed = None

    def _note(self, cycle: PodCycle, status: Status) -> None:
        cycle.status = status
        cycle.fit_error = fit_error_of_one(cycle.pod, status) if status.is_rejected else None

    # -- 2. for good -----------------------------------------------------------------------------

    def _settle(self, attempt: GroupAttempt) -> None:
        if attempt.status.is_success:
            self._go_on(attempt)
        else:
            for member in attempt.members:
                self._send_back(attempt, member)
        self._tell(attempt)

    def _tell(self, attempt: GroupAttempt) -> None:
        status = attempt.status
        if status.is_success:
            self._conditions.tell(attempt.key, GroupReason.SCHEDULED)
        elif status.is_rejected:
            message = status.message
            if message == GROUP_UNSCHEDULABLE or attempt.waits_on_preemption:
                message = f"{message}: {attempt.explain()}"
            self._conditions.tell(attempt.key, GroupReason.UNSCHEDULABLE, message)
        else:
            self._conditions.tell(attempt.key, GroupReason.ERROR, status.message)

    def _send_back(self, attempt: GroupAttempt, member: MemberAttempt) -> None:
        """A member that is not bound returns to the queue, with its own reason if it has one."""
        cycle, nominating = member.cycle, member.cycle.nominating
        if attempt.status.is_rejected and not attempt.is_complete:
            cycle.group_failure = f"pod group {attempt.key}: {attempt.explain(member)}"
            cycle.event_plugins = member.event_plugins
        if attempt.status.code is Code.ERROR:
            nominating = CLEAR_NOMINATION
            if not member.failed:
                cycle.status, cycle.fit_error = attempt.status, None
        elif member.permit is not None and not attempt.waits_on_preemption:
            nominating = CLEAR_NOMINATION
            reasons = (GROUP_UNSCHEDULABLE, *member.permit.reasons)
            plugin = member.permit.plugin or GangScheduling.name
            cycle.status, cycle.fit_error = Status(Code.UNSCHEDULABLE, reasons, plugin), None
        elif member.is_feasible:
            # Its place is kept while the victims of the others go.
            nominating = NominatingInfo(cycle.node_name, override=True)
            cycle.status = attempt.status
        self._parts.failures.handle(cycle, nominating)

    def _go_on(self, attempt: GroupAttempt) -> None:
        """Assume, reserve and permit each feasible member again; bind them, or have them wait."""
        for member in attempt.members:
            if not member.is_feasible:
                self._send_back(attempt, member)
        held = [m.cycle for m in attempt.members if m.is_feasible and self._hold_again(m.cycle)]
        permitted = self._permit_again(held)
        if attempt.held_before + len(permitted) < attempt.min_count:
            self._give_up(attempt, [cycle for cycle, _ in permitted])
            return
        for cycle, waits in permitted:
            cycle.message = f"placed together with pod group {attempt.key}"
            self._single.proceed(cycle, waits)

    def _give_up(self, attempt: GroupAttempt, permitted: list[PodCycle]) -> None:
        """Reserve or Permit has turned down, the second time, more than the gang can do without."""
        passed = attempt.held_before + len(permitted)
        note = f"{passed} of minCount {attempt.min_count} pods passed Permit the second time"
        attempt.status = Status(
            Code.UNSCHEDULABLE, (GROUP_UNSCHEDULABLE, note), GangScheduling.name
        )
        for cycle in permitted:
            cycle.group_failure = f"pod group {attempt.key}: {note}"
            cycle.event_plugins = frozenset()
            self._single.undo(cycle, unschedulable(LOST_A_MEMBER, plugin=GangScheduling.name))

    def _permit_again(self, held: list[PodCycle]) -> list[tuple[PodCycle, list[PermitWait]]]:
        """Those that Permit lets pass, now or later; the others are turned down."""
        answer = []
        for cycle in held:
            assert cycle.assumed is not None
            status, waits = cycle.framework.run_permit(cycle.state, cycle.assumed, cycle.node_name)
            if status.is_success:
                answer.append((cycle, waits))
            else:
                self._single.undo(cycle, status)
        return answer

    def _hold_again(self, cycle: PodCycle) -> bool:
        cycle.state.pod_group_cycle = False
        status = self._hold(cycle, cycle.node_name)
        if status.is_success:
            return True
        if cycle.assumed is not None:
            self._single.undo(cycle, status)
        else:
            self._fail(cycle, status)
        return False

    def _fail(self, cycle: PodCycle, status: Status) -> None:
        self._note(cycle, status)
        self._parts.failures.handle(cycle, CLEAR_NOMINATION)
