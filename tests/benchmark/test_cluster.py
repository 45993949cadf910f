"""The benchmark's cluster: lean, and strict where it matters."""

from __future__ import annotations

import pytest

from scheduler_core.benchmark.cluster import BenchmarkCluster
from scheduler_core.ports import AlreadyExists, ApiError, Conflict, NotFound, PodCondition
from scheduler_core.testing.builders import make_node, make_pod

DEFAULT = "default"


@pytest.fixture
def cluster():
    found = BenchmarkCluster()
    for name in ("n1", "n2"):
        found.create("Node", make_node(name).raw())
    return found


def create(cluster, name, node=""):
    pod = make_pod(name)
    return cluster.create("Pod", (pod.node(node) if node else pod).raw())["metadata"]["uid"]


def watch(cluster, kind="Pod"):
    events = []
    subscription = cluster.list_watch(kind, events.append)
    return events, subscription


def told(events):
    return [(event.type, event.object.get("metadata", {}).get("name", "")) for event in events]


def test_a_watch_lists_first_and_then_tells_changes(cluster):
    create(cluster, "old")
    events, subscription = watch(cluster)
    create(cluster, "new")
    cluster.patch("Pod", DEFAULT, "new", {"metadata": {"labels": {"a": "b"}}})
    cluster.delete("Pod", DEFAULT, "old")
    subscription.stop()
    subscription.stop()
    create(cluster, "later")

    assert told(events) == [
        ("ADDED", "old"),
        ("SYNCED", ""),
        ("ADDED", "new"),
        ("MODIFIED", "new"),
        ("DELETED", "old"),
    ]
    assert events[3].object["metadata"]["labels"] == {"a": "b"}
    versions = [int(event.object["metadata"]["resourceVersion"]) for event in events[2:4]]
    assert versions == sorted(set(versions))


def test_a_binding_is_noted_and_not_told(cluster):
    uid = create(cluster, "p")
    events, _ = watch(cluster)
    cluster.bind(DEFAULT, "p", uid, "n1")

    assert cluster.node_of == {uid: "n1"}
    assert told(events) == [("ADDED", "p"), ("SYNCED", "")]


@pytest.mark.parametrize(
    "name,uid,node,error",
    [
        pytest.param("p", None, "n2", Conflict, id="bound already"),
        pytest.param("p", "another", "n2", Conflict, id="another uid"),
        pytest.param("q", None, "n3", NotFound, id="no such node"),
        pytest.param("r", "x", "n1", NotFound, id="no such pod"),
    ],
)
def test_a_binding_that_is_refused(cluster, name, uid, node, error):
    uids = {"p": create(cluster, "p"), "q": create(cluster, "q")}
    cluster.bind(DEFAULT, "p", uids["p"], "n1")

    with pytest.raises(error):
        cluster.bind(DEFAULT, name, uid or uids[name], node)
    assert cluster.node_of == {uids["p"]: "n1"}
    assert cluster.bindings == 1


def test_pods_leave_with_their_node(cluster):
    uid = create(cluster, "p")
    cluster.bind(DEFAULT, "p", uid, "n1")
    stays = create(cluster, "q", node="n2")
    events, _ = watch(cluster)
    cluster.delete("Node", "", "n1")

    assert told(events)[-1] == ("DELETED", "p")
    assert cluster.node_of == {stays: "n2"}


def test_evictions_name_the_uid(cluster):
    uid = create(cluster, "p", node="n1")
    with pytest.raises(Conflict, match='Pod "p" has another uid'):
        cluster.delete("Pod", DEFAULT, "p", uid="another")
    cluster.delete("Pod", DEFAULT, "p", uid=uid)

    assert cluster.evicted == 1
    with pytest.raises(NotFound):
        cluster.get("Pod", DEFAULT, "p")


def test_what_else_is_refused(cluster):
    create(cluster, "p")

    with pytest.raises(AlreadyExists):
        create(cluster, "p")
    with pytest.raises(NotFound):
        create(cluster, "q", node="n9")
    with pytest.raises(ApiError, match="without selectors"):
        cluster.list("Pod", label_selector="a=b")
    with pytest.raises(Conflict):
        cluster.patch_pod_status(DEFAULT, "p", "another")


def test_status_writes_are_counted(cluster):
    uid = create(cluster, "p")
    condition = PodCondition("PodScheduled", "False", "Unschedulable", "no")
    cluster.patch_pod_status(DEFAULT, "p", uid, condition=condition)

    assert cluster.writes == 1
    assert [item["metadata"]["name"] for item in cluster.list("Pod", DEFAULT).items] == ["p"]
    assert cluster.list("Pod", "elsewhere").items == []


def test_an_update_keeps_what_the_cluster_owns(cluster):
    uid = create(cluster, "p")
    cluster.update("Pod", make_pod("p").label({"a": "b"}).raw())

    found = cluster.get("Pod", DEFAULT, "p")["metadata"]
    assert (found["uid"], found["labels"]) == (uid, {"a": "b"})
