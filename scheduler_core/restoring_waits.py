"""Takes waits at Permit up again after a restart: each pod goes back on the node that it held.

Scheduler thread only. See docs/design/007-restoring-waits.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from scheduler_core.after_permit import AfterPermit
from scheduler_core.api import Pod
from scheduler_core.framework.runtime.framework import Framework
from scheduler_core.framework.status import unschedulable
from scheduler_core.framework.types import QueuedPodInfo
from scheduler_core.plugins.manual_approval import ManualApproval
from scheduler_core.pod_cycle import PodCycle
from scheduler_core.records import (
    ApprovalTerms,
    Outcome,
    PermitDecision,
    Rest,
    WaitingPodRecord,
    WaitOutcome,
)
from scheduler_core.schedule_one import Parts, SchedulingCycle
from scheduler_core.scheduling_attempts import SchedulingAttempts
from scheduler_core.waiting_approvals import denial_text
from scheduler_core.waiting_record import MANUAL_APPROVAL, bound_by_another
from scheduler_core.waiting_restored import RestoredRests

__all__ = ["RestoringWaits"]

GONE: Final = (WaitOutcome.REMOVED, "the pod was deleted while no worker ran")
GONE_UNBOUND: Final = (
    WaitOutcome.REMOVED,
    "the pod was deleted while no worker ran; whether it was bound is not known",
)


class RestoringWaits:
    """One wait per turn, the longest first, once everything has been listed.

    Attributes:
        rests: when pods that had been turned down before the restart are to be tried again.
    """

    def __init__(
        self,
        parts: Parts,
        scheduling: SchedulingCycle,
        attempts: SchedulingAttempts,
        after_permit: AfterPermit,
    ) -> None:
        self._cache = parts.cache
        self._snapshot = parts.snapshot
        self._queue = parts.queue
        self._profiles = parts.profiles
        self._scheduling = scheduling
        self._attempts = attempts
        self._after_permit = after_permit
        self._waiting_room = after_permit.waiting_room
        self._restored = after_permit.waiting_room.restored
        self._pods = parts.informers.informer("Pod")
        self._nodes = parts.informers.informer("Node")
        self._has_looked = True
        self.rests = RestoredRests(after_permit.waiting_room.directory, self._pods)

    def begin(self, waiting: Sequence[WaitingPodRecord], resting: Sequence[Rest]) -> None:
        """Hear of what was open when the last scheduler of this run ended, before anything is
        listed."""
        self._waiting_room.restore(waiting)
        self.rests.add(resting)
        for framework in self._profiles.values():
            approval = _approval_of(framework)
            if approval is not None:
                approval.restore(resting)
        self._has_looked = False

    def restore_one(self) -> bool:
        """Put one pod that waited before the restart back on its node; whether there was one.

        Also while paused: until then nothing holds the node, and no deadline counts.
        """
        if not self._has_looked:
            self._has_looked = True
            self._look_what_is_left()
        while (record := self._restored.first()) is not None:
            uid = record.pod.uid
            pod: Pod | None = self._pods.get(record.pod.key)
            reason = _cannot_wait_again(pod, record, self._profiles)
            if pod is not None and reason is None:
                denial = self._restored.denial(record)
                if denial is not None:
                    self._deny(pod, record, denial)
                    return True
                reason = self._no_longer_fits(pod, record)
            if pod is None or reason is not None:
                self._waiting_room.drop_restored(uid, *(reason or GONE))
                continue
            self._queue.delete(pod)
            info = QueuedPodInfo(pod, timestamp=record.since, attempts=1)
            self._after_permit.is_taking_up = True
            cycle = self._attempts.schedule(info, record)
            self._after_permit.is_taking_up = False
            self._waiting_room.drop_restored(uid, *_after_restore(cycle, record))
            return True
        return False

    def _look_what_is_left(self) -> None:
        """Before the first wait is taken up: which gangs were let go, and which pods are gone. What
        people said of the others is said of them alone."""
        self._restored.complete(self._terms_now, self._is_there)
        for record in self._restored:
            pod: Pod | None = self._pods.get(record.pod.key)
            if pod is None or pod.uid != record.pod.uid:
                self._restored.drop(record.pod.uid, *(GONE_UNBOUND if record.let_go else GONE))
            elif record.let_go and self._is_bound(record):
                # Its own end: what becomes of the others of its gang changes nothing of it.
                self._restored.drop(record.pod.uid, WaitOutcome.ALLOWED, _bound_before(pod))

    def _terms_now(self, record: WaitingPodRecord) -> ApprovalTerms | None:
        pod: Pod | None = self._pods.get(record.pod.key)
        if pod is None or pod.uid != record.pod.uid or pod.scheduler_name not in self._profiles:
            return None
        approval = _approval_of(self._profiles[pod.scheduler_name])
        return approval.terms_of(pod) if approval is not None else None

    def _is_there(self, record: WaitingPodRecord) -> bool:
        """It can still go with its gang."""
        pod: Pod | None = self._pods.get(record.pod.key)
        return pod is not None and _cannot_wait_again(pod, record, self._profiles) is None

    def _is_bound(self, record: WaitingPodRecord) -> bool:
        pod: Pod | None = self._pods.get(record.pod.key)
        return pod is not None and pod.uid == record.pod.uid and pod.node_name == record.node

    def _deny(self, denied: Pod, record: WaitingPodRecord, denial: PermitDecision) -> None:
        """A denial counts, also for a pod that nobody would have to approve any more; it ends the
        waits of the whole gang."""
        text = denial_text(denial)
        gang = self._restored.gang_of(record)
        members = [record, *(member for member in gang if not member.let_go)]
        rest = self._turned_down(denied, text)
        self._waiting_room.drop_restored(record.pod.uid, WaitOutcome.REJECTED, text, rest)
        status = unschedulable(text, plugin=MANUAL_APPROVAL)
        for member in {item.pod.uid: item for item in members}.values():
            pod: Pod | None = self._pods.get(member.pod.key)
            if pod is None or _cannot_wait_again(pod, member, self._profiles) is not None:
                continue
            info = self._queue.pop_pod(pod)
            if info is not None:
                self._attempts.turn_down(info, status)

    def _turned_down(self, pod: Pod, text: str) -> Rest | None:
        """It stays away for a while; None where nobody has to approve it any more."""
        approval = _approval_of(self._profiles[pod.scheduler_name])
        return approval.turned_down(pod, text) if approval is not None else None

    def _no_longer_fits(self, pod: Pod, record: WaitingPodRecord) -> tuple[WaitOutcome, str] | None:
        """The pod stays in the queue, and is scheduled like any other, where its node is no longer
        right for it: an approval was for that node."""
        if self._nodes.get(record.node) is None:
            return WaitOutcome.BROKEN, f"node {record.node} was deleted while no worker ran"
        self._snapshot.update(self._cache)
        runs = self._attempts.gang_runs(pod, record)
        status = self._scheduling.try_node(pod, record.node, runs)
        if status.is_success:
            return None
        text = f"after a restart the pod no longer fits on {record.node}: {status.message}"
        return WaitOutcome.BROKEN if record.let_go else WaitOutcome.REJECTED, text


def _approval_of(framework: Framework) -> ManualApproval | None:
    """The profile's ManualApproval, where it has one."""
    approval = framework.plugin(MANUAL_APPROVAL)
    return approval if isinstance(approval, ManualApproval) else None


def _cannot_wait_again(
    pod: Pod | None, record: WaitingPodRecord, profiles: Mapping[str, Framework]
) -> tuple[WaitOutcome, str] | None:
    """Why a pod that waited before a restart is not put back on its node, or None."""
    if pod is None or pod.uid != record.pod.uid:
        return GONE_UNBOUND if record.let_go else GONE
    if pod.node_name and (pod.node_name != record.node or not record.let_go):
        return WaitOutcome.REMOVED, bound_by_another(pod)
    if pod.node_name:
        return WaitOutcome.ALLOWED, _bound_before(pod)
    if pod.scheduler_name not in profiles:
        return WaitOutcome.REJECTED, f"there is no profile {pod.scheduler_name} any more"
    return None


def _bound_before(pod: Pod) -> str:
    return f"bound to {pod.node_name} before the worker stopped"


def _after_restore(cycle: PodCycle | None, record: WaitingPodRecord) -> tuple[WaitOutcome, str]:
    """What became of a wait that its pod's new cycle did not take up (it did: nobody asks)."""
    if cycle is not None and cycle.outcome is Outcome.SCHEDULED:
        return WaitOutcome.ALLOWED, "after a restart no plugin has the pod wait any more"
    why = cycle.message if cycle is not None else "it was assumed already"
    text = f"after a restart the pod could not wait on {record.node} again: {why}"
    return WaitOutcome.REJECTED, text
