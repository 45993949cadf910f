"""examples/framework_as_library.py, as a program and piece by piece."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from examples.framework_as_library import new_node, nodes_needed, place_what_fits, waiting_pods
from scheduler_core.library import framework_for
from scheduler_core.snapshot_file import snapshot_of
from scheduler_core.testing.builders import make_node, make_pod

ROOT = Path(__file__).parents[2]
NODES = [make_node("a").capacity(cpu="2"), make_node("b").capacity(cpu="2").label(disk="ssd")]
PODS = [
    make_pod("old").req(cpu="1500m").node("a"),
    *(make_pod(f"w{i}").req(cpu="900m") for i in range(5)),
    make_pod("big").req(cpu="3"),
    make_pod("picky").req(cpu="1").node_selector(disk="ssd"),
    make_pod("done").req(cpu="1").phase("Succeeded"),
]
SAID = """\
default/w2 fits on no node: Insufficient cpu
default/w3 fits on no node: Insufficient cpu
default/w4 fits on no node: Insufficient cpu
default/big fits on no node: Insufficient cpu
default/picky fits on no node: Insufficient cpu; node(s) didn't match Pod's node affinity/selector
default/big does not even fit on a new node: Insufficient cpu
default/picky does not even fit on a new node: node(s) didn't match Pod's node affinity/selector
7 pods wait, 2 of them fit as it is.
New nodes like a: 2, for 3 of the others.
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.json"
    items = [builder.raw() for builder in (*NODES, *PODS)]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


def example(*arguments: str, fails: bool = False) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "framework_as_library.py"), *arguments],
        cwd="/",
        env={},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode != 0) is fails, done.stderr
    return done.stderr if fails else done.stdout


def test_the_program(cluster: Path) -> None:
    """Started from anywhere, with nothing in the environment."""
    assert example(str(cluster), "--like", "a") == SAID


def test_nodes_of_another_shape_help_others(cluster: Path) -> None:
    said = example(str(cluster), "--like", "b")
    assert said.endswith("New nodes like b: 2, for 4 of the others.\n")


def test_another_configuration(cluster: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "profiles:\n"
        "  - plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}\n"
    )
    said = example(str(cluster), "--like", "a", "--config", str(config))
    assert said.endswith(
        "7 pods wait, 7 of them fit as it is.\nNew nodes like a: 0, for 0 of the others.\n"
    )


def test_a_node_that_is_not_there(cluster: Path) -> None:
    assert example(str(cluster), "--like", "c", fails=True) == "there is no node c\n"


def test_the_most_important_pods_come_first() -> None:
    pods = [make_pod("low"), make_pod("high").priority(5), make_pod("old").node("n")]
    found = waiting_pods(snapshot_of([pod.raw() for pod in pods]))
    assert [pod.name for pod in found] == ["high", "low"]


def test_a_new_node_is_empty_and_has_its_own_name() -> None:
    template = make_node("n").capacity(cpu="2").label(disk="ssd").obj()
    twin = new_node(template, 3)
    assert (twin.name, twin.labels["kubernetes.io/hostname"]) == ("new-3", "new-3")
    assert (template.name, twin.labels["disk"]) == ("n", "ssd")


def test_room_on_a_new_node_is_used_before_another_comes() -> None:
    cluster = framework_for([])
    template = make_node("n").capacity(cpu="2").obj()
    pods = [make_pod(f"p{i}").req(cpu="1").obj() for i in range(5)]
    assert nodes_needed(cluster, template, pods) == (3, {})
    assert place_what_fits(cluster, [make_pod("last").req(cpu="1").obj()]) == []
