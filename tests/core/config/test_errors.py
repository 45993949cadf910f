"""Every fault in kube-scheduler's words, and all of them at once."""

from __future__ import annotations

import pytest

from scheduler_core.config import InvalidConfiguration, load_configuration

from .fakes import fake_registry

V1 = "kubescheduler.config.k8s.io/v1"


def names(*given):
    return [{"name": name} for name in given]


def profile(**fields):
    return {"profiles": [fields]}


def plugins(**sets):
    return profile(plugins=sets)


def plugin_config(name, args):
    return profile(pluginConfig=[{"name": name, "args": args}])


PROFILE = "initializing profiles: creating profile for scheduler name default-scheduler: "


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param(
            {"parallelism": 0},
            "parallelism: Invalid value: 0: should be an integer value greater than zero",
            id="parallelism",
        ),
        pytest.param(
            {"percentageOfNodesToScore": 101},
            "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
            id="percentageOfNodesToScore",
        ),
        pytest.param(
            profile(percentageOfNodesToScore=-1),
            "profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]",
            id="percentageOfNodesToScore of a profile",
        ),
        pytest.param(
            {"podInitialBackoffSeconds": 0},
            "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
            id="podInitialBackoffSeconds",
        ),
        pytest.param(
            {"podInitialBackoffSeconds": 5, "podMaxBackoffSeconds": 2},
            "podMaxBackoffSeconds: Invalid value: 2: must be greater than or equal to "
            "PodInitialBackoffSeconds",
            id="podMaxBackoffSeconds",
        ),
        pytest.param(
            {"leaderElection": {"resourceLock": "endpoints"}},
            'leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be '
            '"leases"',
            id="leaderElection.resourceLock",
        ),
        pytest.param(
            {"leaderElection": {"leaseDuration": "5s"}},
            'leaderElection.leaseDuration: Invalid value: "5s": must be greater than '
            "`RenewDeadline`",
            id="leaderElection.leaseDuration",
        ),
        pytest.param(
            {"leaderElection": {"retryPeriod": "-1s"}},
            'leaderElection.retryPeriod: Invalid value: "-1s": must be greater than zero',
            id="leaderElection.retryPeriod",
        ),
        pytest.param(
            {"clientConnection": {"burst": -1}},
            "clientConnection.burst: Invalid value: -1: must be non-negative",
            id="clientConnection.burst",
        ),
        pytest.param(
            {"parallelism": "many"},
            'parallelism: Invalid value: "many": must be an integer',
            id="text for a number",
        ),
        pytest.param(
            {"parallelism": 2**40},
            "parallelism: Invalid value: 1099511627776: must fit into 32 bits",
            id="a number of 41 bits",
        ),
        pytest.param(
            {"leaderElection": {"leaseDuration": "soon"}},
            'leaderElection.leaseDuration: Invalid value: "soon": must be a duration such as '
            '"15s" or "1m30s"',
            id="no duration",
        ),
        pytest.param({"profiles": {}}, "profiles: Invalid value: {}: must be a list", id="no list"),
        pytest.param(
            {"foo": 1}, 'strict decoding error: unknown field "foo"', id="an unknown field"
        ),
        pytest.param(
            {"foo": 1, "leaderElection": {"bar": 1}},
            'strict decoding error: unknown field "foo", unknown field "leaderElection.bar"',
            id="unknown fields",
        ),
        pytest.param(
            plugin_config("NodeAffinity", {"foo": 1}),
            "strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: "
            "decoding args for plugin NodeAffinity: strict decoding error: "
            'unknown field "foo"',
            id="an unknown field in plugin args",
        ),
    ],
)
def test_fields(faults, fields, expected):
    assert faults(**fields) == [expected]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param(
            {"profiles": [{"schedulerName": "a"}, {}]},
            ["profiles[1].schedulerName: Required value"],
            id="a name is required",
        ),
        pytest.param(
            profile(schedulerName=""),
            ["profiles[0].schedulerName: Required value"],
            id="also of a single profile that has it empty",
        ),
        pytest.param(
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
            ["profiles[1].schedulerName: Duplicate value: {}"],
            id="names must differ",
        ),
        pytest.param(
            {
                "profiles": [
                    {"schedulerName": "a"},
                    {
                        "schedulerName": "b",
                        "plugins": {
                            "queueSort": {
                                "enabled": names("Coscheduling"),
                                "disabled": names("*"),
                            }
                        },
                    },
                ]
            },
            [
                'profiles[1].plugins.queueSort: Invalid value: {"disabled":[{"name":"*",'
                '"weight":0}],"enabled":[{"name":"Coscheduling","weight":0}]}: must be the '
                "same for all profiles"
            ],
            id="one queueSort for all",
        ),
        pytest.param(
            plugins(queueSort={"enabled": names("PrioritySort", "Coscheduling")}),
            [
                "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort "
                "plugin can be enabled"
            ],
            id="two queueSort plugins",
        ),
        pytest.param(
            profile(pluginConfig=[{"name": "X", "args": {}}, {"name": "X", "args": {}}]),
            ['profiles[0].pluginConfig[1]: Duplicate value: "X"'],
            id="arguments given twice",
        ),
        pytest.param(
            plugins(filter={"enabled": names("EBSLimits")}),
            [
                'profiles[0].plugins.filter.enabled[0]: Invalid value: "EBSLimits": was invalid in '
                f'version "v1" (KubeSchedulerConfiguration is version "{V1}")'
            ],
            id="a plugin that v1 has dropped",
        ),
        pytest.param(
            plugins(multiPoint={"enabled": names("EBSLimits")}),
            [PROFILE + 'PreFilterPlugin "EBSLimits" does not exist'],
            id="multiPoint is not looked at for those",
        ),
        pytest.param(
            plugin_config("InterPodAffinity", {"kind": "NodeAffinityArgs"}),
            [
                'profiles[0].pluginConfig[0].args: Invalid value: {"kind":"NodeAffinityArgs"}: '
                "has to match plugin args"
            ],
            id="another plugin's arguments",
        ),
        pytest.param(
            plugin_config("InterPodAffinity", [1]),
            ["profiles[0].pluginConfig[0].args: Invalid value: [1]: has to match plugin args"],
            id="arguments that are a list",
        ),
    ],
)
def test_profiles(faults, fields, expected):
    assert faults(**fields) == expected


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


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        pytest.param(
            {"filter": {"enabled": names("Nope")}},
            'FilterPlugin "Nope" does not exist',
            id="unknown",
        ),
        pytest.param(
            {"multiPoint": {"enabled": names("Nope")}},
            'PreFilterPlugin "Nope" does not exist',
            id="unknown in multiPoint: the first point tried is named",
        ),
        pytest.param(
            {
                "multiPoint": {"enabled": names("Nope")},
                "preFilter": {"disabled": names("*")},
            },
            'FilterPlugin "Nope" does not exist',
            id="the first point that multiPoint reaches",
        ),
        pytest.param(
            {"multiPoint": {"enabled": names("DynamicResources")}},
            'PreFilterPlugin "DynamicResources" does not exist',
            id="a default plugin that is not there yet",
        ),
        pytest.param(
            {"score": {"enabled": names("NodeName")}},
            'plugin "NodeName" does not extend ScorePlugin plugin',
            id="a point the plugin lacks",
        ),
        pytest.param(
            {"placementScore": {"enabled": names("NodeName")}},
            'plugin "NodeName" does not extend PlacementScorePlugin plugin',
            id="a point no plugin has",
        ),
        pytest.param(
            {"filter": {"enabled": names("NodeName", "NodeName")}},
            'plugin "NodeName" already registered as "FilterPlugin"',
            id="twice",
        ),
        pytest.param(
            {"multiPoint": {"enabled": names("NodeName", "NodeName")}},
            'plugin "NodeName" already registered as "FilterPlugin"',
            id="twice in multiPoint",
        ),
        pytest.param(
            {"queueSort": {"disabled": names("*")}},
            "only one queue sort plugin required for profile with scheduler name "
            '"default-scheduler", but got 0',
            id="no queueSort",
        ),
        pytest.param(
            {"multiPoint": {"enabled": names("Coscheduling")}},
            "only one queue sort plugin required for profile with scheduler name "
            '"default-scheduler", but got 2',
            id="a second queueSort through multiPoint",
        ),
        pytest.param(
            {"bind": {"disabled": names("*")}},
            "at least one bind plugin is needed for profile with scheduler name "
            '"default-scheduler"',
            id="no bind",
        ),
        pytest.param(
            {"score": {"enabled": [{"name": "NodeAffinity", "weight": -1}]}},
            "score plugins: total score of Score plugins could overflow",
            id="a negative weight",
        ),
    ],
)
def test_a_profile_that_cannot_be_made(faults, sets, expected):
    assert faults(**plugins(**sets)) == [PROFILE + expected]


@pytest.mark.parametrize(
    ("extenders", "expected"),
    [
        pytest.param(
            [{"urlPrefix": "http://a", "prioritizeVerb": "p"}],
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
            id="weight",
        ),
        pytest.param(
            [
                {"urlPrefix": "http://a", "bindVerb": "b"},
                {"urlPrefix": "http://b", "bindVerb": "b"},
            ],
            'extenders: Invalid value: "found 2 extenders implementing bind": only one extender '
            "can implement bind",
            id="two binders",
        ),
        pytest.param(
            [{"urlPrefix": "http://a", "managedResources": [{"name": "cpu"}]}],
            'extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended '
            "resource name",
            id="no extended resource",
        ),
        pytest.param(
            [
                {
                    "urlPrefix": "http://a",
                    "managedResources": [{"name": "e.com/x"}, {"name": "e.com/x"}],
                }
            ],
            'extenders[0].managedResources[1].name: Invalid value: "e.com/x": duplicate extender '
            "managed resource name",
            id="a resource twice",
        ),
        pytest.param(
            [{"urlPrefix": "http://a", "tlsConfig": {"keyData": "secret!"}}],
            "extenders[0].tlsConfig.keyData: Invalid value: must be base64",
            id="a key is never shown",
        ),
        pytest.param(
            [{"urlPrefix": "http://a", "tlsConfig": {"keyData": ["secret!"]}}],
            "extenders[0].tlsConfig.keyData: Invalid value: must be base64",
            id="nor is one in a list",
        ),
    ],
)
def test_extenders(faults, extenders, expected):
    assert faults(extenders=extenders) == [expected]


def test_what_extenders_look_after_is_taken_from_node_resources_fit(load):
    managed = [{"name": "e.com/gpu", "ignoredByScheduler": True}, {"name": "e.com/nic"}]
    config = load(
        extenders=[{"urlPrefix": "http://a", "filterVerb": "f", "managedResources": managed}],
        profiles=[
            {
                "pluginConfig": [
                    {"name": "NodeResourcesFit", "args": {"ignoredResources": ["e.com/z"]}}
                ]
            }
        ],
    )
    args = config.profiles[0].plugin_args["NodeResourcesFit"]
    assert args["ignoredResources"] == ["e.com/gpu"]


def test_that_needs_node_resources_fit(faults):
    managed = [{"name": "e.com/gpu", "ignoredByScheduler": True}]
    lines = faults(
        extenders=[{"urlPrefix": "http://a", "managedResources": managed}],
        profiles=[{"plugins": {"multiPoint": {"disabled": names("NodeResourcesFit")}}}],
    )
    assert lines == ["can't find NodeResourcesFitArgs in plugin config"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration",
            'no kind "KubeSchedulerConfiguration" is registered for version '
            '"kubescheduler.config.k8s.io/v1beta3" in scheme "kubescheduler.config.k8s.io"',
            id="another version",
        ),
        pytest.param(
            f"apiVersion: {V1}\nkind: Policy",
            f'no kind "Policy" is registered for version "{V1}" in scheme '
            '"kubescheduler.config.k8s.io"',
            id="another kind",
        ),
        pytest.param(
            f"apiVersion: {V1}",
            "Object 'Kind' is missing: kind must be KubeSchedulerConfiguration",
            id="no kind",
        ),
        pytest.param("", "must be a mapping with apiVersion and kind", id="empty"),
        pytest.param("- 1", "must be a mapping with apiVersion and kind", id="a list"),
        pytest.param(
            "a: 1\nb: [1,\n  2\nc: 3\n",
            "line 4, column 2: did not find expected ',' or ']' while parsing a flow sequence",
            id="no YAML",
        ),
        pytest.param(
            "a: 1\nb: 2\na: 3\n",
            'strict decoding error: yaml: unmarshal errors:\n  line 3: key "a" already set in map',
            id="a key twice in YAML",
        ),
        pytest.param(
            '{"a": 1, "a": 2}',
            'strict decoding error: duplicate field "a"',
            id="a key twice in JSON",
        ),
        pytest.param(
            "a: 2026-01-01\n",
            "a: a date is not allowed here; put it in quotes to make it text",
            id="a date",
        ),
        pytest.param(
            "a: 1\n---\nb: 1\n",
            "line 2, column 1: but found another document expected a single document in the stream",
            id="two documents",
        ),
        pytest.param(
            "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
            "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
            "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
            "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
            "e: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
            "the document is too large or nested too deeply",
            id="aliases that multiply",
        ),
        pytest.param(
            "a:\n  " + "[" * 50_000,
            "line 2, column 202: nested deeper than 200 levels",
            id="nested so deeply that the C loader would end the process",
        ),
        pytest.param(
            "a: &a [*a]\n",
            "the document is too large or nested too deeply",
            id="an alias of itself",
        ),
    ],
)
def test_documents_that_are_refused_whole(text, expected):
    with pytest.raises(InvalidConfiguration) as caught:
        load_configuration(text, fake_registry(), source="scheduler.yaml")
    assert str(caught.value) == f"scheduler.yaml: {expected}"


def test_every_fault_is_listed_at_once_and_joined_as_the_reference_joins_them():
    text = f"""
apiVersion: {V1}
kind: KubeSchedulerConfiguration
foo: 1
parallelism: 0
profiles:
- plugins:
    filter: {{enabled: [{{name: Nope}}]}}
  pluginConfig:
  - name: InterPodAffinity
    args: {{hardPodAffinityWeight: 200}}
"""
    with pytest.raises(InvalidConfiguration) as caught:
        load_configuration(text, fake_registry(), source="a.yaml")
    lines = [
        'strict decoding error: unknown field "foo"',
        "parallelism: Invalid value: 0: should be an integer value greater than zero",
        "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 200: not in valid "
        "range [0, 100]",
        PROFILE + 'FilterPlugin "Nope" does not exist',
    ]
    assert caught.value.lines() == lines
    assert str(caught.value) == f"a.yaml: [{', '.join(lines)}]"
    assert [fault.path for fault in caught.value.faults][1] == "parallelism"
