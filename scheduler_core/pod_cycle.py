"""PodCycle: what belongs to one attempt of one pod, from pop to bound."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import Final

from scheduler_core.algorithm import ScheduleResult
from scheduler_core.api import Pod
from scheduler_core.api.native.membership import group_key
from scheduler_core.framework.cycle_state import CycleState, Timings
from scheduler_core.framework.runtime.framework import Framework
from scheduler_core.framework.runtime.waiting_pods import WaitingPod
from scheduler_core.framework.status import SUCCESS, Status
from scheduler_core.framework.types import FitError, NominatingInfo, QueuedPodInfo
from scheduler_core.plugins.gang_scheduling import GangScheduling
from scheduler_core.records import Outcome, PodRef

#: Before a binding cycle begins.
NO_TIMINGS: Final = Timings()


@dataclass(slots=True, eq=False)
class PodCycle:
    """One attempt. ``pod`` is the pod as it was popped, ``assumed`` the copy with its node.

    Attributes:
        sequence: number of the CycleRecord.
        started_at: time of day; ``started``: perf_counter at pop.
        timings: of the scheduling cycle; those of the binding cycle are apart, because it may begin
            before this one's record is made.
        is_pre_bound: PreBind is over; only the binding itself is left.
        algorithm_seconds: from pop to the choice of a node, or to the end of PostFilter.
        seconds: how long it took; None: it is still under way, or has just ended.
        group_failure: why the cycle of its native pod group failed, which sends it back to the
            queue whatever became of the pod itself.
        event_plugins: whose events bring it back, if not those of who rejected it; none: it backs
            off, and is tried again.
    """

    sequence: int
    info: QueuedPodInfo
    pod: Pod
    framework: Framework
    started_at: float
    started: float
    timings: Timings = field(default_factory=Timings)
    state: CycleState = field(init=False)
    result: ScheduleResult | None = None
    assumed: Pod | None = None
    node_name: str = ""
    status: Status = SUCCESS
    outcome: Outcome = Outcome.SCHEDULED
    message: str = ""
    fit_error: FitError | None = None
    nominating: NominatingInfo = NominatingInfo()
    victims: tuple[str, ...] = ()
    waiting: WaitingPod | None = None
    waiting_since: float = 0.0
    binding_started: float = 0.0
    is_pre_bound: bool = False
    binding_timings: Timings = NO_TIMINGS
    algorithm_seconds: float = 0.0
    seconds: float | None = None
    group_failure: str = ""
    event_plugins: frozenset[str] | None = None
    _ref: PodRef | None = None

    def __post_init__(self) -> None:
        self.state = CycleState(self.timings)

    @property
    def ref(self) -> PodRef:
        """Which pod the records of this attempt speak of; always the same object."""
        if self._ref is None:
            self._ref = PodRef(self.pod.uid, self.pod.namespace, self.pod.name)
        return self._ref

    @property
    def gang_key(self) -> str:
        """ "namespace/name" of the PodGroup that it is scheduled with, or "". A native one counts
        where GangScheduling is on."""
        if self.pod.scheduling_group and self.framework.plugin(GangScheduling.name) is not None:
            return group_key(self.pod)
        return self.pod.pod_group_key

    @property
    def duration(self) -> float:
        """Seconds that it took, or has taken so far."""
        return perf_counter() - self.started if self.seconds is None else self.seconds
