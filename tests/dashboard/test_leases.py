from __future__ import annotations

import threading

import pytest
from django.db import connection, transaction

from dashboard import leases
from dashboard.leases import Fence, FencedError
from dashboard.models import Lease

TTL = 4.0


@pytest.mark.django_db
class TestLease:
    def test_it_is_taken_by_one(self) -> None:
        assert leases.acquire("run:1", "a", "loop", TTL, now=100.0) == 1
        assert leases.acquire("run:1", "b", "loop", TTL, now=101.0) is None
        assert leases.acquire("run:1", "a", "loop", TTL, now=101.0) is None
        assert Lease.objects.get(name="run:1").holder == "a"

    def test_a_stale_one_goes_to_the_next_with_a_higher_epoch(self) -> None:
        first = leases.acquire("run:1", "a", "loop", TTL, now=100.0)
        assert first == 1
        assert leases.acquire("run:1", "b", "loop", TTL, now=103.9) is None
        assert leases.acquire("run:1", "b", "loop", TTL, now=104.0) == 2
        assert not leases.renew("run:1", "a", first, now=104.1)
        assert leases.renew("run:1", "b", 2, now=104.1)

    def test_renewing_keeps_others_away(self) -> None:
        assert leases.acquire("run:1", "a", "loop", TTL, now=100.0) == 1
        assert leases.renew("run:1", "a", 1, now=103.0)
        assert leases.acquire("run:1", "b", "loop", TTL, now=106.0) is None

    def test_a_released_one_is_free_at_once(self) -> None:
        assert leases.acquire("run:1", "a", "loop", TTL, now=100.0) == 1
        assert leases.release("run:1", "a", 1)
        assert leases.acquire("run:1", "b", "loop", TTL, now=100.1) == 2

    def test_a_late_release_does_no_harm(self) -> None:
        leases.acquire("run:1", "a", "loop", TTL, now=100.0)
        leases.acquire("run:1", "b", "loop", TTL, now=110.0)
        assert not leases.release("run:1", "a", 1)
        assert leases.is_fresh("run:1", TTL, now=111.0)

    def test_freshness(self) -> None:
        assert not leases.is_fresh("run:1", TTL, now=100.0)
        leases.acquire("run:1", "a", "loop", TTL, now=100.0)
        assert leases.is_fresh("run:1", TTL, now=103.9)
        assert not leases.is_fresh("run:1", TTL, now=104.0)
        assert leases.view("run:1", TTL, 103.0) == leases.LeaseView(True, "a")
        leases.release("run:1", "a", 1)
        assert leases.view("run:1", TTL, 100.0) == leases.LeaseView(False, "")

    def test_names(self) -> None:
        assert (leases.run_lease(5), leases.sandbox_lease(3)) == ("run:5", "sandbox:3")

    def test_a_stale_holder_is_fenced_off(self) -> None:
        leases.acquire("run:1", "a", "loop", TTL, now=100.0)
        old = Fence("run:1", "a", 1)
        with transaction.atomic():
            old.check()
        leases.acquire("run:1", "b", "loop", TTL, now=110.0)
        with (
            pytest.raises(FencedError, match='"run:1" is no longer held with epoch 1'),
            transaction.atomic(),
        ):
            old.check()


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_gets_it() -> None:
    barrier = threading.Barrier(6)
    epochs: list[int | None] = []

    def contend(holder: str) -> None:
        try:
            barrier.wait(10)
            epochs.append(leases.acquire("run:9", holder, "loop", TTL, now=100.0))
        finally:
            connection.close()

    threads = [threading.Thread(target=contend, args=(f"h{i}",)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(epochs, key=str) == [1, None, None, None, None, None]


def test_the_longest_name_of_a_worker_fits() -> None:
    # PostgreSQL refuses what is longer; a host name may have 64 characters.
    assert (Lease._meta.get_field("queue").max_length or 0) >= len(f"sandbox@{'h' * 64}")
