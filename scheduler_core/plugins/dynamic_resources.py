"""DynamicResources: its place in the default profile, exact for pods without resource claims.

Devices are not allocated here yet. A pod that asks for some is turned down, and told so; for all
other pods every answer, text and score is kube-scheduler 1.36's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
)
from scheduler_core.framework.interface import (
    EnqueueExtensions,
    FilterPlugin,
    Handle,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
    ScorePlugin,
    Scores,
)
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.status import (
    SKIP,
    SUCCESS,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from scheduler_core.framework.types import PostFilterResult, PreFilterResult
from scheduler_core.plugins.helpers.hints import queue_own_pod
from scheduler_core.plugins.helpers.normalize import default_normalize

__all__ = ["DynamicResources"]

_STATE: Final = "DynamicResources"
_REJECTED: Final = unresolvable(
    "pod has resource claims: dynamic resource allocation is not supported by this scheduler"
)
_NOTHING_TO_FREE: Final = unschedulable("no new claims to deallocate")
_STILL_NOT: Final = unschedulable("still not schedulable")


class DynamicResources(
    EnqueueExtensions,
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    ScorePlugin,
    ReservePlugin,
    PreBindPlugin,
):
    """Args (DynamicResourcesArgs): ``filterTimeout`` and ``bindingTimeout``, checked and unused."""

    name = "DynamicResources"
    reads_pods_on_node = False

    def is_node_local(self, pod: Pod) -> bool:
        return not pod.resource_claims

    def __init__(self, _args: Mapping[str, Any], _handle: Handle) -> None:
        """Neither arguments nor the scheduler around it matter without claims."""

    def pre_enqueue(self, pod: Pod) -> Status:
        return SUCCESS

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeInfos
    ) -> tuple[PreFilterResult | None, Status]:
        state.write(_STATE, bool(pod.resource_claims))
        return None, _REJECTED if pod.resource_claims else SKIP

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        return _REJECTED if pod.resource_claims else SUCCESS

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> NodeStatuses:
        has_claims = np.full(len(nodes), bool(pod.resource_claims))
        return NodeStatuses.from_mask(has_claims, _REJECTED)

    def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        """An Error where an earlier plugin ended PreFilter: then neither this plugin nor any after
        it has anything to say, preemption among them."""
        has_claims = state.get(_STATE)
        if has_claims is None:
            return None, error("not found")
        return None, _STILL_NOT if has_claims else _NOTHING_TO_FREE

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        return 0

    def score_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Scores:
        return np.zeros(len(nodes), dtype=np.int64)

    def normalize_score(
        self, state: CycleState, pod: Pod, nodes: NodeInfos, scores: Scores
    ) -> Scores:
        return default_normalize(scores)

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Nothing was reserved."""

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SKIP

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SUCCESS

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Those of kube-scheduler. ResourceClaims, ResourceSlices and DeviceClasses are not watched
        yet, so theirs do not come; what they would need is looked at when they do."""
        changed = ActionType.ADD | ActionType.UPDATE
        node = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
        own = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
        return (
            ClusterEventWithHint(ClusterEvent(EventResource.NODE, node)),
            ClusterEventWithHint(ClusterEvent(EventResource.RESOURCE_CLAIM, changed)),
            ClusterEventWithHint(own, queue_own_pod),
            ClusterEventWithHint(ClusterEvent(EventResource.DEVICE_CLASS, changed)),
            ClusterEventWithHint(ClusterEvent(EventResource.RESOURCE_SLICE, changed)),
        )
