"""Fields of the plugin arguments that come with the scheduler (kubescheduler.config.k8s.io/v1).

The last two kinds are this product's own: Coscheduling has the fields of
scheduler-plugins, ManualApproval those that its documentation names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from scheduler_core.config.schema import (
    BOOLEAN,
    DURATION,
    INT32,
    INT64,
    TEXT,
    TEXTS,
    Kind,
    ListOf,
    MapOf,
    Struct,
)

__all__ = ["ARGS_FIELDS"]

_REQUIREMENT = Struct({"key": TEXT, "operator": TEXT, "values": TEXTS})
_LABEL_SELECTOR = Struct({"matchLabels": MapOf(TEXT), "matchExpressions": ListOf(_REQUIREMENT)})
_APPROVAL_WINDOW = Struct({"days": TEXTS, "from": TEXT, "to": TEXT, "timeZone": TEXT})
_APPROVAL_DEMAND: Final[Mapping[str, Kind]] = {
    "approvers": INT64,
    "requesterMayApprove": BOOLEAN,
    "approverGroups": TEXTS,
    "atDeadline": TEXT,
    "timeoutSeconds": INT64,
    "autoApprove": ListOf(_APPROVAL_WINDOW),
}
_APPROVAL_POLICY = Struct(
    {
        "name": TEXT,
        "namespaces": TEXTS,
        "selector": _LABEL_SELECTOR,
        "minPriority": INT64,
        "maxPriority": INT64,
        "moreThanPods": INT64,
        "moreThanGPUs": INT64,
        **_APPROVAL_DEMAND,
    }
)
_NODE_TERM = Struct({"matchExpressions": ListOf(_REQUIREMENT), "matchFields": ListOf(_REQUIREMENT)})
_NODE_AFFINITY = Struct(
    {
        "requiredDuringSchedulingIgnoredDuringExecution": Struct(
            {"nodeSelectorTerms": ListOf(_NODE_TERM)}
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": ListOf(
            Struct({"weight": INT32, "preference": _NODE_TERM})
        ),
    }
)
_SPREAD_CONSTRAINT = Struct(
    {
        "maxSkew": INT32,
        "topologyKey": TEXT,
        "whenUnsatisfiable": TEXT,
        "labelSelector": _LABEL_SELECTOR,
        "minDomains": INT32,
        "nodeAffinityPolicy": TEXT,
        "nodeTaintsPolicy": TEXT,
        "matchLabelKeys": TEXTS,
    }
)
_RESOURCES = ListOf(Struct({"name": TEXT, "weight": INT64}))
_SHAPE = ListOf(Struct({"utilization": INT32, "score": INT32}))
_SCORING_STRATEGY = Struct(
    {
        "type": TEXT,
        "resources": _RESOURCES,
        "requestedToCapacityRatio": Struct({"shape": _SHAPE}),
    }
)

#: plugin -> field -> kind, without apiVersion and kind
_FIELDS: Mapping[str, Mapping[str, Kind]] = {
    "DefaultPreemption": {"minCandidateNodesPercentage": INT32, "minCandidateNodesAbsolute": INT32},
    "DynamicResources": {"filterTimeout": DURATION, "bindingTimeout": DURATION},
    "InterPodAffinity": {
        "hardPodAffinityWeight": INT32,
        "ignorePreferredTermsOfExistingPods": BOOLEAN,
    },
    "NodeAffinity": {"addedAffinity": _NODE_AFFINITY},
    "NodeResourcesBalancedAllocation": {"resources": _RESOURCES},
    "NodeResourcesFit": {
        "ignoredResources": TEXTS,
        "ignoredResourceGroups": TEXTS,
        "scoringStrategy": _SCORING_STRATEGY,
    },
    "PodTopologySpread": {
        "defaultConstraints": ListOf(_SPREAD_CONSTRAINT),
        "defaultingType": TEXT,
    },
    "VolumeBinding": {"bindTimeoutSeconds": INT64, "shape": _SHAPE},
    "Coscheduling": {
        "permitWaitingTimeSeconds": INT64,
        "podGroupBackoffSeconds": INT64,
        "podGroupRejectPercentage": INT32,
    },
    "ManualApproval": {
        "selector": _LABEL_SELECTOR,
        "gpuResources": TEXTS,
        "policies": ListOf(_APPROVAL_POLICY),
        **_APPROVAL_DEMAND,
    },
}

#: plugin -> its arguments
ARGS_FIELDS: Final[Mapping[str, Struct]] = {
    plugin: Struct({"apiVersion": TEXT, "kind": TEXT, **fields})
    for plugin, fields in _FIELDS.items()
}
