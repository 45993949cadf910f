"""Rows of a round that was judged: thousands of rounds would fill the disk."""

from __future__ import annotations

from django.db import connection

_BY_RUN = (
    "dashboard_decision",
    "dashboard_auditentry",
    "dashboard_waitingpod",
    "dashboard_gangapproval",
    "dashboard_rest",
    "dashboard_cyclematrix",
    "dashboard_schedulingcycle",
    "dashboard_secondsample",
    "dashboard_runlisting",
    "dashboard_runstate",
)
_BY_CLUSTER = ("dashboard_sandboxwrite", "dashboard_sandboxsnapshot")


def throw_away(cluster_id: int, run_id: int) -> None:
    """Delete what a round has written, but for its run and its sandbox."""
    with connection.cursor() as cursor:
        for table in _BY_RUN:
            cursor.execute(f"delete from {table} where run_id = %s", [run_id])  # noqa: S608
        for table in _BY_CLUSTER:
            cursor.execute(f"delete from {table} where cluster_id = %s", [cluster_id])  # noqa: S608
