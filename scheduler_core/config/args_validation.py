"""What is wrong with plugin arguments, in the words of kube-scheduler 1.36."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from scheduler_core.api.errors import duplicate, forbidden, invalid, required, unsupported
from scheduler_core.api.selectors import (
    LABEL_OPERATORS,
    NODE_OPERATORS,
    Requirement,
    field_requirement,
    label_requirement,
    node_requirement,
)
from scheduler_core.api.syntax import check_label_key, check_label_value
from scheduler_core.approval_rules import read_rules
from scheduler_core.config.durations import seconds
from scheduler_core.config.errors import Faults
from scheduler_core.config.schema import child

__all__ = ["CHECKED_WHEN_MADE", "validate_args"]

Args = Mapping[str, Any]

#: Plugins whose constructor checks the arguments in the reference: only when the plugin is in use,
#: and with paths that begin at the arguments.
CHECKED_WHEN_MADE: Final = frozenset({"NodeResourcesFit"})

_STRATEGIES: Final = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
_RATIO: Final = "RequestedToCapacityRatio"
_SPREAD_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")


def validate_args(plugin: str, args: Args, path: str, faults: Faults) -> None:
    """Note every fault of defaulted arguments; plugins that are not known here have none."""
    check = _CHECKS.get(plugin)
    if check is not None:
        check(args, path, faults)


def _default_preemption(args: Args, path: str, faults: Faults) -> None:
    percentage, absolute = args["minCandidateNodesPercentage"], args["minCandidateNodesAbsolute"]
    percentage_path = child(path, "minCandidateNodesPercentage")
    absolute_path = child(path, "minCandidateNodesAbsolute")
    if not 0 <= percentage <= 100:
        faults.add(percentage_path, invalid(percentage, "not in valid range [0, 100]"))
    if absolute < 0:
        faults.add(absolute_path, invalid(absolute, "not in valid range [0, inf)"))
    if percentage == 0 and absolute == 0:
        text = "cannot be zero at the same time as "
        faults.add(percentage_path, invalid(0, text + "minCandidateNodesAbsolute"))
        faults.add(absolute_path, invalid(0, text + "minCandidateNodesPercentage"))


def _dynamic_resources(args: Args, path: str, faults: Faults) -> None:
    filter_timeout, binding_timeout = args["filterTimeout"], args["bindingTimeout"]
    if seconds(filter_timeout) < 0:
        where = child(path, "filterTimeout")
        faults.add(where, invalid(filter_timeout, "must be zero or positive"))
    if seconds(binding_timeout) < 1:
        where = child(path, "bindingTimeout")
        faults.add(where, invalid(binding_timeout, "must be at least 1 second"))


def _inter_pod_affinity(args: Args, path: str, faults: Faults) -> None:
    weight = args["hardPodAffinityWeight"]
    if not 0 <= weight <= 100:
        where = child(path, "hardPodAffinityWeight")
        faults.add(where, invalid(weight, "not in valid range [0, 100]"))


def _balanced_allocation(args: Args, path: str, faults: Faults) -> None:
    seen: set[str] = set()
    for index, resource in enumerate(args["resources"]):
        where = child(path, f"resources[{index}]")
        name = resource.get("name", "")
        if name in seen:
            faults.add(child(where, "name"), duplicate(name))
        seen.add(name)
        if resource["weight"] != 1:
            faults.add(child(where, "weight"), invalid(resource["weight"], "must be 1"))


# -- NodeAffinity ----------------------------------------------------------------------------------


def _node_affinity(args: Args, path: str, faults: Faults) -> None:
    affinity = args.get("addedAffinity", {})
    where = child(path, "addedAffinity")
    required_path = child(where, "requiredDuringSchedulingIgnoredDuringExecution")
    wanted = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    for index, term in enumerate(wanted.get("nodeSelectorTerms", ())):
        _node_term(term, child(required_path, f"nodeSelectorTerms[{index}]"), faults)
    preferred_path = child(where, "preferredDuringSchedulingIgnoredDuringExecution")
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution", ())
    for index, entry in enumerate(preferred):
        if entry.get("weight", 0) != 0:
            _node_term(entry.get("preference", {}), f"{preferred_path}[{index}]", faults)


def _node_term(term: Args, path: str, faults: Faults) -> None:
    for index, entry in enumerate(term.get("matchExpressions", ())):
        where = child(path, f"matchExpressions[{index}]")
        _requirement(entry, NODE_OPERATORS, node_requirement, where, faults)
    for index, entry in enumerate(term.get("matchFields", ())):
        where = child(path, f"matchFields[{index}]")
        _requirement(entry, ("In", "NotIn"), field_requirement, where, faults)


def _requirement(
    entry: Args,
    operators: Sequence[str],
    parse: Callable[[str, str, tuple[str, ...]], Requirement],
    path: str,
    faults: Faults,
) -> None:
    key, operator = entry.get("key", ""), entry.get("operator", "")
    values = tuple(entry.get("values", ()))
    if operator not in operators:
        faults.add(child(path, "operator"), unsupported(operator, operators))
        return
    problem = parse(key, operator, values).error
    if not problem:
        return
    if problem.startswith("key "):
        faults.add(child(path, "key"), invalid(key, check_label_key(key)))
    else:
        faults.add(child(path, "values"), invalid(list(values), problem))


# -- NodeResourcesFit ------------------------------------------------------------------------------


def _node_resources_fit(args: Args, path: str, faults: Faults) -> None:
    for index, name in enumerate(args.get("ignoredResources", ())):
        _label_name(name, child(path, f"ignoredResources[{index}]"), faults)
    for index, group in enumerate(args.get("ignoredResourceGroups", ())):
        where = child(path, f"ignoredResourceGroups[{index}]")
        if "/" in group:
            faults.add(where, invalid(group, "resource group name can't contain '/'"))
        else:
            _label_name(group, where, faults)
    _scoring_strategy(args["scoringStrategy"], child(path, "scoringStrategy"), faults)


def _scoring_strategy(strategy: Args, path: str, faults: Faults) -> None:
    kind = strategy.get("type", "")
    if kind not in _STRATEGIES:
        faults.add(child(path, "type"), unsupported(kind, _STRATEGIES))
    for index, resource in enumerate(strategy["resources"]):
        weight = resource["weight"]
        if not 0 < weight <= 100:
            where = child(path, f"resources[{index}].weight")
            text = f"resource weight of {resource.get('name', '')} not in valid range (0, 100]"
            faults.add(where, invalid(weight, text))
    ratio = strategy.get("requestedToCapacityRatio")
    where = child(path, "requestedToCapacityRatio")
    if kind != _RATIO and ratio is not None:
        faults.add(where, forbidden(f"must be nil when type is not {_RATIO}"))
    elif kind == _RATIO and ratio is None:
        faults.add(where, required(f"must be specified when type is {_RATIO}"))
    elif kind == _RATIO and ratio is not None:
        _shape(ratio.get("shape", ()), child(where, "shape"), faults)


def _shape(shape: Sequence[Args], path: str, faults: Faults) -> None:
    if not shape:
        faults.add(path, required("at least one point must be specified"))
    points = [(point.get("utilization", 0), point.get("score", 0)) for point in shape]
    for index in range(1, len(points)):
        if points[index - 1][0] >= points[index][0]:
            text = invalid(points[index][0], "values must be sorted in increasing order")
            faults.add(f"{path}[{index}].utilization", text)
            break
    for index, (utilization, score) in enumerate(points):
        if not 0 <= utilization <= 100:
            text = invalid(utilization, "not in valid range [0, 100]")
            faults.add(f"{path}[{index}].utilization", text)
        if not 0 <= score <= 10:
            faults.add(f"{path}[{index}].score", invalid(score, "not in valid range [0, 10]"))


def _label_name(name: str, path: str, faults: Faults) -> None:
    problem = check_label_key(name)
    if problem:
        faults.add(path, invalid(name, problem))


# -- PodTopologySpread, VolumeBinding --------------------------------------------------------------


def _pod_topology_spread(args: Args, path: str, faults: Faults) -> None:
    kind = args["defaultingType"]
    constraints = args.get("defaultConstraints", ())
    where = child(path, "defaultingType")
    if kind not in ("System", "List"):
        faults.add(where, unsupported(kind, ("System", "List")))
    elif kind == "System" and constraints:
        faults.add(where, invalid(kind, "when .defaultConstraints are not empty"))
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        where = child(path, f"defaultConstraints[{index}]")
        _spread_constraint(constraint, where, faults)
        pair = (constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", ""))
        if pair in seen:
            faults.add(where, duplicate(f"{{{pair[0]}, {pair[1]}}}"))
        seen.add(pair)


def _spread_constraint(constraint: Args, path: str, faults: Faults) -> None:
    skew = constraint.get("maxSkew", 0)
    if skew <= 0:
        faults.add(child(path, "maxSkew"), invalid(skew, "not in valid range (0, inf)"))
    key = constraint.get("topologyKey", "")
    if not key:
        faults.add(child(path, "topologyKey"), required("can not be empty"))
    else:
        _label_name(key, child(path, "topologyKey"), faults)
    action = constraint.get("whenUnsatisfiable", "")
    if not action:
        faults.add(child(path, "whenUnsatisfiable"), required("can not be empty"))
    elif action not in _SPREAD_ACTIONS:
        faults.add(child(path, "whenUnsatisfiable"), unsupported(action, _SPREAD_ACTIONS))
    if "labelSelector" in constraint:
        text = "constraint must not define a selector, as they deduced for each pod"
        faults.add(child(path, "labelSelector"), forbidden(text))


def _volume_binding(args: Args, path: str, faults: Faults) -> None:
    timeout = args["bindTimeoutSeconds"]
    if timeout < 0:
        text = "invalid BindTimeoutSeconds, should not be a negative value"
        faults.add(child(path, "bindTimeoutSeconds"), invalid(timeout, text))
    if "shape" in args:
        text = (
            "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        )
        faults.add(child(path, "shape"), invalid(args["shape"], text))


# -- this product's own ----------------------------------------------------------------------------


def _coscheduling(args: Args, path: str, faults: Faults) -> None:
    for name in ("permitWaitingTimeSeconds", "podGroupBackoffSeconds"):
        if args[name] < 0:
            faults.add(child(path, name), invalid(args[name], "not in valid range [0, inf)"))
    share = args["podGroupRejectPercentage"]
    if not 0 <= share <= 100:
        where = child(path, "podGroupRejectPercentage")
        faults.add(where, invalid(share, "not in valid range [0, 100]"))


def _manual_approval(args: Args, path: str, faults: Faults) -> None:
    _label_selector(args.get("selector", {}), child(path, "selector"), faults)
    for index, policy in enumerate(args.get("policies", ())):
        where = child(path, f"policies[{index}]")
        _label_selector(policy.get("selector", {}), child(where, "selector"), faults)
    for fault in read_rules(args)[1]:
        # Of selectors the check above says more.
        if not fault.field_path.split(".")[-1].startswith("selector"):
            faults.add(child(path, fault.field_path), fault.message)


def _label_selector(selector: Args, where: str, faults: Faults) -> None:
    for key, value in selector.get("matchLabels", {}).items():
        problem = check_label_key(key) or check_label_value(value)
        if problem:
            named = key if check_label_key(key) else value
            faults.add(child(where, f"matchLabels[{key}]"), invalid(named, problem))
    for index, entry in enumerate(selector.get("matchExpressions", ())):
        entry_path = child(where, f"matchExpressions[{index}]")
        _requirement(entry, LABEL_OPERATORS, label_requirement, entry_path, faults)


_CHECKS: Final[Mapping[str, Callable[[Args, str, Faults], None]]] = {
    "DefaultPreemption": _default_preemption,
    "DynamicResources": _dynamic_resources,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeAffinity": _node_affinity,
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "NodeResourcesFit": _node_resources_fit,
    "PodTopologySpread": _pod_topology_spread,
    "VolumeBinding": _volume_binding,
    "Coscheduling": _coscheduling,
    "ManualApproval": _manual_approval,
}
