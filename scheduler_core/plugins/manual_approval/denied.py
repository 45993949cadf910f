"""Gangs that a person has denied: they stay away for a while, instead of asking again at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from scheduler_core.api import Pod
from scheduler_core.plugins.helpers.gangs import GangDirectory, GangFacts, GangId

__all__ = ["DeniedGangs"]

#: Seconds after which unschedulable pods are tried again although nothing has changed
#: (kube-scheduler 1.36, ``DefaultPodMaxInUnschedulablePodsDuration``).
AWAY: Final = 300.0


@dataclass(frozen=True, slots=True)
class _Denial:
    """``text`` is the person's word; ``group`` and ``labels`` (by uid) are what it was about."""

    text: str
    until: float
    group: GangFacts | None
    labels: Mapping[str, Mapping[str, str]]


class DeniedGangs:
    """A denied gang is not asked for again until its PodGroup changes in more than its status, a
    member comes or changes its labels, or five minutes have passed."""

    def __init__(self, gangs: GangDirectory) -> None:
        self._gangs = gangs
        self._denied: dict[GangId, _Denial] = {}

    def deny(self, gang: GangId, text: str, now: float) -> None:
        """A person has denied the gang as it is now."""
        self._forget_old(now)
        labels = {pod.uid: pod.labels for pod in self._gangs.members(gang)}
        self._denied[gang] = _Denial(text, now + AWAY, self._gangs.facts(gang), labels)

    def denial(self, gang: GangId, pod: Pod, now: float) -> str:
        """Why the pod need not ask, or "". A change makes the whole gang free to ask."""
        found = self._denied.get(gang)
        if found is None:
            return ""
        same = found.labels.get(pod.uid) == pod.labels and self._gangs.facts(gang) == found.group
        if now < found.until and same and not self._has_changed(gang, found):
            return found.text
        del self._denied[gang]
        return ""

    def _has_changed(self, gang: GangId, found: _Denial) -> bool:
        return any(found.labels.get(p.uid) != p.labels for p in self._gangs.members(gang))

    def _forget_old(self, now: float) -> None:
        self._denied = {gang: d for gang, d in self._denied.items() if d.until > now}
