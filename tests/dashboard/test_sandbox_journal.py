"""The database as a sandbox's journal: the contract of journals, fences and snapshots."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest

from dashboard import leases, sandbox_journal
from dashboard.models import Cluster, Sandbox, SandboxSnapshot, SandboxWrite
from dashboard.sandbox_journal import DatabaseJournal
from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.journal import Write
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.ports import ApiError
from scheduler_core.testing.builders import make_node, make_pod
from tests.contract.journals import JournalContract, write

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster.objects.create(name="test")
    Sandbox.objects.create(cluster=cluster)
    return cluster


@pytest.fixture
def fence(cluster: Cluster) -> leases.Fence:
    name = leases.sandbox_lease(cluster.pk)
    epoch = leases.acquire(name, "me", "", 60.0, time.time())
    assert epoch is not None
    return leases.Fence(name, "me", epoch)


@pytest.fixture
def journal(cluster: Cluster, fence: leases.Fence) -> DatabaseJournal:
    return DatabaseJournal(cluster.pk, fence, lambda: {"step": 7})


@pytest.fixture
def kept(cluster: Cluster) -> Callable[[], Sequence[Write]]:
    return lambda: sandbox_journal.load(cluster.pk)[1]


class TestDatabaseJournal(JournalContract):
    """Rows keep what a sandbox writes."""


def test_the_workloads_progress_is_kept_with_its_writes(
    cluster: Cluster, journal: DatabaseJournal
) -> None:
    journal.append([write(1), write(2, "db")])
    row = Sandbox.objects.get(pk=cluster.pk)
    assert (row.resource_version, row.workload_state) == (2, {"step": 7})


def test_an_owner_that_lost_its_lease_writes_nothing(
    cluster: Cluster, fence: leases.Fence, journal: DatabaseJournal
) -> None:
    leases.acquire(fence.name, "another", "", 0.0, time.time() + 1.0)
    with pytest.raises(leases.FencedError):
        journal.append([write(1)])
    assert not SandboxWrite.objects.filter(cluster=cluster).exists()


def test_a_fenced_sandbox_refuses_writes_and_shows_nothing_half_done(
    fence: leases.Fence, journal: DatabaseJournal
) -> None:
    with SandboxCluster(VirtualClock(1_000.0), journal, pace=0.001) as sandbox:
        leases.acquire(fence.name, "another", "", 0.0, time.time() + 1.0)
        with pytest.raises(ApiError) as caught:
            sandbox.create("Node", make_node("n").capacity(cpu="1").raw())
        assert caught.value.code == 503
        assert sandbox.list("Node").items == []


def test_a_commit_whose_answer_was_lost_counts_as_kept(
    journal: DatabaseJournal,
    kept: Callable[[], Sequence[Write]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rows are there, but the connection breaks before the caller hears of it."""
    real = DatabaseJournal._keep

    def cut_off(self: DatabaseJournal, writes: Sequence[Write]) -> None:
        real(self, writes)
        raise ConnectionResetError("cut off after the commit")

    monkeypatch.setattr(DatabaseJournal, "_keep", cut_off)
    journal.append([write(1)])
    assert [w.resource_version for w in kept()] == [1]


def test_a_snapshot_bounds_the_replay_and_two_are_kept(
    cluster: Cluster, fence: leases.Fence, journal: DatabaseJournal
) -> None:
    clock = VirtualClock(1_000.0)
    with SandboxCluster(clock, journal, pace=0.001) as live:
        for number in range(3):
            live.create("Pod", make_pod(f"p{number}").raw())
            sandbox_journal.save_snapshot(cluster.pk, live.snapshot(), fence)
        live.create("Pod", make_pod("last").raw())
        expected = live.snapshot()
    assert SandboxSnapshot.objects.filter(cluster=cluster).count() == 2
    snapshot, writes = sandbox_journal.load(cluster.pk)
    assert snapshot is not None
    assert [w.key for w in writes] == ["default/last"]
    with SandboxCluster.restore(snapshot, writes, clock) as again:
        assert again.snapshot() == expected


def test_writes_of_one_sandbox_are_not_anothers(cluster: Cluster, journal: DatabaseJournal) -> None:
    journal.append([write(1)])
    other = Cluster.objects.create(name="other")
    assert sandbox_journal.load(other.pk) == (None, [])
