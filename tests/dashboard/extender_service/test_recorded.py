"""What is advised goes through the recorder into the database, like a decision of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dashboard.models import SchedulerRun, SchedulingCycle
from dashboard.recorder import Recorder
from scheduler_core.records import Outcome
from tests.dashboard.extender_service.conftest import ServedRun
from tests.dashboard.factory import cycle


@pytest.mark.django_db(transaction=True)
def test_every_verb_is_a_row(
    served: ServedRun, run: SchedulerRun, make_recorder: Callable[..., Recorder]
) -> None:
    served.call("filter", Pod=served.pod(), NodeNames=["a", "b", "c", "d"])
    served.call("prioritize", Pod=served.pod(), NodeNames=["b", "c"])
    served.call("filter", Pod=served.pod("99"), NodeNames=["b", "c"])
    served.call("preempt", Pod=served.pod("3"), NodeNameToMetaVictims={"c": {"Pods": []}})
    recorder = make_recorder(run)
    for record in served.records:
        recorder.cycle_finished(record)
    assert recorder.flush()
    assert recorder.rows_refused == 0
    rows = SchedulingCycle.objects.filter(run=run).order_by("sequence")
    assert [(row.outcome, row.node) for row in rows] == [
        ("advised", ""),
        ("advised", "c"),
        ("unschedulable", ""),
        ("advised", ""),
    ]
    run.refresh_from_db()
    assert (run.advised, run.unschedulable) == (3, 1)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("outcome", list(Outcome))
def test_the_database_takes_every_outcome(
    outcome: Outcome, run: SchedulerRun, make_recorder: Callable[..., Recorder]
) -> None:
    recorder = make_recorder(run)
    recorder.cycle_finished(cycle(1, outcome=outcome.value))
    assert recorder.flush()
    assert recorder.rows_refused == 0
    run.refresh_from_db()
    assert getattr(run, outcome.value) == 1
