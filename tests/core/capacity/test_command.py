"""manage.py capacity as a person types it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from dashboard import hosted
from dashboard.models import Cluster, Sandbox
from dashboard.runtime_dir import private_dir
from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.remote import SandboxServer
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.testing.builders import make_node, make_pod

ROOT = Path(__file__).parents[3]
NODES = [make_node("a").capacity(cpu="1"), make_node("b").capacity(cpu="3")]
BOUND = make_pod("old").req(cpu="500m").node("b")
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - {name: c, image: web:v1, resources: {requests: {cpu: 700m}}}
"""
REPORT = """\
pod         default/web
copies      4
nodes       2 of 2
  a  1
  b  3
stopped by  0/2 nodes are available: 2 Insufficient cpu.
"""


def snapshot(**more: Any) -> str:
    nodes = [node.raw() for node in NODES]
    return json.dumps({"nodes": nodes, "pods": [BOUND.raw()], **more})


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "pod.yaml").write_text(POD)
    (tmp_path / "cluster.json").write_text(snapshot())
    return tmp_path


def run(folder: Path, *more: str, pod: str = "pod.yaml", cluster: str = "cluster.json") -> str:
    where = () if "--sandbox" in more else ("--snapshot", str(folder / cluster))
    out = io.StringIO()
    call_command("capacity", "--pod", str(folder / pod), *where, *more, stdout=out)
    return out.getvalue()


def refusal(*arguments: Any, **options: Any) -> str:
    with pytest.raises(CommandError) as raised:
        run(*arguments, **options)
    return str(raised.value)


def environment(folder: Path, **more: str) -> dict[str, str]:
    """A newcomer's: no settings, no database, no broker."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**kept, "HOME": str(folder), "KUBESCHED_DATA_DIR": str(folder / "data"), **more}


def manage(folder: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "capacity", *arguments],
        cwd=folder,
        env=environment(folder),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_report(files: Path) -> None:
    assert run(files) == REPORT


def test_json(files: Path) -> None:
    assert json.loads(run(files, "--output", "json")) == {
        "pod": "default/web",
        "copies": 4,
        "nodes": {"a": 1, "b": 3},
        "nodesTotal": 2,
        "stoppedBy": "Unschedulable",
        "message": "0/2 nodes are available: 2 Insufficient cpu.",
        "reasons": {"Insufficient cpu": 2},
        "plugins": ["NodeResourcesFit"],
    }


def test_the_limit(files: Path) -> None:
    said = run(files, "--max", "2")
    assert "copies      at least 2\n" in said
    assert said.endswith("stopped by  --max\n")


def test_a_configuration_changes_the_answer(files: Path) -> None:
    config = files / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "profiles:\n"
        "  - plugins: {filter: {disabled: [{name: NodeResourcesFit}]}}\n"
    )
    assert "at least 50" in run(files, "--config", str(config), "--max", "50")


class TestTheConfigurationInASnapshot:
    unlimited = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"filter": {"disabled": [{"name": "NodeResourcesFit"}]}}}],
    }

    def test_counts(self, files: Path) -> None:
        (files / "cluster.json").write_text(snapshot(schedulerConfig=self.unlimited))
        assert "at least 50" in run(files, "--max", "50")

    def test_calls_nobody(self, files: Path) -> None:
        nowhere = {"urlPrefix": "http://127.0.0.1:1/", "filterVerb": "filter"}
        config = {**self.unlimited, "extenders": [nowhere]}
        (files / "cluster.json").write_text(snapshot(schedulerConfig=config))
        assert "at least 50" in run(files, "--max", "50")

    def test_imports_nothing(self, files: Path) -> None:
        path = "examples.plugins.blinking_lights:BlinkingLights"
        config = {
            **self.unlimited,
            "profiles": [{"plugins": {"score": {"enabled": [{"name": path}]}}}],
        }
        (files / "cluster.json").write_text(snapshot(schedulerConfig=config))
        said = refusal(files)
        assert "a dotted path is not allowed here" in said
        assert said.endswith("--config takes another configuration")


def test_without_database_broker_or_settings(files: Path) -> None:
    """And the pod comes through a pipe."""
    done = manage(files, "--pod", "-", "--snapshot", "cluster.json", stdin=POD)
    assert (done.returncode, done.stdout, done.stderr) == (0, REPORT, "")
    assert not list(files.rglob("*.sqlite3"))


@pytest.mark.parametrize(
    "pod, text",
    [
        pytest.param(None, "cannot be read: No such file or directory", id="no file"),
        pytest.param(POD + "---" + POD, "one pod is wanted, there are 2 objects", id="two pods"),
        pytest.param(
            POD.replace("700m", "much"),
            "pod.yaml, document 1, line 7: Pod web: spec.containers[0].resources."
            'requests[cpu]: Invalid value: "much"',
            id="a faulty field",
        ),
        pytest.param(
            POD.replace("containers:", "contaners:"), 'unknown field "spec.contaners"', id="typo"
        ),
        pytest.param(
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}",
            "a Pod is wanted, not a Namespace",
            id="another kind",
        ),
        pytest.param(
            POD.replace("spec:", "spec:\n  schedulerName: mine"),
            'the configuration has no profile "mine" (it has: default-scheduler)',
            id="another scheduler's",
        ),
    ],
)
def test_pods_that_are_refused(files: Path, pod: str | None, text: str) -> None:
    if pod is None:
        (files / "pod.yaml").unlink()
    else:
        (files / "pod.yaml").write_text(pod)
    assert text in refusal(files)


def test_a_snapshot_that_is_refused(files: Path) -> None:
    (files / "cluster.json").write_text('{"nodes": [{}]}')
    assert "cluster.json: nodes[0]: " in refusal(files)


def test_standard_input_is_read_once(files: Path) -> None:
    with pytest.raises(CommandError, match="only one of --pod and --snapshot"):
        call_command("capacity", "--pod", "-", "--snapshot", "-")


@pytest.mark.parametrize("count", ["0", "-1", "many"])
def test_limits_that_are_none(files: Path, count: str) -> None:
    assert "is not a whole number above 0" in refusal(files, "--max", count)


def test_what_the_documentation_shows() -> None:
    document = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    shown = document.split("```text\n")[1].split("```")[0]
    assert run(ROOT / "examples" / "capacity", cluster="cluster.yaml") == shown


class TestSandbox:
    @pytest.fixture
    def sandbox(self, db: None, settings: Any, tmp_path: Path) -> Iterator[SandboxCluster]:
        settings.KUBESCHED_RUNTIME_DIR = private_dir(tmp_path / "run")
        cluster = Cluster.objects.create(name="test")
        Sandbox.objects.create(cluster=cluster)
        with SandboxCluster(VirtualClock(1_000.0)) as live:
            server = SandboxServer(live, hosted.socket_path(cluster.pk))
            yield live
            server.close()

    def test_a_running_sandbox(self, sandbox: SandboxCluster, files: Path) -> None:
        for builder in (*NODES, BOUND):
            sandbox.create(builder.kind, builder.raw())
        assert run(files, "--sandbox", "test") == REPORT
        assert len(sandbox.list("Pod").items) == 1, "nothing is created"

    def test_a_name_that_is_not_there(self, sandbox: SandboxCluster, files: Path) -> None:
        said = refusal(files, "--sandbox", "other")
        assert said == 'there is no sandbox named "other". There are: test.'

    def test_one_that_does_not_run(self, db: None, settings: Any, files: Path) -> None:
        settings.KUBESCHED_RUNTIME_DIR = private_dir(files / "run")
        Sandbox.objects.create(cluster=Cluster.objects.create(name="test"))
        assert 'the sandbox "test" is not running.' in refusal(files, "--sandbox", "test")

    def test_no_database(self, files: Path) -> None:
        done = manage(files, "--pod", "pod.yaml", "--sandbox", "demo")
        assert done.returncode == 1
        assert "Has `make demo` or `manage.py migrate` been run?" in done.stderr
        assert "Traceback" not in done.stderr
