"""How many more copies of a pod fit into a cluster, where, and what stops the next one.

Copies are scheduled one after another, each counted on its node before the next one is tried, until
one fits nowhere. The configuration's extenders are asked as in a real cycle. Nothing is preempted
for a copy, and nobody is asked for permission: scheduling gates, Permit plugins and the pods that
wait for a node already are left out of account.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.algorithm import ScheduleResult
from scheduler_core.api import Pod, PriorityClass
from scheduler_core.cluster.defaults import apply_defaults
from scheduler_core.config import SchedulerConfiguration
from scheduler_core.failure_handler import fit_error_of_one
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.runtime.framework import Framework
from scheduler_core.framework.status import Status
from scheduler_core.framework.types import FitError
from scheduler_core.library import StandaloneFramework, framework_for
from scheduler_core.snapshot_file import SnapshotFile

__all__ = [
    "DEFAULT_LIMIT",
    "ERROR",
    "LIMIT_REACHED",
    "UNSCHEDULABLE",
    "Capacity",
    "InvalidPod",
    "capacity_of",
    "copies_that_fit",
    "pod_template",
]

Json = dict[str, Any]

#: Copies that are tried before the answer is "at least so many".
DEFAULT_LIMIT: Final = 100_000

#: Why no further copy was placed.
UNSCHEDULABLE: Final = "Unschedulable"
LIMIT_REACHED: Final = "LimitReached"
ERROR: Final = "Error"

#: What the API server gave the pod, and what happened to it there: not part of a copy.
_OF_THE_SERVER: Final = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generateName",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
_SYSTEM_PRIORITIES: Final[Mapping[str, int]] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


class InvalidPod(ValueError):
    """Copies of this pod cannot be made. The text is for people."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The answer.

    Attributes:
        pod: "namespace/name" of the pod that was copied.
        copies: how many more of it fit.
        nodes: node -> number of copies on it, in the order of the cluster's nodes; only nodes that
            got one.
        nodes_total: nodes in the cluster.
        stopped_by: ``UNSCHEDULABLE``, ``LIMIT_REACHED`` or ``ERROR``.
        message: what is said of the next copy (FitError or error text); "" at the limit.
        reasons: reason -> number of nodes that gave it to the next copy.
        plugins: the plugins that turned the next copy down, sorted.
    """

    pod: str
    copies: int
    nodes: Mapping[str, int]
    nodes_total: int
    stopped_by: str
    message: str = ""
    reasons: Mapping[str, int] = field(default_factory=dict)
    plugins: tuple[str, ...] = ()

    def as_dict(self) -> Json:
        """As JSON."""
        return {
            "pod": self.pod,
            "copies": self.copies,
            "nodes": dict(self.nodes),
            "nodesTotal": self.nodes_total,
            "stoppedBy": self.stopped_by,
            "message": self.message,
            "reasons": dict(self.reasons),
            "plugins": list(self.plugins),
        }


def capacity_of(
    snapshot: SnapshotFile,
    pod: Json,
    config: SchedulerConfiguration,
    *,
    limit: int = DEFAULT_LIMIT,
    progress: Callable[[int], None] = lambda done: None,
) -> Capacity:
    """How many more copies of a pod fit into the cluster of a snapshot.

    Args:
        pod: the Pod's JSON; one that runs already will do.
        progress: is told after each copy how many there are.

    Raises:
        InvalidPod: no copies can be made of it.
        UnknownProfile: it names a scheduler that is not in ``config``.
        InvalidObject: it is malformed.
        ProfileError: a plugin refuses its arguments.
    """
    template = pod_template(pod, snapshot.of_kind(PriorityClass), _profile_of(pod, config))
    profile = template["spec"]["schedulerName"]
    cluster = framework_for((), objects=snapshot.objects, config=config, profile=profile)
    with closing(cluster):
        return copies_that_fit(cluster, template, limit=limit, progress=progress)


def copies_that_fit(
    cluster: StandaloneFramework,
    template: Json,
    *,
    limit: int = DEFAULT_LIMIT,
    progress: Callable[[int], None] = lambda done: None,
) -> Capacity:
    """Place copies of ``template`` (see ``pod_template``) in ``cluster`` until none fits.

    The copies stay there.
    """
    original = Pod.from_dict(template)
    placed: Counter[str] = Counter()
    for number in range(limit):
        pod = _copy(template, number)
        state = CycleState()
        result = cluster.schedule(pod, state)
        if not result.status.is_success:
            return _stopped(original, cluster, placed, result.status, result)
        status = _take(cluster, state, pod, result.node_name)
        if not status.is_success:
            return _stopped(original, cluster, placed, status)
        placed[result.node_name] += 1
        progress(number + 1)
    return _answer(original, cluster, placed, LIMIT_REACHED)


def pod_template(
    pod: Json, priority_classes: tuple[PriorityClass, ...] = (), scheduler_name: str = ""
) -> Json:
    """The pod as the API server would take in a new copy of it.

    What belongs to the pod it was copied from is left out (its node, status, uid), scheduling
    gates too; defaults are filled in, and the priority from its class.

    Raises:
        InvalidPod: it is no Pod, or its PriorityClass is not there.
    """
    if pod.get("kind", "Pod") != "Pod":
        raise InvalidPod(f"a Pod is wanted, not a {pod.get('kind')}")
    template = copy.deepcopy(pod)
    template.update(apiVersion="v1", kind="Pod")
    template.pop("status", None)
    metadata, spec = template.get("metadata"), template.get("spec")
    if not isinstance(metadata, dict) or not isinstance(spec, dict):
        raise InvalidPod("a Pod with metadata and spec is wanted")
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = str(metadata["generateName"]).rstrip("-")
    for name in _OF_THE_SERVER:
        metadata.pop(name, None)
    for name in ("nodeName", "schedulingGates"):
        spec.pop(name, None)
    if scheduler_name:
        spec["schedulerName"] = scheduler_name
    apply_defaults("Pod", template)
    if spec.get("priority") is None:
        spec["priority"] = _priority(spec.get("priorityClassName") or "", priority_classes)
    return template


def _priority(name: str, classes: tuple[PriorityClass, ...]) -> int:
    if not name:
        defaults = [found.value for found in classes if found.global_default]
        return min(defaults, default=0)
    known = {**_SYSTEM_PRIORITIES, **{found.name: found.value for found in classes}}
    if name not in known:
        raise InvalidPod(f"no PriorityClass with name {name} was found")
    return known[name]


def _profile_of(pod: Json, config: SchedulerConfiguration) -> str:
    """The profile that the pod names; the first one where it names none."""
    spec = pod.get("spec")
    named = spec.get("schedulerName") if isinstance(spec, dict) else None
    return str(named or config.profiles[0].scheduler_name)


# -- one copy after another ------------------------------------------------------------------------


def _copy(template: Json, number: int) -> Pod:
    metadata = template["metadata"]
    name = f"{metadata['name']}-copy-{number}"
    namespace = metadata.get("namespace", "default")
    own = {**metadata, "name": name, "uid": f"capacity/{namespace}/{name}"}
    return Pod.from_dict({**template, "metadata": own})


def _take(cluster: StandaloneFramework, state: CycleState, pod: Pod, node_name: str) -> Status:
    """Count the copy on its node and let plugins set aside what it needs (volumes, devices)."""
    framework: Framework = cluster.framework
    placed = cluster.place(pod, node_name)
    status = framework.run_reserve(state, placed, node_name)
    if not status.is_success:
        framework.run_unreserve(state, placed, node_name)
        cluster.remove(placed)
    return status


def _stopped(
    pod: Pod,
    cluster: StandaloneFramework,
    placed: Counter[str],
    status: Status,
    result: ScheduleResult | None = None,
) -> Capacity:
    if not status.is_rejected:
        return _answer(pod, cluster, placed, ERROR, status.message)
    fit = result.fit_error if result is not None else fit_error_of_one(pod, status)
    assert fit is not None, "whoever is turned down gets a FitError"
    diagnosis = fit.diagnosis
    plugins = sorted(diagnosis.unschedulable_plugins | diagnosis.pending_plugins)
    message = fit.message if len(cluster.nodes) else status.message
    return _answer(pod, cluster, placed, UNSCHEDULABLE, message, _reasons(fit), tuple(plugins))


def _reasons(fit: FitError) -> dict[str, int]:
    if fit.diagnosis.node_statuses is None:
        return {}
    counts = fit.diagnosis.node_statuses.reason_counts(fit.num_all_nodes)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _answer(
    pod: Pod,
    cluster: StandaloneFramework,
    placed: Counter[str],
    stopped_by: str,
    message: str = "",
    reasons: Mapping[str, int] | None = None,
    plugins: tuple[str, ...] = (),
) -> Capacity:
    names = cluster.nodes.names
    return Capacity(
        pod=pod.key,
        copies=placed.total(),
        nodes={name: placed[name] for name in names if placed[name]},
        nodes_total=len(names),
        stopped_by=stopped_by,
        message=message,
        reasons=reasons or {},
        plugins=plugins,
    )
