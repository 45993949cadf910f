"""Writes to the cluster that no cycle waits for: conditions, nominations, events."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal

from scheduler_core.api import Pod
from scheduler_core.ports import ApiError, Cluster, Executor, NotFound, PodCondition

log = logging.getLogger(__name__)

#: An event's note is cut to this many bytes (kube-scheduler 1.36).
MAX_NOTE_BYTES = 1024


class ApiWriter:
    """Hands writes to the executor, in order per pod. A write that fails is logged: the next
    attempt of the pod writes anew."""

    def __init__(self, cluster: Cluster, executor: Executor) -> None:
        self._cluster = cluster
        self._executor = executor

    def patch_status(
        self,
        pod: Pod,
        condition: PodCondition | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """Set the condition and/or the nomination where that changes something."""
        if condition is not None and _has_condition(pod, condition):
            condition = None
        if nominated_node_name is not None and nominated_node_name == pod.nominated_node_name:
            nominated_node_name = None
        if condition is None and nominated_node_name is None:
            return
        self._submit(
            pod,
            lambda: self._cluster.patch_pod_status(
                pod.namespace,
                pod.name,
                pod.uid,
                condition=condition,
                nominated_node_name=nominated_node_name,
            ),
        )

    def emit_event(
        self,
        pod: Pod,
        *,
        type: Literal["Normal", "Warning"],
        reason: str,
        action: str,
        note: str,
        reporting_controller: str,
    ) -> None:
        self._submit(
            pod,
            lambda: self._cluster.emit_event(
                pod.raw,
                type=type,
                reason=reason,
                action=action,
                note=truncate_note(note),
                reporting_controller=reporting_controller,
            ),
        )

    def _submit(self, pod: Pod, write: Callable[[], None]) -> None:
        def task() -> None:
            try:
                write()
            except NotFound:
                log.debug("pod %s is gone, nothing to write", pod.key)
            except ApiError as exc:
                log.warning("writing the status of pod %s failed: %s", pod.key, exc)

        self._executor.submit(pod.uid, task)


def truncate_note(note: str) -> str:
    """At most 1024 bytes: 1020 and `` ...`` (kube-scheduler 1.36, ``truncateMessage``)."""
    encoded = note.encode()
    if len(encoded) <= MAX_NOTE_BYTES:
        return note
    return encoded[: MAX_NOTE_BYTES - 4].decode(errors="ignore") + " ..."


def _has_condition(pod: Pod, condition: PodCondition) -> bool:
    known = pod.condition(condition.type)
    return known is not None and (
        (known.status, known.reason, known.message)
        == (condition.status, condition.reason, condition.message)
    )
