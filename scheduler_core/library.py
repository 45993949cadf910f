"""The scheduling framework as a library: plugins and a state of a cluster, without queue or API.

What a cluster autoscaler does with kube-scheduler's framework: ask whether a pod would fit on a
node, try what one more node or one pod less would change, and never bind anything.

    cluster = framework_for(nodes, pods)
    cluster.fits(pod, "n1").message        # "" or "Insufficient cpu"
    cluster.filter(pod).feasible           # bool, one per node
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from random import Random
from typing import Any, TypeVar

import numpy as np

from scheduler_core.algorithm import ScheduleResult, SchedulingAlgorithm, SmallestName, TieBreaker
from scheduler_core.api import KubeObject, Node, Pod
from scheduler_core.backend.cache import Cache
from scheduler_core.backend.informers import Informers
from scheduler_core.backend.queue.nominator import PodNominator
from scheduler_core.backend.snapshot import Snapshot
from scheduler_core.clock import RealClock
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.config import SchedulerConfiguration, default_configuration
from scheduler_core.extender import Extenders
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.node_statuses import NodeStatuses
from scheduler_core.framework.nodes import NodeInfos
from scheduler_core.framework.runtime.framework import Framework, Services
from scheduler_core.framework.runtime.waiting_pods import WaitingPodsMap
from scheduler_core.framework.status import Status, unresolvable
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.ports import Clock
from scheduler_core.profile import Profiles

__all__ = ["StandaloneFramework", "UnknownNode", "UnknownProfile", "framework_for"]

R = TypeVar("R")


class UnknownNode(LookupError):
    """There is no node of this name. The text is for people."""


class UnknownProfile(LookupError):
    """The configuration has no profile of this name. The text is for people."""


def framework_for(
    nodes: Iterable[Node],
    pods: Iterable[Pod] = (),
    objects: Iterable[KubeObject] = (),
    *,
    config: SchedulerConfiguration | None = None,
    profile: str = "",
    clock: Clock | None = None,
    tie_breaker: TieBreaker | None = None,
) -> StandaloneFramework:
    """One profile's framework over a cluster in memory.

    Args:
        pods: pods with a node count on it; those without count where they are nominated to. Pods
            that have ended count nowhere.
        objects: what plugins look up besides: namespaces, services, volumes, claims, budgets, ...
        config: default: the default profile.
        profile: its schedulerName; default: the configuration's first.
        clock: the time of day, for plugins that ask.
        tie_breaker: for ``schedule``; default: the smallest node name.

    Raises:
        UnknownProfile: the configuration has none of that name.
        ProfileError: a plugin refuses its arguments, an extender's certificates are no good.
        CacheError: a pod is there twice.
    """
    config = config or default_configuration(in_tree_registry())
    standalone = StandaloneFramework(config, profile, clock or RealClock(), tie_breaker)
    for obj in (*objects, *nodes, *pods):
        standalone.add(obj)
    return standalone


class StandaloneFramework:
    """A profile's plugins and the cluster that they look at; made by ``framework_for``.

    Changes take effect with the next question. Nothing is written anywhere. ``filter`` and ``fits``
    ask plugins alone; ``schedule`` asks the configuration's extenders too, over the network: then
    ``close`` it in the end. Not thread-safe.
    """

    def __init__(
        self,
        config: SchedulerConfiguration,
        profile: str,
        clock: Clock,
        tie_breaker: TieBreaker | None,
    ) -> None:
        self._cache = Cache()
        self._snapshot = Snapshot()
        self._informers = Informers()
        self._nominator = PodNominator()
        self._extenders = Extenders(config.extenders)
        services = Services(
            snapshot=self._snapshot,
            informers=self._informers,
            waiting_pods=WaitingPodsMap(),
            cluster=SandboxCluster(clock),  # an empty one, for plugins that keep a reference
            clock=clock,
            activate=_activate_nobody,
            emit_event=_tell_nobody,
            nominator=self._nominator,
            background=_leave_undone,
            preemption_extenders=self._extenders.preemption,
            random=Random(0),  # noqa: S311 - not for secrets
        )
        profiles = Profiles(config, config.registry, services)
        name = profile or config.profiles[0].scheduler_name
        if name not in profiles:
            known = ", ".join(profiles)
            raise UnknownProfile(f'the configuration has no profile "{name}" (it has: {known})')
        #: The profile's plugins by extension point, to be run one by one.
        self.framework: Framework = profiles[name]
        self._percentage = profiles.percentage(name)
        self._algorithm = SchedulingAlgorithm(
            tie_breaker or SmallestName(), extenders=self._extenders
        )

    def close(self) -> None:
        """Let go of the connections to extenders; there are none without extenders."""
        self._extenders.close()

    # -- the cluster -----------------------------------------------------------------------------

    @property
    def nodes(self) -> NodeInfos:
        """The nodes as the plugins see them now, with the pods on them."""
        self._snapshot.update(self._cache)
        return self._snapshot.nodes

    def add(self, obj: KubeObject) -> None:
        """An object is there; a node or another object that is there already is replaced.

        Raises:
            CacheError: a pod on a node that is there already.
        """
        if isinstance(obj, Pod):
            self._add_pod(obj)
            return
        self._informers.informer(type(obj).__name__).set(obj)
        if isinstance(obj, Node):
            self._cache.add_node(obj)

    def remove(self, obj: KubeObject) -> None:
        """An object is gone. The pods of a node that goes stay, on no node.

        Raises:
            CacheError: the node, or the pod on its node, is not there.
        """
        if isinstance(obj, Pod):
            self._remove_pod(identified(obj))
            return
        self._informers.informer(type(obj).__name__).delete(obj.key)
        if isinstance(obj, Node):
            self._cache.remove_node(obj)

    def place(self, pod: Pod, node_name: str) -> Pod:
        """Put a pod on a node, as if it had been bound there; the pod with its node.

        Raises:
            CacheError: it is on a node already.
        """
        placed = identified(pod).with_node_name(node_name)
        self._add_pod(placed)
        return placed

    def _add_pod(self, pod: Pod) -> None:
        if pod.is_terminal:
            return
        pod = identified(pod)
        if pod.is_assigned:
            self._cache.add_pod(pod)
            self._nominator.delete(pod)
        else:
            self._nominator.add(pod)
        self._informers.informer("Pod").set(pod)

    def _remove_pod(self, pod: Pod) -> None:
        self._informers.informer("Pod").delete(pod.key)
        self._nominator.delete(pod)
        if self._cache.get_pod(pod) is not None or pod.is_assigned:
            self._cache.remove_pod(pod)

    # -- questions -------------------------------------------------------------------------------

    def filter(self, pod: Pod) -> NodeStatuses:
        """Where the pod could run: PreFilter and Filter, one status per row of ``nodes``."""
        nodes, state = self.nodes, CycleState()
        outcome = self.framework.run_pre_filter(state, pod)
        everywhere = np.ones(len(nodes), dtype=bool)
        if not outcome.status.is_success:
            return NodeStatuses.from_mask(everywhere, outcome.status)
        names = outcome.result.node_names
        if names is None:
            return self.framework.run_filter(state, pod, nodes)
        rows = [row for row, name in enumerate(nodes.names) if name in names]
        kept = np.array(rows, dtype=np.intp)
        statuses = self.framework.run_filter(state, pod, nodes.subset(kept))
        every = NodeStatuses.scattered(len(nodes), kept, statuses)
        every.absent_status = _not_wanted(outcome.node_set_plugins)
        return every

    def fits(self, pod: Pod, node_name: str) -> Status:
        """Whether the pod could run on one node: Success, or the first plugin's rejection.

        Raises:
            UnknownNode: there is no such node.
        """
        info = self.nodes.get(node_name)
        if info is None:
            raise UnknownNode(f"there is no node {node_name}")
        state = CycleState()
        outcome = self.framework.run_pre_filter(state, pod)
        if not outcome.status.is_success:
            return outcome.status
        names = outcome.result.node_names
        if names is not None and node_name not in names:
            return _not_wanted(outcome.node_set_plugins)
        return self.framework.run_filter_plugins_with_nominated_pods(state, pod, info)

    def schedule(self, pod: Pod, state: CycleState | None = None) -> ScheduleResult:
        """The node that the profile would choose; the pod is not placed there.

        ``state`` is what Reserve plugins want to see afterwards. As in a real cycle not all nodes
        are looked at where percentageOfNodesToScore says so.
        """
        self._snapshot.update(self._cache)
        return self._algorithm.schedule(
            self.framework,
            CycleState() if state is None else state,
            pod,
            percentage=self._percentage,
            preferred_node=pod.nominated_node_name,
        )


def identified(pod: Pod) -> Pod:
    """The pod, with its key as uid where it has none: pods are told apart by uid."""
    return pod if pod.uid else replace(pod, uid=pod.key)


def _not_wanted(plugins: Iterable[str]) -> Status:
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}]")


# -- nothing happens -------------------------------------------------------------------------------


def _leave_undone(key: str, work: Callable[[], R], then: Callable[[R], None]) -> None:
    """Evictions and other writes stay thoughts."""


def _activate_nobody(pods: Mapping[str, Pod]) -> None:
    """There is no queue."""


def _tell_nobody(*args: Any, **kwargs: Any) -> None:
    """There is nobody to read events."""
