"""Nothing that runs all the time may grow with what has ended: a run keeps its rows for ever."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dashboard import permits, retention, selectors
from dashboard.models import Sandbox, SandboxSnapshot, SandboxWrite, SchedulerRun
from dashboard.permits import Target
from dashboard.permits_inbox import DatabasePermitInbox
from dashboard.recording import BatchWriter
from dashboard.told import Batch, Told
from tests.dashboard.factory import binding, cycle, resolved, wait

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


def test_a_table_that_was_never_analysed_is_not_read_whole(run: SchedulerRun) -> None:
    rows, cluster = 5000, run.cluster
    told(run, "1", *(cycle(number, f"p{number}") for number in range(1, rows + 1)))
    SandboxWrite.objects.bulk_create(
        SandboxWrite(cluster=cluster, resource_version=version, at=0.0, uid=f"{version:064}")
        for version in range(1, rows + 1)
    )
    Sandbox.objects.create(cluster=cluster, resource_version=rows)
    for version in (rows - 1, rows):
        SandboxSnapshot.objects.create(cluster=cluster, resource_version=version, blob=b"")
    with CaptureQueriesContext(connection) as queries:
        told(run, "2", *(binding(number) for number in range(4000, 4128)))
        assert retention.prune_writes(run.cluster_id, limit=20, keep=1) == 20
    explain = "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
    found = []
    for query in [q["sql"] for q in queries.captured_queries]:
        if query.startswith(
            ('UPDATE "dashboard_schedulingcycle" AS', 'DELETE FROM "dashboard_sandboxwrite"')
        ):
            with connection.cursor() as cursor:
                cursor.execute(f"{explain} {query.replace('%', '%%')}")
                found.append(" / ".join(str(row[-1]) for row in cursor.fetchall()))
    plans_read = " / ".join(found)
    assert re.search(r"cluster_id ?= ?[?\d]+\)? AND \(?resource_version", plans_read)
    if connection.vendor == "postgresql":  # SQLite's driver gets the other past Django's log
        assert re.search(r"run_id = \d+\) AND \(sequence", plans_read)


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
