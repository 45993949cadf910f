"""What plugins have done beside the loop: preemption's writes to the cluster, on the executor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeVar

from scheduler_core.metrics import SchedulerMetrics
from scheduler_core.ports import Executor

__all__ = ["BackgroundDone", "BackgroundWork"]

R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class BackgroundDone:
    """Work that was handed to the executor is done: what is to follow on the scheduler thread."""

    then: Callable[[Any], None]
    result: Any
    seconds: float


class BackgroundWork:
    """Runs work on the executor, and what follows it on the scheduler thread.

    Args:
        post: puts a message on the scheduler's inbox.
        metrics: counts what was written and how long it took.

    Attributes:
        under_way: pieces of work whose end has not been taken in yet. Scheduler thread only.
    """

    def __init__(
        self,
        executor: Executor,
        post: Callable[[BackgroundDone], None],
        metrics: SchedulerMetrics | None,
    ) -> None:
        self._executor = executor
        self._post = post
        self._metrics = metrics
        self.under_way = 0

    def run(self, key: str, work: Callable[[], R], then: Callable[[R], None]) -> None:
        """Have ``work`` done after what else has the same ``key``, then call ``then``."""

        def timed() -> None:
            started = perf_counter()
            result = work()
            self._post(BackgroundDone(then, result, perf_counter() - started))

        self.under_way += 1
        self._executor.submit(key, timed)

    def finish(self, done: BackgroundDone) -> None:
        """Take in that a piece of work is done."""
        self.under_way -= 1
        if self._metrics is not None:
            failed = isinstance(done.result, Exception)
            self._metrics.preemption_wrote(done.seconds, not failed)
        done.then(done.result)
