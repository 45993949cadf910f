"""What observing tells of each pod: our decision beside the node that another scheduler chose."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from scheduler_core.records import PodRef

__all__ = ["AGREEMENTS", "LEFT_OUT", "PLACED", "Observation", "PluginComparison", "Verdict"]


class Verdict(enum.StrEnum):
    """How our decision compares with the actual one."""

    AGREE = "agree"  # the same node
    TIE = "tie"  # another node, with the same highest total: chance decides, so it agrees
    DIFFERS = "differs"  # their node fits, with a lower total
    INFEASIBLE = "infeasible"  # our filters turn their node down; others fit
    UNSCHEDULABLE = "unschedulable"  # no node fits for us
    ERROR = "error"  # we could not decide
    PENDING = "pending"  # nobody has placed it yet
    GONE = "gone"  # it went before anybody placed it
    MISSED = "missed"  # it was placed while nobody observed
    DAEMON_SET = "daemon_set"  # left out: its controller has chosen the node
    PRESET = "preset"  # left out: it had its node when it was first seen


#: The same node, or one that is as good.
AGREEMENTS = frozenset({Verdict.AGREE, Verdict.TIE})
#: Verdicts that the agreement rate is made of.
PLACED = AGREEMENTS | {Verdict.DIFFERS, Verdict.INFEASIBLE, Verdict.UNSCHEDULABLE}
#: Pods that no scheduler has placed: they are counted, and nothing more is told of them.
LEFT_OUT = frozenset({Verdict.DAEMON_SET, Verdict.PRESET})


@dataclass(frozen=True, slots=True)
class PluginComparison:
    """What one Score plugin gave our node and theirs: (raw, normalised 0..100, weighted)."""

    plugin: str
    ours: tuple[int, int, int]
    theirs: tuple[int, int, int]

    @property
    def advantage(self) -> int:
        """By how much it is for our node, weighted."""
        return self.ours[2] - self.theirs[2]


@dataclass(frozen=True, slots=True)
class Observation:
    """One pod that another scheduler is to place. Told when we have looked at it while it waits,
    when what we think of it changes, and when it is placed or gone; the latest word counts.

    Attributes:
        sequence: 1, 2, 3, ... of what one observer told.
        scheduler: the pod's ``spec.schedulerName``; ``profile``: the one of ours that decided.
        seen_at: time of day when the pod was first seen waiting; ``at``: of this word.
        ours: the node that we would choose, or "".
        actual: the node that it is on, or "".
        ours_total, actual_total: their totals; None where there is none.
        ties: how many nodes have the highest total.
        first: the node that we chose when we first looked at the waiting pod; "" where there was
            none, or no time to look.
        why: one sentence or two for people.
        plugin: the plugin that turned their node down, or that speaks most for ours; or "".
        comparison: of our node and theirs, the largest difference first.
        duration: seconds that deciding took.
    """

    sequence: int
    pod: PodRef
    verdict: Verdict
    scheduler: str
    profile: str
    seen_at: float
    at: float
    ours: str = ""
    actual: str = ""
    ours_total: int | None = None
    actual_total: int | None = None
    ties: int = 0
    nodes_total: int = 0
    nodes_feasible: int = 0
    first: str = ""
    why: str = ""
    plugin: str = ""
    comparison: tuple[PluginComparison, ...] = ()
    duration: float = 0.0
