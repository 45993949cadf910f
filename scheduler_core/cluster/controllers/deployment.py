"""Deployment: rolls a template out over ReplicaSets (kube-controller-manager 1.36)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from scheduler_core.api.reader import parse_time
from scheduler_core.ports import AlreadyExists, ApiError, Json, WatchEvent

from ..objects import clone, key_of, name_of, namespace_of, timestamp, uid_of
from ..sandbox import ActingView
from .adoption import adopt, orphans
from .index import Index, controller_of
from .pods import controller_reference, has_ended, is_leaving, set_condition
from .rollout import limits_of, old_sizes, size_of_new
from .telling import tell

__all__ = ["DeploymentController"]

HASH_LABEL: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
_DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
_MOST: Final = "deployment.kubernetes.io/max-replicas"
_OWN_ANNOTATIONS: Final = frozenset(
    {REVISION, _DESIRED, _MOST, "kubectl.kubernetes.io/last-applied-configuration"}
)
# Letters that spell nothing, as in generated names.
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"


class DeploymentController:
    """Keeps one ReplicaSet per template, and moves pods from the old ones to the new one."""

    actor = "deployment-controller"
    kinds: Sequence[str] = ("Deployment", "ReplicaSet", "Pod")

    def __init__(self, index: Index) -> None:
        self._index = index

    def affected(self, event: WatchEvent, before: Json | None) -> Iterable[str]:
        if event.kind == "Deployment":
            return (key_of(namespace_of(event.object), name_of(event.object)),)
        if event.kind == "Pod":
            return self._of_pod(event)
        return _keys_of_controller(event.object, "Deployment")

    def _of_pod(self, event: WatchEvent) -> Iterable[str]:
        # Only Recreate waits for pods themselves; all else follows from the sets' statuses.
        if event.type != "DELETED" and not has_ended(event.object):
            return ()
        for key in _keys_of_controller(event.object, "ReplicaSet"):
            owner = self._index.get("ReplicaSet", key)
            if owner is not None:
                return _keys_of_controller(owner, "Deployment")
        return ()

    def reconcile(self, view: ActingView, key: str, now: float) -> float | None:
        deployment = self._index.get("Deployment", key)
        if deployment is None:
            return None
        sets = self._sets(deployment)
        if is_leaving(deployment):
            return self._write_status(view, deployment, sets, None, now)
        new = next((s for s in sets if _serves(s, deployment)), None)
        if deployment["spec"].get("paused"):
            self._scale_one(view, deployment, sets, new)
        elif new is None:
            return self._begin(view, deployment, sets, now)
        else:
            self._mark_newest(view, deployment, sets, new)
            self._roll(view, deployment, sets, new)
        return self._write_status(view, deployment, self._sets(deployment), new, now)

    def _sets(self, deployment: Json) -> list[Json]:
        """Its ReplicaSets, oldest first."""
        found = self._index.controlled_by(deployment, "ReplicaSet")
        return sorted(found, key=lambda s: (s["metadata"].get("creationTimestamp"), name_of(s)))

    # -- a new template --------------------------------------------------------------------------

    def _begin(
        self, view: ActingView, deployment: Json, sets: list[Json], now: float
    ) -> float | None:
        """Make the ReplicaSet of a template that has none; its event leads to the next turn."""
        if _recreates(deployment) and self._retire(view, deployment, sets):
            return self._write_status(view, deployment, sets, None, now)
        found = next((s for s in self._free_sets(deployment) if _serves(s, deployment)), None)
        if found is not None:
            adopt(view, deployment, found)
            return None
        status = deployment.get("status") or {}
        body = _new_set(deployment, sets, int(status.get("collisionCount") or 0))
        body["spec"]["replicas"] = size_of_new(
            _wanted(deployment), limits_of(deployment), 0, sum(map(_size, sets))
        )
        try:
            made = view.create("ReplicaSet", body)
        except AlreadyExists:
            self._note_collision(view, deployment, body)
            return None
        except ApiError as refusal:
            if refusal.code < 500:
                why = f"Failed to create new replica set: {refusal}"
                tell(view, deployment, "ReplicaSetCreateError", why, warning=True)
            raise
        self._tell_scaled(view, deployment, made, 0, _size(made))
        self._set_revision(view, deployment, body["metadata"]["annotations"][REVISION])
        return self._write_status(view, deployment, [*sets, made], made, now)

    def _free_sets(self, deployment: Json) -> Iterable[Json]:
        return orphans(self._index, deployment, "ReplicaSet")

    def _note_collision(self, view: ActingView, deployment: Json, body: Json) -> None:
        """The name is taken by a set of another template: the next hash is made with a count."""
        taken = view.get("ReplicaSet", namespace_of(deployment), name_of(body))
        if (controller_of(taken) or {}).get("uid") == uid_of(deployment) and _serves(
            taken, deployment
        ):
            return  # it is ours already
        status = deployment.get("status") or {}
        count = int(status.get("collisionCount") or 0) + 1
        new = {**deployment, "status": {**status, "collisionCount": count}}
        view.update("Deployment", new, subresource="status")

    def _mark_newest(self, view: ActingView, deployment: Json, sets: list[Json], new: Json) -> None:
        """A set that serves again, after `rollout undo`, is the newest revision."""
        highest = max((_revision(s) for s in sets if s is not new), default=0)
        revision = _revision(new)
        if revision <= highest:
            revision = highest + 1
            patch = {"metadata": {"annotations": {REVISION: str(revision)}}}
            view.patch("ReplicaSet", namespace_of(new), name_of(new), patch)
        self._set_revision(view, deployment, str(revision))

    def _set_revision(self, view: ActingView, deployment: Json, revision: str) -> None:
        annotations = deployment["metadata"].get("annotations") or {}
        if annotations.get(REVISION) != revision:
            patch = {"metadata": {"annotations": {REVISION: revision}}}
            view.patch("Deployment", namespace_of(deployment), name_of(deployment), patch)

    # -- moving pods -----------------------------------------------------------------------------

    def _roll(self, view: ActingView, deployment: Json, sets: list[Json], new: Json) -> None:
        old = [s for s in sets if s is not new]
        if _recreates(deployment) and self._retire(view, deployment, old):
            return
        wanted, limits = _wanted(deployment), limits_of(deployment)
        size = size_of_new(wanted, limits, _size(new), sum(map(_size, sets)))
        self._resize(view, deployment, new, size)
        # Old sets shrink by what is available now; what the new set has just been given is not.
        after = old_sizes(
            wanted, limits, (size, _available(new)), [(_size(s), _available(s)) for s in old]
        )
        for of, target in zip(old, after, strict=True):
            self._resize(view, deployment, of, target)
        if _is_complete(deployment, new, sets):
            self._forget_history(view, deployment, old)

    def _retire(self, view: ActingView, deployment: Json, old: list[Json]) -> bool:
        """Recreate: take the old sets down; whether any of their pods is still there."""
        for of in old:
            self._resize(view, deployment, of, 0)
        return any(not has_ended(pod) for of in old for pod in self._index.controlled_by(of, "Pod"))

    def _scale_one(
        self, view: ActingView, deployment: Json, sets: list[Json], new: Json | None
    ) -> None:
        """While paused nothing rolls, but the number of pods still follows what is wanted."""
        used = [s for s in sets if _size(s) > 0] or ([new] if new is not None else sets[-1:])
        if len(used) == 1:
            self._resize(view, deployment, used[0], _wanted(deployment))

    def _resize(self, view: ActingView, deployment: Json, of: Json, size: int) -> None:
        wanted = _wanted(deployment)
        most = str(wanted + limits_of(deployment).surge)
        annotations = of["metadata"].get("annotations") or {}
        noted = {_DESIRED: str(wanted), _MOST: most}
        if size == _size(of) and noted.items() <= annotations.items():
            return
        patch = {"metadata": {"annotations": noted}, "spec": {"replicas": size}}
        view.patch("ReplicaSet", namespace_of(of), name_of(of), patch)
        if size != _size(of):
            self._tell_scaled(view, deployment, of, _size(of), size)

    def _tell_scaled(
        self, view: ActingView, deployment: Json, of: Json, old: int, new: int
    ) -> None:
        way = "up" if new > old else "down"
        note = f"Scaled {way} replica set {name_of(of)} from {old} to {new}"
        tell(view, deployment, "ScalingReplicaSet", note)

    def _forget_history(self, view: ActingView, deployment: Json, old: list[Json]) -> None:
        keep = int(deployment["spec"].get("revisionHistoryLimit", 10))
        empty = [s for s in old if not _size(s) and not (s.get("status") or {}).get("replicas")]
        by_revision = sorted(empty, key=_revision)
        for of in by_revision[: max(0, len(by_revision) - keep)]:
            view.delete("ReplicaSet", namespace_of(of), name_of(of), uid=uid_of(of))

    # -- status ----------------------------------------------------------------------------------

    def _write_status(
        self, view: ActingView, deployment: Json, sets: list[Json], new: Json | None, now: float
    ) -> float | None:
        old = deployment.get("status") or {}
        status, again = _status(deployment, sets, new, now)
        if status != old:
            # Without its version: an annotation written in this very turn must not be in the way.
            patch = {"metadata": {"uid": uid_of(deployment)}, "status": _as_patch(old, status)}
            where = (namespace_of(deployment), name_of(deployment))
            view.patch("Deployment", *where, patch, subresource="status")
        return again


def _keys_of_controller(obj: Json, kind: str) -> Iterable[str]:
    owner = controller_of(obj)
    if owner is None or owner.get("kind") != kind:
        return ()
    return (key_of(namespace_of(obj), str(owner.get("name"))),)


def _as_patch(old: Json, new: Json) -> Json:
    """A merge patch that makes `new` of `old`, field by field."""
    return {**new, **{gone: None for gone in old if gone not in new}}


def _wanted(deployment: Json) -> int:
    return int(deployment["spec"].get("replicas", 1))


def _recreates(deployment: Json) -> bool:
    return bool((deployment["spec"].get("strategy") or {}).get("type") == "Recreate")


def _size(of: Json) -> int:
    return int(of["spec"].get("replicas", 1))


def _available(of: Json) -> int:
    return int((of.get("status") or {}).get("availableReplicas") or 0)


def _revision(of: Json) -> int:
    try:
        return int((of["metadata"].get("annotations") or {}).get(REVISION) or 0)
    except ValueError:
        return 0


def _template(obj: Json) -> Json:
    """Its pod template without the label by which sets are told apart."""
    template: Json = obj["spec"].get("template") or {}
    metadata = template.get("metadata") or {}
    labels = {k: v for k, v in (metadata.get("labels") or {}).items() if k != HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _serves(of: Json, deployment: Json) -> bool:
    return _template(of) == _template(deployment)


def _template_hash(template: Json, collisions: int) -> str:
    text = json.dumps([template, collisions], sort_keys=True)
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    letters = []
    for _ in range(10):
        number, digit = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[digit])
    return "".join(letters)


def _new_set(deployment: Json, sets: list[Json], collisions: int) -> Json:
    template = clone(_template(deployment))
    suffix = _template_hash(template, collisions)
    template["metadata"]["labels"][HASH_LABEL] = suffix
    spec, annotations = deployment["spec"], deployment["metadata"].get("annotations") or {}
    selector = clone(spec.get("selector") or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: suffix}
    wanted = _wanted(deployment)
    body: Json = {
        "metadata": {
            "name": f"{name_of(deployment)}-{suffix}",
            "namespace": namespace_of(deployment),
            "labels": dict(template["metadata"]["labels"]),
            "annotations": {
                **{k: v for k, v in annotations.items() if k not in _OWN_ANNOTATIONS},
                _DESIRED: str(wanted),
                _MOST: str(wanted + limits_of(deployment).surge),
                REVISION: str(max(map(_revision, sets), default=0) + 1),
            },
            "ownerReferences": [controller_reference(deployment)],
        },
        "spec": {"selector": selector, "template": template},
    }
    if spec.get("minReadySeconds"):
        body["spec"]["minReadySeconds"] = spec["minReadySeconds"]
    return body


def _counts(deployment: Json, sets: list[Json], new: Json | None) -> dict[str, int]:
    def total(field: str) -> int:
        return sum(int((s.get("status") or {}).get(field) or 0) for s in sets)

    wanted_by_sets = sum(map(_size, sets))
    available = total("availableReplicas")
    return {
        "observedGeneration": int(deployment["metadata"].get("generation") or 0),
        "replicas": total("replicas"),
        "updatedReplicas": int(((new or {}).get("status") or {}).get("replicas") or 0),
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, wanted_by_sets - available),
        "terminatingReplicas": total("terminatingReplicas"),
    }


def _is_complete(deployment: Json, new: Json | None, sets: list[Json]) -> bool:
    counts, wanted = _counts(deployment, sets, new), _wanted(deployment)
    return (
        counts["updatedReplicas"] == wanted
        and counts["replicas"] == wanted
        and counts["availableReplicas"] == wanted
    )


def _status(
    deployment: Json, sets: list[Json], new: Json | None, now: float
) -> tuple[Json, float | None]:
    old = deployment.get("status") or {}
    counts = _counts(deployment, sets, new)
    status: dict[str, Any] = {k: v for k, v in counts.items() if v}
    if old.get("collisionCount"):
        status["collisionCount"] = old["collisionCount"]
    conditions = _with_available(deployment, old.get("conditions") or [], counts, now)
    conditions, again = _with_progress(deployment, conditions, counts, new, sets, now)
    status["conditions"] = conditions
    return status, again


def _with_available(
    deployment: Json, conditions: list[Json], counts: dict[str, int], now: float
) -> list[Json]:
    enough = counts["availableReplicas"] >= _wanted(deployment) - limits_of(deployment).unavailable
    words = (
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        if enough
        else (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    )
    return set_condition(conditions, "Available", *words, timestamp(now), updated=True)


def _with_progress(
    deployment: Json,
    conditions: list[Json],
    counts: dict[str, int],
    new: Json | None,
    sets: list[Json],
    now: float,
) -> tuple[list[Json], float | None]:
    old = next((c for c in conditions if c.get("type") == "Progressing"), None)
    if new is None:
        return conditions, None
    name = f'ReplicaSet "{name_of(new)}"'
    at = timestamp(now)
    if _is_complete(deployment, new, sets):
        note = f"{name} has successfully progressed."
        return set_condition(
            conditions, "Progressing", "True", "NewReplicaSetAvailable", note, at, updated=True
        ), None
    moved = _progressed(deployment.get("status") or {}, counts)
    if old is None or moved or (old["reason"] == "NewReplicaSetAvailable"):
        rest = [c for c in conditions if c is not old]
        note = f"{name} is progressing."
        entry = set_condition(
            rest, "Progressing", "True", "ReplicaSetUpdated", note, at, updated=True
        )
        return entry, _deadline(deployment, now)
    due = _deadline(deployment, parse_time(old["lastUpdateTime"]))
    if due is None or now < due or deployment["spec"].get("paused"):
        return conditions, due if due is not None and now < due else None
    note = f"{name} has timed out progressing."
    return set_condition(
        conditions, "Progressing", "False", "ProgressDeadlineExceeded", note, at, updated=True
    ), None


def _progressed(before: Json, counts: dict[str, int]) -> bool:
    def was(field: str) -> int:
        return int(before.get(field) or 0)

    old_pods = was("replicas") - was("updatedReplicas")
    return (
        counts["updatedReplicas"] > was("updatedReplicas")
        or counts["replicas"] - counts["updatedReplicas"] < old_pods
        or counts["readyReplicas"] > was("readyReplicas")
        or counts["availableReplicas"] > was("availableReplicas")
    )


def _deadline(deployment: Json, since: float) -> float | None:
    seconds = deployment["spec"].get("progressDeadlineSeconds", 600)
    return since + int(seconds) if int(seconds) < 2**31 - 1 else None
