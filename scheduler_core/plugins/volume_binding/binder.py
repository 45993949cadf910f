"""Writes the volumes that a pod was given, and waits until they are bound. On binding threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from scheduler_core.api import Node, Pod
from scheduler_core.api.kinds import KINDS
from scheduler_core.api.storage import (
    SELECTED_NODE,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
)
from scheduler_core.framework.status import SUCCESS, Status, error
from scheduler_core.plugins.helpers.csi_migration import admits
from scheduler_core.plugins.volume_binding.pod_claims import PodVolumes, StaticBinding
from scheduler_core.ports import ApiError, Clock, Cluster

__all__ = ["VolumeBinder"]

_POLL_SECONDS: Final = 1.0
_TIMED_OUT: Final = "context deadline exceeded"
_CANCELLED: Final = "context canceled"


class _BindingFailed(Exception):
    """Something says that the volumes will not be bound: the pod has to be scheduled again."""


class VolumeBinder:
    """Reads and writes through the API alone: what the scheduler has assumed does not count here.

    Args:
        timeout: seconds to wait for the volumes; with 0 it does not wait, and fails if there was
            anything to write.
        is_cancelled: whether the wait for a pod (by its uid) is to be given up.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        timeout: float,
        is_cancelled: Callable[[str], bool],
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._timeout = timeout
        self._is_cancelled = is_cancelled

    def bind(self, pod: Pod, node_name: str, volumes: PodVolumes) -> Status:
        """Success once every claim is bound; else an Error that begins as kube-scheduler's does."""
        try:
            self._write(volumes)
        except ApiError as refusal:
            return error(refusal)
        try:
            return self._wait(pod, node_name, volumes)
        except (ApiError, _BindingFailed) as failure:
            return error(f"binding volumes: {failure}")

    def _write(self, volumes: PodVolumes) -> None:
        for binding in volumes.bindings:
            self._cluster.update("PersistentVolume", dict(binding.volume.raw))
        for claim in volumes.provisions:
            self._cluster.update("PersistentVolumeClaim", dict(claim.raw))

    def _wait(self, pod: Pod, node_name: str, volumes: PodVolumes) -> Status:
        deadline = self._clock.now() + self._timeout
        while (left := deadline - self._clock.now()) > 0:
            self._clock.sleep(min(_POLL_SECONDS, left))
            if self._is_cancelled(pod.uid):
                raise _BindingFailed(_CANCELLED)
            if self._is_bound(pod, node_name, volumes):
                return SUCCESS
        raise _BindingFailed(_TIMED_OUT)

    # -- one look at the API -----------------------------------------------------------------------

    def _is_bound(self, pod: Pod, node_name: str, volumes: PodVolumes) -> bool:
        """Raises:
        _BindingFailed: it never will be.
        """
        node = cast("Node | None", self._get("Node", node_name))
        if node is None:
            raise _BindingFailed(f'failed to get node "{node_name}": node "{node_name}" not found')
        if self._get("Pod", pod.name, pod.namespace) is None:
            raise _BindingFailed(f'pod does not exist any more: pod "{pod.name}" not found')
        csi_node = cast("CSINode | None", self._get("CSINode", node_name))
        return all(self._is_static_bound(b, node, csi_node) for b in volumes.bindings) and all(
            self._is_provisioned(claim, node, csi_node) for claim in volumes.provisions
        )

    def _is_static_bound(
        self, binding: StaticBinding, node: Node, csi_node: CSINode | None
    ) -> bool:
        name = binding.volume.name
        volume = self._volume(name)
        if volume is None:
            raise _BindingFailed(f'failed to check binding: persistentvolume "{name}" not found')
        claim = self._claim(binding.claim)
        if claim is None:
            gone = f'persistentvolumeclaim "{binding.claim.name}" not found'
            raise _BindingFailed(f"failed to check binding: {gone}")
        _check_affinity(volume, node, csi_node)
        if volume.claim_ref is None or not volume.claim_ref.uid:
            raise _BindingFailed(f'ClaimRef got reset for pv "{name}"')
        return claim.is_fully_bound

    def _is_provisioned(
        self, asked: PersistentVolumeClaim, node: Node, csi_node: CSINode | None
    ) -> bool:
        claim = self._claim(asked)
        if claim is None:
            gone = f'persistentvolumeclaim "{asked.name}" not found'
            raise _BindingFailed(f"failed to check provisioning pvc: {gone}")
        if not claim.annotations:
            raise _BindingFailed(f'selectedNode annotation reset for PVC "{claim.name}"')
        if claim.annotations.get(SELECTED_NODE) != node.name:
            # A provisioner that cannot make the volume takes the annotation away.
            raise _BindingFailed(f'provisioning failed for PVC "{claim.name}"')
        if claim.volume_name:
            volume = self._volume(claim.volume_name)
            if volume is None:
                return False  # it may not have arrived yet
            _check_affinity(volume, node, csi_node)
        return claim.is_fully_bound

    def _volume(self, name: str) -> PersistentVolume | None:
        return cast("PersistentVolume | None", self._get("PersistentVolume", name))

    def _claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim | None:
        found = self._get("PersistentVolumeClaim", claim.name, claim.namespace)
        return cast("PersistentVolumeClaim | None", found)

    def _get(self, kind: str, name: str, namespace: str = "") -> object | None:
        try:
            return KINDS[kind].parse(self._cluster.get(kind, namespace, name))
        except ApiError as refusal:
            if refusal.code == 404:
                return None
            raise


def _check_affinity(volume: PersistentVolume, node: Node, csi_node: CSINode | None) -> None:
    try:
        admitted = admits(volume, node, csi_node)
    except ValueError as fault:
        raise _BindingFailed(f"failed to translate pv to csi: {fault}") from fault
    if not admitted:
        raise _BindingFailed(
            f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}": '
            "no matching NodeSelectorTerms"
        )
