"""One abstract class per extension point, and the Handle that plugins get.

Filter and Score have two speeds. ``filter`` / ``score`` look at one NodeInfo and are the
specification; ``filter_nodes`` / ``score_nodes`` look at all nodes at once with columns and are
what the runtime calls. Each defaults to the other, so a plugin defines at least one; a class that
defines neither is refused when it is created. In-tree plugins define both, and a property test
holds them equal.

A plugin may raise: the runtime turns the exception into ``Status(ERROR)`` that names the plugin.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from random import Random
from typing import Any, ClassVar, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import ClusterEventWithHint
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import NodeInfos, NodeTable
from scheduler_core.framework.status import SUCCESS, Status
from scheduler_core.framework.types import (
    Candidate,
    PostFilterResult,
    PreFilterResult,
    QueuedPodInfo,
)
from scheduler_core.ports import Clock, Cluster
from scheduler_core.records import ApprovalTerms

MAX_NODE_SCORE = 100
MIN_NODE_SCORE = 0

Scores = NDArray[np.int64]
R = TypeVar("R")


class WaitingPod(Protocol):
    """A pod parked at Permit, as plugins see it."""

    @property
    def pod(self) -> Pod: ...

    @property
    def node_name(self) -> str: ...

    @property
    def pending_plugins(self) -> Sequence[str]:
        """Plugins that have not allowed yet."""

    def allow(self, plugin: str) -> None:
        """``plugin`` no longer waits; the pod proceeds when none does. Unknown names do nothing."""

    def ask(
        self,
        plugin: str,
        timeout: float,
        now: float,
        reason: str,
        terms: ApprovalTerms | None = None,
    ) -> None:
        """``plugin`` wants the pod to wait as well, for ``timeout`` seconds from ``now``;
        ``terms``: what people have to do for it."""

    def reject(self, plugin: str, message: str) -> None:
        """The wait ends, the pod is unschedulable."""

    def preempt(self, plugin: str, message: str) -> None:
        """The wait ends with an Error status, so that the pod is tried again (1.36)."""


class Informer(Protocol):
    """The objects of one kind as the scheduler knows them from its watch."""

    def get(self, key: str) -> Any | None:
        """The object under "namespace/name" (or "name" for cluster-scoped kinds), or None."""

    def list(self) -> Sequence[Any]: ...

    @property
    def version(self) -> int:
        """Grows by one with every object that is added, changed or deleted."""

    def changed_since(self, version: int) -> Collection[str] | None:
        """Keys of the objects that changed after ``version``; None if that is too long ago."""

    def add_indexer(self, name: str, values: Callable[[Any], Iterable[str]]) -> None:
        """Keep an index: ``values(obj)`` are the keys under which an object is found. The same
        name twice is the same index."""

    def by_index(self, name: str, value: str) -> Sequence[Any]: ...


class Nominator(Protocol):
    """Pods that preemption has nominated to nodes."""

    def nominated_pods_for_node(self, node_name: str) -> Sequence[Pod]: ...

    def nominated_node_for_pod(self, pod: Pod) -> str: ...

    def nominated_nodes(self) -> Collection[str]:
        """Names of the nodes that have nominated pods."""


class PreemptionExtender(Protocol):
    """An extender that has a word in preemption."""

    @property
    def is_ignorable(self) -> bool:
        """Its failures leave the candidates as they are."""

    def is_interested(self, pod: Pod) -> bool: ...

    def process_preemption(
        self, pod: Pod, candidates: Mapping[str, Candidate], nodes: NodeInfos
    ) -> Mapping[str, Candidate]:
        """What is left of the candidates, by node; their victims may be others. May raise."""


class Handle(Protocol):
    """What a plugin may use of the scheduler around it. Only valid on the scheduler thread, but for
    ``cluster``, ``clock``, ``is_stopping`` and ``is_pre_bind_cancelled``, which any thread may use.
    """

    @property
    def profile_name(self) -> str: ...

    def has_plugin(self, name: str) -> bool:
        """Whether the profile has this plugin, also where it has not been made yet."""

    @property
    def nodes(self) -> NodeInfos:
        """The snapshot of the current cycle."""

    @property
    def cluster(self) -> Cluster:
        """The API, for writes. Calls block: only from PreBind, Bind, PostBind."""

    @property
    def clock(self) -> Clock: ...

    @property
    def is_stopping(self) -> bool:
        """The scheduler is being stopped: whoever waits on a binding thread gives up. Any thread
        may ask."""

    @property
    def nominator(self) -> Nominator: ...

    @property
    def random(self) -> Random:
        """The scheduler's source of chance; seeded where a run has to be repeatable."""

    @property
    def preemption_extenders(self) -> Sequence[PreemptionExtender]:
        """Extenders with a preempt verb, in the order of the configuration."""

    def run_in_background(self, key: str, work: Callable[[], R], then: Callable[[R], None]) -> None:
        """Call the API without holding up the loop: ``work`` runs on another thread, after earlier
        work of the same key (a pod's uid), and must not raise; ``then`` gets its result on the
        scheduler thread."""

    def informer(self, kind: str) -> Informer:
        """Objects of a kind; asking at construction makes the scheduler watch it."""

    def iterate_over_waiting_pods(self) -> Iterable[WaitingPod]: ...

    def get_waiting_pod(self, uid: str) -> WaitingPod | None: ...

    def reject_waiting_pod(self, uid: str, message: str = "removed") -> bool: ...

    def cancel_pre_bind(self, uid: str, message: str) -> bool:
        """End a pod's binding with an Error if its PreBind plugins are at work; whether they were.
        They notice by ``is_pre_bind_cancelled``."""

    def is_pre_bind_cancelled(self, uid: str) -> bool:
        """Whether a PreBind plugin that waits should give up; any thread may ask."""

    def activate(self, pods: Mapping[str, Pod]) -> None:
        """Move pods ("namespace/name" -> pod) to activeQ past their backoff."""

    def emit_event(
        self,
        pod: Pod,
        *,
        type: Literal["Normal", "Warning"],
        reason: str,
        action: str,
        note: str,
    ) -> None: ...

    def run_filter_plugins_with_nominated_pods(
        self, state: CycleState, pod: Pod, node_info: NodeInfo
    ) -> Status:
        """The plain form of all filters on one node, in two passes; for preemption's dry run."""

    def run_pre_filter_extension_add_pod(
        self, state: CycleState, pod: Pod, to_add: Pod, node_info: NodeInfo
    ) -> Status: ...

    def run_pre_filter_extension_remove_pod(
        self, state: CycleState, pod: Pod, to_remove: Pod, node_info: NodeInfo
    ) -> Status: ...


class Plugin(ABC):  # noqa: B024 - what is abstract differs per extension point
    """Parent of all plugins. ``name`` is the name in the configuration."""

    name: ClassVar[str] = ""
    #: False: of a NodeInfo, Filter and Score read the Node object alone, nothing that follows from
    #: the pods on it. Counts for node-local plugins.
    reads_pods_on_node: ClassVar[bool] = True

    def is_node_local(self, pod: Pod) -> bool:
        """Whether, for this pod, what PreFilter and PreScore say follows from the pod alone, and
        what Filter and Score say of a node from the pod and that NodeInfo alone.

        Such answers serve the next pod with the same ``Pod.signature``: they are worked out again
        only for nodes that changed. How the pods on a node fare (their status, save what it reports
        of resources) and their order are no changes, and pods that only their annotations tell
        apart are alike: a plugin that reads these must say no.
        Default: no; the plugin is asked anew in every cycle. (The reference's opportunistic
        batching asks the like of plugins by SignPlugin.)
        """
        return False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _require_one_speed(cls)


_TWO_SPEEDS = (("FilterPlugin", "filter", "filter_nodes"), ("ScorePlugin", "score", "score_nodes"))


def _require_one_speed(cls: type) -> None:
    """A Filter or Score plugin that defines neither form would recurse for ever; refuse it."""
    for base_name, plain, vector in _TWO_SPEEDS:
        base = next((b for b in cls.__mro__[1:] if b.__name__ == base_name), None)
        if base is None:
            continue
        if all(getattr(cls, form) is getattr(base, form) for form in (plain, vector)):
            raise TypeError(f"{cls.__name__} must define {plain}() or {vector}()")


class EnqueueExtensions(Plugin):
    """Plugins that say which events may make a pod they rejected schedulable."""

    @abstractmethod
    def events_to_register(self) -> Sequence[ClusterEventWithHint]: ...


class PreEnqueuePlugin(Plugin):
    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> Status:
        """Success lets the pod into activeQ; anything else gates it."""


class QueueSortPlugin(Plugin):
    @abstractmethod
    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        """Whether ``a`` is to be scheduled before ``b``."""

    #: The same order as ``less`` by a value to compare (the smallest first), for plugins whose
    #: order follows from the QueuedPodInfo alone and does not change while the pod is queued.
    sort_key: Callable[[QueuedPodInfo], Any] | None = None


class PreFilterExtensions(ABC):
    """Keeps a plugin's PreFilter state right when pods are added or removed in thought."""

    @abstractmethod
    def add_pod(self, state: CycleState, pod: Pod, to_add: Pod, node_info: NodeInfo) -> Status: ...

    @abstractmethod
    def remove_pod(
        self, state: CycleState, pod: Pod, to_remove: Pod, node_info: NodeInfo
    ) -> Status: ...


class PreFilterPlugin(Plugin):
    @abstractmethod
    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: NodeInfos
    ) -> tuple[PreFilterResult | None, Status]:
        """Prepare, or reject the pod as a whole. Skip: this plugin's Filter is not called."""

    def pre_filter_extensions(self) -> PreFilterExtensions | None:
        return None


class FilterPlugin(Plugin):
    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Plain form: may this pod run on this node?"""
        nodes = _single(node_info)
        return self.filter_nodes(state, pod, nodes)[0]

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> NodeStatuses:
        """Vector form: one status per row of ``nodes``."""
        return NodeStatuses.from_list([self.filter(state, pod, info) for info in nodes])


class PostFilterPlugin(Plugin):
    @abstractmethod
    def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        """No node fits. ``statuses`` has one row per node of ``handle.nodes``. Success: made room;
        Unschedulable: could not, ask the next; UnschedulableAndUnresolvable or Error: stop."""


class PreScorePlugin(Plugin):
    @abstractmethod
    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Status:
        """``nodes`` are the feasible ones. Skip: this plugin's Score is not called."""


class ScorePlugin(Plugin):
    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Plain form: raw score of one node."""
        return int(self.score_nodes(state, pod, _single(node_info))[0])

    def score_nodes(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Scores:
        """Vector form: int64, shape (n,), raw scores of the feasible nodes."""
        return np.array([self.score(state, pod, info) for info in nodes], dtype=np.int64)

    def normalize_score(
        self, state: CycleState, pod: Pod, nodes: NodeInfos, scores: Scores
    ) -> Scores:
        """int64, shape (n,) -> int64, shape (n,) in 0..100. Default: the raw scores."""
        return scores


class ReservePlugin(Plugin):
    @abstractmethod
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status: ...

    @abstractmethod
    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Must be idempotent and must not fail; also called where reserve() was not."""


class PermitPlugin(Plugin):
    @abstractmethod
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        """Success, a rejection, or Wait with a timeout in seconds (at most 15 minutes count)."""


class PreBindPlugin(Plugin):
    @abstractmethod
    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Success: pre_bind has work to do; Skip: it has none."""

    @abstractmethod
    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Runs on a binding thread; may block."""


class BindPlugin(Plugin):
    @abstractmethod
    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Runs on a binding thread; may block. Skip: let the next Bind plugin try."""

    def begin_bind(self, state: CycleState, pod: Pod, node_name: str) -> Future[None] | None:
        """Begin to bind and return at once; None: this pod takes ``bind``.

        Asked of the profile's first Bind plugin, on the scheduler thread, where nothing else of
        the binding cycle may block. An exception in the future is a binding that failed; there is
        no Skip any more.
        """
        return None


class PostBindPlugin(Plugin):
    @abstractmethod
    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None: ...


#: Extension point (as in the configuration) -> class, in the order of a pod's way.
EXTENSION_POINTS: Mapping[str, type[Plugin]] = {
    "preEnqueue": PreEnqueuePlugin,
    "queueSort": QueueSortPlugin,
    "preFilter": PreFilterPlugin,
    "filter": FilterPlugin,
    "postFilter": PostFilterPlugin,
    "preScore": PreScorePlugin,
    "score": ScorePlugin,
    "reserve": ReservePlugin,
    "permit": PermitPlugin,
    "preBind": PreBindPlugin,
    "bind": BindPlugin,
    "postBind": PostBindPlugin,
}

#: Makes a plugin from its (defaulted, validated) arguments.
PluginFactory = Callable[[Mapping[str, Any], "Handle"], Plugin]


def _single(node_info: NodeInfo) -> NodeInfos:
    return NodeTable([node_info])


__all__ = [
    "EXTENSION_POINTS",
    "MAX_NODE_SCORE",
    "MIN_NODE_SCORE",
    "SUCCESS",
    "BindPlugin",
    "EnqueueExtensions",
    "FilterPlugin",
    "Handle",
    "Informer",
    "Nominator",
    "PermitPlugin",
    "Plugin",
    "PluginFactory",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterExtensions",
    "PreFilterPlugin",
    "PreScorePlugin",
    "PreemptionExtender",
    "QueueSortPlugin",
    "ReservePlugin",
    "ScorePlugin",
    "Scores",
    "WaitingPod",
]
