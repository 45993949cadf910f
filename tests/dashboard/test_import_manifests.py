"""manage.py import_manifests: all objects or none, and words that say what is wrong where."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from dashboard import hosted
from dashboard.models import Cluster, Sandbox
from dashboard.runtime_dir import private_dir
from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.remote import SandboxServer
from scheduler_core.cluster.sandbox import SandboxCluster

pytestmark = pytest.mark.django_db(transaction=True)

GOOD = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {capacity: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec: {containers: [{name: c, image: web:v1}]}
"""

BAD = (
    GOOD
    + """---
apiVersion: v1
kind: Pod
metadata: {name: worse}
spec:
  containers:
    - name: c
      image: worse:v1
      resources: {requests: {cpu: "1e3Mi"}}
"""
)


@pytest.fixture
def sandbox(settings: object, tmp_path: Path) -> Iterator[SandboxCluster]:
    settings.KUBESCHED_RUNTIME_DIR = private_dir(tmp_path / "run")  # type: ignore[attr-defined]
    cluster = Cluster.objects.create(name="test")
    Sandbox.objects.create(cluster=cluster)
    with SandboxCluster(VirtualClock(1_000.0)) as live:
        server = SandboxServer(live, hosted.socket_path(cluster.pk))
        yield live
        server.close()


def run(tmp_path: Path, text: str, *more: str) -> str:
    file = tmp_path / "objects.yaml"
    file.write_text(text)
    out = StringIO()
    call_command("import_manifests", str(file), "--sandbox", "test", *more, stdout=out)
    return out.getvalue()


def test_objects_are_created(sandbox: SandboxCluster, tmp_path: Path) -> None:
    assert run(tmp_path, GOOD) == "1 Node, 1 Pod created in the sandbox test.\n"
    assert sandbox.get("Pod", "default", "web")["spec"]["containers"][0]["image"] == "web:v1"


OWNED = """
apiVersion: v1
kind: Pod
metadata:
  name: owned
  ownerReferences:
    - {apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: of-another-cluster}
spec: {containers: [{name: c, image: web:v1}]}
"""


def test_owners_of_another_cluster_are_not_taken_over(
    sandbox: SandboxCluster, tmp_path: Path
) -> None:
    run(tmp_path, OWNED)
    assert "ownerReferences" not in sandbox.get("Pod", "default", "owned")["metadata"]


def test_a_dry_run_creates_nothing(sandbox: SandboxCluster, tmp_path: Path) -> None:
    assert "no fault found" in run(tmp_path, GOOD, "--dry-run")
    assert sandbox.list("Pod").items == []


def test_one_fault_refuses_the_whole_file(sandbox: SandboxCluster, tmp_path: Path) -> None:
    with pytest.raises(CommandError) as caught:
        run(tmp_path, BAD)
    assert "objects.yaml, document 3, line " in str(caught.value)
    assert "spec.containers[0].resources.requests[cpu]" in str(caught.value)
    assert "1e3Mi" in str(caught.value)
    assert sandbox.list("Node").items == []


def test_an_object_that_is_there_already_leaves_nothing_half_done(
    sandbox: SandboxCluster, tmp_path: Path
) -> None:
    run(tmp_path, GOOD)
    sandbox.delete("Node", "", "n1")
    with pytest.raises(CommandError, match='nothing was created: pods "web" already exists'):
        run(tmp_path, GOOD)
    assert sandbox.list("Node").items == []


def test_a_sandbox_that_does_not_run_is_said(tmp_path: Path, settings: object) -> None:
    settings.KUBESCHED_RUNTIME_DIR = private_dir(tmp_path / "run")  # type: ignore[attr-defined]
    Sandbox.objects.create(cluster=Cluster.objects.create(name="test"))
    with pytest.raises(CommandError, match='the sandbox "test" is not running'):
        run(tmp_path, GOOD)


def test_an_unknown_sandbox_is_said(tmp_path: Path) -> None:
    Sandbox.objects.create(cluster=Cluster.objects.create(name="other"))
    with pytest.raises(CommandError, match=r'no sandbox named "test"\. There are: other\.'):
        run(tmp_path, GOOD)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"nowhere.yaml: No such file or directory"):
        call_command("import_manifests", str(tmp_path / "nowhere.yaml"), "--sandbox", "test")
