"""What is refused, with which path and in which words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.api import InvalidObject, check, status_message, unknown_fields, validate
from scheduler_core.testing.builders import (
    make_namespace,
    make_node,
    make_pod,
    make_pod_group,
    make_priority_class,
)

RECORDED = Path(__file__).parents[2] / "data" / "api" / "kube-apiserver-1.36.jsonl"


def spec(**fields: Any) -> dict[str, Any]:
    raw = make_pod("p").raw()
    raw["spec"].update(fields)
    return raw


def container(**fields: Any) -> dict[str, Any]:
    return spec(containers=[{"name": "c", "image": "i", **fields}])


def requests(requests: dict[str, Any], limits: dict[str, Any] | None = None) -> dict[str, Any]:
    return container(resources={"requests": requests, "limits": limits or {}})


def port(**fields: Any) -> dict[str, Any]:
    return container(ports=[fields])


def node_terms(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    return spec(
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    )


def expression(**fields: Any) -> dict[str, Any]:
    return node_terms({"matchExpressions": [{"key": "k", **fields}]})


def anti_term(**fields: Any) -> dict[str, Any]:
    term = {"topologyKey": "zone", **fields}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return spec(affinity={"podAntiAffinity": required})


def spread(*constraints: dict[str, Any]) -> dict[str, Any]:
    base = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return spec(topologySpreadConstraints=[{**base, **fields} for fields in constraints])


def taint(**fields: Any) -> dict[str, Any]:
    raw = make_node("n").raw()
    raw["spec"] = {"taints": [fields]}
    return raw


TERMS = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
)
ANTI = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
SPREAD = "spec.topologySpreadConstraints[0]"

CASES = [
    pytest.param(
        make_pod("Bad_Name").raw(),
        'metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain must',
        id="pod name",
    ),
    pytest.param(
        make_pod("p").namespace("a.b").raw(),
        'metadata.namespace: Invalid value: "a.b": a lowercase RFC 1123 label must',
        id="namespace of a pod",
    ),
    pytest.param(
        make_namespace("a.b").raw(),
        'metadata.name: Invalid value: "a.b": a lowercase RFC 1123 label must',
        id="name of a namespace",
    ),
    pytest.param(
        make_pod("p").label({"-a": "b"}).raw(),
        'metadata.labels: Invalid value: "-a": name part must consist of',
        id="label key",
    ),
    pytest.param(
        make_pod("p").label({"a": "b c"}).raw(),
        'metadata.labels: Invalid value: "b c": a valid label must be an empty string or',
        id="label value",
    ),
    pytest.param(
        make_pod("p").label({"a": "b" * 64}).raw(),
        f'metadata.labels: Invalid value: "{"b" * 64}": must be no more than 63 bytes',
        id="long label value",
    ),
    pytest.param(
        make_pod("p").annotation({"a/b/c": ""}).raw(),
        'metadata.annotations: Invalid value: "a/b/c": a qualified name must consist of',
        id="annotation key",
    ),
    pytest.param(spec(containers=[]), "spec.containers: Required value", id="no containers"),
    pytest.param(
        spec(containers=[{"name": "C", "image": "i"}]),
        'spec.containers[0].name: Invalid value: "C": a lowercase RFC 1123 label must',
        id="container name",
    ),
    pytest.param(
        spec(containers=[{"name": "c"}]), "spec.containers[0].image: Required value", id="no image"
    ),
    pytest.param(
        spec(
            containers=[{"name": "c", "image": "i"}], initContainers=[{"name": "c", "image": "i"}]
        ),
        'spec.initContainers[0].name: Duplicate value: "c"',
        id="the same name twice",
    ),
    pytest.param(
        requests({"foo": "1"}),
        'spec.containers[0].resources.requests[foo]: Invalid value: "foo": '
        "must be a standard resource for containers",
        id="unknown resource",
    ),
    pytest.param(
        requests({"requests.example.com/x": "1"}),
        "spec.containers[0].resources.requests[requests.example.com/x]: "
        'Invalid value: "requests.example.com/x": doesn\'t follow extended resource name standard',
        id="quota name",
    ),
    pytest.param(
        requests({"example.com/gpu": "500m"}, {"example.com/gpu": "500m"}),
        'spec.containers[0].resources.requests[example.com/gpu]: Invalid value: "500m": '
        "must be an integer",
        id="half a device",
    ),
    pytest.param(
        requests({"memory": "128Mi"}, {"memory": "64Mi"}),
        'spec.containers[0].resources.requests: Invalid value: "128Mi": '
        "must be less than or equal to memory limit of 64Mi",
        id="request above limit",
    ),
    pytest.param(
        requests({"example.com/gpu": "1"}, {"example.com/gpu": "2"}),
        'spec.containers[0].resources.requests: Invalid value: "1": '
        "must be equal to example.com/gpu limit of 2",
        id="extended request below limit",
    ),
    pytest.param(
        requests({"example.com/gpu": "1"}),
        "spec.containers[0].resources.limits: Required value: "
        "Limit must be set for non overcommitable resources",
        id="extended request without limit",
    ),
    pytest.param(
        requests({"hugepages-2Mi": "2Mi"}, {"hugepages-2Mi": "2Mi"}),
        "spec.containers[0].resources: Forbidden: HugePages require cpu or memory",
        id="huge pages alone",
    ),
    pytest.param(
        port(hostPort=80), "spec.containers[0].ports[0].containerPort: Required value", id="no port"
    ),
    pytest.param(
        port(containerPort=80, hostPort=70000),
        "spec.containers[0].ports[0].hostPort: Invalid value: 70000: "
        "must be between 1 and 65535, inclusive",
        id="port out of range",
    ),
    pytest.param(
        port(containerPort=80, protocol="tcp"),
        'spec.containers[0].ports[0].protocol: Unsupported value: "tcp": '
        'supported values: "SCTP", "TCP", "UDP"',
        id="protocol",
    ),
    pytest.param(
        port(containerPort=80, hostIP="localhost"),
        'spec.containers[0].ports[0].hostIP: Invalid value: "localhost": must be a valid IP',
        id="host ip",
    ),
    pytest.param(
        container(
            ports=[{"containerPort": 1, "hostPort": 80}, {"containerPort": 2, "hostPort": 80}]
        ),
        'spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//80"',
        id="the same host port twice",
    ),
    pytest.param(
        make_pod("p").gate("a", "a").raw(),
        'spec.schedulingGates[1]: Duplicate value: "a"',
        id="gate twice",
    ),
    pytest.param(
        make_pod("p").gate("a").node("n").raw(),
        "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
        id="gated and bound",
    ),
    pytest.param(
        make_pod("p").preemption_policy("Always").raw(),
        'spec.preemptionPolicy: Unsupported value: "Always": '
        'supported values: "Never", "PreemptLowerPriority"',
        id="preemption policy",
    ),
    pytest.param(
        spec(tolerations=[{"value": "x"}]),
        'spec.tolerations[0].operator: Invalid value: "": operator must be Exists when `key` is',
        id="toleration without key",
    ),
    pytest.param(
        spec(tolerations=[{"key": "k", "operator": "Gt", "value": "1"}]),
        'spec.tolerations[0].operator: Unsupported value: "Gt": '
        'supported values: "Equal", "Exists"',
        id="toleration operator",
    ),
    pytest.param(
        spec(tolerations=[{"key": "k", "operator": "Exists", "value": "1"}]),
        'spec.tolerations[0].operator: Invalid value: "1": '
        "value must be empty when `operator` is 'Exists'",
        id="toleration with needless value",
    ),
    pytest.param(
        spec(tolerations=[{"key": "k", "effect": "NoSchedule", "tolerationSeconds": 5}]),
        'spec.tolerations[0].effect: Invalid value: "NoSchedule": '
        "effect must be 'NoExecute' when `tolerationSeconds` is set",
        id="toleration seconds",
    ),
    pytest.param(
        spec(nodeSelector={"a": "b c"}),
        'spec.nodeSelector: Invalid value: "b c": a valid label must be',
        id="node selector",
    ),
    pytest.param(
        node_terms(),
        f"{TERMS}: Required value: must have at least one node selector term",
        id="no node selector terms",
    ),
    pytest.param(
        expression(operator="Near", values=["x"]),
        f'{TERMS}[0].matchExpressions[0].operator: Invalid value: "Near": '
        "not a valid selector operator",
        id="node selector operator",
    ),
    pytest.param(
        expression(operator="In"),
        f"{TERMS}[0].matchExpressions[0].values: Required value: "
        "must be specified when `operator` is 'In' or 'NotIn'",
        id="In without values",
    ),
    pytest.param(
        expression(operator="Exists", values=["x"]),
        f"{TERMS}[0].matchExpressions[0].values: Forbidden: "
        "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        id="Exists with values",
    ),
    pytest.param(
        expression(operator="Gt", values=["1", "2"]),
        f"{TERMS}[0].matchExpressions[0].values: Required value: "
        "must be specified single value when `operator` is 'Lt' or 'Gt'",
        id="Gt with two values",
    ),
    pytest.param(
        node_terms(
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}
        ),
        f"{TERMS}[0].matchFields[0].values: Required value: "
        "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        id="two names in matchFields",
    ),
    pytest.param(
        node_terms({"matchFields": [{"key": "spec.x", "operator": "In", "values": ["a"]}]}),
        f'{TERMS}[0].matchFields[0].key: Invalid value: "spec.x": not a valid field selector key',
        id="unknown field",
    ),
    pytest.param(
        make_pod("p").preferred_node_affinity_in(101, "k", "v").raw(),
        "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: "
        "Invalid value: 101: must be in the range 1-100",
        id="weight of a preferred term",
    ),
    pytest.param(
        anti_term(topologyKey=""),
        f"{ANTI}.topologyKey: Required value: can not be empty",
        id="no topology key",
    ),
    pytest.param(
        anti_term(labelSelector={"matchExpressions": [{"key": "a", "operator": "Lt"}]}),
        f'{ANTI}.labelSelector.matchExpressions[0].operator: Invalid value: "Lt": '
        "not a valid selector operator",
        id="label selector operator",
    ),
    pytest.param(
        anti_term(labelSelector={"matchLabels": {"a": "b c"}}),
        f'{ANTI}.labelSelector.matchLabels: Invalid value: "b c": a valid label must',
        id="label selector value",
    ),
    pytest.param(
        spread({"maxSkew": 0}),
        f"{SPREAD}.maxSkew: Invalid value: 0: must be greater than zero",
        id="max skew",
    ),
    pytest.param(
        spread({"whenUnsatisfiable": "Sometimes"}),
        f'{SPREAD}.whenUnsatisfiable: Unsupported value: "Sometimes": '
        'supported values: "DoNotSchedule", "ScheduleAnyway"',
        id="when unsatisfiable",
    ),
    pytest.param(
        spread({"whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2}),
        f"{SPREAD}.minDomains: Invalid value: 2: can only use minDomains if "
        "whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway",
        id="min domains",
    ),
    pytest.param(
        spread({"nodeTaintsPolicy": "Maybe"}),
        f'{SPREAD}.nodeTaintsPolicy: Unsupported value: "Maybe": '
        'supported values: "Honor", "Ignore"',
        id="node taints policy",
    ),
    pytest.param(
        spread({}, {}),
        "spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: "
        'Duplicate value: "{zone, DoNotSchedule}"',
        id="the same constraint twice",
    ),
    pytest.param(
        spec(volumes=[{"name": "v", "persistentVolumeClaim": {}}]),
        "spec.volumes[0].persistentVolumeClaim.claimName: Required value",
        id="no claim name",
    ),
    pytest.param(
        make_pod("p").volume("v").volume("v").raw(),
        'spec.volumes[1].name: Duplicate value: "v"',
        id="volume twice",
    ),
    pytest.param(
        taint(key="k", effect="Sometimes"),
        'metadata.taints[0].effect: Unsupported value: "Sometimes": '
        'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
        id="taint effect",
    ),
    pytest.param(taint(key="k"), "metadata.taints[0].effect: Required value", id="no effect"),
    pytest.param(
        make_node("n").capacity({"example.com/gpu": "1500m"}).raw(),
        'status.capacity[example.com/gpu]: Invalid value: "1500m": must be an integer',
        id="fractional device on a node",
    ),
    pytest.param(
        make_node("n").taint("k").taint("k").raw(),
        'metadata.taints[1]: Duplicate value: {"effect":"NoSchedule","key":"k"}',
        id="taint twice",
    ),
    pytest.param(
        make_pod_group("g", 0).raw(),
        "spec.minMember: Invalid value: 0: "
        "spec.minMember in body should be greater than or equal to 1",
        id="gang of none",
    ),
    pytest.param(
        make_pod_group("g").timeout(-1).raw(),
        "spec.scheduleTimeoutSeconds: Invalid value: -1: "
        "spec.scheduleTimeoutSeconds in body should be greater than or equal to 0",
        id="negative timeout",
    ),
    pytest.param(
        make_priority_class("big", 1_000_000_001).raw(),
        "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
        id="priority too high",
    ),
    pytest.param(
        make_priority_class("system-mine", 1).raw(),
        "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved",
        id="reserved priority class",
    ),
    pytest.param({"kind": "Pod"}, "apiVersion: Required value", id="no apiVersion"),
]


@pytest.mark.parametrize(("raw", "line"), CASES)
def test_one_fault_in_kube_apiservers_words(raw: dict[str, Any], line: str) -> None:
    lines = [f"{path}: {reason}" for path, reason in validate(raw)]
    assert any(found.startswith(line) for found in lines), lines


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(make_pod("p").raw(), id="bare pod"),
        pytest.param(make_pod("p.q-1").req({"example.com/gpu": 1}, cpu="1").raw(), id="device"),
        pytest.param(make_pod("p").toleration().raw(), id="tolerates everything"),
        pytest.param(make_pod("p").node_affinity_in("zone", "a").raw(), id="node affinity"),
        pytest.param(make_pod("p").spread("zone", {"a": "b"}, minDomains=2).raw(), id="spread"),
        pytest.param(make_pod("p").pvc("a", "b").host_port(80).raw(), id="volumes and ports"),
        pytest.param(make_pod("p").pod_anti_affinity("zone", {"a": "b"}).raw(), id="anti-affinity"),
        pytest.param(make_node("n").taint("k", "v").image("i:1", size=1).raw(), id="node"),
        pytest.param(make_pod_group("g", 3).raw(), id="gang"),
        pytest.param(make_namespace("ns").raw(), id="namespace"),
        pytest.param(make_priority_class("high", 1_000_000_000).raw(), id="highest priority"),
        pytest.param(
            make_priority_class("system-node-critical", 2_000_001_000).raw(), id="system class"
        ),
    ],
)
def test_what_makes_sense_is_accepted(raw: dict[str, Any]) -> None:
    assert validate(raw) == []
    check(raw)


def test_unreadable_fields_are_named_once_and_do_not_hide_the_others() -> None:
    raw = spec(
        containers=[{"name": 5, "image": "i", "resources": {"requests": {"cpu": "x"}}}],
        preemptionPolicy="Always",
    )
    raw["metadata"]["name"] = "Bad"
    paths = [path for path, _ in validate(raw)]
    assert paths == [
        "spec.containers[0].name",
        "spec.containers[0].name",
        "spec.containers[0].resources.requests[cpu]",
        "metadata.name",
        "spec.preemptionPolicy",
    ]


def test_check_raises_with_every_fault_and_the_objects_name() -> None:
    raw = make_pod("P").preemption_policy("x").raw()
    with pytest.raises(InvalidObject) as refused:
        check(raw)
    assert str(refused.value).startswith("Pod default/P: metadata.name: Invalid value: ")
    assert len(refused.value.causes) == 2


@pytest.mark.parametrize("raw", [None, [], "x"], ids=repr)
def test_what_is_no_object_is_refused(raw: object) -> None:
    assert validate(raw)[0][1].endswith("must be an object")


def recorded(step: str) -> dict[str, Any]:
    for line in RECORDED.read_text(encoding="utf-8").splitlines():
        entry: dict[str, Any] = json.loads(line)
        if entry["step"] == step:
            return entry
    raise LookupError(step)


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        pytest.param("pod-bad-name", "Pod", id="name"),
        pytest.param("pod-no-containers", "Pod", id="no containers"),
        pytest.param("pod-bad-request", "Pod", id="negative request"),
        pytest.param("pod-limit-below", "Pod", id="limit below request"),
        pytest.param("pg-invalid", "PodGroup.scheduling.x-k8s.io", id="gang of none"),
    ],
)
def test_the_words_are_those_of_a_real_kube_apiserver(step: str, kind: str) -> None:
    entry = recorded(step)
    body = entry["body"]
    message = status_message(kind, body["metadata"]["name"], validate(body))
    assert message == entry["response"]["message"]


def test_several_faults_stand_in_brackets() -> None:
    faults = [("a", "Required value"), ("b", "Forbidden: no")]
    assert (
        status_message("Pod", "p", faults)
        == 'Pod "p" is invalid: [a: Required value, b: Forbidden: no]'
    )


def test_misspelt_fields_are_found_wherever_they_decide_something() -> None:
    raw = make_pod("p").toleration("k").node_affinity_in("zone", "a").raw()
    raw["spec"]["nodeselector"] = {}
    raw["spec"]["containers"][0]["resources"] = {"request": {}}
    raw["spec"]["tolerations"][0]["effects"] = "NoSchedule"
    raw["metadata"]["label"] = {}
    assert sorted(unknown_fields(raw)) == [
        "metadata.label",
        "spec.containers[0].resources.request",
        "spec.nodeselector",
        "spec.tolerations[0].effects",
    ]


def test_fields_of_recorded_objects_are_all_known() -> None:
    for line in RECORDED.read_text(encoding="utf-8").splitlines():
        response = json.loads(line).get("response")
        if isinstance(response, dict) and response.get("kind") in ("Pod", "Node", "Namespace"):
            assert unknown_fields(response) == []


def test_an_unknown_field_is_named_as_kube_apiserver_names_it() -> None:
    entry = recorded("pod-unknown-field")
    (path,) = unknown_fields(entry["body"])
    assert entry["response"]["message"].endswith(f'strict decoding error: unknown field "{path}"')


def test_a_spec_that_was_sound_once_is_judged_with_each_pods_own() -> None:
    """A spec is looked at once for its pods; the node, the name and the token volume are theirs."""

    def faults(change: Callable[[dict[str, Any]], object]) -> list[str]:
        raw = make_pod("p").req(cpu="1").raw()
        raw["spec"]["hostname"] = "looked-at-once"
        volumes = [{"name": f"kube-api-access-{n}", "projected": {}} for n in ("aaaaa", "bbbbb")]
        raw["spec"]["volumes"] = volumes
        change(raw)
        return [path for path, _ in validate(raw)]

    twice = {"name": "kube-api-access-ccccc", "projected": {}}
    for _ in range(2):
        assert faults(lambda raw: None) == []
        assert faults(lambda raw: raw["spec"].update(nodeName="n1")) == []
        assert faults(lambda raw: raw["spec"].update(nodeName="N 1")) == ["spec.nodeName"]
        assert faults(lambda raw: raw["metadata"].update(name="P")) == ["metadata.name"]
        doubled = faults(lambda raw: raw["spec"].update(volumes=[twice, twice]))
        assert doubled == ["spec.volumes[1].name"]


def test_faults_of_a_spec_are_told_each_time() -> None:
    raw = make_pod("p").toleration("k", value="v", operator="Exists").raw()
    assert [[path for path, _ in validate(raw)] for _ in range(2)] == [
        ["spec.tolerations[0].operator"]
    ] * 2
