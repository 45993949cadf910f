"""Which pod matters more, which budgets protect it, and which node is the best to clear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from scheduler_core.api import Pod, PodDisruptionBudget
from scheduler_core.framework.preemption.go_sort import go_sorted
from scheduler_core.framework.types import Candidate

__all__ = ["best_candidate", "most_important_first", "split_by_budget"]

#: Makes every priority count as positive, so that few victims beat many of negative priority.
_PRIORITY_OFFSET: Final = 2**31


def most_important_first(pods: Sequence[Pod], now: Callable[[], float]) -> list[Pod]:
    """Higher priority first, then the longer running one (kube-scheduler 1.36, MoreImportantPod).

    Pods without a start time begin "now", which is later each time it is asked: such a pod comes
    before every other one of them that it is compared with.
    """

    def more_important(a: Pod, b: Pod) -> bool:
        if a.priority != b.priority:
            return a.priority > b.priority
        if a.start_time is None:
            return b.start_time is None or now() < b.start_time
        return a.start_time < (now() if b.start_time is None else b.start_time)

    return go_sorted(list(pods), more_important)


def split_by_budget(
    pods: Sequence[Pod], budgets: Sequence[PodDisruptionBudget]
) -> tuple[list[Pod], list[Pod]]:
    """(pods whose eviction breaks a PodDisruptionBudget, the others), in the given order.

    A budget is used up by the pods that come first (kube-scheduler 1.36,
    filterPodsWithPDBViolation), whether or not they end up as victims.
    """
    allowed = [budget.disruptions_allowed for budget in budgets]
    violating: list[Pod] = []
    others: list[Pod] = []
    for pod in pods:
        broken = False
        for i, budget in enumerate(budgets):
            if _protects(budget, pod):
                allowed[i] -= 1
                broken = broken or allowed[i] < 0
        (violating if broken else others).append(pod)
    return violating, others


def _protects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    selector = budget.selector
    if budget.namespace != pod.namespace or selector is None or selector.is_empty:
        return False
    # Without labels a pod is under no budget, whatever the selector says.
    if not pod.labels or pod.name in budget.disrupted_pods:
        return False
    return selector.matches(pod.labels)


def best_candidate(candidates: Sequence[Candidate], now: Callable[[], float]) -> Candidate:
    """The node that hurts least (kube-scheduler 1.36, pickOneNodeForPreemption): fewest broken
    budgets; least important worst victim; smallest sum of priorities; fewest victims; the most
    important ones started last. Of equals the first; the reference takes any."""

    def cost(candidate: Candidate) -> tuple[int, int, int, int, float]:
        victims = candidate.victims
        return (
            candidate.pdb_violations,
            victims[0].priority,
            sum(pod.priority + _PRIORITY_OFFSET for pod in victims),
            len(victims),
            -_earliest_start(victims, now),
        )

    return min(candidates, key=cost)


def _earliest_start(victims: Sequence[Pod], now: Callable[[], float]) -> float:
    highest = max(pod.priority for pod in victims)
    return min(
        now() if pod.start_time is None else pod.start_time
        for pod in victims
        if pod.priority == highest
    )
