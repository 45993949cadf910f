"""The image's Dockerfile is linted, and copies what there is; the compose file hangs together."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboard.observe.services import CONFIGS
from dashboard.sandboxes import DEFAULT_CONFIG
from kubesched_site.environment import MODES
from tests.deploy.manifests import DEPLOY, objects

ROOT = DEPLOY.parent
DOCKERFILE = DEPLOY / "Dockerfile"


def test_the_dockerfile_is_linted() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run(
        [hadolint, "--failure-threshold", "style", str(DOCKERFILE)], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")


def instructions(name: str) -> list[str]:
    text = DOCKERFILE.read_text().replace("\\\n", " ")
    return re.findall(rf"^{name} (.*)$", text, re.MULTILINE)


def test_what_is_copied_is_there_and_not_ignored() -> None:
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    kept = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    for line in instructions("COPY"):
        if line.startswith("--from"):
            continue
        *sources, _ = line.split()
        for source in sources:
            assert (ROOT / source).exists(), source
            assert source in kept, source


@pytest.mark.parametrize("name", [*CONFIGS.values(), DEFAULT_CONFIG])
def test_what_a_new_run_begins_with_is_copied(name: str) -> None:
    copied = {source for line in instructions("COPY") for source in line.split()}
    assert (ROOT / name).is_file()
    assert name.partition("/")[0] in copied


def test_it_runs_as_nobody_and_from_locked_packages() -> None:
    assert instructions("USER") == ["10001:10001"]
    assert "--require-hashes" in instructions("RUN")[0]
    assert len(instructions("FROM")) == 2


def test_every_package_that_is_imported_is_copied() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = set(project["tool"]["importlinter"]["root_packages"])
    copied = {source for line in instructions("COPY") for source in line.split()}
    assert packages <= copied


def test_its_variables_are_read_by_somebody() -> None:
    settings = (ROOT / "kubesched_site" / "settings.py").read_text()
    (environment,) = instructions("ENV")
    names = re.findall(r"([A-Z_]+)=", environment)
    ours = [name for name in names if name.startswith("KUBESCHED_")]
    assert len(ours) == 4
    assert all(f'"{name}"' in settings for name in ours)
    assert "production" in MODES  # what the image runs in, as it says nothing else


# -- compose ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return loaded


OURS = ("migrate", "web", "worker", "beat")


@pytest.mark.parametrize("name", OURS)
def test_a_service_of_ours_is_locked_down(compose: dict[str, Any], name: str) -> None:
    service = compose["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "/tmp" in service["tmpfs"]
    assert service["build"]["dockerfile"] == "deploy/Dockerfile"


def test_parts_run_once_each(compose: dict[str, Any]) -> None:
    commands = [compose["services"][name]["command"] for name in OURS[1:]]
    parts = [
        argument
        for command in commands
        for before, argument in itertools.pairwise(command)
        if before == "--only"
    ]
    assert sorted(parts) == ["beat", "default", "loop", "web"]


def test_web_and_worker_meet_in_one_folder(compose: dict[str, Any]) -> None:
    mount = "run:/run/kubesched"
    assert mount in compose["services"]["web"]["volumes"]
    assert mount in compose["services"]["worker"]["volumes"]


def test_what_is_listened_on_is_published_to_this_machine_alone(compose: dict[str, Any]) -> None:
    worker = compose["services"]["worker"]
    listened = [v.rpartition(":")[2] for k, v in worker["environment"].items() if "LISTEN" in k]
    assert sorted(worker["ports"]) == sorted(f"127.0.0.1:{port}:{port}" for port in listened)


def test_the_folder_of_sockets_is_made_below_a_volume_that_may_be_roots() -> None:
    # An emptyDir is root's and its group's; sockets need a folder of the user's own.
    (environment,) = instructions("ENV")
    (folder,) = re.findall(r"KUBESCHED_RUNTIME_DIR=(\S+)", environment)
    mounts = {
        mount["mountPath"]
        for obj in objects("base")
        if obj["kind"] == "Deployment"
        for mount in obj["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    }
    assert folder not in mounts
    assert str(Path(folder).parent) in mounts


def test_what_has_to_be_filled_in_is_in_the_example(compose: dict[str, Any]) -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    needed = set(re.findall(r"\$\{([A-Z_]+):\?", text))
    example = (DEPLOY / "compose.env.example").read_text()
    assert needed == {"SECRET_KEY", "POSTGRES_PASSWORD"}
    assert all(re.search(rf"^{name}=", example, re.MULTILINE) for name in needed)


def test_services_wait_for_services_that_are_there(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        assert set(service.get("depends_on", ())) <= set(compose["services"])
