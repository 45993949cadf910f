"""Event handlers: from watch events to informers, cache and scheduling queue."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from time import perf_counter
from typing import Any, cast

from scheduler_core.api import KINDS, NATIVE_POD_GROUP, InvalidObject, KubeObject, Node, Pod
from scheduler_core.backend.cache import Cache, CacheError
from scheduler_core.backend.informers import Informers
from scheduler_core.backend.object_changes import node_change_events, pod_change_events
from scheduler_core.backend.queue import SchedulingQueue
from scheduler_core.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    UNSCHEDULABLE_POD_ADD,
    ActionType,
    ClusterEvent,
    EventResource,
)
from scheduler_core.ports import WatchEvent

log = logging.getLogger(__name__)

#: Kinds that move pods by a plain Add, Update or Delete event.
EVENT_RESOURCES: Mapping[str, EventResource] = {
    "PersistentVolume": EventResource.PERSISTENT_VOLUME,
    "PersistentVolumeClaim": EventResource.PERSISTENT_VOLUME_CLAIM,
    "CSINode": EventResource.CSI_NODE,
    "CSIDriver": EventResource.CSI_DRIVER,
    "VolumeAttachment": EventResource.VOLUME_ATTACHMENT,
    "CSIStorageCapacity": EventResource.CSI_STORAGE_CAPACITY,
    "StorageClass": EventResource.STORAGE_CLASS,
    "PodGroup": EventResource.POD_GROUP,
    NATIVE_POD_GROUP: EventResource.NATIVE_POD_GROUP,
}

_POD_GROUPS = (EventResource.POD_GROUP, EventResource.NATIVE_POD_GROUP)

OnInvalid = Callable[[str, str, str], None]
OnHandled = Callable[[str, float], None]
OnWaitingPodDeleted = Callable[[Pod], bool]


def _ignore_invalid(kind: str, key: str, message: str) -> None:
    """For schedulers that leave malformed objects to the log."""


def _nobody_waits(pod: Pod) -> bool:
    return False


def _nobody_was_waiting(pod: Pod) -> None:
    """As above."""


def _nobody_holds(node_name: str) -> None:
    """For schedulers without pods that wait at Permit."""


def _no_gang_waits(kind: str, key: str) -> None:
    """As above."""


class EventHandlers:
    """Keeps what the scheduler knows in step with the cluster (kube-scheduler 1.36).

    Args:
        profiles: schedulerNames that this scheduler is responsible for; other pods without a node
            are not queued, but count once they are bound.
        on_waiting_pod_deleted: called with a deleted pod; True if it waited at Permit and its wait
            was ended.
        on_pod_bound: called with a pod that is bound now, whoever did it, after the cache knows.
        on_invalid: called with kind, key and reason for an object that cannot be read. Its last
            good version, if there is one, stays.
        on_node_deleted: called with the name of a node that is gone, after cache and queue know.
        on_pod_group_changed: called with kind and key of a PodGroup that is new, changed or gone.
        on_handled: called with the event's label and the seconds that it took.

    ``handle`` raises nothing for what comes from the cluster.
    """

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        informers: Informers,
        profiles: Collection[str],
        on_waiting_pod_deleted: OnWaitingPodDeleted = _nobody_waits,
        on_pod_bound: Callable[[Pod], None] = _nobody_was_waiting,
        on_invalid: OnInvalid = _ignore_invalid,
        on_node_deleted: Callable[[str], None] = _nobody_holds,
        on_pod_group_changed: Callable[[str, str], None] = _no_gang_waits,
        on_handled: OnHandled | None = None,
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._informers = informers
        self._profiles = frozenset(profiles)
        self._on_waiting_pod_deleted = on_waiting_pod_deleted
        self._on_pod_bound = on_pod_bound
        self._on_invalid = on_invalid
        self._on_node_deleted = on_node_deleted
        self._on_pod_group_changed = on_pod_group_changed
        self._on_handled = on_handled
        #: Kinds whose initial list has been delivered.
        self.synced: set[str] = set()

    def handle(self, event: WatchEvent) -> None:
        """Take one watch event in."""
        if event.type == "SYNCED":
            self.synced.add(event.kind)
            return
        if event.type == "DELETED":
            # By key alone, so that an object that can no longer be read goes too.
            known = self._informers.informer(event.kind).get(_key_of(event))
            if known is not None:
                self._apply(event.kind, known, None)
            return
        new = self._parse(event)
        if new is None:
            return
        known = self._informers.informer(event.kind).get(new.key)
        if known is None or not _is_same_version(known, new):
            self._apply(event.kind, known, new)

    def _parse(self, event: WatchEvent) -> KubeObject | None:
        kind = KINDS.get(event.kind)
        if kind is None:
            self._reject(event, f"{event.kind} is not a known kind")
            return None
        try:
            return kind.parse(event.object)
        except InvalidObject as exc:
            self._reject(event, str(exc))
            return None

    def _reject(self, event: WatchEvent, message: str) -> None:
        log.warning("%s ignored: %s", event.kind, message)
        self._on_invalid(event.kind, _key_of(event), message)

    def _apply(self, kind: str, old: Any, new: Any) -> None:
        if self._on_handled is None:
            self._take(kind, old, new)
            return
        started = perf_counter()
        self._take(kind, old, new)
        seconds = perf_counter() - started
        for label in self._labels(kind, old, new):
            self._on_handled(label, seconds)

    def _labels(self, kind: str, old: Any, new: Any) -> Sequence[str]:
        """Under which events kube-scheduler 1.36 counts the time: none for what it does not listen
        to, several where several things that matter have changed."""
        if kind == "Pod":
            return self._pod_labels(old, new)
        labels = _LABELS.get(kind)
        if labels is None:
            return ()
        if kind == "Node" and old is not None and new is not None:
            return [event.label for event in node_change_events(old, new)]
        return (labels[0] if old is None else labels[2] if new is None else labels[1],)

    def _pod_labels(self, old: Pod | None, new: Pod | None) -> Sequence[str]:
        if new is not None and new.is_terminal:
            new = None
        known = old if old is not None else new
        if known is None:
            return ()
        is_ours = known.scheduler_name in self._profiles
        if old is not None and old.is_assigned:
            if new is None:
                return (_ASSIGNED[2],)
            return [_ASSIGNED[1], *(event.label for event in pod_change_events(old, new))]
        if new is not None and new.is_assigned:
            # To those that count bound pods it is new, and to the queue it is gone.
            return (_ASSIGNED[0], _UNSCHEDULABLE[2])[: 1 + (is_ours and old is not None)]
        if not is_ours:
            return ()
        if old is None or new is None:
            return (_UNSCHEDULABLE[0 if old is None else 2],)
        changed = {event.label for event in pod_change_events(old, new)}
        return [_UNSCHEDULABLE[1], *sorted(changed - {_UNSCHEDULABLE[1]})]

    def _take(self, kind: str, old: Any, new: Any) -> None:
        if kind == "Pod":
            self._pod(old, None if new is not None and new.is_terminal else new)
        elif kind == "Node":
            self._node(old, new)
        else:
            self._other(kind, old, new)

    # -- pods --------------------------------------------------------------------------------------

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        """A pod that ended has left, as if it had been deleted: it holds nothing any more."""
        if old is not None and (new is None or _is_another(old, new)):
            self._informers.informer("Pod").delete(old.key)
            self._pod_left(old)
            old = None
        if new is None:
            return
        self._informers.informer("Pod").set(new)
        if new.is_assigned and (old is None or not old.is_assigned):
            self._pod_bound(old, new)
        elif new.is_assigned:
            self._bound_pod_changed(cast(Pod, old), new)
        elif new.scheduler_name not in self._profiles:
            return
        elif old is None:
            self._queue.move_all_to_active_or_backoff_queue(UNSCHEDULABLE_POD_ADD, None, new)
            self._queue.add(new)
        else:
            self._queued_pod_changed(old, new)

    def _pod_bound(self, old: Pod | None, new: Pod) -> None:
        self._tell_cache(self._cache.add_pod, new)
        if old is not None:
            self._queue.delete(old)
            self._on_pod_bound(new)
        self._queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_ADD, None, new)

    def _bound_pod_changed(self, old: Pod, new: Pod) -> None:
        self._tell_cache(self._cache.update_pod, new)
        for event in pod_change_events(old, new):
            self._queue.move_all_to_active_or_backoff_queue(event, old, new)

    def _queued_pod_changed(self, old: Pod, new: Pod) -> None:
        if self._cache.is_assumed_pod(new):
            return
        self._queue.update(old, new)
        if old.nominated_node_name and old.nominated_node_name != new.nominated_node_name:
            self._nomination_gone(old)

    def _pod_left(self, pod: Pod) -> None:
        if pod.is_assigned:
            self._on_waiting_pod_deleted(pod)
            self._tell_cache(self._cache.remove_pod, pod)
            self._queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_DELETE, pod, None)
            return
        self._queue.delete(pod)
        if self._cache.is_assumed_pod(pod):
            self._assumed_pod_left(pod)
            return
        self._on_waiting_pod_deleted(pod)  # its binding may have failed
        if pod.nominated_node_name:
            self._nomination_gone(pod)

    def _assumed_pod_left(self, pod: Pod) -> None:
        """It held a node without being bound: who waits for room may have it now."""
        assumed = self._cache.get_pod(pod) or pod
        if not self._on_waiting_pod_deleted(pod):
            self._tell_cache(self._cache.forget_pod, assumed)
        self._queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_DELETE, assumed, None)

    def _nomination_gone(self, pod: Pod) -> None:
        """A nominated pod counts as if it ran, for pods of its priority and below."""
        self._queue.move_all_to_active_or_backoff_queue(
            ASSIGNED_POD_DELETE, pod, None, lambda other: other.priority <= pod.priority
        )

    def _tell_cache(self, change: Callable[[Pod], None], pod: Pod) -> None:
        try:
            change(pod)
        except CacheError:
            log.exception("pod %s", pod.key)

    # -- nodes and the rest ------------------------------------------------------------------------

    def _node(self, old: Node | None, new: Node | None) -> None:
        informer = self._informers.informer("Node")
        if new is None:
            if old is not None:
                informer.delete(old.key)
                self._cache.remove_node(old)
                self._queue.move_all_to_active_or_backoff_queue(NODE_DELETE, old, None)
                self._on_node_deleted(old.name)
            return
        informer.set(new)
        self._cache.update_node(new)
        if old is None:
            self._queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, new)
            return
        for event in node_change_events(old, new):
            self._queue.move_all_to_active_or_backoff_queue(event, old, new)

    def _other(self, kind: str, old: Any, new: Any) -> None:
        informer = self._informers.informer(kind)
        if new is None:
            informer.delete(old.key)
        else:
            informer.set(new)
        resource = EVENT_RESOURCES.get(kind)
        if resource is not None:
            event = ClusterEvent(resource, _action(old, new))
            self._queue.move_all_to_active_or_backoff_queue(event, old, new)
        if resource in _POD_GROUPS:
            self._on_pod_group_changed(kind, (old or new).key)


def _three(resource: str) -> tuple[str, str, str]:
    return f"{resource}Add", f"{resource}Update", f"{resource}Delete"


_ASSIGNED = _three(EventResource.ASSIGNED_POD)
_UNSCHEDULABLE = _three(EventResource.UNSCHEDULABLE_POD)
_LABELS = {
    "Node": _three(EventResource.NODE),
    **{kind: _three(resource) for kind, resource in EVENT_RESOURCES.items()},
}


def _action(old: Any, new: Any) -> ActionType:
    if old is None:
        return ActionType.ADD
    return ActionType.DELETE if new is None else ActionType.UPDATE


def _is_same_version(old: KubeObject, new: KubeObject) -> bool:
    """A relist shows objects again that have not changed."""
    version = new.resource_version
    return bool(version) and version == old.resource_version and old.uid == new.uid


def _is_another(old: Pod, new: Pod) -> bool:
    """A namesake, or a pod on another node: its deletion was not seen. A bound pod never changes
    its node, so the latter is nothing that a cluster does; counting it once is what matters."""
    return old.uid != new.uid or (old.is_assigned and old.node_name != new.node_name)


def _key_of(event: WatchEvent) -> str:
    """The object's key as far as it can be told from malformed JSON."""
    meta = event.object.get("metadata")
    if not isinstance(meta, Mapping):
        return ""
    name, namespace = str(meta.get("name") or ""), str(meta.get("namespace") or "")
    kind = KINDS.get(event.kind)
    if kind is not None and not kind.namespaced:
        return name
    return f"{namespace or 'default'}/{name}"
