"""Faults in fields, profiles and the plugins of a profile, in kube-scheduler's words."""

from __future__ import annotations

import pytest

from .documents import PROFILE, V1, names, plugin_config, plugins, profile


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
