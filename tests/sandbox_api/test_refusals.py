"""Requests that a kube-apiserver 1.36 was seen to refuse, in a table by kind of request.

Every row was compared with a real server; the words are the server's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.sandbox_api.test_semantics import CONFIG_MAPS, DEPLOYMENTS, PODS, Client, Json, pod

V1 = "/api/v1"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
NODES = f"{V1}/nodes"
CLAIMS = f"{V1}/namespaces/default/persistentvolumeclaims"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GEARS = "/apis/shop.example.net/v1/namespaces/default/gears"


@pytest.fixture
def c() -> Client:
    return Client()


def fields_of(status: Json) -> list[str]:
    return [cause["field"] for cause in status["details"]["causes"]]


# -- metadata ------------------------------------------------------------------------------------

OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}


@pytest.mark.parametrize(
    ("metadata", "field", "words"),
    [
        pytest.param({"labels": {"a/b/c": "1"}}, "metadata.labels", "a valid label key", id="key"),
        pytest.param({"labels": {"a": "b c"}}, "metadata.labels", "a valid label must", id="value"),
        pytest.param(
            {"annotations": {"a b": ""}}, "metadata.annotations", "name part", id="annotation"
        ),
        pytest.param(
            {"annotations": {"a": "x" * 262_144}},
            "metadata.annotations",
            "Too long: may not be more than 262144 bytes",
            id="large annotations",
        ),
        pytest.param(
            {"finalizers": ["mine"]},
            "metadata.finalizers[0]",
            "neither a standard finalizer name nor",
            id="finalizer",
        ),
        pytest.param(
            {"ownerReferences": [{**OWNER, "uid": ""}]},
            "metadata.ownerReferences.uid",
            "must not be empty",
            id="owner without uid",
        ),
        pytest.param(
            {"ownerReferences": [OWNER, {**OWNER, "name": "m", "uid": "v"}]},
            "metadata.ownerReferences",
            'Found "true" in references for Node/n and Node/m',
            id="two controllers",
        ),
        pytest.param(
            {"name": "a" * 254}, "metadata.name", "no more than 253 characters", id="long name"
        ),
    ],
)
def test_metadata(c: Client, metadata: Json, field: str, words: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", **metadata}}
    status = c.refused(422, "POST", CONFIG_MAPS, body)
    assert fields_of(status) == [field]
    assert words in status["message"]


def test_a_fault_of_metadata_is_told_as_often_as_it_is_looked_for(c: Client) -> None:
    c.do("POST", PODS, pod("p"))
    c.do("POST", BUDGETS, {"metadata": {"name": "b"}, "spec": {}})
    patch = {"metadata": {"labels": {"-": ""}}}
    for path, times in ((f"{PODS}/p", 4), (f"{BUDGETS}/b", 2)):
        assert fields_of(c.refused(422, "PATCH", path, patch, media=MERGE)) == (
            ["metadata.labels"] * times
        )


def test_a_generated_name_has_room_for_its_end(c: Client) -> None:
    made = c.do("POST", PODS, {**pod(""), "metadata": {"generateName": "g" * 100 + "-"}})
    assert len(made["metadata"]["name"]) == 63


# -- the kinds -----------------------------------------------------------------------------------

TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": pod("x")["spec"]}
SELECTOR = {"matchLabels": {"app": "x"}}
WEB = {"selector": SELECTOR, "template": TEMPLATE}
BATCH = {"template": {"spec": {**pod("x")["spec"], "restartPolicy": "Never"}}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
VOLUME = {
    "accessModes": ["ReadWriteOnce"],
    "capacity": {"storage": "1Gi"},
    "hostPath": {"path": "/srv"},
}


@pytest.mark.parametrize(
    ("path", "spec", "said"),
    [
        pytest.param(
            DEPLOYMENTS,
            {**WEB, "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0",
            id="no surge and nothing away",
        ),
        pytest.param(
            DEPLOYMENTS,
            {**WEB, "strategy": {"type": "Recreate", "rollingUpdate": {}}},
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type`",
            id="recreate in turns",
        ),
        pytest.param(
            DEPLOYMENTS,
            {**WEB, "progressDeadlineSeconds": 5, "minReadySeconds": 5},
            "spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds",
            id="deadline too short",
        ),
        pytest.param(
            "/apis/apps/v1/namespaces/default/replicasets",
            {"template": TEMPLATE},
            "spec.selector: Required value",
            id="ReplicaSet without selector",
        ),
        pytest.param(
            "/apis/apps/v1/namespaces/default/statefulsets",
            {**WEB, "podManagementPolicy": "Any"},
            "spec.podManagementPolicy: Invalid value: \"Any\": must be 'OrderedReady' or",
            id="StatefulSet",
        ),
        pytest.param(
            "/apis/apps/v1/namespaces/default/statefulsets",
            {
                **WEB,
                "template": {**TEMPLATE, "spec": {"containers": [{"name": "C", "image": "i"}]}},
            },
            'spec.template.spec.containers[0].name: Invalid value: "C"',
            id="StatefulSet's container",
        ),
        pytest.param(
            JOBS,
            {"template": TEMPLATE},
            'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
            id="Job that restarts",
        ),
        pytest.param(
            JOBS,
            {**BATCH, "backoffLimitPerIndex": 1},
            "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
            id="Job without index",
        ),
        pytest.param(
            CLAIMS, {**CLAIM, "accessModes": []}, "at least 1 access mode is required", id="claim"
        ),
        pytest.param(
            f"{V1}/persistentvolumes",
            {**VOLUME, "nfs": {"server": "s", "path": "/"}},
            "spec.nfs: Forbidden: may not specify more than 1 volume type",
            id="volume with two sources",
        ),
        pytest.param(
            BUDGETS,
            {"minAvailable": 1, "maxUnavailable": 1},
            "minAvailable and maxUnavailable cannot be both set",
            id="budget",
        ),
        pytest.param(
            f"{V1}/namespaces/default/services",
            {"ports": [{"port": 1}, {"port": 2}]},
            "spec.ports[0].name: Required value",
            id="service with ports that have no name",
        ),
        pytest.param(
            "/apis/storage.k8s.io/v1/csinodes",
            {"drivers": [{"name": "d", "nodeID": "n"}, {"name": "d", "nodeID": "n"}]},
            'spec.drivers[1].name: Duplicate value: "d"',
            id="CSINode",
        ),
        pytest.param(
            NODES, {"podCIDR": "ten"}, "spec.podCIDRs[0]: Invalid value", id="node's addresses"
        ),
        pytest.param(
            PODS,
            {"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "v"}]}]},
            'spec.containers[0].volumeMounts[0].name: Not found: "v"',
            id="mount of nothing",
        ),
        pytest.param(
            PODS,
            {"containers": [{"name": "c", "image": "i", "imagePullPolicy": "Now"}]},
            'supported values: "Always", "IfNotPresent", "Never"',
            id="pull policy",
        ),
    ],
)
def test_a_spec(c: Client, path: str, spec: Json, said: str) -> None:
    assert (
        said in c.refused(422, "POST", path, {"metadata": {"name": "x"}, "spec": spec})["message"]
    )


@pytest.mark.parametrize(
    ("path", "body", "patch", "field"),
    [
        pytest.param(
            DEPLOYMENTS,
            {"spec": WEB},
            {
                "spec": {
                    "selector": {"matchLabels": {"app": "y"}},
                    "template": {"metadata": {"labels": {"app": "y"}}},
                }
            },
            "spec.selector",
            id="selector",
        ),
        pytest.param(
            CLASSES,
            {"provisioner": "p.io/x"},
            {"provisioner": "q"},
            "provisioner",
            id="provisioner",
        ),
        pytest.param(
            CLAIMS, {"spec": CLAIM}, {"spec": {"volumeMode": "Block"}}, "spec", id="claim"
        ),
        pytest.param(PRIORITIES, {"value": 1}, {"value": 2}, "value", id="priority"),
        pytest.param(
            CONFIG_MAPS, {"immutable": True}, {"data": {"a": "b"}}, "data", id="immutable map"
        ),
        pytest.param(
            NODES,
            {"spec": {"providerID": "a"}},
            {"spec": {"providerID": "b"}},
            "spec.providerID",
            id="provider",
        ),
        pytest.param(
            PODS,
            pod("x", activeDeadlineSeconds=5),
            {"spec": {"activeDeadlineSeconds": 6}},
            "spec.activeDeadlineSeconds",
            id="a pod's deadline is only brought forward",
        ),
    ],
)
def test_a_change(c: Client, path: str, body: Json, patch: Json, field: str) -> None:
    c.do("POST", path, {**body, "metadata": {"name": "x"}})
    assert fields_of(c.refused(422, "PATCH", f"{path}/x", patch, media=MERGE)) == [field]


# -- bodies and patches --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "body", "query", "words"),
    [
        pytest.param(400, b"", {}, "unexpected end of JSON input (<empty>)", id="empty"),
        pytest.param(
            400, b"[]", {}, "cannot unmarshal array into Go value of type struct", id="[]"
        ),
        pytest.param(422, b"null", {}, "metadata.name: Required value", id="null"),
        pytest.param(
            400,
            b'{"metadata":{"name":"a"},"data":{"k":"1","k":"2"}}',
            {"fieldValidation": "Strict"},
            'strict decoding error: duplicate field "data.k"',
            id="said twice",
        ),
        pytest.param(
            422, b"{}", {"dryRun": "Some"}, 'dryRun: Unsupported value: ["Some"]', id="dry run"
        ),
    ],
)
def test_a_body(c: Client, code: int, body: bytes, query: Mapping[str, str], words: str) -> None:
    assert words in c.refused(code, "POST", CONFIG_MAPS, body, **query)["message"]


@pytest.mark.parametrize(
    ("media", "patch", "code", "words"),
    [
        pytest.param(JSON_PATCH, [{"op": "turn", "path": "/a"}], 422, "rejected our", id="op"),
        pytest.param(JSON_PATCH, {}, 400, "type []handlers.jsonPatchOp", id="no list"),
        pytest.param(JSON_PATCH, [{}] * 10_001, 413, "maximum operations", id="too many"),
        pytest.param(MERGE, b"{x", 400, "error decoding patch: invalid character 'x'", id="broken"),
        pytest.param(STRATEGIC, b"{x", 400, "invalid character 'x'", id="broken strategic"),
        pytest.param(MERGE, {"metadata": {"uid": "u"}}, 422, "field is immutable", id="uid"),
        pytest.param(MERGE, {"kind": "Cat"}, 422, 'no kind "Cat" is registered', id="kind"),
        pytest.param(MERGE, {"metadata": None}, 400, "name must be provided", id="no metadata"),
        pytest.param(
            MERGE,
            {"metadata": {"resourceVersion": "x"}},
            500,
            'strconv.ParseUint: parsing "x": invalid syntax',
            id="no version",
        ),
        pytest.param(
            "application/apply-patch+yaml",
            {"kind": "Cat"},
            400,
            "object type: /, Kind=Cat",
            id="apply",
        ),
    ],
)
def test_a_patch(c: Client, media: str, patch: Any, code: int, words: str) -> None:
    c.do("POST", CONFIG_MAPS, {"metadata": {"name": "m"}})
    status = c.refused(code, "PATCH", f"{CONFIG_MAPS}/m", patch, media=media, fieldManager="t")
    assert words in status["message"]


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param([{"op": "remove", "path": "/data/z"}], id="what is not there is removed"),
        pytest.param([{"op": "replace", "path": "/data/z", "value": "1"}], id="or replaced"),
        pytest.param(None, id="null is no operation"),
    ],
)
def test_json_patches_that_are_taken(c: Client, patch: Any) -> None:
    c.do("POST", CONFIG_MAPS, {"metadata": {"name": "m"}, "data": {"a": "b"}})
    raw = b"null" if patch is None else patch
    assert c.do("PATCH", f"{CONFIG_MAPS}/m", raw, media=JSON_PATCH)["data"]["a"] == "b"


# -- reads, deletes and questions ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "query", "code", "words"),
    [
        pytest.param(PODS, {"labelSelector": "=a"}, 400, "expected: !, identifier", id="selector"),
        pytest.param(PODS, {"sendInitialEvents": "true"}, 422, "forbidden for list", id="initial"),
        pytest.param(PODS, {"timeoutSeconds": "x"}, 400, "strconv.ParseInt", id="timeout"),
        pytest.param(JOBS, {"fieldSelector": "a=b"}, 400, "not supported for Job", id="field"),
        pytest.param("/apis/apps/v2", {}, 404, "could not find the requested", id="version"),
        pytest.param(f"{NODES}/n", {"resourceVersion": "x"}, 500, "resourceVersion: Inv", id="get"),
    ],
)
def test_a_read(c: Client, path: str, query: Mapping[str, str], code: int, words: str) -> None:
    assert words in c.refused(code, "GET", path, **query)["message"]


def test_a_form_that_cannot_be_given(c: Client) -> None:
    c.do("POST", PODS, pod("p"))
    form = "application/json;as={};v=v1;g=meta.k8s.io"
    listed = form.format("PartialObjectMetadataList")
    status = c.refused(406, "GET", f"{PODS}/p", accept=listed)
    assert status["message"].endswith("the requested object is not a list (*core.Pod)")
    table = form.format("Table")
    status = c.refused(400, "GET", PODS, accept=table, includeObject="Half")
    assert 'includeObject: Invalid value: "Half"' in status["message"]


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        pytest.param(
            {"orphanDependents": True, "propagationPolicy": "Orphan"}, 422, "both set", id="both"
        ),
        pytest.param({"propagationPolicy": "Up"}, 422, '"Foreground", "Background"', id="policy"),
        pytest.param({"kind": "Pod", "apiVersion": "v1"}, 400, 'no kind "Pod"', id="kind"),
        pytest.param(
            {"preconditions": {"resourceVersion": "1"}}, 409, "on Deployment.apps", id="version"
        ),
    ],
)
def test_a_delete(c: Client, options: Json, code: int, words: str) -> None:
    c.do("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": WEB})
    assert words in c.refused(code, "DELETE", f"{DEPLOYMENTS}/d", options)["message"]


def test_a_system_class_stays_and_there_is_one_default(c: Client) -> None:
    c.refused(403, "DELETE", f"{PRIORITIES}/system-node-critical")
    c.do("POST", PRIORITIES, {"metadata": {"name": "a"}, "value": 1, "globalDefault": True})
    second = {"metadata": {"name": "b"}, "value": 2, "globalDefault": True}
    assert "a is already marked as default" in c.refused(403, "POST", PRIORITIES, second)["message"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({}, "spec.resourceAttributes", id="nothing"),
        pytest.param(
            {"resourceAttributes": {}, "nonResourceAttributes": {}},
            "spec.nonResourceAttributes",
            id="both",
        ),
    ],
)
def test_a_question(c: Client, spec: Json, field: str) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert fields_of(c.refused(422, "POST", path, {"spec": spec})) == [field]


# -- pods: bindings and evictions ----------------------------------------------------------------


def test_a_binding_says_which_pod_and_may_say_at_which_version(c: Client) -> None:
    version = c.do("POST", PODS, pod("p"))["metadata"]["resourceVersion"]
    target = {"kind": "Node", "name": "n"}
    path = f"{PODS}/p/binding"
    c.refused(400, "POST", path, {"target": target})
    stale = {"metadata": {"name": "p", "resourceVersion": "1"}, "target": target}
    assert "ResourceVersion in precondition: 1" in c.refused(409, "POST", path, stale)["message"]
    metadata = {"name": "p", "resourceVersion": version, "annotations": {"by": "me"}}
    c.do("POST", path, {"metadata": metadata, "target": target})
    assert c.do("GET", f"{PODS}/p")["metadata"]["annotations"] == {"by": "me"}


def test_an_evicted_pod_says_so(c: Client) -> None:
    c.do("POST", PODS, pod("p", nodeName="n"))
    c.do("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}})
    (condition,) = c.do("GET", f"{PODS}/p")["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "EvictionByEvictionAPI")


# -- custom resources ----------------------------------------------------------------------------

GEAR = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["teeth"],
            "properties": {
                "teeth": {"type": "integer", "minimum": 3},
                "metal": {"type": "string", "default": "brass", "maxLength": 6},
                "marks": {
                    "type": "array",
                    "x-kubernetes-list-type": "set",
                    "items": {"type": "string"},
                },
                "size": {"x-kubernetes-int-or-string": True},
            },
        },
        "status": {"type": "object", "properties": {"turns": {"type": "integer"}}},
    },
}


@pytest.fixture
def gears(c: Client) -> Client:
    scale = {"specReplicasPath": ".spec.teeth", "statusReplicasPath": ".status.turns"}
    version = {
        "name": "v1", "served": True, "storage": True,
        "schema": {"openAPIV3Schema": GEAR}, "subresources": {"status": {}, "scale": scale},
    }  # fmt: skip
    names = {"plural": "gears", "kind": "Gear"}
    spec = {
        "group": "shop.example.net", "scope": "Namespaced", "names": names, "versions": [version],
    }  # fmt: skip
    c.do("POST", DEFINITIONS, {"metadata": {"name": "gears.shop.example.net"}, "spec": spec})
    return c


def test_a_rehearsed_definition_is_not_there(gears: Client) -> None:
    body = gears.do("GET", f"{DEFINITIONS}/gears.shop.example.net")
    names = {"plural": "cogs", "kind": "Cog"}
    cogs = {"metadata": {"name": "cogs.shop.example.net"}, "spec": {**body["spec"], "names": names}}
    gears.do("POST", DEFINITIONS, cogs, dryRun="All")
    gears.refused(404, "GET", f"{DEFINITIONS}/cogs.shop.example.net")


def gear(**spec: Any) -> Json:
    identity = {"apiVersion": "shop.example.net/v1", "kind": "Gear", "metadata": {"name": "g"}}
    return {**identity, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "reason", "words"),
    [
        pytest.param(
            {"teeth": "5"}, "FieldValueTypeInvalid", 'of type integer: "string"', id="type"
        ),
        pytest.param({"teeth": 2}, "FieldValueInvalid", "greater than or equal to 3", id="least"),
        pytest.param({}, "FieldValueRequired", "spec.teeth: Required value", id="required"),
        pytest.param(
            {"teeth": 3, "metal": "platinum"}, "FieldValueTooLong", "more than 6 bytes", id="long"
        ),
        pytest.param(
            {"teeth": 3, "marks": ["a", "a"]}, "FieldValueDuplicate", "spec.marks[1]", id="set"
        ),
        pytest.param(
            {"teeth": 3, "size": True}, "FieldValueTypeInvalid", "type integer,string", id="either"
        ),
    ],
)
def test_a_schema(gears: Client, spec: Json, reason: str, words: str) -> None:
    status = gears.refused(422, "POST", GEARS, gear(**spec))
    assert [cause["reason"] for cause in status["details"]["causes"]] == [reason]
    assert words in status["message"]


def test_defaults_are_filled_in_and_the_status_has_a_door_of_its_own(gears: Client) -> None:
    made = gears.do("POST", GEARS, {**gear(teeth=9, metal=None), "status": {"turns": 1}})
    assert made["spec"] == {"teeth": 9, "metal": "brass"}
    assert "status" not in made
    patch = {"status": {"turns": 4}, "spec": {"teeth": 3}}
    told = gears.do("PATCH", f"{GEARS}/g/status", patch, media=MERGE)
    assert (told["spec"]["teeth"], told["status"]) == (9, {"turns": 4})
    scale = gears.do("GET", f"{GEARS}/g/scale")
    assert (scale["spec"], scale["status"]) == ({"replicas": 9}, {"replicas": 4})
    gears.do("PATCH", f"{GEARS}/g/scale", {"spec": {"replicas": 12}}, media=MERGE)
    assert gears.do("GET", f"{GEARS}/g")["spec"]["teeth"] == 12
    gears.refused(422, "PATCH", f"{GEARS}/g/scale", {"spec": {"replicas": 1}}, media=MERGE)
