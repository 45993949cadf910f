"""Every boundary of the core in one file: what it needs from outside, and what it tells.

Adapters: ``Cluster`` - scheduler_core.cluster (sandbox, kube); ``Observer``, ``Ledger`` and
``PermitInbox`` - the Django app, and lists in tests; ``Clock`` and ``Executor`` - real ones in
scheduler_core.clock and scheduler_core.executor, virtual and inline ones for tests and fast
replays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from scheduler_core.observations import Observation
from scheduler_core.records import (
    BindingRecord,
    ClusterUsage,
    CycleRecord,
    PermitDecision,
    QueueListing,
    WaitingPodRecord,
)

Json = dict[str, Any]
EventType = Literal["ADDED", "MODIFIED", "DELETED", "SYNCED"]


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change of one object.

    ``object`` is the Kubernetes JSON (for DELETED its last state). ``SYNCED`` (empty object)
    follows the last ADDED of the initial list, and every relist.
    """

    type: EventType
    kind: str
    object: Json


class Subscription(Protocol):
    """A running list + watch."""

    def stop(self) -> None:
        """No event is delivered after this returns. May be called twice."""


class ApiError(Exception):
    """The cluster refused a request, in the words of a Kubernetes Status.

    Attributes:
        code: HTTP status code.
        reason: for example ``NotFound``, ``AlreadyExists``, ``Conflict``, ``Invalid``, ``Gone``.
        causes: (field path, message) of each fault, for ``Invalid``.
        about: (resource or kind with its group behind a dot, name) of the object it is about, as
            ``("leases.coordination.k8s.io", "scheduler")``; empty where it is about none.
        retry_after: seconds after which the request is worth another try; None where not said.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        causes: Sequence[tuple[str, str]] = (),
        *,
        about: tuple[str, str] = ("", ""),
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.causes = tuple(causes)
        self.about = about
        self.retry_after = retry_after


class NotFound(ApiError):
    """404."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(404, "NotFound", f'{kind} "{name}" not found', about=(kind, name))


class AlreadyExists(ApiError):
    """409 on create."""

    def __init__(self, kind: str, name: str) -> None:
        message = f'{kind} "{name}" already exists'
        super().__init__(409, "AlreadyExists", message, about=(kind, name))


class Conflict(ApiError):
    """409: a stale resourceVersion, another uid, a pod that is bound already."""

    def __init__(self, message: str, *, about: tuple[str, str] = ("", "")) -> None:
        super().__init__(409, "Conflict", message, about=about)


class Gone(ApiError):
    """410: the resourceVersion asked for is no longer kept."""

    def __init__(self, message: str) -> None:
        super().__init__(410, "Expired", message)


@dataclass(frozen=True, slots=True)
class ObjectList:
    """One consistent list, and the resourceVersion at which a watch goes on."""

    items: Sequence[Json]
    resource_version: str


@dataclass(frozen=True, slots=True)
class PodCondition:
    """One entry of ``status.conditions``, before the cluster adds times."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str = ""
    message: str = ""


class Cluster(Protocol):
    """A Kubernetes API as far as a scheduler and its pages need it.

    Kinds are Kubernetes kinds: ``Node``, ``Pod``, ``Namespace``, ``PodGroup``, ``PriorityClass``,
    ``Event``, ... Objects are Kubernetes JSON; what is handed out is never changed afterwards, and
    what is handed in is not kept by reference. Every method may be called from any thread.
    Every method may raise ApiError.
    """

    def list_watch(self, kind: str, sink: Callable[[WatchEvent], None]) -> Subscription:
        """Deliver every object as ADDED, then SYNCED, then each change, in order and once.

        ``sink`` must be quick and thread-safe (it puts the event on an inbox). Lost connections and
        410 are healed inside: the sink then sees the differences only.
        """

    def get(self, kind: str, namespace: str, name: str) -> Json: ...

    def list(
        self,
        kind: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> ObjectList: ...

    def create(self, kind: str, obj: Json) -> Json: ...

    def update(self, kind: str, obj: Json) -> Json:
        """Replace an object; Conflict where ``metadata.resourceVersion`` is given and stale."""

    def patch(
        self, kind: str, namespace: str, name: str, patch: Json, *, subresource: str = ""
    ) -> Json:
        """JSON merge patch (RFC 7386); ``subresource`` is "" or "status"."""

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        """Delete; Conflict where ``uid`` is given and is not the object's."""

    def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """POST pods/binding. Conflict where the pod is bound, is going, or has another uid."""

    def patch_pod_status(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        condition: PodCondition | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """Set one condition and/or the nomination ("" clears it, None leaves it)."""

    def emit_event(
        self,
        regarding: Mapping[str, Any],
        *,
        type: Literal["Normal", "Warning"],
        reason: str,
        action: str,
        note: str,
        reporting_controller: str,
    ) -> None:
        """Record an events.k8s.io/v1 event; best effort, never raises for a full store."""


@runtime_checkable
class AsyncBinder(Protocol):
    """A Cluster in this process, which takes many bindings without a thread that waits for each.

    Its ``emit_event`` does not wait either.
    """

    def begin_binding(self, namespace: str, name: str, uid: str, node: str) -> Future[None]:
        """As ``Cluster.bind``, but returns at once: what it would raise is in the future. Callbacks
        of the future may run on any thread; they must be quick and not write to the cluster."""


@runtime_checkable
class Fenced(Protocol):
    """A Cluster that may be written to at times only: while a lease is held. It refuses writes by
    itself; whoever has somebody else write (an extender that binds) asks first."""

    def check_writable(self) -> None:
        """Raises ApiError: nothing may be written now."""


class Observer(Protocol):
    """What a scheduler tells. Called on the scheduler thread: return at once.

    Every method is optional: subclass this and define the ones you need (the runtime calls only
    methods that are overridden). An observer that raises is logged and detached; it never hurts a
    cycle. (The bare ``return`` tells type checkers that a method is not abstract.)
    """

    def cycle_finished(self, record: CycleRecord) -> None:
        return

    def binding_finished(self, record: BindingRecord) -> None:
        return

    def pod_waiting(self, record: WaitingPodRecord) -> None:
        """A wait began, or one of its plugins allowed (``pending`` has become shorter)."""
        return

    def pod_resolved(self, record: WaitingPodRecord) -> None:
        """A wait ended (``outcome`` is set)."""
        return

    def decision_applied(self, decision: PermitDecision, applied: bool, message: str) -> None:
        """A person's decision was applied, or came too late (``applied`` False, and why)."""
        return

    def queues_listed(self, listing: QueueListing) -> None:
        """At most every ``listing_interval`` seconds, and only after a change."""
        return

    def usage_changed(self, usage: ClusterUsage) -> None:
        """At the same pace as queues_listed."""
        return

    def pod_observed(self, record: Observation) -> None:
        """What an observing scheduler thinks of a pod that another one places."""
        return

    def detached(self, error: Exception) -> None:
        """The last call: this observer raised, and is told nothing more."""
        return


class PermitInbox(Protocol):
    """Where people's decisions come from."""

    def poll(self) -> Sequence[PermitDecision]:
        """Decisions not yet reported through ``Observer.decision_applied``; must not block."""

    def heard_until(self, now: float) -> float:
        """Up to which time of day everything that was decided has been handed out, or will be with
        the next ``poll``. An inbox that cannot tell at once finds out, and wakes the scheduler; one
        that is handed decisions directly answers ``now``. Must not block."""


class Ledger(Protocol):
    """Keeps what observers are told, for the next scheduler of the run."""

    def when_kept(self, then: Callable[[], None]) -> None:
        """Call ``then`` once everything that was told before is kept for good: at once, or later on
        any thread. It must be quick. Never where it will not be kept."""


class Clock(Protocol):
    """Time of day in seconds. Durations are taken from ``time.perf_counter`` instead."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None:
        """Return when ``seconds`` of this clock have passed. Only on a thread that may wait."""


class Executor(Protocol):
    """Runs binding cycles and status writes beside the scheduling loop."""

    def submit(self, key: str, task: Callable[[], None]) -> None:
        """Run ``task`` some time; tasks with the same key run one after another, in order. A task
        must not raise."""

    def submit_quick(self, key: str, task: Callable[[], None]) -> None:
        """As ``submit``, for a task that does not wait for anything: where nothing of its key is
        under way it runs at once, on the caller's thread."""

    def shutdown(self, wait: bool = True) -> None: ...


PluginArgs = Mapping[str, Any]
