"""Recorder: the Observer that turns what a scheduler tells into rows and frames.

The scheduler thread only appends to a queue. A thread of the recorder writes batches of at most
1,000 rows, at most 20 times a second, 10 under load, one transaction each, so that a person's
click never waits long for the database. Rows are never dropped: when ``KUBESCHED_RECORDER_QUEUE``
of them wait, the scheduler waits too (back-pressure, measured). A row that the database refuses
again and again is given up, counted and shown. While the database is away the queue is kept and the
batch is tried again.

Compressing a matrix costs more than all the rest of its cycle, so that at most a few are stored
with each batch: first those of waiting pods and failed attempts, then the newest of the others.
The rest wait in memory for quieter moments, until as many later cycles as are kept at all have
passed them by. Where memory runs short the oldest are dropped, counted.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from dashboard import frames, groups, heatmap, retention
from dashboard.leases import Fence, FencedError
from dashboard.observe.writing import observed_frame
from dashboard.publisher import Publisher, get_publisher
from dashboard.recording import FAILED, BatchWriter, Committed
from dashboard.told import Batch, DecisionApplied, MatrixShelf, Record, Told
from scheduler_core.observations import Observation
from scheduler_core.ports import Observer
from scheduler_core.records import (
    BindingRecord,
    ClusterUsage,
    CycleRecord,
    Outcome,
    PermitDecision,
    QueueListing,
    ScoreMatrix,
    WaitingPodRecord,
)

logger = logging.getLogger(__name__)

BATCH_ROWS: Final = 1_000
#: Matrices stored with one batch: where many rows wait, under load, and where few rows wait.
BUSY_MATRICES: Final = 1
BATCH_MATRICES: Final = 4
IDLE_MATRICES: Final = 25
#: A batch of fewer rows than this is a quiet moment, one of more than that is a busy one.
QUIET_ROWS: Final = 20
BUSY_ROWS: Final = 100
BATCH_INTERVAL: Final = 0.05
#: Where batches have more rows than this they come half as often. Much of what a batch costs is the
#: same for any size, the scheduler waits for the interpreter's lock meanwhile, and pages are sent
#: ten frames a second at most.
MANY_ROWS: Final = 50
#: Bytes of matrices that may wait to be written: half for cycles that simply succeeded, half for
#: waiting pods and failed attempts, which people look up later. 650 matrices of 1,523 x 6.
MATRIX_BYTES: Final = 128 * 2**20
RETRY_FIRST: Final = 0.05
RETRY_MOST: Final = 2.0
PRUNE_INTERVAL: Final = 1.0
#: Tries of a batch that fails for another reason than a database that is away.
BAD_BATCH_TRIES: Final = 3


class Recorder(Observer):
    """Records one run. Told by one thread, written by another; ``start()`` before telling.

    Args:
        run_id: whose rows these are.
        fence: the lease under which this process may write.
        publisher: where frames go.
        clock: the scheduler's clock.
        clock_speed: how many of its seconds pass in one second.
        on_fenced: called once, on the recorder's thread, when the lease turns out to be lost.
        on_failed: called with the reason when nothing will be recorded any more although the lease
            is held: the run must end, it would go on unseen.
        wall: the time of day.
        queue_limit: rows that may wait before the scheduler does.
        matrix_bytes: of matrices that may wait before the oldest of them are dropped.
        interval: seconds from the beginning of one batch to the next; twice that under load.
    """

    def __init__(
        self,
        run_id: int,
        *,
        fence: Fence | None,
        publisher: Publisher | None = None,
        clock: Callable[[], float] = time.time,
        clock_speed: float = 1.0,
        on_fenced: Callable[[], None] | None = None,
        on_failed: Callable[[str], None] | None = None,
        wall: Callable[[], float] = time.time,
        queue_limit: int | None = None,
        matrix_bytes: int = MATRIX_BYTES,
        interval: float = BATCH_INTERVAL,
    ) -> None:
        self._run_id = run_id
        self._writer = BatchWriter(run_id, fence)
        self._publisher = publisher if publisher is not None else get_publisher()
        self._clock, self._clock_speed, self._wall = clock, clock_speed, wall
        self._on_fenced, self._on_failed = on_fenced, on_failed
        self._limit = queue_limit or settings.KUBESCHED_RECORDER_QUEUE
        self._interval = interval
        self._name = uuid.uuid4().hex[:12]
        self._changed = threading.Condition()
        # All below is guarded by _changed.
        self._queue: deque[Told] = deque()
        self._listing: QueueListing | None = None
        self._usage: ClusterUsage | None = None
        self._in_flight = 0
        #: Rows that were told, and that are committed; and who waits for how many of them.
        self._told = self._kept = 0
        self._when_kept: deque[tuple[int, Callable[[], None]]] = deque()
        self._writing = False
        self._ordinary = MatrixShelf(matrix_bytes // 2)
        self._wanted = MatrixShelf(matrix_bytes // 2)
        self._flushing = 0
        self._closing = False
        self._give_up_at: float | None = None
        self._fenced = False
        self._dropped_total = 0
        self._dropped_untold = 0
        self._dropped_rows: list[int] = []
        self._last_cycle = 0
        self._refused_total = 0
        self._refused_untold = 0
        self._pressure_total = 0.0
        self._pressure_untold = 0.0
        self._batches = 0
        self._thread: threading.Thread | None = None
        self._next_prune = 0.0

    # --- Observer ---------------------------------------------------------------------------

    def cycle_finished(self, record: CycleRecord) -> None:
        self._tell(record)

    def binding_finished(self, record: BindingRecord) -> None:
        self._tell(record)

    def pod_waiting(self, record: WaitingPodRecord) -> None:
        self._tell(record)

    def pod_resolved(self, record: WaitingPodRecord) -> None:
        self._tell(record)

    def decision_applied(self, decision: PermitDecision, applied: bool, message: str) -> None:
        self._tell(DecisionApplied(decision, applied, message, self._clock()))

    def pod_observed(self, record: Observation) -> None:
        self._tell(record)

    def queues_listed(self, listing: QueueListing) -> None:
        with self._changed:
            self._listing = listing
            self._changed.notify_all()

    def usage_changed(self, usage: ClusterUsage) -> None:
        with self._changed:
            self._usage = usage
            self._changed.notify_all()

    def detached(self, error: Exception) -> None:
        """The scheduler tells nothing more, because this observer raised."""
        self._fail(f"its recorder failed: {error!r}")

    # --- state ------------------------------------------------------------------------------

    @property
    def fenced(self) -> bool:
        """The lease is lost: nothing is written any more."""
        return self._fenced

    @property
    def queued(self) -> int:
        """Rows that are not committed yet."""
        with self._changed:
            return len(self._queue) + self._in_flight

    @property
    def matrices_dropped(self) -> int:
        """Matrices dropped by this recorder."""
        return self._dropped_total

    @property
    def rows_refused(self) -> int:
        """Rows that the database refused and that were given up."""
        return self._refused_total

    @property
    def back_pressure_seconds(self) -> float:
        """How long the scheduler has waited for this recorder."""
        return self._pressure_total

    # --- life -------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to write."""
        self._thread = threading.Thread(
            target=self._run, name=f"recorder-{self._run_id}", daemon=True
        )
        self._thread.start()

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until all that was told so far is committed. False: not within ``timeout``."""
        with self._changed:
            self._flushing += 1
            self._changed.notify_all()
            try:
                return self._changed.wait_for(self._settled, timeout) and not self._fenced
            finally:
                self._flushing -= 1

    def when_kept(self, then: Callable[[], None]) -> None:
        """``Ledger``: call ``then``, on the recorder's thread, once all that was told so far is
        committed; at once where it is. Never, where the lease is lost before. A row that the
        database refuses and that is given up is waited for no longer: it will never be there."""
        with self._changed:
            if self._fenced:
                return
            if self._kept < self._told:
                self._when_kept.append((self._told, then))
                self._changed.notify_all()
                return
        then()

    def close(self, timeout: float = 10.0) -> bool:
        """Write what is queued and stop. False: rows were left behind. May be called twice."""
        with self._changed:
            self._closing = True
            if self._give_up_at is None:
                self._give_up_at = time.monotonic() + timeout
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout + 5.0)
        left = self.queued
        if left:
            logger.error("run %s: %s rows could not be recorded", self._run_id, left)
        return left == 0 and not self._fenced

    # --- the scheduler's thread ---------------------------------------------------------------

    def _tell(self, record: Record) -> None:
        with self._changed:
            self._wait_for_room()
            if self._fenced:
                return
            told = Told(record, int(self._wall()))
            if isinstance(record, CycleRecord) and record.matrix is not None:
                self._keep(told, record, record.matrix)
            self._queue.append(told)
            self._told += 1
            if len(self._queue) == 1:
                self._changed.notify_all()

    def _keep(self, told: Told, record: CycleRecord, matrix: ScoreMatrix) -> None:
        shelf = self._shelf(record)
        dropped, written = shelf.put(told, matrix)
        self._dropped_total += dropped
        self._dropped_untold += dropped
        if shelf is self._ordinary:
            # The row of a cycle that is too old for a matrix need not say why it has none.
            oldest = record.sequence - settings.KUBESCHED_MATRIX_CYCLES
            written = [sequence for sequence in written if sequence > oldest]
        self._dropped_rows += written

    def _wait_for_room(self) -> None:
        if self._has_room():
            return
        began = time.perf_counter()
        self._changed.wait_for(self._has_room)
        waited = time.perf_counter() - began
        self._pressure_total += waited
        self._pressure_untold += waited

    def _has_room(self) -> bool:
        given_up = self._closing and (self._thread is None or not self._thread.is_alive())
        return self._fenced or given_up or len(self._queue) + self._in_flight < self._limit

    def _shelf(self, record: CycleRecord) -> MatrixShelf:
        wanted = record.outcome is Outcome.WAITING or record.outcome in FAILED
        return self._wanted if wanted else self._ordinary

    # --- the recorder's thread ----------------------------------------------------------------

    def _run(self) -> None:
        try:
            while (batch := self._next_batch()) is not None:
                began = time.monotonic()
                if not self._write(batch):
                    return
                self._written()
                self._prune()
                self._pace(began, len(batch.told))
        except Exception as error:
            logger.exception("run %s: the recorder failed", self._run_id)
            self._fail(f"its recorder failed: {error!r}")
        finally:
            connection.close()
            with self._changed:
                self._writing = False
                self._changed.notify_all()

    def _next_batch(self) -> Batch | None:
        """The next rows to write; None when there is nothing left and the recorder is closing."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_work() or self._closing)
            if not self._has_work():
                return None
            told = [self._queue.popleft() for _ in range(min(BATCH_ROWS, len(self._queue)))]
            for item in told:
                self._ordinary.taken(item)
                self._wanted.taken(item)
                if isinstance(item.record, CycleRecord):
                    self._last_cycle = max(self._last_cycle, item.record.sequence)
            self._in_flight, self._writing = len(told), True
            self._batches += 1
            wall = self._wall()
            batch = Batch(
                name=f"{self._name}:{self._batches}",
                told=told,
                listing=self._listing,
                usage=self._usage,
                second=int(wall),
                queued=len(self._queue),
                matrices_dropped=self._dropped_untold,
                back_pressure_seconds=self._pressure_untold,
                clock_at=self._clock(),
                wall_at=wall,
                clock_speed=self._clock_speed,
                matrices=self._next_matrices(len(told)),
                dropped=self._dropped_rows,
                rows_refused=self._refused_untold,
            )
            self._listing = self._usage = None
            self._dropped_untold, self._pressure_untold = 0, 0.0
            self._dropped_rows, self._refused_untold = [], 0
            return batch

    def _next_matrices(self, rows: int) -> list[CycleRecord]:
        self._ordinary.forget(self._last_cycle - settings.KUBESCHED_MATRIX_CYCLES)
        quiet = rows < QUIET_ROWS or self._flushing > 0
        busy = rows > BUSY_ROWS
        most = IDLE_MATRICES if quiet else BUSY_MATRICES if busy else BATCH_MATRICES
        wanted = self._wanted.oldest(most)
        return wanted + self._ordinary.newest(most - len(wanted))

    def _has_work(self) -> bool:
        rows = bool(self._queue) or self._listing is not None or self._usage is not None
        return rows or self._ordinary.ready > 0 or self._wanted.ready > 0 or bool(self._untold())

    def _untold(self) -> int:
        return self._refused_untold + len(self._dropped_rows)

    def _settled(self) -> bool:
        return self._fenced or not (self._has_work() or self._writing)

    def _write(self, batch: Batch) -> bool:
        """Write until it is written. False: the lease is lost, or it is time to give up."""
        delay, failures = RETRY_FIRST, 0
        while True:
            try:
                self._commit(batch)
            except FencedError as error:
                self._fence(error)
                return False
            except (OperationalError, InterfaceError) as error:
                logger.warning("run %s: database away, trying again: %s", self._run_id, error)
            except Exception:
                failures += 1
                logger.exception("run %s: a batch could not be written", self._run_id)
                if failures >= BAD_BATCH_TRIES:
                    return self._write_singly(batch)
            else:
                return True
            connection.close()
            with self._changed:
                if self._give_up_at is not None and time.monotonic() >= self._give_up_at:
                    return False
                self._changed.wait_for(self._gave_up, delay)
            delay = min(RETRY_MOST, 2 * delay)

    def _write_singly(self, batch: Batch) -> bool:
        """One bad record must not hold up the rest: write one by one, and count what cannot be."""
        if not batch.told and not batch.stored_matrices:
            logger.error("run %s: given up: %s", self._run_id, batch.name)
            return True
        if len(batch.told) + len(batch.stored_matrices) == 1:
            self._give_up(batch)
            return True
        parts: list[tuple[list[Told], list[CycleRecord]]] = [([told], []) for told in batch.told]
        parts += [([], [record]) for record in batch.stored_matrices]
        for number, (told, stored) in enumerate(parts):
            single = replace(
                batch,
                name=f"{batch.name}.{number}",
                told=told,
                matrices=stored,
                listing=None,
                usage=None,
            )
            if number:  # counted once, with the first of them
                single = replace(
                    single,
                    matrices_dropped=0,
                    back_pressure_seconds=0.0,
                    dropped=(),
                    rows_refused=0,
                )
            if not self._write(single):
                return False
        return True

    def _give_up(self, batch: Batch) -> None:
        """The database does not take this one row or matrix."""
        with self._changed:
            # What it was to carry besides goes with the next batch.
            self._pressure_untold += batch.back_pressure_seconds
            self._dropped_rows += batch.dropped
            self._refused_untold += batch.rows_refused + len(batch.told)
            self._refused_total += len(batch.told)
            self._dropped_total += len(batch.stored_matrices)
            self._dropped_untold += batch.matrices_dropped + len(batch.stored_matrices)
            self._dropped_rows += [record.sequence for record in batch.stored_matrices]
        what = _in_words(batch.told[0].record) if batch.told else "a matrix of a cycle"
        logger.error("run %s: given up: %s", self._run_id, what)

    def _commit(self, batch: Batch) -> None:
        committed = self._writer.write(batch)
        if committed is not None:
            publish(self._publisher, committed, batch)

    def _written(self) -> None:
        due = []
        with self._changed:
            self._kept += self._in_flight
            self._in_flight, self._writing = 0, False
            while self._when_kept and self._when_kept[0][0] <= self._kept:
                due.append(self._when_kept.popleft()[1])
            self._changed.notify_all()
        for then in due:
            then()

    def _fence(self, error: FencedError) -> None:
        logger.warning("run %s: %s; nothing is written any more", self._run_id, error)
        self._abandon()
        if self._on_fenced is not None:
            self._on_fenced()

    def _fail(self, reason: str) -> None:
        """The run has to end: its scheduler would go on unrecorded, or wait for ever for room."""
        self._abandon()
        if self._on_failed is not None:
            self._on_failed(reason)

    def _abandon(self) -> None:
        with self._changed:
            self._fenced = True
            self._queue.clear()
            self._when_kept.clear()
            self._ordinary.clear()
            self._wanted.clear()
            self._dropped_rows, self._refused_untold = [], 0
            self._listing = self._usage = None
            self._in_flight, self._writing = 0, False
            self._changed.notify_all()

    def _gave_up(self) -> bool:
        return self._give_up_at is not None and time.monotonic() >= self._give_up_at

    def _prune(self) -> None:
        now = time.monotonic()
        if now < self._next_prune:
            return
        self._next_prune = now + PRUNE_INTERVAL
        try:
            retention.prune_matrices(self._run_id)
        except DatabaseError as error:
            logger.warning("run %s: old matrices stay for now: %s", self._run_id, error)

    def _pace(self, began: float, rows: int) -> None:
        """Leave the database to others for the rest of the interval, unless somebody waits."""
        with self._changed:
            self._wait_until(self._is_hurried, began + self._interval)
            if rows > MANY_ROWS:
                self._wait_until(self._is_wanted, began + 2 * self._interval)

    def _is_hurried(self) -> bool:
        return self._flushing > 0 or self._closing

    def _is_wanted(self) -> bool:
        """Bindings of pods that people allowed begin when that is committed."""
        return self._is_hurried() or bool(self._when_kept)

    def _wait_until(self, is_enough: Callable[[], bool], end: float) -> None:
        self._changed.wait_for(is_enough, max(0.0, end - time.monotonic()))


def _in_words(record: Record) -> str:
    """Which record it is, without its arrays."""
    if isinstance(record, DecisionApplied):
        return f"what came of decision {record.decision.decision_id}"
    if isinstance(record, Observation):
        return f"what was observed of {record.pod.key}"
    number = record.sequence if isinstance(record, CycleRecord) else record.cycle
    return f"{type(record).__name__} of cycle {number} of {record.pod.key}"


def publish(publisher: Publisher, done: Committed, batch: Batch) -> None:
    """The frames of one commit."""
    run = done.run
    samples = frames.overview_frame(
        run, done.samples_since, done.samples, done.last_usage, batch.queued
    )
    publisher.publish(run.pk, groups.OVERVIEW, samples)
    if done.cycles:
        frame = frames.cycles_frame(run.pk, done.cycles_since, run.commit_seq, done.cycles)
        frame["skipped"] += done.more_cycles
        publisher.publish(run.pk, groups.CYCLES, frame)
    if done.waiting:
        frame = frames.waiting_frame(
            run.pk, done.waiting_since, run.commit_seq, batch.clock_at, done.waiting
        )
        publisher.publish(run.pk, groups.WAITING, frame)
    if done.observed is not None:
        publisher.publish(run.pk, groups.OBSERVE, observed_frame(run, done.observed))
    if done.listing is not None:
        publisher.publish(
            run.pk, groups.QUEUES, frames.queues_frame(run.pk, run.commit_seq, done.listing)
        )
    if done.matrix is not None:
        publisher.publish(run.pk, groups.HEATMAP, lambda: heatmap.encode_full(done.heatmap()))
