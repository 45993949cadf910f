"""A server that is not ours: made ready for the suite once, and left as it was found."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from scheduler_core.kube.access import KubeconfigFile
from scheduler_core.kube.cluster import KubeCluster
from scheduler_core.kube.connect import connect
from scheduler_core.kube.transport import MERGE_PATCH
from scheduler_core.ports import AlreadyExists, ApiError, Json, NotFound
from tests.contract.apart import ROOT, Apart
from tests.contract.support import TestClock, WaitingClock, eventually

_GROUP: Final = "scheduling.x-k8s.io"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_DEFINITION: Final = f"{_DEFINITIONS}/podgroups.{_GROUP}"
_APPROVAL: Final = "api-approved.kubernetes.io"
#: Groups that end in k8s.io are the project's own; also how we know what we made.
_UNAPPROVED: Final = "unapproved, of a test"
_LEADER: Final = (
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
)
_ANYTHING: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_MEMBER: Final = {"type": "integer", "format": "int32", "minimum": 1}
_POD_GROUPS: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"podgroups.{_GROUP}", "annotations": {_APPROVAL: _UNAPPROVED}},
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
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"minMember": _MEMBER}},
                            "status": _ANYTHING,
                        },
                    }
                },
            }
        ],
    },
}
#: in the order in which they go
_IN_NAMESPACES: Final = ("Pod", "PodGroup", "Event")
_ELSEWHERE: Final = ("Node", "PriorityClass")
#: seconds after which what a run left behind is nobody's any more
_FORGOTTEN: Final = 3_600.0
#: seconds within which a controller manager that is there has renewed its lease
_ALIVE: Final = 60.0


class RealServer:
    """What the suite needs of a server, whatever else is on it: the PodGroups of coscheduling, and
    namespaces with the service account that its admission asks for.

    Attributes:
        has_controllers: a kube-controller-manager leads here, and empties namespaces.
    """

    def __init__(self, kubeconfig: str) -> None:
        self._kubeconfig = kubeconfig
        with self.connected(WaitingClock()) as cluster:
            _sweep(cluster)
            self._has_made_groups = _install_pod_groups(cluster)
            self.has_controllers = _has_controllers(cluster)

    def connected(self, clock: TestClock) -> KubeCluster:
        return KubeCluster(connect(KubeconfigFile(self._kubeconfig)), qps=-1, clock=clock)

    @contextmanager
    def corner(self, clock: TestClock) -> Iterator[Apart]:
        """A part of the server for one test, which nobody else sees and which goes with it."""
        prefix = f"{ROOT}{secrets.token_hex(3)}-"
        with self.connected(clock) as cluster:
            apart = Apart(cluster, prefix, lambda name: _be_admitted(cluster, name))
            apart.create("Namespace", {"metadata": {"name": "default"}})
            clock.start = clock.now()  # making it ready may have taken its time
            try:
                yield apart
            finally:
                self._clear(cluster, prefix)

    def close(self) -> None:
        if not self._has_made_groups:
            return
        with self.connected(WaitingClock()) as cluster:
            names = [obj["metadata"]["name"] for obj in cluster.list("Namespace").items]
            if any(name.startswith(ROOT) for name in names):
                return  # another run needs them yet
            with contextlib.suppress(NotFound):
                cluster._api.call("DELETE", _DEFINITION)

    def _clear(self, cluster: KubeCluster, prefix: str) -> None:
        for kind in _ELSEWHERE:
            for obj in cluster.list(kind).items:
                if obj["metadata"]["name"].startswith(prefix):
                    _remove(cluster, kind, obj)
        for namespace in cluster.list("Namespace").items:
            if namespace["metadata"]["name"].startswith(prefix):
                _remove_namespace(cluster, namespace["metadata"]["name"])


def _remove(cluster: KubeCluster, kind: str, obj: Json) -> None:
    metadata = obj["metadata"]
    name, namespace = metadata["name"], metadata.get("namespace", "")
    with contextlib.suppress(NotFound):
        if metadata.get("finalizers"):
            cluster.patch(kind, namespace, name, {"metadata": {"finalizers": None}})
        cluster.delete(kind, namespace, name, grace_period_seconds=0)


def _remove_namespace(cluster: KubeCluster, name: str) -> None:
    """With what is in it, also where no controller does that."""
    for kind in _IN_NAMESPACES:
        with contextlib.suppress(NotFound):  # the API of PodGroups is gone already
            for obj in cluster.list(kind, name).items:
                _remove(cluster, kind, obj)
    try:
        cluster.delete("Namespace", "", name)
        found = cluster.get("Namespace", "", name)
        body: dict[str, Any] = {**found, "spec": {"finalizers": []}}
        cluster._api.call("PUT", f"/api/v1/namespaces/{name}/finalize", body=body)
    except ApiError as refusal:
        if refusal.code not in (404, 409):  # a controller was faster
            raise


def _sweep(cluster: KubeCluster) -> None:
    """What runs left behind that were killed; not what one that goes on at this moment needs."""
    before = time.time() - _FORGOTTEN
    for kind in (*_ELSEWHERE, "Namespace"):
        for obj in cluster.list(kind).items:
            metadata = obj["metadata"]
            made = datetime.fromisoformat(metadata["creationTimestamp"]).timestamp()
            if not metadata["name"].startswith(ROOT) or made > before:
                continue
            if kind == "Namespace":
                _remove_namespace(cluster, metadata["name"])
            else:
                _remove(cluster, kind, obj)


def _be_admitted(cluster: KubeCluster, namespace: str) -> None:
    """The service account without which a stock server admits no pod there, and without the token
    that its admission would put into each. With a controller manager it may be there already."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    quiet = {"automountServiceAccountToken": False}
    try:
        cluster._api.call("POST", path, body={"metadata": {"name": "default"}, **quiet})
    except ApiError as refusal:
        if refusal.code != 409:
            raise
        cluster._api.call("PATCH", f"{path}/default", body=quiet, content_type=MERGE_PATCH)


def _has_controllers(cluster: KubeCluster) -> bool:
    try:
        lease = cluster._api.get(_LEADER)
    except NotFound:
        return False
    renewed = str((lease.get("spec") or {}).get("renewTime") or "")
    return bool(renewed) and time.time() - datetime.fromisoformat(renewed).timestamp() < _ALIVE


def _install_pod_groups(cluster: KubeCluster) -> bool:
    """The CustomResourceDefinition of coscheduling, as much of it as the suite needs; whether it is
    ours to take away."""
    with contextlib.suppress(AlreadyExists):  # two that begin at once
        if _definition(cluster) is None:
            cluster._api.call("POST", _DEFINITIONS, body=_POD_GROUPS)
    eventually(lambda: _is_served(cluster))
    annotations = (_definition(cluster) or {}).get("metadata", {}).get("annotations") or {}
    return bool(annotations.get(_APPROVAL) == _UNAPPROVED)


def _definition(cluster: KubeCluster) -> Json | None:
    try:
        return cluster._api.get(_DEFINITION)
    except NotFound:
        return None


def _is_served(cluster: KubeCluster) -> bool:
    try:
        cluster.list("PodGroup")
    except ApiError:
        return False
    return True
