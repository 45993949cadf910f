"""Taints that follow from a node's state, and pods that must leave because of taints.

kube-controller-manager 1.36: node lifecycle controller and taint eviction controller. Nodes of a
sandbox send no heartbeats: one that says nothing of its state counts as ready.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from scheduler_core.api.errors import InvalidObject
from scheduler_core.api.kinds import KINDS
from scheduler_core.api.pod import Pod
from scheduler_core.api.taints import Taint
from scheduler_core.ports import ApiError, Json, PodCondition, WatchEvent

from ..objects import key_of, name_of, namespace_of, timestamp, uid_of
from ..sandbox import ActingView
from .index import Index
from .pods import has_ended, is_leaving
from .telling import tell

__all__ = ["NodeTaintController", "TaintEvictionController"]

_PREFIX: Final = "node.kubernetes.io/"
_NOT_READY: Final = _PREFIX + "not-ready"
_UNREACHABLE: Final = _PREFIX + "unreachable"
_UNSCHEDULABLE: Final = _PREFIX + "unschedulable"
#: condition -> status -> the key of the taint it brings
_BY_CONDITION: Final = {
    "Ready": {"False": _NOT_READY, "Unknown": _UNREACHABLE},
    "MemoryPressure": {"True": _PREFIX + "memory-pressure"},
    "DiskPressure": {"True": _PREFIX + "disk-pressure"},
    "PIDPressure": {"True": _PREFIX + "pid-pressure"},
    "NetworkUnavailable": {"True": _PREFIX + "network-unavailable"},
}
_OURS: Final = frozenset(
    {key for keys in _BY_CONDITION.values() for key in keys.values()} | {_UNSCHEDULABLE}
)
_EVICTING: Final = frozenset({_NOT_READY, _UNREACHABLE})


class NodeTaintController:
    """Writes the taints that a node's conditions and `spec.unschedulable` stand for."""

    actor = "node-controller"
    kinds: Sequence[str] = ("Node",)

    def __init__(self, index: Index) -> None:
        self._index = index

    def affected(self, event: WatchEvent, before: Json | None) -> Iterable[str]:
        return (name_of(event.object),)

    def reconcile(self, view: ActingView, key: str, now: float) -> float | None:
        node = self._index.get("Node", key)
        if node is None:
            return None
        taints: list[Json] = node["spec"].get("taints") or []
        wanted = _wanted(node)
        present = {(t.get("key"), t.get("effect")) for t in taints}
        kept = [t for t in taints if not _is_stale(t, wanted)]
        missing = [
            _taint(key, effect, now) for key, effect in wanted if (key, effect) not in present
        ]
        if missing or len(kept) != len(taints):
            # With the version: taints are a list, and another writer's must not be lost.
            metadata = {"resourceVersion": node["metadata"]["resourceVersion"]}
            patch = {"metadata": metadata, "spec": {"taints": [*kept, *missing] or None}}
            view.patch("Node", "", key, patch)
        return None


def _wanted(node: Json) -> list[tuple[str, str]]:
    wanted = [(_UNSCHEDULABLE, "NoSchedule")] if node["spec"].get("unschedulable") else []
    for condition in node["status"].get("conditions") or ():
        key = _BY_CONDITION.get(condition.get("type"), {}).get(condition.get("status"))
        if key is None:
            continue
        wanted.append((key, "NoSchedule"))
        if key in _EVICTING:
            wanted.append((key, "NoExecute"))
    return wanted


def _is_stale(taint: Json, wanted: list[tuple[str, str]]) -> bool:
    """A taint of ours for something that is over. What people taint with such a key goes too."""
    key, effect = taint.get("key"), taint.get("effect")
    ours = key in _OURS and (effect == "NoSchedule" or key in _EVICTING)
    return ours and (key, effect) not in wanted


def _taint(key: str, effect: str, now: float) -> Json:
    taint = {"key": key, "effect": effect}
    return {**taint, "timeAdded": timestamp(now)} if key != _UNSCHEDULABLE else taint


class TaintEvictionController:
    """Deletes pods that do not tolerate a NoExecute taint of their node, when their time is up."""

    actor = "taint-eviction-controller"
    kinds: Sequence[str] = ("Node", "Pod")

    def __init__(self, index: Index) -> None:
        self._index = index
        self._evicting: set[str] = set()  # nodes with a NoExecute taint
        self._since: dict[str, float] = {}  # pod's uid -> when its node was first seen tainted

    def affected(self, event: WatchEvent, before: Json | None) -> Iterable[str]:
        if event.kind == "Node":
            return self._of_node(event)
        if event.object["spec"].get("nodeName") not in self._evicting:
            return ()
        if event.type == "DELETED":
            self._since.pop(uid_of(event.object), None)
            return ()
        return (key_of(namespace_of(event.object), name_of(event.object)),)

    def _of_node(self, event: WatchEvent) -> Iterable[str]:
        node = name_of(event.object)
        was = node in self._evicting
        if event.type != "DELETED" and any(_no_execute(event.object)):
            self._evicting.add(node)
        else:
            self._evicting.discard(node)
        if not was and node not in self._evicting:
            return ()
        return [
            key
            for key, pod in self._index.objects("Pod").items()
            if pod["spec"].get("nodeName") == node
        ]

    def reconcile(self, view: ActingView, key: str, now: float) -> float | None:
        pod = self._index.get("Pod", key)
        if pod is None or is_leaving(pod) or has_ended(pod):
            return None
        node = self._index.get("Node", str(pod["spec"].get("nodeName") or ""))
        taints = list(_no_execute(node)) if node is not None else []
        if not taints:
            self._since.pop(uid_of(pod), None)
            return None
        due = _leaves_at(pod, taints, self._since.setdefault(uid_of(pod), now))
        if due is None or now < due:
            return due
        self._evict(view, pod)
        return None

    def _evict(self, view: ActingView, pod: Json) -> None:
        where = (namespace_of(pod), name_of(pod))
        why = PodCondition(
            "DisruptionTarget",
            "True",
            "DeletionByTaintManager",
            "Taint manager: deleting due to NoExecute taint",
        )
        try:
            view.patch_pod_status(*where, uid_of(pod), condition=why)
            view.delete("Pod", *where, uid=uid_of(pod))
        except ApiError as refusal:
            if refusal.code not in (404, 409):
                raise
            return
        tell(view, pod, "TaintManagerEviction", f"Marking for deletion Pod {'/'.join(where)}")


def _no_execute(node: Json) -> Iterable[Json]:
    return (t for t in node["spec"].get("taints") or () if t.get("effect") == "NoExecute")


def _leaves_at(pod: Json, taints: list[Json], since: float) -> float | None:
    """When the pod has to go; None if it may stay.

    The shortest tolerationSeconds counts, from when the controller saw the taints: a taint's
    `timeAdded` plays no part (taint eviction controller, `processPodOnNode`).
    """
    try:
        parsed = KINDS["Pod"].parse(pod)
    except InvalidObject:
        return None
    assert isinstance(parsed, Pod)
    shortest: int | None = None
    for raw in taints:
        taint = Taint(str(raw.get("key", "")), str(raw.get("value") or ""), "NoExecute")
        tolerating = [t for t in parsed.tolerations if t.tolerates(taint)]
        if not tolerating:
            return since
        for toleration in tolerating:
            seconds = toleration.toleration_seconds
            if seconds is not None and (shortest is None or seconds < shortest):
                shortest = seconds
    return None if shortest is None else since + max(0, shortest)
