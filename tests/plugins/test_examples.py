"""The example plugins, the example configurations, and every word of docs/plugins.md that runs."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from examples.plugins.blinking_lights import LIGHTS, BlinkingLights
from examples.plugins.prefer_node_label import PreferNodeLabel
from scheduler_core.api import Node
from scheduler_core.config import load_configuration_file
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.errors import PluginConfigError
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.testing.builders import NodeBuilder, make_node, make_pod
from tests.plugins.support import FakeHandle, score_both

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.yaml"))
DOCUMENT = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
POD = make_pod("p").obj()


class TestBlinkingLights:
    @pytest.mark.parametrize(
        "node, lights",
        [
            pytest.param(make_node("n"), 0, id="dark"),
            pytest.param(make_node("n").label({LIGHTS: "7"}), 7, id="label"),
            pytest.param(make_node("n").annotation({LIGHTS: "5"}), 5, id="annotation"),
            pytest.param(
                make_node("n").label({LIGHTS: "7"}).annotation({LIGHTS: "5"}), 7, id="label-first"
            ),
            pytest.param(make_node("n").label({LIGHTS: "many"}), 0, id="no-number"),
            pytest.param(make_node("n").annotation({LIGHTS: "-3"}), 0, id="negative"),
            pytest.param(make_node("n").annotation({LIGHTS: "٣"}), 0, id="another-script"),
        ],
    )
    def test_score(self, node: NodeBuilder, lights: int) -> None:
        handle = FakeHandle([node.obj()])
        assert score_both(BlinkingLights({}, handle), POD, handle.nodes) == [lights]

    def test_normalize(self) -> None:
        handle = FakeHandle([make_node(f"n{i}").label({LIGHTS: str(i)}).obj() for i in range(4)])
        plugin, state = BlinkingLights({}, handle), CycleState()
        raw = plugin.score_nodes(state, POD, handle.nodes)
        assert plugin.normalize_score(state, POD, handle.nodes, raw).tolist() == [0, 33, 66, 100]


class TestPreferNodeLabel:
    nodes: tuple[Node, ...] = (
        make_node("ssd").label(disk="ssd").obj(),
        make_node("hdd").label(disk="hdd").obj(),
        make_node("none").obj(),
    )

    @pytest.mark.parametrize(
        "args, expected",
        [
            pytest.param({"label": "disk", "value": "ssd"}, [100, 0, 0], id="one-value"),
            pytest.param({"label": "disk"}, [100, 100, 0], id="any-value"),
            pytest.param({"label": "unknown"}, [0, 0, 0], id="nobody-has-it"),
        ],
    )
    def test_score(self, args: dict[str, str], expected: list[int]) -> None:
        handle = FakeHandle(self.nodes)
        assert score_both(PreferNodeLabel(args, handle), POD, handle.nodes) == expected

    @pytest.mark.parametrize(
        "args, message",
        [
            pytest.param({}, "label: Required value: the name of a node label", id="missing"),
            pytest.param({"label": 3}, "label: Invalid value: 3: must be a string", id="type"),
            pytest.param(
                {"label": "a", "colour": "b"}, "colour: there is no such argument", id="unknown"
            ),
        ],
    )
    def test_bad_arguments(self, args: dict[str, Any], message: str) -> None:
        with pytest.raises(PluginConfigError) as raised:
            PreferNodeLabel(args, FakeHandle())
        assert str(raised.value) == message


class TestConfigurations:
    @pytest.mark.parametrize("name", EXAMPLES)
    def test_each_loads(self, name: str) -> None:
        path = ROOT / "examples" / name
        written = yaml.safe_load(path.read_text()).get("profiles") or [{}]
        config = load_configuration_file(path, in_tree_registry())
        assert [profile.scheduler_name for profile in config.profiles] == [
            profile.get("schedulerName", "default-scheduler") for profile in written
        ]

    def test_the_demo(self) -> None:
        config = load_configuration_file(ROOT / "examples" / "demo.yaml", in_tree_registry())
        points = {
            point: [ref.name for ref in refs] for point, refs in config.profiles[0].plugins.items()
        }
        assert points["queueSort"] == ["Coscheduling"]
        assert points["permit"] == ["Coscheduling", "ManualApproval"]
        for point in ("preFilter", "postFilter", "reserve"):
            assert "Coscheduling" in points[point]
        assert config.profiles[0].plugin_args["ManualApproval"]["timeoutSeconds"] == 900


def blocks() -> Iterator[tuple[str, str, str]]:
    """(language, title, text) of every code block of the documentation."""
    pattern = r'^```(\w+)(?: title="([^"]*)")?\n(.*?)^```$'
    for found in re.finditer(pattern, DOCUMENT, re.DOTALL | re.MULTILINE):
        yield found[1], found[2] or "", found[3]


def block_params(kind: str, *, titled: bool) -> list[Any]:
    found = [(title, text) for k, title, text in blocks() if k == kind and bool(title) is titled]
    assert found, f"there is no {kind} block"
    return [pytest.param(*item, id=item[0] or f"{kind}-{i}") for i, item in enumerate(found)]


@pytest.mark.parametrize(
    "title, text",
    [param for kind in ("python", "yaml", "toml") for param in block_params(kind, titled=True)],
)
def test_files_are_documented_as_they_are(title: str, text: str) -> None:
    assert (ROOT / title).read_text(encoding="utf-8") == text


@pytest.mark.parametrize("title, text", block_params("python", titled=False))
def test_documented_code_runs(title: str, text: str) -> None:
    exec(compile(text, "docs/plugins.md", "exec"), {})  # noqa: S102


NODES = """sn,cpu_milli,memory_mib,gpu,model
a-plain,32000,262144,0,
b-other,32000,262144,2,G2
c-wanted,32000,262144,2,T4
"""
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,\
deletion_time,scheduled_time
first,4000,8192,0,0,,LS,Running,0,,0
second,4000,8192,1,1000,,LS,Running,5,,5
"""


def test_documented_commands_run_and_the_examples_change_placements(tmp_path: Path) -> None:
    (tmp_path / "openb_nodes.csv").write_text(NODES)
    (tmp_path / "openb_pods_default.csv").write_text(PODS)
    for kind, _, text in blocks():
        if kind == "sh":
            run(text, tmp_path)
    assert placements(tmp_path / "default.csv") == {"first": "a-plain", "second": "b-other"}
    assert placements(tmp_path / "examples.csv") == {"first": "c-wanted", "second": "c-wanted"}


def run(commands: str, trace: Path) -> None:
    for line in commands.strip().splitlines():
        command = line.replace("$TRACE", str(trace)).split()
        assert command[:2] == [".venv/bin/python", "manage.py"]
        done = subprocess.run(
            [sys.executable, *command[1:]],
            cwd=ROOT,
            env={**os.environ, "KUBESCHED_DATA_DIR": str(trace)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


def placements(path: Path) -> dict[str, str]:
    with path.open(newline="") as lines:
        rows = csv.DictReader(lines)
        return {row["pod"].removeprefix("default/"): row["node"] for row in rows}


def test_links_lead_somewhere() -> None:
    written_elsewhere = {"traces.md"}  # documentation of replays has an owner of its own
    for target in re.findall(r"\]\(([^)#]+)\)", DOCUMENT):
        if target not in written_elsewhere:
            assert (ROOT / "docs" / target).exists(), target
