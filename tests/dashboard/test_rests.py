"""What was turned down stays away after a restart: its rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dashboard import rests
from dashboard.models import SchedulerRun
from dashboard.permits_models import Rest as Row
from dashboard.recording import BatchWriter
from dashboard.told import Batch, Told
from scheduler_core.records import Rest
from tests.dashboard.factory import NOW, make_run, resolved, wait

pytestmark = pytest.mark.django_db(transaction=True)
GANG = Rest(
    "PodGroup", "default/g", "denied by olga", NOW + 300, "d1", {"uid-a": "x", "uid-b": "y"}
)


def told(run: SchedulerRun, *records: Any, at: float = NOW) -> None:
    batch = Batch(f"r:{at}", [Told(record, 0) for record in records], clock_at=at)
    BatchWriter(run.pk).write(batch)


def test_it_is_kept_with_the_end_of_the_wait(run: SchedulerRun) -> None:
    told(run, wait(1, "a"), wait(2, "b"))
    told(run, resolved(1, "a", "rejected", rest=GANG), resolved(2, "b", "rejected"), at=NOW + 1)
    assert rests.of_run(run.pk, NOW + 299) == [GANG]
    assert rests.of_run(run.pk, NOW + 300) == []
    assert rests.of_run(make_run("other").pk, NOW) == []


def test_the_latest_of_a_gang_counts_and_those_that_are_over_go(run: SchedulerRun) -> None:
    pod = Rest("Pod", "default/p", "denied: nobody decided in time", NOW + 100, "", {"u": "z"})
    told(run, wait(1, "a"), wait(2, "p"))
    told(run, resolved(1, "a", "rejected", rest=GANG), resolved(2, "p", rest=pod), at=NOW + 1)
    assert rests.of_run(run.pk, NOW) == [pod, GANG]
    later = replace(GANG, until=NOW + 500, members={})
    told(run, resolved(1, "a", "rejected", rest=later), at=NOW + 200)
    assert rests.of_run(run.pk, NOW) == [later]
    assert Row.objects.count() == 1
