"""Members of gangs whose binding failed while others of their gang are bound, or about to be.

kube-scheduler gives such a pod's node back and tries the pod anew. Another pod may have the room by
then, and the gang would run in part, which nobody can undo. So the pod stays assumed on its node,
and only its binding is tried again (docs/design/016). Scheduler thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from scheduler_core.api import Pod
from scheduler_core.framework.interface import Informer
from scheduler_core.framework.status import SUCCESS, Status, error
from scheduler_core.plugins.helpers.gangs import GangDirectory, GangId, quorum_plugin
from scheduler_core.pod_cycle import PodCycle
from scheduler_core.ports import ApiError, Clock
from scheduler_core.waiting_record import GONE, bound_by_another

__all__ = ["LONGEST_REFUSAL", "Backoff", "HeldBindings"]

#: Seconds for which a binding that the API refuses is tried: the longest that a pod may hold a node
#: at Permit. While the API does not answer nobody can have the room, so that time has no end.
LONGEST_REFUSAL: Final = 900.0
#: Codes with which the API says "not now": Request Timeout, Too Many Requests.
_NOT_NOW: Final = (408, 429)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds until the first retry; each later one waits twice as long, up to ``longest``."""

    first: float
    longest: float

    def after(self, failures: int) -> float:
        return min(self.longest, self.first * 2.0 ** min(failures - 1, 32))


@dataclass(slots=True, eq=False)
class _Held:
    """``due``: when the binding is tried again; None while it is."""

    cycle: PodCycle
    gang: GangId
    failures: int = 0
    status: Status = SUCCESS
    due: float | None = None
    refused_since: float | None = None


class HeldBindings:
    """Keeps, retries and lets go.

    Args:
        pods, nodes: informers.
        is_on_its_way: whether a pod is assumed and does not wait at Permit.
        retry: tries a cycle's binding again.
        finish: ends a binding cycle: with Success, or with the reason for which its node is given
            back.
        tell: says of a cycle what failed, and why it is held, for people to read.
    """

    def __init__(
        self,
        pods: Informer,
        nodes: Informer,
        gangs: GangDirectory,
        clock: Clock,
        backoff: Backoff,
        *,
        is_on_its_way: Callable[[Pod], bool],
        retry: Callable[[PodCycle], None],
        finish: Callable[[PodCycle, Status], None],
        tell: Callable[[PodCycle, str, str], None],
    ) -> None:
        self._pods = pods
        self._nodes = nodes
        self._gangs = gangs
        self._clock = clock
        self._backoff = backoff
        self._is_on_its_way = is_on_its_way
        self._retry = retry
        self._finish = finish
        self._tell = tell
        self._held: dict[str, _Held] = {}

    def __len__(self) -> int:
        """Pods that wait for their next try."""
        return sum(held.due is not None for held in self._held.values())

    # -- answers of the cluster --------------------------------------------------------------------

    def ended(self, cycle: PodCycle, status: Status) -> Status | None:
        """A binding has ended. How its cycle ends; None: not yet, it is tried again."""
        uid = cycle.pod.uid
        held = self._held.pop(uid, None)
        if status.is_success:
            return status
        gang = self._gang_that_counts(cycle)
        if gang is None or not cycle.is_pre_bound:
            return status
        if self._is_bound_there(cycle):
            return SUCCESS  # only the answer was lost
        held = held or _Held(cycle, gang)
        held.failures, held.status = held.failures + 1, status
        now = self._clock.now()
        held.refused_since = (held.refused_since or now) if _is_refusal(status) else None
        self._held[uid] = held
        if not self._is_worth_it(held, now):
            del self._held[uid]
            if not self._has_others(held):
                self._let_gang_go(gang, status)
            return status
        held.due = now + self._backoff.after(held.failures)
        self._tell(cycle, status.message, self._why(held))
        return None

    def _gang_that_counts(self, cycle: PodCycle) -> GangId | None:
        """Its gang, where the profile has members of such gangs wait for each other."""
        gang = self._gangs.gang_of(cycle.pod)
        if gang is None or cycle.framework.plugin(quorum_plugin(gang.kind)) is None:
            return None
        return gang

    def _latest(self, cycle: PodCycle) -> Pod | None:
        pod: Pod | None = self._pods.get(cycle.pod.key)
        return pod if pod is not None and pod.uid == cycle.pod.uid else None

    def _is_bound_there(self, cycle: PodCycle) -> bool:
        pod = self._latest(cycle)
        return pod is not None and pod.node_name == cycle.node_name

    def _is_worth_it(self, held: _Held, now: float) -> bool:
        """The pod and its node are there, it may still become the gang's, and the API has not said
        no for so long."""
        pod = self._latest(held.cycle)
        if pod is None or pod.node_name or pod.deletion_timestamp is not None:
            return False
        if self._nodes.get(held.cycle.node_name) is None or self._gangs.group(held.gang) is None:
            return False
        if held.refused_since is not None and now - held.refused_since >= LONGEST_REFUSAL:
            return False
        return self._has_others(held)

    def _has_others(self, held: _Held) -> bool:
        """Somebody of the gang is bound, or about to be."""
        for pod in self._gangs.members(held.gang):
            if pod.uid == held.cycle.pod.uid:
                continue
            other = self._held.get(pod.uid)
            if other is not None and other.due is not None:
                continue  # it waits for its next try, as this one
            if pod.node_name or self._is_on_its_way(pod):
                return True
        return False

    def _why(self, held: _Held) -> str:
        return (
            f"{held.status.message}; its binding is tried again on {held.cycle.node_name}, which it"
            f" keeps: others of its gang {held.gang.key} are bound, or about to be"
        )

    # -- time --------------------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        return min((h.due for h in self._held.values() if h.due is not None), default=None)

    def turn(self, now: float) -> bool:
        """Try again what is due; whether there was anything."""
        due = [h for h in self._held.values() if h.due is not None and h.due <= now]
        for held in due:
            if held.cycle.pod.uid not in self._held:
                continue  # it went with another one
            if self._is_worth_it(held, now):
                held.due = None
                self._retry(held.cycle)
            else:
                self._let_go(held, held.status)
        return bool(due)

    # -- what happens around -----------------------------------------------------------------------

    def pod_deleted(self, pod: Pod) -> bool:
        """Whether it was held here; its node is free."""
        return self._end(pod.uid, error(GONE))

    def pod_bound(self, pod: Pod) -> None:
        """Whoever did it."""
        held = self._held.get(pod.uid)
        if held is not None:
            here = pod.node_name == held.cycle.node_name
            self._end(pod.uid, SUCCESS if here else error(bound_by_another(pod)))

    def node_deleted(self, name: str) -> None:
        for held in list(self._held.values()):
            if held.cycle.node_name == name:
                text = f"node {name} was deleted before {held.cycle.pod.key} was bound"
                self._end(held.cycle.pod.uid, error(text))

    def gang_broken(self, gang: GangId, text: str) -> None:
        """The gang is tried anew as a whole."""
        self._let_gang_go(gang, error(text))

    def give_up(self) -> list[tuple[PodCycle, Status]]:
        """The scheduler ends, and the next one takes these pods up: who they are, and why."""
        held, self._held = self._held, {}
        return [(item.cycle, item.status) for item in held.values() if item.due is not None]

    def _end(self, uid: str, status: Status) -> bool:
        """Not where the binding is under way: its answer says what became of it."""
        held = self._held.get(uid)
        if held is None or held.due is None:
            return False
        self._let_go(held, status)
        return True

    def _let_gang_go(self, gang: GangId, status: Status) -> None:
        for held in list(self._held.values()):
            if held.gang == gang:
                self._end(held.cycle.pod.uid, status)

    def _let_go(self, held: _Held, status: Status) -> None:
        del self._held[held.cycle.pod.uid]
        self._finish(held.cycle, status)


def _is_refusal(status: Status) -> bool:
    """The API has answered, and the answer is no."""
    cause = status.error
    if isinstance(cause, ApiError):
        return cause.code < 500 and cause.code not in _NOT_NOW
    return not isinstance(cause, OSError)
