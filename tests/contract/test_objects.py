"""Create, read, update, patch and delete: the same on every cluster."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.ports import AlreadyExists, ApiError, Cluster, Conflict, NotFound
from tests.contract.support import Moment, TestClock, eventually, node, pod


def test_create_fills_in_what_the_server_knows(cluster: Cluster, clock: TestClock) -> None:
    made = cluster.create("Pod", pod())

    meta = made["metadata"]
    assert meta["uid"]
    assert meta["resourceVersion"]
    assert meta["generation"] == 1
    assert meta["creationTimestamp"] == Moment(clock)
    spec, status = made["spec"], made["status"]
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["restartPolicy"] == "Always"
    assert spec["priority"] == 0
    assert status == {"phase": "Pending", "qosClass": "Burstable"}
    assert cluster.get("Pod", "default", "web") == made


def test_what_is_handed_in_is_not_kept_and_not_changed(cluster: Cluster) -> None:
    mine = pod()
    before = pod()
    cluster.create("Pod", mine)
    assert mine == before

    mine["metadata"]["labels"]["app"] = "changed"
    assert cluster.get("Pod", "default", "web")["metadata"]["labels"] == {"app": "web"}


def test_a_name_can_be_generated(cluster: Cluster) -> None:
    manifest = pod()
    del manifest["metadata"]["name"]
    manifest["metadata"]["generateName"] = "web-"
    names = {cluster.create("Pod", manifest)["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20
    assert all(name.startswith("web-") and len(name) == 9 for name in names)


def test_an_object_without_namespace_goes_to_default(cluster: Cluster) -> None:
    manifest = pod()
    del manifest["metadata"]["namespace"]
    assert cluster.create("Pod", manifest)["metadata"]["namespace"] == "default"


def test_a_node_that_says_nothing_of_allocatable_has_its_capacity(cluster: Cluster) -> None:
    made = cluster.create("Node", node())
    assert made["status"]["allocatable"] == {"cpu": "4", "memory": "8Gi", "pods": "110"}


@pytest.mark.parametrize(
    ("kind", "manifest", "code", "reason", "message"),
    [
        pytest.param(
            "Pod",
            pod("Bad_Name"),
            422,
            "Invalid",
            'Pod "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name"',
            id="bad name",
        ),
        pytest.param(
            "Pod",
            {"metadata": {"name": "empty"}, "spec": {}},
            422,
            "Invalid",
            'Pod "empty" is invalid: spec.containers: Required value',
            id="no containers",
        ),
        pytest.param(
            "PodGroup",
            {"metadata": {"name": "g"}, "spec": {"minMember": 0}},
            422,
            "Invalid",
            'PodGroup.scheduling.x-k8s.io "g" is invalid: spec.minMember: Invalid value: 0: '
            "spec.minMember in body should be greater than or equal to 1",
            id="a gang of nobody",
        ),
        pytest.param(
            "Pod",
            pod(namespace="absent"),
            404,
            "NotFound",
            'namespaces "absent" not found',
            id="namespace is not there",
        ),
        pytest.param(
            "Pod",
            pod(priorityClassName="nope"),
            403,
            "Forbidden",
            'pods "web" is forbidden: no PriorityClass with name nope was found',
            id="priority class is not there",
        ),
        pytest.param(
            "Pod",
            pod(priority=7),
            403,
            "Forbidden",
            "the integer value of priority (7) must not be provided in pod spec",
            id="priority by number",
        ),
        pytest.param(
            "Pod", node(), 400, "BadRequest", "cannot be handled as a Pod", id="another kind"
        ),
        pytest.param(
            "Gadget",
            {},
            404,
            "NotFound",
            "could not find the requested resource",
            id="no such kind",
        ),
    ],
)
def test_what_is_refused(
    cluster: Cluster,
    has_others: bool,
    kind: str,
    manifest: dict[str, Any],
    code: int,
    reason: str,
    message: str,
) -> None:
    before = cluster.list("Pod")
    with pytest.raises(ApiError) as caught:
        cluster.create(kind, manifest)
    assert (caught.value.code, caught.value.reason) == (code, reason)
    assert message in caught.value.message
    after = cluster.list("Pod")
    assert list(after.items) == list(before.items) == []
    if not has_others:
        assert after.resource_version == before.resource_version


def test_an_invalid_object_is_told_by_field(cluster: Cluster) -> None:
    bad = pod()
    bad["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "-1"
    with pytest.raises(ApiError) as caught:
        cluster.create("Pod", bad)
    assert caught.value.causes == (
        (
            "spec.containers[0].resources.requests[cpu]",
            'Invalid value: "-1": must be greater than or equal to 0',
        ),
    )


def test_a_name_can_be_had_once(cluster: Cluster) -> None:
    cluster.create("Pod", pod())
    with pytest.raises(AlreadyExists, match='pods "web" already exists'):
        cluster.create("Pod", pod())


@pytest.mark.parametrize("request_", ["get", "patch", "delete", "update", "bind"])
def test_what_is_not_there_is_not_found(cluster: Cluster, request_: str) -> None:
    calls = {
        "get": lambda: cluster.get("Pod", "default", "web"),
        "patch": lambda: cluster.patch("Pod", "default", "web", {}),
        "delete": lambda: cluster.delete("Pod", "default", "web"),
        "update": lambda: cluster.update("Pod", pod()),
        "bind": lambda: cluster.bind("default", "web", "", "n1"),
    }
    with pytest.raises(NotFound, match='pods "web" not found'):
        calls[request_]()


def test_priority_comes_from_the_class(cluster: Cluster) -> None:
    cluster.create("PriorityClass", {"metadata": {"name": "high"}, "value": 1000})
    assert cluster.create("Pod", pod(priorityClassName="high"))["spec"]["priority"] == 1000


def test_the_default_class_is_for_pods_that_name_none(cluster: Cluster) -> None:
    cluster.create(
        "PriorityClass",
        {
            "metadata": {"name": "usual"},
            "value": 5,
            "globalDefault": True,
            "preemptionPolicy": "Never",
        },
    )
    spec = cluster.create("Pod", pod())["spec"]
    assert (spec["priority"], spec["priorityClassName"], spec["preemptionPolicy"]) == (
        5,
        "usual",
        "Never",
    )


# -- update --------------------------------------------------------------------------------------


def test_an_update_of_an_old_version_conflicts(cluster: Cluster) -> None:
    old = cluster.create("Node", node())
    cluster.patch("Node", "", "n1", {"metadata": {"labels": {"zone": "a"}}})
    with pytest.raises(Conflict, match="the object has been modified; please apply your changes"):
        cluster.update("Node", old)


def test_an_update_of_another_uid_conflicts(cluster: Cluster) -> None:
    obj = cluster.create("Node", node())
    other = {**obj, "metadata": {**obj["metadata"], "uid": "other", "resourceVersion": ""}}
    with pytest.raises(Conflict, match="Precondition failed: UID in precondition: other"):
        cluster.update("Node", other)


def test_an_update_leaves_the_status_alone(cluster: Cluster) -> None:
    made = cluster.create("Node", node())
    changed = cluster.update(
        "Node", {**made, "spec": {"unschedulable": True}, "status": {"phase": "x"}}
    )
    assert changed["spec"] == {"unschedulable": True}
    assert changed["status"] == made["status"]


def test_an_update_that_changes_nothing_writes_nothing(cluster: Cluster) -> None:
    made = cluster.create("Node", node())
    assert cluster.update("Node", made) == made
    assert cluster.patch("Node", "", "n1", {"metadata": {"labels": {}}}) == made


def test_a_merge_patch_sets_and_takes_away(cluster: Cluster) -> None:
    cluster.create("Node", node(zone="a", disk="ssd"))
    patched = cluster.patch("Node", "", "n1", {"metadata": {"labels": {"zone": "b", "disk": None}}})
    assert patched["metadata"]["labels"] == {"zone": "b"}


def test_a_status_patch_changes_the_status_alone(cluster: Cluster) -> None:
    made = cluster.create("Pod", pod())
    patch = {"spec": {"activeDeadlineSeconds": 5}, "status": {"phase": "Running"}}
    patched = cluster.patch("Pod", "default", "web", patch, subresource="status")
    assert patched["status"]["phase"] == "Running"
    assert patched["spec"] == made["spec"]
    assert patched["metadata"]["generation"] == 1


def test_labels_go_along_with_a_status_save_for_custom_resources(cluster: Cluster) -> None:
    cluster.create("Pod", pod())
    cluster.create("PodGroup", {"metadata": {"name": "g"}, "spec": {"minMember": 1}})
    patch = {"metadata": {"labels": {"app": "x"}}, "status": {"phase": "Running"}}
    patched = cluster.patch("Pod", "default", "web", patch, subresource="status")
    assert patched["metadata"]["labels"] == {"app": "x"}
    patched = cluster.patch("PodGroup", "default", "g", patch, subresource="status")
    assert patched["status"]["phase"] == "Running"
    assert "labels" not in patched["metadata"]


def test_the_status_cannot_be_changed_by_the_main_resource(cluster: Cluster) -> None:
    made = cluster.create("Pod", pod())
    assert cluster.patch("Pod", "default", "web", {"status": {"phase": "Failed"}}) == made


def test_a_refused_patch_changes_nothing(cluster: Cluster) -> None:
    made = cluster.create("Node", node())
    taint = {"key": "dedicated", "effect": "Sometimes"}
    with pytest.raises(ApiError, match='Unsupported value: "Sometimes"'):
        cluster.patch("Node", "", "n1", {"spec": {"taints": [taint]}})
    assert cluster.get("Node", "", "n1") == made


def test_generation_counts_changes_of_the_spec(cluster: Cluster) -> None:
    group = {"metadata": {"name": "g"}, "spec": {"minMember": 2}}
    assert cluster.create("PodGroup", group)["metadata"]["generation"] == 1
    labelled = cluster.patch("PodGroup", "default", "g", {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["generation"] == 1
    grown = cluster.patch("PodGroup", "default", "g", {"spec": {"minMember": 3}})
    assert grown["metadata"]["generation"] == 2


# -- delete --------------------------------------------------------------------------------------


def test_delete_asks_for_the_right_uid(cluster: Cluster) -> None:
    cluster.create("Node", node())
    with pytest.raises(Conflict, match=r"the UID in the precondition \(other\) does not match"):
        cluster.delete("Node", "", "n1", uid="other")
    uid = cluster.get("Node", "", "n1")["metadata"]["uid"]
    cluster.delete("Node", "", "n1", uid=uid)
    assert list(cluster.list("Node").items) == []


def test_finalizers_hold_an_object_until_they_are_taken_away(
    cluster: Cluster, clock: TestClock
) -> None:
    held = node()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    cluster.create("Node", held)
    cluster.delete("Node", "", "n1")
    assert cluster.get("Node", "", "n1")["metadata"]["deletionTimestamp"] == Moment(clock)

    cluster.patch("Node", "", "n1", {"metadata": {"finalizers": None}})
    with pytest.raises(NotFound):
        cluster.get("Node", "", "n1")


def test_a_namespace_takes_its_objects_along(cluster: Cluster, empties_namespaces: bool) -> None:
    cluster.create("Namespace", {"metadata": {"name": "team"}})
    cluster.create("Pod", pod(namespace="team"))
    cluster.create("Pod", pod())
    cluster.delete("Namespace", "", "team")
    if not empties_namespaces:
        # The API server's own part: nothing more comes in.
        found = cluster.get("Namespace", "", "team")
        assert found["status"]["phase"] == "Terminating"
        with pytest.raises(ApiError, match="because it is being terminated"):
            cluster.create("Pod", pod("late", namespace="team"))
        return
    eventually(
        lambda: [p["metadata"]["namespace"] for p in cluster.list("Pod").items] == ["default"]
    )


def test_the_default_namespace_stays(cluster: Cluster) -> None:
    with pytest.raises(ApiError, match='namespaces "default" is forbidden'):
        cluster.delete("Namespace", "", "default")


# -- list ----------------------------------------------------------------------------------------


@pytest.fixture
def three_nodes(cluster: Cluster) -> Cluster:
    cluster.create("Node", node("n2", zone="b"))
    cluster.create("Node", node("n0", zone="a"))
    cluster.create("Node", node("n1"))
    cluster.patch("Node", "", "n1", {"spec": {"unschedulable": True}})
    return cluster


@pytest.mark.parametrize(
    ("selectors", "names"),
    [
        pytest.param({}, ["n0", "n1", "n2"], id="all, in order of names"),
        pytest.param({"label_selector": "zone=a"}, ["n0"], id="equal"),
        pytest.param({"label_selector": "zone==a"}, ["n0"], id="equal, twice"),
        pytest.param({"label_selector": "zone!=a"}, ["n1", "n2"], id="not equal, or absent"),
        pytest.param({"label_selector": "zone"}, ["n0", "n2"], id="exists"),
        pytest.param({"label_selector": "!zone"}, ["n1"], id="does not exist"),
        pytest.param({"label_selector": "zone in (a, b)"}, ["n0", "n2"], id="in"),
        pytest.param({"label_selector": "zone notin (a)"}, ["n1", "n2"], id="not in"),
        pytest.param({"label_selector": "zone,zone notin (b)"}, ["n0"], id="both"),
        pytest.param({"field_selector": "metadata.name=n1"}, ["n1"], id="field"),
        pytest.param({"field_selector": "spec.unschedulable=true"}, ["n1"], id="truth"),
        pytest.param({"field_selector": "spec.unschedulable!=true"}, ["n0", "n2"], id="absent"),
    ],
)
def test_selectors(three_nodes: Cluster, selectors: dict[str, str], names: list[str]) -> None:
    found = three_nodes.list("Node", **selectors)
    assert [n["metadata"]["name"] for n in found.items] == names


@pytest.mark.parametrize(
    ("selectors", "message"),
    [
        pytest.param(
            {"label_selector": "zone===a"},
            "unable to parse requirement: found '=', expected: identifier",
            id="three signs",
        ),
        pytest.param({"label_selector": "a in b"}, "expected: '('", id="no set"),
        pytest.param(
            {"label_selector": "a=b c"},
            "found 'c', expected: ',' or 'end of string'",
            id="no comma",
        ),
        pytest.param(
            {"field_selector": "spec.color=red"},
            "field label not supported: spec.color",
            id="unknown field",
        ),
        pytest.param(
            {"field_selector": "red"},
            "invalid selector: 'red'; can't understand 'red'",
            id="no sign",
        ),
    ],
)
def test_bad_selectors(cluster: Cluster, selectors: dict[str, str], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        cluster.list("Node", **selectors)
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")
    assert message in caught.value.message


def test_pods_by_node_phase_scheduler_and_namespace(cluster: Cluster) -> None:
    cluster.create("Namespace", {"metadata": {"name": "team"}})
    cluster.create("Pod", pod("a"))
    cluster.create("Pod", pod("b", schedulerName="other"))
    cluster.create("Pod", pod("c", "team"))
    cluster.bind("default", "a", "", "n1")

    def names(namespace: str | None = None, fields: str = "") -> list[str]:
        found = cluster.list("Pod", namespace, field_selector=fields)
        return [p["metadata"]["name"] for p in found.items]

    assert names() == ["a", "b", "c"]
    assert names("team") == ["c"]
    assert names(fields="spec.nodeName=") == ["b", "c"]
    assert names(fields="spec.nodeName=n1") == ["a"]
    assert names(fields="spec.schedulerName=other") == ["b"]
    assert names(fields="metadata.namespace=team,status.phase=Pending") == ["c"]
