"""What the scheduler would do with one pod in a given state: every node, score and victim.

Nothing is assumed, bound or evicted, so any number of pods can be evaluated against one state. The
answers have the format of the recorded vectors (tests/data/vectors/README.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from scheduler_core.algorithm import ScheduleResult, SchedulingAlgorithm, SmallestName
from scheduler_core.api import KubeObject, Node, Pod
from scheduler_core.clock import RealClock
from scheduler_core.config import SchedulerConfiguration
from scheduler_core.extender import Extenders
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.preemption import Preemption
from scheduler_core.framework.runtime.framework import Framework
from scheduler_core.framework.types import Candidate
from scheduler_core.library import StandaloneFramework, framework_for, identified
from scheduler_core.plugins.default_preemption import PREEMPTION_STATE
from scheduler_core.ports import Clock, Json

__all__ = ["Evaluation", "UnknownPod"]


class UnknownPod(LookupError):
    """There is no such pod in the state. The text is for people."""


class Evaluation:
    """One state of a cluster, and the plugins that look at it.

    Args:
        objects: the parsed objects of the cluster. Pods that have ended are left out, as the
            scheduler's watch leaves them out; pods on a node that is not there hold nothing.
        config: a pod is evaluated by the profile it names, or else by the first one.
        clock: the time of day, for pods that have not started yet.
        reuse: let work for one pod serve the next one like it, as the scheduler does; the answers
            are the same.

    The configuration's extenders are asked, over the network: then ``close`` it in the end.

    Raises:
        ProfileError: a plugin refuses its arguments, an extender's certificates are no good.
    """

    def __init__(
        self,
        objects: Iterable[KubeObject],
        config: SchedulerConfiguration,
        clock: Clock | None = None,
        *,
        reuse: bool = False,
    ) -> None:
        objects = tuple(objects)
        self._nodes = [obj for obj in objects if isinstance(obj, Node)]
        alive = (obj for obj in objects if isinstance(obj, Pod) and not obj.is_terminal)
        self._pods = {pod.key: identified(pod) for pod in alive}
        self._others = [obj for obj in objects if not isinstance(obj, Node | Pod)]
        self._config = config
        self._clock = clock or RealClock()
        self._extenders = Extenders(config.extenders)
        self._algorithm = SchedulingAlgorithm(
            SmallestName(),
            score_single_node=True,
            every_node=True,
            extenders=self._extenders,
            reuse=reuse,
        )
        self._known = {profile.scheduler_name for profile in config.profiles}
        self._first = config.profiles[0].scheduler_name
        self._frameworks: dict[str, StandaloneFramework] = {}
        self.framework(self._first)  # a plugin that refuses its arguments does so at once

    def close(self) -> None:
        """Let go of the connections to extenders; there are none without extenders."""
        self._extenders.close()
        for standalone in self._frameworks.values():
            standalone.close()

    @property
    def pending(self) -> tuple[str, ...]:
        """ "namespace/name" of every pod without a node, in the order of the objects."""
        return tuple(pod.key for pod in self._pods.values() if not pod.is_assigned)

    def evaluate(self, key: str) -> Json:
        """The answer for the pod "namespace/name". Every node is looked at, whatever the profile's
        percentageOfNodesToScore; a nomination of the pod itself is not tried first.

        Raises:
            UnknownPod: it is not there, or has a node already.
        """
        pod = self._pods.get(key)
        if pod is None:
            raise UnknownPod(f"there is no pod {key}")
        if pod.is_assigned:
            raise UnknownPod(f"pod {key} runs on node {pod.node_name} already")
        framework = self.framework(pod.scheduler_name)
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

    def framework(self, scheduler_name: str) -> Framework:
        """The profile of that name, or the first; each looks at the state with its own plugins."""
        name = scheduler_name if scheduler_name in self._known else self._first
        if name not in self._frameworks:
            pods = self._pods.values()
            self._frameworks[name] = framework_for(
                self._nodes,
                pods,
                self._others,
                config=self._config,
                profile=name,
                clock=self._clock,
            )
            _ = self._frameworks[name].nodes  # has them taken into the snapshot
        return self._frameworks[name].framework


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
    statuses = fit.diagnosis.node_statuses
    if statuses is None:  # no nodes at all
        return {"status": "Unschedulable", "message": result.status.message}
    answer: Json = {"status": "Unschedulable"}
    if fit.diagnosis.pre_filter_status is not None:
        answer["preFilter"] = fit.diagnosis.pre_filter_status.as_dict()
    answer.update(_filtered(result))
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
    if result.fit_error is None:  # it fits; who turned other nodes down is in their statuses
        return sorted(result.statuses.plugins()) if result.statuses is not None else []
    diagnosis = result.fit_error.diagnosis
    return sorted(diagnosis.unschedulable_plugins | diagnosis.pending_plugins)
