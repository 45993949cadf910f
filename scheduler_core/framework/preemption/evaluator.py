"""Evaluator: which nodes would fit a pod if pods of lower priority left, and which is the best.

Nothing is changed in here: every node is tried on clones of its NodeInfo and of the CycleState.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from scheduler_core.api import Pod, PodDisruptionBudget
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.interface import Handle, PreemptionExtender
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import Bool, NodeInfos, Rows
from scheduler_core.framework.preemption.importance import (
    best_candidate,
    most_important_first,
    split_by_budget,
)
from scheduler_core.framework.status import (
    SUCCESS,
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from scheduler_core.framework.types import Candidate, Diagnosis, FitError, NominatingInfo

__all__ = ["DISRUPTION_TARGET", "PREEMPTION_BY_SCHEDULER", "Evaluator", "Preemption"]

DISRUPTION_TARGET: Final = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER: Final = "PreemptionByScheduler"

NEVER: Final = "not eligible due to preemptionPolicy=Never."
STILL_TERMINATING: Final = "not eligible due to a terminating pod on the nominated node."
NO_VICTIMS: Final = unresolvable("No preemption victims found for incoming pod")
NOT_HELPFUL: Final = unresolvable("Preemption is not helpful for scheduling")

#: A priority above every pod's: "nobody runs here".
_NOBODY: Final = 2**62


@dataclass(frozen=True, slots=True)
class Preemption:
    """What preemption would do for a pod.

    Attributes:
        status: Success where a node was found, else Unschedulable or Error.
        nominating: what becomes of the pod's nomination.
        candidates: every node that was found, those without broken budgets first.
        chosen: the candidate to evict on.
    """

    status: Status
    nominating: NominatingInfo = NominatingInfo()
    candidates: tuple[Candidate, ...] = ()
    chosen: Candidate | None = None


class Evaluator:
    """kube-scheduler 1.36, framework/preemption, with DefaultPreemption's rules.

    Args:
        candidates_wanted: number of potential nodes -> how many candidates are enough.
        offset: number of potential nodes -> the one to begin with.
    """

    def __init__(
        self,
        handle: Handle,
        candidates_wanted: Callable[[int], int],
        offset: Callable[[int], int],
    ) -> None:
        self._handle = handle
        self._candidates_wanted = candidates_wanted
        self._offset = offset
        self._pods = handle.informer("Pod")
        self._budgets = handle.informer("PodDisruptionBudget")

    def preempt(self, state: CycleState, pod: Pod, statuses: NodeStatuses) -> Preemption:
        """Look for room for ``pod``. ``statuses``: one row per node, as Filter left them."""
        # 1. The pod as it is by now.
        latest: Pod | None = self._pods.get(pod.key)
        if latest is None:
            return Preemption(error(f'pod "{pod.name}" not found'))
        # 2. May it?
        reason = self._why_not(latest, statuses)
        if reason:
            return Preemption(unschedulable(reason))
        # 3. Where could it?
        dry_run = _DryRun(self._handle, state, latest, self._budgets.list())
        potential = statuses.rows_with(Code.UNSCHEDULABLE)
        candidates = self._find(dry_run, potential)
        if not candidates and dry_run.errors:
            return Preemption(error(_aggregate(dry_run.errors)))
        if not candidates:
            text = FitError(latest, len(statuses), Diagnosis(dry_run.statuses)).message
            return Preemption(unschedulable(text), NominatingInfo("", override=True))
        # 4. What do the extenders say?
        candidates, status = self._ask_extenders(latest, candidates)
        if not status.is_success:
            return Preemption(status)
        if not candidates:
            return Preemption(unschedulable("no candidate node for preemption"))
        # 5. The best.
        chosen = best_candidate(candidates, self._handle.clock.now)
        nominating = NominatingInfo(chosen.node, override=True)
        return Preemption(SUCCESS, nominating, tuple(candidates), chosen)

    # -- may it? -----------------------------------------------------------------------------------

    def _why_not(self, pod: Pod, statuses: NodeStatuses) -> str:
        """Why the pod may not preempt, or ""."""
        if pod.preemption_policy == "Never":
            return NEVER
        if not pod.nominated_node_name:
            return ""
        nodes = self._handle.nodes
        row = nodes.index_of(pod.nominated_node_name)
        if row < 0 or statuses[row].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return ""
        if any(p.priority < pod.priority and _is_being_preempted(p) for p in nodes[row].pods):
            return STILL_TERMINATING
        return ""

    # -- where could it? ---------------------------------------------------------------------------

    def _find(self, dry_run: _DryRun, potential: Rows) -> list[Candidate]:
        """Candidates without broken budgets, then those with; the search ends as soon as there is
        one of the former and enough of both."""
        count = len(potential)
        if not count:
            return []
        wanted = self._candidates_wanted(count)
        sound: list[Candidate] = []
        broken: list[Candidate] = []
        for row in dry_run.with_victims(np.roll(potential, -self._offset(count))):
            candidate = dry_run.try_node(int(row))
            if candidate is None:
                continue
            group = broken if candidate.pdb_violations else sound
            if len(group) < wanted:
                group.append(candidate)
            if sound and len(sound) + len(broken) >= wanted:
                break
        return sound + broken

    # -- extenders ---------------------------------------------------------------------------------

    def _ask_extenders(
        self, pod: Pod, candidates: list[Candidate]
    ) -> tuple[list[Candidate], Status]:
        """What extenders with a preempt verb leave of the candidates."""
        by_node = {candidate.node: candidate for candidate in candidates}
        for extender in self._handle.preemption_extenders:
            if not by_node:
                break
            if not extender.is_interested(pod):
                continue
            try:
                by_node = _answer_of(extender, pod, by_node, self._handle.nodes)
            except Exception as exc:  # noqa: BLE001 - whatever an extender does ends as a status
                if not extender.is_ignorable:
                    return [], error(exc)
        return list(by_node.values()), SUCCESS


def _answer_of(
    extender: PreemptionExtender, pod: Pod, by_node: dict[str, Candidate], nodes: NodeInfos
) -> dict[str, Candidate]:
    answer = dict(extender.process_preemption(pod, by_node, nodes))
    for name in [name for name, candidate in answer.items() if not candidate.victims]:
        if not extender.is_ignorable:
            raise ValueError(f'expected at least one victim pod on node "{name}"')
        del answer[name]
    return answer


@dataclass(slots=True)
class _DryRun:
    """Tries nodes for one pod, and remembers why each of them would not do.

    ``statuses`` has the nodes that were tried in vain; for all others preemption is not helpful.
    """

    handle: Handle
    state: CycleState
    pod: Pod
    budgets: Sequence[PodDisruptionBudget]
    statuses: NodeStatuses = field(init=False)
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.statuses = NodeStatuses(len(self.handle.nodes))
        self.statuses.ids[:] = NodeStatuses.ABSENT
        self.statuses.absent_status = NOT_HELPFUL

    def with_victims(self, rows: Rows) -> Rows:
        """Those of ``rows`` with pods of lower priority; the others are noted as hopeless."""
        hopeful = self._has_lower_priority()[rows]
        self.statuses.ids[rows[~hopeful]] = self.statuses.intern(NO_VICTIMS)
        return rows[hopeful]

    def _has_lower_priority(self) -> Bool:
        codes, values = self.handle.nodes.derived("Preemption.lowest_priority", _lowest_priority)
        lowest = np.array([*values, _NOBODY], dtype=np.int64)[codes]
        return np.asarray(lowest < self.pod.priority)

    def try_node(self, row: int) -> Candidate | None:
        """The candidate that the node makes, or None."""
        info = self.handle.nodes[row].clone()
        victims, violations, status = self._select_victims(self.state.clone(), info)
        if status.is_success and not victims:
            status = error(f'expected at least one victim pod on node "{info.name}"')
        if status.is_success:
            return Candidate(info.name, tuple(victims), violations)
        if status.code is Code.ERROR:
            self.errors.append(status.message)
        self.statuses.ids[row] = self.statuses.intern(status)
        return None

    def _select_victims(self, state: CycleState, info: NodeInfo) -> tuple[list[Pod], int, Status]:
        """The fewest pods that have to go (kube-scheduler 1.36, SelectVictimsOnNode): take off all
        of lower priority, then put them back as long as the pod still fits, those under a broken
        budget first, the more important ones first."""
        potential = [p for p in info.pods if p.priority < self.pod.priority]
        for victim in potential:
            status = self._remove(state, info, victim)
            if not status.is_success:
                return [], 0, status
        if not potential:
            return [], 0, NO_VICTIMS
        status = self._fits(state, info)
        if not status.is_success:
            return [], 0, status
        now = self.handle.clock.now
        violating, others = split_by_budget(most_important_first(potential, now), self.budgets)
        victims: list[Pod] = []
        violations = 0
        for i, victim in enumerate([*violating, *others]):
            status, stays = self._reprieve(state, info, victim)
            if not status.is_success:
                return [], 0, status
            if not stays:
                victims.append(victim)
                violations += i < len(violating)
        if violating and others:
            victims = most_important_first(victims, now)
        return victims, violations, SUCCESS

    def _reprieve(self, state: CycleState, info: NodeInfo, victim: Pod) -> tuple[Status, bool]:
        """Put a pod back; whether it may stay."""
        info.add_pod(victim)
        status = self.handle.run_pre_filter_extension_add_pod(state, self.pod, victim, info)
        if not status.is_success:
            return status, False
        if self._fits(state, info).is_success:
            return SUCCESS, True
        return self._remove(state, info, victim), False

    def _remove(self, state: CycleState, info: NodeInfo, victim: Pod) -> Status:
        info.remove_pod(victim)
        return self.handle.run_pre_filter_extension_remove_pod(state, self.pod, victim, info)

    def _fits(self, state: CycleState, info: NodeInfo) -> Status:
        return self.handle.run_filter_plugins_with_nominated_pods(state, self.pod, info)


def _lowest_priority(info: NodeInfo) -> int | None:
    return min((pod.priority for pod in info.pods), default=None)


def _is_being_preempted(pod: Pod) -> bool:
    """Terminating because a scheduler wanted its place; leaving by itself does not count."""
    condition = pod.condition(DISRUPTION_TARGET)
    if not pod.is_terminating or condition is None:
        return False
    return (condition.status, condition.reason) == ("True", PREEMPTION_BY_SCHEDULER)


def _aggregate(errors: Sequence[str]) -> str:
    """Several errors as one text, each once."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
