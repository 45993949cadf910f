"""Work for one pod serves the next one like it: results kept per equivalence class and patched.

Pods with the same ``Pod.signature`` form an equivalence class. For the second pod of a class
everything is worked out over all nodes and kept; for the next ones, plugins that are node-local
(``Plugin.is_node_local``) are asked only about the nodes that changed since, in their plain form,
and the others as in any cycle. The results are those of a full pass, status for status and score
for score; only the work differs. (kube-scheduler 1.36 has the idea as opportunistic batching, which
reuses a sorted list of nodes while exactly one pod per node fits.)

Where anything is out of the ordinary, an error above all, the answer is None, and the caller makes
a full pass, which knows all the rules.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import is_
from time import perf_counter
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.interface import (
    FilterPlugin,
    Nominator,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import NodeInfos, NodeTable
from scheduler_core.framework.runtime import filtering
from scheduler_core.framework.runtime.patched_scores import Feasible, PatchedScores, Unusable
from scheduler_core.framework.runtime.scoring import ScoreColumns, pre_score_one
from scheduler_core.framework.status import SUCCESS, Code, Status

__all__ = ["EquivalenceCache", "Evaluation"]

Rows = NDArray[np.intp]
#: Extension point and plugin, as times are kept.
Key = tuple[str, str]
PluginT = TypeVar("PluginT", bound=Plugin)

#: Classes of one profile that are kept; the least recently used goes first.
MAX_CLASSES = 64
#: Signatures seen once that are remembered.
MAX_SEEN_ONCE = 4096
#: Where more than one node in so many has changed, a full pass costs less than patches.
FULL_PASS_SHARE = 16
#: Up to so many changed nodes are worth a patch however few nodes there are.
ALWAYS_PATCHED = 4


class Profile(Protocol):
    """What of a Framework is asked here."""

    @property
    def nodes(self) -> NodeInfos: ...
    @property
    def nominator(self) -> Nominator: ...

    pre_filter_plugins: tuple[PreFilterPlugin, ...]
    filter_plugins: tuple[FilterPlugin, ...]
    pre_score_plugins: tuple[PreScorePlugin, ...]
    score_plugins: tuple[tuple[ScorePlugin, int], ...]

    def run_pre_filter(self, state: CycleState, pod: Pod) -> filtering.PreFilterOutcome: ...


@dataclass(slots=True, eq=False)
class Evaluation:
    """What Filter and Score say of all n nodes for one pod.

    Attributes:
        statuses: one per node.
        feasible: rows that passed, ascending.
        columns: None where no node is feasible, or a single one that need not be scored.
    """

    statuses: NodeStatuses
    feasible: Rows
    columns: ScoreColumns | None


class EquivalenceCache:
    """The equivalence classes of one profile's pods.

    Counters for tests and metrics: ``patched`` evaluations that reused one, ``built`` ones that
    were kept anew.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._classes: OrderedDict[bytes, _Class] = OrderedDict()
        self._seen_once: OrderedDict[bytes, None] = OrderedDict()
        self.patched = 0
        self.built = 0

    def evaluate(
        self, state: CycleState, pod: Pod, *, score_single_node: bool
    ) -> Evaluation | None:
        """Filter and Score for ``pod``; ``state`` is then as after a full pass.

        None, with ``state`` empty: make a full pass.
        """
        if not _is_ordinary(pod) or self._has_nominations():
            return None
        signature = pod.signature
        known = self._classes.get(signature)
        if known is None and not self._is_known(signature):
            return None
        try:
            kept, answer = self._evaluate(known, state, pod, score_single_node)
        except Unusable:
            self._classes.pop(signature, None)
            state.clear()
            return None
        if kept is not known:
            self._classes[signature] = kept
            if len(self._classes) > MAX_CLASSES:
                self._classes.popitem(last=False)
        self._classes.move_to_end(signature)
        return answer

    def _has_nominations(self) -> bool:
        """Pods nominated to nodes are counted in by a second pass of the filters."""
        return bool(self._profile.nominator.nominated_nodes())

    def _evaluate(
        self, known: _Class | None, state: CycleState, pod: Pod, score_single_node: bool
    ) -> tuple[_Class, Evaluation]:
        nodes = self._profile.nodes.table
        rows = None if known is None else nodes.rows_changed_since(known.seen)
        if known is not None and rows is not None and _is_worth_a_patch(rows, len(nodes)):
            self.patched += 1
            return known, known.patch(state, pod, nodes, rows, score_single_node)
        fresh = _Class(self._profile, pod)
        answer = fresh.build(state, pod, nodes, score_single_node)
        self.built += 1
        return fresh, answer

    def _is_known(self, signature: bytes) -> bool:
        """Whether the signature was seen before; a pod that is like no other is not kept."""
        if signature in self._seen_once:
            del self._seen_once[signature]
            return True
        self._seen_once[signature] = None
        if len(self._seen_once) > MAX_SEEN_ONCE:
            self._seen_once.popitem(last=False)
        return False


def _is_ordinary(pod: Pod) -> bool:
    """A pending pod's status can say what it asks for (in-place resize); its signature leaves the
    status out."""
    return not pod.container_statuses and not pod.init_container_statuses


def _is_worth_a_patch(rows: Collection[int], nodes: int) -> bool:
    return len(rows) <= max(ALWAYS_PATCHED, nodes // FULL_PASS_SHARE)


class _Segment:
    """Consecutive Filter plugins that are node-local, or one that is not, and what they said."""

    __slots__ = ("is_local", "keys", "plugins", "readers", "statuses")

    def __init__(self, plugins: Sequence[FilterPlugin], is_local: bool) -> None:
        self.plugins = plugins
        #: Those whose answer can change when pods come to a node, or go.
        self.readers = tuple(plugin for plugin in plugins if plugin.reads_pods_on_node)
        self.keys = tuple(("Filter", plugin.name) for plugin in self.readers)
        self.is_local = is_local
        self.statuses = NodeStatuses(0)

    def ask(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> None:
        """Ask about all nodes."""
        if self.is_local:
            merged = NodeStatuses(len(nodes))
            for plugin in self.plugins:
                merged.merge(_timed_filter(plugin, state, pod, nodes), plugin.name)
            self.statuses = merged
        else:
            self.statuses = _timed_filter(self.plugins[0], state, pod, nodes)

    def patch(
        self,
        state: CycleState,
        pod: Pod,
        nodes: NodeTable,
        rows: Collection[int],
        only_pods_changed: bool,
        started: float,
    ) -> None:
        """Ask about some nodes, in the plain form; it is ``started`` now."""
        before = self.statuses.ids
        found: dict[int, Status] = {}
        for row in rows:
            # What a passed node's Node object was passed for still holds.
            passed = only_pods_changed and before[row] == 0
            plugins = self.readers if passed else self.plugins
            status = filtering.run_filter_one(plugins, state, pod, nodes[row])
            if status is SUCCESS or status.is_success:
                if before[row]:
                    found[row] = status
            elif status.is_rejected:
                found[row] = status
            else:
                raise Unusable
        if found:
            self.statuses = self.statuses.patched(found)
        share = (perf_counter() - started) / (len(self.keys) or 1)
        for key in self.keys:
            state.timings.add(key, share)


def _timed_filter(
    plugin: FilterPlugin, state: CycleState, pod: Pod, nodes: NodeInfos
) -> NodeStatuses:
    begin = perf_counter()
    statuses = filtering.filter_nodes(plugin, state, pod, nodes)
    state.timings.add_plugin("Filter", plugin.name, perf_counter() - begin)
    if statuses.first_error() is not None:
        raise Unusable
    return statuses


class _Class:
    """One equivalence class: what is known of all nodes for its pods."""

    def __init__(self, profile: Profile, pod: Pod) -> None:
        self._profile = profile
        self.seen = -1
        self._seen_static = -1
        self._contents: dict[str, object] = {}
        self._skip_filter: frozenset[str] = frozenset()
        self._skip_score: frozenset[str] = frozenset()
        self._asked_pre_filters = _not_local("PreFilter", profile.pre_filter_plugins, pod)
        self._asked_pre_scores = _not_local("PreScore", profile.pre_score_plugins, pod)
        self._segments: tuple[_Segment, ...] = ()
        self._merged_from: list[NodeStatuses] = []
        self._statuses = NodeStatuses(0)
        self._mask = np.empty(0, dtype=bool)
        self._feasible: Rows = np.empty(0, dtype=np.intp)
        self._feasible_nodes: Feasible | None = None
        self._scores: PatchedScores | None = None

    # -- the first time ----------------------------------------------------------------------------

    def build(
        self, state: CycleState, pod: Pod, nodes: NodeTable, score_single_node: bool
    ) -> Evaluation:
        """A full pass, kept.

        Raises:
            Unusable: a plugin failed, or PreFilter turned the pod down or picked nodes.
        """
        self.seen, self._seen_static = nodes.change_count, nodes.static_version
        outcome = self._profile.run_pre_filter(state, pod)
        if not outcome.status.is_success or outcome.result.node_names is not None:
            raise Unusable
        self._skip_filter = state.skip_filter_plugins
        self._segments = _segments(self._profile.filter_plugins, self._skip_filter, pod)
        started = perf_counter()
        for segment in self._segments:
            segment.ask(state, pod, nodes)
        self._merge(len(nodes))
        now = perf_counter()
        state.timings.add_point("Filter", now - started)
        return self._answer(state, pod, nodes, (), score_single_node, False, now)

    # -- the next times ----------------------------------------------------------------------------

    def patch(
        self,
        state: CycleState,
        pod: Pod,
        nodes: NodeTable,
        rows: Collection[int],
        score_single_node: bool,
    ) -> Evaluation:
        """What is known, brought up to date for ``rows``, which have changed.

        Raises:
            Unusable: a plugin failed, or does not skip as it did before.
        """
        only_pods_changed = self._seen_static == nodes.static_version
        self.seen, self._seen_static = nodes.change_count, nodes.static_version
        state.refill(self._contents)
        state.skip_filter_plugins = self._skip_filter
        state.skip_score_plugins = self._skip_score
        started = now = self._pre_filter(state, pod, nodes)
        for segment in self._segments:
            if not segment.is_local:
                segment.ask(state, pod, nodes)
            elif rows:
                segment.patch(state, pod, nodes, rows, only_pods_changed, now)
            now = perf_counter()
        self._merge(len(nodes))
        state.timings.add_point("Filter", now - started)
        return self._answer(state, pod, nodes, rows, score_single_node, only_pods_changed, now)

    def _pre_filter(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> float:
        """Ask those that are not node-local; the time at the end."""
        started = now = perf_counter()
        for plugin, key in self._asked_pre_filters:
            result, status = filtering.pre_filter_one(plugin, state, pod, nodes)
            begin, now = now, perf_counter()
            state.timings.add(key, now - begin)
            if status.code is not (Code.SKIP if plugin.name in self._skip_filter else Code.SUCCESS):
                raise Unusable
            if result is not None and result.node_names is not None:
                raise Unusable
        state.timings.add_point("PreFilter", now - started)
        return now

    def _merge(self, size: int) -> None:
        """Per node the first failure in the order of the plugins."""
        parts = [segment.statuses for segment in self._segments]
        if self._merged_from and all(map(is_, parts, self._merged_from)):
            return
        self._merged_from = parts
        failing = [s for s in self._segments if not s.statuses.all_success]
        if len(failing) == 1 and failing[0].is_local:
            self._statuses = failing[0].statuses
        elif not failing:
            if not len(self._statuses) or not self._statuses.all_success:
                self._statuses = NodeStatuses(size)
        else:
            merged = NodeStatuses(size)
            for segment in failing:
                merged.merge(segment.statuses, segment.plugins[0].name)
            self._statuses = merged
        mask = self._statuses.ids == 0
        if len(mask) != len(self._mask) or (mask != self._mask).any():
            self._mask = mask
            self._feasible = mask.nonzero()[0]
            self._feasible_nodes = None

    def _answer(
        self,
        state: CycleState,
        pod: Pod,
        nodes: NodeTable,
        rows: Collection[int],
        score_single_node: bool,
        only_pods_changed: bool,
        now: float,
    ) -> Evaluation:
        count = len(self._feasible)
        if not count or (count == 1 and not score_single_node):
            # Scores lag behind now: they are made anew when they are wanted again.
            self._scores = None
            self._contents = state.contents()
            return Evaluation(self._statuses, self._feasible, None)
        columns = self._score(state, pod, nodes, rows, only_pods_changed, now)
        return Evaluation(self._statuses, self._feasible, columns)

    # -- scores ------------------------------------------------------------------------------------

    def _score(
        self,
        state: CycleState,
        pod: Pod,
        nodes: NodeTable,
        rows: Collection[int],
        only_pods_changed: bool,
        now: float,
    ) -> ScoreColumns:
        feasible = self._feasible_nodes
        if feasible is None:
            everywhere = len(self._feasible) == len(nodes)
            feasible = self._feasible_nodes = Feasible(
                nodes if everywhere else nodes.subset(self._feasible),
                None if everywhere else self._mask,
            )
        scores = self._scores
        if scores is None:
            every = self._profile.pre_score_plugins
            asked = tuple((plugin, ("PreScore", plugin.name)) for plugin in every)
        else:
            asked = self._asked_pre_scores
        started = self._pre_score(asked, state, pod, feasible.nodes, now, first=scores is None)
        local = self._locally_feasible()
        if scores is None:
            active = [
                (plugin, weight)
                for plugin, weight in self._profile.score_plugins
                if plugin.name not in self._skip_score
            ]
            scores = PatchedScores(active, pod)
            columns = scores.build(state, pod, nodes, feasible, local)
        else:
            columns = scores.patch(
                state, pod, nodes, feasible, local, rows, only_pods_changed, started
            )
        self._scores = scores
        state.timings.add_point("Score", perf_counter() - started)
        return columns

    def _pre_score(
        self,
        plugins: Sequence[tuple[PreScorePlugin, Key]],
        state: CycleState,
        pod: Pod,
        feasible: NodeInfos,
        started: float,
        first: bool,
    ) -> float:
        """It is ``started`` now; the time at the end."""
        now = started
        skipped: list[str] = []
        for plugin, key in plugins:
            status = pre_score_one(plugin, state, pod, feasible)
            begin, now = now, perf_counter()
            state.timings.add(key, now - begin)
            skips = status.code is Code.SKIP
            if skips:
                skipped.append(plugin.name)
            elif not status.is_success:
                raise Unusable
            if not first and skips is not (plugin.name in self._skip_score):
                raise Unusable
        if first:
            self._skip_score = state.skip_score_plugins = frozenset(skipped)
            self._contents = state.contents()
        state.timings.add_point("PreScore", now - started)
        return now

    def _locally_feasible(self) -> NDArray[np.bool_] | None:
        """bool, shape (n,): nodes that node-local filters pass; None: all of them."""
        mask: NDArray[np.bool_] | None = None
        for segment in self._segments:
            if not segment.is_local or segment.statuses.all_success:
                continue
            passed = segment.statuses.ids == 0
            mask = passed if mask is None else mask & passed
        return mask


def _not_local(point: str, plugins: Sequence[PluginT], pod: Pod) -> tuple[tuple[PluginT, Key], ...]:
    asked = (plugin for plugin in plugins if not plugin.is_node_local(pod))
    return tuple((plugin, (point, plugin.name)) for plugin in asked)


def _segments(
    plugins: Sequence[FilterPlugin], skipped: Collection[str], pod: Pod
) -> tuple[_Segment, ...]:
    segments: list[_Segment] = []
    run: list[FilterPlugin] = []
    for plugin in plugins:
        if plugin.name in skipped:
            continue
        if plugin.is_node_local(pod):
            run.append(plugin)
            continue
        if run:
            segments.append(_Segment(tuple(run), is_local=True))
            run = []
        segments.append(_Segment((plugin,), is_local=False))
    if run:
        segments.append(_Segment(tuple(run), is_local=True))
    return tuple(segments)
