"""The worker's side of the waiting rows. The people's side is ``permits.decide``."""

from __future__ import annotations

from dashboard import audit
from dashboard.columns import fill_waiting, text
from dashboard.models import CycleMatrix, SchedulerRun, WaitingPod
from dashboard.told import DecisionApplied
from scheduler_core.records import WaitingPodRecord


class WaitingWriter:
    """Writes waits, inside one transaction that holds the run's lock."""

    def __init__(self, run: SchedulerRun) -> None:
        self._run = run
        self.changed: set[int] = set()

    def tell(self, record: WaitingPodRecord) -> None:
        """A wait began or went on, or ended."""
        found = WaitingPod.objects.filter(
            run=self._run, uid=record.pod.uid, state__in=WaitingPod.OPEN
        )
        # Ordered by the key SQLite would walk through every wait of the run.
        row = found.order_by("since").first()
        if row is not None and row.since != record.since:
            self._end(row, WaitingPod.State.REMOVED, f"Scheduled again in cycle {record.cycle}.")
            row = None
        if row is not None and row.cycle != record.cycle:
            # The same wait, restored by the next worker in a cycle of its own.
            self._release(row.cycle)
        if row is None:
            row = WaitingPod(run=self._run, uid=record.pod.uid, state=WaitingPod.State.WAITING)
        fill_waiting(row, record)
        row.commit_seq = self._run.commit_seq
        if record.outcome is not None:
            row.state = record.outcome.value
            row.message = text(record.message)
            row.resolved_by = text(record.resolved_by, 300)
            row.resolved_at = record.resolved_at
            row.pending = []
            self._release(record.cycle)
            approved = row.decision_verdict == WaitingPod.Verdict.APPROVE
            self._settle(row, approved and row.state == WaitingPod.State.ALLOWED)
        row.save()
        self.changed.add(row.pk)

    def decided(self, told: DecisionApplied) -> None:
        """A person's decision was taken up, in time or not."""
        found = WaitingPod.objects.filter(run=self._run, pk=told.decision.decision_id).update(
            decision_applied_at=told.at, commit_seq=self._run.commit_seq
        )
        if found:
            self.changed.add(told.decision.decision_id)
            audit.settle(told.decision.decision_id, told.applied, text(told.message))

    def _end(self, row: WaitingPod, state: str, message: str) -> None:
        row.state, row.message, row.pending = state, message, []
        row.commit_seq = self._run.commit_seq
        row.save()
        self._release(row.cycle)
        self.changed.add(row.pk)
        self._settle(row, False)

    def _settle(self, row: WaitingPod, applied: bool) -> None:
        """Close the audit row of a decision that the scheduler never reported: the wait ended
        before the scheduler saw it, or the scheduler died between acting on it and saying so."""
        if row.decision_verdict and row.decision_applied_at is None:
            audit.settle(row.pk, applied, row.message)

    def _release(self, cycle: int) -> None:
        """The matrix of a wait that ended is kept no longer than its neighbours."""
        CycleMatrix.objects.filter(
            run=self._run, sequence=cycle, pin=CycleMatrix.Pin.WAITING
        ).update(pin=CycleMatrix.Pin.LATEST)
