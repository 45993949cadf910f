"""Frames that were lost on their way are noticed, and nothing else is taken for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from dashboard import groups, permits, runs
from dashboard.heard import Heard, marks
from dashboard.models import SchedulerRun, WaitingPod
from dashboard.permits import Target
from dashboard.recorder import Recorder
from tests.dashboard.factory import (
    FakePublisher,
    binding,
    cycle,
    listing,
    resolved,
    usage,
    wait,
)

pytestmark = pytest.mark.django_db(transaction=True)

Step = Callable[["Life"], Any]


class Life:
    """A run, what is told about it, and a page that hears it, or does not."""

    def __init__(self, run: SchedulerRun, recorder: Recorder, user: User) -> None:
        self.run, self.recorder, self.user = run, recorder, user
        self.heard = Heard(self.marks())

    def marks(self) -> dict[str, Any]:
        return marks(self.run.pk, groups.TOPICS)

    def decide(self) -> None:
        row = WaitingPod.objects.get(run=self.run)
        permits.decide(self.user, "approve", Target.rows(self.run.pk, [row.pk]))

    def beat(self) -> bool:
        return self.heard.has_missed(self.marks())


@pytest.fixture
def life(
    run: SchedulerRun, make_recorder: Callable[..., Recorder], operator: User
) -> Iterator[Life]:
    return Life(run, make_recorder(run), operator)


STEPS: dict[str, Step] = {
    "cycle": lambda life: life.recorder.cycle_finished(cycle(1)),
    "binding": lambda life: life.recorder.binding_finished(binding(1)),
    "wait": lambda life: life.recorder.pod_waiting(wait(1, "held")),
    "decision": lambda life: life.decide(),
    "end of the wait": lambda life: life.recorder.pod_resolved(resolved(1, "held")),
    "queues": lambda life: life.recorder.queues_listed(listing()),
    "wish": lambda life: runs.control(life.run.pk, "pause", life.user),
    "state": lambda life: runs.set_state(life.run.pk, "paused"),
}


def take(life: Life, published: FakePublisher, step: Step, *, hears: bool = True) -> None:
    published.frames.clear()
    step(life)
    assert life.recorder.flush()
    for _, topic, frame in published.frames:
        if hears:
            life.heard.note(topic, frame)


def test_a_page_that_hears_every_frame_has_missed_nothing(
    life: Life, published: FakePublisher
) -> None:
    for step in [*STEPS.values(), lambda life: life.recorder.usage_changed(usage())]:
        take(life, published, step)
        assert not life.beat()
        assert not life.beat()


@pytest.mark.parametrize("lost", STEPS)
def test_one_lost_frame_is_noticed_at_the_second_look(
    life: Life, published: FakePublisher, lost: str
) -> None:
    for name, step in STEPS.items():
        take(life, published, step, hears=name != lost)
        if name == lost:
            break
    assert not life.beat()
    assert life.beat()


def test_a_frame_that_is_only_late_is_no_loss(life: Life, published: FakePublisher) -> None:
    for number in range(1, 5):
        life.recorder.cycle_finished(cycle(number, f"p{number}"))
        assert life.recorder.flush()
        assert not life.beat()
        for _, topic, frame in published.frames:
            life.heard.note(topic, frame)
        published.frames.clear()


def test_a_state_that_keeps_changing_is_no_loss(life: Life) -> None:
    for action in ("pause", "resume", "pause", "stop"):
        runs.control(life.run.pk, action, life.user)
        assert not life.beat()
    assert life.beat()


def test_a_run_that_is_gone_is_told(life: Life) -> None:
    life.recorder.close()
    SchedulerRun.objects.filter(pk=life.run.pk).delete()
    with pytest.raises(SchedulerRun.DoesNotExist):
        life.marks()
