"""TaintToleration: keeps pods off taints they do not tolerate, prefers nodes with fewer soft ones
(kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from scheduler_core.api import (
    PREFER_NO_SCHEDULE,
    Node,
    Pod,
    Taint,
    Toleration,
    find_untolerated,
    tolerates,
)
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
    FilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Scores,
)
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.status import SUCCESS, Status, unresolvable
from scheduler_core.plugins.helpers.hints import queue_if, queue_own_pod
from scheduler_core.plugins.helpers.normalize import default_normalize
from scheduler_core.plugins.helpers.stateless import StatelessPlugin

__all__ = ["TaintToleration"]

_REJECTED: Final = unresolvable("node(s) had untolerated taint(s)")
_STATE: Final = "PreScoreTaintToleration"


@dataclass(frozen=True, slots=True)
class _PreScored:
    """The tolerations that may tolerate a PreferNoSchedule taint."""

    tolerations: tuple[Toleration, ...]


class TaintToleration(
    StatelessPlugin, EnqueueExtensions, FilterPlugin, PreScorePlugin, ScorePlugin
):
    """Filters by NoSchedule and NoExecute taints, scores by untolerated PreferNoSchedule ones."""

    name = "TaintToleration"
    reads_pods_on_node = False

    def is_node_local(self, pod: Pod) -> bool:
        return True

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        if node_info.node is None:
            return SUCCESS
        untolerated = find_untolerated(node_info.node.taints, pod.tolerations)
        return SUCCESS if untolerated is None else _REJECTED

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> NodeStatuses:
        tolerations = pod.tolerations
        rejected = nodes.over_taints(
            ("TaintToleration/filter", tolerations),
            lambda taints: find_untolerated(taints, tolerations) is not None,
        )
        return NodeStatuses.from_mask(rejected.astype(bool, copy=False), _REJECTED)

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Status:
        kept = tuple(t for t in pod.tolerations if t.effect in ("", PREFER_NO_SCHEDULE))
        state.write(_STATE, _PreScored(kept))
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """How many PreferNoSchedule taints the pod does not tolerate."""
        tolerations = state.read(_STATE, _PreScored).tolerations
        return _intolerable(node_info.node.taints if node_info.node else (), tolerations)

    def score_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Scores:
        tolerations = state.read(_STATE, _PreScored).tolerations
        counts = nodes.over_taints(
            ("TaintToleration/score", tolerations),
            lambda taints: _intolerable(taints, tolerations),
            np.int64,
        )
        return counts.astype(np.int64, copy=False)

    def normalize_score(
        self, state: CycleState, pod: Pod, nodes: NodeInfos, scores: Scores
    ) -> Scores:
        return default_normalize(scores, reverse=True)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        node = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)
        toleration = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION)
        return (
            ClusterEventWithHint(node, _after_node_change),
            ClusterEventWithHint(toleration, queue_own_pod),
        )


def _intolerable(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> int:
    return sum(t.effect == PREFER_NO_SCHEDULE and not tolerates(tolerations, t) for t in taints)


def _after_node_change(pod: Pod, old: Any, new: Any) -> QueueingHint:
    now_fits = isinstance(new, Node) and find_untolerated(new.taints, pod.tolerations) is None
    did_fit = isinstance(old, Node) and find_untolerated(old.taints, pod.tolerations) is None
    return queue_if(now_fits and not did_fit)
