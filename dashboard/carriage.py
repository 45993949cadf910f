"""One scheduler of a run, made of one version of its configuration, and what changes with it.

A run has one recorder, one clock and one tie-breaker from the lease's beginning to its end; a new
configuration gets a new scheduler, with threads and a permit inbox of its own.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.conf import settings

from dashboard import permits, rests
from dashboard.configuration import Wish
from dashboard.hosted import Host
from dashboard.logs import PodLog
from dashboard.metrics.carried import CarriedRun
from dashboard.permits_inbox import DatabasePermitInbox
from dashboard.recorder import Recorder
from dashboard.redacted import without_secrets
from dashboard.waits_columns import waiting_record
from scheduler_core.algorithm import TieBreaker
from scheduler_core.config import load_configuration
from scheduler_core.executor import KeyedThreadPool
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.ports import Clock, Observer
from scheduler_core.records import WaitingPodRecord
from scheduler_core.scheduler import Scheduler
from scheduler_core.scheduler_options import SchedulerOptions

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What stays when the configuration changes."""

    run_id: int
    host: Host
    recorder: Recorder
    carried: CarriedRun
    clock: Clock
    tie_breaker: TieBreaker
    seed: int | None


class Carriage:
    """A scheduler that can be started and stopped once.

    Raises:
        InvalidConfiguration: the text is faulty.
        ProfileError: a plugin does not exist here or refuses its arguments.
    """

    def __init__(self, around: Surroundings, wish: Wish, first_sequence: int) -> None:
        self.wish = wish
        self._around = around
        self.is_started = self._stopped = False
        self._inbox = DatabasePermitInbox(
            around.run_id, wake=lambda: self.scheduler.wake(), redis_url=settings.REDIS_URL
        )
        config = load_configuration(wish.text, in_tree_registry(), dotted_plugins=True)
        self.config = config
        self._shown_config = without_secrets(config.completed())
        self.scheduler = Scheduler(
            config,
            around.host.cluster.as_actor("scheduler"),
            clock=around.clock,
            executor=KeyedThreadPool(around.host.threads),
            observers=_observers(around),
            permit_inbox=self._inbox,
            ledger=around.recorder,
            metrics=around.carried.metrics,
            tie_breaker=around.tie_breaker,
            options=SchedulerOptions(first_sequence=first_sequence, seed=around.seed),
        )

    def start(self) -> None:
        """Take up the waits that are open; everything the last scheduler told must be recorded.
        Where that fails it is stopped again."""
        self._around.host.prepare(self.config)
        carried = self._around.carried
        carried.scheduler, carried.config = self.scheduler, self._shown_config
        text = json.dumps(self._shown_config, ensure_ascii=False)
        logger.info("run %s starts with the configuration %s", self._around.run_id, text)
        try:
            run_id, now = self._around.run_id, self._around.clock.now()
            self.scheduler.start(waiting=open_waits(run_id), resting=rests.of_run(run_id, now))
            self._inbox.start()
        except BaseException:
            self.stop()
            raise
        self._around.host.is_busy = lambda: self.scheduler.is_busy
        self.is_started = True

    def stop(self) -> None:
        """Wait for bindings under way; waiting pods stay as they are. May be called twice."""
        if self._stopped:
            return
        self._stopped = True
        # While nobody schedules a sandbox at full speed must not jump ahead.
        self._around.host.is_busy = None
        self._inbox.close()
        self.scheduler.stop()


def _observers(around: Surroundings) -> list[Observer]:
    observers: list[Observer] = [around.recorder]
    if settings.KUBESCHED_LOG_PODS:
        observers.append(PodLog(around.run_id))
    return observers


def open_waits(run_id: int) -> Sequence[WaitingPodRecord]:
    """The waits that were open when the last scheduler of this run ended."""
    rows = permits.open_waiting(run_id)
    gone = permits.let_go_with_their_gangs(run_id, rows)
    records = {row.pk: waiting_record(row) for row in rows}
    for pk, at in gone.items():
        records[pk] = replace(records[pk], let_go=True, resolved_at=at)
    return list(records.values())
