"""What happened in a round, in one list, for who looks for the reason of a violation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.faults.checker import Database


def timeline(database: Database, cluster: int, run: int, begin: float) -> str:
    """Writes to the sandbox, cycles, waits and words, by time."""
    lines = [*_writes(database, cluster), *_cycles(database, run), *_waits(database, run)]
    lines += _words(database, run)
    return "\n".join(f"{at - begin:8.3f} {text}" for at, text in sorted(lines))


def _writes(database: Database, cluster: int) -> Iterator[tuple[float, str]]:
    query = "select * from dashboard_sandboxwrite where cluster_id = ? order by resource_version"
    for row in database(query, cluster):
        if row["kind"] in ("Event", "Namespace", "PriorityClass") or row["verb"] == "status":
            continue
        obj: Any = row["object"] if isinstance(row["object"], dict) else json.loads(row["object"])
        node = (obj.get("spec") or {}).get("nodeName", "")
        wanted = (obj.get("spec") or {}).get("minMember", "")
        yield (
            row["at"],
            (
                f"write {row['resource_version']} {row['verb']} {row['kind']} {row['name']}"
                f" {row['uid'][:8]} {node}{wanted} by {row['actor']}"
            ),
        )


def _cycles(database: Database, run: int) -> Iterator[tuple[float, str]]:
    query = "select * from dashboard_schedulingcycle where run_id = ? order by sequence"
    for row in database(query, run):
        yield (
            row["started_at"],
            (
                f"cycle {row['sequence']} {row['name']} {row['outcome']} {row['node']}"
                f" bound={row['bound']} {row['message'][:110]}"
            ),
        )


def _waits(database: Database, run: int) -> Iterator[tuple[float, str]]:
    for row in database("select * from dashboard_waitingpod where run_id = ? order by id", run):
        name = f"wait {row['id']} {row['name']} {row['uid'][:8]}"
        yield row["since"], f"{name} begins on {row['node']}, until {row['deadline']:.3f}"
        if row["resolved_at"] is not None:
            yield (
                row["resolved_at"],
                (
                    f"{name} ends {row['state']} unbound={row['unbound']} by {row['resolved_by']}:"
                    f" {row['message']}"
                ),
            )


def _words(database: Database, run: int) -> Iterator[tuple[float, str]]:
    for row in database("select * from dashboard_decision where run_id = ? order by id", run):
        yield (
            row["at"],
            (
                f"word {row['id']} {row['username']} {row['verdict']} wait {row['waiting_pod_id']}"
                f" gang={row['gang']} applied={row['applied']} {row['message']}"
            ),
        )
