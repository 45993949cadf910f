"""What an observing scheduler told -> rows and totals; part of a recorder's transaction."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db.models import Max

from dashboard.columns import text
from dashboard.frames import Frame
from dashboard.models import SchedulerRun
from dashboard.observe import frames
from dashboard.observe.models import ObservedPod, ObservedTotals
from scheduler_core.observations import LEFT_OUT, PLACED, Observation, Verdict

__all__ = ["ObservationWriter", "Observed", "last_commit", "observed_frame", "recent_verdicts"]

_CHUNK: Final = 200
#: Everything but what tells the row.
_UPDATED: Final = tuple(
    f.attname for f in ObservedPod._meta.concrete_fields if f.attname not in ("id", "run_id", "uid")
)


@dataclass(slots=True)
class Observed:
    """What a batch changed, for the publisher."""

    since: int = 0
    pods: list[ObservedPod] = field(default_factory=list)
    skipped: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    recent: Counter[str] = field(default_factory=Counter)
    pending: int = 0


class ObservationWriter:
    """Writes the observations of one run. Used by one thread, inside transactions."""

    def __init__(self, run_id: int) -> None:
        self._run_id = run_id
        self._last: int | None = None
        self._recent: deque[str] | None = None

    def write(self, run: SchedulerRun, told: Sequence[Observation]) -> Observed | None:
        """None where nothing was told. The run's lock is held."""
        if not told:
            return None
        if self._last is None:
            self._last = last_commit(self._run_id)
        if self._recent is None:
            self._recent = deque(recent_verdicts(self._run_id), maxlen=frames.RECENT)
        since = self._last
        rows = {record.pod.uid: record for record in told if record.verdict not in LEFT_OUT}
        self._write_rows(run, list(rows.values()))
        counts = self._count(told)
        self._recent.extend(r.verdict.value for r in told if r.verdict in PLACED)
        newest = ObservedPod.objects.filter(run=self._run_id, commit_seq=run.commit_seq)
        pods = list(newest.defer("comparison").order_by("-sequence")[: frames.PODS_PER_FRAME])
        pending = ObservedPod.objects.filter(run=self._run_id, verdict=Verdict.PENDING.value)
        if rows:
            self._last = run.commit_seq
        return Observed(
            since=since,
            pods=pods[::-1],
            skipped=len(rows) - len(pods),
            counts=counts,
            recent=Counter(self._recent),
            pending=pending.count(),
        )

    def forget(self) -> None:
        """The transaction did not end well, or was another's: ask the database again."""
        self._last = self._recent = None

    def _write_rows(self, run: SchedulerRun, records: Sequence[Observation]) -> None:
        for start in range(0, len(records), _CHUNK):
            ObservedPod.objects.bulk_create(
                [_row(run, record) for record in records[start : start + _CHUNK]],
                update_conflicts=True,
                unique_fields=["run", "uid"],
                update_fields=_UPDATED,
            )

    def _count(self, told: Sequence[Observation]) -> dict[str, int]:
        more = Counter(r.verdict.value for r in told if r.verdict is not Verdict.PENDING)
        totals, _ = ObservedTotals.objects.get_or_create(run_id=self._run_id)
        if more:
            totals.counts = dict(Counter(totals.counts) + more)
            totals.save(update_fields=["counts"])
        return dict(totals.counts)


def observed_frame(run: SchedulerRun, done: Observed) -> Frame:
    """What pages are sent of it."""
    return frames.frame(
        run.pk,
        done.since,
        run.commit_seq,
        pods=done.pods,
        skipped=done.skipped,
        counts=done.counts,
        recent=done.recent,
        pending=done.pending,
    )


def last_commit(run_id: int) -> int:
    """The number of the last commit that changed a row; what a new frame follows."""
    found = ObservedPod.objects.filter(run=run_id).aggregate(last=Max("commit_seq"))["last"]
    return int(found or 0)


def recent_verdicts(run_id: int) -> list[str]:
    """Of the pods that were placed last, the latest last."""
    placed = [verdict.value for verdict in PLACED]
    rows = ObservedPod.objects.filter(run=run_id, verdict__in=placed).order_by("-sequence")
    return list(rows.values_list("verdict", flat=True)[: frames.RECENT])[::-1]


def _row(run: SchedulerRun, record: Observation) -> ObservedPod:
    return ObservedPod(
        run_id=run.pk,
        uid=record.pod.uid,
        namespace=record.pod.namespace,
        name=record.pod.name,
        sequence=record.sequence,
        commit_seq=run.commit_seq,
        verdict=record.verdict.value,
        scheduler=text(record.scheduler, 253),
        profile=text(record.profile, 253),
        seen_at=record.seen_at,
        at=record.at,
        ours=record.ours,
        actual=text(record.actual, 253),
        ours_total=record.ours_total,
        actual_total=record.actual_total,
        ties=record.ties,
        nodes_total=record.nodes_total,
        nodes_feasible=record.nodes_feasible,
        first=record.first,
        why=text(record.why),
        plugin=text(record.plugin, 253),
        comparison=_comparison(record),
        duration=record.duration,
    )


def _comparison(record: Observation) -> list[Any]:
    return [[c.plugin, list(c.ours), list(c.theirs)] for c in record.comparison]
