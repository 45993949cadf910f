"""Framework: the plugins of one profile, and the Handle they get."""

# mypy: disable-error-code="type-abstract"
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, Protocol, TypeVar

from scheduler_core.api import Pod
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.events import WILDCARD_EVENT, ClusterEventWithHint
from scheduler_core.framework.interface import (
    EXTENSION_POINTS,
    BindPlugin,
    EnqueueExtensions,
    FilterPlugin,
    Informer,
    Nominator,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreemptionExtender,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from scheduler_core.framework.node_info import NodeInfo
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.runtime import binding, filtering, post_filter, scoring
from scheduler_core.framework.runtime.equivalence import EquivalenceCache
from scheduler_core.framework.runtime.pre_binds import PreBinds
from scheduler_core.framework.runtime.registry import Registry
from scheduler_core.framework.runtime.waiting_pods import PermitWait, WaitingPod, WaitingPodsMap
from scheduler_core.framework.status import Status
from scheduler_core.framework.types import PostFilterResult
from scheduler_core.ports import Clock, Cluster

P = TypeVar("P", bound=Plugin)
R = TypeVar("R")


class SnapshotLister(Protocol):
    """The snapshot of the current cycle."""

    @property
    def nodes(self) -> NodeInfos: ...


class InformerSource(Protocol):
    """Objects by kind, as the scheduler's watch has them."""

    def informer(self, kind: str) -> Informer: ...


class Background(Protocol):
    """Runs ``work`` somewhere and hands its result to ``then`` on the scheduler thread."""

    def __call__(self, key: str, work: Callable[[], R], then: Callable[[R], None]) -> None: ...


def run_at_once(key: str, work: Callable[[], R], then: Callable[[R], None]) -> None:
    """No background: for frameworks without a loop around them."""
    then(work())


@dataclass(slots=True)
class Services:
    """What all profiles of a scheduler share. ``nominator`` belongs to the queue, which is made
    from the profiles' plugins: the Scheduler sets it before the first cycle."""

    snapshot: SnapshotLister
    informers: InformerSource
    waiting_pods: WaitingPodsMap
    cluster: Cluster
    clock: Clock
    activate: Callable[[Mapping[str, Pod]], None]
    emit_event: Callable[..., None]
    nominator: Nominator | None = None
    background: Background = run_at_once
    preemption_extenders: Sequence[PreemptionExtender] = ()
    pre_binds: PreBinds = field(default_factory=PreBinds)
    random: Random = field(default_factory=Random)
    #: Set once, by the Scheduler when it is stopped.
    is_stopping: bool = False


class ProfileError(ValueError):
    """A profile cannot be made; the text is the reference's (facts of its start-up errors)."""


class Framework:
    """One profile: its plugins by extension point, in order. Also the ``Handle`` of its plugins.

    Args:
        profile_name: the schedulerName.
        plugins: extension point (``preFilter``, ``score``, ...) -> (plugin name, weight) in order.
        plugin_args: plugin name -> defaulted, validated arguments.
        registry: where plugins come from; each is instantiated once.
        services: what the profiles share.

    Raises:
        ProfileError: an unknown plugin, one that lacks the extension point, not exactly one
            QueueSort plugin, no Bind plugin, or a plugin that refuses its arguments.
    """

    def __init__(
        self,
        profile_name: str,
        plugins: Mapping[str, Sequence[tuple[str, int]]],
        plugin_args: Mapping[str, Mapping[str, Any]],
        registry: Registry,
        services: Services,
        *,
        require_queue_and_bind: bool = True,
    ) -> None:
        self.profile_name = profile_name
        self._services = services
        self._names = frozenset(name for refs in plugins.values() for name, _ in refs)
        self._instances: dict[str, Plugin] = {}
        self._make(plugins, plugin_args, registry)
        self.pre_enqueue_plugins = self._at(plugins, "preEnqueue", PreEnqueuePlugin)
        self.queue_sort_plugins = self._at(plugins, "queueSort", QueueSortPlugin)
        self.pre_filter_plugins = self._at(plugins, "preFilter", PreFilterPlugin)
        #: Those that may want to hear of pods added and removed in thought; preemption asks often.
        self._tracking_plugins = tuple(filter(_has_extensions, self.pre_filter_plugins))
        self.filter_plugins = self._at(plugins, "filter", FilterPlugin)
        self.post_filter_plugins = self._at(plugins, "postFilter", PostFilterPlugin)
        self.pre_score_plugins = self._at(plugins, "preScore", PreScorePlugin)
        scorers = self._at(plugins, "score", ScorePlugin)
        weights = [weight or 1 for _, weight in plugins.get("score", ())]
        self.score_plugins: tuple[tuple[ScorePlugin, int], ...] = tuple(
            zip(scorers, weights, strict=True)
        )
        self.reserve_plugins = self._at(plugins, "reserve", ReservePlugin)
        self.permit_plugins = self._at(plugins, "permit", PermitPlugin)
        self.pre_bind_plugins = self._at(plugins, "preBind", PreBindPlugin)
        self.bind_plugins = self._at(plugins, "bind", BindPlugin)
        self.post_bind_plugins = self._at(plugins, "postBind", PostBindPlugin)
        if require_queue_and_bind:
            self._check_queue_and_bind()
        self.equivalence = EquivalenceCache(self)

    # -- making ----------------------------------------------------------------------------------

    def _make(
        self,
        plugins: Mapping[str, Sequence[tuple[str, int]]],
        plugin_args: Mapping[str, Mapping[str, Any]],
        registry: Registry,
    ) -> None:
        for point, refs in plugins.items():
            for name, _ in refs:
                kind = EXTENSION_POINTS[point].__name__
                if name not in registry:
                    raise ProfileError(f'{kind} "{name}" does not exist')
                if name in self._instances:
                    continue
                try:
                    self._instances[name] = registry.create(name, plugin_args.get(name, {}), self)
                except Exception as exc:
                    raise ProfileError(f'initializing plugin "{name}": {exc}') from exc

    def _at(
        self, plugins: Mapping[str, Sequence[tuple[str, int]]], point: str, base: type[P]
    ) -> tuple[P, ...]:
        found: list[P] = []
        for name, _ in plugins.get(point, ()):
            plugin = self._instances[name]
            if not isinstance(plugin, base):
                raise ProfileError(f'plugin "{name}" does not extend {base.__name__} plugin')
            if plugin in found:
                raise ProfileError(f'plugin "{name}" already registered as "{base.__name__}"')
            found.append(plugin)
        return tuple(found)

    def _check_queue_and_bind(self) -> None:
        count = len(self.queue_sort_plugins)
        if count != 1:
            raise ProfileError(
                "only one queue sort plugin required for profile with scheduler name "
                f'"{self.profile_name}", but got {count}'
            )
        if not self.bind_plugins:
            raise ProfileError(
                "at least one bind plugin is needed for profile with scheduler name "
                f'"{self.profile_name}"'
            )

    def plugin(self, name: str) -> Plugin | None:
        """The instance of a plugin, or None where the profile does not have it."""
        return self._instances.get(name)

    def events_to_register(self) -> dict[str, Sequence[ClusterEventWithHint]]:
        """Plugin name -> events that may make a pod it rejected schedulable.

        A plugin that does not say so hears of every event, as in the reference.

        Raises:
            ProfileError: a plugin cannot say it.
        """
        return {name: _events(name, plugin) for name, plugin in self._instances.items()}

    # -- extension points --------------------------------------------------------------------------

    def run_pre_filter(self, state: CycleState, pod: Pod) -> filtering.PreFilterOutcome:
        return filtering.run_pre_filter(self.pre_filter_plugins, state, pod, self.nodes)

    def run_filter(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> NodeStatuses:
        """One status per row of ``nodes``; nominated pods are counted in."""
        statuses = filtering.run_filter(self.filter_plugins, state, pod, nodes)
        for row in filtering.rows_with_nominated_pods(self.nominator, pod, nodes):
            if statuses.ids[row] == 0:
                status = self.run_filter_plugins_with_nominated_pods(state, pod, nodes[row])
                statuses.ids[row] = 0 if status.is_success else statuses.intern(status)
        return statuses

    def run_post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        return post_filter.run_post_filter(self.post_filter_plugins, state, pod, statuses)

    def run_pre_score(self, state: CycleState, pod: Pod, nodes: NodeInfos) -> Status:
        return scoring.run_pre_score(self.pre_score_plugins, state, pod, nodes)

    def run_score(
        self, state: CycleState, pod: Pod, nodes: NodeInfos
    ) -> tuple[scoring.NodePluginScores | None, Status]:
        return scoring.run_score(self.score_plugins, state, pod, nodes)

    def run_reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return binding.run_reserve(self.reserve_plugins, state, pod, node_name)

    def run_unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        binding.run_unreserve(self.reserve_plugins, state, pod, node_name)

    def run_permit(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> tuple[Status, list[PermitWait]]:
        now = self.clock.now()
        return binding.run_permit(self.permit_plugins, state, pod, node_name, now)

    def run_pre_bind_pre_flight(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> tuple[Status, list[PreBindPlugin]]:
        return binding.run_pre_bind_pre_flight(self.pre_bind_plugins, state, pod, node_name)

    def run_pre_bind(
        self, plugins: Sequence[PreBindPlugin], state: CycleState, pod: Pod, node_name: str
    ) -> Status:
        return binding.run_pre_bind(plugins, state, pod, node_name)

    def run_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return binding.run_bind(self.bind_plugins, state, pod, node_name)

    def run_post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        binding.run_post_bind(self.post_bind_plugins, state, pod, node_name)

    # -- Handle ------------------------------------------------------------------------------------

    @property
    def nodes(self) -> NodeInfos:
        return self._services.snapshot.nodes

    @property
    def cluster(self) -> Cluster:
        return self._services.cluster

    @property
    def clock(self) -> Clock:
        return self._services.clock

    @property
    def is_stopping(self) -> bool:
        return self._services.is_stopping

    @property
    def nominator(self) -> Nominator:
        nominator = self._services.nominator
        if nominator is None:
            raise RuntimeError("there is no scheduling queue yet")
        return nominator

    @property
    def random(self) -> Random:
        return self._services.random

    @property
    def preemption_extenders(self) -> Sequence[PreemptionExtender]:
        return self._services.preemption_extenders

    def run_in_background(self, key: str, work: Callable[[], R], then: Callable[[R], None]) -> None:
        self._services.background(key, work, then)

    def cancel_pre_bind(self, uid: str, message: str) -> bool:
        return self._services.pre_binds.cancel(uid, message)

    def is_pre_bind_cancelled(self, uid: str) -> bool:
        return self._services.pre_binds.is_cancelled(uid)

    def has_plugin(self, name: str) -> bool:
        return name in self._names

    def informer(self, kind: str) -> Informer:
        return self._services.informers.informer(kind)

    def iterate_over_waiting_pods(self) -> Iterable[WaitingPod]:
        return self._services.waiting_pods

    def get_waiting_pod(self, uid: str) -> WaitingPod | None:
        return self._services.waiting_pods.get(uid)

    def reject_waiting_pod(self, uid: str, message: str = "removed") -> bool:
        waiting = self._services.waiting_pods.get(uid)
        if waiting is None:
            return False
        waiting.reject("", message)
        return True

    def activate(self, pods: Mapping[str, Pod]) -> None:
        self._services.activate(pods)

    def emit_event(
        self,
        pod: Pod,
        *,
        type: Literal["Normal", "Warning"],
        reason: str,
        action: str,
        note: str,
    ) -> None:
        self._services.emit_event(
            pod,
            type=type,
            reason=reason,
            action=action,
            note=note,
            reporting_controller=self.profile_name,
        )

    def run_filter_plugins_with_nominated_pods(
        self, state: CycleState, pod: Pod, node_info: NodeInfo
    ) -> Status:
        return filtering.run_filter_with_nominated_pods(
            self.filter_plugins, self._tracking_plugins, self.nominator, state, pod, node_info
        )

    def run_pre_filter_extension_add_pod(
        self, state: CycleState, pod: Pod, to_add: Pod, node_info: NodeInfo
    ) -> Status:
        return filtering.run_add_pod(self._tracking_plugins, state, pod, to_add, node_info)

    def run_pre_filter_extension_remove_pod(
        self, state: CycleState, pod: Pod, to_remove: Pod, node_info: NodeInfo
    ) -> Status:
        return filtering.run_remove_pod(self._tracking_plugins, state, pod, to_remove, node_info)


def _has_extensions(plugin: PreFilterPlugin) -> bool:
    return type(plugin).pre_filter_extensions is not PreFilterPlugin.pre_filter_extensions


def _events(name: str, plugin: Plugin) -> Sequence[ClusterEventWithHint]:
    if not isinstance(plugin, EnqueueExtensions):
        return (ClusterEventWithHint(WILDCARD_EVENT),)
    try:
        return tuple(plugin.events_to_register())
    except Exception as exc:
        raise ProfileError(f'asking plugin "{name}" for its events: {exc}') from exc
