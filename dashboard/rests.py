"""What was turned down, and does not ask again for a while: as rows, for the next scheduler."""

from __future__ import annotations

from collections.abc import Iterable

from dashboard.columns import text
from dashboard.models import SchedulerRun
from dashboard.permits_models import Rest
from scheduler_core import records

_CHUNK = 500


def keep(run: SchedulerRun, found: Iterable[records.Rest], now: float) -> None:
    """Write rests that begin; those of the run that are over ``now`` go. Under the run's lock."""
    rows = {
        (rest.kind, rest.key): Rest(
            run=run,
            kind=rest.kind,
            key=rest.key,
            text=text(rest.text),
            until=rest.until,
            group=rest.group,
            members=dict(rest.members),
        )
        for rest in found
    }
    if not rows:
        return
    Rest.objects.filter(run=run, until__lte=now).delete()
    Rest.objects.bulk_create(
        rows.values(),
        batch_size=_CHUNK,
        update_conflicts=True,
        unique_fields=["run", "kind", "key"],
        update_fields=["text", "until", "group", "members"],
    )


def of_run(run_id: int, now: float) -> list[records.Rest]:
    """Those that are not over, in the order in which they end."""
    rows = Rest.objects.filter(run=run_id, until__gt=now).order_by("until", "pk")
    return [
        records.Rest(row.kind, row.key, row.text, row.until, row.group, row.members) for row in rows
    ]
