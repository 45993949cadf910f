"""DefaultBinder: writes the decision through the pods/binding subresource (kube-scheduler 1.36)."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.interface import BindPlugin, Handle
from scheduler_core.framework.status import SUCCESS, Status, error
from scheduler_core.ports import ApiError, AsyncBinder

__all__ = ["DefaultBinder"]


class DefaultBinder(BindPlugin):
    """Runs on a binding thread, or on none where the cluster needs none to wait. What the API
    refuses becomes an Error status in its own words."""

    name = "DefaultBinder"

    def __init__(self, _args: Mapping[str, Any], handle: Handle) -> None:
        self._cluster = handle.cluster
        self._without_waiting = self._cluster if isinstance(self._cluster, AsyncBinder) else None

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        try:
            self._cluster.bind(pod.namespace, pod.name, pod.uid, node_name)
        except ApiError as refusal:
            return error(refusal)
        return SUCCESS

    def begin_bind(self, state: CycleState, pod: Pod, node_name: str) -> Future[None] | None:
        if self._without_waiting is None:
            return None
        return self._without_waiting.begin_binding(pod.namespace, pod.name, pod.uid, node_name)
