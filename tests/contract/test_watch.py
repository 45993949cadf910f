"""list_watch: everything, in order, once."""

from __future__ import annotations

import pytest

from scheduler_core.ports import ApiError, Cluster
from tests.contract.support import Recorder, eventually, node, pod


def test_the_list_first_then_synced_then_changes(cluster: Cluster) -> None:
    cluster.create("Node", node("n1"))
    cluster.create("Node", node("n2"))
    sink = Recorder()
    watch = cluster.list_watch("Node", sink)
    assert sorted(sink.seen[:2]) == [("ADDED", "n1"), ("ADDED", "n2")]
    assert sink.seen[2:] == [("SYNCED", "")]

    cluster.create("Node", node("n3"))
    cluster.patch("Node", "", "n1", {"metadata": {"labels": {"zone": "a"}}})
    cluster.delete("Node", "", "n2")
    eventually(lambda: len(sink.seen) == 6)
    assert sink.seen[3:] == [("ADDED", "n3"), ("MODIFIED", "n1"), ("DELETED", "n2")]
    assert sink.events[4].object["metadata"]["labels"] == {"zone": "a"}
    watch.stop()


def test_other_kinds_are_not_told(cluster: Cluster) -> None:
    sink = Recorder()
    watch = cluster.list_watch("Node", sink)
    cluster.create("Pod", pod())
    cluster.create("Node", node())
    eventually(lambda: len(sink.seen) == 2)
    assert sink.seen == [("SYNCED", ""), ("ADDED", "n1")]
    watch.stop()


def test_a_pod_on_a_node_is_seen_going_and_gone(cluster: Cluster) -> None:
    sink = Recorder()
    watch = cluster.list_watch("Pod", sink)
    cluster.create("Pod", pod())
    cluster.bind("default", "web", "", "n1")
    cluster.delete("Pod", "default", "web")
    cluster.delete("Pod", "default", "web", grace_period_seconds=0)
    eventually(lambda: sink.seen[-1] == ("DELETED", "web"))

    assert [kind for kind, _ in sink.seen] == [
        "SYNCED",
        "ADDED",
        "MODIFIED",
        "MODIFIED",
        "MODIFIED",
        "DELETED",
    ]
    grace = [e.object["metadata"].get("deletionGracePeriodSeconds") for e in sink.events[1:]]
    assert grace == [None, None, 30, 0, 0]
    watch.stop()


def test_versions_grow_from_event_to_event(cluster: Cluster) -> None:
    sink = Recorder()
    watch = cluster.list_watch("Pod", sink)
    for index in range(20):
        cluster.create("Pod", pod(f"p{index}"))
    eventually(lambda: len(sink.events) == 21)
    versions = [int(e.object["metadata"]["resourceVersion"]) for e in sink.events[1:]]
    assert versions == sorted(set(versions))
    watch.stop()


def test_nothing_is_told_after_stop(cluster: Cluster) -> None:
    sink = Recorder()
    watch = cluster.list_watch("Node", sink)
    watch.stop()
    watch.stop()
    cluster.create("Node", node())
    other = Recorder()
    second = cluster.list_watch("Node", other)
    eventually(lambda: ("ADDED", "n1") in other.seen)
    assert sink.seen == [("SYNCED", "")]
    second.stop()


def test_a_refused_request_is_not_told(cluster: Cluster) -> None:
    sink = Recorder()
    watch = cluster.list_watch("Pod", sink)
    with pytest.raises(ApiError):
        cluster.create("Pod", {"metadata": {"name": "empty"}, "spec": {}})
    cluster.create("Pod", pod())
    eventually(lambda: len(sink.seen) == 2)
    assert sink.seen == [("SYNCED", ""), ("ADDED", "web")]
    watch.stop()


def test_objects_that_were_told_are_never_changed(cluster: Cluster) -> None:
    sink = Recorder()
    watch = cluster.list_watch("Pod", sink)
    cluster.create("Pod", pod())
    eventually(lambda: len(sink.seen) == 2)
    first = sink.events[1].object
    cluster.patch("Pod", "default", "web", {"metadata": {"labels": {"app": "other"}}})
    cluster.bind("default", "web", "", "n1")
    assert first["metadata"]["labels"] == {"app": "web"}
    assert "nodeName" not in first["spec"]
    watch.stop()
