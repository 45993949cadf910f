"""A cluster in memory that answers at once: the place of an API server that costs nothing.

It is lean on purpose. The figures to compare with are of a scheduling cycle with assume and
without an API server, so a binding is noted and not told back as a watch event; the scheduler goes
on with the pod assumed. What others do (objects that come, change and go, pods that preemption
evicts) is told as any cluster tells it. ``scheduler_core.cluster.sandbox`` is the faithful one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Literal

from scheduler_core.ports import (
    AlreadyExists,
    ApiError,
    Conflict,
    Json,
    NotFound,
    ObjectList,
    PodCondition,
    WatchEvent,
)

__all__ = ["BenchmarkCluster"]

Sink = Callable[[WatchEvent], None]
Key = tuple[str, str]

CREATED = "2026-01-01T00:00:00Z"


class _Watch:
    """One subscription."""

    def __init__(self, cluster: BenchmarkCluster, kind: str, sink: Sink) -> None:
        self._cluster, self._kind, self.sink = cluster, kind, sink

    def stop(self) -> None:
        self._cluster._unsubscribe(self._kind, self)


class BenchmarkCluster:
    """``ports.Cluster`` for one thread; what is handed in is kept (the caller made it for us).

    Attributes:
        node_of: pod uid -> node, of every pod that has one and is there still.
        bindings: how many bindings were accepted.
        evicted: pods that were deleted with their uid, as preemption does.
        writes: conditions, nominations and events that were taken in.
    """

    def __init__(self) -> None:
        self._objects: dict[str, dict[Key, Json]] = defaultdict(dict)
        self._watches: dict[str, list[_Watch]] = defaultdict(list)
        self._pods_on: dict[str, set[Key]] = defaultdict(set)
        self._version = 0
        self.node_of: dict[str, str] = {}
        self.bindings = 0
        self.evicted = 0
        self.writes = 0

    # -- reading -----------------------------------------------------------------------------------

    def list_watch(self, kind: str, sink: Sink) -> _Watch:
        watch = _Watch(self, kind, sink)
        for obj in self._objects[kind].values():
            sink(WatchEvent("ADDED", kind, obj))
        sink(WatchEvent("SYNCED", kind, {}))
        self._watches[kind].append(watch)
        return watch

    def _unsubscribe(self, kind: str, watch: _Watch) -> None:
        if watch in self._watches[kind]:
            self._watches[kind].remove(watch)

    def get(self, kind: str, namespace: str, name: str) -> Json:
        return self._find(kind, (namespace, name))

    def list(
        self,
        kind: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> ObjectList:
        """
        Raises:
            ApiError: with selectors, which nothing here needs.
        """
        if label_selector or field_selector:
            raise ApiError(501, "NotImplemented", "this cluster lists without selectors")
        found = self._objects[kind].items()
        items = [obj for (space, _), obj in found if namespace in (None, space)]
        return ObjectList(items, str(self._version))

    # -- objects that come and go ------------------------------------------------------------------

    def create(self, kind: str, obj: Json) -> Json:
        metadata = obj["metadata"]
        key = (str(metadata.get("namespace", "")), str(metadata["name"]))
        if key in self._objects[kind]:
            raise AlreadyExists(kind, key[1])
        self._version += 1
        metadata.update(
            uid=f"uid-{self._version}",
            resourceVersion=str(self._version),
            creationTimestamp=CREATED,
        )
        node = obj["spec"].get("nodeName") if kind == "Pod" else None
        if node:
            self._place(key, metadata["uid"], str(node))
        self._objects[kind][key] = obj
        self._tell("ADDED", kind, obj)
        return obj

    def update(self, kind: str, obj: Json) -> Json:
        metadata = obj["metadata"]
        key = (str(metadata.get("namespace", "")), str(metadata["name"]))
        old = self._find(kind, key)
        own = {"uid": old["metadata"]["uid"], "creationTimestamp": CREATED}
        return self._replace(kind, key, {**obj, "metadata": {**metadata, **own}})

    def patch(
        self, kind: str, namespace: str, name: str, patch: Json, *, subresource: str = ""
    ) -> Json:
        key = (namespace, name)
        return self._replace(kind, key, _merged(self._find(kind, key), patch))

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        """At once, without a grace period. With a node its pods go, as the garbage collector of
        pods has them go."""
        key = (namespace, name)
        obj = self._find(kind, key)
        own = str(obj["metadata"]["uid"])
        if uid and uid != own:
            raise Conflict(f'{kind} "{name}" has another uid')
        self.evicted += bool(uid)
        if kind == "Node":
            for space, pod in sorted(self._pods_on.pop(name, ())):
                self.delete("Pod", space, pod)
        del self._objects[kind][key]
        node = self.node_of.pop(own, "") if kind == "Pod" else ""
        if node in self._pods_on:
            self._pods_on[node].discard(key)
        self._tell("DELETED", kind, obj)

    # -- what the scheduler writes -----------------------------------------------------------------

    def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """Note the node; no event follows.

        Raises:
            NotFound: there is no such pod or node.
            Conflict: the pod has another uid, or a node already.
        """
        key = (namespace, name)
        found = str(self._find("Pod", key)["metadata"]["uid"])
        if uid != found:
            raise Conflict(f'pod "{name}" has uid {found}, not {uid}')
        if uid in self.node_of:
            raise Conflict(f'pod "{name}" is already assigned to node "{self.node_of[uid]}"')
        self._place(key, uid, node)
        self.bindings += 1

    def patch_pod_status(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        condition: PodCondition | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        found = str(self._find("Pod", (namespace, name))["metadata"]["uid"])
        if found != uid:
            raise Conflict(f'pod "{name}" has uid {found}, not {uid}')
        self.writes += 1

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
        self.writes += 1

    # -- inside ------------------------------------------------------------------------------------

    def _find(self, kind: str, key: Key) -> Json:
        obj = self._objects[kind].get(key)
        if obj is None:
            raise NotFound(kind, key[1])
        return obj

    def _replace(self, kind: str, key: Key, obj: Json) -> Json:
        self._version += 1
        obj["metadata"] = {**obj["metadata"], "resourceVersion": str(self._version)}
        self._objects[kind][key] = obj
        self._tell("MODIFIED", kind, obj)
        return obj

    def _place(self, key: Key, uid: str, node: str) -> None:
        if ("", node) not in self._objects["Node"]:
            raise NotFound("Node", node)
        self.node_of[uid] = node
        self._pods_on[node].add(key)

    def _tell(self, type: Literal["ADDED", "MODIFIED", "DELETED"], kind: str, obj: Json) -> None:
        for watch in self._watches[kind]:
            watch.sink(WatchEvent(type, kind, obj))


def _merged(old: Json, patch: Mapping[str, Any]) -> Json:
    """JSON merge patch (RFC 7386)."""
    new = dict(old)
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        elif isinstance(value, Mapping):
            under = new.get(key)
            new[key] = _merged(under if isinstance(under, dict) else {}, value)
        else:
            new[key] = value
    return new
