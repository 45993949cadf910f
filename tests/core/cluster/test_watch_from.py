"""Watches that resume: bookmarks, and 410 Gone."""

from __future__ import annotations

import pytest

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.cluster.watch import StreamEvent
from scheduler_core.ports import ApiError, Gone
from tests.contract.support import node, pod


@pytest.fixture
def cluster() -> SandboxCluster:
    return SandboxCluster(VirtualClock(1_800_000_000.0), history=10)


def told(events: list[StreamEvent]) -> list[tuple[str, str]]:
    return [(e.type, e.object.get("metadata", {}).get("name", "")) for e in events]


def test_what_was_missed_then_a_bookmark_then_what_comes(cluster: SandboxCluster) -> None:
    version = cluster.resource_version
    cluster.create("Node", node("n1"))
    cluster.create("Pod", pod())
    events: list[StreamEvent] = []
    watch = cluster.watch_from("Node", version, events.append)
    assert told(events) == [("ADDED", "n1"), ("BOOKMARK", "")]
    assert events[-1].resource_version == cluster.resource_version

    cluster.delete("Node", "", "n1")
    assert told(events)[2:] == [("DELETED", "n1")]
    assert events[-1].object["metadata"]["resourceVersion"] == str(cluster.resource_version)
    watch.stop()
    cluster.create("Node", node("n2"))
    assert len(events) == 3


def test_a_bookmark_moves_on_while_nothing_happens_to_the_kind(cluster: SandboxCluster) -> None:
    events: list[StreamEvent] = []
    watch = cluster.watch_from("Node", cluster.resource_version, events.append)
    for index in range(30):
        cluster.create("Pod", pod(f"p{index}"))
    watch.bookmark()
    assert told(events) == [("BOOKMARK", ""), ("BOOKMARK", "")]
    # With it the watch can be resumed, without it the history would be gone.
    cluster.watch_from("Node", events[-1].resource_version, events.append)
    with pytest.raises(Gone):
        cluster.watch_from("Node", events[0].resource_version, events.append)


def test_a_version_that_is_forgotten_is_gone(cluster: SandboxCluster) -> None:
    version = cluster.resource_version
    for index in range(11):
        cluster.create("Pod", pod(f"p{index}"))
    with pytest.raises(Gone) as caught:
        cluster.watch_from("Pod", version, lambda event: None)
    assert (caught.value.code, caught.value.reason) == (410, "Expired")
    assert caught.value.message == f"too old resource version: {version} ({version + 1})"


def test_a_version_that_is_just_remembered_is_served(cluster: SandboxCluster) -> None:
    version = cluster.resource_version
    for index in range(10):
        cluster.create("Pod", pod(f"p{index}"))
    events: list[StreamEvent] = []
    cluster.watch_from("Pod", version, events.append)
    assert len(events) == 11


def test_a_version_from_the_future_is_refused(cluster: SandboxCluster) -> None:
    with pytest.raises(ApiError, match="Too large resource version: 99, current: 4") as caught:
        cluster.watch_from("Pod", 99, lambda event: None)
    assert caught.value.code == 504


def test_a_restored_store_knows_the_history_of_its_journal(cluster: SandboxCluster) -> None:
    snapshot = cluster.snapshot()
    cluster.create("Node", node())
    writes = [change.write for change in cluster._store.changes_after("Node", 0)]
    again = SandboxCluster.restore(snapshot, writes, cluster.clock)
    events: list[StreamEvent] = []
    again.watch_from("Node", snapshot.resource_version, events.append)
    assert told(events) == [("ADDED", "n1"), ("BOOKMARK", "")]
    with pytest.raises(Gone):
        again.watch_from("Node", snapshot.resource_version - 1, events.append)
