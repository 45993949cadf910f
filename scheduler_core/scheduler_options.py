"""SchedulerOptions: how a scheduler runs, beside its KubeSchedulerConfiguration."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SchedulerOptions"]


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """What is not part of the KubeSchedulerConfiguration.

    Attributes:
        score_single_node: score a pod's only feasible node too (the reference does not).
        first_sequence: number of the first CycleRecord.
        listing_interval: least seconds between two listings of the queue.
        retry: False: a pod that does not fit is dropped from the queue (recorded replays).
        seed: of what chance the plugins have (preemption's first node); None: another each time.
        reuse: let work for one pod serve the next one like it. False: every cycle is a full pass,
            which is slower and decides the same.
    """

    score_single_node: bool = False
    first_sequence: int = 1
    listing_interval: float = 0.25
    retry: bool = True
    seed: int | None = None
    reuse: bool = True
