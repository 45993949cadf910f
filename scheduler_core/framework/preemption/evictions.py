"""Evictions: the pods of the chosen node leave, beside the scheduling loop.

All state belongs to the scheduler thread; only the calls to the API run elsewhere.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from scheduler_core.api import Pod
from scheduler_core.framework.interface import Handle
from scheduler_core.framework.preemption.evaluator import (
    DISRUPTION_TARGET,
    PREEMPTION_BY_SCHEDULER,
)
from scheduler_core.framework.types import Candidate
from scheduler_core.ports import Cluster, Conflict, NotFound, PodCondition

__all__ = ["Evictions"]

log = logging.getLogger(__name__)

IN_MEMORY: Final = " (in kube-scheduler memory)."


@dataclass(slots=True, eq=False)
class _Eviction:
    """One preemptor's eviction.

    Attributes:
        pending: calls under way.
        at_last_victim: the others have been evicted; it is enough to look at that one.
        broken: a victim could not be evicted, so the last one is left alone.
        try_again: the preemptor is to be activated at the end.
    """

    preemptor: Pod
    node: str
    victims: list[Pod]
    pending: int = 0
    broken: bool = False
    try_again: bool = False
    at_last_victim: bool = False


class Evictions:
    """The evictions that one plugin has under way, by the preemptor's uid (kube-scheduler 1.36,
    asynchronous preemption).

    First the nominations of pods of lower priority are cleared and all victims but one evicted at
    once, then, unless that failed, the last one. After a failure the preemptor is tried again.
    """

    def __init__(self, plugin: str, handle: Handle) -> None:
        self._plugin = plugin
        self._handle = handle
        self._pods = handle.informer("Pod")
        self._running: dict[str, _Eviction] = {}

    def is_running(self, preemptor_uid: str) -> bool:
        """Whether that pod has to wait until its victims are evicted."""
        eviction = self._running.get(preemptor_uid)
        if eviction is None:
            return False
        if not eviction.at_last_victim:
            return True
        last = eviction.victims[-1]
        known: Pod | None = self._pods.get(last.key)
        return known is not None and known.uid == last.uid and not known.is_terminating

    def start(self, candidate: Candidate, preemptor: Pod) -> None:
        """Evict the candidate's victims; those that are on their way out already are left alone."""
        victims = [pod for pod in candidate.victims if not pod.is_terminating]
        if not victims:
            return
        eviction = _Eviction(preemptor, candidate.node, victims)
        self._running[preemptor.uid] = eviction
        # Held open until everything is handed out, should a call end at once.
        eviction.pending = 1
        for pod in self._nominated_below(preemptor, candidate.node):
            self._call(eviction, pod, _clear_nomination, self._nomination_cleared)
        for victim in victims[:-1]:
            self._evict(eviction, victim)
        self._one_done(eviction)

    def _nominated_below(self, preemptor: Pod, node: str) -> list[Pod]:
        nominated = self._handle.nominator.nominated_pods_for_node(node)
        return [p for p in nominated if p.priority < preemptor.priority and p.nominated_node_name]

    # -- one pod -----------------------------------------------------------------------------------

    def _evict(self, eviction: _Eviction, victim: Pod) -> None:
        if self._evict_in_memory(victim):
            self._tell(eviction, victim, IN_MEMORY)
            return
        message = (
            f"{eviction.preemptor.scheduler_name}: preempting to accommodate a higher priority pod"
        )
        call = partial(_evict_by_api, message=message)
        self._call(eviction, victim, call, self._evicted)

    def _evict_in_memory(self, victim: Pod) -> bool:
        """A pod that this scheduler has not bound yet only loses its turn."""
        waiting = self._handle.get_waiting_pod(victim.uid)
        if waiting is not None:
            waiting.preempt(self._plugin, "preempted")
            return True
        return self._handle.cancel_pre_bind(victim.uid, f"preempted by {self._plugin}")

    def _call(
        self,
        eviction: _Eviction,
        pod: Pod,
        call: Callable[[Cluster, Pod], bool],
        then: Callable[[_Eviction, Pod, bool | Exception], None],
    ) -> None:
        eviction.pending += 1
        self._handle.run_in_background(
            pod.uid,
            lambda: _attempt(call, self._handle.cluster, pod),
            lambda outcome: then(eviction, pod, outcome),
        )

    # -- what came of it ---------------------------------------------------------------------------

    def _nomination_cleared(self, eviction: _Eviction, pod: Pod, outcome: bool | Exception) -> None:
        if isinstance(outcome, Exception):
            log.warning("the nomination of pod %s cannot be cleared: %s", pod.key, outcome)
            eviction.try_again = True
        self._one_done(eviction)

    def _evicted(self, eviction: _Eviction, victim: Pod, outcome: bool | Exception) -> None:
        if isinstance(outcome, Exception):
            log.warning(
                "pod %s cannot be evicted for pod %s: %s",
                victim.key,
                eviction.preemptor.key,
                outcome,
            )
            eviction.try_again = eviction.broken = True
        elif outcome:
            self._tell(eviction, victim)
        elif eviction.at_last_victim:
            # Its leaving was seen while the preemptor was held; nothing else would wake it.
            eviction.try_again = True
        self._one_done(eviction)

    def _tell(self, eviction: _Eviction, victim: Pod, how: str = "") -> None:
        self._handle.emit_event(
            victim,
            type="Normal",
            reason="Preempted",
            action="Preempting",
            note=f"Preempted by pod {eviction.preemptor.uid} on node {eviction.node}{how}",
        )

    def _one_done(self, eviction: _Eviction) -> None:
        eviction.pending -= 1
        if eviction.pending:
            return
        if not eviction.at_last_victim and not eviction.broken:
            eviction.at_last_victim = True
            eviction.pending = 1
            self._evict(eviction, eviction.victims[-1])
            self._one_done(eviction)
            return
        self._finish(eviction)

    def _finish(self, eviction: _Eviction) -> None:
        preemptor = eviction.preemptor
        if self._running.get(preemptor.uid) is eviction:
            del self._running[preemptor.uid]
        if eviction.try_again:
            self._handle.activate({preemptor.key: preemptor})


# -- calls; these run beside the loop --------------------------------------------------------------


def _attempt(call: Callable[[Cluster, Pod], bool], cluster: Cluster, pod: Pod) -> bool | Exception:
    try:
        return call(cluster, pod)
    except Exception as exc:  # noqa: BLE001 - lost, it would keep the preemptor waiting for ever
        return exc


def _evict_by_api(cluster: Cluster, victim: Pod, *, message: str) -> bool:
    """Say why, then delete; False where the pod had left by itself."""
    condition = PodCondition(DISRUPTION_TARGET, "True", PREEMPTION_BY_SCHEDULER, message)
    try:
        cluster.patch_pod_status(victim.namespace, victim.name, victim.uid, condition=condition)
        cluster.delete("Pod", victim.namespace, victim.name, uid=victim.uid)
    except (NotFound, Conflict):  # gone, or gone and another of its name is here
        return False
    return True


def _clear_nomination(cluster: Cluster, pod: Pod) -> bool:
    try:
        cluster.patch_pod_status(pod.namespace, pod.name, pod.uid, nominated_node_name="")
    except (NotFound, Conflict):
        return False
    return True
