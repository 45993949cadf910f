"""Stock kubectl works on a sandbox: `KUBECTL=/path/to/kubectl` runs the same with another one."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox_api.conftest import Served

NODE = """
apiVersion: v1
kind: Node
metadata: {name: n0, labels: {zone: a}}
status:
  capacity: {cpu: "4", memory: 8Gi, pods: "110"}
  allocatable: {cpu: "4", memory: 8Gi, pods: "110"}
  conditions: [{type: Ready, status: "True", reason: KubeletReady, message: ok}]
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
  - name: c
    image: registry.example/app:v1
    resources: {requests: {cpu: 100m, memory: 64Mi}}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: front}
spec:
  replicas: 2
  selector: {matchLabels: {app: front}}
  template:
    metadata: {labels: {app: front}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: c, image: registry.example/front}]
"""
BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
"""
SECONDS = 60


class Kubectl:
    """Runs one command after another in one sandbox."""

    def __init__(self, program: str, served: Served, folder: Path) -> None:
        self._start = [program, "--kubeconfig", str(served.kubeconfig)]
        self._start += ["--cache-dir", str(folder / "cache")]
        self._environment = {**os.environ, "HOME": str(folder)}

    def run(self, *arguments: str, given: str = "", editor: str = "") -> tuple[int, str]:
        """Exit code, and what was printed on both outputs."""
        environment = {**self._environment, "EDITOR": editor} if editor else self._environment
        done = subprocess.run(
            [*self._start, *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=environment,
        )
        return done.returncode, done.stdout + done.stderr

    def __call__(self, *arguments: str, given: str = "", editor: str = "") -> str:
        """What a command that succeeds prints."""
        code, text = self.run(*arguments, given=given, editor=editor)
        assert code == 0, f"kubectl {' '.join(arguments)}: {text}"
        return text

    @contextmanager
    def watching(self, *arguments: str) -> Iterator[Iterator[str]]:
        """The lines of a command that does not end by itself."""
        command = [*self._start, *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            yield iter(process.stdout.readline, "")
            process.terminate()

    def get(self, *arguments: str) -> Any:
        return json.loads(self("get", *arguments, "-o", "json"))


@pytest.fixture
def k(kubectl: str, bare: Served, tmp_path: Path) -> Kubectl:
    """On an API server alone; each test uses names of its own."""
    return Kubectl(kubectl, bare, tmp_path)


@pytest.fixture
def live(kubectl: str, lively: Served, tmp_path: Path) -> Kubectl:
    """On a sandbox in which pods are scheduled and run."""
    command = Kubectl(kubectl, lively, tmp_path)
    command("apply", "-f", "-", given=NODE)
    return command


def test_api_resources_are_listed(k: Kubectl) -> None:
    text = k("api-resources")
    for name in ("pods", "deployments", "podgroups", "poddisruptionbudgets", "leases"):
        assert name in text


def test_create_get_describe_and_delete_a_pod(k: Kubectl) -> None:
    assert "pod/web created" in k("create", "-f", "-", given=POD)
    code, text = k.run("create", "-f", "-", given=POD)
    assert code == 1
    assert 'pods "web" already exists' in text
    wide = k("get", "pods", "-o", "wide").splitlines()
    assert wide[0].split()[:4] == ["NAME", "READY", "STATUS", "RESTARTS"]
    assert "NOMINATED NODE" in wide[0]
    assert wide[1].split()[:4] == ["web", "0/1", "Pending", "0"]
    assert "image: registry.example/app:v1" in k("get", "pod", "web", "-o", "yaml")
    described = k("describe", "pod", "web")
    assert "QoS Class:" in described
    assert "Burstable" in described
    assert 'pod "web" deleted' in k("delete", "pod", "web")
    code, text = k.run("get", "pod", "web")
    assert code == 1
    assert 'pods "web" not found' in text


def test_a_manifest_with_a_misspelt_field_is_refused(k: Kubectl) -> None:
    code, text = k.run("create", "-f", "-", given=POD.replace("image:", "imagee:"))
    assert code == 1
    assert "unknown field" in text
    assert "imagee" in text


def test_apply_creates_changes_and_leaves_alone(k: Kubectl) -> None:
    given = DEPLOYMENT.replace("front", "applied")
    assert "created" in k("apply", "-f", "-", given=given)
    assert "unchanged" in k("apply", "-f", "-", given=given)
    assert "configured" in k("apply", "-f", "-", given=given.replace("replicas: 2", "replicas: 3"))
    assert k.get("deployment", "applied")["spec"]["replicas"] == 3


def test_server_side_apply_meets_other_managers(k: Kubectl) -> None:
    given = DEPLOYMENT.replace("front", "ssa")
    assert "serverside-applied" in k("apply", "--server-side", "-f", "-", given=given)
    k("scale", "deployment", "ssa", "--replicas=5")
    code, text = k.run("apply", "--server-side", "-f", "-", given=given)
    assert code == 1
    assert ".spec.replicas" in text
    k("apply", "--server-side", "--force-conflicts", "-f", "-", given=given)
    assert k.get("deployment", "ssa")["spec"]["replicas"] == 2


def test_patch_label_annotate_and_edit(k: Kubectl) -> None:
    k("create", "-f", "-", given=POD.replace("name: web", "name: changed"))
    k("label", "pod", "changed", "tier=front")
    k("label", "pod", "changed", "app-")
    k("annotate", "pod", "changed", "note=hello")
    k("patch", "pod", "changed", "-p", '{"metadata": {"labels": {"by": "strategic"}}}')
    k("patch", "pod", "changed", "--type=merge", "-p", '{"metadata": {"labels": {"m": "1"}}}')
    operation = '[{"op": "add", "path": "/metadata/labels/j", "value": "1"}]'
    k("patch", "pod", "changed", "--type=json", "-p", operation)
    k("edit", "pod", "changed", editor="sed -i s/note:.hello/note:\\ edited/")
    metadata = k.get("pod", "changed")["metadata"]
    assert metadata["labels"] == {"tier": "front", "by": "strategic", "m": "1", "j": "1"}
    assert metadata["annotations"] == {"note": "edited"}


def test_a_node_is_cordoned_and_tainted(k: Kubectl) -> None:
    k("create", "-f", "-", given=NODE.replace("n0", "n1"))
    k("taint", "node", "n1", "dedicated=db:NoSchedule")
    k("cordon", "n1")
    node = k.get("node", "n1")
    assert node["spec"]["unschedulable"] is True
    assert {"key": "dedicated", "value": "db", "effect": "NoSchedule"} in node["spec"]["taints"]
    assert "SchedulingDisabled" in k("get", "node", "n1")
    k("uncordon", "n1")
    k("taint", "node", "n1", "dedicated-")
    assert "dedicated" not in k("describe", "node", "n1")


def test_create_has_its_own_commands(k: Kubectl) -> None:
    """Newer kubectls send these in protobuf."""
    k("create", "namespace", "made")
    k("create", "configmap", "made", "--from-literal=a=b", "-n", "made")
    k("create", "priorityclass", "made", "--value=100")
    k("create", "deployment", "made", "--image=registry.example/x", "-n", "made")
    k("create", "job", "made", "--image=registry.example/x", "-n", "made", "--", "run", "it")
    k("create", "service", "clusterip", "made", "--tcp=80:8080", "-n", "made")
    job = k.get("job", "made", "-n", "made")
    assert job["spec"]["template"]["spec"]["containers"][0]["command"] == ["run", "it"]
    assert k.get("service", "made", "-n", "made")["spec"]["ports"][0]["targetPort"] == 8080
    assert k.get("configmap", "made", "-n", "made")["data"] == {"a": "b"}
    k("delete", "namespace", "made")
    assert k.run("get", "namespace", "made")[0] == 1


def test_a_disruption_budget_is_shown(k: Kubectl) -> None:
    k("apply", "-f", "-", given=BUDGET)
    columns = k("get", "pdb", "web").splitlines()[1].split()
    assert columns[:4] == ["web", "1", "N/A", "0"]


def test_who_may_do_what(k: Kubectl) -> None:
    assert k("auth", "can-i", "create", "pods").strip().endswith("yes")


def test_the_definition_of_pod_groups_is_established(k: Kubectl) -> None:
    definition = "crd/podgroups.scheduling.x-k8s.io"
    assert "condition met" in k("wait", "--for=condition=established", definition)


def test_a_wrong_token_is_refused(kubectl: str, bare: Served, tmp_path: Path) -> None:
    k = Kubectl(kubectl, bare, tmp_path)
    code, text = k.run("get", "pods", "--token=wrong")
    assert code == 1
    assert "must be logged in" in text or "Unauthorized" in text


def test_a_deployment_rolls_out_scales_and_drains(live: Kubectl) -> None:
    live("apply", "-f", "-", given=DEPLOYMENT)
    assert "successfully rolled out" in live("rollout", "status", "deployment", "front")
    live("wait", "--for=condition=available", "deployment/front", f"--timeout={SECONDS}s")
    live("scale", "deployment", "front", "--replicas=3")
    live("rollout", "status", "deployment", "front")
    assert len(live.get("pods", "-l", "app=front")["items"]) == 3
    assert "evict" in live("drain", "n0", "--force", "--ignore-daemonsets", f"--timeout={SECONDS}s")
    assert all(not pod["spec"].get("nodeName") for pod in live.get("pods")["items"])
    live("uncordon", "n0")
    live("rollout", "status", "deployment", "front")
    live("wait", "--for=condition=Ready", "pod", "-l", "app=front", f"--timeout={SECONDS}s")
    live("delete", "deployment", "front")


def test_a_watch_shows_what_comes(k: Kubectl) -> None:
    k("create", "configmap", "seen")
    with k.watching("get", "configmaps", "-w", "--no-headers") as lines:
        while not next(lines).startswith("seen"):
            pass  # the list is there
        k("create", "configmap", "watched")
        assert any(line.startswith("watched") for line in lines)
