"""Judge: decides for another scheduler with one profile's plugins, on the scheduler thread.

Filter runs PreFilter and Filter, prioritize PreFilter, PreScore and Score. Nodes are those of this
scheduler's own cache, with the pods on them; a node that came whole and is another version than the
one known here is taken as it came, with the pods that are known to be on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from scheduler_core.algorithm import ScheduleResult
from scheduler_core.api import Pod
from scheduler_core.backend.cache import Cache
from scheduler_core.backend.snapshot import Snapshot
from scheduler_core.extender_service.args import ExtenderArgs, InvalidArgs, PreemptionArgs
from scheduler_core.extender_service.given_nodes import GivenNodes
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.runtime import filtering
from scheduler_core.framework.runtime.framework import Framework
from scheduler_core.framework.runtime.scoring import NodePluginScores, ScoreColumns
from scheduler_core.framework.status import SUCCESS, Code, Status, error, unschedulable
from scheduler_core.framework.types import QueuedPodInfo
from scheduler_core.pod_cycle import PodCycle
from scheduler_core.ports import Clock
from scheduler_core.records import Outcome

__all__ = ["MAX_PRIORITY", "Advisor", "Judge"]

Json = dict[str, Any]
Rows = NDArray[np.intp]

#: The best score that an extender gives (extender API v1, ``MaxExtenderPriority``).
MAX_PRIORITY: Final = 10
NOT_KNOWN: Final = "the node is not in the extender's cache"
NOT_SYNCED: Final = "the extender has not listed the cluster yet; try again"


@dataclass(frozen=True, slots=True, eq=False)
class _Question:
    """``nodes``: all nodes; ``rows``: of those that are asked about and known, in their order."""

    nodes: NodeInfos
    rows: Rows
    unknown: tuple[str, ...]


class Advisor(Protocol):
    """What a Judge needs of a Scheduler; who only observes will do."""

    @property
    def profiles(self) -> Mapping[str, Framework]: ...
    @property
    def snapshot(self) -> Snapshot: ...
    @property
    def cache(self) -> Cache: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def is_synced(self) -> bool: ...
    def record_advice(self, cycle: PodCycle) -> None: ...


class Judge:
    """The plugins of one profile of a running Scheduler. Every method runs on its thread
    (``Scheduler.ask``), and each decision becomes a CycleRecord.

    Args:
        given: keeps nodes that came whole from one call to the next.

    Raises:
        KeyError: the scheduler has no such profile.
    """

    def __init__(self, scheduler: Advisor, profile: str, given: GivenNodes | None = None) -> None:
        self._scheduler = scheduler
        self._given = given or GivenNodes()
        self._framework: Framework = scheduler.profiles[profile]

    # -- verbs -------------------------------------------------------------------------------------

    def filter(self, args: ExtenderArgs) -> Json:
        """ExtenderFilterResult.

        Raises:
            InvalidArgs: a node cannot be read.
        """
        if not self._scheduler.is_synced:
            return _filter_reply(args, [], {}, {}, NOT_SYNCED)
        cycle = self._begin(args.pod)
        question = self._question(args)
        statuses, overall = self._filter(cycle.state, args.pod, question)
        result = self._filter_result(question, statuses, overall)
        fault = _fault(overall, statuses)
        passed, failed, unresolvable = _verdicts(question, statuses, overall)
        failed |= dict.fromkeys(question.unknown, NOT_KNOWN)
        cycle.result = result
        text = f"filter: {len(passed)} of {len(args.names)} nodes pass"
        if fault:
            self._end(cycle, Outcome.ERROR, fault)
            return _filter_reply(args, [], {}, {}, fault)
        self._end(cycle, Outcome.ADVISED if passed else Outcome.UNSCHEDULABLE, text)
        return _filter_reply(args, passed, failed, unresolvable, "")

    def prioritize(self, args: ExtenderArgs) -> list[Json]:
        """HostPriorityList: 10 for the node with the highest total of the Score plugins, 0 for the
        lowest, the others between them in proportion; 10 for all where all are alike.

        Raises:
            InvalidArgs: a node cannot be read, or a plugin failed.
        """
        if not self._scheduler.is_synced:
            raise InvalidArgs(NOT_SYNCED)
        cycle = self._begin(args.pod)
        question = self._question(args)
        scores, status = self._score(cycle.state, args.pod, question)
        if scores is None:
            self._end(cycle, Outcome.ERROR, status.message)
            raise InvalidArgs(status.message)
        cycle.result = _score_result(question, scores)
        count = len(question.rows)
        if count:
            cycle.node_name = cycle.result.node_name
        self._end(cycle, Outcome.ADVISED, f"prioritize: {count} nodes scored")
        names = [question.nodes.names[row] for row in question.rows.tolist()]
        given = dict(zip(names, _priorities(scores.total), strict=True))
        return [{"Host": name, "Score": given.get(name, 0)} for name in args.names]

    def preempt(self, args: PreemptionArgs) -> Json:
        """ExtenderPreemptionResult: the nodes on which the pod fits, by these plugins too, once the
        victims are gone.

        Raises:
            InvalidArgs: a plugin failed, or the cluster is not known yet.
        """
        if not self._scheduler.is_synced:
            raise InvalidArgs(NOT_SYNCED)
        cycle = self._begin(args.pod)
        nodes = self._scheduler.snapshot.nodes
        outcome = filtering.run_pre_filter(
            self._framework.pre_filter_plugins, cycle.state, args.pod, nodes
        )
        if not outcome.status.is_success and not outcome.status.is_rejected:
            self._end(cycle, Outcome.ERROR, outcome.status.message)
            raise InvalidArgs(outcome.status.message)
        wanted = outcome.result.node_names
        kept: Json = {}
        for name, victims in args.victims.items():
            info = nodes.get(name)
            is_open = outcome.status.code is not Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            if info is None or not is_open or (wanted is not None and name not in wanted):
                continue
            if self._fits_without(cycle.state, args.pod, info, set(victims.uids)):
                kept[name] = {
                    "Pods": [{"UID": uid} for uid in victims.uids],
                    "NumPDBViolations": victims.pdb_violations,
                }
        text = f"preempt: {len(kept)} of {len(args.victims)} nodes would do"
        self._end(cycle, Outcome.ADVISED if kept else Outcome.UNSCHEDULABLE, text)
        return {"NodeNameToMetaVictims": kept}

    def bound(self, pod: Pod, node: str, fault: str) -> None:
        """Record what became of a binding."""
        cycle = self._begin(pod)
        cycle.node_name = node
        if fault:
            self._end(cycle, Outcome.ERROR, f"bind to {node}: {fault}")
        else:
            self._end(cycle, Outcome.ADVISED, f"bind: bound to {node}")

    # -- steps -------------------------------------------------------------------------------------

    def _begin(self, pod: Pod) -> PodCycle:
        self._scheduler.snapshot.update(self._scheduler.cache)
        info = QueuedPodInfo(pod, attempts=1)
        now = self._scheduler.clock.now()
        return PodCycle(0, info, pod, self._framework, now, perf_counter())

    def _end(self, cycle: PodCycle, outcome: Outcome, text: str) -> None:
        cycle.outcome = outcome
        cycle.message = f"asked as an extender, {text}"
        self._scheduler.record_advice(cycle)

    def _question(self, args: ExtenderArgs) -> _Question:
        nodes: NodeInfos = self._scheduler.snapshot.nodes
        if args.nodes is not None:
            nodes = self._given.among(self._scheduler.snapshot.nodes, args.nodes)
        row_of = nodes.table.row_of
        rows = [row_of.get(name, -1) for name in args.names]
        unknown = tuple(name for name, row in zip(args.names, rows, strict=True) if row < 0)
        known = np.array([row for row in rows if row >= 0], dtype=np.intp)
        return _Question(nodes, known, unknown)

    def _filter(
        self, state: CycleState, pod: Pod, question: _Question
    ) -> tuple[NodeStatuses | None, Status]:
        """One status per asked node; None where PreFilter rejected the pod, or failed."""
        nodes, framework = question.nodes, self._framework
        outcome = filtering.run_pre_filter(framework.pre_filter_plugins, state, pod, nodes)
        if not outcome.status.is_success:
            return None, outcome.status
        statuses = framework.run_filter(state, pod, nodes.subset(question.rows))
        wanted = outcome.result.node_names
        if wanted is not None:
            names = " ".join(sorted(outcome.node_set_plugins))
            left_out = Status(
                Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
                (f"node(s) didn't satisfy plugin(s) [{names}]",),
            )
            mask = np.array([nodes.names[r] not in wanted for r in question.rows.tolist()])
            if mask.any():
                statuses.ids[mask] = statuses.intern(left_out)
        return statuses, SUCCESS

    def _score(
        self, state: CycleState, pod: Pod, question: _Question
    ) -> tuple[NodePluginScores | None, Status]:
        nodes, framework = question.nodes, self._framework
        outcome = filtering.run_pre_filter(framework.pre_filter_plugins, state, pod, nodes)
        if not outcome.status.is_success and not outcome.status.is_rejected:
            return None, outcome.status
        some = nodes.subset(question.rows)
        status = framework.run_pre_score(state, pod, some)
        if not status.is_success:
            return None, status
        return framework.run_score(state, pod, some)

    def _fits_without(self, state: CycleState, pod: Pod, info: NodeInfo, uids: set[str]) -> bool:
        """Whether the pod passes on a node from which pods are gone."""
        rest, trial = info.clone(), state.clone()
        for victim in [other for other in info.pods if other.uid in uids]:
            rest.remove_pod(victim)
            status = self._framework.run_pre_filter_extension_remove_pod(trial, pod, victim, rest)
            if not status.is_success:
                return False
        filters = self._framework.run_filter_plugins_with_nominated_pods
        return filters(trial, pod, rest).is_success

    def _filter_result(
        self, question: _Question, statuses: NodeStatuses | None, overall: Status
    ) -> ScheduleResult:
        nodes, rows = question.nodes, question.rows
        if statuses is None:
            return ScheduleResult(nodes, overall)
        every = NodeStatuses.scattered(len(nodes), rows, statuses)
        feasible = np.sort(rows[statuses.ids == 0])
        status = SUCCESS if len(feasible) else unschedulable("")
        return ScheduleResult(nodes, status, every, feasible, evaluated=len(rows))


def _score_result(question: _Question, scores: NodePluginScores) -> ScheduleResult:
    nodes, rows = question.nodes, question.rows
    every = NodeStatuses.scattered(len(nodes), rows, NodeStatuses(len(rows)))
    result = ScheduleResult(nodes, SUCCESS, every, np.sort(rows), evaluated=len(rows))
    if len(rows):
        result.columns = ScoreColumns.spread(len(nodes), rows, scores)
        highest = int(scores.total.max())
        tied = rows[scores.total == highest]
        result.choose(int(tied[0]))
        result.ties, result.best_total = len(tied), highest
    return result


def _verdicts(
    question: _Question, statuses: NodeStatuses | None, overall: Status
) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Names that pass; name -> why not, for nodes that preemption might help; and for others."""
    names, rows = question.nodes.names, question.rows.tolist()
    passed: list[str] = []
    failed: dict[str, str] = {}
    unresolvable: dict[str, str] = {}
    if statuses is None:
        hopeless = overall.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        reasons = dict.fromkeys((names[row] for row in rows), overall.message)
        return passed, {} if hopeless else reasons, reasons if hopeless else {}
    texts = [(status.code, ", ".join(status.reasons)) for status in statuses.table]
    for row, number in zip(rows, statuses.ids.tolist(), strict=True):
        if not number:
            passed.append(names[row])
            continue
        code, text = texts[number]
        into = unresolvable if code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE else failed
        into[names[row]] = text
    return passed, failed, unresolvable


def _fault(overall: Status, statuses: NodeStatuses | None) -> str:
    """What a plugin's error says; "" where none failed."""
    if not overall.is_success and not overall.is_rejected:
        return overall.message or error("").message
    first = statuses.first_error() if statuses is not None else None
    return first.message if first is not None else ""


def _filter_reply(
    args: ExtenderArgs,
    passed: Sequence[str],
    failed: Mapping[str, str],
    unresolvable: Mapping[str, str],
    fault: str,
) -> Json:
    """In the form of the request, nodes or names; both are null where there is an error."""
    nodes: Json | None = None
    names: list[str] | None = None
    if not fault and args.node_names is not None:
        names = list(passed)
    elif not fault:
        kept = set(passed)
        items = [node for node in args.nodes or () if node["metadata"]["name"] in kept]
        nodes = {"metadata": {}, "items": items}
    return {
        "Nodes": nodes,
        "NodeNames": names,
        "FailedNodes": dict(failed),
        "FailedAndUnresolvableNodes": dict(unresolvable),
        "Error": fault,
    }


def _priorities(total: NDArray[np.int64]) -> list[int]:
    """0 to 10, in proportion between the lowest and the highest total, rounded down."""
    if not len(total):
        return []
    lowest, highest = int(total.min()), int(total.max())
    if lowest == highest:
        return [MAX_PRIORITY] * len(total)
    scaled: NDArray[np.int64] = (total - lowest) * MAX_PRIORITY // (highest - lowest)
    found: list[int] = scaled.tolist()
    return found
