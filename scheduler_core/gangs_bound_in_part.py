"""After a restart the rest of a gang comes first that is bound in part.

A gang that nobody had to approve is bound pod by pod, and nothing is kept of it before: if the
scheduler dies between two bindings, the next one finds some members bound and the others in the
queue, like any pods. The room that these held is free until somebody takes it. So they are tried
before anybody else; kube-scheduler tries them in their turn. Scheduler thread only. See
docs/design/016.
"""

from __future__ import annotations

from collections import defaultdict, deque

from scheduler_core.framework.types import QueuedPodInfo
from scheduler_core.plugins.helpers.gangs import GangDirectory, GangId
from scheduler_core.pod_group_attempt import in_turn
from scheduler_core.schedule_one import Parts
from scheduler_core.scheduling_attempts import SchedulingAttempts

__all__ = ["GangsBoundInPart"]


class GangsBoundInPart:
    """Looks once, when everything is listed and waits are taken up, and tries one pod per turn."""

    def __init__(
        self, parts: Parts, directory: GangDirectory, attempts: SchedulingAttempts
    ) -> None:
        self._queue = parts.queue
        self._directory = directory
        self._attempts = attempts
        self._left: deque[QueuedPodInfo] | None = None

    def schedule_one(self) -> bool:
        """Try the next of these pods; whether there was one."""
        if self._left is None:
            self._left = deque(self._find())
        while self._left:
            # A native gang's siblings were tried with the first of them, others may be gone.
            info = self._queue.pop_pod(self._left.popleft().pod)
            if info is not None:
                self._attempts.attempt(info)
                return True
        return False

    def _find(self) -> list[QueuedPodInfo]:
        """Gang by gang, the most important first."""
        gangs: defaultdict[GangId, list[QueuedPodInfo]] = defaultdict(list)
        for info in self._queue:
            gang = self._directory.gang_of(info.pod)
            if gang is not None:
                gangs[gang].append(info)
        in_part = [in_turn(infos) for gang, infos in gangs.items() if self._is_in_part(gang)]
        return [info for infos in sorted(in_part, key=_rank) for info in infos]

    def _is_in_part(self, gang: GangId) -> bool:
        bound = sum(1 for pod in self._directory.members(gang) if pod.node_name)
        return 0 < bound < self._directory.min_member(gang)


def _rank(infos: list[QueuedPodInfo]) -> tuple[int, float, str]:
    first = infos[0]
    return (-first.pod.priority, first.timestamp, first.key)
