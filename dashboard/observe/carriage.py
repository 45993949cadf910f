"""One observing scheduler of a run, made of one version of its configuration."""

from __future__ import annotations

import json
import logging

from dashboard.carriage import Surroundings
from dashboard.configuration import Wish
from dashboard.observe.models import ObservedPod
from dashboard.redacted import without_secrets
from scheduler_core.config import load_configuration
from scheduler_core.observing import ObservingScheduler, OpenObservation
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.records import PodRef

__all__ = ["ObservingCarriage"]

logger = logging.getLogger(__name__)


class ObservingCarriage:
    """As ``dashboard.carriage.Carriage``, of a run that observes: nothing is decided by people and
    nothing is bound, so that there is no inbox and no thread beside the loop's.

    Raises:
        InvalidConfiguration: the text is faulty.
        ProfileError: a plugin does not exist here or refuses its arguments.
    """

    def __init__(self, around: Surroundings, wish: Wish, first_sequence: int) -> None:
        self.wish = wish
        self._around = around
        self.is_started = self._stopped = False
        self.config = load_configuration(wish.text, in_tree_registry(), dotted_plugins=True)
        self._shown_config = without_secrets(self.config.completed())
        self.scheduler = ObservingScheduler(
            self.config,
            around.host.cluster,  # it only reads: ObservingScheduler refuses every write
            clock=around.clock,
            observers=[around.recorder, around.carried.metrics],
            first_sequence=first_sequence,
        )

    def start(self) -> None:
        """Go on with the pods that waited when the last observer ended; everything that it told
        must be recorded. Where that fails it is stopped again."""
        self._around.host.prepare(self.config)
        carried = self._around.carried
        carried.scheduler, carried.config = self.scheduler, self._shown_config
        text = json.dumps(self._shown_config, ensure_ascii=False)
        logger.info("run %s observes with the configuration %s", self._around.run_id, text)
        try:
            self.scheduler.start(_left_open(self._around.run_id))
        except BaseException:
            self.stop()
            raise
        self.is_started = True

    def stop(self) -> None:
        """May be called twice."""
        if not self._stopped:
            self._stopped = True
            self.scheduler.stop()


def _left_open(run_id: int) -> list[OpenObservation]:
    rows = ObservedPod.objects.filter(run=run_id, verdict=ObservedPod.Verdict.PENDING)
    return [
        OpenObservation(PodRef(row.uid, row.namespace, row.name), row.scheduler, row.seen_at)
        for row in rows.defer("comparison")
    ]
