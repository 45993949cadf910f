"""Pods that wait at Permit: records with deadlines, not sleeping threads.

All of it runs on the scheduler thread. Allow, Reject and Preempt only note the outcome and tell the
owner (``on_change``); the scheduler's loop does what follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from scheduler_core.api import Pod
from scheduler_core.framework.status import SUCCESS, Code, Status, unschedulable
from scheduler_core.records import ApprovalTerms, WaitOutcome

#: Longest wait that a Permit plugin may ask for, in seconds (kube-scheduler 1.36, ``maxTimeout``).
MAX_PERMIT_TIMEOUT = 15 * 60.0


@dataclass(frozen=True, slots=True)
class PermitWait:
    """One plugin's Wait: why, for how long, and until what time of day."""

    plugin: str
    timeout: float
    deadline: float
    reason: str = ""


class WaitingPod:
    """One pod parked at Permit.

    ``status`` is None while it waits. The first Reject, Preempt or expiry wins, and so does the
    last Allow; whatever comes later changes nothing.
    """

    __slots__ = (
        "_on_change",
        "_pending",
        "_satisfied",
        "asked_plugins",
        "first_deadline",
        "node_name",
        "outcome",
        "pod",
        "resolved_at",
        "resolved_by",
        "status",
        "terms",
    )

    def __init__(
        self,
        pod: Pod,
        node_name: str,
        waits: Sequence[PermitWait],
        on_change: Callable[[WaitingPod], None],
    ) -> None:
        self.pod = pod
        self.node_name = node_name
        self._pending: dict[str, PermitWait] = {wait.plugin: wait for wait in waits}
        self._on_change = on_change
        #: Pending plugins that wait for others alone: their deadlines do not count.
        self._satisfied: frozenset[str] = frozenset()
        #: What an approval needs; None where nobody has to approve.
        self.terms: ApprovalTerms | None = None
        #: Every plugin that had the pod wait, also those that have allowed since.
        self.asked_plugins = frozenset(self._pending)
        #: The earliest deadline of plugins still pending; kept as it was once the wait has ended.
        self.first_deadline = self.deadline
        #: Time of day, set by the owner when it settles the pod.
        self.resolved_at: float | None = None
        self.status: Status | None = None
        self.outcome: WaitOutcome | None = None
        self.resolved_by = ""

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        return tuple(self._pending)

    @property
    def waits(self) -> tuple[PermitWait, ...]:
        """Waits of the plugins that have not allowed yet, earliest deadline first."""
        return tuple(sorted(self._pending.values(), key=lambda w: (w.deadline, w.plugin)))

    @property
    def deadline(self) -> float:
        """When the first of the pending plugins times out; the pod is rejected then. Infinity
        where no deadline counts."""
        counting = (w for w in self._pending.values() if w.plugin not in self._satisfied)
        return min((w.deadline for w in counting), default=float("inf"))

    @property
    def next_wait(self) -> PermitWait | None:
        """The wait whose deadline comes first, of those that count."""
        return next((w for w in self.waits if w.plugin not in self._satisfied), None)

    def satisfy(self, plugin: str, satisfied: bool = True) -> None:
        """``plugin`` has what it waited for, and still waits for others (a gang that is let go as
        one): until that is taken back its deadline does not count."""
        if satisfied:
            self._satisfied |= {plugin}
        else:
            self._satisfied -= {plugin}
        self._note_deadline()

    def allow(self, plugin: str) -> None:
        if self.status is not None or self._pending.pop(plugin, None) is None:
            return
        if self._pending:
            self._note_deadline()
            self._on_change(self)
        else:
            self._resolve(SUCCESS, WaitOutcome.ALLOWED, plugin)

    def ask(
        self,
        plugin: str,
        timeout: float,
        now: float,
        reason: str,
        terms: ApprovalTerms | None = None,
    ) -> None:
        """One more plugin wants the pod to wait: a gang turned out to need a person while this
        member waited for others. Also after the last Allow, as long as the owner has not acted on
        it; a plugin that has asked before is heard again only where its terms are others."""
        let_go = self.status is not None and not self.status.is_success
        if let_go or self.resolved_at is not None:
            return
        if plugin in self.asked_plugins:
            if plugin in self._pending and terms is not None and terms != self.terms:
                self.terms = terms
                self._on_change(self)
            return
        timeout = min(timeout, MAX_PERMIT_TIMEOUT)
        self._pending[plugin] = PermitWait(plugin, timeout, now + timeout, reason)
        self.asked_plugins |= {plugin}
        self.terms = terms if terms is not None else self.terms
        self._note_deadline()
        self.status, self.outcome, self.resolved_by = None, None, ""
        self._on_change(self)

    def _note_deadline(self) -> None:
        """Where no deadline counts any more the last one is what people go on to see."""
        deadline = self.deadline
        if deadline != float("inf"):
            self.first_deadline = deadline

    def reject(self, plugin: str, message: str) -> None:
        outcome = WaitOutcome.REMOVED if message == "removed" else WaitOutcome.REJECTED
        self._resolve(unschedulable(message, plugin=plugin), outcome, plugin)

    def take_away(self, message: str) -> None:
        """Another bound it: there is nothing left to wait for."""
        self._resolve(unschedulable(message), WaitOutcome.REMOVED, "")

    def preempt(self, plugin: str, message: str) -> None:
        self._resolve(Status(Code.ERROR, (message,), plugin), WaitOutcome.PREEMPTED, plugin)

    def break_up(self, message: str) -> None:
        """The node that it, or a member of its gang, held is gone: it is tried again at once."""
        self._resolve(Status(Code.ERROR, (message,)), WaitOutcome.BROKEN, "")

    def expire(self, now: float) -> bool:
        """Reject the pod if a pending plugin's time is over; whether it was."""
        first = self.next_wait if self.status is None else None
        if first is None or now < first.deadline:
            return False
        text = (
            f"rejected due to timeout after waiting {go_duration(first.timeout)} "
            f"at plugin {first.plugin}"
        )
        self.time_out(first.plugin, text)
        return True

    def time_out(self, plugin: str, message: str) -> None:
        """The time of ``plugin`` is over, for this pod or for a member of its gang."""
        self._resolve(unschedulable(message, plugin=plugin), WaitOutcome.TIMED_OUT, plugin)

    def _resolve(self, status: Status, outcome: WaitOutcome, plugin: str) -> None:
        if self.status is not None:
            return
        self.status = status
        self.outcome = outcome
        self.resolved_by = plugin
        self._on_change(self)


class WaitingPodsMap:
    """All waiting pods of a scheduler, by uid, in the order in which they began to wait."""

    __slots__ = ("_pods",)

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def add(self, waiting: WaitingPod) -> None:
        self._pods[waiting.pod.uid] = waiting

    def remove(self, uid: str) -> None:
        self._pods.pop(uid, None)

    def get(self, uid: str) -> WaitingPod | None:
        return self._pods.get(uid)

    def __iter__(self) -> Iterator[WaitingPod]:
        """A stable view: callers may resolve pods while they iterate."""
        return iter(tuple(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)

    def as_mapping(self) -> Mapping[str, WaitingPod]:
        return self._pods


def go_duration(seconds: float) -> str:
    """A duration as Go prints it: ``15m0s``, ``1h2m3s``, ``1.5s``, ``500ms``, ``0s``."""
    if seconds == 0:
        return "0s"
    sign = "-" if seconds < 0 else ""
    nanos = round(abs(seconds) * 1e9)
    if nanos < 1_000:
        return f"{sign}{nanos}ns"
    if nanos < 1_000_000:
        return f"{sign}{_decimal(nanos, 1_000)}µs"
    if nanos < 1_000_000_000:
        return f"{sign}{_decimal(nanos, 1_000_000)}ms"
    minutes, rest = divmod(nanos, 60 * 1_000_000_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, 1_000_000_000)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def _decimal(nanos: int, unit: int) -> str:
    whole, rest = divmod(nanos, unit)
    if not rest:
        return str(whole)
    width = len(str(unit)) - 1
    return f"{whole}.{rest:0{width}d}".rstrip("0")
