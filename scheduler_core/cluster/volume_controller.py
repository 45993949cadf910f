"""Binds claims to volumes and makes volumes, as kube-controller-manager and a storage provider do.

What it does follows from the objects alone (Kubernetes 1.36, persistentvolume-binder):

- a volume without a claim becomes Available; one whose claim went is Released, or deleted if it
  was made for the claim;
- a claim takes the volume that is kept for it (the scheduler writes that), else, unless it waits
  for its first consumer, the smallest that fits;
- a claim of a class with a provisioner gets a new volume: at once, or where the node is that the
  scheduler has selected;
- a claim whose volume went is Lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from scheduler_core.api import KubeObject, Node
from scheduler_core.api.errors import InvalidObject
from scheduler_core.api.kinds import KINDS
from scheduler_core.api.storage import (
    BIND_COMPLETED,
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from scheduler_core.api.volume_matching import (
    BOUND_BY_CONTROLLER,
    can_be_bound,
    can_provision,
    is_bound_to,
    may_serve,
)
from scheduler_core.ports import ApiError, Json, NotFound, WatchEvent

from .inbox import WatchInbox, no_wake
from .objects import key_of, name_of, namespace_of
from .provisioning import PROVISIONED_BY, new_volume
from .sandbox import ActingView, SandboxCluster

__all__ = ["VolumeController"]

log = logging.getLogger(__name__)

ACTOR: Final = "persistentvolume-binder"

_CLASS: Final = "StorageClass"
_VOLUME: Final = "PersistentVolume"
_CLAIM: Final = "PersistentVolumeClaim"
_KINDS: Final = (_CLASS, _VOLUME, _CLAIM)
_RETRY_SECONDS: Final = 1.0
#: Another writer was faster.
_OVERTAKEN: Final = (404, 409)


class VolumeController:
    """Part of a sandbox: everything happens in `tick`, without delay."""

    def __init__(self, cluster: SandboxCluster, *, wake: Callable[[], None] = no_wake) -> None:
        self._cluster = cluster
        self._inbox = WatchInbox(wake)
        self._objects: dict[str, dict[str, KubeObject]] = {kind: {} for kind in _KINDS}
        #: keys of claims that have no volume yet
        self._unbound: dict[str, None] = {}
        #: claim key -> names of volumes that refer to it
        self._kept: dict[str, set[str]] = {}
        self._changed: dict[tuple[str, str], None] = {}
        self._retry_at: float | None = None
        self._inbox.watch(cluster, *_KINDS)

    def stop(self) -> None:
        """Hear of nothing more."""
        self._inbox.stop()

    def next_deadline(self) -> float | None:
        """When `tick` has something to do: a time of day; None if nothing is planned."""
        return self._cluster.clock.now() if self._inbox else self._retry_at

    def tick(self, now: float) -> None:
        """Take in what has happened and do what follows."""
        for event in self._inbox.take():
            self._hear(event)
        changed, self._changed, self._retry_at = self._changed, {}, None
        if not changed:
            return
        try:
            with self._cluster.batch(ACTOR) as view:
                self._act(view, changed)
        except ApiError as refusal:
            log.warning("volumes are left for a moment: %s", refusal)
            self._changed = {**changed, **self._changed}
            self._retry_at = now + _RETRY_SECONDS

    # -- what happened -----------------------------------------------------------------------------

    def _hear(self, event: WatchEvent) -> None:
        if event.type == "SYNCED":
            return
        key = key_of(namespace_of(event.object), name_of(event.object))
        if event.type == "DELETED":
            self._drop(event.kind, key)
        else:
            self._keep(event.kind, event.object)
        self._changed[event.kind, key] = None

    def _drop(self, kind: str, key: str) -> None:
        gone = self._objects[kind].pop(key, None)
        if isinstance(gone, PersistentVolume):
            self._note_claim(gone)
            self._forget_reference(gone)
        elif isinstance(gone, PersistentVolumeClaim):
            self._unbound.pop(key, None)
            self._note_volumes(gone)

    def _keep(self, kind: str, obj: Json) -> None:
        try:
            parsed = KINDS[kind].parse(obj)
        except InvalidObject as fault:
            log.warning("%s ignored: %s", kind, fault)
            return
        old = self._objects[kind].get(parsed.key)
        self._objects[kind][parsed.key] = parsed
        if isinstance(parsed, PersistentVolume):
            if isinstance(old, PersistentVolume):
                self._forget_reference(old)
            self._kept.setdefault(_claim_key(parsed), set()).add(parsed.key)
            self._note_claim(parsed)
        elif isinstance(parsed, PersistentVolumeClaim):
            if parsed.is_fully_bound:
                self._unbound.pop(parsed.key, None)
            else:
                self._unbound[parsed.key] = None
            self._note_volumes(parsed)

    def _forget_reference(self, volume: PersistentVolume) -> None:
        key = _claim_key(volume)
        self._kept[key].discard(volume.key)
        if not self._kept[key]:
            del self._kept[key]

    def _note_claim(self, volume: PersistentVolume) -> None:
        """A claim is concerned by what happens to its volume."""
        if volume.claim_ref is not None:
            self._changed[_CLAIM, _claim_key(volume)] = None

    def _note_volumes(self, claim: PersistentVolumeClaim) -> None:
        for name in self._kept.get(claim.key, ()):
            self._changed[_VOLUME, name] = None

    def _volumes(self) -> Iterable[PersistentVolume]:
        return cast("Iterable[PersistentVolume]", self._objects[_VOLUME].values())

    def _volume(self, name: str) -> PersistentVolume | None:
        return cast("PersistentVolume | None", self._objects[_VOLUME].get(name))

    def _claim(self, key: str) -> PersistentVolumeClaim | None:
        found = self._objects[_CLAIM].get(key)
        return cast("PersistentVolumeClaim | None", found)

    def _class(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        found = self._objects[_CLASS].get(claim.storage_class_name or "")
        return cast("StorageClass | None", found)

    # -- what follows ------------------------------------------------------------------------------

    def _act(self, view: ActingView, changed: Iterable[tuple[str, str]]) -> None:
        """Volumes first: claims look for those that are Available."""
        volumes = [name for kind, name in changed if kind == _VOLUME]
        claims = [key for kind, key in changed if kind == _CLAIM]
        if any(kind == _CLASS for kind, _ in changed):
            claims += self._unbound
        elif volumes:
            claims += (key for key in self._unbound if not self._waits(key))
        for name in volumes:
            _try(self._sync_volume, view, name)
        for key in dict.fromkeys(claims):
            _try(self._sync_claim, view, key)

    def _waits(self, key: str) -> bool:
        """Whether only the scheduler finds a volume for the claim."""
        claim = self._claim(key)
        found = self._class(claim) if claim is not None else None
        return found is not None and found.waits_for_consumer

    def _sync_volume(self, view: ActingView, name: str) -> None:
        volume = self._volume(name)
        if volume is None or volume.is_terminating:
            return
        reference = volume.claim_ref
        if reference is None or not reference.uid:
            self._set_phase(view, volume, "Available")
            return
        claim = self._claim(key_of(reference.namespace, reference.name))
        if claim is not None and claim.uid == reference.uid:
            if claim.volume_name == volume.name:
                self._set_phase(view, volume, "Bound")
            elif claim.volume_name:
                self._release(view, volume)
            else:
                self._set_phase(view, volume, "Available")
        elif _is_deleted_with_claim(volume):
            view.delete(_VOLUME, "", name, uid=volume.uid)
        else:
            self._set_phase(view, volume, "Released")

    def _release(self, view: ActingView, volume: PersistentVolume) -> None:
        """Its claim took another volume: it is free again, if it was not its user who chose."""
        if BOUND_BY_CONTROLLER not in volume.annotations:
            self._set_phase(view, volume, "Available")
            return
        changed = self._patch(
            view,
            volume,
            {
                "metadata": {"annotations": {BOUND_BY_CONTROLLER: None}},
                "spec": {"claimRef": None},
            },
        )
        self._set_phase(view, changed, "Available")

    def _sync_claim(self, view: ActingView, key: str) -> None:
        claim = self._claim(key)
        if claim is None or claim.is_terminating:
            return
        if claim.volume_name:
            self._follow(view, claim)
            return
        volume = self._find(claim)
        if volume is None:
            volume = self._provision(view, claim)
        if volume is not None:
            self._bind(view, claim, volume)

    def _follow(self, view: ActingView, claim: PersistentVolumeClaim) -> None:
        """The claim names its volume: by its user's wish, or because it is bound."""
        volume = self._volume(claim.volume_name)
        if volume is not None and (volume.claim_ref is None or is_bound_to(volume, claim)):
            self._bind(view, claim, volume)
        elif claim.is_fully_bound and claim.phase != "Lost":
            self._write_status(view, claim, {"phase": "Lost"})

    def _find(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """The volume that is kept for the claim, or the smallest that fits if it may be chosen."""
        for name in sorted(self._kept.get(claim.key, ())):
            kept = self._volume(name)
            if kept is not None and is_bound_to(kept, claim) and may_serve(kept, claim):
                return kept
        if self._waits(claim.key):
            return None
        wanted = claim.storage_class_name or ""
        free = [
            v
            for v in self._volumes()
            if v.claim_ref is None
            and v.storage_class_name == wanted
            and may_serve(v, claim)
            and can_be_bound(v, claim)
        ]
        return min(free, key=lambda v: v.capacity, default=None)

    def _provision(self, view: ActingView, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        found = self._class(claim)
        if found is None or not can_provision(found):
            return None
        if not found.waits_for_consumer:
            made = view.create(_VOLUME, new_volume(claim, found, None))
        elif not claim.selected_node:
            return None
        else:
            node = _find_node(view, claim.selected_node)
            if node is None:
                # The scheduler has to choose another one.
                self._patch(view, claim, {"metadata": {"annotations": {SELECTED_NODE: None}}})
                return None
            made = view.create(_VOLUME, new_volume(claim, found, node))
        self._keep(_VOLUME, made)
        return self._volume(name_of(made))

    def _bind(
        self, view: ActingView, claim: PersistentVolumeClaim, volume: PersistentVolume
    ) -> None:
        """Each names the other, then both are Bound. What is done already is left alone."""
        if volume.claim_ref is None or not volume.claim_ref.uid:
            chosen = volume.claim_ref is None
            volume = self._patch(view, volume, _kept_for(claim, chosen=chosen))
        self._set_phase(view, volume, "Bound")
        if not claim.is_fully_bound:
            annotations = {BIND_COMPLETED: "yes"}
            if not claim.volume_name:
                annotations[BOUND_BY_CONTROLLER] = "yes"
            claim = self._patch(
                view,
                claim,
                {"metadata": {"annotations": annotations}, "spec": {"volumeName": volume.name}},
            )
        if claim.phase != "Bound":
            spec = volume.raw["spec"]
            status = {"accessModes": spec.get("accessModes"), "capacity": spec.get("capacity")}
            self._write_status(view, claim, {"phase": "Bound", **status})

    # -- writes ------------------------------------------------------------------------------------

    def _set_phase(self, view: ActingView, volume: PersistentVolume, phase: str) -> None:
        if volume.phase != phase:
            self._write_status(view, volume, {"phase": phase})

    def _write_status(self, view: ActingView, obj: KubeObject, status: Json) -> None:
        self._patch(view, obj, {"status": status}, "status")

    def _patch(self, view: ActingView, obj: Any, patch: Json, subresource: str = "") -> Any:
        """The object as it is now; what it was when it was looked at must still hold."""
        kind = type(obj).__name__
        guard = {"uid": obj.uid, "resourceVersion": obj.resource_version}
        body = {**patch, "metadata": {**patch.get("metadata", {}), **guard}}
        written = view.patch(kind, obj.namespace, obj.name, body, subresource=subresource)
        self._keep(kind, written)
        return self._objects[kind][obj.key]


def _try(work: Callable[[ActingView, str], None], view: ActingView, name: str) -> None:
    """A write that another overtook is an event soon; one that is refused waits for the next."""
    try:
        work(view, name)
    except ApiError as refusal:
        if refusal.code >= 500:
            raise
        if refusal.code not in _OVERTAKEN:
            log.warning("%s: %s", name, refusal)


def _claim_key(volume: PersistentVolume) -> str:
    """The claim that the volume refers to, "" if there is none."""
    reference = volume.claim_ref
    return "" if reference is None else key_of(reference.namespace, reference.name)


def _find_node(view: ActingView, name: str) -> Node | None:
    try:
        return Node.from_dict(view.get("Node", "", name))
    except NotFound:
        return None


def _kept_for(claim: PersistentVolumeClaim, *, chosen: bool) -> Json:
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
    }
    patch: Json = {"spec": {"claimRef": reference}}
    if chosen:
        patch["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
    return patch


def _is_deleted_with_claim(volume: PersistentVolume) -> bool:
    policy = volume.raw["spec"].get("persistentVolumeReclaimPolicy")
    return policy == "Delete" and PROVISIONED_BY in volume.annotations
