"""The wire format of the extender API, version 1."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduler_core.extender import wire
from scheduler_core.extender.errors import MAX_TEXT, ExtenderError
from scheduler_core.framework.types import Candidate
from scheduler_core.testing.builders import make_node, make_pod


def pod_json(name: str) -> dict[str, Any]:
    raw = make_pod(name).raw()
    return {key: value for key, value in raw.items() if key not in ("kind", "apiVersion")}


def node_json(name: str) -> dict[str, Any]:
    raw = make_node(name).raw()
    return {key: value for key, value in raw.items() if key not in ("kind", "apiVersion")}


# -- requests --------------------------------------------------------------------------------------


def test_filter_and_prioritize_by_name() -> None:
    body = wire.nodes_request(make_pod("p").obj(), ["n1", "n2"], None)
    assert json.loads(body) == {"Pod": pod_json("p"), "Nodes": None, "NodeNames": ["n1", "n2"]}


def test_filter_and_prioritize_with_whole_nodes() -> None:
    nodes = wire.NodeTexts().join([make_node("n1").obj(), make_node("n2").obj()])
    body = wire.nodes_request(make_pod("p").obj(), None, nodes)
    assert json.loads(body) == {
        "Pod": pod_json("p"),
        "Nodes": {"metadata": {}, "items": [node_json("n1"), node_json("n2")]},
        "NodeNames": None,
    }


def test_fields_come_in_the_references_order() -> None:
    body = json.loads(wire.nodes_request(make_pod("p").obj(), [], None))
    assert list(body) == ["Pod", "Nodes", "NodeNames"]


def test_a_node_that_changed_is_written_anew() -> None:
    texts = wire.NodeTexts()
    texts.join([make_node("n1").obj()])
    changed = make_node("n1").label(a="b").obj()
    assert json.loads(texts.join([changed]))["metadata"]["labels"]["a"] == "b"


def test_texts_of_nodes_that_left_are_let_go() -> None:
    texts = wire.NodeTexts()
    for i in range(1000):
        texts.join([make_node(f"n{i}").obj()])
    assert len(texts._known) < 100


def candidates() -> dict[str, Candidate]:
    return {"n1": Candidate("n1", (make_pod("a").obj(), make_pod("b").obj()), 1)}


def test_preempt_by_uid() -> None:
    victims = candidates()["n1"].victims
    assert json.loads(wire.preempt_request(make_pod("p").obj(), candidates(), True)) == {
        "Pod": pod_json("p"),
        "NodeNameToVictims": None,
        "NodeNameToMetaVictims": {
            "n1": {"Pods": [{"UID": v.uid} for v in victims], "NumPDBViolations": 1}
        },
    }


def test_preempt_with_whole_pods() -> None:
    assert json.loads(wire.preempt_request(make_pod("p").obj(), candidates(), False)) == {
        "Pod": pod_json("p"),
        "NodeNameToVictims": {
            "n1": {"Pods": [pod_json("a"), pod_json("b")], "NumPDBViolations": 1}
        },
        "NodeNameToMetaVictims": None,
    }


def test_bind() -> None:
    pod = make_pod("p").obj()
    assert json.loads(wire.bind_request(pod, "n1")) == {
        "PodName": "p",
        "PodNamespace": "default",
        "PodUID": pod.uid,
        "Node": "n1",
    }


def test_text_that_is_no_unicode_can_be_sent() -> None:
    pod = make_pod("p").annotation({"a": "\ud800"}).obj()
    assert b"\\ud800" in wire.nodes_request(pod, [], None)


# -- replies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param({"NodeNames": ["n1"], "Error": "e"}, id="as documented"),
        pytest.param({"nodenames": ["n1"], "error": "e"}, id="lower case"),
        pytest.param({"nodeNames": ["n1"], "ERROR": "e"}, id="mixed case"),
        pytest.param({"NodeNames": None, "nodeNames": ["n1"], "Error": "e"}, id="the last counts"),
        pytest.param({"NodeNames": ["n1"], "Error": "e", "More": 1}, id="unknown fields"),
    ],
)
def test_replies_are_read_in_any_case(reply: Any) -> None:
    found = wire.read_filter(reply)
    assert (found.node_names, found.error) == (("n1",), "e")


def test_nodes_inside_a_filter_reply_too() -> None:
    reply = {"nodes": {"Items": [{"Metadata": {"Name": "n1"}}]}}
    assert wire.read_filter(reply).nodes == ("n1",)


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(None, id="null"),
        pytest.param({}, id="nothing"),
        pytest.param(
            {"Nodes": None, "NodeNames": None, "FailedNodes": None, "Error": None}, id="nulls"
        ),
    ],
)
def test_what_is_null_or_missing_is_absent(reply: Any) -> None:
    assert wire.read_filter(reply) == wire.FilterReply()


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        pytest.param([], "the answer is a list, not an object", id="a list"),
        pytest.param("x", "the answer is a string, not an object", id="a string"),
        pytest.param({"NodeNames": "n1"}, "NodeNames is a string, not a list", id="names"),
        pytest.param({"NodeNames": [1]}, "NodeNames is a number, not a string", id="a name"),
        pytest.param({"Nodes": []}, "Nodes is a list, not an object", id="nodes"),
        pytest.param({"Nodes": {"items": {}}}, "Nodes.items is an object, not a list", id="items"),
        pytest.param({"Nodes": {"items": [1]}}, "a node is a number, not an object", id="a node"),
        pytest.param({"FailedNodes": ["n1"]}, "FailedNodes is a list, not an object", id="failed"),
        pytest.param({"FailedNodes": {"n": 1}}, "FailedNodes is a number, not a string", id="why"),
        pytest.param({"Error": True}, "Error is true or false, not a string", id="error"),
    ],
)
def test_filter_replies_of_the_wrong_kind(reply: Any, text: str) -> None:
    with pytest.raises(ExtenderError) as failure:
        wire.read_filter(reply)
    assert text in str(failure.value)


def test_scores() -> None:
    reply = [{"Host": "n1", "Score": 10}, {"host": "n2", "score": -3}, {"Host": "n3"}, None]
    assert wire.read_prioritize(reply) == [("n1", 10), ("n2", -3), ("n3", 0), ("", 0)]


@pytest.mark.parametrize(
    "score",
    [1.5, 10.0, "10", True, [], 2**63, -(2**63) - 1],
    ids=["fraction", "float", "string", "bool", "list", "too large", "too small"],
)
def test_a_score_is_a_whole_number_of_64_bits(score: Any) -> None:
    with pytest.raises(ExtenderError, match=r"Score is .* not a 64-bit integer"):
        wire.read_prioritize([{"Host": "n1", "Score": score}])


def test_victims() -> None:
    reply = {"nodeNameToMetaVictims": {"n1": {"pods": [{"uid": "u"}], "numPDBViolations": 2}}}
    assert wire.read_preempt(reply) == {"n1": wire.VictimsReply(("u",), 2)}


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param({"NodeNameToMetaVictims": []}, id="a list"),
        pytest.param({"NodeNameToMetaVictims": {"n": {"Pods": {}}}}, id="pods"),
        pytest.param({"NodeNameToMetaVictims": {"n": {"Pods": ["u"]}}}, id="a pod"),
    ],
)
def test_victims_of_the_wrong_kind(reply: Any) -> None:
    with pytest.raises(ExtenderError, match="the answer cannot be read"):
        wire.read_preempt(reply)


def test_long_texts_are_cut() -> None:
    long = "x" * 1_000_000
    found = wire.read_filter({"FailedNodes": {"n1": long}})
    assert len(found.failed["n1"]) == len(str(ExtenderError(long))) == MAX_TEXT
    assert found.failed["n1"].endswith(" ...")
