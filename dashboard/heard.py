"""What a page has been told, against what the database says: frames may be lost on their way.

Redis does not keep messages: while it restarts, frames vanish, and where nothing happens afterwards
no gap in the numbers would ever show. Each socket therefore compares itself with the database from
time to time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import Max, QuerySet

from dashboard import frames, groups
from dashboard.models import RunListing, SchedulerRun, SchedulingCycle, SecondSample, WaitingPod
from dashboard.observe.models import ObservedPod

#: A topic's last commit; of the run itself its wished and real state.
Mark = int | tuple[str, str]


class Heard:
    """How far one page has been told, by topic, beginning with ``marks`` of when it connected."""

    def __init__(self, marks: Mapping[str, Mark]) -> None:
        self._heard = dict(marks)
        self._behind: dict[str, Mark] = {}

    def note(self, topic: str, frame: frames.Frame | bytes) -> None:
        """A frame has come through the channel layer."""
        if isinstance(frame, bytes) or topic not in self._heard:
            return
        if topic == groups.RUN:
            self._heard[topic] = (str(frame["state"]), str(frame["desired_state"]))
        else:
            self._heard[topic] = max(int(frame["seq"]), _number(self._heard[topic]))

    def has_missed(self, marks: Mapping[str, Mark]) -> bool:
        """Whether something of the last call has still not been heard: it never will be."""
        behind = {topic: mark for topic, mark in marks.items() if not self._reached(topic, mark)}
        lost = any(
            topic in behind
            and not self._reached(topic, mark)
            # A state may change again and again; only one that stays can have been missed.
            and (topic != groups.RUN or behind[topic] == mark)
            for topic, mark in self._behind.items()
        )
        self._behind = behind
        return lost

    def _reached(self, topic: str, mark: Mark) -> bool:
        heard = self._heard.get(topic, 0)
        if topic == groups.RUN:
            return heard == mark
        return _number(heard) >= _number(mark)


def marks(run_id: int, topics: Iterable[str]) -> dict[str, Mark]:
    """The topics' last commits in the database. The heatmap has none: the next frame is whole.

    Raises:
        SchedulerRun.DoesNotExist: the run is gone.
    """
    found: dict[str, Mark] = {}
    run = SchedulerRun.objects.only("state", "desired_state").get(pk=run_id)
    for topic in topics:
        if topic == groups.RUN:
            found[topic] = (str(run.state), str(run.desired_state))
        elif topic == groups.CYCLES:
            found[topic] = _last(SchedulingCycle.objects.filter(run=run_id))
        elif topic == groups.OBSERVE:
            found[topic] = _last(ObservedPod.objects.filter(run=run_id))
        elif topic == groups.WAITING:
            found[topic] = _last(WaitingPod.objects.filter(run=run_id))
        elif topic == groups.OVERVIEW:
            found[topic] = _first(SecondSample.objects.filter(run=run_id).order_by("-second"))
        elif topic == groups.QUEUES:
            found[topic] = _first(RunListing.objects.filter(run=run_id, topic=topic))
    return found


def _last(rows: QuerySet[Any]) -> int:
    return int(rows.aggregate(last=Max("commit_seq"))["last"] or 0)


def _first(rows: QuerySet[Any]) -> int:
    return rows.values_list("commit_seq", flat=True).first() or 0


def _number(mark: Mark) -> int:
    return mark if isinstance(mark, int) else 0
