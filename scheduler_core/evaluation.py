"""What the scheduler would do with one pod in a given state: every node, score and victim.

Nothing is assumed, bound or evicted, so any number of pods can be evaluated against one state. The
answers have the format of the recorded vectors (tests/data/vectors/README.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any, TypeVar

from scheduler_core.algorithm import ScheduleResult, SchedulingAlgorithm, SmallestName
from scheduler_core.api import KubeObject, Node, Pod
from scheduler_core.backend.cache import Cache
from scheduler_core.backend.informers import Informers
from scheduler_core.backend.queue.nominator import PodNominator
from scheduler_core.backend.snapshot import Snapshot
from scheduler_core.clock import RealClock
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.config import SchedulerConfiguration
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.preemption import Preemption
from scheduler_core.framework.runtime.framework import Framework, Services
from scheduler_core.framework.runtime.waiting_pods import WaitingPodsMap
from scheduler_core.framework.types import Candidate
from scheduler_core.plugins.default_preemption import PREEMPTION_STATE
from scheduler_core.ports import Clock, Json
from scheduler_core.profile import Profiles

__all__ = ["Evaluation", "UnknownPod"]

R = TypeVar("R")


class UnknownPod(LookupError):
    """There is no such pod in the state. The text is for people."""


class Evaluation:
    """One state of a cluster, and the plugins that look at it.

    Args:
        objects: the parsed objects of the cluster. Pods that have ended are left out, as the
            scheduler's watch leaves them out; pods on a node that is not there hold nothing.
        config: a pod is evaluated by the profile it names, or else by the first one.
        clock: the time of day, for pods that have not started yet.

    Raises:
        ProfileError: a plugin refuses its arguments.
    """

    def __init__(
        self,
        objects: Iterable[KubeObject],
        config: SchedulerConfiguration,
        clock: Clock | None = None,
    ) -> None:
        clock = clock or RealClock()
        self._informers = Informers()
        self._nominator = PodNominator()
        snapshot = self._take_in(objects)
        self._profiles = Profiles(
            config,
            config.registry,
            Services(
                snapshot=snapshot,
                informers=self._informers,
                waiting_pods=WaitingPodsMap(),
                cluster=SandboxCluster(clock),  # an empty one: nothing is asked of it
                clock=clock,
                activate=_activate_nobody,
                emit_event=_tell_nobody,
                nominator=self._nominator,
                background=_leave_undone,
                random=Random(0),  # noqa: S311 - not for secrets
            ),
        )
        self._algorithm = SchedulingAlgorithm(
            SmallestName(), score_single_node=True, every_node=True
        )

    def _take_in(self, objects: Iterable[KubeObject]) -> Snapshot:
        for obj in objects:
            if not (isinstance(obj, Pod) and obj.is_terminal):
                self._informers.informer(type(obj).__name__).set(obj)
        cache = Cache()
        for node in self._informers.informer("Node").list():
            assert isinstance(node, Node)
            cache.add_node(node)
        for pod in self._pods():
            if pod.is_assigned:
                cache.add_pod(pod)
            else:
                self._nominator.add(pod)
        snapshot = Snapshot()
        snapshot.update(cache)
        return snapshot

    def _pods(self) -> list[Pod]:
        return [pod for pod in self._informers.informer("Pod").list() if isinstance(pod, Pod)]

    @property
    def pending(self) -> tuple[str, ...]:
        """ "namespace/name" of every pod without a node, in the order of the objects."""
        return tuple(pod.key for pod in self._pods() if not pod.is_assigned)

    def evaluate(self, key: str) -> Json:
        """The answer for the pod "namespace/name". Every node is looked at, whatever the profile's
        percentageOfNodesToScore; a nomination of the pod itself is not tried first.

        Raises:
            UnknownPod: it is not there, or has a node already.
        """
        pod = self._informers.informer("Pod").get(key)
        if not isinstance(pod, Pod):
            raise UnknownPod(f"there is no pod {key}")
        if pod.is_assigned:
            raise UnknownPod(f"pod {key} runs on node {pod.node_name} already")
        framework = self._framework(pod.scheduler_name)
        state = CycleState()
        result = self._algorithm.schedule(framework, state, pod)
        answer: Json = {"pod": key}
        if result.status.is_success:
            answer.update(_feasible(result))
        elif result.status.is_rejected:
            answer.update(_unschedulable(framework, state, pod, result))
        else:
            answer.update(status="Error", message=result.status.message)
        plugins = _unschedulable_plugins(result)
        if plugins and answer["status"] != "Error":
            answer["unschedulablePlugins"] = plugins
        return answer

    def _framework(self, scheduler_name: str) -> Framework:
        known = self._profiles.get(scheduler_name)
        return next(iter(self._profiles.values())) if known is None else known


# -- answers ---------------------------------------------------------------------------------------


def _feasible(result: ScheduleResult) -> Json:
    scores = result.scores
    assert scores is not None, "a node that fits is scored here, also if it is the only one"
    names = [result.nodes.names[int(row)] for row in result.feasible]
    order = sorted(range(len(names)), key=names.__getitem__)
    nodes = [names[i] for i in order]

    def by_node(values: Any) -> dict[str, int]:
        listed = values.tolist()
        return {name: listed[i] for name, i in zip(nodes, order, strict=True)}

    total = by_node(scores.total)
    highest = max(total.values())
    return {
        "status": "Feasible",
        **_filtered(result),
        "feasible": nodes,
        "raw": {name: by_node(scores.raw[i]) for i, name in enumerate(scores.plugins)},
        "normalized": {
            name: by_node(scores.normalized[i]) for i, name in enumerate(scores.plugins)
        },
        "weights": dict(zip(scores.plugins, scores.weights.tolist(), strict=True)),
        "total": total,
        "best": [name for name in nodes if total[name] == highest],
        "chosen": result.node_name,
    }


def _unschedulable(
    framework: Framework, state: CycleState, pod: Pod, result: ScheduleResult
) -> Json:
    fit = result.fit_error
    assert fit is not None, "whoever is turned down gets a FitError"
    answer: Json = {"status": "Unschedulable"}
    if fit.diagnosis.pre_filter_status is not None:
        answer["preFilter"] = fit.diagnosis.pre_filter_status.as_dict()
    answer.update(_filtered(result))
    statuses = fit.diagnosis.node_statuses
    if statuses is None:  # no nodes at all
        return {**answer, "message": result.status.message}
    if framework.post_filter_plugins:
        _, status = framework.run_post_filter(state, pod, statuses)
        fit.diagnosis.post_filter_message = status.message
    answer["message"] = fit.message
    preemption = state.get(PREEMPTION_STATE)
    if isinstance(preemption, Preemption):
        answer["preemption"] = _preemption(preemption)
    return answer


def _filtered(result: ScheduleResult) -> Json:
    """Nodes that a Filter plugin turned down; those that PreFilter cut off are not among them."""
    if result.statuses is None:
        return {}
    table = [status.as_dict() for status in result.statuses.table]
    names = result.nodes.names
    rejected = sorted((names[row], i) for row, i in enumerate(result.statuses.ids) if i > 0)
    return {"filtered": {name: table[i] for name, i in rejected}} if rejected else {}


def _preemption(preemption: Preemption) -> Json:
    if preemption.chosen is None:
        return {"status": preemption.status.as_dict()}
    candidates = sorted(preemption.candidates, key=lambda candidate: candidate.node)
    return {
        "status": {"code": preemption.status.code.label},
        "candidates": [_candidate(candidate) for candidate in candidates],
        "nominated": preemption.chosen.node,
    }


def _candidate(candidate: Candidate) -> Json:
    return {
        "node": candidate.node,
        "victims": [victim.key for victim in candidate.victims],
        "pdbViolations": candidate.pdb_violations,
    }


def _unschedulable_plugins(result: ScheduleResult) -> list[str]:
    if result.fit_error is None:
        return []
    diagnosis = result.fit_error.diagnosis
    return sorted(diagnosis.unschedulable_plugins | diagnosis.pending_plugins)


# -- nothing happens -------------------------------------------------------------------------------


def _leave_undone(key: str, work: Callable[[], R], then: Callable[[R], None]) -> None:
    """Evictions and patches stay thoughts."""


def _activate_nobody(pods: Mapping[str, Pod]) -> None:
    """There is no queue."""


def _tell_nobody(*args: Any, **kwargs: Any) -> None:
    """There is nobody to read events."""
