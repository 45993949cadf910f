"""PodCycle: what belongs to one attempt of one pod, from pop to bound."""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler_core.algorithm import ScheduleResult
from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState, Timings
from scheduler_core.framework.runtime.framework import Framework
from scheduler_core.framework.runtime.waiting_pods import WaitingPod
from scheduler_core.framework.status import SUCCESS, Status
from scheduler_core.framework.types import FitError, NominatingInfo, QueuedPodInfo
from scheduler_core.records import Outcome, PodRef


@dataclass(slots=True, eq=False)
class PodCycle:
    """One attempt. ``pod`` is the pod as it was popped, ``assumed`` the copy with its node.

    Attributes:
        sequence: number of the CycleRecord.
        started_at: time of day; ``started``: perf_counter at pop.
        timings: of the scheduling cycle; those of the binding cycle are apart, because it may begin
            before this one's record is made.
    """

    sequence: int
    info: QueuedPodInfo
    pod: Pod
    framework: Framework
    started_at: float
    started: float
    state: CycleState = field(default_factory=CycleState)
    timings: Timings = field(default_factory=Timings)
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
    binding_timings: Timings = field(default_factory=Timings)

    def __post_init__(self) -> None:
        self.state.timings = self.timings

    @property
    def ref(self) -> PodRef:
        return PodRef(self.pod.uid, self.pod.namespace, self.pod.name)
