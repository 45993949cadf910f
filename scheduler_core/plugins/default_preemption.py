"""DefaultPreemption: makes room for a pod that fits nowhere (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from scheduler_core.framework.interface import (
    EnqueueExtensions,
    Handle,
    PostFilterPlugin,
    PreEnqueuePlugin,
)
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.preemption import Evaluator, Evictions
from scheduler_core.framework.status import SUCCESS, Status, unresolvable
from scheduler_core.framework.types import PostFilterResult

__all__ = ["PREEMPTION_STATE", "DefaultPreemption"]

#: Key of the CycleState under which the whole ``Preemption`` is left for those who explain it.
PREEMPTION_STATE: Final = "DefaultPreemption/Preemption"

WAITING: Final = unresolvable("waiting for the preemption for this pod to be finished")


class DefaultPreemption(EnqueueExtensions, PreEnqueuePlugin, PostFilterPlugin):
    """Nominates the pod to the node where evicting pods of lower priority hurts least, and evicts
    them beside the scheduling loop; the pod is held at PreEnqueue meanwhile.

    Args (DefaultPreemptionArgs): ``minCandidateNodesPercentage`` and ``minCandidateNodesAbsolute``:
    the search ends when so many nodes have been found.
    """

    name = "DefaultPreemption"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._percentage = int(args.get("minCandidateNodesPercentage", 10))
        self._absolute = int(args.get("minCandidateNodesAbsolute", 100))
        self._evaluator = Evaluator(handle, self._candidates_wanted, handle.random.randrange)
        self._evictions = Evictions(self.name, handle)

    def _candidates_wanted(self, potential: int) -> int:
        return min(potential, max(potential * self._percentage // 100, self._absolute))

    # -- PostFilter --------------------------------------------------------------------------------

    def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        """Success with a nomination, or why preemption is of no use."""
        found = self._evaluator.preempt(state, pod, statuses)
        preemption = replace(found, status=self._named(found.status))
        state.write(PREEMPTION_STATE, preemption)
        if not preemption.nominating.override:
            return None, preemption.status
        victims: tuple[Pod, ...] = ()
        if preemption.chosen is not None:
            victims = preemption.chosen.victims
            self._evictions.start(preemption.chosen, pod)
        keys = tuple(victim.key for victim in victims)
        return PostFilterResult(preemption.nominating, keys), preemption.status

    def _named(self, status: Status) -> Status:
        """Whose text it is, in the status and in the text itself."""
        if not status.message:
            return status
        return replace(status, reasons=(f"preemption: {status.message}",), plugin=self.name)

    # -- PreEnqueue --------------------------------------------------------------------------------

    def pre_enqueue(self, pod: Pod) -> Status:
        """Holds a pod whose victims are still being evicted."""
        return WAITING if self._evictions.is_running(pod.uid) else SUCCESS

    # -- events ------------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """A deleted pod has the queue look at the pods held here again; whether it helps is for the
        plugins to say that rejected them."""
        deleted = ClusterEvent(EventResource.POD, ActionType.DELETE)
        return (ClusterEventWithHint(deleted, _never),)


def _never(_pod: Pod, _old: Any, _new: Any) -> QueueingHint:
    return QueueingHint.SKIP
