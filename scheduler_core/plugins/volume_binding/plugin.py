"""VolumeBinding: finds, reserves and binds the volumes of a pod (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from scheduler_core.api import Pod
from scheduler_core.api.errors import invalid
from scheduler_core.api.storage import PersistentVolume, PersistentVolumeClaim
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.errors import PluginConfigError
from scheduler_core.framework.events import ClusterEventWithHint
from scheduler_core.framework.interface import (
    EnqueueExtensions,
    FilterPlugin,
    Handle,
    PreBindPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
    Scores,
)
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.status import SKIP, SUCCESS, Status, error, unresolvable
from scheduler_core.framework.types import PreFilterResult
from scheduler_core.plugins.helpers.plain_volumes import has_only_plain_volumes
from scheduler_core.plugins.volume_binding.all_nodes import AllNodes
from scheduler_core.plugins.volume_binding.assume_cache import AssumeCache
from scheduler_core.plugins.volume_binding.assumptions import kept_for, with_selected_node
from scheduler_core.plugins.volume_binding.binder import VolumeBinder
from scheduler_core.plugins.volume_binding.events import EVENTS
from scheduler_core.plugins.volume_binding.one_node import find_pod_volumes
from scheduler_core.plugins.volume_binding.pod_claims import (
    PodClaims,
    PodVolumes,
    StaticBinding,
    check_claims,
    sort_claims,
)
from scheduler_core.plugins.volume_binding.volumes import StorageView

__all__ = ["VolumeBinding"]

_STATE: Final = "VolumeBinding"
_UNBOUND: Final = unresolvable("pod has unbound immediate PersistentVolumeClaims")
_DEFAULT_TIMEOUT: Final = 600


@dataclass(slots=True)
class _State:
    """The pod's claims; after Reserve also what has been assumed for them, and where."""

    claims: PodClaims = PodClaims()
    all_bound: bool = False
    node_name: str = ""
    volumes: PodVolumes | None = None

    def clone(self) -> _State:
        """Claims do not depend on pods that are added or removed in thought."""
        return self


class VolumeBinding(
    EnqueueExtensions,
    PreFilterPlugin,
    FilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    ReservePlugin,
    PreBindPlugin,
):
    """Args (VolumeBindingArgs): ``bindTimeoutSeconds`` (600; 0: do not wait).

    It holds a slot at Score and gives no scores: kube-scheduler scores volumes only with the
    feature gate StorageCapacityScoring, which is off.

    Raises:
        PluginConfigError: a negative timeout, or ``shape``, which belongs to that feature gate.
    """

    name = "VolumeBinding"

    def is_node_local(self, pod: Pod) -> bool:
        return has_only_plain_volumes(pod)

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        timeout = _read_timeout(args)
        self._handle = handle
        self._known_claims = handle.informer("PersistentVolumeClaim")
        self._classes = handle.informer("StorageClass")
        self._claims = AssumeCache[PersistentVolumeClaim](self._known_claims)
        self._volumes = AssumeCache[PersistentVolume](handle.informer("PersistentVolume"))
        self._view = StorageView(handle, self._volumes)
        self._binder = VolumeBinder(handle.cluster, handle.clock, timeout, self._is_cancelled)

    # -- which nodes -------------------------------------------------------------------------------

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeInfos
    ) -> tuple[PreFilterResult | None, Status]:
        uses_claims, status = check_claims(pod, self._known_claims)
        if not status.is_success:
            return None, status
        if not uses_claims:
            state.write(_STATE, _State())
            return None, SKIP
        claims = sort_claims(pod, self._claims, self._classes)
        if isinstance(claims, Status):
            return None, claims
        if claims.immediate:
            return None, _UNBOUND
        state.write(_STATE, _State(claims))
        return None, SUCCESS

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        claims = state.read(_STATE, _State).claims
        if node_info.node is None:
            return SUCCESS
        found = find_pod_volumes(claims, node_info.node, self._view)
        return found if isinstance(found, Status) else SUCCESS

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> NodeStatuses:
        return AllNodes(nodes, self._view).check(state.read(_STATE, _State).claims)

    # -- no scores ---------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Status:
        return SKIP

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        return 0

    def score_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Scores:
        return np.zeros(len(nodes), dtype=np.int64)

    # -- in memory ---------------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Other pods see the volumes as taken from now on."""
        known = state.read(_STATE, _State)
        known.all_bound = not known.claims.delayed
        if known.all_bound:
            return SUCCESS
        node_info = self._handle.nodes.get(node_name)
        if node_info is None or node_info.node is None:
            return error(_no_volumes(node_name))
        found = find_pod_volumes(known.claims, node_info.node, self._view)
        if isinstance(found, Status):
            return found
        known.node_name, known.volumes = node_name, self._assume(found, node_name)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        known: _State | None = state.get(_STATE)
        if known is None or known.volumes is None:
            return
        for binding in known.volumes.bindings:
            self._volumes.restore(binding.volume.key)
        for claim in known.volumes.provisions:
            self._claims.restore(claim.key)

    def _assume(self, found: PodVolumes, node_name: str) -> PodVolumes:
        bindings = []
        for binding in found.bindings:
            volume = kept_for(binding.volume, binding.claim)
            if volume is not binding.volume:
                self._volumes.assume(volume)
            bindings.append(StaticBinding(volume, binding.claim))
        provisions = tuple(with_selected_node(claim, node_name) for claim in found.provisions)
        for claim in provisions:
            self._claims.assume(claim)
        return PodVolumes(tuple(bindings), provisions)

    # -- in the cluster ----------------------------------------------------------------------------

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        known = state.read(_STATE, _State)
        if known.all_bound:
            return SKIP
        if known.volumes is None or known.node_name != node_name:
            return error(_no_volumes(node_name))
        return SUCCESS

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        known = state.read(_STATE, _State)
        if known.all_bound:
            return SUCCESS
        if known.volumes is None or known.node_name != node_name:
            return error(_no_volumes(node_name))
        return self._binder.bind(pod, node_name, known.volumes)

    def _is_cancelled(self, uid: str) -> bool:
        return self._handle.is_stopping or self._handle.is_pre_bind_cancelled(uid)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return EVENTS


def _no_volumes(node_name: str) -> str:
    return f'no pod volume found for node "{node_name}"'


def _read_timeout(args: Mapping[str, Any]) -> int:
    timeout = args.get("bindTimeoutSeconds", _DEFAULT_TIMEOUT)
    if not isinstance(timeout, int) or timeout < 0:
        text = "invalid BindTimeoutSeconds, should not be a negative value"
        raise PluginConfigError("bindTimeoutSeconds", invalid(timeout, text))
    if args.get("shape"):
        text = (
            "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        )
        raise PluginConfigError("shape", invalid(args["shape"], text))
    return timeout
