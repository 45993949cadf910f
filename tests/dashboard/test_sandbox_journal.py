"""The database as a sandbox's journal: the contract of journals, fences and snapshots."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest
from django.db import OperationalError, transaction

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


class Outage:
    """The answer to a COMMIT is lost, and the database stays away for some questions."""

    def __init__(
        self, patch: pytest.MonkeyPatch, questions: int, is_kept: bool, ends: bool = False
    ) -> None:
        self.left = questions
        self.asked = 0
        self._ends = ends
        self._is_there = True
        keep, was_kept = DatabaseJournal._keep, DatabaseJournal._was_kept

        def lost(journal: DatabaseJournal, writes: Sequence[Write]) -> None:
            if not self._is_there or not any(w.verb == "bind" for w in writes):
                return keep(journal, writes)
            self._is_there = False
            with suppress(Undone), transaction.atomic():
                keep(journal, writes)
                if not is_kept:
                    raise Undone
            raise OperationalError("server closed the connection unexpectedly")

        def away(journal: DatabaseJournal, write: Write) -> bool:
            self.asked += 1
            if self.left:
                self.left -= 1
                raise OperationalError("connection refused")
            return was_kept(journal, write)

        patch.setattr(DatabaseJournal, "_keep", lost)
        patch.setattr(DatabaseJournal, "_was_kept", away)

    def pause(self, seconds: float) -> bool:
        return self._ends


class Undone(Exception):
    """The COMMIT did not reach the server."""


def bindings(cluster: Cluster) -> list[str]:
    rows = SandboxWrite.objects.filter(cluster=cluster, verb="bind").order_by("resource_version")
    return [row.object["spec"]["nodeName"] for row in rows]


@pytest.mark.parametrize(
    ("is_kept", "expected"),
    [
        pytest.param(True, ["n1"], id="the-commit-has-happened"),
        pytest.param(False, ["n2"], id="it-has-not"),
    ],
)
def test_a_pod_has_one_binding_when_the_database_goes_away_at_its_commit(
    cluster: Cluster,
    fence: leases.Fence,
    monkeypatch: pytest.MonkeyPatch,
    is_kept: bool,
    expected: list[str],
) -> None:
    outage = Outage(monkeypatch, questions=3, is_kept=is_kept)
    journal = DatabaseJournal(cluster.pk, fence, lambda: None, outage.pause)
    with SandboxCluster(VirtualClock(1_000.0), journal, pace=0.001) as sandbox:
        uid = sandbox.create("Pod", make_pod("p").raw())["metadata"]["uid"]
        if is_kept:
            sandbox.bind("default", "p", uid, "n1")
            with pytest.raises(ApiError, match="already assigned to node"):
                sandbox.bind("default", "p", uid, "n2")
        else:
            with pytest.raises(ApiError, match="cannot keep its writes"):
                sandbox.bind("default", "p", uid, "n1")
            sandbox.bind("default", "p", uid, "n2")
    assert (bindings(cluster), outage.asked) == (expected, 4)


def test_an_owner_that_ends_before_the_database_answers_takes_no_more_writes(
    cluster: Cluster, fence: leases.Fence, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = VirtualClock(1_000.0)
    outage = Outage(monkeypatch, questions=3, is_kept=True, ends=True)
    journal = DatabaseJournal(cluster.pk, fence, lambda: None, outage.pause)
    with SandboxCluster(clock, journal, pace=0.001) as sandbox:
        uid = sandbox.create("Pod", make_pod("p").raw())["metadata"]["uid"]
        for node in ("n1", "n2"):
            with pytest.raises(ApiError, match="kept its last writes is unknown") as caught:
                sandbox.bind("default", "p", uid, node)
            assert caught.value.code == 503
        assert sandbox.given_up
    with SandboxCluster.restore(*sandbox_journal.load(cluster.pk), clock) as again:
        assert again.get("Pod", "default", "p")["spec"]["nodeName"] == "n1"


def test_what_the_next_owner_wrote_is_no_answer_to_the_last(
    cluster: Cluster, fence: leases.Fence, monkeypatch: pytest.MonkeyPatch
) -> None:
    Outage(monkeypatch, questions=0, is_kept=True)
    journal = DatabaseJournal(cluster.pk, fence, lambda: None)
    with SandboxCluster(VirtualClock(1_000.0), journal, pace=0.001) as sandbox:
        uid = sandbox.create("Pod", make_pod("p").raw())["metadata"]["uid"]
        lost = DatabaseJournal._keep

        def slept(journal: DatabaseJournal, writes: Sequence[Write]) -> None:
            try:
                lost(journal, writes)
            finally:
                leases.acquire(fence.name, "another", "", 0.0, time.time() + 1.0)

        monkeypatch.setattr(DatabaseJournal, "_keep", slept)
        with pytest.raises(ApiError, match=r"is unknown.*no longer held"):
            sandbox.bind("default", "p", uid, "n1")
        assert sandbox.given_up


def test_a_database_that_is_away_before_the_commit_refuses_at_once(
    journal: DatabaseJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can have been kept: nobody needs to wait for an answer."""

    def away(_: leases.Fence) -> None:
        raise OperationalError("connection refused")

    outage = Outage(monkeypatch, questions=1, is_kept=True)
    monkeypatch.setattr(leases.Fence, "check", away)
    with pytest.raises(OperationalError):
        journal.append([write(1)])
    assert outage.asked == 0


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
