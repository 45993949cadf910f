"""Every verb of the extender API, v1, field by field: both forms of nodes, null, empty, broken."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from dashboard.metrics import exposition
from dashboard.models import AuditEntry, SchedulerRun, WaitingPod
from scheduler_core.records import Outcome
from scheduler_core.testing.builders import make_node, make_pod
from tests.dashboard.extender_service.conftest import ServedRun

CLOSED = "node(s) were unschedulable"
NO_CPU = "Insufficient cpu"
UNKNOWN = "the node is not in the extender's cache"
NO_FIELDS = {
    "Nodes": None,
    "NodeNames": None,
    "FailedNodes": None,
    "FailedAndUnresolvableNodes": None,
}


# -- filter ----------------------------------------------------------------------------------------


def test_filter_by_name(served: ServedRun) -> None:
    names = ["d", "c", "a", "b", "gone"]
    assert served.call("filter", Pod=served.pod(), Nodes=None, NodeNames=names) == {
        "Nodes": None,
        "NodeNames": ["c", "b"],
        "FailedNodes": {"a": NO_CPU, "gone": UNKNOWN},
        "FailedAndUnresolvableNodes": {"d": CLOSED},
        "Error": "",
    }


def test_filter_with_whole_nodes(served: ServedRun) -> None:
    items = [served.node(name) for name in "abcd"]
    nodes = {"metadata": {}, "items": items}
    assert served.call("filter", Pod=served.pod(), Nodes=nodes, NodeNames=None) == {
        "Nodes": {"metadata": {}, "items": [items[1], items[2]]},
        "NodeNames": None,
        "FailedNodes": {"a": NO_CPU},
        "FailedAndUnresolvableNodes": {"d": CLOSED},
        "Error": "",
    }


def test_empty_is_not_null(served: ServedRun) -> None:
    by_name = served.call("filter", Pod=served.pod(), Nodes=None, NodeNames=[])
    assert (by_name["NodeNames"], by_name["Nodes"]) == ([], None)
    whole = served.call("filter", Pod=served.pod(), Nodes={"metadata": {}, "items": []})
    assert (whole["NodeNames"], whole["Nodes"]) == (None, {"metadata": {}, "items": []})
    no_items = served.call("filter", Pod=served.pod(), Nodes={"metadata": {}, "items": None})
    assert no_items["Nodes"] == {"metadata": {}, "items": []}


def test_names_of_fields_in_any_case(served: ServedRun) -> None:
    assert served.call("filter", pod=served.pod(), nodenames=["c"])["NodeNames"] == ["c"]


def test_a_node_that_came_in_another_version_counts_as_it_came(served: ServedRun) -> None:
    bigger = served.node("a")
    bigger["metadata"] = {**bigger["metadata"], "resourceVersion": "999999"}
    bigger["status"] = {**bigger["status"], "allocatable": {"cpu": "8", "pods": "110"}}
    new = make_node("new").capacity(cpu="2").raw()
    nodes = {"metadata": {}, "items": [bigger, new, served.node("b")]}
    found = served.call("filter", Pod=served.pod("3"), Nodes=nodes)
    # a has 4 of its 8 cpus left for it, because the pod on it is known; new never had 3.
    assert [n["metadata"]["name"] for n in found["Nodes"]["items"]] == ["a"]
    assert found["FailedNodes"] == {"b": NO_CPU}
    assert found["FailedAndUnresolvableNodes"] == {"new": NO_CPU}


def test_a_pod_that_pre_filter_turns_down(served: ServedRun) -> None:
    pod = served.pod()
    pod["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "absent"}}]
    found = served.call("filter", Pod=pod, NodeNames=["b", "c"])
    text = 'persistentvolumeclaim "absent" not found'
    assert found["NodeNames"] == []
    assert found["FailedAndUnresolvableNodes"] == {"b": text, "c": text}
    assert found["Error"] == ""


# -- prioritize ------------------------------------------------------------------------------------


def test_prioritize_by_name(served: ServedRun) -> None:
    found = served.call("prioritize", Pod=served.pod(), NodeNames=["a", "b", "c"])
    assert [entry["Host"] for entry in found] == ["a", "b", "c"]
    a, b, c = (entry["Score"] for entry in found)
    assert (a, c) == (0, 10)
    assert 0 < b < 10
    assert all(list(entry) == ["Host", "Score"] for entry in found)


def test_prioritize_with_whole_nodes_and_ones_that_nobody_knows(served: ServedRun) -> None:
    nodes = {"metadata": {}, "items": [served.node("c"), served.node("a")]}
    found = served.call("prioritize", Pod=served.pod(), Nodes=nodes, NodeNames=None)
    assert found == [{"Host": "c", "Score": 10}, {"Host": "a", "Score": 0}]
    found = served.call("prioritize", Pod=served.pod(), NodeNames=["gone", "c"])
    assert found == [{"Host": "gone", "Score": 0}, {"Host": "c", "Score": 10}]


def test_prioritize_nothing_and_all_alike(served: ServedRun) -> None:
    assert served.call("prioritize", Pod=served.pod(), NodeNames=[]) == []
    assert served.call("prioritize", Pod=served.pod(), NodeNames=["c"]) == [
        {"Host": "c", "Score": 10}
    ]


# -- preempt ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("meta", [True, False], ids=["by uid", "whole pods"])
def test_preempt_keeps_nodes_on_which_the_pod_fits_then(served: ServedRun, meta: bool) -> None:
    full, half = served.uid("full"), served.uid("half")
    if meta:
        victims: dict[str, Any] = {
            "a": {"Pods": [{"UID": full}], "NumPDBViolations": 1},
            "b": {"Pods": [], "NumPDBViolations": 0},
            "gone": {"Pods": [{"UID": half}], "NumPDBViolations": 0},
        }
        fields = {"NodeNameToVictims": None, "NodeNameToMetaVictims": victims}
    else:
        pod = dict(served.harness.cluster.get("Pod", "default", "full"))
        victims = {
            "a": {"Pods": [pod], "NumPDBViolations": 1},
            "b": {"Pods": None, "NumPDBViolations": 0},
        }
        fields = {"NodeNameToVictims": victims, "NodeNameToMetaVictims": None}
    found = served.call("preempt", Pod=served.pod("3", priority=10), **fields)
    assert found == {
        "NodeNameToMetaVictims": {"a": {"Pods": [{"UID": full}], "NumPDBViolations": 1}}
    }


def test_preempt_of_nothing(served: ServedRun) -> None:
    found = served.call("preempt", Pod=served.pod(), NodeNameToMetaVictims={})
    assert found == {"NodeNameToMetaVictims": {}}


def test_a_closed_node_is_no_place_after_preemption_either(served: ServedRun) -> None:
    victims = {"d": {"Pods": [], "NumPDBViolations": 0}}
    found = served.call("preempt", Pod=served.pod(), NodeNameToMetaVictims=victims)
    assert found == {"NodeNameToMetaVictims": {}}


# -- bind ------------------------------------------------------------------------------------------


def bind(served: ServedRun, uid: str, node: str = "c") -> Any:
    return served.call("bind", PodName="new", PodNamespace="default", PodUID=uid, Node=node)


@pytest.mark.django_db(transaction=True)
def test_bind(served: ServedRun) -> None:
    served.harness.cluster.create("Pod", make_pod("new").scheduler_name("stock").raw())
    uid = served.uid("new")
    assert bind(served, uid) == {"Error": ""}
    assert served.harness.node_of("new") == "c"
    again = bind(served, uid, "b")
    assert "already assigned" in again["Error"]
    assert served.harness.node_of("new") == "c"

    assert [(e.target, e.outcome, e.message) for e in AuditEntry.objects.order_by("id")] == [
        ("default/new", "applied", ""),
        ("default/new", "refused", again["Error"]),
    ]


@pytest.mark.django_db(transaction=True)
def test_bind_of_a_pod_that_is_gone(served: ServedRun) -> None:
    assert bind(served, "uid-x") == {"Error": 'pods "new" not found'}


@pytest.mark.django_db(transaction=True)
def test_a_pod_that_waits_at_permit_is_not_bound(served: ServedRun, run: SchedulerRun) -> None:
    served.harness.cluster.create("Pod", make_pod("new").scheduler_name("stock").raw())
    uid = served.uid("new")
    WaitingPod.objects.create(
        run=run, uid=uid, namespace="default", name="new", node="c", profile="stock", priority=0,
        since=1.0, deadline=9.0, cycle=1, commit_seq=1,
    )  # fmt: skip
    error = bind(served, uid)["Error"]
    assert error == (
        'pod "default/new" waits at Permit:'
        " it is bound once it is approved, not by an extender's call"
    )
    assert served.harness.node_of("new") == ""
    entry = AuditEntry.objects.get(verb="bind")
    assert (entry.outcome, entry.message) == ("refused", error)


@pytest.mark.django_db(transaction=True)
def test_a_pod_of_the_runs_own_profiles_is_not_bound(served: ServedRun) -> None:
    served.harness.cluster.create("Pod", make_pod("new").req(cpu=99).raw())
    error = bind(served, served.uid("new"))["Error"]
    assert "is scheduled by this run itself (schedulerName default-scheduler)" in error
    assert served.harness.node_of("new") == ""


# -- broken bodies ---------------------------------------------------------------------------------


BROKEN = [
    pytest.param(b"", "the body is empty", id="empty"),
    pytest.param(b"{", "the body is not valid JSON", id="cut off"),
    pytest.param(b"\xff\xfe", "the body is not valid JSON", id="no text"),
    pytest.param(b"[" * 100_000, "the body is not valid JSON", id="nested too deeply"),
    pytest.param(b"null", "Pod is missing", id="null"),
    pytest.param(b"[]", "the request is a list, not an object", id="a list"),
    pytest.param(b'{"Pod":7}', "Pod is a number, not an object", id="no pod"),
    pytest.param(b'{"Pod":{"spec":{"containers":5}}}', "Pod: ", id="a malformed pod"),
    pytest.param(
        b'{"Pod":{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}]}},"NodeNames":[1]}',
        "NodeNames[0] is a number, not a string",
        id="names of numbers",
    ),
    pytest.param(
        b'{"Pod":{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}]}},'
        b'"Nodes":{"items":[{"metadata":{}}]}}',
        "Nodes.items[0].metadata.name is missing",
        id="a node without a name",
    ),
    pytest.param(
        b'{"Pod":{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}]}},'
        b'"Nodes":{"items":[{"metadata":{"name":"x"},"status":{"allocatable":{"cpu":"many"}}}]}}',
        "Nodes.items[0]: ",
        id="a node that cannot be read",
    ),
    pytest.param(
        b'{"Pod":{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}]}}}',
        "neither Nodes nor NodeNames is there",
        id="neither",
    ),
]


@pytest.mark.parametrize(("body", "text"), BROKEN)
def test_filter_says_what_is_wrong_in_its_error(served: ServedRun, body: bytes, text: str) -> None:
    status, document = served.raw("filter", body)
    assert status == 200
    error = document.pop("Error")
    assert text in error
    assert document == NO_FIELDS


@pytest.mark.parametrize(("verb", "status"), [("filter", 200), ("prioritize", 415)])
def test_a_packed_body_is_named(served: ServedRun, verb: str, status: int) -> None:
    headers = {"content-encoding": "gzip"}
    found, document = served.raw(verb, gzip.compress(b"{}"), headers=headers)
    assert found == status
    assert "the body is encoded as gzip, and only plain JSON is read" in document["Error"]


@pytest.mark.parametrize(("body", "text"), BROKEN)
def test_prioritize_has_no_field_for_it_and_answers_400(
    served: ServedRun, body: bytes, text: str
) -> None:
    status, document = served.raw("prioritize", body)
    assert status == 400
    assert text in document["Error"]


@pytest.mark.parametrize(
    ("verb", "fields", "status", "text"),
    [
        pytest.param(
            "bind", {"PodName": "p", "PodNamespace": "n", "PodUID": "u"}, 200, "Node is missing",
            id="bind nowhere",
        ),
        pytest.param("bind", {"PodName": 3}, 200, "PodName is a number", id="bind a number"),
        pytest.param("preempt", {}, 400, "Pod is missing", id="preempt nothing"),
        pytest.param(
            "preempt",
            {"Pod": {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}},
            400,
            "neither NodeNameToVictims nor NodeNameToMetaVictims",
            id="preempt for nobody",
        ),
        pytest.param(
            "preempt",
            {
                "Pod": {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}},
                "NodeNameToMetaVictims": {"a": {"Pods": [{}]}},
            },
            400,
            "NodeNameToMetaVictims[a].Pods[0] has no uid",
            id="a victim without uid",
        ),
        pytest.param(
            "preempt",
            {
                "Pod": {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}},
                "NodeNameToMetaVictims": {"a": {"Pods": [], "NumPDBViolations": "2"}},
            },
            400,
            "NumPDBViolations is a string, not a whole number",
            id="violations in words",
        ),
    ],
)  # fmt: skip
def test_other_verbs(
    served: ServedRun, verb: str, fields: dict[str, Any], status: int, text: str
) -> None:
    found, document = served.raw(verb, json.dumps(fields).encode())
    assert found == status
    assert text in document["Error"]


# -- what is recorded ------------------------------------------------------------------------------


def test_every_decision_is_recorded_like_our_own(served: ServedRun) -> None:
    names = ["a", "b", "c", "d"]
    served.call("filter", Pod=served.pod(), NodeNames=names)
    served.call("prioritize", Pod=served.pod(), NodeNames=["b", "c"])
    served.call("filter", Pod=served.pod("9"), NodeNames=names)
    filtered, scored, nowhere = served.records
    assert filtered.outcome is Outcome.ADVISED
    assert filtered.message == "asked as an extender, filter: 2 of 4 nodes pass"
    assert (filtered.nodes_evaluated, filtered.nodes_feasible) == (4, 2)
    assert {r.reason: r.nodes for r in filtered.rejections} == {NO_CPU: 1, CLOSED: 1}
    assert filtered.matrix is not None and filtered.matrix.rejection.tolist().count(-1) == 2
    assert (scored.outcome, scored.node, scored.best[0].node) == (Outcome.ADVISED, "c", "c")
    assert scored.score is not None and scored.profile == "default-scheduler"
    assert nowhere.outcome is Outcome.UNSCHEDULABLE
    assert [r.sequence for r in served.records] == [1, 2, 3]
    assert filtered.pod.name == "asked"


def test_calls_are_counted(served: ServedRun) -> None:
    served.call("filter", Pod=served.pod(), NodeNames=["c"])
    served.raw("filter", b"{")
    page = exposition.page(served.carried.samples())[0].decode()
    assert 'kubesched_extender_requests_total{result="ok",verb="filter"} 1.0' in page
    assert 'kubesched_extender_requests_total{result="error",verb="filter"} 1.0' in page
    assert 'kubesched_extender_request_duration_seconds_count{verb="filter"} 2.0' in page
