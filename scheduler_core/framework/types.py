"""QueuedPodInfo, Diagnosis, FitError and the results that plugins hand back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scheduler_core.api import Pod
from scheduler_core.framework.status import Status

if TYPE_CHECKING:
    from scheduler_core.framework.node_statuses import NodeStatuses


@dataclass(slots=True, eq=False)
class QueuedPodInfo:
    """A pod in the SchedulingQueue. Identity is the object; ``pod`` is replaced by updates.

    Attributes:
        timestamp: time of day of the last (re)entry to the queue.
        initial_attempt: time of day of the first entry to activeQ, None before.
        attempts: how often it was popped.
        unschedulable_count / consecutive_errors: what backoff is computed from.
        unschedulable_plugins / pending_plugins: who rejected it last.
        gating_plugin: the PreEnqueue plugin that holds it, or "".
        message: what the last failed attempt said; ``reason`` its dominant reason.
        backoff_until: time of day, while it backs off.
        flushed: a time limit, and no event, has brought it back to the queue for this attempt.
        skip_window, skips: how often it went on before its backoff was over, in that second.
    """

    pod: Pod
    timestamp: float = 0.0
    initial_attempt: float | None = None
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    gating_plugin: str = ""
    gating_message: str = ""
    message: str = ""
    reason: str = ""
    reason_plugin: str = ""
    backoff_until: float | None = None
    flushed: bool = False
    skip_window: float = 0.0
    skips: int = 0

    @property
    def key(self) -> str:
        return self.pod.key

    @property
    def gated(self) -> bool:
        return bool(self.gating_plugin)


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """``node_names`` restricts the nodes to look at; None means all."""

    node_names: frozenset[str] | None = None

    def merge(self, other: PreFilterResult) -> PreFilterResult:
        if self.node_names is None:
            return other
        if other.node_names is None:
            return self
        return PreFilterResult(self.node_names & other.node_names)


@dataclass(frozen=True, slots=True)
class NominatingInfo:
    """What a failed cycle does to ``status.nominatedNodeName``: set, clear ("") or leave it."""

    node_name: str = ""
    override: bool = False


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What PostFilter made of it. ``victims`` are the pods to evict ("namespace/name")."""

    nominating: NominatingInfo = NominatingInfo()
    victims: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that would fit the preemptor without ``victims`` (the most important first).

    ``pdb_violations``: how many of them a PodDisruptionBudget would have kept.
    """

    node: str
    victims: tuple[Pod, ...]
    pdb_violations: int = 0


@dataclass(slots=True)
class Diagnosis:
    """Why a pod fits nowhere: per-node statuses and who said no."""

    node_statuses: NodeStatuses | None = None
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    pre_filter_message: str = ""
    post_filter_message: str = ""
    pre_filter_status: Status | None = None


@dataclass(slots=True)
class FitError:
    """A pod fits on none of ``num_all_nodes`` nodes."""

    pod: Pod
    num_all_nodes: int
    diagnosis: Diagnosis

    @property
    def message(self) -> str:
        """The text of event and condition (kube-scheduler 1.36, ``FitError.Error``)."""
        d = self.diagnosis
        text = f"0/{self.num_all_nodes} nodes are available:"
        if d.pre_filter_message:
            text += f" {d.pre_filter_message}."
        elif d.node_statuses is not None:
            histogram = reasons_histogram(d.node_statuses.reason_counts(self.num_all_nodes))
            if histogram:
                text += f" {histogram}."
        if d.post_filter_message:
            text += f" {d.post_filter_message}"
        return text


def reasons_histogram(counts: Mapping[str, int]) -> str:
    """``"1 Insufficient cpu, 2 node(s) were unschedulable"``, sorted as plain strings."""
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
