"""The runs that this process carries, for whoever wants to look at them from outside."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dashboard.metrics.catalog import EXTENDER, OWN
from dashboard.recorder import Recorder
from scheduler_core.metrics import Samples, SchedulerMetrics, Store
from scheduler_core.observing import ObservingScheduler
from scheduler_core.scheduler import Scheduler

__all__ = ["CarriedRun", "all_runs", "find", "publish", "withdraw"]


@dataclass(slots=True, eq=False)
class CarriedRun:
    """One run of this process.

    Attributes:
        scheduler: the one that is at work; another one after a change of configuration.
        config: its configuration, with every default filled in.
    """

    run_id: int
    name: str
    cluster: str
    recorder: Recorder
    metrics: SchedulerMetrics = field(default_factory=SchedulerMetrics)
    extender: Store = field(default_factory=lambda: Store(EXTENDER))
    scheduler: Scheduler | ObservingScheduler | None = None
    config: Mapping[str, Any] = field(default_factory=dict)

    def samples(self) -> Samples:
        """Everything that is counted of it, from any thread."""
        store, run = Store(OWN), str(self.run_id)
        store.replace("kubesched_run_info", {(run, self.name, self.cluster): 1.0})
        store.replace("kubesched_recorder_queue_rows", {(run,): float(self.recorder.queued)})
        totals = {
            "back_pressure_seconds": self.recorder.back_pressure_seconds,
            "rows_refused": self.recorder.rows_refused,
            "matrices_dropped": self.recorder.matrices_dropped,
        }
        for name, total in totals.items():
            store.count(f"kubesched_recorder_{name}_total", run).value = float(total)
        return {**self.metrics.samples(), **self.extender.samples(), **store.samples()}


_lock = threading.Lock()
_carried: dict[int, CarriedRun] = {}


def publish(run: CarriedRun) -> None:
    """This process carries the run from now on."""
    with _lock:
        _carried[run.run_id] = run


def withdraw(run: CarriedRun) -> None:
    """It does so no more. May be called twice."""
    with _lock:
        if _carried.get(run.run_id) is run:
            del _carried[run.run_id]


def find(run_id: int) -> CarriedRun | None:
    """The run, if this process carries it."""
    with _lock:
        return _carried.get(run_id)


def all_runs() -> list[CarriedRun]:
    """Those of this process, by number."""
    with _lock:
        return [_carried[run_id] for run_id in sorted(_carried)]
