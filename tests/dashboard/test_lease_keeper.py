"""A process and its own leases."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.db import OperationalError

from dashboard import leases
from dashboard.lease_keeper import LeaseKeeper
from dashboard.models import Lease

pytestmark = pytest.mark.django_db(transaction=True)


def until(ask: Any) -> None:
    deadline = time.monotonic() + 20
    while not ask():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_process_that_is_late_does_not_take_its_lease_from_itself(settings: Any) -> None:
    settings.KUBESCHED_LEASE_SECONDS = 0.4
    keeper = LeaseKeeper.acquire("sandbox:1", "w")
    assert keeper is not None
    Lease.objects.filter(name="sandbox:1").update(renewed_at=0.0)
    assert LeaseKeeper.acquire("sandbox:1", "w") is None
    with keeper:
        until(lambda: leases.is_fresh("sandbox:1", 0.4, time.time()))
        assert not keeper.lost.is_set()
        Lease.objects.filter(name="sandbox:1").update(renewed_at=0.0)
        assert LeaseKeeper.acquire("sandbox:1", "w") is None
    again = LeaseKeeper.acquire("sandbox:1", "w")
    assert again is not None
    with again:
        assert again.fence.epoch == keeper.fence.epoch + 1


def test_another_process_takes_a_lease_that_is_not_renewed(settings: Any) -> None:
    settings.KUBESCHED_LEASE_SECONDS = 0.4
    leases.acquire("run:1", "another host", "w", 4.0, time.time() - 60)
    keeper = LeaseKeeper.acquire("run:1", "w")
    assert keeper is not None
    with keeper:
        taken = time.time() + 60
        assert leases.acquire("run:1", "a third host", "w", 4.0, taken) is not None
        until(keeper.lost.is_set)
    # It was not this one's to give back any more.
    assert leases.view("run:1", 4.0, taken).holder == "a third host"


def test_an_attempt_that_fails_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any) -> int:
        raise OperationalError("database is away")

    with monkeypatch.context() as patched:
        patched.setattr(leases, "acquire", away)
        with pytest.raises(OperationalError):
            LeaseKeeper.acquire("run:2", "w")
    leases.acquire("run:2", "another host", "w", 4.0, time.time())
    assert LeaseKeeper.acquire("run:2", "w") is None
    Lease.objects.filter(name="run:2").update(holder="")
    keeper = LeaseKeeper.acquire("run:2", "w")
    assert keeper is not None
    with keeper:
        assert not keeper.lost.is_set()
