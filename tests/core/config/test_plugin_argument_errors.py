"""Faults in the arguments of plugins, in kube-scheduler's words."""

from __future__ import annotations

import pytest

from .documents import PROFILE, names, plugin_config

SHAPE = "scoringStrategy.requestedToCapacityRatio.shape"


def ratio(*points):
    shape = [{"utilization": u, "score": s} for u, s in points]
    return {
        "scoringStrategy": {
            "type": "RequestedToCapacityRatio",
            "requestedToCapacityRatio": {"shape": shape},
        }
    }


def spread(**fields):
    given = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **fields}
    return {"defaultingType": "List", "defaultConstraints": [given]}


def added(operator, values=(), key="k"):
    expression = {"key": key, "operator": operator, "values": list(values)}
    term = {"matchExpressions": [expression]}
    required = {"nodeSelectorTerms": [term]}
    return {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


EXPRESSION = (
    "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
    ".matchExpressions[0]"
)


@pytest.mark.parametrize(
    ("plugin", "args", "expected"),
    [
        pytest.param(
            "InterPodAffinity",
            {"hardPodAffinityWeight": 101},
            ["hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"],
            id="hardPodAffinityWeight",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu", "weight": 2}]},
            ["resources[0].weight: Invalid value: 2: must be 1"],
            id="balanced weight",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu"}, {"name": "cpu"}]},
            ['resources[1].name: Duplicate value: "cpu"'],
            id="balanced name twice",
        ),
        pytest.param(
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 101},
            ["minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]"],
            id="minCandidateNodesPercentage",
        ),
        pytest.param(
            "DefaultPreemption",
            {"minCandidateNodesAbsolute": -1},
            ["minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)"],
            id="minCandidateNodesAbsolute",
        ),
        pytest.param(
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            [
                "minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as "
                "minCandidateNodesAbsolute",
                "minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as "
                "minCandidateNodesPercentage",
            ],
            id="both zero",
        ),
        pytest.param(
            "PodTopologySpread",
            {**spread(), "defaultingType": "System"},
            [
                'defaultingType: Invalid value: "System": when .defaultConstraints are not empty',
            ],
            id="constraints with System",
        ),
        pytest.param(
            "PodTopologySpread",
            {"defaultConstraints": spread()["defaultConstraints"]},
            [
                'defaultingType: Invalid value: "System": when .defaultConstraints are not empty',
            ],
            id="constraints without a type",
        ),
        pytest.param(
            "PodTopologySpread",
            {"defaultingType": "Foo"},
            ['defaultingType: Unsupported value: "Foo": supported values: "System", "List"'],
            id="defaultingType",
        ),
        pytest.param(
            "PodTopologySpread",
            spread(maxSkew=0),
            ["defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)"],
            id="maxSkew",
        ),
        pytest.param(
            "PodTopologySpread",
            spread(topologyKey=""),
            ["defaultConstraints[0].topologyKey: Required value: can not be empty"],
            id="topologyKey",
        ),
        pytest.param(
            "PodTopologySpread",
            spread(whenUnsatisfiable=""),
            ["defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty"],
            id="whenUnsatisfiable is required",
        ),
        pytest.param(
            "PodTopologySpread",
            spread(whenUnsatisfiable="x"),
            [
                'defaultConstraints[0].whenUnsatisfiable: Unsupported value: "x": supported '
                'values: "DoNotSchedule", "ScheduleAnyway"'
            ],
            id="whenUnsatisfiable",
        ),
        pytest.param(
            "PodTopologySpread",
            spread(labelSelector={}),
            [
                "defaultConstraints[0].labelSelector: Forbidden: constraint must not define a "
                "selector, as they deduced for each pod"
            ],
            id="labelSelector",
        ),
        pytest.param(
            "PodTopologySpread",
            {"defaultingType": "List", "defaultConstraints": spread()["defaultConstraints"] * 2},
            ['defaultConstraints[1]: Duplicate value: "{zone, DoNotSchedule}"'],
            id="a constraint twice",
        ),
        pytest.param(
            "VolumeBinding",
            {"bindTimeoutSeconds": -1},
            [
                "bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be "
                "a negative value"
            ],
            id="bindTimeoutSeconds",
        ),
        pytest.param(
            "VolumeBinding",
            {"shape": []},
            [
                "shape: Invalid value: []: unexpected field `shape`, remove it or turn on the "
                "feature gate StorageCapacityScoring"
            ],
            id="VolumeBinding shape",
        ),
        pytest.param(
            "DynamicResources",
            {"filterTimeout": "-1s"},
            ['filterTimeout: Invalid value: "-1s": must be zero or positive'],
            id="filterTimeout",
        ),
        pytest.param(
            "DynamicResources",
            {"bindingTimeout": "500ms"},
            ['bindingTimeout: Invalid value: "500ms": must be at least 1 second'],
            id="bindingTimeout",
        ),
        pytest.param(
            "NodeAffinity",
            added("Bad"),
            [
                f'{EXPRESSION}.operator: Unsupported value: "Bad": supported values: "In", '
                '"NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
            ],
            id="operator",
        ),
        pytest.param(
            "NodeAffinity",
            added("In"),
            [
                f"{EXPRESSION}.values: Invalid value: []: for 'in', 'notin' operators, values set "
                "can't be empty"
            ],
            id="no values",
        ),
        pytest.param(
            "NodeAffinity",
            {
                "addedAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 1,
                            "preference": {"matchFields": [{"key": "metadata.name"}]},
                        }
                    ]
                }
            },
            [
                "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].matchFields[0]"
                '.operator: Unsupported value: "": supported values: "In", "NotIn"'
            ],
            id="matchFields of a preferred term",
        ),
        pytest.param(
            "Coscheduling",
            {"permitWaitingTimeSeconds": -1},
            ["permitWaitingTimeSeconds: Invalid value: -1: not in valid range [0, inf)"],
            id="permitWaitingTimeSeconds",
        ),
        pytest.param(
            "Coscheduling",
            {"podGroupRejectPercentage": 101},
            ["podGroupRejectPercentage: Invalid value: 101: not in valid range [0, 100]"],
            id="podGroupRejectPercentage",
        ),
        pytest.param(
            "ManualApproval",
            {"timeoutSeconds": 901},
            ["timeoutSeconds: Invalid value: 901: not in valid range [1, 900]"],
            id="an approval takes at most 15 minutes",
        ),
        pytest.param(
            "ManualApproval",
            {"timeoutSeconds": 0},
            ["timeoutSeconds: Invalid value: 0: not in valid range [1, 900]"],
            id="and at least a second",
        ),
        pytest.param(
            "ManualApproval",
            {"selector": {"matchExpressions": [{"key": "team", "operator": "Gt"}]}},
            [
                'selector.matchExpressions[0].operator: Unsupported value: "Gt": supported values: '
                '"In", "NotIn", "Exists", "DoesNotExist"'
            ],
            id="selector",
        ),
    ],
)
def test_plugin_arguments(faults, plugin, args, expected):
    lines = faults(**plugin_config(plugin, args))
    assert lines == [f"profiles[0].pluginConfig[0].args.{line}" for line in expected]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        pytest.param(
            {"scoringStrategy": {"type": "Foo"}},
            'scoringStrategy.type: Unsupported value: "Foo": supported values: "LeastAllocated", '
            '"MostAllocated", "RequestedToCapacityRatio"',
            id="strategy",
        ),
        pytest.param(
            {"scoringStrategy": {"resources": [{"name": "cpu"}]}},
            'scoringStrategy.type: Unsupported value: "": supported values: "LeastAllocated", '
            '"MostAllocated", "RequestedToCapacityRatio"',
            id="a strategy without type",
        ),
        pytest.param(
            {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
            "scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type "
            "is RequestedToCapacityRatio",
            id="ratio missing",
        ),
        pytest.param(
            {"scoringStrategy": {"type": "MostAllocated", "requestedToCapacityRatio": {}}},
            "scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not "
            "RequestedToCapacityRatio",
            id="ratio not wanted",
        ),
        pytest.param(
            {
                "scoringStrategy": {
                    "type": "LeastAllocated",
                    "resources": [{"name": "cpu", "weight": 101}],
                }
            },
            "scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not "
            "in valid range (0, 100]",
            id="resource weight",
        ),
        pytest.param(
            {"ignoredResourceGroups": ["a/b"]},
            'ignoredResourceGroups[0]: Invalid value: "a/b": resource group name can\'t contain '
            "'/'",
            id="resource group",
        ),
        pytest.param(
            ratio(), f"{SHAPE}: Required value: at least one point must be specified", id="no point"
        ),
        pytest.param(
            ratio((10, 1), (10, 2)),
            f"{SHAPE}[1].utilization: Invalid value: 10: values must be sorted in increasing order",
            id="order of points",
        ),
        pytest.param(
            ratio((0, 1), (101, 2)),
            f"{SHAPE}[1].utilization: Invalid value: 101: not in valid range [0, 100]",
            id="utilization",
        ),
        pytest.param(
            ratio((0, 11)),
            f"{SHAPE}[0].score: Invalid value: 11: not in valid range [0, 10]",
            id="score",
        ),
    ],
)
def test_arguments_that_the_plugin_itself_checks(faults, args, expected):
    """Their paths begin at the arguments, as the reference checks them in the constructor."""
    lines = faults(**plugin_config("NodeResourcesFit", args))
    assert lines == [PROFILE + f'initializing plugin "NodeResourcesFit": {expected}']


def test_arguments_of_a_plugin_that_is_not_made_are_not_checked_by_it(load):
    load(
        profiles=[
            {
                "plugins": {"multiPoint": {"disabled": names("NodeResourcesFit")}},
                "pluginConfig": [
                    {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "Foo"}}}
                ],
            }
        ]
    )
