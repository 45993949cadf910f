"""Files that people have of their clusters, in three shapes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler_core.api import Node, PersistentVolume, Pod, StorageClass
from scheduler_core.snapshot_file import (
    InvalidSnapshot,
    SnapshotFile,
    load_snapshot,
    parse_snapshot,
    snapshot_of,
)
from scheduler_core.testing.builders import make_namespace, make_node, make_pod

NODE = make_node("n1").raw()
POD = make_pod("p").node("n1").raw()
#: As the simulator and the API server's lists have them.
BARE_NODE = {key: NODE[key] for key in ("metadata", "status")}
BARE_POD = {key: POD[key] for key in ("metadata", "spec", "status")}


def listed(kind: str, *items: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "items": list(items)}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param([{"nodes": [BARE_NODE], "pods": [BARE_POD], "pvs": None}], id="simulator"),
        pytest.param([listed("List", NODE, POD)], id="kubectl List"),
        pytest.param(
            [listed("NodeList", BARE_NODE), listed("PodList", BARE_POD)], id="typed lists"
        ),
        pytest.param([listed("List", listed("NodeList", BARE_NODE), POD)], id="a list in a list"),
        pytest.param([NODE, POD], id="one document each"),
    ],
)
@pytest.mark.parametrize("form", ["json", "yaml", "json.gz", "yaml.gz"])
def test_shapes(tmp_path: Path, data: list[Any], form: str) -> None:
    if form.startswith("json"):
        if len(data) > 1:
            data = [listed("List", *data)]
        text = json.dumps(data[0])
    else:
        text = yaml.safe_dump_all(data)
    path = tmp_path / f"cluster.{form}"
    path.write_bytes(gzip.compress(text.encode()) if form.endswith(".gz") else text.encode())
    found = load_snapshot(path)
    assert [(type(obj), obj.key) for obj in found.objects] == [(Node, "n1"), (Pod, "default/p")]
    assert found.of_kind(Pod)[0].node_name == "n1"
    assert found.scheduler_config is None
    assert found.source == str(path)


def test_every_part_of_a_simulators_export() -> None:
    def named(name: str, **more: Any) -> dict[str, Any]:
        return {"metadata": {"name": name}, **more}

    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    export = {
        "pods": [BARE_POD],
        "nodes": [BARE_NODE],
        "pvs": [named("pv", spec={"capacity": {"storage": "1Gi"}})],
        "pvcs": [{"metadata": {"name": "claim", "namespace": "a"}, "spec": {}}],
        "storageClasses": [named("fast", provisioner="p")],
        "priorityClasses": [named("high", value=3)],
        "schedulerConfig": config,
        "namespaces": [named("a")],
    }
    found = parse_snapshot(json.dumps(export))
    assert sorted(type(obj).__name__ for obj in found.objects) == [
        "Namespace",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "PriorityClass",
        "StorageClass",
    ]
    assert found.of_kind(PersistentVolume)[0].name == "pv"
    assert found.of_kind(StorageClass)[0].provisioner == "p"
    assert found.scheduler_config == config


def test_pods_without_uid_are_told_apart() -> None:
    pods = []
    for name in ("a", "b"):
        pods.append(make_pod(name).raw())
        pods[-1]["metadata"].pop("uid", None)
    assert [pod.uid for pod in snapshot_of(pods).of_kind(Pod)] == ["default/a", "default/b"]


def test_what_scheduling_does_not_look_at_is_counted() -> None:
    knative = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": "s"}}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    found = parse_snapshot(json.dumps(listed("List", NODE, config_map, config_map, knative)))
    assert [obj.key for obj in found.objects] == ["n1"]
    assert found.ignored == {"ConfigMap": 2, "Service": 1}


def test_fields_of_other_versions_are_no_fault() -> None:
    node = {**NODE, "spec": {"aFieldOfNextYear": 1}}
    assert len(snapshot_of([node]).objects) == 1


@pytest.mark.parametrize(
    "text, message",
    [
        pytest.param("", "f: there is nothing in it", id="empty"),
        pytest.param("[", "f, document 1, line 1: not YAML: ", id="no YAML"),
        pytest.param(
            "a: b",
            "f: document 1: must be a Kubernetes object with apiVersion and kind",
            id="a map",
        ),
        pytest.param('{"nodes": 1}', "f: nodes: must be a list", id="no list"),
        pytest.param(
            '{"nodes": [], "schedulerConfig": 1}',
            "f: schedulerConfig: must be an object",
            id="conf",
        ),
        pytest.param(
            '{"kind": "List", "items": {"a": 1}}',
            "f: document 1.items: must be a Kubernetes object with apiVersion and kind",
            id="items that are no list",
        ),
        pytest.param(
            json.dumps({"nodes": [BARE_NODE, BARE_NODE]}),
            "f: nodes[1]: Node n1 is there twice",
            id="twice",
        ),
        pytest.param(
            json.dumps({"nodes": [{**BARE_NODE, "status": {"allocatable": {"cpu": "much"}}}]}),
            'f: nodes[0]: Node n1: status.allocatable[cpu]: Invalid value: "much": not a quantity',
            id="a faulty field",
        ),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidSnapshot) as raised:
        parse_snapshot(text, "f")
    assert str(raised.value).startswith(message)


def test_all_faults_are_listed_but_not_hundreds() -> None:
    with pytest.raises(InvalidSnapshot) as raised:
        snapshot_of([{"a": 1}] * 25, "f")
    lines = str(raised.value).splitlines()
    text = "must be a Kubernetes object with apiVersion and kind"
    assert lines[0] == f"f: object 1: {text}"
    assert lines[-2:] == [f"f: object 20: {text}", "and 5 more"]


@pytest.mark.parametrize(
    "data, message",
    [
        pytest.param(None, "{path} cannot be read: No such file or directory", id="no file"),
        pytest.param(b"\xff\xfe", "{path}: not UTF-8 text (byte 0)", id="no text"),
        pytest.param(b"\x1f\x8b\x08abc", "{path}: damaged gzip data: ", id="damaged"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, data: bytes | None, message: str) -> None:
    path = tmp_path / "f.json"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(InvalidSnapshot) as raised:
        load_snapshot(path)
    assert str(raised.value).startswith(message.format(path=path))


def test_of_kind_of_nothing() -> None:
    assert SnapshotFile(()).of_kind(Node) == ()
    assert snapshot_of([make_namespace("a").raw()]).of_kind(Node) == ()
