"""The condition of a native PodGroup that says whether it has been scheduled (kube-scheduler 1.36).

It is PodGroupScheduled in v1alpha2 and PodGroupInitiallyScheduled from Kubernetes 1.37 on; once it
is True it never goes back to False.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from scheduler_core.api import NATIVE_POD_GROUP, NativePodGroup, format_time
from scheduler_core.framework.interface import Informer
from scheduler_core.ports import ApiError, Clock, Cluster, Conflict, Executor, Json, NotFound

__all__ = ["GroupReason", "PodGroupConditions"]

log = logging.getLogger(__name__)

#: How often a write is tried when others write the same object.
_TRIES: Final = 3


class GroupReason(enum.StrEnum):
    """The condition's reasons; the first alone goes with status True."""

    SCHEDULED = "Scheduled"
    UNSCHEDULABLE = "Unschedulable"
    ERROR = "SchedulerError"


class PodGroupConditions:
    """Writes the condition, on the executor. A write that fails is logged: the next cycle of the
    group writes anew."""

    def __init__(
        self, cluster: Cluster, executor: Executor, clock: Clock, groups: Informer
    ) -> None:
        self._cluster = cluster
        self._executor = executor
        self._clock = clock
        self._groups = groups

    def tell(self, key: str, reason: GroupReason, message: str = "") -> None:
        """Say how the last cycle of a group ended, where that changes something."""
        group = self._groups.get(key)
        if not isinstance(group, NativePodGroup):
            return
        wanted = _condition(group, reason, message)
        if _merged(group.raw, wanted, "") is None:
            return
        now = format_time(self._clock.now())
        self._executor.submit(f"podgroup/{group.uid}", lambda: self._write(group, wanted, now))

    def _write(self, group: NativePodGroup, wanted: Json, now: str) -> None:
        try:
            for _ in range(_TRIES):
                if self._try_to_write(group, wanted, now):
                    return
        except NotFound:
            log.debug("pod group %s is gone, nothing to write", group.key)
        except ApiError as exc:
            log.warning("writing the status of pod group %s failed: %s", group.key, exc)

    def _try_to_write(self, group: NativePodGroup, wanted: Json, now: str) -> bool:
        """False where somebody else wrote in between."""
        latest = self._cluster.get(NATIVE_POD_GROUP, group.namespace, group.name)
        metadata = latest["metadata"]
        if metadata.get("uid") != group.uid:
            return True
        conditions = _merged(latest, wanted, now)
        if conditions is None:
            return True
        head = {"uid": group.uid, "resourceVersion": metadata["resourceVersion"]}
        patch = {"metadata": head, "status": {"conditions": conditions}}
        try:
            self._cluster.patch(
                NATIVE_POD_GROUP, group.namespace, group.name, patch, subresource="status"
            )
        except Conflict:
            return False
        return True


def _condition(group: NativePodGroup, reason: GroupReason, message: str) -> Json:
    return {
        "type": group.dialect.scheduled_condition,
        "status": "True" if reason is GroupReason.SCHEDULED else "False",
        "reason": reason.value,
        "message": message,
        "observedGeneration": group.generation,
    }


def _merged(raw: Mapping[str, Any], wanted: Json, now: str) -> Sequence[Json] | None:
    """The object's conditions with the new one; None where that changes nothing, or would take
    back that the group has been scheduled. lastTransitionTime moves only with the status."""
    conditions: list[Json] = list((raw.get("status") or {}).get("conditions") or ())
    old = next((c for c in conditions if c.get("type") == wanted["type"]), None)
    if old is None:
        return [*conditions, {**wanted, "lastTransitionTime": now}]
    if all(old.get(field) == value for field, value in wanted.items()):
        return None
    if old.get("status") == "True" and wanted["status"] != "True":
        return None
    unmoved = old.get("status") == wanted["status"]
    since = old.get("lastTransitionTime", now) if unmoved else now
    entry = {**wanted, "lastTransitionTime": since}
    return [entry if c is old else c for c in conditions]
