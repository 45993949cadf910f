"""The manifests against the schemas of Kubernetes, and what they promise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import kubernetes_validate
import pytest

from tests.deploy.manifests import objects

OVERLAYS = ("base", "schedule", "observe")
VERSIONS = ("1.30", "1.36")


def name_of(obj: dict[str, Any]) -> str:
    return f"{obj['kind']} {obj['metadata']['name']}"


def every() -> Iterator[Any]:
    seen = set()
    for overlay in OVERLAYS:
        for obj in objects(overlay):
            if name_of(obj) not in seen:
                seen.add(name_of(obj))
                yield pytest.param(obj, id=name_of(obj))


def pod_specs() -> Iterator[Any]:
    for obj in objects("base"):
        if obj["kind"] in ("Deployment", "Job"):
            yield pytest.param(obj["spec"]["template"]["spec"], id=name_of(obj))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("obj", list(every()))
def test_an_object_is_as_its_schema_says(obj: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(obj, version, strict=True)


def test_a_fault_would_be_found() -> None:
    broken = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"port": 1}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, "1.36", strict=True)


@pytest.mark.parametrize("spec", list(pod_specs()))
def test_a_pod_is_locked_down(spec: dict[str, Any]) -> None:
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = spec["containers"]
    security = container["securityContext"]
    assert security["readOnlyRootFilesystem"] is True
    assert security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert "memory" in container["resources"]["limits"]
    # What is written goes to volumes in memory or of the pod.
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}
    assert set(mounts) == {"/run/kubesched", "/tmp"}
    assert all("emptyDir" in volume for volume in mounts.values())


def test_only_the_worker_has_a_token_of_the_cluster() -> None:
    found = {
        obj["metadata"]["name"]: obj["spec"]["template"]["spec"]["automountServiceAccountToken"]
        for obj in objects("base")
        if obj["kind"] in ("Deployment", "Job")
    }
    assert [name for name, token in found.items() if token] == ["kubesched-worker"]


def test_selectors_find_their_pods() -> None:
    every = objects("base")
    pods = [
        obj["spec"]["template"]["metadata"]["labels"]
        for obj in every
        if obj["kind"] in ("Deployment", "Job")
    ]
    for obj in every:
        selectors = {
            "Service": lambda spec: spec["selector"],
            "PodDisruptionBudget": lambda spec: spec["selector"]["matchLabels"],
            "NetworkPolicy": lambda spec: spec["podSelector"].get("matchLabels", {}),
        }
        if obj["kind"] in selectors:
            wanted = selectors[obj["kind"]](obj["spec"])
            assert any(wanted.items() <= labels.items() for labels in pods), name_of(obj)


def test_every_deployment_is_probed_at_a_port_that_it_has() -> None:
    for obj in objects("base"):
        if obj["kind"] != "Deployment":
            continue
        (container,) = obj["spec"]["template"]["spec"]["containers"]
        ports = {port["name"] for port in container["ports"]}
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"]["port"] in ports, name_of(obj)


def test_beat_runs_once() -> None:
    (beat,) = [o for o in objects("base") if name_of(o) == "Deployment kubesched-beat"]
    assert beat["spec"]["replicas"] == 1
    assert beat["spec"]["strategy"] == {"type": "Recreate"}
    others = [o for o in objects("base") if o["kind"] == "Deployment" and o != beat]
    assert not any("beat" in o["spec"]["template"]["spec"]["containers"][0]["args"] for o in others)


def test_no_secret_is_in_a_manifest() -> None:
    for overlay in OVERLAYS:
        for obj in objects(overlay):
            assert obj["kind"] != "Secret"
            assert not {"SECRET_KEY", "DATABASE_URL"} & set(obj.get("data", {}))
