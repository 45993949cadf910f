"""The pods parked at Permit, and everything that can end their wait.

Holds the WaitingPod records with their deadlines; applies people's decisions; restores waits after
a restart. Runs on the scheduler thread only.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from scheduler_core.api import Pod
from scheduler_core.cycle_record import MANUAL_APPROVAL, waiting_record
from scheduler_core.framework.interface import Informer
from scheduler_core.framework.runtime.waiting_pods import PermitWait, WaitingPod, WaitingPodsMap
from scheduler_core.framework.status import Status
from scheduler_core.observers import ObserverSet
from scheduler_core.pod_cycle import PodCycle
from scheduler_core.ports import Clock
from scheduler_core.records import (
    PermitDecision,
    Verdict,
    WaitingPodRecord,
    WaitOutcome,
)


class WaitingRoom:
    """Parks cycles at Permit and hands them on when their wait has ended.

    Args:
        pods: the map that plugins see through their handle.
        on_allowed: takes a cycle whose last plugin has allowed.
        on_rejected: takes a cycle whose wait ended otherwise, with the status.
    """

    def __init__(
        self,
        pods: WaitingPodsMap,
        pod_groups: Informer,
        observers: ObserverSet,
        clock: Clock,
        on_allowed: Callable[[PodCycle], None],
        on_rejected: Callable[[PodCycle, Status], None],
    ) -> None:
        self._pods = pods
        self._pod_groups = pod_groups
        self._observers = observers
        self._clock = clock
        self._on_allowed = on_allowed
        self._on_rejected = on_rejected
        self._cycles: dict[str, PodCycle] = {}
        self._changed: deque[WaitingPod] = deque()
        self._deadlines: list[tuple[float, str]] = []
        #: Waits of before a restart that have not been taken up again yet, by uid.
        self._restored: dict[str, WaitingPodRecord] = {}
        #: Decisions on pods that are still to be restored.
        self._early: dict[str, PermitDecision] = {}
        #: Members of each gang ("namespace/name" -> uids) that wait here.
        self._gangs: dict[str, set[str]] = {}
        #: Approvals of gang members that take effect with those of the others, by uid.
        self._approvals: dict[str, PermitDecision] = {}

    def __len__(self) -> int:
        return len(self._pods)

    # -- in --------------------------------------------------------------------------------------

    def park(self, cycle: PodCycle, waits: list[PermitWait]) -> None:
        """Keep the cycle until every plugin in ``waits`` has allowed, or one turned it down."""
        assert cycle.assumed is not None
        uid = cycle.pod.uid
        before = self._restored.pop(uid, None)
        cycle.waiting_since = before.since if before is not None else self._clock.now()
        if before is not None:
            waits = _with_old_deadlines(waits, before)
        waiting = WaitingPod(cycle.assumed, cycle.node_name, waits, self._changed.append)
        cycle.waiting = waiting
        self._cycles[uid] = cycle
        self._pods.add(waiting)
        if self._is_gang(waiting):
            self._gangs.setdefault(waiting.pod.pod_group_key, set()).add(uid)
        heapq.heappush(self._deadlines, (waiting.deadline, uid))
        self._tell("pod_waiting", cycle)
        if before is not None:
            self._allow_again(waiting, before)
        decision = self._early.pop(uid, None)
        if decision is not None:
            self.decide(decision)

    def _allow_again(self, waiting: WaitingPod, before: WaitingPodRecord) -> None:
        """A person who had approved before the restart need not be asked twice. Where none had been
        asked, because nothing called for it then, one is asked now."""
        still_pending = {p.plugin for p in before.pending}
        if before.needs_approval and MANUAL_APPROVAL not in still_pending:
            waiting.allow(MANUAL_APPROVAL)

    # -- restart ---------------------------------------------------------------------------------

    def restore(self, records: Iterable[WaitingPodRecord]) -> None:
        """Waits that were open when the last worker ended; each is taken up by ``park``."""
        for record in sorted(records, key=lambda record: record.since):
            self._restored[record.pod.uid] = record

    def restored(self, uid: str) -> WaitingPodRecord | None:
        return self._restored.get(uid)

    def restored_uids(self) -> tuple[str, ...]:
        """In the order in which the waits began."""
        return tuple(self._restored)

    def drop_restored(self, uid: str, outcome: WaitOutcome, message: str) -> None:
        """The wait cannot be taken up again; say so."""
        record = self._restored.pop(uid, None)
        if record is None:
            return
        self._observers.tell("pod_resolved", _ended(record, outcome, message, self._clock.now()))
        decision = self._early.pop(uid, None)
        if decision is not None:
            self._observers.tell("decision_applied", decision, False, message)

    # -- out -------------------------------------------------------------------------------------

    def decide(self, decision: PermitDecision) -> None:
        """Apply a person's word; the observer is told whether it counted."""
        waiting = self._pods.get(decision.pod_uid)
        if waiting is None and decision.pod_uid in self._restored:
            self._early[decision.pod_uid] = decision
            return
        if waiting is None or waiting.status is not None:
            self._observers.tell(
                "decision_applied", decision, False, "the pod no longer waits for a decision"
            )
            return
        if decision.verdict is Verdict.APPROVE:
            self._approve(waiting, decision)
            return
        waiting.reject(MANUAL_APPROVAL, denial_text(decision))
        waiting.resolved_by = f"user:{decision.user}"
        self._observers.tell("decision_applied", decision, True, "denied")

    def _approve(self, waiting: WaitingPod, decision: PermitDecision) -> None:
        if MANUAL_APPROVAL not in waiting.pending_plugins:
            self._observers.tell(
                "decision_applied", decision, False, "the pod does not wait for an approval"
            )
            return
        self._approvals[waiting.pod.uid] = decision
        if not self._is_gang(waiting):
            self._let_go(waiting)
            self._observers.tell("decision_applied", decision, True, "approved")
            return
        released = self._release_gang(waiting.pod.pod_group_key)
        text = "approved" if released else "approved; it counts when the whole gang is approved"
        self._observers.tell("decision_applied", decision, True, text)

    def _is_gang(self, waiting: WaitingPod) -> bool:
        key = waiting.pod.pod_group_key
        return bool(key) and self._pod_groups.get(key) is not None

    def _release_gang(self, key: str) -> bool:
        """Let a gang go as one: when all its members here wait for a person alone, and all of them
        are approved. One by one they could be bound while another is denied."""
        members = [self._pods.get(uid) for uid in self._gangs.get(key, ())]
        waiting = [pod for pod in members if pod is not None and pod.status is None]
        asking = (MANUAL_APPROVAL,)
        if any(pod.pending_plugins != asking for pod in waiting):
            return False
        if any(pod.pod.uid not in self._approvals for pod in waiting):
            return False
        for pod in waiting:
            self._let_go(pod)
        return True

    def _let_go(self, waiting: WaitingPod) -> None:
        decision = self._approvals[waiting.pod.uid]
        waiting.allow(MANUAL_APPROVAL)
        if waiting.status is not None:
            waiting.resolved_by = f"user:{decision.user}"

    def remove(self, pod: Pod) -> bool:
        """The pod was deleted in the API; whether it waited here."""
        self.drop_restored(pod.uid, WaitOutcome.REMOVED, "the pod was deleted")
        waiting = self._pods.get(pod.uid)
        if waiting is None:
            return False
        waiting.reject("", "removed")
        return True

    def next_deadline(self) -> float | None:
        self._forget_stale_deadlines()
        return self._deadlines[0][0] if self._deadlines else None

    def expire(self, now: float) -> bool:
        """Turn down every pod whose time is over; whether there was one."""
        hit = False
        while True:
            self._forget_stale_deadlines()
            if not self._deadlines or self._deadlines[0][0] > now:
                return hit
            _, uid = heapq.heappop(self._deadlines)
            waiting = self._pods.get(uid)
            if waiting is not None and waiting.expire(now):
                hit = True

    def _forget_stale_deadlines(self) -> None:
        """Drop heap entries of pods that wait no more, and renew those whose deadline has moved."""
        while self._deadlines:
            deadline, uid = self._deadlines[0]
            waiting = self._pods.get(uid)
            if waiting is not None and waiting.status is None:
                if waiting.deadline == deadline:
                    return
                heapq.heapreplace(self._deadlines, (waiting.deadline, uid))
            else:
                heapq.heappop(self._deadlines)

    def settle(self) -> bool:
        """Act on every wait that changed, also on those that change while this runs (one member's
        Unreserve turns down its gang); whether there was one."""
        settled = False
        while self._changed:
            waiting = self._changed.popleft()
            settled = True
            cycle = self._cycles.get(waiting.pod.uid)
            if cycle is None or cycle.waiting is not waiting:
                continue
            if waiting.status is None:
                heapq.heappush(self._deadlines, (waiting.deadline, waiting.pod.uid))
                self._tell("pod_waiting", cycle)
                self._release_gang(waiting.pod.pod_group_key)
                continue
            self._end(cycle, waiting, waiting.status)
        return settled

    def _end(self, cycle: PodCycle, waiting: WaitingPod, status: Status) -> None:
        uid = waiting.pod.uid
        waiting.resolved_at = self._clock.now()
        self._pods.remove(uid)
        del self._cycles[uid]
        self._approvals.pop(uid, None)
        self._leave_gang(waiting)
        self._tell("pod_resolved", cycle)
        if status.is_success:
            self._on_allowed(cycle)
        else:
            self._on_rejected(cycle, status)
            # A member that was deleted may have been the one that the others waited for.
            self._release_gang(waiting.pod.pod_group_key)

    def _leave_gang(self, waiting: WaitingPod) -> None:
        members = self._gangs.get(waiting.pod.pod_group_key)
        if members is not None:
            members.discard(waiting.pod.uid)
            if not members:
                del self._gangs[waiting.pod.pod_group_key]

    def _tell(self, hook: str, cycle: PodCycle) -> None:
        if self._observers.wants(hook):
            self._observers.tell(hook, waiting_record(cycle, self._pod_groups))


def denial_text(decision: PermitDecision) -> str:
    """What the pod's owner reads: ``denied by alice: not this week``."""
    text = f"denied by {decision.user}"
    return f"{text}: {decision.comment}" if decision.comment else text


def _with_old_deadlines(waits: list[PermitWait], before: WaitingPodRecord) -> list[PermitWait]:
    known = {p.plugin: p.deadline for p in before.pending}
    return [
        PermitWait(w.plugin, w.timeout, known.get(w.plugin, w.deadline), w.reason) for w in waits
    ]


def _ended(
    record: WaitingPodRecord, outcome: WaitOutcome, message: str, now: float
) -> WaitingPodRecord:
    return replace(record, outcome=outcome, message=message, pending=(), resolved_at=now)
