"""PodDisruptionBudget: how many pods may be disrupted now (kube-controller-manager 1.36)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from scheduler_core.api.errors import InvalidObject
from scheduler_core.api.kinds import KINDS
from scheduler_core.api.reader import parse_time
from scheduler_core.ports import Json, WatchEvent

from ..objects import key_of, labels_of, name_of, namespace_of, timestamp, uid_of
from ..sandbox import ActingView
from .index import Index, controller_of
from .pods import has_ended, is_leaving, is_ready, set_condition
from .rollout import percent_or_number
from .telling import tell

__all__ = ["DisruptionController"]

#: an eviction that was allowed and did not happen within this is forgotten
_EVICTION_SECONDS: Final = 120.0
_SCALED: Final = ("ReplicaSet", "Deployment", "ReplicationController", "StatefulSet")


class DisruptionController:
    """Keeps the counts of every budget's status."""

    actor = "disruption-controller"
    kinds: Sequence[str] = ("PodDisruptionBudget", "Pod", *_SCALED)

    def __init__(self, index: Index) -> None:
        self._index = index

    def affected(self, event: WatchEvent, before: Json | None) -> Iterable[str]:
        namespace = namespace_of(event.object)
        if event.kind == "PodDisruptionBudget":
            return (key_of(namespace, name_of(event.object)),)
        if not self._index.has_any("PodDisruptionBudget", namespace):
            return ()
        budgets = self._index.in_namespace("PodDisruptionBudget", namespace)
        if event.kind != "Pod":
            return [key_of(namespace, name_of(budget)) for budget in budgets]
        seen = [event.object] if before is None else [event.object, before]
        return [
            key_of(namespace, name_of(budget))
            for budget in budgets
            if any(_selects(budget, pod) for pod in seen)
        ]

    def reconcile(self, view: ActingView, key: str, now: float) -> float | None:
        budget = self._index.get("PodDisruptionBudget", key)
        if budget is None:
            return None
        pods = [
            pod
            for pod in self._index.in_namespace("Pod", namespace_of(budget))
            if not has_ended(pod) and _selects(budget, pod)
        ]
        old = budget.get("status") or {}
        evicted, again = _still_evicted(old.get("disruptedPods") or {}, pods, now)
        try:
            expected, desired = self._expected(budget, pods)
        except _NoScale as problem:
            status = _failed(old, str(problem), now)
            tell(view, budget, "CalculateExpectedPodCountFailed", str(problem), warning=True)
        else:
            healthy = sum(_is_healthy(pod, evicted) for pod in pods)
            status = _status(budget, expected, desired, healthy, evicted, now)
        if status != old:
            gone = {field: None for field in old if field not in status}
            for name in old.get("disruptedPods") or {}:
                if name not in evicted and "disruptedPods" in status:
                    status["disruptedPods"] = {**status["disruptedPods"], name: None}
            patch = {"metadata": {"uid": uid_of(budget)}, "status": {**status, **gone}}
            where = (namespace_of(budget), name_of(budget))
            view.patch("PodDisruptionBudget", *where, patch, subresource="status")
        return again

    def _expected(self, budget: Json, pods: list[Json]) -> tuple[int, int]:
        """How many pods there should be, and how many of them must stay healthy."""
        spec = budget["spec"]
        if spec.get("maxUnavailable") is not None:
            expected = self._scale(pods)
            most = percent_or_number(spec["maxUnavailable"], expected, round_up=True)
            return expected, max(0, expected - most)
        least = spec.get("minAvailable")
        if isinstance(least, str):
            expected = self._scale(pods)
            return expected, percent_or_number(least, expected, round_up=True)
        return len(pods), int(least if least is not None else 1)

    def _scale(self, pods: list[Json]) -> int:
        """The pods that the owners of these pods want together."""
        wanted: dict[str, int] = {}
        for pod in pods:
            owner = self._scaled_owner(pod)
            wanted[uid_of(owner)] = int(owner["spec"].get("replicas", 1))
        return sum(wanted.values())

    def _scaled_owner(self, pod: Json) -> Json:
        """The Deployment of a ReplicaSet, else the controller itself.

        Raises:
            _NoScale: the pod's controller is none that can be scaled.
        """
        owner: Json | None = pod
        scaled = None
        while owner is not None:
            reference = controller_of(owner)
            if reference is None or reference.get("kind") not in _SCALED:
                break
            key = key_of(namespace_of(pod), str(reference.get("name")))
            owner = self._index.get(str(reference["kind"]), key)
            scaled = owner or scaled
        if scaled is None:
            raise _NoScale(f"found no controllers for pod {name_of(pod)!r}")
        return scaled


class _NoScale(Exception):
    """The pods of a budget have no number of replicas to compare with."""


def _selects(budget: Json, pod: Json) -> bool:
    try:
        selector = KINDS["PodDisruptionBudget"].parse(budget).selector  # type: ignore[attr-defined]
    except InvalidObject:
        return False
    return selector is not None and bool(selector.matches(labels_of(pod)))


def _is_healthy(pod: Json, evicted: Json) -> bool:
    return is_ready(pod) and not is_leaving(pod) and name_of(pod) not in evicted


def _still_evicted(
    evicted: Json, pods: list[Json], now: float
) -> tuple[dict[str, Any], float | None]:
    """Evictions that were allowed and have not happened yet; when the first is given up."""
    present = {name_of(pod) for pod in pods if not is_leaving(pod)}
    kept = {
        name: at
        for name, at in evicted.items()
        if name in present and parse_time(at) + _EVICTION_SECONDS > now
    }
    again = min((parse_time(at) + _EVICTION_SECONDS for at in kept.values()), default=None)
    return kept, again


def _status(
    budget: Json, expected: int, desired: int, healthy: int, evicted: dict[str, Any], now: float
) -> Json:
    allowed = max(0, healthy - desired) if expected > 0 else 0
    reason = "SufficientPods" if allowed else "InsufficientPods"
    generation = int(budget["metadata"].get("generation") or 0)
    old = (budget.get("status") or {}).get("conditions") or []
    conditions = set_condition(
        old, "DisruptionAllowed", "True" if allowed else "False", reason, "", timestamp(now)
    )
    status: Json = {
        "conditions": [
            {**c, "observedGeneration": generation} if c["type"] == "DisruptionAllowed" else c
            for c in conditions
        ],
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "disruptionsAllowed": allowed,
        "expectedPods": expected,
        "observedGeneration": generation,
    }
    if evicted:
        status["disruptedPods"] = evicted
    return status


def _failed(old: Json, why: str, now: float) -> Json:
    """Nothing may be disrupted while it is not known how much may be."""
    conditions = set_condition(
        old.get("conditions") or [], "DisruptionAllowed", "False", "SyncFailed", why, timestamp(now)
    )
    return {**old, "disruptionsAllowed": 0, "conditions": conditions}
