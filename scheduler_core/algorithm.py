"""The scheduling algorithm: the best node for one pod (kube-scheduler 1.36, ``schedulePod``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from scheduler_core.api import Pod
from scheduler_core.extender import EXTENDER, Extenders
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import EmptiedNodes, NodeInfos
from scheduler_core.framework.runtime.framework import Framework
from scheduler_core.framework.runtime.scoring import NodePluginScores, ScoreColumns
from scheduler_core.framework.status import SUCCESS, Status, unresolvable
from scheduler_core.framework.types import Diagnosis, FitError

Rows = NDArray[np.intp]

#: Below this many nodes all of them are looked at, and a sample is never smaller.
MIN_FEASIBLE_NODES_TO_FIND = 100
MIN_FEASIBLE_NODES_PERCENTAGE = 5

NO_NODES_AVAILABLE = "no nodes available to schedule pods"


class TieBreaker(Protocol):
    """Picks one of the nodes that share the highest total."""

    def choose(self, names: Sequence[str], rows: Rows) -> int:
        """One entry of ``rows`` (into ``names``)."""


class SmallestName:
    """The smallest node name wins: repeatable, used for recorded comparisons."""

    def __init__(self) -> None:
        self._names: Sequence[str] = ()
        self._rank: NDArray[np.intp] = np.empty(0, dtype=np.intp)

    def choose(self, names: Sequence[str], rows: Rows) -> int:
        if names is not self._names:  # the same tuple as long as no node comes or goes
            self._names = names
            self._rank = np.argsort(np.argsort(np.array(names)))
        return int(rows[np.argmin(self._rank[rows])])


class SeededRandom:
    """Uniformly random from a seed."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = Random(seed)  # noqa: S311 - not for secrets

    def choose(self, names: Sequence[str], rows: Rows) -> int:
        return int(rows[self._random.randrange(len(rows))])


@dataclass(slots=True)
class ScheduleResult:
    """What the algorithm found for one pod.

    Attributes:
        nodes: the snapshot (n rows) that ``feasible`` and ``statuses`` speak of.
        statuses: one per row of ``nodes``; None where PreFilter rejected the pod.
        feasible: rows that passed, ascending or in rotated order; shape (f,).
        columns: scores of all nodes of the snapshot; None where nothing was scored.
        row, node_name: the chosen node; -1 and "" where ``status`` is not Success.
        status: Success, Unschedulable (then ``fit_error`` is set) or Error.
        evaluated: number of nodes looked at.
        emptied: the feasible nodes are scored as if no pod was on them, because an extender sent
            nodes back.
        names: of the n nodes, as they were in this cycle.
    """

    nodes: NodeInfos
    status: Status
    statuses: NodeStatuses | None = None
    feasible: Rows = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    columns: ScoreColumns | None = None
    row: int = -1
    node_name: str = ""
    evaluated: int = 0
    ties: int = 0
    best_total: int | None = None
    fit_error: FitError | None = None
    emptied: bool = False
    names: Sequence[str] = field(init=False)

    def __post_init__(self) -> None:
        self.names = self.nodes.names

    @property
    def size(self) -> int:
        """How many nodes the snapshot had."""
        return len(self.names)

    @property
    def scores(self) -> NodePluginScores | None:
        """One column per node of ``feasible``; None where nothing was scored."""
        return None if self.columns is None else self.columns.of_rows(self.feasible)

    def choose(self, row: int) -> None:
        """Row ``row`` of ``nodes`` is the one."""
        self.row = row
        self.node_name = self.names[row]


def num_feasible_nodes_to_find(count: int, percentage: int) -> int:
    """How many feasible nodes end the search (kube-scheduler 1.36, numFeasibleNodesToFind)."""
    if count < MIN_FEASIBLE_NODES_TO_FIND or percentage >= 100:
        return count
    if percentage == 0:
        percentage = max(MIN_FEASIBLE_NODES_PERCENTAGE, 50 - count // 125)
    return max(MIN_FEASIBLE_NODES_TO_FIND, count * percentage // 100)


class SchedulingAlgorithm:
    """Filters and scores the nodes of the snapshot for one pod after another.

    Args:
        tie_breaker: which of several best nodes is taken.
        score_single_node: score a pod's only feasible node too. The reference does not; recorded
            comparisons and explanations want the figure.
        every_node: look at every node, whatever the percentage and even where nothing scores;
            recorded comparisons want them all.
        extenders: asked after the Filter plugins and beside the Score plugins.
        reuse: let work for one pod serve the next one like it; decisions are the same without.
    """

    def __init__(
        self,
        tie_breaker: TieBreaker,
        *,
        score_single_node: bool = False,
        every_node: bool = False,
        extenders: Extenders | None = None,
        reuse: bool = False,
    ) -> None:
        self._tie_breaker = tie_breaker
        self._score_single_node = score_single_node
        self._every_node = every_node
        self._extenders = extenders or Extenders()
        self._reuse = reuse
        #: Where the next search starts; shared by all profiles, as in the reference.
        self._next_start = 0

    def schedule(
        self,
        framework: Framework,
        state: CycleState,
        pod: Pod,
        *,
        percentage: int = 100,
        preferred_node: str = "",
    ) -> ScheduleResult:
        """PreFilter, Filter, PreScore, Score and choice.

        Args:
            percentage: of the profile; 100 looks at every node, 0 is adaptive.
            preferred_node: tried alone first (nominated by preemption, or held before a restart).
        """
        if self._reuse and not preferred_node:
            found = self._by_equivalence(framework, state, pod, percentage)
            if found is not None:
                return found
        found = self.find_nodes_that_fit(
            framework, state, pod, percentage=percentage, preferred_node=preferred_node
        )
        if not found.status.is_success:
            return found
        if len(found.feasible) == 1 and not self._score_single_node:
            found.choose(int(found.feasible[0]))
            found.ties = 1
            return found
        return self._prioritize(framework, state, pod, found)

    def _by_equivalence(
        self, framework: Framework, state: CycleState, pod: Pod, percentage: int
    ) -> ScheduleResult | None:
        """What is known from pods like this one; None where a full pass has to be made."""
        if not framework.score_plugins or self._extenders:
            return None
        nodes = framework.nodes
        count = len(nodes)
        if not count or self._nodes_to_find(framework, count, percentage) < count:
            return None
        evaluation = framework.equivalence.evaluate(
            state, pod, score_single_node=self._score_single_node
        )
        if evaluation is None:
            return None
        statuses, feasible = evaluation.statuses, evaluation.feasible
        found = ScheduleResult(nodes, SUCCESS, statuses, feasible, evaluated=count)
        if evaluation.columns is not None:
            self._pick(found, evaluation.columns)
        elif len(feasible):
            found.choose(int(feasible[0]))
            found.ties = 1
        else:
            diagnosis = Diagnosis(node_statuses=statuses)
            _note_plugins(diagnosis, statuses)
            found.fit_error = FitError(pod, count, diagnosis)
            found.status = unresolvable()
        return found

    def _pick(self, found: ScheduleResult, columns: ScoreColumns) -> None:
        """The best of all nodes, of which those that are not feasible have the total -1."""
        found.columns = columns
        total = columns.total
        highest = int(np.maximum.reduce(total))
        tied = (total == highest).nonzero()[0]
        found.ties = count = len(tied)
        row = tied.item(0) if count == 1 else self._tie_breaker.choose(found.names, tied)
        found.choose(row)
        found.best_total = highest

    # -- filtering -------------------------------------------------------------------------------

    def find_nodes_that_fit(
        self,
        framework: Framework,
        state: CycleState,
        pod: Pod,
        *,
        percentage: int = 100,
        preferred_node: str = "",
    ) -> ScheduleResult:
        """PreFilter, Filter and filter extenders alone; arguments as for ``schedule``.

        Success where at least one node is feasible. Otherwise the status is a rejection and
        ``fit_error`` says why, or it is an Error.
        """
        nodes = framework.nodes
        if not len(nodes):
            diagnosis = Diagnosis(pre_filter_status=unresolvable(NO_NODES_AVAILABLE))
            fit_error = FitError(pod, 0, diagnosis)
            return ScheduleResult(nodes, unresolvable(NO_NODES_AVAILABLE), fit_error=fit_error)
        outcome = framework.run_pre_filter(state, pod)
        diagnosis = Diagnosis(unschedulable_plugins=set(outcome.node_set_plugins))
        if outcome.status.is_rejected:
            return _rejected_by_pre_filter(nodes, pod, diagnosis, outcome.status)
        if not outcome.status.is_success:
            return ScheduleResult(nodes, outcome.status)
        fit_error = FitError(pod, len(nodes), diagnosis)
        tried: tuple[int, Status] | None = None
        if preferred_node:
            hit, tried = self._try_preferred(framework, state, pod, nodes, preferred_node)
            if hit is not None:
                hit.fit_error = fit_error
                return hit
        wanted = outcome.result.node_names
        result = self._full_pass(framework, state, pod, nodes, wanted, percentage, tried)
        assert result.statuses is not None
        if wanted is not None:
            names = " ".join(sorted(outcome.node_set_plugins))
            result.statuses.absent_status = unresolvable(
                f"node(s) didn't satisfy plugin(s) [{names}]"
            )
        if not result.status.is_success:
            return result
        diagnosis.node_statuses = result.statuses
        _note_plugins(diagnosis, result.statuses)
        result.fit_error = fit_error
        result.status = self._ask_extenders(state, pod, result, diagnosis)
        if not len(result.feasible):
            result.status = unresolvable()
        return result

    def _try_preferred(
        self, framework: Framework, state: CycleState, pod: Pod, nodes: NodeInfos, name: str
    ) -> tuple[ScheduleResult | None, tuple[int, Status] | None]:
        """The node alone, whatever PreFilter said about nodes: the result if it fits, else its row
        and rejection, which stay on record. An error here does not end the cycle."""
        row = nodes.index_of(name)
        if row < 0:
            return None, None
        only = np.array([row], dtype=np.intp)
        statuses = framework.run_filter(state, pod, nodes.subset(only))
        status = statuses[0]
        if not status.is_success:
            return None, (row, status) if status.is_rejected else None
        every = NodeStatuses.scattered(len(nodes), only, statuses)
        hit = ScheduleResult(nodes, Status(), every, only, evaluated=1)
        if not self._ask_extenders(state, pod, hit, Diagnosis()).is_success:
            return None, None
        if not len(hit.feasible):
            return None, (row, every[row]) if every[row].reasons else None
        return hit, None

    def _ask_extenders(
        self, state: CycleState, pod: Pod, found: ScheduleResult, diagnosis: Diagnosis
    ) -> Status:
        """Leave those feasible nodes that the filter extenders leave; Success or an Error."""
        if not self._extenders.has_filters or not len(found.feasible):
            return Status()
        assert found.statuses is not None
        left = self._extenders.filter(
            pod, found.nodes, found.feasible, found.statuses, state.timings
        )
        if len(left.feasible) < len(found.feasible):
            diagnosis.unschedulable_plugins.add(EXTENDER)
        found.feasible, found.emptied = left.feasible, left.emptied
        return left.status

    def _full_pass(
        self,
        framework: Framework,
        state: CycleState,
        pod: Pod,
        nodes: NodeInfos,
        wanted: frozenset[str] | None,
        percentage: int,
        tried: tuple[int, Status] | None,
    ) -> ScheduleResult:
        """Filter over all nodes, or over those that PreFilter left, until enough are feasible."""
        rows = _rows_named(nodes, wanted)
        some = nodes if wanted is None else nodes.subset(rows)
        statuses = framework.run_filter(state, pod, some)
        want = self._nodes_to_find(framework, len(rows), percentage)
        feasible, evaluated, failure = self._search(statuses, want)
        if wanted is not None:
            statuses = NodeStatuses.scattered(len(nodes), rows, statuses)
        known = evaluated
        if tried is not None and statuses.ids[tried[0]] == NodeStatuses.ABSENT:
            statuses.ids[tried[0]] = statuses.intern(tried[1])
            known += 1
        self._next_start = (self._next_start + known) % len(nodes)
        return ScheduleResult(
            nodes, failure or Status(), statuses, rows[feasible], evaluated=evaluated
        )

    def _nodes_to_find(self, framework: Framework, count: int, percentage: int) -> int:
        if self._every_node:
            return count
        asks = self._extenders.has_filters or self._extenders.has_prioritizers
        if not framework.score_plugins and not asks:
            return min(1, count)  # any node is as good as the next
        return num_feasible_nodes_to_find(count, percentage)

    def _search(self, statuses: NodeStatuses, want: int) -> tuple[Rows, int, Status | None]:
        """What a search in rotated order would have come upon before it was told to stop.

        Nodes that it would not have reached become absent. As in the reference (with one worker),
        what stops it is the first feasible node that is not wanted any more, or an error.

        Returns:
            Feasible positions (ascending if all were looked at, else in rotated order), how many
            nodes were looked at (without one that failed), the error.
        """
        count = len(statuses)
        failure = statuses.first_error()
        if failure is None and want >= count:
            return np.flatnonzero(statuses.ids == 0), count, None
        order = (np.arange(count, dtype=np.intp) + self._next_start) % count
        hits = np.flatnonzero(statuses.ids[order] == 0)
        end = int(hits[want]) if len(hits) > want else count
        failed = _first_error(statuses, order[:end])
        if failed >= 0:
            failure, end = statuses[int(order[failed])], failed
            statuses.ids[order[end + 1 :]] = NodeStatuses.ABSENT
        else:
            failure = None
            statuses.ids[order[end:]] = NodeStatuses.ABSENT
        return order[hits[hits < end]], end, failure

    # -- scoring ---------------------------------------------------------------------------------

    def _prioritize(
        self, framework: Framework, state: CycleState, pod: Pod, found: ScheduleResult
    ) -> ScheduleResult:
        nodes, rows = found.nodes, found.feasible
        feasible = nodes if len(rows) == len(nodes) else nodes.subset(rows)
        if found.emptied:
            feasible = EmptiedNodes(nodes.table, rows)
        status = framework.run_pre_score(state, pod, feasible)
        if not status.is_success:
            found.status = status
            return found
        scores, status = framework.run_score(state, pod, feasible)
        if scores is None:
            found.status = status
            return found
        if self._extenders:
            if not framework.score_plugins:
                scores.total[:] = 0  # what extenders say is not added to "all alike"
            scores = self._extenders.prioritize(pod, nodes, rows, scores, state.timings)
        found.columns = ScoreColumns.spread(len(nodes), rows, scores)
        highest = int(scores.total.max())
        tied = rows[scores.total == highest]
        found.choose(
            int(tied[0]) if len(tied) == 1 else self._tie_breaker.choose(nodes.names, tied)
        )
        found.ties = len(tied)
        found.best_total = highest
        return found


def _rejected_by_pre_filter(
    nodes: NodeInfos, pod: Pod, diagnosis: Diagnosis, status: Status
) -> ScheduleResult:
    diagnosis.pre_filter_status = status
    diagnosis.pre_filter_message = status.message
    if status.plugin:
        diagnosis.unschedulable_plugins.add(status.plugin)
    every = NodeStatuses(len(nodes))
    every.ids[:] = NodeStatuses.ABSENT
    every.absent_status = status
    diagnosis.node_statuses = every
    fit_error = FitError(pod, len(nodes), diagnosis)
    return ScheduleResult(nodes, status, fit_error=fit_error)


def _rows_named(nodes: NodeInfos, names: frozenset[str] | None) -> Rows:
    """Rows of these nodes, ascending; names of no node are left out. None: all rows."""
    if names is None:
        return np.arange(len(nodes), dtype=np.intp)
    found = sorted(row for name in names if (row := nodes.index_of(name)) >= 0)
    return np.array(found, dtype=np.intp)


def _first_error(statuses: NodeStatuses, order: Rows) -> int:
    """The first position in ``order`` whose status is an error; -1 if there is none."""
    bad = [i for i, status in enumerate(statuses.table) if i and not status.is_rejected]
    failed = np.flatnonzero(np.isin(statuses.ids[order], bad))
    return int(failed[0]) if len(failed) else -1


def _note_plugins(diagnosis: Diagnosis, statuses: NodeStatuses) -> None:
    for status, _ in statuses.counts():
        if not status.plugin:
            continue
        pending = status.code.label == "Pending"
        target = diagnosis.pending_plugins if pending else diagnosis.unschedulable_plugins
        target.add(status.plugin)


__all__ = [
    "NO_NODES_AVAILABLE",
    "ScheduleResult",
    "SchedulingAlgorithm",
    "SeededRandom",
    "SmallestName",
    "TieBreaker",
    "num_feasible_nodes_to_find",
]
