from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, OperationalError, connection
from django.test.utils import CaptureQueriesContext

from dashboard import best_nodes, leases, matrices, permits, retention
from dashboard.leases import Fence
from dashboard.models import (
    AuditEntry,
    CycleMatrix,
    NodeNames,
    RunListing,
    RunState,
    Sandbox,
    SandboxSnapshot,
    SandboxWrite,
    SchedulerRun,
    SchedulingCycle,
    SecondSample,
    WaitingPod,
)
from dashboard.permits import Target
from dashboard.recorder import BATCH_MATRICES, IDLE_MATRICES, Recorder
from dashboard.recording import BatchWriter
from dashboard.told import Batch, Told
from scheduler_core.observers import ObserverSet
from scheduler_core.records import PermitDecision, QueueDepths, Verdict
from tests.dashboard.factory import (
    NOW,
    FakePublisher,
    binding,
    cycle,
    listing,
    matrix,
    resolved,
    usage,
    wait,
)

Make = Callable[..., Recorder]
pytestmark = pytest.mark.django_db(transaction=True)


def pins(run: SchedulerRun) -> dict[int, str]:
    return dict(CycleMatrix.objects.filter(run=run).values_list("sequence", "pin"))


# --- rows -----------------------------------------------------------------------------------


def test_a_cycle_is_recorded_in_full(run: SchedulerRun, make_recorder: Make) -> None:
    recorder = make_recorder(run)
    recorder.cycle_finished(cycle(1, matrix=matrix(), nominated_node="n", victims=("a/b",)))
    assert recorder.flush()
    row = SchedulingCycle.objects.get(run=run)
    assert (row.sequence, row.namespace, row.name, row.pod_uid) == (1, "default", "p", "uid-p")
    assert (row.outcome, row.node, row.score, row.ties) == ("scheduled", "node-2", 250, 1)
    assert (row.nodes_total, row.nodes_evaluated, row.nodes_feasible) == (4, 3, 2)
    assert (row.bound, row.matrix_dropped, row.has_nodes) == (None, False, True)
    assert row.detail["point_seconds"] == {"Filter": 0.001}
    assert row.detail["plugin_seconds"] == [["Filter", "NodeName", 0.0005]]
    assert row.detail["rejections"] == [
        {"plugin": "NodeName", "reason": "node(s) didn't match", "nodes": 1, "resolvable": True}
    ]
    assert best_nodes.unpack(row.detail["best"]) == [
        {"node": "node-2", "total": 250, "plugins": {"NodeResourcesFit": [70, 70, 70]}}
    ]
    assert (row.detail["nominated_node"], row.detail["victims"]) == ("n", ["a/b"])
    kept = CycleMatrix.objects.get(run=run)
    names = matrices.decode_names(bytes(kept.node_names.blob))
    assert np.array_equal(matrices.decode(bytes(kept.blob), names).raw, matrix().raw)


def test_numpy_numbers_and_nul_bytes_are_no_trouble(run: SchedulerRun, make_recorder: Make) -> None:
    recorder = make_recorder(run)
    recorder.cycle_finished(cycle(1, score=np.int64(3), ties=np.int32(2), message="a\x00b"))
    assert recorder.flush()
    row = SchedulingCycle.objects.get(run=run)
    assert (row.score, row.ties, row.message) == (3, 2, "a\ufffdb")


@pytest.mark.parametrize(
    "together", [pytest.param(True, id="one batch"), pytest.param(False, id="two batches")]
)
def test_a_binding_is_added_to_its_cycle(
    run: SchedulerRun, make_recorder: Make, published: FakePublisher, together: bool
) -> None:
    recorder = make_recorder(run, start=not together)
    recorder.cycle_finished(cycle(1))
    if not together:
        assert recorder.flush()
    recorder.binding_finished(binding(1, bound=False, message="node gone", plugin="DefaultBinder"))
    if together:
        recorder.start()
    assert recorder.flush()
    row = SchedulingCycle.objects.get(run=run)
    assert row.bound is False
    assert (row.binding["message"], row.binding["plugin"]) == ("node gone", "DefaultBinder")
    run.refresh_from_db()
    assert (run.scheduled, run.bound, run.bind_failed) == (1, 0, 1)
    assert row.commit_seq == run.commit_seq
    assert published.merged("cycles")["cycles"][-1]["bound"] is False


def test_a_binding_that_is_told_first_waits_for_its_cycle(
    run: SchedulerRun, make_recorder: Make
) -> None:
    recorder = make_recorder(run)
    recorder.binding_finished(binding(1))
    assert recorder.flush()
    recorder.cycle_finished(cycle(1))
    assert recorder.flush()
    assert SchedulingCycle.objects.get(run=run).bound is True
    run.refresh_from_db()
    assert run.bound == 1


def test_counters_and_the_last_number(run: SchedulerRun, make_recorder: Make) -> None:
    recorder = make_recorder(run)
    for sequence, outcome in enumerate(
        ("scheduled", "scheduled", "unschedulable", "error", "waiting", "skipped"), 1
    ):
        recorder.cycle_finished(cycle(sequence, f"p{sequence}", outcome))
    assert recorder.flush()
    run.refresh_from_db()
    counters = (run.scheduled, run.unschedulable, run.error, run.waiting, run.skipped)
    assert counters == (2, 1, 1, 1, 1)
    assert run.last_sequence == 6


def test_seconds_add_up_over_batches(
    run: SchedulerRun, make_recorder: Make, published: FakePublisher
) -> None:
    wall = [NOW]
    recorder = make_recorder(run, wall=lambda: wall[0])
    for sequence in (1, 2):
        recorder.cycle_finished(cycle(sequence, depths=QueueDepths(active=9 - sequence)))
        assert recorder.flush()
    wall[0] += 1
    recorder.cycle_finished(cycle(3, outcome="error"))
    assert recorder.flush()
    rows = SecondSample.objects.filter(run=run).order_by("second")
    found = [(r.second - int(NOW), r.scheduled, r.error, r.depth_active) for r in rows]
    assert found == [(0, 2, 0, 7), (1, 0, 1, 3)]
    assert [point[:2] for point in published.merged("overview")["throughput"]] == [
        [int(NOW), 2],
        [int(NOW) + 1, 0],
    ]


def test_the_latest_listing_and_usage_win(
    run: SchedulerRun, make_recorder: Make, published: FakePublisher
) -> None:
    recorder = make_recorder(run, start=False)
    recorder.queues_listed(listing(1))
    recorder.queues_listed(listing(150))
    recorder.usage_changed(usage())
    recorder.start()
    assert recorder.flush()
    (frame,) = published.of("queues")
    assert frame["depths"]["active"] == 150
    assert len(frame["active"]) == 100
    assert set(RunListing.objects.filter(run=run).values_list("topic", flat=True)) == {
        "queues",
        "usage",
    }
    told = published.of("overview")[-1]["usage"]
    assert (told["nodes"], told["allocatable"], told["requested"]) == (3, [3000, 2000], [1000, 250])
    assert told["histogram"]["nvidia.com/gpu"] == [1, 0, 1, 0, 0, 0, 0, 0, 0, 0]
    assert told["worst"][0] == {
        "node": "node-2",
        "fractions": [1.0, 0.25],
        "pods": 2,
        "allowed_pods": 110,
    }


# --- numbers and frames -----------------------------------------------------------------------


def test_frames_follow_each_other_without_a_gap(
    run: SchedulerRun, make_recorder: Make, published: FakePublisher
) -> None:
    """Commits that do not touch a topic must not look like a gap of that topic."""
    recorder = make_recorder(run)
    for sequence in (1, 2, 3):
        recorder.cycle_finished(cycle(sequence))
        assert recorder.flush()
        recorder.pod_waiting(wait(sequence, f"w{sequence}"))
        assert recorder.flush()
    for topic in ("cycles", "waiting", "overview"):
        last = 0
        for frame in published.of(topic):
            assert frame["from"] <= last < frame["seq"], topic
            last = frame["seq"]


def test_frames_go_on_after_a_restart(
    run: SchedulerRun, make_recorder: Make, published: FakePublisher
) -> None:
    first = make_recorder(run)
    first.cycle_finished(cycle(1))
    assert first.close()
    last = published.of("cycles")[-1]["seq"]
    SchedulerRun.objects.filter(pk=run.pk).update(commit_seq=last + 5)
    second = make_recorder(run)
    second.cycle_finished(cycle(2))
    assert second.flush()
    assert published.of("cycles")[-1]["from"] == last
    assert published.of("overview")[-1]["from"] <= last


def test_a_frame_has_the_fifty_newest_cycles(
    run: SchedulerRun, make_recorder: Make, published: FakePublisher
) -> None:
    recorder = make_recorder(run, start=False)
    for sequence in range(1, 81):
        recorder.cycle_finished(cycle(sequence, matrix=matrix() if sequence == 80 else None))
    recorder.start()
    assert recorder.flush()
    (frame,) = published.of("cycles")
    assert [row["sequence"] for row in frame["cycles"]] == list(range(31, 81))
    assert frame["skipped"] == 30
    assert [row["has_matrix"] for row in frame["cycles"][-2:]] == [False, True]
    assert len(published.of("heatmap")) == 1


def test_batches_hold_at_most_1000_rows(run: SchedulerRun, make_recorder: Make) -> None:
    recorder = make_recorder(run, start=False)
    for sequence in range(1, 2_502):
        recorder.cycle_finished(cycle(sequence))
    assert recorder.queued == 2_501
    recorder.start()
    assert recorder.flush()
    run.refresh_from_db()
    assert (run.commit_seq, recorder.queued) == (3, 0)
    assert SchedulingCycle.objects.filter(run=run).count() == 2_501


# --- pressure ---------------------------------------------------------------------------------


def test_matrices_go_first_the_oldest_first_and_are_counted(
    run: SchedulerRun, make_recorder: Make, published: FakePublisher
) -> None:
    """Room for two of each kind: successes, and those that people look up later."""
    one = matrix()
    size = sum(a.nbytes for a in (one.raw, one.normalized, one.total, one.rejection))
    recorder = make_recorder(run, start=False, matrix_bytes=2 * (2 * size + 1))
    for sequence in range(1, 6):
        recorder.cycle_finished(cycle(sequence, f"p{sequence}", matrix=matrix()))
    recorder.cycle_finished(cycle(6, "p6", "unschedulable", matrix=matrix()))
    recorder.cycle_finished(cycle(7, "p7", "waiting", matrix=matrix()))
    recorder.cycle_finished(cycle(8, "p8", "waiting", matrix=matrix()))
    assert recorder.matrices_dropped == 4
    recorder.start()
    assert recorder.flush()
    recorder.cycle_finished(cycle(9, "p9", matrix=matrix()))
    assert recorder.flush()
    assert sorted(pins(run)) == [4, 5, 7, 8, 9]
    dropped = SchedulingCycle.objects.filter(run=run, matrix_dropped=True, has_nodes=True)
    assert list(dropped.values_list("sequence", flat=True)) == [1, 2, 3, 6]
    assert SchedulingCycle.objects.filter(run=run).count() == 9
    run.refresh_from_db()
    assert run.matrices_dropped == 4
    assert published.of("overview")[-1]["recorder"]["matrices_dropped"] == 4


def test_the_scheduler_waits_when_the_queue_is_full(
    run: SchedulerRun, make_recorder: Make, published: FakePublisher
) -> None:
    recorder = make_recorder(run, start=False, queue_limit=3)
    for sequence in (1, 2, 3):
        recorder.cycle_finished(cycle(sequence))
    blocked = threading.Thread(target=recorder.cycle_finished, args=(cycle(4),))
    blocked.start()
    blocked.join(0.2)
    assert blocked.is_alive()
    assert recorder.queued == 3
    recorder.start()
    blocked.join(10)
    assert not blocked.is_alive()
    assert recorder.flush()
    assert recorder.back_pressure_seconds >= 0.2
    recorder.queues_listed(listing())
    assert recorder.flush()
    run.refresh_from_db()
    assert run.back_pressure_seconds >= 0.2
    assert run.last_sequence == 4
    assert published.of("overview")[-1]["recorder"]["back_pressure_seconds"] >= 0.2


# --- retention --------------------------------------------------------------------------------


def test_only_the_last_failed_attempt_is_pinned(run: SchedulerRun, make_recorder: Make) -> None:
    recorder = make_recorder(run)
    recorder.cycle_finished(cycle(1, "a", "unschedulable", matrix=matrix()))
    recorder.cycle_finished(cycle(2, "b", "unschedulable", matrix=matrix()))
    assert recorder.flush()
    recorder.cycle_finished(cycle(3, "a", "error", matrix=matrix()))
    recorder.cycle_finished(cycle(4, "a", "unschedulable", matrix=matrix()))
    recorder.cycle_finished(cycle(5, "c", "scheduled", matrix=matrix()))
    assert recorder.flush()
    assert pins(run) == {1: "latest", 2: "last_failed", 3: "latest", 4: "last_failed", 5: "latest"}


def test_a_waiting_pods_matrix_is_pinned_until_it_ends(
    run: SchedulerRun, make_recorder: Make
) -> None:
    recorder = make_recorder(run)
    recorder.cycle_finished(cycle(1, outcome="waiting", matrix=matrix()))
    recorder.pod_waiting(wait(1))
    assert recorder.flush()
    assert pins(run) == {1: "waiting"}
    recorder.pod_resolved(resolved(1))
    assert recorder.flush()
    assert pins(run) == {1: "latest"}


def test_old_matrices_are_pruned_in_small_batches(run: SchedulerRun, make_recorder: Make) -> None:
    recorder = make_recorder(run)
    recorder.cycle_finished(cycle(1, "w", "waiting", matrix=matrix()))
    recorder.cycle_finished(cycle(2, "f", "unschedulable", matrix=matrix()))
    for sequence in range(3, 11):
        names = ("x", "y", "z", "v") if sequence < 5 else ()
        recorder.cycle_finished(cycle(sequence, f"p{sequence}", matrix=matrix(names=names)))
    assert recorder.flush()
    assert retention.prune_matrices(run.pk, limit=2, keep=3) == 2
    assert retention.prune_matrices(run.pk, limit=200, keep=3) == 3
    assert retention.prune_matrices(run.pk, limit=200, keep=3) == 0
    assert sorted(pins(run)) == [1, 2, 8, 9, 10]
    assert NodeNames.objects.count() == 2
    retention.prune_node_names()
    assert NodeNames.objects.count() == 1


def test_the_recorder_keeps_to_the_setting(
    run: SchedulerRun, make_recorder: Make, settings: Any
) -> None:
    settings.KUBESCHED_MATRIX_CYCLES = 5
    recorder = make_recorder(run)
    for sequence in range(1, 31):
        recorder.cycle_finished(cycle(sequence, matrix=matrix()))
    assert recorder.close()
    retention.prune(NOW)
    assert sorted(pins(run)) == [26, 27, 28, 29, 30]


def test_rows_of_old_cycles_go_unless_their_matrix_is_pinned(
    run: SchedulerRun, make_recorder: Make, settings: Any
) -> None:
    settings.KUBESCHED_MATRIX_CYCLES = 2
    recorder = make_recorder(run)
    recorder.cycle_finished(cycle(1, "w", "waiting", matrix=matrix()))
    for sequence in range(2, 11):
        recorder.cycle_finished(cycle(sequence, f"p{sequence}", matrix=matrix()))
    assert recorder.close()
    while retention.prune_matrices(run.pk):
        pass
    assert retention.prune_cycles(run.pk, limit=3, keep=4) == 3
    assert retention.prune_cycles(run.pk, keep=4) == 2
    assert retention.prune_cycles(run.pk, keep=4) == 0
    left = SchedulingCycle.objects.filter(run=run).values_list("sequence", flat=True)
    assert list(left) == [1, 7, 8, 9, 10]


def test_the_last_failed_attempt_of_a_pod_that_left_the_queue_is_released(
    run: SchedulerRun, make_recorder: Make
) -> None:
    recorder = make_recorder(run)
    for sequence, name in enumerate(("q0", "gone"), 1):
        recorder.cycle_finished(cycle(sequence, name, "unschedulable", matrix=matrix()))
    assert recorder.flush()
    recorder.queues_listed(listing(1))
    assert recorder.flush()
    recorder.cycle_finished(cycle(3, "later", "unschedulable", matrix=matrix()))
    assert recorder.flush()
    assert retention.release_matrices(run.pk) == 1
    assert pins(run) == {1: "last_failed", 2: "latest", 3: "last_failed"}


@pytest.mark.parametrize(
    ("snapshots", "keep", "left"),
    [
        pytest.param((), 1, range(1, 11), id="no snapshot: a restart needs all"),
        pytest.param((9,), 1, range(1, 11), id="one snapshot: the next one is to be trusted first"),
        pytest.param((6, 9), 1, range(7, 11), id="up to the older of two"),
        pytest.param((6, 9), 8, range(3, 11), id="as many as the setting says"),
    ],
)
def test_writes_that_no_restart_needs_go(
    run: SchedulerRun, snapshots: tuple[int, ...], keep: int, left: range
) -> None:
    cluster = run.cluster
    Sandbox.objects.create(cluster=cluster, resource_version=10)
    for version in range(1, 11):
        SandboxWrite.objects.create(cluster=cluster, resource_version=version, at=0.0)
    for version in snapshots:
        SandboxSnapshot.objects.create(cluster=cluster, resource_version=version, blob=b"")
    while retention.prune_writes(cluster.pk, limit=2, keep=keep):
        pass
    found = SandboxWrite.objects.values_list("resource_version", flat=True)
    assert sorted(found) == list(left)


def test_a_batch_is_a_handful_of_statements_however_many_rows(run: SchedulerRun) -> None:
    writer = BatchWriter(run.pk)
    asked = []
    for first in (1, 1001):
        told = [Told(cycle(number, f"p{number}"), 5) for number in range(first, first + 500)]
        told += [Told(binding(number), 5) for number in range(first, first + 500)]
        told += [Told(binding(number - 500), 5) for number in range(501, 1001) if first > 1]
        with CaptureQueriesContext(connection) as queries:
            writer.write(Batch(f"x:{first}", told, second=5))
        asked.append(len(queries))
    assert asked[1] <= 60


def test_under_load_few_matrices_are_compressed_and_the_rest_follow(
    run: SchedulerRun, make_recorder: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[int] = []
    write = BatchWriter.write

    def counted(self: BatchWriter, batch: Batch) -> Any:
        stored.append(len(batch.stored_matrices))
        return write(self, batch)

    monkeypatch.setattr(BatchWriter, "write", counted)
    recorder = make_recorder(run, start=False)
    for sequence in range(1, 101):
        recorder.cycle_finished(cycle(sequence, f"p{sequence}", matrix=matrix()))
    recorder.start()
    assert recorder.close()
    assert stored[0] == BATCH_MATRICES
    assert max(stored) <= IDLE_MATRICES
    assert len(pins(run)) == 100


def test_samples_of_yesterday_go(run: SchedulerRun) -> None:
    for second in (0, 100_000, 200_000):
        SecondSample.objects.create(run=run, second=second, commit_seq=1)
    retention.prune(now=200_000)
    assert list(SecondSample.objects.values_list("second", flat=True)) == [200_000]


# --- waits ------------------------------------------------------------------------------------


def test_a_wait_from_beginning_to_end(
    run: SchedulerRun, make_recorder: Make, published: FakePublisher
) -> None:
    recorder = make_recorder(run)
    recorder.pod_waiting(wait(1, pod_group="default/gang", group_min_member=3))
    assert recorder.flush()
    row = WaitingPod.objects.get(run=run)
    assert (row.state, row.node, row.pod_group, row.group_min_member) == (
        "waiting",
        "node-2",
        "default/gang",
        3,
    )
    assert row.pending[0]["plugin"] == "ManualApproval"
    recorder.pod_waiting(wait(1, pending=()))
    recorder.pod_resolved(resolved(1, outcome="timed_out", message="nobody came"))
    assert recorder.flush()
    row.refresh_from_db()
    assert (row.state, row.message, row.resolved_at) == ("timed_out", "nobody came", NOW + 9)
    assert WaitingPod.objects.count() == 1
    frame = published.of("waiting")[-1]
    assert [pod["state"] for pod in frame["pods"]] == ["timed_out"]
    assert frame["pods"][0]["requests"] == {"cpu": 500}


def test_a_new_wait_of_the_same_pod_ends_the_forgotten_one(
    run: SchedulerRun, make_recorder: Make
) -> None:
    recorder = make_recorder(run)
    recorder.pod_waiting(wait(1, since=NOW))
    recorder.pod_waiting(wait(8, since=NOW + 5))
    assert recorder.flush()
    found = WaitingPod.objects.filter(run=run).order_by("pk").values_list("cycle", "state")
    assert list(found) == [(1, "removed"), (8, "waiting")]


def test_a_restored_wait_goes_on_with_its_decision(run: SchedulerRun, make_recorder: Make) -> None:
    """The next worker puts the pod back in a cycle of its own; since when it waits is the same."""
    recorder = make_recorder(run)
    recorder.cycle_finished(cycle(1, outcome="waiting", matrix=matrix()))
    recorder.pod_waiting(wait(1))
    assert recorder.flush()
    WaitingPod.objects.update(state="sent", decision_verdict="approve", decision_user="olga")
    recorder.cycle_finished(cycle(7, outcome="waiting", matrix=matrix()))
    recorder.pod_waiting(wait(7, node="node-3"))
    assert recorder.flush()
    row = WaitingPod.objects.get(run=run)
    assert (row.state, row.cycle, row.node) == ("sent", 7, "node-3")
    assert (row.decision_verdict, row.decision_user) == ("approve", "olga")
    assert pins(run) == {1: "latest", 7: "waiting"}


def test_an_end_without_a_beginning_is_kept(run: SchedulerRun, make_recorder: Make) -> None:
    recorder = make_recorder(run)
    recorder.pod_resolved(resolved(1, outcome="preempted"))
    assert recorder.flush()
    assert WaitingPod.objects.get(run=run).state == "preempted"


@pytest.mark.parametrize(
    ("applied", "outcome"),
    [pytest.param(True, "applied", id="in time"), pytest.param(False, "too_late", id="too late")],
)
def test_the_audit_row_learns_what_came_of_a_decision(
    run: SchedulerRun, make_recorder: Make, operator: User, applied: bool, outcome: str
) -> None:
    recorder = make_recorder(run)
    recorder.pod_waiting(wait(1))
    assert recorder.flush()
    row = WaitingPod.objects.get(run=run)
    permits.decide(operator, "approve", Target.rows(run.pk, [row.pk]))
    entry, said = AuditEntry.objects.get(), row.decisions.get()
    decision = PermitDecision(said.pk, row.uid, Verdict.APPROVE, "olga")
    recorder.decision_applied(decision, applied, "because")
    assert recorder.flush()
    entry.refresh_from_db()
    assert (entry.outcome, entry.message) == (outcome, "because")
    row.refresh_from_db()
    shown = (row.state, row.decision_user, row.decision_applied_at)
    assert shown == (("sent", "olga", NOW) if applied else ("waiting", "", None))
    said.refresh_from_db()
    assert (said.applied, said.applied_at) == (applied, NOW)


# --- leases, failures, ends -------------------------------------------------------------------


def test_a_stale_holder_writes_nothing(run: SchedulerRun, make_recorder: Make) -> None:
    name = leases.run_lease(run.pk)
    epoch = leases.acquire(name, "a", "loop", 4.0, now=100.0)
    assert epoch == 1
    fenced = threading.Event()
    recorder = make_recorder(run, fence=Fence(name, "a", 1), on_fenced=fenced.set, queue_limit=5)
    recorder.cycle_finished(cycle(1))
    assert recorder.flush()
    leases.acquire(name, "b", "loop", 4.0, now=200.0)
    recorder.cycle_finished(cycle(2))
    assert fenced.wait(10)
    assert recorder.fenced
    assert not recorder.flush()
    for sequence in range(3, 20):  # must not block, although nobody writes any more
        recorder.cycle_finished(cycle(sequence))
    assert not recorder.close()
    assert list(SchedulingCycle.objects.values_list("sequence", flat=True)) == [1]


class Flaky(BatchWriter):
    """Fails as told, before or after the commit."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.before: list[Exception] = []
        self.after: list[Exception] = []

    def write(self, batch: Batch) -> Any:
        if self.before:
            raise self.before.pop()
        done = super().write(batch)
        if self.after:
            raise self.after.pop()
        return done


def flaky(recorder: Recorder, run: SchedulerRun) -> Flaky:
    writer = Flaky(run.pk, None)
    recorder._writer = writer
    return writer


def test_it_tries_again_until_the_database_is_back(
    run: SchedulerRun, make_recorder: Make, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = make_recorder(run, start=False)
    flaky(recorder, run).before = [OperationalError("database is locked")] * 3
    for sequence in (1, 2):
        recorder.cycle_finished(cycle(sequence))
    with caplog.at_level(logging.WARNING):
        recorder.start()
        assert recorder.flush()
    assert caplog.text.count("database away, trying again: database is locked") == 3
    assert SchedulingCycle.objects.filter(run=run).count() == 2


def test_a_commit_that_was_cut_off_is_not_written_twice(
    run: SchedulerRun, make_recorder: Make
) -> None:
    recorder = make_recorder(run, start=False)
    flaky(recorder, run).after = [OperationalError("server closed the connection")]
    recorder.cycle_finished(cycle(1))
    recorder.binding_finished(binding(1))
    recorder.start()
    assert recorder.flush()
    run.refresh_from_db()
    assert (run.scheduled, run.bound, run.commit_seq) == (1, 1, 1)


def test_after_a_commit_that_was_cut_off_pages_see_a_gap_and_no_binding_is_forgotten(
    run: SchedulerRun, make_recorder: Make, published: FakePublisher
) -> None:
    recorder = make_recorder(run, start=False)
    writer = flaky(recorder, run)
    recorder.cycle_finished(cycle(1))
    recorder.start()
    assert recorder.flush()
    writer.after = [OperationalError("server closed the connection")]
    recorder.binding_finished(binding(3))
    recorder.cycle_finished(cycle(2))
    assert recorder.flush()
    recorder.cycle_finished(cycle(3))
    assert recorder.flush()
    frame = published.of("cycles")[-1]
    assert (frame["from"], frame["seq"]) == (2, 3)
    assert published.of("overview")[-1]["from"] == 2
    assert SchedulingCycle.objects.get(run=run, sequence=3).bound


def test_a_recorder_that_dies_ends_the_run_rather_than_stop_its_scheduler(
    run: SchedulerRun, make_recorder: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(run_id: int) -> int:
        raise RuntimeError("a bug")

    monkeypatch.setattr(retention, "prune_matrices", broken)
    told: list[str] = []
    recorder = make_recorder(run, queue_limit=2, on_failed=told.append)

    def tell() -> None:
        for number in range(1, 20):
            recorder.cycle_finished(cycle(number))

    telling = threading.Thread(target=tell)
    telling.start()
    telling.join(10)
    assert not telling.is_alive()
    assert told == ["its recorder failed: RuntimeError('a bug')"]


def test_a_recorder_that_is_told_nothing_more_ends_its_run(
    run: SchedulerRun, make_recorder: Make
) -> None:
    told: list[str] = []
    recorder = make_recorder(run, on_failed=told.append)
    observers = ObserverSet([recorder])
    observers.tell("cycle_finished", None, "one argument too many")
    assert told[0].startswith("its recorder failed: TypeError(")
    assert not observers.wants("cycle_finished")
    assert recorder.fenced


def test_matrices_that_cannot_be_pruned_are_tried_again(
    run: SchedulerRun, make_recorder: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(run_id: int) -> int:
        raise IntegrityError("still referenced")

    monkeypatch.setattr(retention, "prune_matrices", refused)
    recorder = make_recorder(run)
    for number in (1, 2):
        recorder.cycle_finished(cycle(number))
        assert recorder.flush()


def test_one_bad_record_does_not_hold_up_the_rest(
    run: SchedulerRun,
    make_recorder: Make,
    published: FakePublisher,
    caplog: pytest.LogCaptureFixture,
) -> None:
    recorder = make_recorder(run, start=False)
    recorder.cycle_finished(cycle(1))
    recorder.cycle_finished(cycle(2, point_seconds={"Filter": "soon"}))
    recorder.cycle_finished(cycle(3))
    recorder.start()
    assert recorder.flush()
    assert list(SchedulingCycle.objects.values_list("sequence", flat=True)) == [1, 3]
    assert "given up: CycleRecord of cycle 2 of default/p" in caplog.text
    assert recorder.rows_refused == 1
    run.refresh_from_db()
    assert run.rows_refused == 1
    assert published.of("overview")[-1]["recorder"]["rows_refused"] == 1


def test_it_gives_up_at_the_end_and_says_how_much_is_lost(
    run: SchedulerRun, make_recorder: Make, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = make_recorder(run, start=False)
    flaky(recorder, run).before = [OperationalError("gone")] * 10_000
    recorder.cycle_finished(cycle(1))
    recorder.start()
    assert not recorder.flush(timeout=0.1)
    assert not recorder.close(timeout=0.2)
    assert "1 rows could not be recorded" in caplog.text


def test_who_waits_for_what_was_told_hears_when_it_is_committed(
    run: SchedulerRun, make_recorder: Make
) -> None:
    recorder = make_recorder(run, start=False)
    heard: list[tuple[str, int]] = []

    def hear(name: str) -> Callable[[], None]:
        return lambda: heard.append((name, SchedulingCycle.objects.filter(run=run).count()))

    recorder.when_kept(hear("nothing was told"))
    recorder.cycle_finished(cycle(1))
    recorder.when_kept(hear("one"))
    assert heard == [("nothing was told", 0)]
    flaky(recorder, run).before = [OperationalError("database is locked")]
    recorder.start()
    assert recorder.flush()
    assert recorder.close()
    assert heard == [("nothing was told", 0), ("one", 1)]
    recorder.when_kept(hear("all is written"))
    assert heard[2:] == [("all is written", 1)]


def test_who_waits_for_what_is_never_committed_hears_nothing(
    run: SchedulerRun, make_recorder: Make
) -> None:
    """Another worker has the lease: what is bound now would be unknown to it."""
    name, heard = leases.run_lease(run.pk), []
    leases.acquire(name, "a", "loop", 4.0, now=100.0)
    fence = Fence(name, "a", 1)
    leases.acquire(name, "b", "loop", 4.0, now=200.0)
    recorder = make_recorder(run, start=False, fence=fence)
    recorder.cycle_finished(cycle(1))
    recorder.when_kept(lambda: heard.append("before"))
    recorder.start()
    assert not recorder.flush()
    recorder.when_kept(lambda: heard.append("after"))
    assert not recorder.close()
    assert heard == []


def test_close_drains(run: SchedulerRun, make_recorder: Make) -> None:
    recorder = make_recorder(run, interval=5.0)
    for sequence in range(1, 450):
        recorder.cycle_finished(cycle(sequence))
    began = time.monotonic()
    assert recorder.close()
    assert recorder.close()
    assert time.monotonic() - began < 4
    assert SchedulingCycle.objects.filter(run=run).count() == 449


def test_the_scheduler_clock_is_told(run: SchedulerRun, make_recorder: Make) -> None:
    recorder = make_recorder(run, clock=lambda: 50.0, clock_speed=10.0)
    recorder.cycle_finished(cycle(1))
    assert recorder.flush()
    state = RunState.objects.get(run=run)
    assert (state.clock_at, state.wall_at, state.clock_speed) == (50.0, NOW, 10.0)


def test_a_batch_has_one_name(run: SchedulerRun) -> None:
    writer = BatchWriter(run.pk)
    batch = Batch("x:1", [Told(cycle(1), 0)])
    assert writer.write(batch) is not None
    assert writer.write(batch) is None
    assert SchedulingCycle.objects.count() == 1
