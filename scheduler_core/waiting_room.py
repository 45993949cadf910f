"""The pods parked at Permit, and everything that can end their wait.

Holds the WaitingPod records with their deadlines; takes people's decisions; restores waits after a
restart. A turn costs what has changed in it, however many pods wait. Scheduler thread only.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

from scheduler_core.api import Pod
from scheduler_core.backend.informers import Informers
from scheduler_core.framework.interface import Informer
from scheduler_core.framework.runtime.waiting_pods import PermitWait, WaitingPod, WaitingPodsMap
from scheduler_core.framework.status import Status
from scheduler_core.observers import ObserverSet
from scheduler_core.plugins.helpers.gangs import GangDirectory, GangId, quorum_plugin
from scheduler_core.plugins.manual_approval.plugin import TERMS
from scheduler_core.pod_cycle import PodCycle
from scheduler_core.ports import Clock
from scheduler_core.records import (
    Outcome,
    PermitDecision,
    Rest,
    WaitingPodRecord,
    WaitOutcome,
)
from scheduler_core.waiting_approvals import AT_DEADLINE, Approvals
from scheduler_core.waiting_gangs import WaitingGangs
from scheduler_core.waiting_record import (
    GONE,
    MANUAL_APPROVAL,
    Parked,
    bound_by_another,
    ended,
    node_use,
    waiting_record,
)
from scheduler_core.waiting_restored import RestoredWaits

__all__ = ["WaitingRoom"]


class WaitingRoom:
    """Parks cycles at Permit and hands them on when their wait has ended.

    Args:
        pods: the map that plugins see through their handle.
        is_assumed: whether a pod holds a node without being bound.
        on_allowed: takes a cycle whose last plugin has allowed.
        on_rejected: takes a cycle whose wait ended otherwise, with the status.
        on_broken: hears of a gang that broke, and why: who of it is not bound gives its node back.
        native: schedulerNames of the profiles that have native gangs.
    """

    def __init__(
        self,
        pods: WaitingPodsMap,
        informers: Informers,
        observers: ObserverSet,
        clock: Clock,
        is_assumed: Callable[[Pod], bool],
        on_allowed: Callable[[PodCycle], None],
        on_rejected: Callable[[PodCycle, Status], None],
        on_broken: Callable[[GangId, str], None] = lambda _gang, _text: None,
        native: Collection[str] = (),
    ) -> None:
        self._pods = pods
        self._observers = observers
        self._clock = clock
        self._is_assumed = is_assumed
        self._on_allowed = on_allowed
        self._on_rejected = on_rejected
        self._on_broken = on_broken
        self._nodes: Informer = informers.informer("Node")
        self.directory = GangDirectory(informers, native)
        self.gangs = WaitingGangs()
        self._approvals = Approvals(
            self.gangs, self.directory, observers, self._renew_deadline, self._is_awaited
        )
        self._parked: dict[str, Parked] = {}
        self._by_node: dict[str, dict[str, Parked]] = {}
        self._changed: deque[WaitingPod] = deque()
        self._deadlines: list[tuple[float, str]] = []
        #: Pods whose time is over, while people's words up to then may still be on their way.
        self._unheard: list[str] = []
        self._heard = float("-inf")
        self.restored = RestoredWaits(observers, clock)
        #: Pods that were let go after an approval and are not bound yet, by uid.
        self._let_go: dict[str, WaitingPodRecord] = {}
        #: Of those of them that keep their nodes until they are bound, why they are not yet.
        self._failures: dict[str, str] = {}
        #: Those whose binding failed and that gave their nodes back: the approval counts for their
        #: next attempt.
        self._carried: dict[str, WaitingPodRecord] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[Parked]:
        return iter(tuple(self._parked.values()))

    # -- in --------------------------------------------------------------------------------------

    def park(self, cycle: PodCycle, waits: list[PermitWait]) -> None:
        """Keep the cycle until every plugin in ``waits`` has allowed, or one turned it down."""
        assert cycle.assumed is not None
        uid = cycle.pod.uid
        early = [(word, self.restored.refusal(word)) for word in self.restored.decisions(uid)]
        before = self.restored.take(uid) or self._take_carried(cycle)
        cycle.waiting_since = before.since if before is not None else self._clock.now()
        if before is not None and not before.let_go:
            waits = _with_old_deadlines(waits, before)
        waiting = WaitingPod(cycle.assumed, cycle.node_name, waits, self._changed.append)
        waiting.terms = cycle.state.get(TERMS) if _asks(waits) else None
        cycle.waiting = waiting
        parked = self._keep(cycle, waiting)
        if before is not None and before.let_go and waiting.terms is not None:
            parked.let_go_before = before
        heapq.heappush(self._deadlines, (waiting.deadline, uid))
        self._tell("pod_waiting", parked)
        if before is not None and _needs_no_word(before):
            parked.approved_by.extend(before.approved_by)
            by_time = before.let_go and before.message == AT_DEADLINE
            self._approvals.waive(parked, AT_DEADLINE if by_time else "", let_go=before.let_go)
            # Not at once: a native gang's members come one after another, and go as one.
            self._changed.append(waiting)
        self._approvals.hear(parked, early)

    def _keep(self, cycle: PodCycle, waiting: WaitingPod) -> Parked:
        pod = waiting.pod
        named = self.directory.gang_of(pod)
        group = self.directory.group(named) if named is not None else None
        known = group is not None
        parked = Parked(cycle, waiting, named if known else None, group.uid if group else "")
        parked.node_use = node_use(pod, cycle.framework.nodes.get(waiting.node_name))
        self._parked[parked.uid] = parked
        self._by_node.setdefault(waiting.node_name, {})[parked.uid] = parked
        self._pods.add(waiting)
        if parked.gang is not None:
            self.gangs.join(parked, self.directory.min_member(parked.gang))
        return parked

    # -- a binding that fails, a restart ---------------------------------------------------------

    def restore(self, records: Iterable[WaitingPodRecord]) -> None:
        """Waits that were open when the last worker ended; each is taken up by ``park``."""
        self.restored.add(records)

    def carried(self, uid: str) -> WaitingPodRecord | None:
        """The wait of a pod that was let go, and whose binding failed."""
        return self._carried.get(uid)

    def _take_carried(self, cycle: PodCycle) -> WaitingPodRecord | None:
        """An approval was for one node: on another one people are asked again."""
        record = self._carried.pop(cycle.pod.uid, None)
        if record is None or record.node == cycle.node_name:
            return record
        self._lose_node(record, cycle)
        return None

    def tried_again(self, cycle: PodCycle) -> None:
        """A scheduling cycle is over. A pod that was let go, and whose binding failed, has its node
        again, or it has lost it: then its gang is broken, and asked anew as a whole."""
        record = self._carried.get(cycle.pod.uid)
        if record is None or cycle.outcome is Outcome.SKIPPED:
            return
        if cycle.outcome is Outcome.SCHEDULED and cycle.node_name == record.node:
            return
        del self._carried[cycle.pod.uid]
        self._lose_node(record, cycle)

    def _lose_node(self, record: WaitingPodRecord, cycle: PodCycle) -> None:
        text = f"its binding failed, and the pod no longer fits on {record.node}"
        text += f": {cycle.message}" if cycle.message else ""
        self._resolve(record, WaitOutcome.BROKEN, text)
        gang = self.directory.gang_of(cycle.pod)
        self._break_gang(gang, record.gang_uid, f"{record.pod.key} of its gang: {text}")

    def binding_held(self, cycle: PodCycle, failure: str, text: str) -> None:
        """The binding failed, and is tried again: people read why the pod is not bound yet."""
        record = self._let_go.get(cycle.pod.uid)
        if record is not None:
            self._failures[cycle.pod.uid] = failure
            self._observers.tell("pod_resolved", replace(record, message=text))

    def binding_finished(self, cycle: PodCycle, status: Status) -> None:
        """A binding cycle is over. An approval outlives one that failed, unless the node is gone:
        then the gang is broken, and those of it that are not bound are free."""
        uid = cycle.pod.uid
        record, failure = self._let_go.pop(uid, None), self._failures.pop(uid, None)
        if status.is_success:
            self._carried.pop(uid, None)
            if record is not None and failure is not None:
                text = f"bound at last; its binding had failed: {failure}"
                self._observers.tell("pod_resolved", replace(record, message=text, let_go=False))
            return
        if record is None:
            return
        if self._has_lost_its_group(record):
            self._end_without_group(record)
            return
        if self._nodes.get(record.node) is not None:
            self._carried[uid] = record
            return
        text = f"node {record.node} was deleted before {record.pod.key} was bound"
        self._resolve(record, WaitOutcome.BROKEN, text)
        self._break_gang(self.directory.gang_of(cycle.pod), record.gang_uid, text)

    def give_up(self, uid: str, text: str) -> None:
        """Of a pod whose binding has not begun, and that is not tried again as it was approved: its
        gang is incomplete, and is asked anew when it is complete again."""
        record = self._carried.pop(uid, None)
        if record is not None:
            self._resolve(record, WaitOutcome.REJECTED, text)

    def has_lost_its_group(self, uid: str) -> bool:
        """Of a pod that was let go and is not bound: nothing is left of what people approved."""
        record = self._let_go.get(uid)
        return record is not None and self._has_lost_its_group(record)

    def _has_lost_its_group(self, record: WaitingPodRecord) -> bool:
        """The PodGroup with which it was approved is gone; another of its name is another gang."""
        found = (self.directory.group(GangId(k, record.pod_group)) for k in self.directory.kinds)
        uids = [group.uid for group in found if group is not None]
        return bool(record.gang_uid) and record.gang_uid not in uids

    def _end_without_group(self, record: WaitingPodRecord) -> None:
        """It was let go, and its binding failed: nothing is left of what people approved."""
        text = f"PodGroup {record.pod_group} was deleted before {record.pod.key} was bound"
        self._resolve(record, WaitOutcome.REJECTED, text)

    def _resolve(self, record: WaitingPodRecord, outcome: WaitOutcome, text: str) -> None:
        """Tell of a wait that was over already that it ended otherwise."""
        self._observers.tell("pod_resolved", ended(record, outcome, text, self._clock.now()))

    def drop_restored(
        self, uid: str, outcome: WaitOutcome, message: str, rest: Rest | None = None
    ) -> None:
        """The wait cannot be taken up again; say so. Its gang was approved as one, for nodes that
        it had: where one member is not restored, none is."""
        record = self.restored.drop(uid, outcome, message, rest)
        if record is None or not record.pod_group:
            return
        if outcome not in _TAKES_GANG_ALONG:
            self._release_gang_of(record)
            return
        text = f"{record.pod.key} of its gang: {message}"
        for sibling in self.restored.gang_of(record):
            if record.let_go or not sibling.let_go:
                self.restored.drop(sibling.pod.uid, outcome, text)
        for parked in self._parked_gang(record):
            if record.let_go or not self._approvals.is_let_go(parked):
                parked.waiting.break_up(text)

    def _is_awaited(self, gang: GangId) -> bool:
        """A member that waited before a restart has not been taken up yet."""
        group = self.directory.group(gang)
        return group is not None and self.restored.awaits(gang.key, group.uid)

    def _release_gang_of(self, record: WaitingPodRecord) -> None:
        """The others may have waited for this one alone to be taken up."""
        for gang in {parked.gang for parked in self._parked_gang(record)}:
            if gang is not None:
                self._approvals.release(gang)

    def _parked_gang(self, record: WaitingPodRecord) -> Iterator[Parked]:
        for kind in self.directory.kinds:
            for parked in self.gangs.members(GangId(kind, record.pod_group)):
                if parked.gang_uid == record.gang_uid:
                    yield parked

    # -- people ----------------------------------------------------------------------------------

    def decide(self, decision: PermitDecision) -> None:
        """Apply a person's word; the observer is told whether it counted."""
        uid = decision.pod_uid
        if self.restored.keep_decision(decision):
            return
        parked = self._parked.get(uid)
        if parked is None:
            text = "the pod no longer waits for a decision"
            self._observers.tell("decision_applied", decision, False, text)
            return
        self._approvals.decide(parked, decision)

    # -- what happens around ---------------------------------------------------------------------

    def remove(self, pod: Pod) -> bool:
        """The pod was deleted in the API; whether it waited here."""
        before = self.restored.drop(pod.uid, WaitOutcome.REMOVED, GONE)
        if before is not None and before.pod_group:
            self._release_gang_of(before)
        record = self._carried.pop(pod.uid, None)
        if record is not None:
            self._resolve(record, WaitOutcome.REMOVED, f"{GONE} before it was bound")
        parked = self._parked.get(pod.uid)
        if parked is None:
            return False
        parked.waiting.reject("", "removed")
        return True

    def bound(self, pod: Pod) -> None:
        """The pod is bound. Where it still waited, or was to be bound elsewhere, another did it."""
        record = self._carried.pop(pod.uid, None)
        if record is not None and record.node != pod.node_name:
            self._resolve(record, WaitOutcome.REMOVED, bound_by_another(pod))
        parked = self._parked.get(pod.uid)
        if parked is not None:
            parked.waiting.take_away(bound_by_another(pod))

    def node_deleted(self, name: str) -> None:
        """Pods that held the node wait no more, nor do their gangs."""
        for parked in list(self._by_node.get(name, {}).values()):
            if parked.gang is None:
                parked.waiting.break_up(f"its node {name} was deleted")
                continue
            text = f"node {name}, which {parked.waiting.pod.key} held, was deleted"
            self._break_gang(parked.gang, parked.gang_uid, text)

    def _break_gang(self, gang: GangId | None, gang_uid: str, text: str) -> None:
        """Members that wait, and those whose binding is to be tried again, are free."""
        for parked in self.gangs.members(gang):
            parked.waiting.break_up(text)
        if gang is not None:
            self._on_broken(gang, text)
        for uid, record in list(self._carried.items()):
            if gang is not None and (record.pod_group, record.gang_uid) == (gang.key, gang_uid):
                del self._carried[uid]
                self._resolve(record, WaitOutcome.BROKEN, text)

    def group_changed(self, kind: str, key: str) -> None:
        """A PodGroup changed, or is gone. A gang that is complete by a lower number goes on; one
        that is not by a higher one, or that has no PodGroup any more, is tried anew."""
        gang = GangId(kind, key)
        for uid, record in list(self._carried.items()):
            if record.pod_group == key and self._has_lost_its_group(record):
                del self._carried[uid]
                self._end_without_group(record)
        if gang not in self.gangs:
            return
        plugin = quorum_plugin(kind)
        members = [p for p in self.gangs.members(gang) if p.cycle.framework.plugin(plugin)]
        if self.directory.group(gang) is None:
            for parked in members:
                parked.waiting.reject(plugin, f"PodGroup {key} was deleted")
            return
        wanted, before = self.directory.min_member(gang), self.gangs.min_member(gang)
        if wanted == before:
            return
        self.gangs.set_min_member(gang, wanted)
        placed = sum(
            bool(pod.node_name) or self._is_assumed(pod) for pod in self.directory.members(gang)
        )
        for parked in members:
            counted = plugin not in parked.waiting.pending_plugins
            if placed >= wanted:
                parked.waiting.allow(plugin)
            elif counted:
                text = f"PodGroup {key} needs {wanted} members now, {placed} hold a node"
                parked.waiting.reject(plugin, text)

    # -- time ------------------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        """When the next wait runs out; those that only wait to be heard do not count."""
        self._forget_stale_deadlines()
        return self._deadlines[0][0] if self._deadlines else None

    def is_due(self, now: float) -> bool:
        """A wait runs out: it has to be known up to when people have been heard."""
        due = self.next_deadline()
        return bool(self._unheard) or (due is not None and due <= now)

    def expire(self, now: float, heard: float = float("inf")) -> bool:
        """End every wait whose time is over; whether there was one.

        ``heard``: up to when every decision has been handed in. What was decided in time counts,
        however late it comes, so nobody's time is over before people have been heard up to then.
        """
        if heard > self._heard:
            self._heard = heard
            for uid in self._unheard:
                heapq.heappush(self._deadlines, (self._deadline_of(uid), uid))
            self._unheard.clear()
        hit = False
        while True:
            self._forget_stale_deadlines()
            if not self._deadlines or self._deadlines[0][0] > now:
                return hit
            parked = self._parked[self._deadlines[0][1]]
            if parked.gang is not None and self._is_awaited(parked.gang):
                return hit  # its end may take along members that are still to be taken up: soon
            heapq.heappop(self._deadlines)
            hit |= self._expire_one(parked, now)

    def _expire_one(self, parked: Parked, now: float) -> bool:
        waiting = parked.waiting
        first = waiting.next_wait
        if first is None:
            return False
        if first.plugin != MANUAL_APPROVAL:
            return waiting.expire(now)
        if first.deadline > self._heard:
            self._unheard.append(parked.uid)
            return False
        if parked.is_approved_by_time:
            self._approvals.waive(parked, AT_DEADLINE)
            self._approvals.review(parked)
            return True
        return self._approvals.expire(parked, now)

    def _deadline_of(self, uid: str) -> float:
        parked = self._parked.get(uid)
        return parked.waiting.deadline if parked is not None else float("inf")

    def _renew_deadline(self, parked: Parked) -> None:
        if parked.waiting.first_deadline != parked.told_deadline:
            self._tell("pod_waiting", parked)
        heapq.heappush(self._deadlines, (parked.waiting.deadline, parked.uid))

    def _forget_stale_deadlines(self) -> None:
        """Drop heap entries of pods that wait no more, or whose deadline has moved: for that there
        is another entry."""
        while self._deadlines:
            deadline, uid = self._deadlines[0]
            parked = self._parked.get(uid)
            live = parked is not None and parked.waiting.status is None
            if live and deadline == self._deadline_of(uid) != float("inf"):
                return
            heapq.heappop(self._deadlines)

    # -- out -------------------------------------------------------------------------------------

    def settle(self) -> bool:
        """Act on every wait that changed, also on those that change while this runs (one member's
        Unreserve turns down its gang); whether there was one."""
        settled = False
        while self._changed:
            waiting = self._changed.popleft()
            settled = True
            parked = self._parked.get(waiting.pod.uid)
            if parked is None or parked.waiting is not waiting:
                continue
            if waiting.status is not None:
                self._end(parked, waiting.status)
                continue
            self._renew_deadline(parked)
            self._tell("pod_waiting", parked)
            self._approvals.review(parked)
        return settled

    def _end(self, parked: Parked, status: Status) -> None:
        waiting, uid, gang = parked.waiting, parked.uid, parked.gang
        before = parked.let_go_before if status.is_success else None
        at = before.resolved_at if before is not None else None
        waiting.resolved_at = self._clock.now() if at is None else at
        self._pods.remove(uid)
        del self._parked[uid]
        self._leave_node(parked)
        self._approvals.forget(parked)
        self.gangs.leave(parked)
        record = waiting_record(parked, self.directory)
        self._observers.tell("pod_resolved", record)
        if status.is_success:
            if record.needs_approval:
                self._let_go[uid] = record
            self._on_allowed(parked.cycle)
        else:
            self._on_rejected(parked.cycle, status)
        if gang is not None:
            # A member that was deleted may have been the one that the others waited for; and while
            # the end of one is not acted on nobody else is let go.
            self._approvals.release(gang)

    def _leave_node(self, parked: Parked) -> None:
        there = self._by_node[parked.waiting.node_name]
        del there[parked.uid]
        if not there:
            del self._by_node[parked.waiting.node_name]

    def _tell(self, hook: str, parked: Parked) -> None:
        parked.told_deadline = parked.waiting.first_deadline
        if self._observers.wants(hook):
            self._observers.tell(hook, waiting_record(parked, self.directory))


#: A member whose wait ends so after a restart takes its gang along.
_TAKES_GANG_ALONG = (WaitOutcome.BROKEN, WaitOutcome.REJECTED)


def _asks(waits: Iterable[PermitWait]) -> bool:
    return any(wait.plugin == MANUAL_APPROVAL for wait in waits)


def _needs_no_word(before: WaitingPodRecord) -> bool:
    """It was let go before, or ManualApproval had allowed it. Where nobody had been asked, because
    nothing called for it then, people are asked now."""
    pending = {item.plugin for item in before.pending}
    return before.needs_approval and (before.let_go or MANUAL_APPROVAL not in pending)


def _with_old_deadlines(waits: list[PermitWait], before: WaitingPodRecord) -> list[PermitWait]:
    known = {p.plugin: p.deadline for p in before.pending}
    return [
        PermitWait(w.plugin, w.timeout, known.get(w.plugin, w.deadline), w.reason) for w in waits
    ]
