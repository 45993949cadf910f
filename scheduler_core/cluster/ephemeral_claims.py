"""Makes the claims of pods' ephemeral volumes, and removes them with their pods, as
kube-controller-manager's ephemeral volume controller and garbage collector do."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Final

from scheduler_core.ports import AlreadyExists, ApiError, Json, NotFound, WatchEvent

from .inbox import WatchInbox, no_wake
from .objects import name_of, namespace_of, uid_of
from .sandbox import ActingView, SandboxCluster

__all__ = ["EphemeralClaimController"]

log = logging.getLogger(__name__)

ACTOR: Final = "ephemeral-volume-controller"

_RETRY_SECONDS: Final = 1.0


class EphemeralClaimController:
    """Part of a sandbox: everything happens in `tick`, without delay."""

    def __init__(self, cluster: SandboxCluster, *, wake: Callable[[], None] = no_wake) -> None:
        self._cluster = cluster
        self._inbox = WatchInbox(wake)
        #: pod's uid -> the last that happened to it
        self._todo: dict[str, WatchEvent] = {}
        self._retry_at: float | None = None
        self._inbox.watch(cluster, "Pod")

    def stop(self) -> None:
        """Hear of nothing more."""
        self._inbox.stop()

    def next_deadline(self) -> float | None:
        """When `tick` has something to do: a time of day; None if nothing is planned."""
        return self._cluster.clock.now() if self._inbox else self._retry_at

    def tick(self, now: float) -> None:
        """Make and remove claims for the pods that came and went."""
        for event in self._inbox.take():
            if event.type != "SYNCED" and any(_volumes(event.object)):
                self._todo[uid_of(event.object)] = event
        self._retry_at = None
        if not self._todo:
            return
        try:
            with self._cluster.batch(ACTOR) as view:
                for event in self._todo.values():
                    _act(view, event)
            self._todo.clear()
        except ApiError as refusal:
            log.warning("claims of ephemeral volumes are left for a moment: %s", refusal)
            self._retry_at = now + _RETRY_SECONDS


def _act(view: ActingView, event: WatchEvent) -> None:
    pod = event.object
    for volume in _volumes(pod):
        name = f"{name_of(pod)}-{volume['name']}"
        try:
            if event.type == "DELETED":
                _remove(view, pod, name)
            elif not pod["metadata"].get("deletionTimestamp"):
                _make(view, pod, name, volume["ephemeral"].get("volumeClaimTemplate") or {})
        except ApiError as refusal:
            if refusal.code >= 500:
                raise
            log.warning("claim %s: %s", name, refusal)


def _volumes(pod: Json) -> Iterator[Json]:
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return (volume for volume in volumes if volume.get("ephemeral"))


def _make(view: ActingView, pod: Json, name: str, template: Json) -> None:
    """A namesake that is not the pod's stays: the scheduler says what is wrong."""
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": name_of(pod),
        "uid": uid_of(pod),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    wanted = template.get("metadata") or {}
    metadata = {
        "name": name,
        "namespace": namespace_of(pod),
        "labels": wanted.get("labels") or {},
        "annotations": wanted.get("annotations") or {},
        "ownerReferences": [owner],
    }
    claim = {"metadata": metadata, "spec": template.get("spec") or {}}
    try:
        view.create("PersistentVolumeClaim", claim)
    except AlreadyExists:
        return


def _remove(view: ActingView, pod: Json, name: str) -> None:
    namespace = namespace_of(pod)
    try:
        claim = view.get("PersistentVolumeClaim", namespace, name)
        owners = claim["metadata"].get("ownerReferences") or ()
        if any(owner.get("uid") == uid_of(pod) for owner in owners):
            view.delete("PersistentVolumeClaim", namespace, name, uid=uid_of(claim))
    except NotFound:
        return
