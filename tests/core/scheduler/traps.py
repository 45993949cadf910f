"""What a re-implementation of kube-scheduler 1.36 gets wrong first: a named case for each trap.

Each goes through the whole scheduler, or through everything that decides about one pod, so that it
holds whatever the parts look like. The parts have tables of their own, next to each plugin. The
cases are in ``test_traps_*.py``, by subject; here is what they share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scheduler_core.api import Pod, parse_object
from scheduler_core.config import configuration_from
from scheduler_core.evaluation import Evaluation
from scheduler_core.library import StandaloneFramework, framework_for
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.testing.builders import NodeBuilder, PodBuilder

Json = dict[str, Any]

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
#: What the default profile adds to the FitError of a pod for which nobody can make way.
NOT_HELPFUL = "Preemption is not helpful for scheduling."
CLAIMS = "no new claims to deallocate"


def configuration(profile: Mapping[str, Any] | None = None, **fields: Any) -> Any:
    return configuration_from({**HEAD, "profiles": [profile or {}], **fields}, in_tree_registry())


def evaluate(
    pod: PodBuilder | Json,
    *objects: Any,
    profile: Mapping[str, Any] | None = None,
) -> Json:
    """Everything that the default profile says about one pod: scores, reasons, victims."""
    raw = [pod, *objects]
    parsed = [parse_object(obj.raw() if hasattr(obj, "raw") else obj) for obj in raw]
    assert isinstance(parsed[0], Pod)
    evaluation = Evaluation(parsed, configuration(profile))
    answer: Json = evaluation.evaluate(parsed[0].key)
    return answer


def scored(pod: PodBuilder, plugin: str, *objects: Any, **options: Any) -> dict[str, int]:
    """node -> raw score of one plugin."""
    found: dict[str, int] = evaluate(pod, *objects, **options)["raw"][plugin]
    return found


def standalone(
    nodes: Iterable[NodeBuilder], pods: Iterable[PodBuilder] = (), **options: Any
) -> StandaloneFramework:
    return framework_for([n.obj() for n in nodes], [p.obj() for p in pods], **options)


def affinity(**parts: Any) -> Json:
    """required terms: ``podAffinity=[...]``, ``podAntiAffinity=[...]``."""
    return {part: {REQUIRED: terms} for part, terms in parts.items()}


def by_name(*names: str) -> Json:
    """Node affinity with one term: metadata.name in ``names``."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}]}
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}


def enabled(point: str, *names: str) -> Json:
    return {"plugins": {point: {"enabled": [{"name": name} for name in names]}}}


def disabled(*names: str) -> Json:
    return {"plugins": {"multiPoint": {"disabled": [{"name": name} for name in names]}}}


def args(plugin: str, **values: Any) -> Json:
    return {"pluginConfig": [{"name": plugin, "args": values}]}
