"""Objects parsed from JSON: fields, defaults, faults, copies."""

from __future__ import annotations

import copy
import dataclasses
import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.api import (
    KINDS,
    CSINode,
    CSIStorageCapacity,
    Event,
    InvalidObject,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PodGroup,
    PriorityClass,
    ReplicationController,
    Service,
    StorageClass,
    find_kind,
    kind_of,
    parse_object,
    parse_time,
    pod_requests,
)
from scheduler_core.api.reader import format_time
from scheduler_core.testing.builders import make_node, make_pod, make_pod_group

DATA = Path(__file__).parents[2] / "data"

FULL_POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web",
        "namespace": "shop",
        "uid": "u-1",
        "generation": 3,
        "resourceVersion": "77",
        "labels": {"app": "web", "scheduling.x-k8s.io/pod-group": "gang"},
        "annotations": {"note": "x"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-01T00:00:30Z",
        "finalizers": ["example.com/f"],
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "o-1"},
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "rs",
                "uid": "o-2",
                "controller": True,
            },
        ],
    },
    "spec": {
        "schedulerName": "gpu-scheduler",
        "priority": 7,
        "preemptionPolicy": "Never",
        "nodeName": "n1",
        "nodeSelector": {},
        "schedulingGates": [{"name": "example.com/g"}],
        "schedulingGroup": {"podGroupName": "native"},
        "hostNetwork": True,
        "hostUsers": False,
        "terminationGracePeriodSeconds": 0,
        "overhead": {"cpu": "1m"},
        "containers": [
            {
                "name": "c",
                "image": "i:1",
                "resources": {
                    "requests": {"cpu": "1"},
                    "limits": {"cpu": "2"},
                    "claims": [{"name": "gpu"}],
                },
                "ports": [{"containerPort": 80, "hostPort": 8080}],
                "restartPolicyRules": [{"action": "RestartAllContainers"}],
            }
        ],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
        "volumes": [
            {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "b", "ephemeral": {"volumeClaimTemplate": {}}},
            {"name": "d", "image": {"reference": "models:1"}},
            {"name": "e", "emptyDir": {}},
        ],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {},
                "matchLabelKeys": ["v"],
                "nodeTaintsPolicy": "Honor",
            }
        ],
        "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 5}],
        "affinity": {
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []},
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
                ]
            },
        },
    },
    "status": {
        "phase": "Running",
        "nominatedNodeName": "n2",
        "startTime": "2026-01-01T00:00:01Z",
        "conditions": [{"type": "PodScheduled", "status": "True", "reason": "ok"}],
    },
}


def test_every_field_of_a_pod_is_read() -> None:
    pod = Pod.from_dict(FULL_POD)
    assert (pod.key, pod.uid, pod.generation, pod.resource_version) == ("shop/web", "u-1", 3, "77")
    assert pod.creation_timestamp == parse_time("2026-01-01T00:00:00Z")
    assert pod.is_terminating
    assert not pod.is_terminal
    assert pod.is_assigned
    assert pod.controller is not None
    assert pod.controller.kind == "ReplicaSet"
    assert pod.finalizers == ("example.com/f",)
    assert (pod.scheduler_name, pod.priority, pod.preemption_policy) == (
        "gpu-scheduler",
        7,
        "Never",
    )
    assert pod.node_selector == {}
    assert pod.scheduling_gates == ("example.com/g",)
    assert pod.scheduling_group == "native"
    assert (pod.pod_group_name, pod.pod_group_key) == ("gang", "shop/gang")
    assert (pod.host_network, pod.host_users) == (True, False)
    assert pod.termination_grace_period_seconds == 0
    (container,) = pod.containers
    assert container.claims == ("gpu",)
    assert container.restart_rule_actions == ("RestartAllContainers",)
    assert container.ports[0].host_port == 8080
    assert container.ports[0].protocol == "TCP"
    assert pod.resource_claims[0].resource_claim_template_name == "t"
    assert [volume.source for volume in pod.volumes] == [
        "persistentVolumeClaim",
        "ephemeral",
        "image",
        "emptyDir",
    ]
    assert pod.claim_names() == ("data", "web-b")
    assert pod.volumes[2].image == "models:1"
    (spread,) = pod.topology_spread_constraints
    assert not spread.is_hard
    assert (spread.node_affinity_policy, spread.node_taints_policy) == ("Honor", "Honor")
    assert spread.match_label_keys == ("v",)
    assert pod.affinity.node_affinity is not None
    assert pod.affinity.node_affinity.required is None
    assert pod.affinity.node_affinity.preferred == ()
    assert pod.affinity.pod_anti_affinity is not None
    assert len(pod.affinity.pod_anti_affinity.required) == 1
    assert pod.tolerations[0].toleration_seconds == 5
    assert (pod.phase, pod.nominated_node_name) == ("Running", "n2")
    condition = pod.condition("PodScheduled")
    assert condition is not None
    assert condition.reason == "ok"
    assert pod.condition("Ready") is None


def test_defaults_of_a_bare_pod() -> None:
    pod = Pod.from_dict({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}})
    assert pod.key == "default/p"
    assert (pod.scheduler_name, pod.priority) == ("default-scheduler", 0)
    assert pod.preemption_policy == "PreemptLowerPriority"
    assert pod.node_selector is None
    assert pod.affinity.node_affinity is None
    assert (pod.phase, pod.node_name, pod.start_time) == ("Pending", "", None)
    assert pod.labels == {}


def test_null_means_absent() -> None:
    raw = {
        "metadata": {"name": "p", "labels": None, "creationTimestamp": None},
        "spec": {"containers": [{"name": "c", "ports": None}], "priority": None, "affinity": None},
        "status": None,
    }
    assert Pod.from_dict(raw).priority == 0


def test_all_faults_of_an_object_are_told_at_once() -> None:
    raw = {
        "metadata": {"name": "p", "namespace": "ns", "labels": {"a": 1}},
        "spec": {
            "priority": "high",
            "containers": [
                {"name": "c", "resources": {"requests": {"cpu": "abc", "memory": "-1"}}},
                "no container",
            ],
            "tolerations": {},
        },
        "status": {"startTime": "yesterday"},
    }
    with pytest.raises(InvalidObject) as refused:
        Pod.from_dict(raw)
    error = refused.value
    assert [cause.field_path for cause in error.causes] == [
        "spec.containers[0].resources.requests[cpu]",
        "spec.containers[0].resources.requests[memory]",
        "spec.containers[1]",
        "spec.containers[1].name",
        "metadata.labels[a]",
        "spec.priority",
        "spec.tolerations",
        "status.startTime",
    ]
    assert error.causes[1].value == "-1"
    text = str(error)
    assert text.startswith("Pod ns/p: spec.containers[0].resources.requests[cpu]: Invalid value: ")
    assert '"-1": must be greater than or equal to 0; ' in text
    assert 'spec.priority: Invalid value: "high": must be an integer' in text


@pytest.mark.parametrize("raw", [None, [], "pod", 5], ids=repr)
def test_what_is_no_object_is_refused(raw: Any) -> None:
    with pytest.raises(InvalidObject, match="must be an object"):
        Pod.from_dict(raw)


def pickled(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))  # noqa: S301 - our own bytes


def test_an_error_survives_pickling() -> None:
    with pytest.raises(InvalidObject) as refused:
        Pod.from_dict({"metadata": {"name": "p"}, "spec": {"priority": "x"}})
    again = pickled(refused.value)
    assert str(again) == str(refused.value)
    alone = InvalidObject("a.b", "Required value", None)
    assert str(pickled(alone).about("Pod x")) == "Pod x: a.b: Required value"


def test_objects_are_frozen_and_have_no_dict() -> None:
    pod = make_pod("p").obj()
    with pytest.raises(dataclasses.FrozenInstanceError):
        pod.priority = 5  # type: ignore[misc]
    assert not hasattr(pod, "__dict__")


def test_equality_follows_the_json_and_copies_keep_it() -> None:
    pod = make_pod("p").req(cpu="1").obj()
    pod_requests(pod)
    assert pod == make_pod("p").req(cpu="1").obj()
    assert pod != make_pod("p").req(cpu="2").obj()
    assert pod != make_node("p").obj()
    assert len({pod, make_pod("p").req(cpu="1").obj()}) == 1
    assert pickled(pod) == pod
    assert copy.deepcopy(pod) == pod


def test_assuming_a_node_copies_the_pod() -> None:
    pod = make_pod("p").req(cpu="1").obj()
    requests = pod_requests(pod)
    assumed = pod.with_node_name("n1")
    assert (pod.node_name, assumed.node_name) == ("", "n1")
    assert "nodeName" not in pod.raw["spec"]
    assert assumed.raw["spec"]["nodeName"] == "n1"
    assert assumed == Pod.from_dict(assumed.raw)
    assert pod_requests(assumed) is requests


def test_a_pod_selects_nodes_by_selector_and_required_affinity() -> None:
    pod = make_pod("p").node_selector(disk="ssd").node_affinity_in("zone", "a", "b").obj()
    assert pod.selects_node({"disk": "ssd", "zone": "b"}, "n")
    assert not pod.selects_node({"disk": "hdd", "zone": "b"}, "n")
    assert not pod.selects_node({"disk": "ssd", "zone": "c"}, "n")
    assert make_pod("q").obj().selects_node({}, "n")


def test_a_node_in_the_schedulers_units() -> None:
    node = Node.from_dict(
        {
            "metadata": {"name": "n1", "namespace": "ignored"},
            "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]},
            "status": {
                "capacity": {"cpu": "4", "memory": "1Ki", "foo": "1"},
                "allocatable": {"cpu": "3500m", "pods": "110", "example.com/gpu": "2"},
                "images": [{"names": ["a:1", "a@sha256:0"], "sizeBytes": 5}],
                "declaredFeatures": ["F"],
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
    )
    assert node.key == "n1"
    assert node.namespace == ""
    assert node.allocatable == {"cpu": 3500, "pods": 110, "example.com/gpu": 2}
    assert node.capacity == {"cpu": 4000, "memory": 1024}
    assert node.unschedulable
    assert node.images[0].names == ("a:1", "a@sha256:0")
    assert node.declared_features == {"F"}
    ready = node.condition("Ready")
    assert ready is not None
    assert ready.status == "True"


def test_a_node_without_allocatable_has_its_capacity() -> None:
    node = Node.from_dict({"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "1"}}})
    assert node.allocatable == {"cpu": 1000}


@pytest.mark.parametrize(
    ("labels", "zone"),
    [
        pytest.param({}, "", id="neither"),
        pytest.param({"topology.kubernetes.io/zone": "a"}, ":\x00:a", id="zone"),
        pytest.param({"topology.kubernetes.io/region": "r"}, "r:\x00:", id="region"),
        pytest.param(
            {
                "topology.kubernetes.io/zone": "new",
                "failure-domain.beta.kubernetes.io/zone": "old",
            },
            ":\x00:old",
            id="the beta label wins",
        ),
    ],
)
def test_zone_key(labels: dict[str, str], zone: str) -> None:
    assert make_node("n").label(labels).obj().zone_key == zone


def test_a_pod_group() -> None:
    group = make_pod_group("g", 3).min_resources(cpu="2", foo="1").timeout(30).phase("Pending")
    parsed = group.obj()
    assert isinstance(parsed, PodGroup)
    assert (parsed.key, parsed.min_member, parsed.schedule_timeout_seconds) == ("default/g", 3, 30)
    assert parsed.min_resources == {"cpu": 2000}
    assert parsed.phase == "Pending"
    bare = PodGroup.from_dict({"metadata": {"name": "g"}})
    assert (bare.min_member, bare.min_resources, bare.schedule_timeout_seconds) == (1, None, None)


def test_storage_objects() -> None:
    volume = PersistentVolume.from_dict(
        {
            "metadata": {"name": "pv"},
            "spec": {
                "capacity": {"storage": "10Gi"},
                "accessModes": ["ReadWriteOnce"],
                "csi": {"driver": "d", "volumeHandle": "h"},
                "storageClassName": "fast",
                "claimRef": {"namespace": "ns", "name": "c", "uid": "u"},
                "nodeAffinity": {
                    "required": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "z", "operator": "In", "values": ["a"]}]}
                        ]
                    }
                },
            },
        }
    )
    assert (volume.capacity, volume.source) == (10 * 2**30, "csi")
    assert (volume.driver, volume.volume_handle) == ("d", "h")
    assert volume.claim_ref is not None
    assert volume.claim_ref.uid == "u"
    assert volume.admits({"z": "a"}, "n")
    assert not volume.admits({"z": "b"}, "n")

    claim = PersistentVolumeClaim.from_dict(
        {
            "metadata": {"name": "c", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {
                "volumeName": "pv",
                "storageClassName": "",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
    )
    assert claim.is_fully_bound
    assert (claim.request, claim.storage_class_name) == (2**30, "")
    assert PersistentVolumeClaim.from_dict({"metadata": {"name": "c"}}).storage_class_name is None

    storage = StorageClass.from_dict(
        {
            "metadata": {"name": "s"},
            "provisioner": "p",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": "z", "values": ["a"]}]}],
        }
    )
    assert storage.waits_for_consumer
    assert storage.admits({"z": "a"})
    assert not storage.admits({})

    csi = CSINode.from_dict(
        {
            "metadata": {"name": "n"},
            "spec": {"drivers": [{"name": "d", "allocatable": {"count": 3}}, {"name": "e"}]},
        }
    )
    assert (csi.limits, csi.drivers) == ({"d": 3}, ("d", "e"))

    free = CSIStorageCapacity.from_dict(
        {"metadata": {"name": "x"}, "capacity": "10", "maximumVolumeSize": "4"}
    )
    assert free.limit == 4


def test_other_cluster_objects() -> None:
    service = Service.from_dict({"metadata": {"name": "s"}, "spec": {"selector": {"a": "b"}}})
    assert service.selects({"a": "b", "c": "d"})
    assert not Service.from_dict({"metadata": {"name": "s"}, "spec": {}}).selects({})

    budget = PodDisruptionBudget.from_dict(
        {
            "metadata": {"name": "b"},
            "spec": {"selector": {}},
            "status": {"disruptionsAllowed": 2, "disruptedPods": {"p": "2026-01-01T00:00:00Z"}},
        }
    )
    assert budget.selector is not None
    assert (budget.disruptions_allowed, budget.disrupted_pods) == (2, frozenset({"p"}))

    priority = PriorityClass.from_dict({"metadata": {"name": "high"}, "value": 5})
    assert (priority.value, priority.preemption_policy) == (5, "PreemptLowerPriority")

    controller = ReplicationController.from_dict(
        {"metadata": {"name": "r"}, "spec": {"selector": {"a": "b"}}}
    )
    assert controller.selector is not None
    assert controller.selector.matches({"a": "b"})


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(
            {
                "apiVersion": "events.k8s.io/v1",
                "note": "hello",
                "regarding": {"kind": "Pod", "namespace": "default", "name": "p", "uid": "u"},
                "reportingController": "default-scheduler",
                "eventTime": "2026-01-01T00:00:00.000001Z",
                "series": {"count": 4},
            },
            id="events.k8s.io",
        ),
        pytest.param(
            {
                "apiVersion": "v1",
                "message": "hello",
                "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p", "uid": "u"},
                "reportingComponent": "default-scheduler",
                "lastTimestamp": "2026-01-01T00:00:00.000001Z",
                "count": 4,
            },
            id="core",
        ),
    ],
)
def test_both_kinds_of_event_read_the_same(raw: dict[str, Any]) -> None:
    event = parse_object({"kind": "Event", "metadata": {"name": "e"}, "type": "Warning", **raw})
    assert isinstance(event, Event)
    assert (event.type, event.note, event.count) == ("Warning", "hello", 4)
    assert (event.regarding.name, event.regarding.uid) == ("p", "u")
    assert event.reporting_controller == "default-scheduler"
    assert event.event_time == parse_time("2026-01-01T00:00:00Z") + 1e-6


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("1970-01-01T00:00:00Z", 0.0, id="epoch"),
        pytest.param("1970-01-01T01:00:00+01:00", 0.0, id="zone"),
        pytest.param("1970-01-01T00:00:00.5Z", 0.5, id="decimals"),
        pytest.param("1970-01-01t00:00:00.123456789z", 0.123456, id="nanoseconds are cut"),
    ],
)
def test_times(text: str, seconds: float) -> None:
    assert parse_time(text) == pytest.approx(seconds, abs=1e-9)


@pytest.mark.parametrize(
    "text", ["", "2026-01-01", "2026-13-01T00:00:00Z", "noon", "2026-01-01T00:00:00"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_time(text)


def test_times_are_written_as_kubernetes_does() -> None:
    assert format_time(0) == "1970-01-01T00:00:00Z"
    assert format_time(0.5, micro=True) == "1970-01-01T00:00:00.500000Z"


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        pytest.param({"apiVersion": "v1"}, "kind", id="no kind"),
        pytest.param({"kind": "Pod"}, "apiVersion", id="no apiVersion"),
        pytest.param({"kind": "Widget", "apiVersion": "v1"}, "kind", id="unknown kind"),
        pytest.param({"kind": "Pod", "apiVersion": "v2"}, "apiVersion", id="unknown version"),
        pytest.param({"kind": 5, "apiVersion": "v1"}, "kind", id="kind is a number"),
        pytest.param(
            {"kind": "PodGroup", "apiVersion": "scheduling.k8s.io/v1alpha1"},
            "apiVersion",
            id="the native PodGroup of Kubernetes 1.35",
        ),
    ],
)
def test_kinds_that_are_not_known(raw: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidObject) as refused:
        kind_of(raw)
    assert refused.value.field_path == path


def test_the_table_of_kinds() -> None:
    group = KINDS["PodGroup"]
    assert (group.group, group.version) == ("scheduling.x-k8s.io", "v1alpha1")
    assert (KINDS["Pod"].group, KINDS["Pod"].singular) == ("", "pod")
    for name, kind in KINDS.items():
        parsed = parse_object(
            {
                "kind": kind.written,
                "apiVersion": kind.api_version,
                "metadata": {"name": "x"},
                "spec": {"containers": [{"name": "c"}]},
            }
        )
        assert type(parsed) is kind.type
        assert find_kind(kind.written, kind.api_version) is KINDS[name]
        assert parsed.namespace == ("default" if kind.namespaced else "")


@pytest.mark.parametrize("family", ["mixed", "podaffinity", "spread", "volumes"])
def test_every_object_of_the_recorded_scenarios_parses(family: str) -> None:
    with gzip.open(DATA / "vectors" / f"{family}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            for raw in json.loads(line)["objects"]:
                parsed = parse_object(raw)
                assert parsed.raw is raw
