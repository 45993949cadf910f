"""A cluster that can be looked at, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NoReturn

from scheduler_core.ports import (
    ApiError,
    Cluster,
    Json,
    ObjectList,
    PodCondition,
    Subscription,
    WatchEvent,
)

__all__ = ["ReadOnlyCluster", "WriteRefused"]


class WriteRefused(ApiError):
    """Somebody who may only look wanted to write: a bug, not an answer of the cluster."""

    def __init__(self, what: str) -> None:
        super().__init__(403, "Forbidden", f"this cluster is only looked at: {what} is refused")


class ReadOnlyCluster:
    """``ports.Cluster`` that passes reads on and refuses every write before it leaves the process.

    What only observes is given one of these, so that no mistake in it can change the cluster, and
    the right to get, list and watch is all that it needs.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    # -- reads -----------------------------------------------------------------------------------

    def list_watch(self, kind: str, sink: Callable[[WatchEvent], None]) -> Subscription:
        return self._cluster.list_watch(kind, sink)

    def get(self, kind: str, namespace: str, name: str) -> Json:
        return self._cluster.get(kind, namespace, name)

    def list(
        self,
        kind: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> ObjectList:
        return self._cluster.list(kind, namespace, label_selector, field_selector)

    # -- writes ----------------------------------------------------------------------------------

    def create(self, kind: str, obj: Json) -> Json:
        _refuse(f"create {kind}")

    def update(self, kind: str, obj: Json) -> Json:
        _refuse(f"update {kind}")

    def patch(
        self, kind: str, namespace: str, name: str, patch: Json, *, subresource: str = ""
    ) -> Json:
        _refuse(f"patch {kind} {namespace}/{name}")

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        _refuse(f"delete {kind} {namespace}/{name}")

    def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        _refuse(f"bind pod {namespace}/{name}")

    def patch_pod_status(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        condition: PodCondition | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        _refuse(f"patch the status of pod {namespace}/{name}")

    def emit_event(
        self,
        regarding: Mapping[str, object],
        *,
        type: Literal["Normal", "Warning"],
        reason: str,
        action: str,
        note: str,
        reporting_controller: str,
    ) -> None:
        _refuse("emit an event")


def _refuse(what: str) -> NoReturn:
    raise WriteRefused(what)
