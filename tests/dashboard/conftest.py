"""A run, three people, and a recorder that writes at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from dashboard import permits, runs
from dashboard.models import SchedulerRun
from dashboard.recorder import Recorder
from tests.dashboard.factory import NOW, FakePublisher, make_run

OPERATOR_MAY = ("decide_waitingpod", "control_run", "add_cluster")


@pytest.fixture
def run(db: None) -> SchedulerRun:
    return make_run()


@pytest.fixture
def viewer(db: None) -> User:
    return User.objects.create_user("vera", password="secret")


@pytest.fixture
def operator(db: None) -> User:
    user = User.objects.create_user("olga", password="secret")
    user.user_permissions.set(Permission.objects.filter(codename__in=OPERATOR_MAY))
    return user


@pytest.fixture
def second_operator(db: None) -> User:
    user = User.objects.create_user("otto", password="secret")
    user.user_permissions.set(Permission.objects.filter(codename__in=OPERATOR_MAY))
    return user


@pytest.fixture
def as_viewer(viewer: User) -> Client:
    client = Client()
    client.force_login(viewer)
    return client


@pytest.fixture
def as_operator(operator: User) -> Client:
    client = Client()
    client.force_login(operator)
    return client


@pytest.fixture
def published() -> FakePublisher:
    return FakePublisher()


@pytest.fixture(autouse=True)
def no_redis(monkeypatch: pytest.MonkeyPatch, published: FakePublisher) -> list[int]:
    """Frames and doorbells stay in the test; returns the runs whose doorbell rang."""
    rang: list[int] = []
    monkeypatch.setattr(permits, "ring_doorbell", lambda run_id, url=None: rang.append(run_id))
    monkeypatch.setattr(permits, "get_publisher", lambda: published)
    monkeypatch.setattr(runs, "get_publisher", lambda: published)
    return rang


@pytest.fixture
def make_recorder(published: FakePublisher) -> Iterator[Callable[..., Recorder]]:
    """Recorders that are closed at the end; ``start=False`` leaves the thread out."""
    made: list[Recorder] = []

    def make(run: SchedulerRun, *, start: bool = True, **options: Any) -> Recorder:
        defaults: dict[str, Any] = {
            "fence": None,
            "publisher": published,
            "clock": lambda: NOW,
            "wall": lambda: NOW,
            "interval": 0.0,
        }
        recorder = Recorder(run.pk, **{**defaults, **options})
        if start:
            recorder.start()
        made.append(recorder)
        return recorder

    yield make
    for recorder in made:
        recorder.close(0.5)
