"""The metrics of the product around the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from scheduler_core.metrics import CATALOG as CORE
from scheduler_core.metrics import Metric
from scheduler_core.metrics.catalog import exponential

__all__ = ["CATALOG", "EXTENDER", "OWN"]

_EXTENDER: Final = (
    Metric(
        "kubesched_extender_requests_total",
        "counter",
        "Calls of other schedulers to this one as their extender; result: ok, error or refused.",
        ("verb", "result"),
    ),
    Metric(
        "kubesched_extender_request_duration_seconds",
        "histogram",
        "Time from the last byte of a call to the first of its answer.",
        ("verb",),
        exponential(0.001, 2, 14),
    ),
)

_OWN: Final = (
    Metric(
        "kubesched_run_info",
        "gauge",
        "1 for each run that is carried, with its name and that of its cluster.",
        ("run", "name", "cluster"),
    ),
    Metric(
        "kubesched_recorder_queue_rows",
        "gauge",
        "Rows that wait for the database.",
        ("run",),
    ),
    Metric(
        "kubesched_recorder_back_pressure_seconds_total",
        "counter",
        "Time that the scheduler has waited for the database.",
        ("run",),
    ),
    Metric(
        "kubesched_recorder_rows_refused_total",
        "counter",
        "Rows that the database has refused.",
        ("run",),
    ),
    Metric(
        "kubesched_recorder_matrices_dropped_total",
        "counter",
        "Matrices of cycles that were not kept for want of memory.",
        ("run",),
    ),
)

#: What a run counts as somebody's extender.
EXTENDER: Final[Mapping[str, Metric]] = {metric.name: metric for metric in _EXTENDER}
#: What is known of a run besides.
OWN: Final[Mapping[str, Metric]] = {metric.name: metric for metric in _OWN}
#: All of it, in the order in which it is shown.
CATALOG: Final[Mapping[str, Metric]] = {**CORE, **EXTENDER, **OWN}
