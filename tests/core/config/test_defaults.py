"""What a configuration holds that says nothing (kube-scheduler 1.36, and one value of our own)."""

from __future__ import annotations

import pytest

from scheduler_core.config import default_args, default_configuration

from .fakes import fake_registry


def test_component_defaults(load):
    config = load()
    assert config.parallelism == 16
    assert (config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds) == (1, 10)
    assert config.enable_profiling
    assert config.enable_contention_profiling
    assert not config.delay_cache_until_active
    assert config.extenders == ()
    election = config.leader_election
    assert election.leader_elect
    assert (election.lease_duration, election.renew_deadline, election.retry_period) == (15, 10, 2)
    assert election.resource_lock == "leases"
    assert election.resource_name == "kube-scheduler"
    assert election.resource_namespace == "kube-system"
    connection = config.client_connection
    assert connection.content_type == "application/vnd.kubernetes.protobuf"
    assert (connection.qps, connection.burst) == (50, 100)
    assert (connection.kubeconfig, connection.accept_content_types) == ("", "")


def test_contention_profiling_is_defaulted_only_with_profiling(load):
    assert not load(enableProfiling=False).enable_contention_profiling


def test_zero_values_read_as_absent_where_the_reference_has_no_pointer(load):
    config = load(
        leaderElection={"leaseDuration": "0s", "resourceName": ""},
        clientConnection={"qps": 0, "burst": 0},
    )
    assert config.leader_election.lease_duration == 15
    assert config.leader_election.resource_name == "kube-scheduler"
    assert (config.client_connection.qps, config.client_connection.burst) == (50, 100)


def test_leader_election_can_be_switched_off(load):
    assert not load(leaderElection={"leaderElect": False}).leader_election.leader_elect


def test_null_is_absent(load):
    assert load(parallelism=None, profiles=None).completed() == load().completed()


@pytest.mark.parametrize(
    ("fields", "share"),
    [
        pytest.param({}, 100, id="absent looks at every node"),
        pytest.param({"percentageOfNodesToScore": 0}, 0, id="explicit 0 is adaptive"),
        pytest.param({"percentageOfNodesToScore": 30}, 30, id="of the configuration"),
        pytest.param(
            {
                "percentageOfNodesToScore": 30,
                "profiles": [{"percentageOfNodesToScore": 70}],
            },
            70,
            id="the profile's own wins",
        ),
        pytest.param(
            {"percentageOfNodesToScore": 30, "profiles": [{"percentageOfNodesToScore": 0}]},
            0,
            id="also when it is 0",
        ),
    ],
)
def test_percentage_of_nodes_to_score(load, fields, share):
    assert load(**fields).profiles[0].percentage_of_nodes_to_score == share


def test_a_single_profile_is_named_by_default(load):
    assert load().profiles[0].scheduler_name == "default-scheduler"
    assert load(profiles=[{"plugins": {}}]).profiles[0].scheduler_name == "default-scheduler"


def test_default_profile_has_the_registered_plugins_in_the_reference_order(load):
    profile = load().profiles[0]
    assert {point: [ref.name for ref in refs] for point, refs in profile.plugins.items()} == {
        "preEnqueue": ["SchedulingGates"],
        "queueSort": ["PrioritySort"],
        "preFilter": ["NodeAffinity", "NodePorts", "NodeResourcesFit"],
        "filter": [
            "NodeUnschedulable",
            "NodeName",
            "TaintToleration",
            "NodeAffinity",
            "NodePorts",
            "NodeResourcesFit",
        ],
        "postFilter": [],
        "preScore": [
            "TaintToleration",
            "NodeAffinity",
            "NodeResourcesFit",
            "NodeResourcesBalancedAllocation",
        ],
        "score": [
            "TaintToleration",
            "NodeAffinity",
            "NodeResourcesFit",
            "NodeResourcesBalancedAllocation",
            "ImageLocality",
        ],
        "reserve": [],
        "permit": [],
        "preBind": [],
        "bind": ["DefaultBinder"],
        "postBind": [],
    }
    assert {ref.name: ref.weight for ref in profile.plugins["score"]} == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }


def test_a_plugin_that_is_registered_later_joins_the_default_profile_by_itself():
    less = default_configuration(fake_registry("NodePorts")).profiles[0]
    more = default_configuration(fake_registry()).profiles[0]
    assert "NodePorts" not in less.plugin_names()
    assert "NodePorts" in more.plugin_names()


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        pytest.param(
            "NodeResourcesFit",
            {
                "scoringStrategy": {
                    "type": "LeastAllocated",
                    "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
                }
            },
            id="NodeResourcesFit",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]},
            id="NodeResourcesBalancedAllocation",
        ),
        pytest.param("NodeAffinity", {}, id="NodeAffinity"),
        pytest.param(
            "InterPodAffinity",
            {"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": False},
            id="InterPodAffinity",
        ),
        pytest.param("PodTopologySpread", {"defaultingType": "System"}, id="PodTopologySpread"),
        pytest.param("VolumeBinding", {"bindTimeoutSeconds": 600}, id="VolumeBinding"),
        pytest.param(
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100},
            id="DefaultPreemption",
        ),
        pytest.param(
            "DynamicResources",
            {"filterTimeout": "10s", "bindingTimeout": "10m0s"},
            id="DynamicResources",
        ),
        pytest.param(
            "Coscheduling",
            {
                "permitWaitingTimeSeconds": 60,
                "podGroupBackoffSeconds": 0,
                "podGroupRejectPercentage": 10,
            },
            id="Coscheduling",
        ),
        pytest.param("ManualApproval", {"timeoutSeconds": 900}, id="ManualApproval"),
    ],
)
def test_default_arguments(plugin, expected):
    assert default_args(plugin) == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": f"{plugin}Args",
        **expected,
    }


def test_plugins_without_known_arguments_have_none():
    assert default_args("NodeName") is None
    assert default_args("SomebodyElses") is None


def _args(load, name, args):
    return load(profiles=[{"pluginConfig": [{"name": name, "args": args}]}]).profiles[0].plugin_args


def test_given_arguments_are_completed(load):
    given = {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu"}]}}
    found = _args(load, "NodeResourcesFit", given)["NodeResourcesFit"]
    assert found["scoringStrategy"] == {
        "type": "MostAllocated",
        "resources": [{"name": "cpu", "weight": 1}],
    }


def test_every_plugin_of_the_profile_has_arguments(load):
    profile = load().profiles[0]
    assert set(profile.plugin_args) == set(profile.plugin_names())
    assert profile.plugin_args["NodeName"] == {}


def test_extender_defaults(load):
    (extender,) = load(extenders=[{"urlPrefix": "http://127.0.0.1:1", "filterVerb": "f"}]).extenders
    assert extender.http_timeout == 5
    assert extender.weight == 0
    assert not extender.ignorable
    assert extender.tls is None


def test_the_configuration_cannot_be_changed(load):
    config = load()
    with pytest.raises(AttributeError):
        config.parallelism = 1
    with pytest.raises(TypeError):
        config.profiles[0].plugins["filter"] = ()
    with pytest.raises(TypeError):
        config.profiles[0].plugin_args["NodeResourcesFit"]["scoringStrategy"] = {}
    config.completed()["profiles"].clear()
    assert len(config.completed()["profiles"]) == 1
