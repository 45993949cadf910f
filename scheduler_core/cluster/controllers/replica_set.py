"""ReplicaSet: keeps so many pods alive (kube-controller-manager 1.36, replicaset controller)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from scheduler_core.api.reader import parse_time
from scheduler_core.ports import ApiError, Json, WatchEvent

from ..objects import key_of, labels_of, name_of, namespace_of, timestamp, uid_of
from ..sandbox import ActingView
from .adoption import adopt, orphans
from .index import Index, controller_of
from .pods import (
    has_ended,
    is_active,
    is_leaving,
    is_ready,
    pod_from_template,
    ready_since,
    set_condition,
    worth_deleting_first,
)
from .telling import tell

__all__ = ["ReplicaSetController", "available_pods"]

#: pods made or deleted for one set in one turn
_BURST: Final = 500


def available_pods(
    pods: Iterable[Json], min_ready_seconds: int, now: float
) -> tuple[int, float | None]:
    """How many have been ready for long enough; when the next will have been, if one is waiting."""
    count, next_at = 0, None
    for pod in pods:
        since = ready_since(pod)
        if not since:
            continue
        at = parse_time(since) + min_ready_seconds if min_ready_seconds else now
        if at <= now:
            count += 1
        elif next_at is None or at < next_at:
            next_at = at
    return count, next_at


class ReplicaSetController:
    """Makes missing pods, deletes surplus ones, counts them in the status."""

    actor = "replicaset-controller"
    kinds: Sequence[str] = ("ReplicaSet", "Pod")

    def __init__(self, index: Index) -> None:
        self._index = index

    def affected(self, event: WatchEvent, before: Json | None) -> Iterable[str]:
        if event.kind == "ReplicaSet":
            return (key_of(namespace_of(event.object), name_of(event.object)),)
        owner = controller_of(event.object)
        if owner is None or owner.get("kind") != "ReplicaSet":
            return ()
        return (key_of(namespace_of(event.object), str(owner.get("name"))),)

    def reconcile(self, view: ActingView, key: str, now: float) -> float | None:
        found = self._index.get("ReplicaSet", key)
        if found is None:
            return None
        pods = self._index.controlled_by(found, "Pod")
        active = [pod for pod in pods if is_active(pod)]
        refused = self._replicate(view, found, active) if not is_leaving(found) else None
        return self._count(view, found, pods, active, refused, now)

    def _replicate(self, view: ActingView, owner: Json, active: list[Json]) -> ApiError | None:
        missing = int(owner["spec"].get("replicas", 1)) - len(active)
        if missing > 0:
            missing -= self._adopt(view, owner, missing)
            return self._create(view, owner, min(missing, _BURST))
        for pod in worth_deleting_first(active)[: min(-missing, _BURST)]:
            self._delete(view, owner, pod)
        return None

    def _adopt(self, view: ActingView, owner: Json, missing: int) -> int:
        """Take over pods that belong to nobody before new ones are made; how many.

        The reference adopts also where nothing is missing, and deletes the surplus: in a sandbox
        that would end pods that somebody has just imported.
        """
        found = [pod for pod in orphans(self._index, owner, "Pod") if is_active(pod)][:missing]
        for pod in found:
            adopt(view, owner, pod)
        return len(found)

    def _create(self, view: ActingView, owner: Json, count: int) -> ApiError | None:
        template = owner["spec"].get("template") or {}
        for _ in range(count):
            try:
                pod = view.create("Pod", pod_from_template(owner, template))
            except ApiError as refusal:
                if refusal.code >= 500 or refusal.code == 404:
                    raise
                tell(view, owner, "FailedCreate", f"Error creating: {refusal}", warning=True)
                return refusal
            tell(view, owner, "SuccessfulCreate", f"Created pod: {name_of(pod)}")
        return None

    def _delete(self, view: ActingView, owner: Json, pod: Json) -> None:
        try:
            view.delete("Pod", namespace_of(pod), name_of(pod), uid=uid_of(pod))
        except ApiError as refusal:
            if refusal.code not in (404, 409):
                raise
            return
        tell(view, owner, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")

    def _count(
        self,
        view: ActingView,
        owner: Json,
        pods: list[Json],
        active: list[Json],
        refused: ApiError | None,
        now: float,
    ) -> float | None:
        old = owner.get("status") or {}
        template = owner["spec"].get("template") or {}
        wanted = (template.get("metadata") or {}).get("labels") or {}
        available, again = available_pods(
            active, int(owner["spec"].get("minReadySeconds") or 0), now
        )
        labeled = sum(1 for pod in active if wanted.items() <= labels_of(pod).items())
        counts = {
            "replicas": len(active),
            "fullyLabeledReplicas": labeled,
            "readyReplicas": sum(map(is_ready, active)),
            "availableReplicas": available,
            "terminatingReplicas": sum(is_leaving(p) and not has_ended(p) for p in pods),
            "observedGeneration": int(owner["metadata"].get("generation") or 0),
        }
        # As in Go's JSON: a count of nothing is left out, all but the number of replicas.
        status: Json = {k: v for k, v in counts.items() if v or k == "replicas"}
        conditions = _failure(old.get("conditions") or [], refused, now)
        if conditions:
            status["conditions"] = conditions
        if status != old:
            patched = {**owner, "status": status}
            view.update("ReplicaSet", patched, subresource="status")
        if refused is not None:
            raise refused  # tried again, less and less often
        return again


def _failure(conditions: list[Json], refused: ApiError | None, now: float) -> list[Json]:
    if refused is None:
        return [c for c in conditions if c.get("type") != "ReplicaFailure"]
    return set_condition(
        conditions, "ReplicaFailure", "True", "FailedCreate", str(refused), timestamp(now)
    )
