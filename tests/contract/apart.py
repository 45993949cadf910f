"""A corner of a server that others use, too: what the suite makes has names of its own there.

A test says namespace "default" and node "n1"; the server hears "contract-1f2e3d-default" and
"contract-1f2e3d-n1". What comes back is told without that, and what is others' is not told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Literal

from scheduler_core.api.kinds import KINDS
from scheduler_core.kube.cluster import KubeCluster
from scheduler_core.ports import ApiError, Json, ObjectList, PodCondition, Subscription, WatchEvent

#: what every name begins with, so that leftovers of a run that was killed are known
ROOT: Final = "contract-"
#: field selectors whose value is a name that is changed; for nodes and classes also their own name
_SELECTED: Final = ("metadata.namespace", "spec.nodeName")


class Apart:
    """`Cluster` over a KubeCluster.

    Args:
        prefix: of every namespace, of every object without one, and of the nodes of pods.
        on_namespace: told the real name of each namespace that was made.
    """

    def __init__(
        self,
        cluster: KubeCluster,
        prefix: str,
        on_namespace: Callable[[str], None] = lambda name: None,
    ) -> None:
        self._cluster = cluster
        self._prefix = prefix
        self._on_namespace = on_namespace

    # -- reading ---------------------------------------------------------------------------------

    def get(self, kind: str, namespace: str, name: str) -> Json:
        with self._told():
            return self._inner(self._cluster.get(kind, *self._place(kind, namespace, name)))

    def list(
        self,
        kind: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> ObjectList:
        wanted = None if namespace is None else self._named(namespace)
        with self._told():
            found = self._cluster.list(
                kind, wanted, label_selector, self._selector(kind, field_selector)
            )
        items = [self._inner(obj) for obj in found.items if self._is_ours(kind, obj)]
        return ObjectList(items, found.resource_version)

    def list_watch(self, kind: str, sink: Callable[[WatchEvent], None]) -> Subscription:
        def told(event: WatchEvent) -> None:
            if event.type == "SYNCED" or self._is_ours(kind, event.object):
                sink(WatchEvent(event.type, event.kind, self._inner(event.object)))

        return self._cluster.list_watch(kind, told)

    # -- writing ---------------------------------------------------------------------------------

    def create(self, kind: str, obj: Json) -> Json:
        with self._told():
            made = self._cluster.create(kind, self._outer(kind, obj))
        if kind == "Namespace":
            self._on_namespace(made["metadata"]["name"])
        return self._inner(made)

    def update(self, kind: str, obj: Json) -> Json:
        with self._told():
            return self._inner(self._cluster.update(kind, self._outer(kind, obj)))

    def patch(
        self, kind: str, namespace: str, name: str, patch: Json, *, subresource: str = ""
    ) -> Json:
        place = self._place(kind, namespace, name)
        with self._told():
            return self._inner(self._cluster.patch(kind, *place, patch, subresource=subresource))

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        place = self._place(kind, namespace, name)
        if (kind, name) == ("Namespace", "default"):
            place = (namespace, name)  # the server's own, which it does not let go
        with self._told():
            self._cluster.delete(kind, *place, uid=uid, grace_period_seconds=grace_period_seconds)

    def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        with self._told():
            self._cluster.bind(self._named(namespace), name, uid, self._named(node))

    def patch_pod_status(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        condition: PodCondition | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        node = nominated_node_name
        with self._told():
            self._cluster.patch_pod_status(
                self._named(namespace),
                name,
                uid,
                condition=condition,
                nominated_node_name=None if node is None else self._named(node),
            )

    def emit_event(
        self,
        regarding: Mapping[str, Any],
        *,
        type: Literal["Normal", "Warning"],
        reason: str,
        action: str,
        note: str,
        reporting_controller: str,
    ) -> None:
        about = dict(regarding)
        if about.get("namespace"):
            about["namespace"] = self._named(about["namespace"])
        if about.get("metadata"):
            about = self._outer(str(about["kind"]), about)
        self._cluster.emit_event(
            about,
            type=type,
            reason=reason,
            action=action,
            note=note,
            reporting_controller=reporting_controller,
        )

    # -- names -----------------------------------------------------------------------------------

    def _named(self, name: str) -> str:
        return f"{self._prefix}{name}" if name else ""

    def _place(self, kind: str, namespace: str, name: str) -> tuple[str, str]:
        if KINDS[kind].namespaced:
            return self._named(namespace), name
        return namespace, self._named(name)

    def _selector(self, kind: str, text: str) -> str:
        names = _SELECTED if KINDS[kind].namespaced else (*_SELECTED, "metadata.name")
        for name in names:
            text = text.replace(f"{name}=", f"{name}={self._prefix}")
        return text.replace(f"={self._prefix},", "=,").removesuffix(self._prefix)

    def _is_ours(self, kind: str, obj: Json) -> bool:
        key = "namespace" if KINDS[kind].namespaced else "name"
        return str(obj["metadata"].get(key, "")).startswith(self._prefix)

    def _outer(self, kind: str, obj: Json) -> Json:
        """As the server is to see it; an object without a namespace is of our "default"."""
        if kind not in KINDS:
            return obj
        metadata, spec = dict(obj["metadata"]), obj.get("spec")
        if KINDS[kind].namespaced:
            metadata["namespace"] = self._named(metadata.get("namespace") or "default")
        elif metadata.get("name"):
            metadata["name"] = self._named(metadata["name"])
        outer = {**obj, "metadata": metadata}
        if isinstance(spec, Mapping):
            names = ("priorityClassName", "nodeName")
            outer["spec"] = {**spec, **{n: self._named(spec[n]) for n in names if spec.get(n)}}
        return outer

    def _inner(self, value: Any) -> Any:
        """As the test knows it."""
        if isinstance(value, str):
            return value.replace(self._prefix, "")
        if isinstance(value, list):
            return [self._inner(item) for item in value]
        if isinstance(value, dict):
            return {key: self._inner(item) for key, item in value.items()}
        return value

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except ApiError as error:
            error.message = self._inner(error.message)
            error.args = (error.message,)
            error.causes = tuple((self._inner(f), self._inner(m)) for f, m in error.causes)
            raise
