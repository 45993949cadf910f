"""One batch of told records -> rows, in one transaction.

``BatchWriter`` is the recorder's hand: no queue, no thread, no retry. A batch is written whole or
not at all, and not twice: its name is stored with it, so that a batch whose commit was cut off by
a lost connection is recognised. What can be worked out before the transaction is, and what a
statement need not ask is remembered from the batch before: others wait for the database meanwhile.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import models
from django.db.models import Exists, F, Max, OuterRef

from dashboard import bulk, columns, commits, frames, heatmap, leases, matrices
from dashboard.columns import PreparedCycle
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
from dashboard.observe.writing import ObservationWriter, Observed
from dashboard.told import Batch, DecisionApplied
from dashboard.waits import WaitingWriter
from scheduler_core.observations import Observation
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
#: Latest cycles whose lines are remembered: their bindings end soon, and then they are sent again.
_LINES_KEPT: Final = 2_000


@dataclass(slots=True)
class Committed:
    """What a batch changed, for the publisher."""

    run: SchedulerRun
    cycles: list[frames.CycleRow] = field(default_factory=list)
    more_cycles: int = 0
    waiting: list[WaitingPod] = field(default_factory=list)
    samples: list[SecondSample] = field(default_factory=list)
    listing: dict[str, Any] | None = None
    last_usage: dict[str, Any] | None = None
    matrix: tuple[CycleRecord, ScoreMatrix, str] | None = None
    cycles_since: int = 0
    waiting_since: int = 0
    observed: Observed | None = None
    samples_since: int = 0

    def heatmap(self) -> heatmap.Heatmap:
        """The latest matrix of the batch, as pages draw it; made only for a frame that is sent."""
        assert self.matrix is not None
        record, matrix, names_hash = self.matrix
        return heatmap.from_matrix(
            matrix,
            seq=self.run.commit_seq,
            run=self.run.pk,
            sequence=record.sequence,
            pod=record.pod.key,
            outcome=record.outcome.value,
            node=record.node,
            names_hash=names_hash,
        )


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A matrix that is ready to be stored."""

    record: CycleRecord
    matrix: ScoreMatrix
    blob: bytes
    names: str


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What is made of a batch before its transaction begins."""

    cycles: dict[int, PreparedCycle]
    ends: dict[int, BindingRecord]
    encoded: list[_Encoded]
    listing: dict[str, Any] | None
    usage: dict[str, Any] | None
    blobs: dict[str, bytes]


class BatchWriter:
    """Writes batches of one run under one lease. Used by one thread."""

    def __init__(self, run_id: int, fence: leases.Fence | None = None) -> None:
        self._run_id = run_id
        self._fence = fence
        #: Binding cycles that ended before their scheduling cycle was told.
        self._early: dict[int, BindingRecord] = {}
        self._tried = ""
        self._last_cycles: int | None = None
        self._last_samples: int | None = None
        self._last_usage: dict[str, Any] | None = None
        self._lines: OrderedDict[int, frames.CycleRow] = OrderedDict()
        self._samples: dict[int, SecondSample] = {}
        #: Node names are shared by most matrices: hash each tuple once.
        self._hashed: tuple[tuple[str, ...], str] = ((), matrices.names_hash(()))
        self._names_ids: dict[str, int] = {}
        self._encoder = matrices.Encoder()
        self._observations = ObservationWriter(run_id)

    def write(self, batch: Batch) -> Committed | None:
        """Commit the batch. None: it had been committed before.

        Raises:
            FencedError: the lease is lost; nothing was written.
            django.db.Error: nothing was written, as far as one can tell.
        """
        prepared = self._prepare(batch)
        tried, self._tried = self._tried, batch.name
        early = dict(self._early)
        try:
            with bulk.write_turn():
                if self._fence is not None:
                    self._fence.check()
                if tried == batch.name and self._is_committed(batch):
                    self._remember(prepared)
                    return None
                run = commits.next_commit(self._run_id, **_counters(batch))
                done = Committed(run, listing=prepared.listing)
                self._fill_since(done, any(_is_wait(told.record) for told in batch.told))
                self._write_cycles(prepared, early, done)
                self._write_matrices(prepared.encoded)
                self._write_dropped(batch.dropped)
                self._write_bindings(prepared, early, done)
                self._write_waiting(batch, done)
                observed = [t.record for t in batch.told if isinstance(t.record, Observation)]
                done.observed = self._observations.write(run, observed)
                done.samples = self._write_samples(batch, run.commit_seq)
                self._write_state(batch, prepared, run.commit_seq)
        except BaseException:
            self._forget()
            raise
        self._early = early
        self._told(done, prepared)
        return done

    def _prepare(self, batch: Batch) -> _Prepared:
        listing = frames.listing_dict(batch.listing) if batch.listing is not None else None
        usage = frames.usage_dict(batch.usage) if batch.usage is not None else None
        states = ((RunListing.Topic.QUEUES, listing), (RunListing.Topic.USAGE, usage))
        return _Prepared(
            cycles=columns.prepare_cycles(batch.told),
            ends={
                t.record.cycle: t.record for t in batch.told if isinstance(t.record, BindingRecord)
            },
            encoded=[self._encode(record) for record in batch.stored_matrices],
            listing=listing,
            usage=usage,
            blobs={topic.value: frames.pack(value) for topic, value in states if value is not None},
        )

    def _is_committed(self, batch: Batch) -> bool:
        return RunState.objects.filter(run=self._run_id, last_batch=batch.name).exists()

    def _told(self, done: Committed, prepared: _Prepared) -> None:
        """The batch is committed: remember what the next one need not ask."""
        if prepared.usage is not None:
            self._last_usage = prepared.usage
        done.last_usage = self._last_usage
        if done.cycles or done.more_cycles:
            self._last_cycles = done.run.commit_seq
        if done.samples:
            self._last_samples = done.run.commit_seq
            self._samples = {sample.second: sample for sample in done.samples[-2:]}
        for row in done.cycles:
            self._lines[row["sequence"]] = row
        while len(self._lines) > _LINES_KEPT:
            self._lines.popitem(last=False)
        records = (cycle.record for cycle in reversed(prepared.cycles.values()))
        latest = next((record for record in records if record.matrix is not None), None)
        if latest is not None and latest.matrix is not None:
            done.matrix = (latest, latest.matrix, self._hash(latest.matrix))

    def _forget(self) -> None:
        """What was remembered may not be so: the transaction did not end well."""
        self._observations.forget()
        self._samples.clear()
        self._lines.clear()
        self._names_ids.clear()

    def _remember(self, prepared: _Prepared) -> None:
        """Catch up with a batch that was committed although its writer was told otherwise. Its
        frames were never made: the next ones must not look as if they followed older ones."""
        self._last_cycles = self._last_samples = None
        self._observations.forget()
        rows = SchedulingCycle.objects.filter(run=self._run_id, sequence__in=prepared.ends)
        known = {*prepared.cycles, *rows.values_list("sequence", flat=True)}
        early = {**self._early, **prepared.ends}
        self._early = {cycle: end for cycle, end in early.items() if cycle not in known}

    # --- cycles -----------------------------------------------------------------------------

    def _write_cycles(
        self, prepared: _Prepared, early: dict[int, BindingRecord], done: Committed
    ) -> None:
        seq = done.run.commit_seq
        stored = {item.record.sequence for item in prepared.encoded}
        ends = {
            sequence: prepared.ends.get(sequence) or early.pop(sequence, None)
            for sequence in prepared.cycles
        }
        bulk.insert(
            SchedulingCycle,
            columns.CYCLE,
            [
                columns.cycle_values(self._run_id, seq, cycle, ends[sequence])
                for sequence, cycle in prepared.cycles.items()
            ],
        )
        # Bindings that end later need a line of each of them.
        newest = list(prepared.cycles.items())[-_LINES_KEPT:]
        done.more_cycles = len(prepared.cycles) - len(newest)
        for sequence, cycle in newest:
            end = ends[sequence]
            bound = None if end is None else end.bound
            done.cycles.append(frames.told_row(cycle.record, seq, bound, sequence in stored))

    def _write_bindings(
        self, prepared: _Prepared, early: dict[int, BindingRecord], done: Committed
    ) -> None:
        seq = done.run.commit_seq
        ends = {c: end for c, end in prepared.ends.items() if c not in prepared.cycles}
        if not ends:
            return
        rows = [(c, end.bound, columns.binding_text(end), seq) for c, end in ends.items()]
        fields = ("bound", "binding", "commit_seq")
        where = 't."run_id" = %s'
        found = bulk.update(SchedulingCycle, "sequence", fields, rows, where, [self._run_id])
        known = set(found)
        early.update((c, end) for c, end in ends.items() if c not in known)
        newest = sorted(known)[-frames.CYCLES_PER_FRAME :]
        done.more_cycles += len(known) - len(newest)
        done.cycles += self._bound_lines(newest, ends, seq)

    def _bound_lines(
        self, newest: Sequence[int], ends: Mapping[int, BindingRecord], seq: int
    ) -> list[frames.CycleRow]:
        lines: list[frames.CycleRow] = []
        for sequence in newest:
            line = self._lines.get(sequence)
            if line is not None:
                lines.append({**line, "commit_seq": seq, "bound": ends[sequence].bound})
        missing = [sequence for sequence in newest if sequence not in self._lines]
        if missing:
            rows = SchedulingCycle.objects.filter(run=self._run_id, sequence__in=missing)
            rows = rows.annotate(kept=Exists(CycleMatrix.objects.filter(cycle=OuterRef("pk"))))
            lines += [frames.cycle_row(row, row.kept) for row in rows.defer("detail", "binding")]
        return lines

    # --- matrices ---------------------------------------------------------------------------

    def _encode(self, record: CycleRecord) -> _Encoded:
        matrix = record.matrix
        assert matrix is not None
        return _Encoded(record, matrix, self._encoder.encode(matrix), self._hash(matrix))

    def _hash(self, matrix: ScoreMatrix) -> str:
        if matrix.node_names is not self._hashed[0]:
            self._hashed = (matrix.node_names, matrices.names_hash(matrix.node_names))
        return self._hashed[1]

    def _write_matrices(self, encoded: Sequence[_Encoded]) -> None:
        if not encoded:
            return
        last_failed = self._supersede(encoded)
        waiting = self._still_waiting(encoded)
        sequences = [item.record.sequence for item in encoded]
        rows = SchedulingCycle.objects.filter(run=self._run_id, sequence__in=sequences)
        ids = dict(rows.values_list("sequence", "pk"))
        names = self._ids_of_names(encoded)
        bulk.insert(
            CycleMatrix,
            ("cycle_id", "run_id", "sequence", "pod_uid", "pin", "node_names_id", "blob"),
            [
                (
                    ids[item.record.sequence],
                    self._run_id,
                    item.record.sequence,
                    item.record.pod.uid,
                    _pin(item.record, last_failed, waiting).value,
                    names[item.names],
                    item.blob,
                )
                for item in encoded
                if item.record.sequence in ids
            ],
        )

    def _supersede(self, encoded: Sequence[_Encoded]) -> dict[str, int]:
        """Each pod's last failed cycle among these; earlier ones are kept no longer than others."""
        last_failed: dict[str, int] = {}
        for item in encoded:
            if item.record.outcome in FAILED:
                uid, sequence = item.record.pod.uid, item.record.sequence
                last_failed[uid] = max(sequence, last_failed.get(uid, 0))
        if last_failed:
            CycleMatrix.objects.filter(
                run=self._run_id, pod_uid__in=last_failed, pin=CycleMatrix.Pin.LAST_FAILED
            ).update(pin=CycleMatrix.Pin.LATEST)
        return last_failed

    def _still_waiting(self, encoded: Sequence[_Encoded]) -> frozenset[int]:
        """The cycles among these whose pods wait at Permit, or whose wait is still to be written.

        A matrix may be stored some batches after its cycle: the wait may be over by then.
        """
        parked = [i.record.sequence for i in encoded if i.record.outcome is Outcome.WAITING]
        if not parked:
            return frozenset()
        ended = WaitingPod.objects.filter(run=self._run_id, cycle__in=parked)
        ended = ended.exclude(state__in=WaitingPod.OPEN)
        return frozenset(parked) - frozenset(ended.values_list("cycle", flat=True))

    def _ids_of_names(self, encoded: Sequence[_Encoded]) -> dict[str, int]:
        """The row of each list of node names, by its hash."""
        lists = {item.names: item.matrix.node_names for item in encoded}
        # Lists that no matrix has any more are thrown away: they must still be there.
        known = [self._names_ids[names] for names in lists if names in self._names_ids]
        there = set(NodeNames.objects.filter(pk__in=known).values_list("pk", flat=True))
        found = {n: pk for n, pk in self._names_ids.items() if n in lists and pk in there}
        for names, nodes in lists.items():
            if names not in found:
                found[names] = _names_id(names, nodes)
        self._names_ids = found
        return found

    def _write_dropped(self, dropped: Sequence[int]) -> None:
        if dropped:
            rows = SchedulingCycle.objects.filter(run=self._run_id, sequence__in=dropped)
            rows.update(matrix_dropped=True)

    # --- waits ------------------------------------------------------------------------------

    def _write_waiting(self, batch: Batch, done: Committed) -> None:
        waits = WaitingWriter(done.run)
        for told in batch.told:
            if isinstance(told.record, WaitingPodRecord):
                waits.tell(told.record)
            elif isinstance(told.record, DecisionApplied):
                waits.decided(told.record)
        waits.bound(t.record for t in batch.told if isinstance(t.record, BindingRecord))
        if waits.changed:
            done.waiting = list(WaitingPod.objects.filter(pk__in=waits.changed).order_by("pk"))
        waits.keep_rests(batch.clock_at)
        waits.tell_webhooks(done.waiting)

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
        return [
            self._write_sample(second, commit_seq, counts[second], depths[second])
            for second in sorted(counts)
        ]

    def _write_sample(
        self, second: int, commit_seq: int, counts: Counter[str], depths: QueueDepths
    ) -> SecondSample:
        sample = self._samples.get(second)
        if sample is None:
            sample, _ = SecondSample.objects.get_or_create(
                run_id=self._run_id, second=second, defaults={"commit_seq": commit_seq}
            )
        sample.commit_seq = commit_seq
        for outcome in _SAMPLED:
            setattr(sample, outcome.value, getattr(sample, outcome.value) + counts[outcome.value])
        for name, value in frames.depths_dict(depths).items():
            setattr(sample, f"depth_{name}", value)
        sample.save(force_update=True)
        return sample

    def _write_state(self, batch: Batch, prepared: _Prepared, commit_seq: int) -> None:
        _put(
            RunState,
            {"run_id": self._run_id},
            recorder_queued=batch.queued,
            last_batch=batch.name,
            clock_at=batch.clock_at,
            wall_at=batch.wall_at,
            clock_speed=batch.clock_speed,
        )
        for topic, blob in prepared.blobs.items():
            _put(
                RunListing,
                {"run_id": self._run_id, "topic": topic},
                commit_seq=commit_seq,
                blob=blob,
            )

    def _fill_since(self, done: Committed, with_waits: bool) -> None:
        """Which commit each topic's frame follows; asked once, then known. The waits have another
        writer, too."""
        if self._last_cycles is None:
            self._last_cycles = _last_commit(SchedulingCycle, self._run_id)
        if self._last_samples is None:
            self._last_samples = _last_commit(SecondSample, self._run_id)
        done.cycles_since, done.samples_since = self._last_cycles, self._last_samples
        if with_waits:
            done.waiting_since = commits.last_waiting_commit(self._run_id)


def _is_wait(record: object) -> bool:
    return isinstance(record, WaitingPodRecord | DecisionApplied)


def _put(model: type[models.Model], key: Mapping[str, Any], **values: Any) -> None:
    """Update the one row of ``key``, or make it."""
    rows = model._default_manager
    if not rows.filter(**key).update(**values):
        rows.create(**key, **values)


def _counters(batch: Batch) -> dict[str, Any]:
    """The run's columns that the batch changes."""
    counts: Counter[str] = Counter()
    last = 0
    for told in batch.told:
        if isinstance(told.record, CycleRecord):
            counts[told.record.outcome.value] += 1
            last = max(last, told.record.sequence)
        elif isinstance(told.record, Observation):
            last = max(last, told.record.sequence)
        elif isinstance(told.record, BindingRecord):
            counts["bound" if told.record.bound else "bind_failed"] += 1
    changes: dict[str, Any] = {name: F(name) + count for name, count in counts.items()}
    if last:
        changes["last_sequence"] = last
    if batch.matrices_dropped:
        changes["matrices_dropped"] = F("matrices_dropped") + batch.matrices_dropped
    if batch.rows_refused:
        changes["rows_refused"] = F("rows_refused") + batch.rows_refused
    if batch.back_pressure_seconds:
        changes["back_pressure_seconds"] = F("back_pressure_seconds") + batch.back_pressure_seconds
    return changes


def _pin(
    record: CycleRecord, last_failed: Mapping[str, int], waiting: Iterable[int]
) -> CycleMatrix.Pin:
    if record.sequence in waiting:
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


def _last_commit(model: type[SchedulingCycle] | type[SecondSample], run_id: int) -> int:
    found = model._default_manager.filter(run=run_id).aggregate(last=Max("commit_seq"))["last"]
    return int(found or 0)
