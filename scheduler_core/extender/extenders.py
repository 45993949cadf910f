"""All extenders of a scheduler, and the places of a pod's way at which they are asked."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scheduler_core.api import Pod
from scheduler_core.config.types import Extender
from scheduler_core.extender import wire
from scheduler_core.extender.client import Call
from scheduler_core.extender.errors import ExtenderError
from scheduler_core.extender.http_extender import FilterAnswer, HTTPExtender, Question
from scheduler_core.extender.tls import TLSConfigError
from scheduler_core.framework.cycle_state import Timings
from scheduler_core.framework.events import WILDCARD_EVENT, ClusterEventWithHint
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import NodeInfos, Rows
from scheduler_core.framework.runtime.framework import ProfileError
from scheduler_core.framework.runtime.scoring import NodePluginScores
from scheduler_core.framework.status import SUCCESS, Status, error, unresolvable, unschedulable

__all__ = ["EXTENDER", "Extenders", "Filtered"]

log = logging.getLogger(__name__)

#: The pseudo plugin in whose name extenders reject nodes.
EXTENDER: Final = "Extender"
#: An extender's scores go to 10, those of plugins to 100.
SCALE: Final = 10
#: Calls under way at once; bindings ask beside the loop.
MAX_CALLS: Final = 32

FILTER_POINT: Final = "ExtenderFilter"
PRIORITIZE_POINT: Final = "ExtenderPrioritize"


@dataclass(frozen=True, slots=True)
class Filtered:
    """What extenders leave of the feasible nodes.

    Attributes:
        status: an Error ends the cycle; the rest then says nothing.
        feasible: those of the rows asked about that are left, in the same order.
        emptied: the nodes are to be scored as if no pod was on them.
    """

    status: Status
    feasible: Rows
    emptied: bool = False


class Extenders:
    """The extenders of a configuration, those that must answer first (kube-scheduler 1.36).

    They are shared by all profiles. Calls block the caller for ``httpTimeout`` at most each.

    Raises:
        ProfileError: certificates or keys of one of them cannot be used.
    """

    def __init__(self, configs: Sequence[Extender] = ()) -> None:
        # Threads are started by the first call.
        self._threads = ThreadPoolExecutor(MAX_CALLS, thread_name_prefix="extender")
        self._texts = wire.NodeTexts()
        ordered = sorted(configs, key=lambda config: config.ignorable)
        try:
            self._all = tuple(
                HTTPExtender(config, self._threads, _number(ordered, i))
                for i, config in enumerate(ordered)
            )
        except TLSConfigError as exc:
            raise ProfileError(f"couldn't build extenders: {exc}") from exc
        self._filters = tuple(e for e in self._all if e.is_filter)
        self._prioritizers = tuple(e for e in self._all if e.is_prioritizer)
        self._binders = tuple(e for e in self._all if e.is_binder)
        #: For the preemption of plugins.
        self.preemption = tuple(e for e in self._all if e.supports_preemption)

    def __bool__(self) -> bool:
        return bool(self._all)

    @property
    def has_filters(self) -> bool:
        return bool(self._filters)

    @property
    def has_prioritizers(self) -> bool:
        return bool(self._prioritizers)

    def queueing_hints(self) -> Mapping[str, Sequence[ClusterEventWithHint]]:
        """The pseudo plugin hears of every event, and every event may help."""
        return {EXTENDER: (ClusterEventWithHint(WILDCARD_EVENT),)} if self._all else {}

    def close(self) -> None:
        """No call is begun any more; those under way end by their deadlines."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for extender in self._all:
            extender.close()

    # -- filter ------------------------------------------------------------------------------------

    def filter(
        self, pod: Pod, nodes: NodeInfos, feasible: Rows, statuses: NodeStatuses, timings: Timings
    ) -> Filtered:
        """Ask one after the other about the nodes that are left; stops when none are.

        Args:
            nodes: the snapshot, of which ``feasible`` are rows.
            statuses: of all rows; takes the extenders' verdicts up.
        """
        rows, emptied = feasible, False
        for extender in self._filters:
            if not len(rows):
                break
            if not extender.is_interested(pod):
                continue
            question = self._question(extender, pod, nodes, rows)
            started = perf_counter()
            try:
                answer = extender.filter(question)
            except ExtenderError as exc:
                if extender.is_ignorable:
                    log.warning("%s is ignored for pod %s: %s", extender.name, pod.key, exc)
                    continue
                _settle(statuses, feasible, rows)
                return Filtered(error(exc, EXTENDER), rows)
            finally:
                _note_time(timings, FILTER_POINT, extender, perf_counter() - started)
            _take_verdicts(answer, nodes, statuses)
            rows = _kept(answer, question.names, rows)
            emptied = emptied or answer.emptied
        _settle(statuses, feasible, rows)
        return Filtered(SUCCESS, rows, emptied)

    def _question(self, extender: HTTPExtender, pod: Pod, nodes: NodeInfos, rows: Rows) -> Question:
        names = [nodes.names[int(row)] for row in rows]
        if extender.caches_nodes:
            return Question(pod, names, wire.nodes_request(pod, names, None))
        whole = [node for row in rows if (node := nodes[int(row)].node) is not None]
        return Question(pod, names, wire.nodes_request(pod, None, self._texts.join(whole)))

    # -- prioritize --------------------------------------------------------------------------------

    def prioritize(
        self,
        pod: Pod,
        nodes: NodeInfos,
        feasible: Rows,
        scores: NodePluginScores,
        timings: Timings,
    ) -> NodePluginScores:
        """``scores`` of the feasible nodes with those of the extenders, which are asked all at
        once. One that fails scores nothing, ignorable or not."""
        asked = [e for e in self._prioritizers if e.is_interested(pod)]
        if not asked:
            return scores
        started = perf_counter()
        questions: dict[bool, Question] = {}
        for extender in asked:
            if extender.caches_nodes not in questions:
                questions[extender.caches_nodes] = self._question(extender, pod, nodes, feasible)
        calls = [(e, e.start_prioritize(questions[e.caches_nodes])) for e in asked]
        columns = {nodes.names[int(row)]: i for i, row in enumerate(feasible)}
        found: list[tuple[HTTPExtender, NDArray[np.int64]]] = []
        for extender, call in calls:
            raw = _scores_of(extender, call, columns, pod)
            _note_time(
                timings, PRIORITIZE_POINT, extender, perf_counter() - started, point_too=False
            )
            if raw is not None:
                found.append((extender, raw))
        timings.add_point(PRIORITIZE_POINT, perf_counter() - started)
        return _with_extenders(scores, found)

    # -- bind --------------------------------------------------------------------------------------

    def binds(self, pod: Pod) -> bool:
        """Whether an extender is to be asked to bind it."""
        return any(extender.is_interested(pod) for extender in self._binders)

    def bind(self, pod: Pod, node: str, timings: Timings) -> Status | None:
        """Have the extender bind that has a bind verb and is interested; None: nobody did, the Bind
        plugins are to do it. Runs on a binding thread."""
        for extender in self._binders:
            if not extender.is_interested(pod):
                continue
            started = perf_counter()
            try:
                extender.bind(pod, node)
            except ExtenderError as exc:
                if extender.is_ignorable:
                    log.warning("%s did not bind pod %s: %s", extender.name, pod.key, exc)
                    continue
                return error(exc, EXTENDER)
            finally:
                _note_time(timings, "Bind", extender, perf_counter() - started)
            return SUCCESS
        return None


def _number(configs: Sequence[Extender], index: int) -> int:
    """Which one it is of those that share its URL, from 1."""
    urls = [config.url_prefix for config in configs[: index + 1]]
    return urls.count(configs[index].url_prefix)


def _note_time(
    timings: Timings, point: str, extender: HTTPExtender, seconds: float, *, point_too: bool = True
) -> None:
    timings.add_plugin(point, extender.name, seconds)
    if point_too:
        timings.add_point(point, seconds)


# -- filter ----------------------------------------------------------------------------------------


def _take_verdicts(answer: FilterAnswer, nodes: NodeInfos, statuses: NodeStatuses) -> None:
    """Reasons of any node of the snapshot are taken, also of one that a plugin has rejected before:
    the last word counts. Names of no node are passed over."""
    verdicts = {name: unschedulable(text, plugin=EXTENDER) for name, text in answer.failed.items()}
    verdicts |= {
        name: unresolvable(text, plugin=EXTENDER) for name, text in answer.unresolvable.items()
    }
    for name, status in verdicts.items():
        row = nodes.index_of(name)
        if row >= 0:
            statuses.ids[row] = statuses.intern(status)


def _kept(answer: FilterAnswer, names: Sequence[str], rows: Rows) -> Rows:
    keep: NDArray[np.bool_] = np.fromiter(
        (name in answer.kept for name in names), dtype=bool, count=len(names)
    )
    kept: Rows = rows[keep]
    return kept


def _settle(statuses: NodeStatuses, before: Rows, after: Rows) -> None:
    """Nodes that are left have passed, whatever was said of them; nodes that are gone without a
    word are as good as never looked at."""
    gone = np.setdiff1d(before, after, assume_unique=True)
    silent = gone[statuses.ids[gone] == 0]
    if len(silent):
        # In the reference they have the absent status, which only adds to the message if PreFilter
        # had left nodes out. Otherwise they keep the name of who rejected them.
        with_reason = bool(statuses.absent_status.reasons)
        unsaid = unresolvable(plugin=EXTENDER)
        statuses.ids[silent] = NodeStatuses.ABSENT if with_reason else statuses.intern(unsaid)
    statuses.ids[after] = 0


# -- prioritize ------------------------------------------------------------------------------------


def _scores_of(
    extender: HTTPExtender, call: Call, columns: Mapping[str, int], pod: Pod
) -> NDArray[np.int64] | None:
    """int64, shape (n,): the scores that an extender gave, 0 where it gave none; None where it
    failed. Hosts that were not asked about are passed over; one that comes twice counts twice."""
    try:
        answer = wire.read_prioritize(call.result())
    except ExtenderError as exc:
        log.warning("%s scores nothing for pod %s: %s", extender.name, pod.key, exc)
        return None
    raw = np.zeros(len(columns), dtype=np.int64)
    known = [(columns[host], score) for host, score in answer if host in columns]
    if known:
        at, given = zip(*known, strict=True)
        np.add.at(raw, np.array(at), np.array(given, dtype=np.int64))
    return raw


def _with_extenders(
    scores: NodePluginScores, found: Sequence[tuple[HTTPExtender, NDArray[np.int64]]]
) -> NodePluginScores:
    """The scores with one more row per extender: normalised is what fits into 0..100, the total has
    the exact sum. There is no range check, and sums wrap at 64 bits, as in the reference."""
    if not found:
        return scores
    raw = np.array([row for _, row in found], dtype=np.int64)
    weights = np.array([extender.weight for extender, _ in found], dtype=np.int64)
    points = raw * weights[:, None] * SCALE
    return replace(
        scores,
        plugins=(*scores.plugins, *(extender.name for extender, _ in found)),
        weights=np.concatenate([scores.weights, weights]),
        raw=np.vstack([scores.raw, raw]),
        normalized=np.vstack([scores.normalized, np.clip(raw, 0, SCALE) * SCALE]),
        total=scores.total + points.sum(axis=0),
        extender_points=points,
    )
