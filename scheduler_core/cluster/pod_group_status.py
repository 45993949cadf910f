"""Keeps the status of PodGroups up to date, as the coscheduling project's controller does.

Two things differ. Members are those of the group's own namespace, which is what membership means;
that controller forgets the namespace. And it gives a group up for good that has not been scheduled
for 48 hours; here the status is taken up again once a member of it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from scheduler_core.api.pod import POD_GROUP_LABEL
from scheduler_core.api.reader import parse_time
from scheduler_core.ports import ApiError, Json, NotFound, WatchEvent

from .inbox import WatchInbox, no_wake
from .objects import key_of, labels_of, name_of, namespace_of, timestamp, uid_of
from .sandbox import ActingView, SandboxCluster

__all__ = ["PodGroupController"]

ACTOR: Final = "podgroup-controller"

_FINAL: Final = frozenset({"Finished", "Failed"})
_UNSCHEDULED: Final = frozenset({None, "", "Pending", "Scheduling"})
_RETRY_SECONDS: Final = 1.0
#: Seconds after which a group that was never scheduled is left alone.
_GIVEN_UP: Final = 48 * 3600.0


class PodGroupController:
    """Writes phase and counts of a PodGroup whenever its members or itself change.

    Members are the pods of the group's namespace that carry its label. Everything happens in
    `tick`.
    """

    def __init__(self, cluster: SandboxCluster, *, wake: Callable[[], None] = no_wake) -> None:
        self._cluster = cluster
        self._inbox = WatchInbox(wake)
        self._members: dict[str, dict[str, Json]] = {}  # group key -> pod key -> pod
        self._group_of: dict[str, str] = {}  # pod key -> group key
        self._changed: dict[str, None] = {}  # group keys, in order of their first change
        self._retry_at: float | None = None
        self._inbox.watch(cluster, "PodGroup", "Pod")

    def stop(self) -> None:
        """Hear of nothing more."""
        self._inbox.stop()

    def next_deadline(self) -> float | None:
        """When `tick` has something to do: a time of day; None if nothing is planned."""
        return self._cluster.clock.now() if self._inbox else self._retry_at

    def tick(self, now: float) -> None:
        """Take in what has happened and write the statuses that follow."""
        for event in self._inbox.take():
            self._hear(event)
        changed, self._changed, self._retry_at = self._changed, {}, None
        if not changed:
            return
        try:
            with self._cluster.batch(ACTOR) as view:
                for key in changed:
                    self._write(view, key, now)
        except ApiError:
            self._changed = changed
            self._retry_at = now + _RETRY_SECONDS

    def _hear(self, event: WatchEvent) -> None:
        if event.type == "SYNCED":
            return
        key = key_of(namespace_of(event.object), name_of(event.object))
        if event.kind == "PodGroup":
            if event.type != "DELETED":
                self._changed[key] = None
            return
        self._leave(key)
        group = labels_of(event.object).get(POD_GROUP_LABEL)
        if group and event.type != "DELETED":
            self._join(key, key_of(namespace_of(event.object), group), event.object)

    def _leave(self, pod: str) -> None:
        group = self._group_of.pop(pod, None)
        if group is None:
            return
        self._members[group].pop(pod, None)
        if not self._members[group]:
            del self._members[group]
        self._changed[group] = None

    def _join(self, pod: str, group: str, obj: Json) -> None:
        self._group_of[pod] = group
        self._members.setdefault(group, {})[pod] = obj
        self._changed[group] = None

    def _write(self, view: ActingView, key: str, now: float) -> None:
        namespace, _, name = key.partition("/")
        try:
            group = view.get("PodGroup", namespace, name)
        except NotFound:
            return
        members = list(self._members.get(key, {}).values())
        if _is_given_up(group, members, now):
            return
        status = _status(group, members, timestamp(now))
        if status == group.get("status"):
            return
        patch = {"metadata": {"uid": uid_of(group)}, "status": status}
        try:
            view.patch("PodGroup", namespace, name, patch, subresource="status")
        except ApiError as error:
            if error.code not in (404, 409):
                raise


def _is_given_up(group: Json, members: list[Json], now: float) -> bool:
    """It has been there for long, and no member of it runs or has run."""
    created = group["metadata"].get("creationTimestamp")
    phase = (group.get("status") or {}).get("phase")
    if not created or now - parse_time(created) <= _GIVEN_UP or phase not in _UNSCHEDULED:
        return False
    return all(pod["status"].get("phase") in (None, "", "Pending") for pod in members)


def _status(group: Json, members: list[Json], now: str) -> Json:
    old = group.get("status") or {}
    phases = [pod["status"].get("phase") for pod in members]
    status = {
        **old,
        "running": phases.count("Running"),
        "succeeded": phases.count("Succeeded"),
        "failed": phases.count("Failed"),
    }
    status["phase"] = _phase(old.get("phase", ""), status, len(members), _min_member(group))
    if status["phase"] == "Scheduling" and "scheduleStartTime" not in old:
        status["scheduleStartTime"] = now
    if status["phase"] != "Pending" and not old.get("occupiedBy"):
        owners = _owners(members)
        if owners:
            status["occupiedBy"] = owners
    return status


def _owners(members: list[Json]) -> str:
    """Whose pods they are: "namespace/name" of the first member's owners, joined by commas."""
    if not members:
        return ""
    first = members[0]["metadata"]
    names = [owner.get("name", "") for owner in first.get("ownerReferences") or ()]
    return ",".join(sorted(key_of(namespace_of(members[0]), name) for name in names))


def _phase(old: str, counts: Json, members: int, needed: int) -> str:
    if old in _FINAL:
        return old
    running, succeeded, failed = counts["running"], counts["succeeded"], counts["failed"]
    if succeeded >= needed:
        return "Finished"
    if failed and failed + running + succeeded >= needed:
        return "Failed"
    if running + succeeded >= needed:
        return "Running"
    return "Scheduling" if members >= needed else "Pending"


def _min_member(group: Json) -> int:
    return int((group.get("spec") or {}).get("minMember") or 1)
