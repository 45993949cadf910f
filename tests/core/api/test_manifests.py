"""Manifests: what is read, and where a fault is said to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler_core.api import (
    InvalidObject,
    Node,
    Pod,
    load_manifest_file,
    load_manifests,
    parse_documents,
    pod_requests,
)

TWO = """\
# a comment first
apiVersion: v1
kind: Pod
metadata:
  name: web
  creationTimestamp: 2026-01-01T00:00:00Z
  labels: {version: "1"}
spec:
  containers:
  - name: c
    image: i
    resources:
      requests: {cpu: 0.5, memory: 1e3}
---
---
apiVersion: v1
kind: Node
metadata:
  name: n1
status:
  capacity:
    cpu: 4
"""


def refused(text: str) -> str:
    with pytest.raises(InvalidObject) as error:
        load_manifests(text, "a.yaml")
    return str(error.value)


def test_documents_become_objects_with_their_place() -> None:
    pod, node = load_manifests(TWO, "a.yaml")
    assert (pod.source, pod.document, pod.line) == ("a.yaml", 1, 2)
    assert (node.document, node.line) == (3, 16)
    web = pod.parse()
    assert isinstance(web, Pod)
    assert pod_requests(web) == {"cpu": 500, "memory": 1000}
    assert web.creation_timestamp == 1767225600.0
    n1 = node.parse()
    assert isinstance(n1, Node)
    assert n1.allocatable == {"cpu": 4000}


def test_json_is_read_too_tabs_included() -> None:
    (node,) = load_manifests('{\n\t"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}')
    assert node.raw["metadata"] == {"name": "n"}


def test_lists_are_unpacked() -> None:
    text = """\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: a}}
- {apiVersion: v1, kind: Node, metadata: {name: b}}
"""
    assert [(m.raw["metadata"]["name"], m.line) for m in load_manifests(text)] == [
        ("a", 4),
        ("b", 5),
    ]
    (typed,) = load_manifests("{apiVersion: v1, kind: NodeList, items: [{metadata: {name: a}}]}")
    assert isinstance(typed.parse(), Node)


@pytest.mark.parametrize("text", ["", "---\n---\n", "# nothing\n", "null"], ids=repr)
def test_nothing_is_no_fault(text: str) -> None:
    assert load_manifests(text) == []


def test_a_fault_names_file_document_line_object_field_and_reason() -> None:
    text = TWO.replace("cpu: 4", "cpu: four")
    assert refused(text).startswith(
        "a.yaml, document 3, line 22: Node n1: status.capacity[cpu]: "
        'Invalid value: "four": not a quantity: '
    )


def test_all_faults_of_all_documents_are_told() -> None:
    text = TWO.replace("cpu: 4", "cpu: four").replace("image: i", "ports: [{hostPort: 1}]")
    with pytest.raises(InvalidObject) as error:
        load_manifests(text, "a.yaml")
    assert [(cause.field_path, cause.subject) for cause in error.value.causes] == [
        ("spec.containers[0].image", "a.yaml, document 1, line 10: Pod web"),
        ("spec.containers[0].ports[0].containerPort", "a.yaml, document 1, line 11: Pod web"),
        ("status.capacity[cpu]", "a.yaml, document 3, line 22: Node n1"),
    ]
    assert str(error.value).count("a.yaml, document") == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [1", "a.yaml, document 1, line 1: not YAML: ", id="not closed"),
        pytest.param(
            TWO + "---\na: b: c\n",
            "a.yaml, document 4, line 24: not YAML: mapping values are not allowed",
            id="the last document is broken",
        ),
        pytest.param(
            "kind: Pod\nkind: Node\n",
            'a.yaml, document 1, line 2: key "kind" already set in map',
            id="doubled key",
        ),
        pytest.param(
            "hello",
            'a.yaml, document 1, line 1: Invalid value: "hello": must be an object',
            id="text",
        ),
        pytest.param(
            "- a\n- b", "a.yaml, document 1, line 1: Invalid value: ", id="a list of words"
        ),
        pytest.param(
            "? [a]\n: b", "a.yaml, document 1, line 1: a key must be text", id="a list as key"
        ),
        pytest.param(
            "x: !!python/object:os.system 1",
            "a.yaml, document 1, line 1: not JSON: tag",
            id="an object of a program",
        ),
        pytest.param("x: !!binary aGk=", "a.yaml, document 1, line 1: not JSON", id="binary"),
        pytest.param("x: !!int abc", "a.yaml, document 1, line 1: not YAML: ", id="no integer"),
        pytest.param("x: !!bool abc", "a.yaml, document 1, line 1: not YAML: ", id="no boolean"),
        pytest.param("x: " + "9" * 5000, "a.yaml, document 1, line 1: not YAML: ", id="endless"),
        pytest.param("\ud800", "a.yaml: not UTF-8 text (character 0)", id="half a character"),
        pytest.param("a: *b", "a.yaml, document 1, line 1: not YAML: ", id="undefined alias"),
        pytest.param(
            "a: &a [*a]",
            "a.yaml, document 1, line 1: an alias refers to what it is part of",
            id="endless alias",
        ),
        pytest.param("\x00", "a.yaml: not YAML: unacceptable character", id="control character"),
        pytest.param(
            "kind: Widget\napiVersion: v1",
            'a.yaml, document 1, line 1: Widget: kind: Invalid value: "Widget": known kinds are',
            id="unknown kind",
        ),
        pytest.param(
            TWO.replace("kind: Node", "kind: Node\nspec: {taint: []}"),
            'a.yaml, document 3, line 18: Node n1: spec.taint: unknown field "spec.taint"',
            id="misspelt field",
        ),
        pytest.param("a: 1", "a.yaml, document 1, line 1: object: kind: Required", id="no kind"),
        pytest.param(
            "[" * 100_000,
            "a.yaml, document 1, line 1: nested deeper than 200 levels",
            id="deeply nested",
        ),
    ],
)
def test_what_is_refused_as_a_whole(text: str, message: str) -> None:
    assert refused(text).startswith(message)


def test_aliases_that_multiply_are_refused() -> None:
    levels = ["a0: &a0 [1]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert refused("\n".join(levels)).endswith("aliases make it too large")


def test_honest_aliases_and_merges_work() -> None:
    text = """\
base: &base {a: 1}
more: {<<: *base, b: 2}
"""
    assert parse_documents(text) == [{"base": {"a": 1}, "more": {"a": 1, "b": 2}}]


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        pytest.param("2026-01-01", "2026-01-01", id="dates stay text"),
        pytest.param("12:30", "12:30", id="no numbers to base 60"),
        pytest.param("1_000", "1_000", id="no underscores in numbers"),
        pytest.param("0x10", 16, id="hexadecimal"),
        pytest.param("-5", -5, id="negative"),
        pytest.param("1.5", 1.5, id="decimals"),
        pytest.param("1e3", 1000.0, id="exponent"),
        pytest.param("100m", "100m", id="quantity"),
        pytest.param("1Ei", "1Ei", id="binary quantity"),
        pytest.param("yes", True, id="yes"),
        pytest.param("~", None, id="null"),
        pytest.param("'5'", "5", id="quoted"),
    ],
)
def test_scalars_are_read_as_kubernetes_reads_them(text: str, parsed: object) -> None:
    assert parse_documents(f"x: {text}") == [{"x": parsed}]


def test_keys_are_text_whatever_they_look_like() -> None:
    assert parse_documents("{1: a, true: b, on: c}") == [{"1": "a", "true": "b", "on": "c"}]


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "n.yaml"
    path.write_text("\ufeffapiVersion: v1\nkind: Node\nmetadata: {name: n}\n", encoding="utf-8")
    assert load_manifest_file(path)[0].source == "n.yaml"
    path.write_bytes(b"a: \xff")
    with pytest.raises(InvalidObject, match=r"n\.yaml: not UTF-8 text \(byte 3\)"):
        load_manifest_file(path)
