"""The owner of a sandbox: what ends its work, and what it says then."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError

from dashboard import hosted, leases, sandbox_host, sandbox_journal
from dashboard.models import Cluster, Lease, Sandbox, SchedulerRun
from dashboard.sandbox_journal import DatabaseJournal
from dashboard.sandboxes import create_sandbox
from scheduler_core.ports import ApiError

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cluster(settings: Any, tmp_path: Path) -> Cluster:
    settings.KUBESCHED_RUNTIME_DIR = tmp_path / "run"
    return create_sandbox(name="box")[0]


def host(cluster: Cluster, stop: threading.Event, on_ready: object = None) -> bool:
    ready = on_ready if callable(on_ready) else stop.set
    return sandbox_host.host(cluster.pk, worker="w@here", stop=stop, on_ready=ready)


def test_a_worker_that_stops_leaves_the_sandbox_to_the_next_one(cluster: Cluster) -> None:
    assert host(cluster, threading.Event())
    assert Sandbox.objects.get(pk=cluster.pk).state == Sandbox.State.PENDING
    assert not leases.is_fresh(leases.sandbox_lease(cluster.pk), 60.0, time.time())


def test_an_owner_that_lost_its_lease_says_nothing_more_about_the_sandbox(
    cluster: Cluster, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found out when a snapshot is due, long before the lease would be renewed."""
    settings.KUBESCHED_LEASE_SECONDS = 60
    monkeypatch.setattr(sandbox_host, "SNAPSHOT_EVERY", 0)

    def another_takes_over() -> None:
        Lease.objects.filter(name=leases.sandbox_lease(cluster.pk)).update(
            holder="another", epoch=99, renewed_at=time.time()
        )

    assert host(cluster, threading.Event(), another_takes_over)
    assert Sandbox.objects.get(pk=cluster.pk).state == Sandbox.State.RUNNING
    assert SchedulerRun.objects.get(cluster=cluster).state == SchedulerRun.State.PENDING


def test_a_database_that_is_away_is_no_failure_of_the_sandbox(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(cluster_id: int) -> None:
        raise OperationalError("database is locked")

    with monkeypatch.context() as patched:
        patched.setattr(sandbox_journal, "load", away)
        assert host(cluster, threading.Event())
    assert Sandbox.objects.get(pk=cluster.pk).state != Sandbox.State.FAILED
    assert host(cluster, threading.Event())


@pytest.mark.parametrize(
    "how",
    [
        pytest.param("stop", id="the-worker-stops"),
        pytest.param("lost", id="the-lease-is-lost"),
        pytest.param("given up", id="the-journal-cannot-tell-for-another-reason"),
    ],
)
def test_an_owner_ends_although_nobody_answers_what_was_kept(
    cluster: Cluster, settings: Any, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The COMMIT's answer is lost, and the database stays away for its journal."""
    settings.KUBESCHED_LEASE_SECONDS = 0.4 if how == "lost" else 60
    keep, stop, asked = DatabaseJournal._keep, threading.Event(), threading.Event()
    fault = ValueError("a fault") if how == "given up" else OperationalError("refused")

    def lost_answer(journal: DatabaseJournal, writes: Any) -> None:
        keep(journal, writes)
        if any(write.key == "late" for write in writes):
            raise OperationalError("server closed the connection")

    def away(*_: object) -> bool:
        asked.set()
        raise fault

    def write_and_leave() -> None:
        entry = hosted.find(cluster.pk)
        assert entry is not None
        writer = threading.Thread(target=write, args=(entry.cluster,))
        writer.start()
        writers.append(writer)
        assert asked.wait(10)
        if how == "stop":
            stop.set()
        elif how == "lost":
            Lease.objects.filter(name=leases.sandbox_lease(cluster.pk)).update(holder="another")

    def write(sandbox: Any) -> None:
        with pytest.raises(ApiError) as caught:
            sandbox.create("Namespace", {"metadata": {"name": "late"}})
        words.append(caught.value.message)

    words: list[str] = []
    writers: list[threading.Thread] = []
    with monkeypatch.context() as patched:
        patched.setattr(DatabaseJournal, "_keep", lost_answer)
        patched.setattr(DatabaseJournal, "_was_kept", away)
        assert host(cluster, stop, write_and_leave)
        writers[0].join(10)
    assert len(words) == 1
    assert "kept its last writes is unknown" in words[0]
    assert [w.key for w in sandbox_journal.load(cluster.pk)[1]].count("late") == 1


def test_a_fault_is_written_on_the_sandbox_and_on_its_runs(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(cluster_id: int) -> None:
        raise ValueError("snapshot is damaged")

    monkeypatch.setattr(sandbox_journal, "load", broken)
    with pytest.raises(ValueError, match="damaged"):
        host(cluster, threading.Event())
    for row in (Sandbox.objects.get(pk=cluster.pk), SchedulerRun.objects.get(cluster=cluster)):
        assert row.state == "failed"
        assert "snapshot is damaged" in row.message


def test_claims_get_their_volumes(cluster: Cluster) -> None:
    stop, phases = threading.Event(), []

    def use() -> None:
        entry = hosted.find(cluster.pk)
        assert entry is not None
        raw = {"metadata": {"name": "fast"}, "provisioner": "csi.example.com"}
        entry.cluster.create("StorageClass", {**raw, "volumeBindingMode": "Immediate"})
        spec = {
            "storageClassName": "fast",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        }
        entry.cluster.create("PersistentVolumeClaim", {"metadata": {"name": "a"}, "spec": spec})
        threading.Thread(target=watch, args=(entry.cluster,)).start()

    def watch(sandbox: Any) -> None:
        end = time.monotonic() + 10.0
        while time.monotonic() < end and phases != ["Bound"]:
            phases[:] = [sandbox.get("PersistentVolumeClaim", "default", "a")["status"]["phase"]]
            time.sleep(0.01)
        stop.set()

    assert host(cluster, stop, use)
    assert phases == ["Bound"]
