"""One batch of told records -> rows, in one transaction.

``BatchWriter`` is the recorder's hand: no queue, no thread, no retry. A batch is written whole or
not at all, and not twice: its name is stored with it, so that a batch whose commit was cut off by
a lost connection is recognised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, Max, OuterRef

from dashboard import commits, frames, heatmap, leases, matrices
from dashboard.columns import binding_columns, cycle_columns
from dashboard.models import (
    CycleMatrix,
    NodeNames,
    RunListing,
    RunState,
    SchedulerRun,
    SchedulingCycle,
    SecondSample,
    WaitingPod,
)
from dashboard.told import Batch, DecisionApplied
from dashboard.waits import WaitingWriter
from scheduler_core.records import (
    BindingRecord,
    CycleRecord,
    Outcome,
    QueueDepths,
    ScoreMatrix,
    WaitingPodRecord,
)

FAILED = frozenset({Outcome.UNSCHEDULABLE, Outcome.ERROR})
_SAMPLED = (Outcome.SCHEDULED, Outcome.UNSCHEDULABLE, Outcome.ERROR)


@dataclass(slots=True)
class Committed:
    """What a batch changed, for the publisher."""

    run: SchedulerRun
    cycles: list[frames.CycleRow] = field(default_factory=list)
    more_cycles: int = 0
    waiting: list[WaitingPod] = field(default_factory=list)
    samples: list[SecondSample] = field(default_factory=list)
    listing: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    last_usage: dict[str, Any] | None = None
    heatmap: heatmap.Heatmap | None = None
    cycles_since: int = 0
    waiting_since: int = 0
    samples_since: int = 0


@dataclass(frozen=True, slots=True)
class _Cycle:
    """A cycle of the batch, and whether its matrix was dropped on the way."""

    record: CycleRecord
    dropped: bool


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A matrix that is ready to be stored."""

    record: CycleRecord
    matrix: ScoreMatrix
    blob: bytes
    names: str


class BatchWriter:
    """Writes batches of one run under one lease. Used by one thread."""

    def __init__(self, run_id: int, fence: leases.Fence | None = None) -> None:
        self._run_id = run_id
        self._fence = fence
        #: Binding cycles that ended before their scheduling cycle was told.
        self._early: dict[int, BindingRecord] = {}
        self._last_cycles: int | None = None
        self._last_samples: int | None = None
        self._last_usage: dict[str, Any] | None = None
        #: Node names are shared by most matrices: hash each tuple once.
        self._hashed: tuple[tuple[str, ...], str] = ((), matrices.names_hash(()))

    def write(self, batch: Batch) -> Committed | None:
        """Commit the batch. None: it had been committed before.

        Raises:
            FencedError: the lease is lost; nothing was written.
            django.db.Error: nothing was written, as far as one can tell.
        """
        cycles = {
            told.record.sequence: _Cycle(told.record, told.dropped)
            for told in batch.told
            if isinstance(told.record, CycleRecord)
        }
        encoded = [
            self._encode(cycle.record, cycle.record.matrix)
            for cycle in cycles.values()
            if cycle.record.matrix is not None
        ]
        listing = frames.listing_dict(batch.listing) if batch.listing is not None else None
        usage = frames.usage_dict(batch.usage) if batch.usage is not None else None
        early = dict(self._early)
        with transaction.atomic():
            if self._fence is not None:
                self._fence.check()
            if RunState.objects.filter(run=self._run_id, last_batch=batch.name).exists():
                self._remember(batch, cycles)
                return None
            run = commits.next_commit(self._run_id, **_counters(batch))
            done = Committed(run, listing=listing, usage=usage)
            self._fill_since(done)
            self._write_cycles(batch, cycles, encoded, early, done)
            self._write_bindings(batch, cycles, early, done)
            self._write_waiting(batch, done)
            done.samples = self._write_samples(batch, run.commit_seq)
            self._write_state(batch, done)
        self._early = early
        if usage is not None:
            self._last_usage = usage
        done.last_usage = self._last_usage
        if done.cycles:
            self._last_cycles = run.commit_seq
        if done.samples:
            self._last_samples = run.commit_seq
        if encoded:
            done.heatmap = _heatmap(run, encoded[-1])
        return done

    def _remember(self, batch: Batch, cycles: Mapping[int, _Cycle]) -> None:
        """Catch up with a batch that was committed although its writer was told otherwise. Its
        frames were never made: the next ones must not look as if they followed older ones."""
        self._last_cycles = self._last_samples = None
        ends = {t.record.cycle: t.record for t in batch.told if isinstance(t.record, BindingRecord)}
        rows = SchedulingCycle.objects.filter(run=self._run_id, sequence__in=ends)
        known = {*cycles, *rows.values_list("sequence", flat=True)}
        early = {**self._early, **ends}
        self._early = {cycle: end for cycle, end in early.items() if cycle not in known}

    # --- cycles -----------------------------------------------------------------------------

    def _encode(self, record: CycleRecord, matrix: ScoreMatrix) -> _Encoded:
        if matrix.node_names is not self._hashed[0]:
            self._hashed = (matrix.node_names, matrices.names_hash(matrix.node_names))
        return _Encoded(record, matrix, matrices.encode(matrix), self._hashed[1])

    def _write_cycles(
        self,
        batch: Batch,
        cycles: Mapping[int, _Cycle],
        encoded: Sequence[_Encoded],
        early: dict[int, BindingRecord],
        done: Committed,
    ) -> None:
        ends = {
            told.record.cycle: told.record
            for told in batch.told
            if isinstance(told.record, BindingRecord)
        }
        rows = [
            cycle_columns(self._run_id, done.run.commit_seq, item.record, item.dropped)
            for item in cycles.values()
        ]
        for row in rows:
            end = ends.get(row.sequence) or early.pop(row.sequence, None)
            if end is not None:
                row.bound, row.binding = end.bound, binding_columns(end)
        rows = SchedulingCycle.objects.bulk_create(rows)
        by_sequence = {row.sequence: row for row in rows}
        self._write_matrices(by_sequence, encoded)
        stored = {item.record.sequence for item in encoded}
        done.cycles = [frames.cycle_row(row, row.sequence in stored) for row in rows]

    def _write_matrices(
        self, cycles: Mapping[int, SchedulingCycle], encoded: Sequence[_Encoded]
    ) -> None:
        if not encoded:
            return
        names = {item.names: item.matrix.node_names for item in encoded}
        ids = {key: _names_id(key, value) for key, value in names.items()}
        last_failed = {
            item.record.pod.uid: item.record.sequence
            for item in encoded
            if item.record.outcome in FAILED
        }
        CycleMatrix.objects.filter(
            run=self._run_id, pod_uid__in=last_failed, pin=CycleMatrix.Pin.LAST_FAILED
        ).update(pin=CycleMatrix.Pin.LATEST)
        CycleMatrix.objects.bulk_create(
            CycleMatrix(
                cycle=cycles[item.record.sequence],
                run_id=self._run_id,
                sequence=item.record.sequence,
                pod_uid=item.record.pod.uid,
                pin=_pin(item.record, last_failed),
                node_names_id=ids[item.names],
                blob=item.blob,
            )
            for item in encoded
        )

    def _write_bindings(
        self,
        batch: Batch,
        cycles: Mapping[int, _Cycle],
        early: dict[int, BindingRecord],
        done: Committed,
    ) -> None:
        changed: list[int] = []
        for told in batch.told:
            end = told.record
            if not isinstance(end, BindingRecord) or end.cycle in cycles:
                continue
            known = SchedulingCycle.objects.filter(run=self._run_id, sequence=end.cycle).update(
                bound=end.bound, binding=binding_columns(end), commit_seq=done.run.commit_seq
            )
            if known:
                changed.append(end.cycle)
            else:
                early[end.cycle] = end
        newest = sorted(changed)[-frames.CYCLES_PER_FRAME :]
        done.more_cycles = len(changed) - len(newest)
        rows = SchedulingCycle.objects.filter(run=self._run_id, sequence__in=newest)
        rows = rows.annotate(kept=Exists(CycleMatrix.objects.filter(cycle=OuterRef("pk"))))
        done.cycles += [frames.cycle_row(row, row.kept) for row in rows.defer("detail")]

    # --- waits ------------------------------------------------------------------------------

    def _write_waiting(self, batch: Batch, done: Committed) -> None:
        waits = WaitingWriter(done.run)
        for told in batch.told:
            if isinstance(told.record, WaitingPodRecord):
                waits.tell(told.record)
            elif isinstance(told.record, DecisionApplied):
                waits.decided(told.record)
        done.waiting = list(WaitingPod.objects.filter(pk__in=waits.changed).order_by("pk"))

    # --- samples and states -----------------------------------------------------------------

    def _write_samples(self, batch: Batch, commit_seq: int) -> list[SecondSample]:
        counts: dict[int, Counter[str]] = {}
        depths: dict[int, QueueDepths] = {}
        for told in batch.told:
            if not isinstance(told.record, CycleRecord):
                continue
            counts.setdefault(told.second, Counter())[told.record.outcome.value] += 1
            depths[told.second] = told.record.depths
        if batch.listing is not None:
            counts.setdefault(batch.second, Counter())
            depths[batch.second] = batch.listing.depths
        samples = []
        for second in sorted(counts):
            sample, _ = SecondSample.objects.get_or_create(
                run_id=self._run_id, second=second, defaults={"commit_seq": commit_seq}
            )
            sample.commit_seq = commit_seq
            for outcome in _SAMPLED:
                value = getattr(sample, outcome.value) + counts[second][outcome.value]
                setattr(sample, outcome.value, value)
            for name, value in frames.depths_dict(depths[second]).items():
                setattr(sample, f"depth_{name}", value)
            sample.save()
            samples.append(sample)
        return samples

    def _write_state(self, batch: Batch, done: Committed) -> None:
        RunState.objects.update_or_create(
            run_id=self._run_id,
            defaults={
                "recorder_queued": batch.queued,
                "last_batch": batch.name,
                "clock_at": batch.clock_at,
                "wall_at": batch.wall_at,
                "clock_speed": batch.clock_speed,
            },
        )
        topics = ((RunListing.Topic.QUEUES, done.listing), (RunListing.Topic.USAGE, done.usage))
        for topic, value in topics:
            if value is not None:
                RunListing.objects.update_or_create(
                    run_id=self._run_id,
                    topic=topic,
                    defaults={"commit_seq": done.run.commit_seq, "blob": frames.pack(value)},
                )

    def _fill_since(self, done: Committed) -> None:
        """Which commit each topic's frame follows; asked once, then known."""
        if self._last_cycles is None:
            self._last_cycles = _last_commit(SchedulingCycle, self._run_id)
        if self._last_samples is None:
            self._last_samples = _last_commit(SecondSample, self._run_id)
        done.cycles_since, done.samples_since = self._last_cycles, self._last_samples
        done.waiting_since = commits.last_waiting_commit(self._run_id)


def _counters(batch: Batch) -> dict[str, Any]:
    """The run's columns that the batch changes."""
    counts: Counter[str] = Counter()
    last = 0
    for told in batch.told:
        if isinstance(told.record, CycleRecord):
            counts[told.record.outcome.value] += 1
            last = max(last, told.record.sequence)
        elif isinstance(told.record, BindingRecord):
            counts["bound" if told.record.bound else "bind_failed"] += 1
    changes: dict[str, Any] = {name: F(name) + count for name, count in counts.items()}
    if last:
        changes["last_sequence"] = last
    if batch.matrices_dropped:
        changes["matrices_dropped"] = F("matrices_dropped") + batch.matrices_dropped
    if batch.back_pressure_seconds:
        changes["back_pressure_seconds"] = F("back_pressure_seconds") + batch.back_pressure_seconds
    return changes


def _pin(record: CycleRecord, last_failed: Mapping[str, int]) -> CycleMatrix.Pin:
    if record.outcome is Outcome.WAITING:
        return CycleMatrix.Pin.WAITING
    if last_failed.get(record.pod.uid) == record.sequence:
        return CycleMatrix.Pin.LAST_FAILED
    return CycleMatrix.Pin.LATEST


def _names_id(key: str, names: tuple[str, ...]) -> int:
    row = NodeNames.objects.filter(hash=key).only("pk").first()
    if row is None:
        row, _ = NodeNames.objects.get_or_create(
            hash=key, defaults={"blob": matrices.encode_names(names)}
        )
    return row.pk


def _heatmap(run: SchedulerRun, item: _Encoded) -> heatmap.Heatmap:
    record = item.record
    return heatmap.from_matrix(
        item.matrix,
        seq=run.commit_seq,
        run=run.pk,
        sequence=record.sequence,
        pod=record.pod.key,
        outcome=record.outcome.value,
        node=record.node,
        names_hash=item.names,
    )


def _last_commit(model: type[SchedulingCycle] | type[SecondSample], run_id: int) -> int:
    found = model._default_manager.filter(run=run_id).aggregate(last=Max("commit_seq"))["last"]
    return int(found or 0)
