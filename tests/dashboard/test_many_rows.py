"""Nothing that runs all the time may grow with what has ended: a run keeps its rows for ever."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dashboard import permits, selectors
from dashboard.models import SchedulerRun
from dashboard.permits import Target
from dashboard.permits_inbox import DatabasePermitInbox
from dashboard.recording import BatchWriter
from dashboard.told import Batch, Told
from tests.dashboard.factory import cycle, resolved, wait

pytestmark = pytest.mark.django_db(transaction=True)


def told(run: SchedulerRun, name: str, *records: Any) -> None:
    BatchWriter(run.pk).write(Batch(name, [Told(record, 0) for record in records]))


def plans(queries: CaptureQueriesContext) -> list[str]:
    """How SQLite answers each question that was put to the waiting pods."""
    answer = []
    with connection.cursor() as cursor:
        for query in [q["sql"] for q in queries.captured_queries]:
            if query.startswith("SELECT") and 'FROM "dashboard_waitingpod"' in query:
                cursor.execute(f"EXPLAIN QUERY PLAN {query.replace('%', '%%')}")
                steps = " / ".join(row[-1] for row in cursor.fetchall())
                where = query.partition("WHERE")[2]
                if "state" in where or "unbound" in where:
                    answer.append(steps)
    return answer


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="reads SQLite's plans")
def test_open_waits_are_found_without_walking_through_ended_ones(
    run: SchedulerRun, operator: User
) -> None:
    told(run, "1", wait(1, "a", pod_group="default/g"), wait(2, "b"))
    told(run, "2", resolved(2, "b"))
    with CaptureQueriesContext(connection) as queries:
        told(run, "3", wait(1, "a", pod_group="default/g"))
        permits.decide(operator, "approve", Target.whole_gang(run.pk, "default/g"))
        DatabasePermitInbox(run.pk).look()
        permits.open_waiting(run.pk)
    found = plans(queries)
    assert len(found) == 5
    for plan in found:
        # By state, by gang, or by what is still to be bound.
        assert re.search("waitingpod_(state|gang|unbound)", plan), plan


def test_a_list_of_cycles_leaves_out_what_only_one_cycles_page_shows(run: SchedulerRun) -> None:
    told(run, "1", *(cycle(number, f"p{number}") for number in range(1, 31)))
    with CaptureQueriesContext(connection) as queries:
        frame = selectors.cycles(run)
    assert len(frame["cycles"]) == 30
    assert len(queries) == 1
    assert '"detail"' not in queries.captured_queries[0]["sql"]
