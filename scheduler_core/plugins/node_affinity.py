"""NodeAffinity: spec.nodeSelector, required and preferred node affinity, and affinity that the
configuration adds to every pod (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from scheduler_core.api import (
    Node,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PreferredSchedulingTerm,
)
from scheduler_core.api import NodeAffinity as Affinity
from scheduler_core.api.errors import InvalidObject
from scheduler_core.api.reader import Reader
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.errors import PluginConfigError
from scheduler_core.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from scheduler_core.framework.interface import (
    EnqueueExtensions,
    FilterPlugin,
    Handle,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Scores,
)
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.status import SKIP, SUCCESS, Status, error, unresolvable
from scheduler_core.framework.types import PreFilterResult
from scheduler_core.plugins.helpers.hints import queue_if
from scheduler_core.plugins.helpers.node_matching import (
    pod_selects_mask,
    selector_mask,
    term_mask,
)
from scheduler_core.plugins.helpers.normalize import default_normalize

__all__ = ["NodeAffinity"]

_NOT_ENFORCED: Final = unresolvable("node(s) didn't match scheduler-enforced node affinity")
_NOT_SELECTED: Final = unresolvable("node(s) didn't match Pod's node affinity/selector")
_CONFLICT: Final = unresolvable("pod affinity terms conflict")
_STATE: Final = "PreScoreNodeAffinity"


@dataclass(frozen=True, slots=True)
class _PreScored:
    """The preferred terms that count, the pod's own first."""

    terms: tuple[PreferredSchedulingTerm, ...]


class NodeAffinity(EnqueueExtensions, PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Args (NodeAffinityArgs): ``addedAffinity``, a node affinity that holds for every pod.

    Raises:
        PluginConfigError: ``addedAffinity`` does not parse.
    """

    name = "NodeAffinity"
    reads_pods_on_node = False

    def is_node_local(self, pod: Pod) -> bool:
        return True

    def __init__(self, args: Mapping[str, Any], _handle: Handle) -> None:
        added = _read_added(args)
        self._added_required = added.required
        self._added_preferred = added.preferred

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeInfos
    ) -> tuple[PreFilterResult | None, Status]:
        """Skip without anything to match; else the node names that all terms agree on, if any."""
        required = _required(pod)
        if required is None and self._added_required is None and pod.node_selector is None:
            return None, SKIP
        names = _named_nodes(required.terms) if required is not None else None
        if names is None:
            return None, SUCCESS
        if not names:
            return None, _CONFLICT
        return PreFilterResult(names), SUCCESS

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        node = node_info.node
        if node is None:
            return SUCCESS
        if self._added_required and not self._added_required.matches(node.labels, node.name):
            return _NOT_ENFORCED
        return SUCCESS if pod.selects_node(node.labels, node.name) else _NOT_SELECTED

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> NodeStatuses:
        statuses = NodeStatuses(len(nodes))
        if self._added_required is not None:
            statuses.reject(~selector_mask(nodes, self._added_required), _NOT_ENFORCED)
        statuses.reject(~pod_selects_mask(nodes, pod), _NOT_SELECTED)
        return statuses

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Status:
        own = pod.affinity.node_affinity.preferred if pod.affinity.node_affinity else None
        if own is None and self._added_preferred is None:
            return SKIP
        fault = next((t.preference.error for t in own or () if t.preference.error), "")
        if fault:
            return error(f"parsing preferred node affinity: {fault}")
        state.write(_STATE, _PreScored(_counting((*(own or ()), *(self._added_preferred or ())))))
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Sum of the weights of the preferred terms that select the node."""
        terms = state.read(_STATE, _PreScored).terms
        node = node_info.node
        if node is None:
            return 0
        return sum(t.weight for t in terms if t.preference.matches(node.labels, node.name))

    def score_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Scores:
        scores = np.zeros(len(nodes), dtype=np.int64)
        for term in state.read(_STATE, _PreScored).terms:
            scores[term_mask(nodes, term.preference)] += term.weight
        return scores

    def normalize_score(
        self, state: CycleState, pod: Pod, nodes: NodeInfos, scores: Scores
    ) -> Scores:
        return default_normalize(scores)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        node = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return (ClusterEventWithHint(node, self._after_node_change),)

    def _after_node_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        if not isinstance(new, Node) or not self._admits(pod, new):
            return QueueingHint.SKIP
        return queue_if(not isinstance(old, Node) or not self._admits(pod, old))

    def _admits(self, pod: Pod, node: Node) -> bool:
        if self._added_required and not self._added_required.matches(node.labels, node.name):
            return False
        return pod.selects_node(node.labels, node.name)


def _required(pod: Pod) -> NodeSelector | None:
    affinity = pod.affinity.node_affinity
    return affinity.required if affinity is not None else None


def _named_nodes(terms: Sequence[NodeSelectorTerm]) -> frozenset[str] | None:
    """Union of the node names that the terms ask for; None where a term asks for none."""
    if not terms:
        return None
    union: frozenset[str] = frozenset()
    for term in terms:
        names = term.node_names()
        if names is None:
            return None
        union |= names
    return union


def _counting(terms: Iterable[PreferredSchedulingTerm]) -> tuple[PreferredSchedulingTerm, ...]:
    return tuple(t for t in terms if t.weight and not t.preference.is_empty)


def _read_added(args: Mapping[str, Any]) -> Affinity:
    """``args["addedAffinity"]``, parsed; required and preferred must parse fully."""
    reader = Reader(args)
    child = reader.optional_child("addedAffinity")
    added = Affinity() if child is None else Affinity.read(child)
    try:
        reader.finish("")
    except InvalidObject as fault:
        raise PluginConfigError(fault.field_path, fault.message) from fault
    path = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    for i, term in enumerate(added.required.terms if added.required else ()):
        if term.error:
            raise PluginConfigError(f"{path}[{i}]", term.error)
    path = "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
    for i, preferred in enumerate(added.preferred or ()):
        if preferred.preference.error:
            raise PluginConfigError(f"{path}[{i}].preference", preferred.preference.error)
    return added
