"""A server that is not ours, made clean for each test."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from scheduler_core.kube.access import KubeconfigFile
from scheduler_core.kube.cluster import KubeCluster
from scheduler_core.kube.connect import connect
from scheduler_core.ports import ApiError, Cluster, NotFound
from tests.contract.support import TestClock, eventually

#: in the order in which they go
_KINDS: Final = ("Pod", "PodGroup", "Event", "Node", "PriorityClass")
_GROUP: Final = "scheduling.x-k8s.io"


@contextmanager
def open_real_cluster(kubeconfig: str, clock: TestClock) -> Iterator[KubeCluster]:
    with KubeCluster(connect(KubeconfigFile(kubeconfig)), qps=-1, clock=clock) as cluster:
        _install_pod_groups(cluster)
        _clean(cluster)
        clock.start = clock.now()  # cleaning may have taken its time
        yield cluster
        _clean(cluster)


def has_controllers(cluster: Cluster) -> bool:
    """Whether a kube-controller-manager has ever led here."""
    assert isinstance(cluster, KubeCluster)
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    try:
        cluster._api.get(f"{leases}/kube-controller-manager")
    except NotFound:
        return False
    return True


def _clean(cluster: KubeCluster) -> None:
    for kind in _KINDS:
        for obj in cluster.list(kind).items:
            metadata = obj["metadata"]
            name, namespace = metadata["name"], metadata.get("namespace", "")
            if name.startswith("system-"):
                continue  # the two priority classes that every server makes
            with contextlib.suppress(NotFound):
                if metadata.get("finalizers"):
                    cluster.patch(kind, namespace, name, {"metadata": {"finalizers": None}})
                cluster.delete(kind, namespace, name, grace_period_seconds=0)
    _delete_namespace(cluster, "team")


def _delete_namespace(cluster: KubeCluster, name: str) -> None:
    """Also where no controller does it."""
    try:
        cluster.delete("Namespace", "", name)
        found = cluster.get("Namespace", "", name)
        body: dict[str, Any] = {**found, "spec": {"finalizers": []}}
        cluster._api.call("PUT", f"/api/v1/namespaces/{name}/finalize", body=body)
    except ApiError as refusal:
        if refusal.code not in (404, 409):
            raise
    eventually(lambda: all(n["metadata"]["name"] != name for n in cluster.list("Namespace").items))


def _install_pod_groups(cluster: KubeCluster) -> None:
    """The CustomResourceDefinition of coscheduling, as much of it as the suite needs."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    with contextlib.suppress(NotFound):
        cluster._api.get(f"{path}/podgroups.{_GROUP}")
        return
    member = {"type": "integer", "format": "int32", "minimum": 1}
    spec = {"type": "object", "properties": {"minMember": member}}
    schema = {"type": "object", "properties": {"spec": spec, "status": _anything()}}
    cluster._api.call(
        "POST",
        path,
        body={
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": f"podgroups.{_GROUP}",
                # Groups that end in k8s.io are the project's own.
                "annotations": {"api-approved.kubernetes.io": "unapproved, of a test"},
            },
            "spec": {
                "group": _GROUP,
                "scope": "Namespaced",
                "names": {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup"},
                "versions": [
                    {
                        "name": "v1alpha1",
                        "served": True,
                        "storage": True,
                        "subresources": {"status": {}},
                        "schema": {"openAPIV3Schema": schema},
                    }
                ],
            },
        },
    )
    eventually(lambda: _is_served(cluster))


def _is_served(cluster: KubeCluster) -> bool:
    try:
        cluster.list("PodGroup")
    except ApiError:
        return False
    return True


def _anything() -> dict[str, Any]:
    return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
