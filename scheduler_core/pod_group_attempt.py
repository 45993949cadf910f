"""One cycle of a native pod group: its members with what became of each, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from scheduler_core.api import NativePodGroup
from scheduler_core.framework.status import SUCCESS, Code, Status
from scheduler_core.framework.types import FitError, QueuedPodInfo
from scheduler_core.pod_cycle import PodCycle

__all__ = [
    "GROUP_UNSCHEDULABLE",
    "GroupAttempt",
    "MemberAttempt",
    "different_schedulers",
    "in_turn",
]

GROUP_UNSCHEDULABLE: Final = "pod group is unschedulable"
NO_PLACE: Final = "none of its pods has a place"
WAITING_ON_PREEMPTION: Final = "pod group is waiting for preemption to complete"


@dataclass(slots=True, eq=False)
class MemberAttempt:
    """A member in its group's cycle.

    Attributes:
        permit: what Permit said; None where the member did not get there.
        needs_preemption: it fits nowhere before the victims that PostFilter found are gone. Until
            the end of the cycle it counts as placed on the node that it is nominated to.
        tried: False where an error ended the cycle before its turn.
    """

    cycle: PodCycle
    permit: Status | None = None
    needs_preemption: bool = False
    tried: bool = False

    @property
    def is_placed(self) -> bool:
        """It got through Permit, with Success or Wait."""
        return self.permit is not None

    @property
    def is_feasible(self) -> bool:
        """It is placed and need not wait for victims to go."""
        return self.is_placed and not self.needs_preemption

    @property
    def event_plugins(self) -> frozenset[str]:
        """Whose events bring it back after its group has failed. It backs off, unless victims are
        going for it: their deletion is what it waits for."""
        fit = self.cycle.fit_error
        if not self.needs_preemption or fit is None:
            return frozenset()
        return frozenset(fit.diagnosis.unschedulable_plugins)

    @property
    def failed(self) -> bool:
        """An error, which ends the cycle of the whole group."""
        return self.tried and not self.is_placed and not self.cycle.status.is_rejected


@dataclass(slots=True, eq=False)
class GroupAttempt:
    """The cycle of a group.

    Attributes:
        key: "namespace/name" of the PodGroup; ``group`` the object, None if it is gone.
        held_before: members that held a node before this cycle.
        status: Success where the feasible members are to be bound.
        waits_on_preemption: the group is schedulable once victims are gone.
    """

    key: str
    group: NativePodGroup | None
    members: Sequence[MemberAttempt]
    held_before: int = 0
    status: Status = Status(Code.UNSCHEDULABLE, (GROUP_UNSCHEDULABLE,))
    waits_on_preemption: bool = False

    @property
    def min_count(self) -> int:
        """Of the gang; 0 where the group has the basic policy."""
        return 0 if self.group is None else self.group.min_count

    @property
    def is_complete(self) -> bool:
        """It had its quorum before this cycle: pods that are left are on their own."""
        return self.held_before >= self.min_count

    @property
    def result(self) -> str:
        """As in the reference's metric."""
        if self.waits_on_preemption:
            return "waiting_on_preemption"
        if self.status.is_success:
            return "scheduled"
        return "unschedulable" if self.status.is_rejected else "error"

    @property
    def placed(self) -> int:
        return sum(member.is_placed for member in self.members)

    def judge(self, member: MemberAttempt) -> bool:
        """Take a member's outcome in; False where it ends the cycle (an error).

        A rejected member alone changes nothing: one Success at Permit makes the group schedulable.
        If a member placed until then has to wait for its victims, the whole group has to.
        """
        if member.failed:
            reason = member.cycle.status.message
            text = f"failed to schedule other pod from a pod group: {reason}"
            self.status = Status(Code.ERROR, (text,), member.cycle.status.plugin)
            self.waits_on_preemption = False
            return False
        if member.permit is None or not member.permit.is_success:
            return True
        if any(m.needs_preemption for m in self.members):
            self.status = Status(Code.UNSCHEDULABLE, (GROUP_UNSCHEDULABLE, WAITING_ON_PREEMPTION))
            self.waits_on_preemption = True
        else:
            self.status = SUCCESS
        return True

    def explain(self, besides: MemberAttempt | None = None) -> str:
        """Why the group failed, for whoever looks at it, or at one of its pods (``besides``)."""
        needed, placed = self.min_count, self.held_before + self.placed
        text = f"{placed} of minCount {needed} pods have a place" if needed else NO_PLACE
        blockers = [m for m in self.members if m.tried and not m.is_placed and m is not besides]
        if not blockers:
            return text
        first, more = blockers[0].cycle, len(blockers) - 1
        text += f"; {first.pod.name}: {_reason(first)}"
        return f"{text} (and {more} more)" if more else text


def in_turn(infos: Sequence[QueuedPodInfo]) -> list[QueuedPodInfo]:
    """The order of a group's pods: priority, then first attempt; the name settles the rest."""
    return sorted(infos, key=lambda i: (-i.pod.priority, i.initial_attempt or 0.0, i.key))


def different_schedulers(infos: Sequence[QueuedPodInfo]) -> str:
    """The fault of a group whose pods ask for different schedulers; "" if they agree."""
    first = infos[0].pod.scheduler_name
    other = next((i.pod.scheduler_name for i in infos if i.pod.scheduler_name != first), first)
    if other == first:
        return ""
    return (
        "all pods in a single pod group should have the same .spec.schedulerName set, "
        f'got: "{first}" and "{other}"'
    )


def _reason(cycle: PodCycle) -> str:
    fit = cycle.fit_error
    if fit is None:
        return cycle.status.message
    # What preemption found is in the pod's own message.
    bare = replace(fit.diagnosis, post_filter_message="")
    return FitError(fit.pod, fit.num_all_nodes, bare).message.rstrip(".")
