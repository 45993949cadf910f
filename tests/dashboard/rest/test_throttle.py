"""The limit on failed tokens: counted where all web processes see it."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.core.cache import cache
from django.db import connection

from dashboard.rest import throttle
from dashboard.rest.models import TokenFailures

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
END = NOW + timedelta(seconds=throttle.WINDOW_SECONDS)
ALMOST = throttle.MOST_FAILURES - 1


def fail(times: int, key: str = "10.0.0.9", at: datetime = NOW) -> None:
    for _ in range(times):
        throttle.failed(key, at)


@pytest.mark.parametrize(
    ("failures", "key", "at", "blocked"),
    [
        pytest.param(0, "10.0.0.9", NOW, False, id="nothing failed"),
        pytest.param(ALMOST, "10.0.0.9", NOW, False, id="one below the limit"),
        pytest.param(ALMOST + 1, "10.0.0.9", NOW, True, id="at the limit"),
        pytest.param(ALMOST + 1, "10.0.0.8", NOW, False, id="somebody else"),
        pytest.param(ALMOST + 1, "10.0.0.9", END - timedelta(seconds=1), True, id="until its end"),
        pytest.param(ALMOST + 1, "10.0.0.9", END, False, id="the window is over"),
    ],
)
def test_the_limit(failures: int, key: str, at: datetime, blocked: bool) -> None:
    fail(failures)
    assert throttle.is_blocked(key, at) == blocked


def test_a_window_begins_with_its_first_failure() -> None:
    fail(ALMOST)
    fail(1, at=END)
    assert not throttle.is_blocked("10.0.0.9", END)
    assert TokenFailures.objects.get().failures == 1
    fail(ALMOST, at=END)
    assert throttle.is_blocked("10.0.0.9", END)


def test_it_is_not_kept_in_the_process() -> None:
    """What a process keeps for itself (Django's default cache) has no part in it: the rows have."""
    fail(throttle.MOST_FAILURES)
    cache.clear()
    assert throttle.is_blocked("10.0.0.9", NOW)
    TokenFailures.objects.all().delete()
    assert not throttle.is_blocked("10.0.0.9", NOW)


def test_several_at_once_are_all_counted() -> None:
    """Four web processes, as far as the database can tell: connections of their own."""
    fail(1)
    together = threading.Barrier(4)

    def process() -> None:
        together.wait()
        fail(4)
        connection.close()

    threads = [threading.Thread(target=process) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert TokenFailures.objects.get().failures == 17


def test_neither_address_nor_token_is_kept() -> None:
    fail(1, key="10.0.0.9 kst_prefix")
    assert "10.0.0.9" not in TokenFailures.objects.get().key


def test_windows_that_are_over_are_forgotten() -> None:
    fail(1)
    fail(1, key="another", at=END)
    assert throttle.prune(END) == 1
    assert TokenFailures.objects.count() == 1
