"""Pods and gangs that were turned down: they stay away for a while, instead of asking again."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b
from typing import Final

from scheduler_core.api import Pod
from scheduler_core.plugins.helpers.gangs import GangDirectory, GangId
from scheduler_core.records import Rest

__all__ = ["POD", "Denied"]

#: Seconds after which unschedulable pods are tried again although nothing has changed
#: (kube-scheduler 1.36, ``DefaultPodMaxInUnschedulablePodsDuration``).
AWAY: Final = 300.0
#: ``Rest.kind`` of a pod that belongs to no gang.
POD: Final = "Pod"


class Denied:
    """What was turned down is not asked for again until its PodGroup changes in more than its
    status, a member comes or changes its labels, or five minutes have passed.

    What it was about is kept as digests, the same in every process: a rest outlives a restart.
    """

    def __init__(self, gangs: GangDirectory) -> None:
        self._gangs = gangs
        #: In the order in which they end.
        self._rests: dict[GangId, Rest] = {}

    def deny(self, pod: Pod, text: str, now: float) -> Rest:
        """A person, or a deadline, has turned the pod down, and its gang, as they are now."""
        self._forget_old(now)
        who = self._who(pod)
        labels = {member.uid: _digest(member.labels) for member in self._members(who, pod)}
        rest = Rest(who.kind, who.key, text, now + AWAY, self._asked(who), labels)
        self._rests.pop(who, None)
        self._rests[who] = rest
        return rest

    def restore(self, rests: Iterable[Rest]) -> None:
        """Rests that had not ended when the last worker did; before anything is denied."""
        for rest in sorted(rests, key=lambda rest: rest.until):
            self._rests[GangId(rest.kind, rest.key)] = rest

    def denial(self, pod: Pod, now: float) -> str:
        """Why the pod need not ask, or "". A change makes the whole gang free to ask."""
        if not self._rests:
            return ""
        who = self._who(pod)
        found = self._rests.get(who)
        if found is None:
            return ""
        if now < found.until and not self._has_changed(who, pod, found):
            return found.text
        del self._rests[who]
        return ""

    def _who(self, pod: Pod) -> GangId:
        gang = self._gangs.gang_of(pod)
        known = gang is not None and self._gangs.group(gang) is not None
        return gang if gang is not None and known else GangId(POD, pod.key)

    def _members(self, who: GangId, pod: Pod) -> Collection[Pod]:
        return [pod] if who.kind == POD else self._gangs.members(who)

    def _asked(self, who: GangId) -> str:
        facts = self._gangs.facts(who) if who.kind != POD else None
        if facts is None:
            return ""
        return _digest([facts.uid, facts.labels, facts.annotations, facts.min_member])

    def _has_changed(self, who: GangId, pod: Pod, found: Rest) -> bool:
        members = {member.uid: member for member in self._members(who, pod)} | {pod.uid: pod}
        return self._asked(who) != found.group or any(
            found.members.get(uid) != _digest(member.labels) for uid, member in members.items()
        )

    def _forget_old(self, now: float) -> None:
        while self._rests:
            first = next(iter(self._rests))
            if self._rests[first].until > now:
                return
            del self._rests[first]


def _digest(facts: object) -> str:
    text = json.dumps(facts, sort_keys=True, default=_plain)
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _plain(value: object) -> dict[str, object]:
    """A mapping that is no dict."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no fact of a pod")
