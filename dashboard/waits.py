"""The worker's side of the waiting rows. The people's side is ``permits.decide``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dashboard import permits_rows, rests
from dashboard.columns import text
from dashboard.models import AuditEntry, CycleMatrix, SchedulerRun, WaitingPod
from dashboard.permits_gangs import Gang
from dashboard.permits_models import Decision, GangApproval
from dashboard.told import DecisionApplied
from dashboard.waits_columns import fill_waiting
from dashboard.webhooks import outbox
from scheduler_core.records import BindingRecord, Rest, Verdict, WaitingPodRecord

#: What a wait ends as that the scheduler forgot, because its pod was scheduled anew.
FORGOTTEN = WaitingPod.State.REMOVED


class WaitingWriter:
    """Writes waits, inside one transaction that holds the run's lock."""

    def __init__(self, run: SchedulerRun) -> None:
        self._run = run
        self.changed: set[int] = set()
        self._bound: list[int] = []
        self._rests: list[Rest] = []
        self._begun: set[int] = set()
        #: Standing approvals by gang, as far as this batch has asked for them.
        self._standing: dict[tuple[str, str], list[GangApproval]] = {}

    def tell(self, record: WaitingPodRecord) -> None:
        """A wait began or went on, or ended."""
        row = self._row_of(record)
        if not row._state.adding and row.cycle != record.cycle:
            # The same wait, restored in a cycle of its own.
            self._release(row.cycle)
        needed, begins = row.approvers_needed, row._state.adding
        fill_waiting(row, record)
        row.commit_seq = self._run.commit_seq
        if record.outcome is not None:
            self._end(row, record)
            return
        if not row.is_open:
            self._begin_again(row)
        if row.approvers_needed > needed and row.decision_verdict == Verdict.APPROVE:
            permits_rows.reopen(row)
        row.save()
        self.changed.add(row.pk)
        if begins:
            self._begun.add(row.pk)
        if row.pod_group and row.needs_approval and row.state == WaitingPod.State.WAITING:
            self._cover(row)

    def decided(self, told: DecisionApplied) -> None:
        """A person's decision was taken up, in time or not."""
        found = Decision.objects.filter(run=self._run, pk=told.decision.decision_id)
        decision = found.select_related("waiting_pod").first()
        if decision is None:
            return
        row = decision.waiting_pod
        before, decision.applied, decision.applied_at = decision.applied, told.applied, told.at
        decision.message = text(told.message)
        decision.save(update_fields=["applied", "applied_at", "message"])
        if row.is_open and (not told.applied or before is False):
            # A word that does not count: nobody may go on seeing the pod as decided by it. Under
            # other terms the next scheduler may count it after all.
            permits_rows.recount(row)
        if row.decision_at == decision.at and row.decision_user == decision.username:
            row.decision_applied_at = told.at
        row.commit_seq = self._run.commit_seq
        row.save(update_fields=permits_rows.DECIDED_COLUMNS)
        self.changed.add(row.pk)
        _settle_audit(decision.audit_id)

    def bound(self, ends: Iterable[BindingRecord]) -> None:
        """Bindings that succeeded: a restart need not take up their waits."""
        cycles = [end.cycle for end in ends if end.bound]
        if cycles:
            # A list of one: SQLite uses no index for a bare truth value.
            let_go = WaitingPod.objects.filter(run=self._run, unbound__in=[True])
            self._bound += let_go.filter(cycle__in=cycles).values_list("pk", flat=True)
        if self._bound:
            WaitingPod.objects.filter(pk__in=self._bound).update(unbound=False)

    def keep_rests(self, now: float) -> None:
        """What was turned down stays away, also after a restart."""
        rests.keep(self._run, self._rests, now)

    def tell_webhooks(self, changed: Sequence[WaitingPod]) -> None:
        """Write the messages that follow from it: last, with the rows as they are now."""
        bound = WaitingPod.objects.filter(pk__in=self._bound) if self._bound else ()
        outbox.note(self._run, [*changed, *bound], begun=self._begun)

    # --- which row ------------------------------------------------------------------------------

    def _row_of(self, record: WaitingPodRecord) -> WaitingPod:
        """The row of this wait: an open one, one that ended too early, or a new one."""
        waits = WaitingPod.objects.filter(run=self._run, uid=record.pod.uid)
        # Ordered by the key SQLite would walk through every wait of the run.
        row = waits.filter(state__in=WaitingPod.OPEN).order_by("since").first()
        if row is not None and row.since != record.since:
            self._forget(row, FORGOTTEN, f"Scheduled again in cycle {record.cycle}.")
            row = None
        if row is None:
            row = waits.filter(since=record.since).order_by("-cycle").first()
        return row or WaitingPod(run=self._run, uid=record.pod.uid, state=WaitingPod.State.WAITING)

    def _begin_again(self, row: WaitingPod) -> None:
        """It was let go, but not bound: what people said of it still counts."""
        denied_or_approved = bool(row.decision_verdict)
        row.state = WaitingPod.State.SENT if denied_or_approved else WaitingPod.State.WAITING
        row.unbound, row.message, row.resolved_by, row.resolved_at = False, "", "", None

    # --- ends -----------------------------------------------------------------------------------

    def _end(self, row: WaitingPod, record: WaitingPodRecord) -> None:
        assert record.outcome is not None
        row.state = record.outcome.value
        row.message = text(record.message)
        row.resolved_by = text(record.resolved_by, 300)
        row.resolved_at = record.resolved_at
        row.pending = []
        row.unbound = record.let_go and row.needs_approval
        row.save()
        if record.rest is not None:
            self._rests.append(record.rest)
        self.changed.add(row.pk)
        self._release(record.cycle)
        self._settle(row)
        if row.pod_group:
            self._end_standing(row)

    def _forget(self, row: WaitingPod, state: str, message: str) -> None:
        row.state, row.message, row.pending = state, message, []
        row.commit_seq = self._run.commit_seq
        row.save()
        self._release(row.cycle)
        self.changed.add(row.pk)
        self._settle(row)

    def _settle(self, row: WaitingPod) -> None:
        """Close what the scheduler never reported: the wait ended before it saw the decision, or it
        died between acting on it and saying so."""
        audits = set()
        for decision in Decision.objects.filter(waiting_pod=row, applied=None):
            decision.applied = _came_true(decision, row)
            decision.message = row.message
            decision.save(update_fields=["applied", "message"])
            audits.add(decision.audit_id)
        for audit_id in audits:
            _settle_audit(audit_id)

    def _release(self, cycle: int) -> None:
        """The matrix of a wait that ended is kept no longer than its neighbours."""
        CycleMatrix.objects.filter(
            run=self._run, sequence=cycle, pin=CycleMatrix.Pin.WAITING
        ).update(pin=CycleMatrix.Pin.LATEST)

    # --- gangs ----------------------------------------------------------------------------------

    def _cover(self, row: WaitingPod) -> None:
        """Approvals of the whole gang count for a member that begins to wait later."""
        standing = self._standing_of(row)
        if not standing:
            return
        said = permits_rows.cover(row, standing, permits_rows.taken_back_of(row))
        if said:
            Decision.objects.bulk_create(said)
            row.save(update_fields=permits_rows.DECIDED_COLUMNS)

    def _end_standing(self, row: WaitingPod) -> None:
        """A gang that was let go, or given up, needs its approvals no more; nor does one of which
        nobody waits any longer: a pod that comes then is not what people have seen."""
        if not self._standing_of(row):
            return
        gang, at = Gang(self._run.pk, *row.gang), row.resolved_at or row.since
        one_of_many = row.state == WaitingPod.State.REMOVED or not row.needs_approval
        if one_of_many and gang.has_open():
            return
        if row.state == WaitingPod.State.ALLOWED:
            gang.complete(at)
        else:
            gang.end(at)
        self._standing[row.gang] = []

    def _standing_of(self, row: WaitingPod) -> list[GangApproval]:
        found = self._standing.get(row.gang)
        if found is None:
            standing = Gang(self._run.pk, *row.gang).standing().select_related("user")
            found = self._standing[row.gang] = list(standing)
        return found


def _came_true(decision: Decision, row: WaitingPod) -> bool:
    if decision.verdict == Verdict.APPROVE:
        return row.state == WaitingPod.State.ALLOWED
    denied = row.state == WaitingPod.State.REJECTED
    return (
        decision.verdict == Verdict.DENY
        and denied
        and row.resolved_by == (f"user:{decision.username}")
    )


def _settle_audit(audit_id: int | None) -> None:
    """Say on an action's audit row what the scheduler made of it, once it has said so of every pod
    that the action was about; the first answer stays."""
    if audit_id is None:
        return
    entry = AuditEntry.objects.filter(pk=audit_id, outcome=AuditEntry.Outcome.SENT).first()
    said = Decision.objects.filter(audit=audit_id)
    if entry is None or said.filter(applied=None).exists():
        return
    applied, late = said.filter(applied=True), said.filter(applied=False).order_by("pk").first()
    last = applied.order_by("-pk").first()
    if last is None:
        entry.outcome = AuditEntry.Outcome.TOO_LATE
        entry.message = late.message if late is not None else ""
    else:
        entry.outcome = AuditEntry.Outcome.APPLIED
        entry.message = last.message
        if late is not None:
            counts = f"{applied.count()} of {said.count()} pods"
            entry.message = f"{last.message} ({counts}; another one: {late.message})"
    entry.save(update_fields=["outcome", "message"])
