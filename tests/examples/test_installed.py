"""The example plugins installed beside the scheduler, and used by name alone."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.traces.conftest import NODES as TRACE_NODES
from tests.traces.conftest import PODS as TRACE_PODS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "examples" / "plugins"
PLUGINS = ("BlinkingLights", "KeepServicesTogether", "PreferNodeLabel")
HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def run(
    *command: str, folder: Path, path: Path | None = None, fails: bool = False
) -> subprocess.CompletedProcess[str]:
    """A command in a shell that knows neither this checkout nor a network."""
    environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    environment |= {"HOME": str(folder), "KUBESCHED_DATA_DIR": str(folder / "data")}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode != 0) is fails, f"{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the package is installed into. Built without network and without isolation:
    the build backend is among the packages of the development environment."""
    folder = tmp_path_factory.mktemp("installed")
    source, target = folder / "source", folder / "site"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__"))
    uv = Path(sys.executable).with_name("uv")
    common = ["--no-build-isolation", "--no-deps", "--target", str(target), str(source)]
    if uv.exists():
        run(
            str(uv),
            "pip",
            "install",
            "--offline",
            "--python",
            sys.executable,
            *common,
            folder=folder,
        )
    else:
        run(sys.executable, "-m", "pip", "install", "--no-index", *common, folder=folder)
    return target


def manage(folder: Path, path: Path | None, *arguments: str, fails: bool = False) -> str:
    done = run(
        sys.executable, str(ROOT / "manage.py"), *arguments, folder=folder, path=path, fails=fails
    )
    return done.stderr if fails else done.stdout


def configuration(folder: Path, *enabled: dict[str, Any], **args: dict[str, Any]) -> str:
    path = folder / "config.yaml"
    profile = {
        "plugins": {"multiPoint": {"enabled": list(enabled)}},
        "pluginConfig": [{"name": name, "args": given} for name, given in args.items()],
    }
    path.write_text(yaml.safe_dump({**HEAD, "profiles": [profile]}))
    return str(path)


def test_the_package_holds_every_example_and_offers_each_by_its_name(installed: Path) -> None:
    modules = {path.name for path in (installed / "kubesched_example_plugins").glob("*.py")}
    assert modules == {path.name for path in PACKAGE.glob("*.py")}
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))
    offered = project["project"]["entry-points"]["kubesched.plugins"]
    assert sorted(offered) == sorted(PLUGINS)
    for name, value in offered.items():
        assert value.endswith(f":{name}")


def test_check_config_knows_them(installed: Path, tmp_path: Path) -> None:
    config = configuration(
        tmp_path,
        {"name": "BlinkingLights", "weight": 2},
        {"name": "PreferNodeLabel"},
        {"name": "KeepServicesTogether"},
        PreferNodeLabel={"label": "disk"},
        KeepServicesTogether={"label": "zone"},
    )
    completed = yaml.safe_load(manage(tmp_path, installed, "check_config", config))
    names = [p["name"] for p in completed["profiles"][0]["plugins"]["multiPoint"]["enabled"]]
    assert set(PLUGINS) <= set(names)


def test_without_the_package_they_are_unknown(tmp_path: Path) -> None:
    config = configuration(tmp_path, {"name": "BlinkingLights"})
    said = manage(tmp_path, None, "check_config", config, fails=True)
    assert '"BlinkingLights" does not exist' in said


def test_bad_arguments_are_told_with_the_plugins_name(installed: Path, tmp_path: Path) -> None:
    config = configuration(tmp_path, {"name": "KeepServicesTogether"})
    said = manage(tmp_path, installed, "check_config", config, fails=True)
    expected = 'initializing plugin "KeepServicesTogether": label: Required value'
    assert expected in said


def placements(folder: Path, path: Path | None, *more: str) -> dict[str, str]:
    (folder / "nodes.csv").write_text(TRACE_NODES)
    (folder / "pods.csv").write_text(TRACE_PODS)
    trace = ("--nodes", "nodes.csv", "--pods", "pods.csv")
    said = manage(folder, path, "replay", *trace, "--output", "-", *more)
    return {
        row["pod"].removeprefix("default/"): row["node"]
        for row in csv.DictReader(said.splitlines())
    }


def test_replay_runs_them(installed: Path, tmp_path: Path) -> None:
    config = configuration(
        tmp_path,
        {"name": "BlinkingLights"},
        {"name": "PreferNodeLabel", "weight": 50},
        PreferNodeLabel={"label": "alibabacloud.com/gpu-card-model", "value": "T4"},
    )
    usual = placements(tmp_path, None)
    liked = placements(tmp_path, installed, "--config", config)
    assert (usual["a"], usual["b"]) == ("n0", "n1")
    assert (liked["a"], liked["b"]) == ("n2", "n2")


def test_capacity_runs_the_one_with_several_points(installed: Path, tmp_path: Path) -> None:
    """Two zones have room, but the service lives in one of them."""
    objects = [
        {
            "kind": "Node",
            "metadata": {"name": f"{zone}{i}", "labels": {"zone": zone}},
            "status": {"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "10"}},
        }
        for zone in "ab"
        for i in range(2)
    ]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "containers": [
                {"name": "c", "image": "web:v1", "resources": {"requests": {"cpu": "1"}}}
            ]
        },
    }
    running = {**pod, "metadata": {**pod["metadata"], "name": "old"}}
    running["spec"] = {**pod["spec"], "nodeName": "b1"}
    service = {"kind": "Service", "metadata": {"name": "s"}, "spec": {"selector": {"app": "web"}}}
    (tmp_path / "cluster.json").write_text(
        json.dumps({"kind": "List", "items": [*objects, running, service]})
    )
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(pod))
    config = configuration(
        tmp_path, {"name": "KeepServicesTogether"}, KeepServicesTogether={"label": "zone"}
    )
    command = ("capacity", "--pod", "pod.yaml", "--snapshot", "cluster.json", "--output", "json")
    without = json.loads(manage(tmp_path, None, *command))
    found = json.loads(manage(tmp_path, installed, *command, "--config", config))
    assert without["copies"] == 7
    assert found["nodes"] == {"b0": 2, "b1": 1}
    assert found["message"] == (
        "0/4 nodes are available: 2 Insufficient cpu, "
        "2 node(s) didn't have the zone of the other pods of the service."
    )
