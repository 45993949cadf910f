"""The facts that a scheduler tells its observers, one frozen dataclass per fact.

Times of day are seconds since the epoch of the scheduler's clock; durations are seconds.
Arrays belong to the record: an observer may keep them, nobody may write to them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from scheduler_core.frozen import frozen_record

T = TypeVar("T")


class Deferred(Sequence[T]):
    """A sequence that is worked out when it is first read, from facts that never change.

    Most readers of most records want the counts only. Two threads that read at once may both work
    it out; they get the same.
    """

    __slots__ = ("_items", "_make")

    def __init__(self, make: Callable[[], tuple[T, ...]]) -> None:
        self._make: Callable[[], tuple[T, ...]] | None = make
        self._items: tuple[T, ...] = ()

    @property
    def _tuple(self) -> tuple[T, ...]:
        make = self._make
        if make is not None:
            self._items = make()
            self._make = None  # what it was made from may go
        return self._items

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._tuple[index]

    def __len__(self) -> int:
        return len(self._tuple)

    def __iter__(self) -> Iterator[T]:
        return iter(self._tuple)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Deferred):
            return self._tuple == other._tuple
        return self._tuple == other

    def __hash__(self) -> int:
        return hash(self._tuple)

    def __repr__(self) -> str:
        return repr(self._tuple)


class Outcome(enum.StrEnum):
    """How one scheduling cycle ended."""

    SCHEDULED = "scheduled"  # assumed and handed to the binding cycle
    WAITING = "waiting"  # assumed and parked at Permit
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"
    SKIPPED = "skipped"  # the pod was being deleted
    ADVISED = "advised"  # another scheduler asked, as of its extender


@dataclass(frozen=True, slots=True)
class PodRef:
    """Which pod a record speaks of."""

    uid: str
    namespace: str
    name: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Rejection:
    """``nodes`` nodes were rejected by ``plugin`` with ``reason``."""

    plugin: str
    reason: str
    nodes: int
    resolvable: bool  # code Unschedulable: preemption might help


@dataclass(frozen=True, slots=True)
class NodeScores:
    """One of the best nodes: plugin -> (raw, normalised 0..100, weighted), and the sum."""

    node: str
    total: int
    plugins: Mapping[str, tuple[int, int, int]]


@frozen_record
class ScoreMatrix:
    """Every node of one cycle: scores where it was feasible, the reason where it was not.

    ``node_names`` is shared between cycles as long as no node comes or goes. Row i of every array
    is node ``node_names[i]``. Two records share an array where nothing in it changed between them.

    Attributes:
        node_names: n names.
        plugins: p score plugins that ran, in order.
        weights: int64, shape (p,).
        raw: p arrays of int64, each of shape (n,); 0 where the node was not scored.
        normalized: int8, shape (p, n); 0..100, -1 where the node was not scored.
        total: int64, shape (n,); -1 where the node was not scored.
        rejection: int32, shape (n,); index into ``reasons``; -1 for a feasible node; -2 for a node
            that was not evaluated.
        reasons: (plugin, "reason, reason", code label) of each distinct rejection.
        scored: False when the reference skips scoring (one feasible node, or none).
    """

    node_names: tuple[str, ...]
    plugins: tuple[str, ...]
    weights: NDArray[np.int64]
    raw: Sequence[NDArray[np.int64]]
    normalized: NDArray[np.int8]
    total: NDArray[np.int64]
    rejection: NDArray[np.int32]
    reasons: tuple[tuple[str, str, str], ...]
    scored: bool


@dataclass(frozen=True, slots=True)
class QueueDepths:
    """Pods in each place of the SchedulingQueue, and parked at Permit."""

    active: int = 0
    backoff: int = 0
    unschedulable: int = 0
    gated: int = 0
    in_flight: int = 0
    waiting: int = 0


@frozen_record
class CycleRecord:
    """One scheduling cycle of one pod, told once when it ends.

    Attributes:
        sequence: 1, 2, 3, ... within one Scheduler object.
        started_at: time of day at pop.
        duration: seconds, of the scheduling cycle (a binding cycle is told by BindingRecord).
        attempt: which attempt of this pod, from 1.
        profile: schedulerName.
        point_seconds: extension point -> seconds.
        plugin_seconds: (extension point, plugin) -> seconds.
        nodes_total / nodes_evaluated / nodes_feasible: counts.
        rejections: most nodes first. Worked out when first read, like ``best``.
        best: at most 20 best nodes, highest total first, ties in order of preference.
        ties: how many nodes share the highest total.
        node: the chosen node, or "".
        score: its total, None where nothing was scored.
        nominated_node: what preemption nominated, or "".
        victims: "namespace/name" of preempted pods.
        message: the FitError or error text of a failed cycle.
        plugin: the plugin that rejected the pod or failed, where one is to name (PreFilter,
            Reserve, Permit, errors), else "".
        unschedulable_plugins: plugins recorded for requeueing, sorted.
        matrix: None where no node was looked at.
        depths: the queue after this cycle.
    """

    sequence: int
    pod: PodRef
    attempt: int
    profile: str
    priority: int
    outcome: Outcome
    started_at: float
    duration: float
    node: str = ""
    score: int | None = None
    ties: int = 0
    nominated_node: str = ""
    victims: tuple[str, ...] = ()
    message: str = ""
    plugin: str = ""
    nodes_total: int = 0
    nodes_evaluated: int = 0
    nodes_feasible: int = 0
    point_seconds: Mapping[str, float] = field(default_factory=dict)
    plugin_seconds: Mapping[tuple[str, str], float] = field(default_factory=dict)
    rejections: Sequence[Rejection] = ()
    best: Sequence[NodeScores] = ()
    unschedulable_plugins: tuple[str, ...] = ()
    pod_group: str = ""  # "namespace/name" of the gang, or ""
    matrix: ScoreMatrix | None = None
    depths: QueueDepths = QueueDepths()


@dataclass(frozen=True, slots=True)
class BindingRecord:
    """The end of a binding cycle. ``cycle`` is the CycleRecord's sequence number."""

    cycle: int
    pod: PodRef
    node: str
    bound: bool
    finished_at: float
    duration: float
    message: str = ""
    plugin: str = ""
    point_seconds: Mapping[str, float] = field(default_factory=dict)


class WaitOutcome(enum.StrEnum):
    """How a wait at Permit ended."""

    ALLOWED = "allowed"
    REJECTED = "rejected"  # by a plugin, a person or a gang that broke up
    TIMED_OUT = "timed_out"
    PREEMPTED = "preempted"
    REMOVED = "removed"  # the pod was deleted
    BROKEN = "broken"  # the node that it, or a member of its gang, held is gone


class Verdict(enum.StrEnum):
    """What a person decided about a waiting pod."""

    APPROVE = "approve"
    DENY = "deny"
    REVOKE = "revoke"  # the same person's approval counts no longer


@dataclass(frozen=True, slots=True)
class ApprovalTerms:
    """What has to happen before ManualApproval allows a pod; fixed when the pod is parked.

    Attributes:
        policy: name of the policy that asks; "" where the pod or its gang asks itself.
        reason: why a person is asked, for that person to read.
        approvers: how many different people have to approve.
        requester_may_approve: False: an approval by ``requested_by`` does not count.
        groups: only members of one of these may decide; empty: everybody who may decide at all.
            The core does not know who is in a group; the application that takes decisions does.
        at_deadline: what happens when nobody has decided until then: DENY or APPROVE.
    """

    policy: str = ""
    reason: str = ""
    approvers: int = 1
    requester_may_approve: bool = True
    groups: tuple[str, ...] = ()
    at_deadline: Verdict = Verdict.DENY


@dataclass(frozen=True, slots=True)
class NodeUse:
    """One resource of the node that a pod holds: what it has, and what is asked for there without
    and with the pod, when the pod was parked (cpu in millicores, the rest in base units)."""

    allocatable: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class PendingPlugin:
    """A Permit plugin that has not allowed the pod yet. ``deadline``: time of day."""

    plugin: str
    deadline: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rest:
    """Who was turned down, by a person or a deadline, does not ask again for a while, unless it
    changes. A rest outlives a restart.

    Attributes:
        kind, key: of its PodGroup; of a pod without one ``Pod`` and "namespace/name".
        text: why it was turned down, for people to read.
        until: time of day.
        group: what its PodGroup asked for, as a digest; "" without one.
        members: uid -> the pod's labels, as a digest.
    """

    kind: str
    key: str
    text: str
    until: float
    group: str
    members: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class WaitingPodRecord:
    """A pod that waits at Permit, told when it begins, when a plugin allows, and when it ends.

    Attributes:
        cycle: sequence number of the CycleRecord that parked it.
        pending: plugins that have not allowed yet, earliest deadline first; empty once ended.
        since: time of day at which the wait began.
        deadline: the earliest of the pending plugins' deadlines.
        pod_group: "namespace/name" of the gang, or "".
        group_min_member: how many members the gang needs; 0 without a gang.
        needs_approval: ManualApproval is among the plugins that had the pod wait.
        requested_by: annotation ``kubesched.io/requested-by``.
        requests: resource -> amount (cpu in millicores, the rest in base units).
        outcome: None while it waits.
        message: what ended it, for a person to read.
        resolved_by: the plugin (or "user:NAME") whose word ended it.
        gang_uid: uid of the gang's PodGroup, or "".
        terms: what the approval needs; None where none is needed.
        approved_by: users whose approvals count, in the order in which they came.
        node_use: resource -> what the node has of it; the resources that the pod asks for.
        let_go: of a wait that is restored: it was over, and its pod is not bound yet.
        rest: for how long it, or its gang, does not ask again; told with one member of a gang.
    """

    cycle: int
    pod: PodRef
    node: str
    profile: str
    priority: int
    since: float
    deadline: float
    pending: tuple[PendingPlugin, ...]
    pod_group: str = ""
    group_min_member: int = 0
    needs_approval: bool = False
    requested_by: str = ""
    requests: Mapping[str, int] = field(default_factory=dict)
    outcome: WaitOutcome | None = None
    message: str = ""
    resolved_by: str = ""
    resolved_at: float | None = None
    gang_uid: str = ""
    terms: ApprovalTerms | None = None
    approved_by: tuple[str, ...] = ()
    node_use: Mapping[str, NodeUse] = field(default_factory=dict)
    let_go: bool = False
    rest: Rest | None = None


@dataclass(frozen=True, slots=True)
class QueuedPod:
    """One line of the queues page.

    ``position`` counts from 1 in pop order; ``backoff_until`` is a time of day or None;
    ``reason`` is the one dominant reason (the rejection that hit most nodes, the gate, or the
    error) and ``plugin`` who gave it.
    """

    pod: PodRef
    position: int
    priority: int
    attempts: int
    added_at: float
    backoff_until: float | None = None
    plugin: str = ""
    reason: str = ""
    pod_group: str = ""


@dataclass(frozen=True, slots=True)
class QueueListing:
    """All pods of the queue at one moment, each place in pop order."""

    at: float
    depths: QueueDepths
    active: tuple[QueuedPod, ...]
    backoff: tuple[QueuedPod, ...]
    unschedulable: tuple[QueuedPod, ...]
    gated: tuple[QueuedPod, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ClusterUsage:
    """Node usage at one moment. Row i is ``node_names[i]``.

    ``resources`` holds r names; ``allocatable`` and ``requested`` are int64, shape (n, r), cpu in
    millicores, the rest in base units; ``pods`` and ``allowed_pods`` are int64, shape (n,).
    """

    at: float
    node_names: tuple[str, ...]
    resources: tuple[str, ...]
    allocatable: NDArray[np.int64]
    requested: NDArray[np.int64]
    pods: NDArray[np.int64]
    allowed_pods: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PermitDecision:
    """A person's word on one waiting pod.

    Attributes:
        decision_id: names the word; it counts once, however often it is polled.
        at: when it was given, on the scheduler's clock. One given after the pod's deadline never
            counts. None: now.
        since: when the wait began of which it was said. A pod that waits once more, maybe on
            another node, is asked for anew. None: whatever wait is open.
    """

    decision_id: int
    pod_uid: str
    verdict: Verdict
    user: str
    comment: str = ""
    at: float | None = None
    since: float | None = None
