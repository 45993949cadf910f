"""Defaults of KubeSchedulerConfiguration v1 (kube-scheduler 1.36).

One differs on purpose: where ``percentageOfNodesToScore`` is absent this product looks at every
node (100); an explicit 0 is kube-scheduler's adaptive share.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = [
    "API_VERSION",
    "DEFAULT_PLUGINS",
    "DEFAULT_SCHEDULER_NAME",
    "KIND",
    "default_args",
    "set_args_defaults",
    "set_defaults",
]

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"

#: The default profile: (plugin, weight) in multiPoint order; 0 where the reference sets none.
#: A profile gets those of them that the registry has.
DEFAULT_PLUGINS: Final[tuple[tuple[str, int], ...]] = (
    ("SchedulingGates", 0),
    ("PrioritySort", 0),
    ("NodeUnschedulable", 0),
    ("NodeName", 0),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", 0),
    ("NodeResourcesFit", 1),
    ("VolumeRestrictions", 0),
    ("NodeVolumeLimits", 0),
    ("VolumeBinding", 0),
    ("VolumeZone", 0),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DynamicResources", 2),
    ("DefaultPreemption", 0),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("DefaultBinder", 0),
    ("NodeDeclaredFeatures", 0),
)

_TOP: Final[Mapping[str, Any]] = {
    "parallelism": 16,
    "percentageOfNodesToScore": 100,
    "podInitialBackoffSeconds": 1,
    "podMaxBackoffSeconds": 10,
    "enableProfiling": True,
    "delayCacheUntilActive": False,
}
_LEADER_ELECTION: Final[Mapping[str, Any]] = {
    "leaderElect": True,
    "leaseDuration": "15s",
    "renewDeadline": "10s",
    "retryPeriod": "2s",
    "resourceLock": "leases",
    "resourceName": "kube-scheduler",
    "resourceNamespace": "kube-system",
}
_CLIENT_CONNECTION: Final[Mapping[str, Any]] = {
    "kubeconfig": "",
    "acceptContentTypes": "",
    "contentType": "application/vnd.kubernetes.protobuf",
    "qps": 50,
    "burst": 100,
}
_EXTENDER: Final[Mapping[str, Any]] = {"urlPrefix": "", "httpTimeout": "5s"}

#: plugin -> arguments that are set when absent
_ARGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "DefaultPreemption": {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100},
    "DynamicResources": {"filterTimeout": "10s", "bindingTimeout": "10m0s"},
    "InterPodAffinity": {"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": False},
    "NodeAffinity": {},
    "NodeResourcesBalancedAllocation": {},
    "NodeResourcesFit": {},
    "PodTopologySpread": {"defaultingType": "System"},
    "VolumeBinding": {"bindTimeoutSeconds": 600},
    "Coscheduling": {
        "permitWaitingTimeSeconds": 60,
        "podGroupBackoffSeconds": 0,
        "podGroupRejectPercentage": 10,
    },
    "ManualApproval": {"timeoutSeconds": 900},
}


def set_defaults(config: dict[str, Any]) -> None:
    """Fill a decoded configuration in place, all but plugins and their arguments."""
    for key, value in _TOP.items():
        config.setdefault(key, value)
    if config["enableProfiling"]:
        config.setdefault("enableContentionProfiling", True)
    _fill(config.setdefault("leaderElection", {}), _LEADER_ELECTION)
    _fill(config.setdefault("clientConnection", {}), _CLIENT_CONNECTION)
    profiles = config.setdefault("profiles", [])
    if not profiles:
        profiles.append({})
    if len(profiles) == 1:
        profiles[0].setdefault("schedulerName", DEFAULT_SCHEDULER_NAME)
    for extender in config.setdefault("extenders", []):
        _fill(extender, _EXTENDER)


def _fill(target: dict[str, Any], defaults: Mapping[str, Any]) -> None:
    """An empty text, a 0 and a duration of no length read as absent here; False does not."""
    for key, value in defaults.items():
        found = target.get(key)
        if found in (None, "", "0s") or (found == 0 and not isinstance(found, bool)):
            target[key] = value


def default_args(plugin: str) -> dict[str, Any] | None:
    """The arguments a plugin gets that has none in the configuration; None for plugins whose
    arguments are not known here."""
    if plugin not in _ARGS:
        return None
    args: dict[str, Any] = {}
    set_args_defaults(plugin, args)
    return args


def set_args_defaults(plugin: str, args: dict[str, Any]) -> None:
    """Fill decoded arguments in place."""
    known = _ARGS.get(plugin)
    if known is None:
        return
    args.setdefault("apiVersion", API_VERSION)
    args.setdefault("kind", f"{plugin}Args")
    for key, value in known.items():
        args.setdefault(key, value)
    if plugin == "NodeResourcesFit":
        strategy = args.setdefault("scoringStrategy", {"type": "LeastAllocated"})
        _set_resources(strategy)
    elif plugin == "NodeResourcesBalancedAllocation":
        _set_resources(args)
    elif plugin == "PodTopologySpread" and args["defaultingType"] == "":
        args["defaultingType"] = "System"


def _set_resources(holder: dict[str, Any]) -> None:
    """cpu and memory where no resource is named; weight 0 or none is 1."""
    if not holder.get("resources"):
        holder["resources"] = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
    for resource in holder["resources"]:
        resource["weight"] = resource.get("weight", 0) or 1
