"""What an observer says: numbered, timed, and told to whoever listens."""

from __future__ import annotations

from collections.abc import Callable

from scheduler_core.algorithm import ScheduleResult
from scheduler_core.api import Pod
from scheduler_core.comparing import Comparison
from scheduler_core.cycle_record import cycle_record
from scheduler_core.observations import Observation, Verdict
from scheduler_core.observed_pods import WaitingPod
from scheduler_core.observers import ObserverSet
from scheduler_core.pod_cycle import PodCycle
from scheduler_core.ports import Clock
from scheduler_core.records import PodRef, QueueDepths

__all__ = ["Teller", "changed_mind", "is_daemon"]


class Teller:
    """Of one ObservingScheduler, on its thread.

    Args:
        profile_of: the profile that judges pods of a scheduler's name.
        sequence: number of the first Observation.

    Attributes:
        sequence: number of the next one.
    """

    def __init__(
        self,
        observers: ObserverSet,
        clock: Clock,
        profile_of: Callable[[str], str],
        sequence: int,
    ) -> None:
        self.sequence = sequence
        self._observers = observers
        self._clock = clock
        self._profile_of = profile_of

    def advice(self, cycle: PodCycle) -> None:
        """A cycle that somebody else's scheduler had asked for."""
        cycle.sequence = self.sequence
        self.sequence += 1
        if self._observers.wants("cycle_finished"):
            self._observers.tell("cycle_finished", cycle_record(cycle, QueueDepths()))

    def left_out(self, pod: Pod) -> None:
        """A pod that no scheduler has placed."""
        found = Comparison(Verdict.DAEMON_SET if is_daemon(pod) else Verdict.PRESET)
        self.tell(_ref(pod), pod.scheduler_name, self._clock.now(), found, pod.node_name)

    def ended_unseen(self, pod: PodRef, scheduler: str, seen_at: float, node: str) -> None:
        """A pod that waited when the last observer ended, and does not any more; ``node`` "": it
        is gone."""
        verdict = Verdict.MISSED if node else Verdict.GONE
        happened = f"was placed on {node}" if node else "went"
        found = Comparison(verdict, why=f"It {happened} while nobody observed.")
        self.tell(pod, scheduler, seen_at, found, node)

    def waiting(
        self,
        waiting: WaitingPod,
        found: Comparison,
        actual: str = "",
        result: ScheduleResult | None = None,
        seconds: float = 0.0,
    ) -> None:
        """Of a pod that waits, or waited until now."""
        pod = waiting.pod
        waiting.told = self.tell(
            _ref(pod),
            pod.scheduler_name,
            waiting.seen_at,
            found,
            actual,
            result,
            first=waiting.first,
            duration=seconds,
        )

    def tell(
        self,
        pod: PodRef,
        scheduler: str,
        seen_at: float,
        found: Comparison,
        actual: str = "",
        result: ScheduleResult | None = None,
        *,
        first: str = "",
        duration: float = 0.0,
    ) -> Observation:
        """One word on one pod; fields as in ``Observation``."""
        record = Observation(
            sequence=self.sequence,
            pod=pod,
            verdict=found.verdict,
            scheduler=scheduler,
            profile=self._profile_of(scheduler),
            seen_at=seen_at,
            at=self._clock.now(),
            ours=found.ours,
            actual=actual,
            ours_total=found.ours_total,
            actual_total=found.actual_total,
            ties=result.ties if result is not None else 0,
            nodes_total=result.size if result is not None else 0,
            nodes_feasible=len(result.feasible) if result is not None else 0,
            first=first,
            why=found.why,
            plugin=found.plugin,
            comparison=found.plugins,
            duration=duration,
        )
        self.sequence += 1
        self._observers.tell("pod_observed", record)
        return record


def changed_mind(found: Comparison, waiting: WaitingPod, actual: str) -> str:
    """Where the state has changed between the pod's arrival and the sight of its node: their
    decision was made somewhere in between."""
    if found.verdict in (Verdict.AGREE, Verdict.TIE) or not waiting.first:
        return ""
    if waiting.first == actual:
        return f" When the pod came we chose {actual}, too: the cluster has changed since."
    if waiting.first != found.ours:
        return f" When the pod came we would have chosen {waiting.first}."
    return ""


def is_daemon(pod: Pod) -> bool:
    """Its controller has chosen the node."""
    controller = pod.controller
    return controller is not None and controller.kind == "DaemonSet"


def _ref(pod: Pod) -> PodRef:
    return PodRef(pod.uid, pod.namespace, pod.name)
