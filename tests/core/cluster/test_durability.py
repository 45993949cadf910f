"""Group commit: what is acknowledged is kept, what is seen is kept, what fails never was."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.journal import FateUnknownError, MemoryJournal, Write
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.ports import ApiError, Conflict, WatchEvent
from tests.contract.support import Recorder, eventually, node, pod

START = 1_800_000_000.0


class DyingJournal(MemoryJournal):
    """Keeps batches until it has kept `lives` of them, then refuses every one."""

    def __init__(self, lives: int) -> None:
        super().__init__()
        self.lives = lives

    def append(self, writes: Sequence[Write]) -> None:
        if self.batches >= self.lives:
            raise OSError("no space left on device")
        super().append(writes)


class SlowJournal(MemoryJournal):
    """Keeps a batch when it is allowed to."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()
        self.go_on.set()
        self.asked = threading.Event()

    def append(self, writes: Sequence[Write]) -> None:
        self.asked.set()
        assert self.go_on.wait(10)
        super().append(writes)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(START)


def test_a_write_returns_when_its_batch_is_kept(clock: VirtualClock) -> None:
    journal = MemoryJournal()
    with SandboxCluster(clock, journal, pace=0.001) as cluster:
        made = cluster.create("Pod", pod())
        assert journal.writes[-1].object == made


def test_nobody_sees_what_is_not_kept_yet(clock: VirtualClock) -> None:
    journal = SlowJournal()
    with SandboxCluster(clock, journal, pace=0.001) as cluster:
        sink = Recorder()
        cluster.list_watch("Pod", sink)
        journal.asked.clear()
        journal.go_on.clear()
        thread = threading.Thread(target=lambda: cluster.create("Pod", pod()))
        thread.start()
        assert journal.asked.wait(10)

        assert list(cluster.list("Pod").items) == []
        assert sink.seen == [("SYNCED", "")]
        with pytest.raises(ApiError, match="already exists"):
            cluster.create("Pod", pod())  # but it is taken into account

        journal.go_on.set()
        thread.join()
        assert sink.seen == [("SYNCED", ""), ("ADDED", "web")]


def test_a_write_that_changes_nothing_waits_for_what_it_rests_on(clock: VirtualClock) -> None:
    journal = SlowJournal()
    with SandboxCluster(clock, journal, pace=0.001) as cluster:
        cluster.create("Node", node())
        patch = {"metadata": {"labels": {"zone": "a"}}}
        journal.asked.clear()
        journal.go_on.clear()
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(cluster.patch, "Node", "", "n1", patch)
            assert journal.asked.wait(10)
            second = pool.submit(cluster.patch, "Node", "", "n1", patch)
            assert not second.done()
            journal.go_on.set()
            assert first.result(10) == second.result(10)


def test_a_failing_journal_refuses_and_leaves_nothing_behind(clock: VirtualClock) -> None:
    journal = DyingJournal(lives=2)
    with SandboxCluster(clock, journal, pace=0.001) as cluster:
        sink = Recorder()
        cluster.list_watch("Pod", sink)
        cluster.create("Pod", pod("kept"))
        with pytest.raises(ApiError) as caught:
            cluster.create("Pod", pod("lost"))
        assert (caught.value.code, caught.value.reason) == (503, "ServiceUnavailable")
        assert "no space left on device" in caught.value.message
        assert [p["metadata"]["name"] for p in cluster.list("Pod").items] == ["kept"]
        assert sink.seen == [("SYNCED", ""), ("ADDED", "kept")]

        journal.lives = 100
        again = cluster.create("Pod", pod("lost"))
        assert int(again["metadata"]["resourceVersion"]) > cluster.snapshot().resource_version - 1
        assert [w.key for w in journal.writes[-2:]] == ["default/kept", "default/lost"]


def test_a_journal_that_knows_no_longer_what_it_kept_gets_no_more(clock: VirtualClock) -> None:
    class Unsure(MemoryJournal):
        def append(self, writes: Sequence[Write]) -> None:
            super().append(writes)
            if any(w.kind == "Pod" for w in writes):
                raise FateUnknownError("the database is away")

    journal = Unsure()
    with SandboxCluster(clock, journal, pace=0.001) as cluster:
        with pytest.raises(ApiError, match="unknown: the database is away") as caught:
            cluster.create("Pod", pod("perhaps"))
        assert caught.value.code == 503
        assert cluster.given_up
        batches = journal.batches
        with pytest.raises(ApiError, match="is unknown"):
            cluster.create("Node", node())
        assert journal.batches == batches


def test_a_batch_costs_one_append(clock: VirtualClock) -> None:
    journal = MemoryJournal()
    with SandboxCluster(clock, journal, pace=0.05) as cluster:
        cluster.create("Node", node())
        before = journal.batches
        with cluster.batch("user:ada") as view:
            for index in range(100):
                view.create("Pod", pod(f"p{index}"))
            with pytest.raises(ApiError, match="already exists"):
                view.create("Pod", pod("p1"))
        assert len(cluster.list("Pod").items) == 100
        assert journal.batches - before <= 2
        assert journal.writes[-1].actor == "user:ada"


def test_what_is_created_together_is_kept_together(clock: VirtualClock) -> None:
    journal = MemoryJournal()
    with SandboxCluster(clock, journal, pace=0.001) as cluster:
        before = journal.batches
        cluster.create_all([node(f"n{index}") for index in range(3000)])
        assert journal.batches - before == 1
        with pytest.raises(ApiError, match="already exists"):
            cluster.create_all([node("m"), node("n1")])
        with pytest.raises(ApiError, match=r'metadata\.name: Invalid value: "N"'):
            cluster.create_all([node("m"), node("N")])
        assert len(cluster.list("Node").items) == 3000


def test_binds_without_a_thread_each(clock: VirtualClock) -> None:
    with SandboxCluster(clock, MemoryJournal(), pace=0.001) as cluster:
        cluster.create_all([pod(f"p{index}") for index in range(50)])
        futures = [cluster.bind_async("default", f"p{index}", "", "n1") for index in range(50)]
        again = cluster.bind_async("default", "p0", "", "n2")
        for future in futures:
            future.result(10)
        with pytest.raises(Conflict, match="already assigned"):
            again.result(10)
        assert all(p["spec"]["nodeName"] == "n1" for p in cluster.list("Pod").items)


def test_many_threads_bind_each_pod_once(clock: VirtualClock) -> None:
    with SandboxCluster(clock, MemoryJournal(), pace=0.001) as cluster:
        cluster.create_all([pod(f"p{index}") for index in range(64)])

        def bind(node_name: str) -> int:
            won = 0
            for index in range(64):
                try:
                    cluster.bind("default", f"p{index}", "", node_name)
                    won += 1
                except Conflict:
                    continue
            return won

        with ThreadPoolExecutor(8) as pool:
            wins = list(pool.map(bind, [f"n{index}" for index in range(8)]))
        assert sum(wins) == 64


def test_a_watcher_must_not_write(clock: VirtualClock, caplog: pytest.LogCaptureFixture) -> None:
    """It would wait for the thread that it holds up; that is said, and the others go on."""
    with SandboxCluster(clock, MemoryJournal(), pace=0.001) as cluster:

        def sink(event: WatchEvent) -> None:
            if event.type == "ADDED":
                cluster.create("Node", node("n2"))

        cluster.list_watch("Pod", sink)
        other = Recorder()
        cluster.list_watch("Pod", other)
        cluster.create("Pod", pod("p1"))
        cluster.create("Pod", pod("p2"))
        eventually(lambda: len(other.seen) == 3)
    assert "a watcher of Pod raised at p1" in caplog.text
    assert "must not write to the sandbox while it is being told" in caplog.text


def test_without_a_journal_a_watcher_may_write(clock: VirtualClock) -> None:
    cluster = SandboxCluster(clock)
    nodes, pods = Recorder(), Recorder()

    def sink(event: WatchEvent) -> None:
        if event.type == "ADDED":
            cluster.create("Node", node("n-" + event.object["metadata"]["name"]))
            cluster.patch("Pod", "default", "web", {"metadata": {"labels": {"seen": "yes"}}})

    cluster.list_watch("Pod", sink)
    cluster.list_watch("Node", nodes)
    cluster.list_watch("Pod", pods)
    cluster.create("Pod", pod())
    assert nodes.seen == [("SYNCED", ""), ("ADDED", "n-web")]
    assert pods.seen == [("SYNCED", ""), ("ADDED", "web"), ("MODIFIED", "web")]


def test_after_close_nothing_is_written(clock: VirtualClock) -> None:
    journal = MemoryJournal()
    cluster = SandboxCluster(clock, journal, pace=0.001)
    cluster.close()
    cluster.close()
    with pytest.raises(ApiError, match="sandbox is not running"):
        cluster.create("Pod", pod())
    assert cluster.list("Pod").items == []


def test_a_restored_store_goes_on(clock: VirtualClock) -> None:
    journal = MemoryJournal()
    with SandboxCluster(clock, journal, pace=0.001) as first:
        first.create("Pod", pod("a"))
        middle = first.snapshot()
        first.create("Pod", pod("b"))
        first.delete("Pod", "default", "a")
        expected = first.snapshot()
    for snapshot in (None, middle):
        with SandboxCluster.restore(snapshot, journal.writes, clock, journal, pace=0.001) as again:
            assert again.snapshot() == expected
            made = again.create("Pod", pod(f"c{snapshot is None}".lower()))
            assert int(made["metadata"]["resourceVersion"]) > expected.resource_version
            expected = again.snapshot()


def test_a_journal_out_of_order_is_not_taken(clock: VirtualClock) -> None:
    journal = MemoryJournal()
    with SandboxCluster(clock, journal, pace=0.001) as cluster:
        cluster.create("Node", node())
    with pytest.raises(ValueError, match="out of order"):
        SandboxCluster.restore(None, journal.writes[::-1], clock)


@settings(max_examples=25, deadline=None)
@given(lives=st.integers(1, 12), seed=st.integers(0, 2**16))
def test_no_acknowledged_write_is_lost_when_the_journal_dies(lives: int, seed: int) -> None:
    """Four clients write until the journal dies; a restart finds all that they were promised."""
    clock = VirtualClock(START)
    journal = DyingJournal(lives)
    promised: list[set[str]] = [set() for _ in range(4)]
    sink = Recorder()

    def client(number: int) -> None:
        chance = random.Random(seed + number)
        for index in range(40):
            name = f"c{number}-{index}"
            try:
                cluster.create("Pod", pod(name))
                promised[number].add(name)
                if chance.random() < 0.3:
                    gone = chance.choice(sorted(promised[number]))
                    # From now on it may be there or not; once it is acknowledged, it may not.
                    promised[number].discard(gone)
                    cluster.delete("Pod", "default", gone)
                    deleted.add(gone)
            except ApiError as error:
                codes.add(error.code)
                return

    deleted: set[str] = set()
    codes: set[int] = set()
    with SandboxCluster(clock, journal, pace=0.0) as cluster:
        cluster.list_watch("Pod", sink)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(client, range(4)))
        live = cluster.snapshot()

    assert codes <= {503}
    restored = SandboxCluster.restore(None, journal.writes, clock)
    names = {p["metadata"]["name"] for p in restored.list("Pod").items}
    assert set().union(*promised) <= names
    assert not deleted & names
    assert restored.snapshot() == live, "what is seen is what is kept"
    assert {key.removeprefix("default/") for key in sink.objects} == names
