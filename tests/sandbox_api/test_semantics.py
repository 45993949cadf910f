"""What kube-apiserver does beyond the recorded requests, request by request."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.api.messages import Answer, Request
from scheduler_core.cluster.api.schema import struct
from scheduler_core.cluster.api.server import ApiServer
from scheduler_core.cluster.api.strategic import strategic_merge
from scheduler_core.cluster.api.streams import Stream
from scheduler_core.cluster.sandbox import SandboxCluster

Json = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class Client:
    """Asks one ApiServer."""

    def __init__(self, history: int = 1000) -> None:
        self.clock = VirtualClock(1_800_000_000.0)
        self.cluster = SandboxCluster(self.clock, rng=random.Random(5), history=history)
        self.api = ApiServer(self.cluster)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        media: str = "application/json",
        accept: str = "application/json",
        agent: str = "test/1",
        **query: str,
    ) -> Any:
        raw = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        headers = {"content-type": media, "accept": accept, "user-agent": agent}
        return self.api.answer(Request(method, path, query, headers, raw))

    def do(self, method: str, path: str, body: Any = None, **more: Any) -> Json:
        """The body of an answer that is a success."""
        answer: Answer = self.ask(method, path, body, **more)
        assert answer.status < 300, answer.body
        return answer.object

    def refused(self, code: int, method: str, path: str, body: Any = None, **more: Any) -> Json:
        """The Status of an answer that is a refusal."""
        answer: Answer = self.ask(method, path, body, **more)
        assert (answer.status, answer.object["kind"]) == (code, "Status"), answer.body
        assert answer.object["code"] == code
        return answer.object

    def watch(self, path: str, **query: str) -> list[Json]:
        """The events of a watch so far."""
        stream = self.ask("GET", path, watch="1", **query)
        assert isinstance(stream, Stream), stream
        events: list[Json] = []
        stream.start(events.append)
        stream.stop()
        return events


@pytest.fixture
def c() -> Client:
    return Client()


def pod(name: str, **spec: Any) -> Json:
    container = {"name": "c", "image": "registry.example/app:v1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [container], **spec},
    }


def deployment(name: str, replicas: int = 2) -> Json:
    template = {"metadata": {"labels": {"app": name}}, "spec": pod("x")["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        },
    }


def config_map(name: str, **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


# -- decoding ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(
            {"spec": {"containers": {}}},
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type "
            "[]v1.Container",
            id="object for list",
        ),
        pytest.param(
            {"spec": {"priority": "high"}},
            "cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32",
            id="text for number",
        ),
        pytest.param(
            {"spec": {"containers": [{"resources": {"requests": {"cpu": "lots"}}}]}},
            "quantities must match the regular expression",
            id="no quantity",
        ),
        pytest.param({"spec": {"priority": 2**40}}, "of type int32", id="more than 32 bits"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(c: Client, given: Json, message: str) -> None:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, **given}
    status = c.refused(400, "POST", PODS, body)
    assert status["message"].startswith('Pod in version "v1" cannot be handled as a Pod: ')
    assert message in status["message"]


@pytest.mark.parametrize(
    ("given", "written"),
    [("0.5", "500m"), ("1000m", "1"), (2, "2"), ("1024Mi", "1Gi"), ("1.5Gi", "1536Mi"),
     ("1000", "1k"), ("1e3", "1e3"), ("0", "0")],
)  # fmt: skip
def test_quantities_are_written_the_short_way(c: Client, given: Any, written: str) -> None:
    body = pod("p")
    body["spec"]["containers"][0]["resources"] = {"requests": {"memory": given}}
    made = c.do("POST", PODS, body)
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"memory": written}


def test_empty_values_are_as_if_not_said(c: Client) -> None:
    body = pod("p", nodeName="", nodeSelector={}, volumes=[], hostNetwork=False)
    spec = c.do("POST", PODS, body)["spec"]
    assert not {"nodeName", "nodeSelector", "volumes", "hostNetwork"} & spec.keys()


def test_yaml_is_read_and_written(c: Client) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\ndata: {day: '2026-01-01'}\n"
    answer = c.ask("POST", CONFIG_MAPS, text, media="application/yaml", accept="application/yaml")
    assert (answer.status, answer.content_type) == (201, "application/yaml")
    assert "kind: ConfigMap" in answer.body


@pytest.mark.parametrize(
    ("kind", "path", "spec"),
    [
        pytest.param(
            "StatefulSet",
            "/apis/apps/v1/namespaces/default/statefulsets",
            {
                "podManagementPolicy": "OrderedReady",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                "revisionHistoryLimit": 10,
            },
            id="StatefulSet",
        ),
        pytest.param(
            "ReplicationController",
            "/api/v1/namespaces/default/replicationcontrollers",
            {},
            id="ReplicationController",
        ),
    ],
)
def test_a_kind_without_a_controller_is_completed_and_warned_of(
    c: Client, kind: str, path: str, spec: dict[str, Any]
) -> None:
    labels = {"app": "db"}
    body = {
        "metadata": {"name": "db"},
        "spec": {
            "selector": {"matchLabels": labels} if kind == "StatefulSet" else labels,
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "db:1"}]},
            },
        },
    }
    made = c.ask("POST", path, body)
    assert made.status == 201
    assert made.warnings == (
        f"a sandbox has no controller for {kind}s: it is kept, but no pods are made",
    )
    assert {**spec, "replicas": 1}.items() <= made.object["spec"].items()
    assert made.object["spec"]["template"]["spec"]["restartPolicy"] == "Always"
    assert (
        c.ask(
            "PATCH", f"{path}/db", {"spec": {"replicas": 3}}, media="application/merge-patch+json"
        ).warnings
        == ()
    )


def test_unknown_fields_are_warned_of_dropped_or_refused(c: Client) -> None:
    body = pod("p")
    body["spec"]["containers"][0]["imagee"] = "x"
    warned = c.ask("POST", PODS, body, dryRun="All")
    assert warned.warnings == ('unknown field "spec.containers[0].imagee"',)
    assert "imagee" not in warned.object["spec"]["containers"][0]
    assert c.ask("POST", PODS, body, dryRun="All", fieldValidation="Ignore").warnings == ()
    refused = c.refused(400, "POST", PODS, body, fieldValidation="Strict")
    assert 'strict decoding error: unknown field "spec.containers[0].imagee"' in refused["message"]
    wrong = c.refused(422, "POST", PODS, body, fieldValidation="Sometimes")
    assert "fieldValidation: Unsupported value" in wrong["message"]


# -- lists and watches ---------------------------------------------------------------------------


def test_pages_of_a_list_are_of_one_moment(c: Client) -> None:
    for name in ("a", "b", "c", "d"):
        c.do("POST", CONFIG_MAPS, config_map(name))
    first = c.do("GET", CONFIG_MAPS, limit="2")
    assert first["metadata"]["remainingItemCount"] == 2
    c.do("DELETE", f"{CONFIG_MAPS}/c")
    c.do("POST", CONFIG_MAPS, config_map("bb"))
    token = {"continue": first["metadata"]["continue"], "limit": "5"}
    second = c.do("GET", CONFIG_MAPS, **token)
    assert [item["metadata"]["name"] for item in second["items"]] == ["c", "d"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert "continue" not in second["metadata"]


def test_a_page_of_a_forgotten_moment_is_gone() -> None:
    c = Client(history=4)
    for name in ("a", "b", "c"):
        c.do("POST", CONFIG_MAPS, config_map(name))
    token = c.do("GET", CONFIG_MAPS, limit="1")["metadata"]["continue"]
    for number in range(6):
        c.do("PUT", f"{CONFIG_MAPS}/a", config_map("a", n=str(number)))
    status = c.refused(410, "GET", CONFIG_MAPS, **{"continue": token})
    assert status["reason"] == "Expired"


def test_an_exact_version_is_listed_as_it_was(c: Client) -> None:
    c.do("POST", CONFIG_MAPS, config_map("a", n="1"))
    version = c.do("GET", CONFIG_MAPS)["metadata"]["resourceVersion"]
    c.do("PUT", f"{CONFIG_MAPS}/a", config_map("a", n="2"))
    c.do("POST", CONFIG_MAPS, config_map("b"))
    exact = {"resourceVersion": version, "resourceVersionMatch": "Exact"}
    items = c.do("GET", CONFIG_MAPS, **exact)["items"]
    assert [item["data"] for item in items] == [{"n": "1"}]


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ({"resourceVersionMatch": "Exact"}, 422, "unless resourceVersion is provided"),
        ({"resourceVersionMatch": "Nearly", "resourceVersion": "1"}, 422, "Unsupported value"),
        ({"resourceVersion": "x"}, 400, "invalid resource version"),
        ({"labelSelector": "a in b"}, 400, "unable to parse requirement"),
        ({"fieldSelector": "data.a=1"}, 400, '"data.a" is not a known field selector'),
        ({"limit": "many"}, 400, "parsing"),
    ],
)
def test_options_of_lists_that_make_no_sense(
    c: Client, query: Mapping[str, str], code: int, words: str
) -> None:
    assert words in c.refused(code, "GET", CONFIG_MAPS, **query)["message"]


def test_a_watch_from_a_forgotten_version_is_gone() -> None:
    c = Client(history=3)
    for number in range(8):
        c.do("POST", CONFIG_MAPS, config_map(f"m{number}"))
    (event,) = c.watch(CONFIG_MAPS, resourceVersion="2")
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert "too old resource version: 2" in event["object"]["message"]


def test_a_watch_without_a_version_begins_with_what_is_there(c: Client) -> None:
    c.do("POST", CONFIG_MAPS, config_map("a"))
    assert [event["type"] for event in c.watch(CONFIG_MAPS)] == ["ADDED"]
    assert [event["type"] for event in c.watch(CONFIG_MAPS, resourceVersion="0")] == ["ADDED"]


def test_a_watch_of_one_object(c: Client) -> None:
    c.do("POST", CONFIG_MAPS, config_map("a"))
    c.do("POST", CONFIG_MAPS, config_map("b"))
    (event,) = c.watch(f"{CONFIG_MAPS}/a")
    assert event["object"]["metadata"]["name"] == "a"


def test_bookmarks_are_for_those_who_ask(c: Client) -> None:
    initial = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    c.do("POST", CONFIG_MAPS, config_map("a"))
    assert [e["type"] for e in c.watch(CONFIG_MAPS, **initial)] == ["ADDED"]
    events = c.watch(CONFIG_MAPS, allowWatchBookmarks="true", **initial)
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    missing = c.refused(422, "GET", CONFIG_MAPS, watch="1", sendInitialEvents="true")
    assert "sendInitialEvents requires setting resourceVersionMatch" in missing["message"]


def test_only_the_first_table_of_a_watch_has_columns(c: Client) -> None:
    for name in ("a", "b"):
        c.do("POST", CONFIG_MAPS, config_map(name))
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    first, second = c.watch(CONFIG_MAPS, accept=accept)
    assert first["object"]["columnDefinitions"]
    assert second["object"]["columnDefinitions"] == []
    assert second["object"]["rows"][0]["cells"][0] == "b"


# -- writes --------------------------------------------------------------------------------------


def test_a_dry_run_leaves_nothing_behind(c: Client) -> None:
    before = c.cluster.resource_version
    c.do("POST", PODS, pod("p"), dryRun="All")
    assert c.cluster.resource_version == before
    c.do("POST", PODS, pod("p"))
    after = c.cluster.resource_version
    labels = {"metadata": {"labels": {"a": "b"}}}
    merge = "application/merge-patch+json"
    patched = c.do("PATCH", f"{PODS}/p", labels, media=merge, dryRun="All")
    assert patched["metadata"]["labels"]["a"] == "b"
    c.do("DELETE", f"{PODS}/p", dryRun="All")
    assert c.cluster.resource_version == after


def test_an_update_that_changes_nothing_is_no_write(c: Client) -> None:
    made = c.do("POST", CONFIG_MAPS, config_map("a", n="1"))
    again = c.do("PUT", f"{CONFIG_MAPS}/a", config_map("a", n="1"))
    assert again == made


def test_kinds_that_insist_on_a_version(c: Client) -> None:
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    body = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    c.do("POST", budgets, body)
    status = c.refused(422, "PUT", f"{budgets}/b", body)
    assert status["details"]["causes"][0]["field"] == "metadata.resourceVersion"


def test_a_lease_is_created_by_an_update(c: Client) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}
    assert c.ask("PUT", path, body).status == 201
    assert c.refused(404, "PUT", f"{CONFIG_MAPS}/absent", config_map("absent"))


def test_names_and_namespaces_have_to_agree(c: Client) -> None:
    c.do("POST", CONFIG_MAPS, config_map("a"))
    other = c.refused(400, "PUT", f"{CONFIG_MAPS}/a", config_map("b"))
    assert other["message"] == "the name of the object (b) does not match the name on the URL (a)"


@pytest.mark.parametrize(
    ("order", "names"),
    [
        pytest.param(["b", "a"], ["b", "a"], id="turned round"),
        pytest.param(["new", "a", "b"], ["new", "a", "b"], id="new in front"),
        pytest.param(["a", "b", "new"], ["a", "b", "new"], id="new behind"),
    ],
)
def test_the_order_that_a_patch_sets(order: list[str], names: list[str]) -> None:
    def containers(*named: str) -> list[Json]:
        return [{"name": name} for name in named]

    patch = {"$setElementOrder/containers": containers(*order)}
    if "new" in order:
        patch["containers"] = containers("new")
    target = {"spec": {"containers": containers("a", "b")}}
    found = strategic_merge(struct("Pod"), target, {"spec": patch})
    assert [entry["name"] for entry in found["spec"]["containers"]] == names


@pytest.mark.parametrize(
    ("path", "method", "code"),
    [
        ("/api/v1/pods", "POST", 405),
        (f"{PODS}/p/exec", "POST", 404),
        (f"{PODS}/p/binding", "GET", 405),
        ("/api/v1/namespaces", "DELETE", 405),
        ("/api/v2/pods", "GET", 404),
        ("/apis/apps/v1beta1/deployments", "GET", 404),
        ("/apis/apps/v1/namespaces/default/daemonsets", "GET", 404),
        ("/nothing", "GET", 404),
    ],
)
def test_paths_and_methods_that_are_not_served(
    c: Client, path: str, method: str, code: int
) -> None:
    assert c.ask(method, path, {} if method == "POST" else None).status == code


def test_merge_keys_of_a_strategic_patch(c: Client) -> None:
    c.do("POST", DEPLOYMENTS, deployment("d"))
    side = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "s"}]}}}}
    media = "application/strategic-merge-patch+json"
    found = c.do("PATCH", f"{DEPLOYMENTS}/d", side, media=media)
    names = [x["name"] for x in found["spec"]["template"]["spec"]["containers"]]
    assert names == ["side", "c"]  # what is new comes before what the patch does not name
    gone = [{"name": "side", "$patch": "delete"}]
    found = c.do(
        "PATCH",
        f"{DEPLOYMENTS}/d",
        {"spec": {"template": {"spec": {"containers": gone}}}},
        media=media,
    )
    assert [x["name"] for x in found["spec"]["template"]["spec"]["containers"]] == ["c"]


def test_a_strategy_keeps_only_the_keys_that_are_named(c: Client) -> None:
    c.do("POST", DEPLOYMENTS, deployment("d"))
    strategy = {"$retainKeys": ["type"], "type": "Recreate"}
    media = "application/strategic-merge-patch+json"
    found = c.do("PATCH", f"{DEPLOYMENTS}/d", {"spec": {"strategy": strategy}}, media=media)
    assert found["spec"]["strategy"] == {"type": "Recreate"}


# -- server-side apply ---------------------------------------------------------------------------

APPLY = "application/apply-patch+yaml"


def test_what_an_applier_stops_saying_goes(c: Client) -> None:
    path = f"{CONFIG_MAPS}/a"
    c.do("PATCH", path, config_map("a", x="1", y="1"), media=APPLY, fieldManager="me")
    c.do("PATCH", path, {"data": {"z": "1"}}, media="application/merge-patch+json")
    found = c.do("PATCH", path, config_map("a", x="1"), media=APPLY, fieldManager="me")
    assert found["data"] == {"x": "1", "z": "1"}
    managers = {entry["manager"]: entry for entry in found["metadata"]["managedFields"]}
    assert managers["me"]["fieldsV1"] == {"f:data": {"f:x": {}}}
    assert managers["test"]["fieldsV1"] == {"f:data": {"f:z": {}}}


def test_a_field_that_two_say_alike_has_two_managers(c: Client) -> None:
    path = f"{CONFIG_MAPS}/a"
    c.do("PATCH", path, config_map("a", x="1"), media=APPLY, fieldManager="me")
    c.do("PATCH", path, config_map("a", x="1"), media=APPLY, fieldManager="you")
    found = c.do("PATCH", path, config_map("a"), media=APPLY, fieldManager="me")
    assert found["data"] == {"x": "1"}


def test_an_applier_means_every_field(c: Client) -> None:
    body = {**config_map("a"), "dta": {"x": "1"}}
    status = c.refused(500, "PATCH", f"{CONFIG_MAPS}/a", body, media=APPLY, fieldManager="me")
    assert status["message"] == (
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): "
        ".dta: field not declared in schema"
    )
    path, body = f"{CONFIG_MAPS}/a", {"metadata": {"name": "a"}}
    status = c.refused(400, "PATCH", path, body, media=APPLY, fieldManager="me")
    assert status["message"] == "invalid object type: /, Kind="


def test_applying_the_same_again_is_no_write(c: Client) -> None:
    path = f"{DEPLOYMENTS}/d"
    first = c.do("PATCH", path, deployment("d"), media=APPLY, fieldManager="me")
    c.clock.advance(60)
    assert c.do("PATCH", path, deployment("d"), media=APPLY, fieldManager="me") == first


def test_a_conflict_names_every_field_and_manager(c: Client) -> None:
    path = f"{DEPLOYMENTS}/d"
    c.do("PATCH", path, deployment("d"), media=APPLY, fieldManager="me")
    other = deployment("d", replicas=7)
    other["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    status = c.refused(409, "PATCH", path, other, media=APPLY, fieldManager="you")
    assert status["message"] == (
        'Apply failed with 2 conflicts: conflicts with "me":\n'
        "- .spec.replicas\n"
        '- .spec.template.spec.containers[name="c"].image'
    )
    assert {cause["reason"] for cause in status["details"]["causes"]} == {"FieldManagerConflict"}


def test_objects_from_elsewhere_have_a_manager_before_the_first_apply(c: Client) -> None:
    c.cluster.create("ConfigMap", config_map("a", x="1"))
    path = f"{CONFIG_MAPS}/a"
    status = c.refused(409, "PATCH", path, config_map("a", x="2"), media=APPLY, fieldManager="me")
    assert "before-first-apply" in status["message"]


# -- deletes and evictions -----------------------------------------------------------------------


def test_what_a_delete_answers(c: Client) -> None:
    made = c.do("POST", CONFIG_MAPS, config_map("a"))
    status = c.do("DELETE", f"{CONFIG_MAPS}/a")
    assert status["status"] == "Success"
    assert status["details"] == {
        "name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"],
    }  # fmt: skip


def test_preconditions_of_a_delete(c: Client) -> None:
    c.do("POST", CONFIG_MAPS, config_map("a"))
    wrong = {"preconditions": {"resourceVersion": "1"}}
    assert (
        "ResourceVersion in the precondition"
        in c.refused(409, "DELETE", f"{CONFIG_MAPS}/a", wrong)["message"]
    )


def test_finalizers_hold_an_object(c: Client) -> None:
    body = config_map("a")
    body["metadata"]["finalizers"] = ["example.com/hold"]
    c.do("POST", CONFIG_MAPS, body)
    going = c.do("DELETE", f"{CONFIG_MAPS}/a")
    assert going["metadata"]["deletionTimestamp"]
    free = {"metadata": {"finalizers": None}}
    c.do("PATCH", f"{CONFIG_MAPS}/a", free, media="application/merge-patch+json")
    c.refused(404, "GET", f"{CONFIG_MAPS}/a")


def test_an_eviction_is_paid_from_the_budget(c: Client) -> None:
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": spec}
    c.do("POST", budgets, {**body, "metadata": {"name": "b"}})
    merge = "application/merge-patch+json"
    for name in ("p1", "p2"):
        c.do("POST", PODS, pod(name))
        ready = {"type": "Ready", "status": "True"}
        status = {"status": {"phase": "Running", "conditions": [ready]}}
        c.do("PATCH", f"{PODS}/{name}/status", status, media=merge)
    allowed = {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2}
    c.do("PATCH", f"{budgets}/b/status", {"status": allowed}, media=merge)

    def eviction(name: str) -> Json:
        return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}

    assert c.ask("POST", f"{PODS}/p1/eviction", eviction("p1")).status == 201
    left = c.do("GET", f"{budgets}/b")["status"]
    assert left["disruptionsAllowed"] == 0
    assert list(left["disruptedPods"]) == ["p1"]
    answer = c.ask("POST", f"{PODS}/p2/eviction", eviction("p2"))
    assert answer.status == 429
    (cause,) = answer.object["details"]["causes"]
    assert cause["message"] == "The disruption budget b does not allow evicting pods currently"
    assert "Retry-After" not in answer.headers


# -- custom resources ----------------------------------------------------------------------------


def definition(**schema: Any) -> Json:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
    }
    names = {"plural": "widgets", "kind": "Widget"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "names": names, "scope": "Namespaced", "versions": [version],
        },
    }  # fmt: skip


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def widget(name: str, **spec: Any) -> Json:
    return {
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec,
    }  # fmt: skip


def test_a_definition_is_served_at_once_and_goes_with_its_objects(c: Client) -> None:
    size = {"type": "integer", "minimum": 1}
    c.do("POST", CRDS, definition(type="object", properties={"size": size}))
    found = c.do("GET", f"{CRDS}/widgets.example.com")
    established = {x["type"]: x["status"] for x in found["status"]["conditions"]}
    assert established["Established"] == "True"
    made = c.do("POST", WIDGETS, widget("w", size=3, colour="red"))
    assert made["spec"] == {"size": 3}
    bad = c.refused(422, "POST", WIDGETS, widget("x", size=0))
    assert bad["details"]["causes"][0]["field"] == "spec.size"
    assert (
        "must be of type integer"
        in c.refused(422, "POST", WIDGETS, widget("x", size="a"))["message"]
    )
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    table = c.do("GET", WIDGETS, accept=accept)
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Size"]
    assert table["rows"][0]["cells"] == ["w", 3]
    c.do("DELETE", f"{CRDS}/widgets.example.com")
    assert c.ask("GET", WIDGETS).status == 404
    c.do("POST", CRDS, definition(type="object"))
    assert c.do("GET", WIDGETS)["items"] == []


def test_strategic_patches_are_for_built_in_kinds(c: Client) -> None:
    c.do("POST", CRDS, definition(type="object"))
    c.do("POST", WIDGETS, widget("w"))
    media = "application/strategic-merge-patch+json"
    c.refused(415, "PATCH", f"{WIDGETS}/w", {"spec": {}}, media=media)


def test_the_sandboxes_own_kinds_stay(c: Client) -> None:
    c.refused(403, "DELETE", f"{CRDS}/podgroups.scheduling.x-k8s.io")


# -- events, scale -------------------------------------------------------------------------------


def test_an_event_of_the_core_group_is_one_of_the_new_group(c: Client) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Because",
        "message": "so it is",
        "type": "Normal",
        "count": 3,
        "source": {"component": "me"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
    }
    c.do("POST", "/api/v1/namespaces/default/events", body)
    new = c.do("GET", "/apis/events.k8s.io/v1/namespaces/default/events/e")
    assert (new["note"], new["regarding"]["name"], new["deprecatedCount"]) == ("so it is", "p", 3)
    selected = c.do("GET", "/api/v1/events", fieldSelector="involvedObject.name=p")
    assert [item["message"] for item in selected["items"]] == ["so it is"]


def test_scale_is_a_view_of_replicas(c: Client) -> None:
    c.do("POST", DEPLOYMENTS, deployment("d"))
    scale = c.do("GET", f"{DEPLOYMENTS}/d/scale")
    scale["spec"]["replicas"] = 4
    assert c.do("PUT", f"{DEPLOYMENTS}/d/scale", scale)["spec"]["replicas"] == 4
    c.refused(409, "PUT", f"{DEPLOYMENTS}/d/scale", scale)
    less = {"spec": {"replicas": -1}}
    media = "application/merge-patch+json"
    c.refused(422, "PATCH", f"{DEPLOYMENTS}/d/scale", less, media=media)
    assert c.do("GET", f"{DEPLOYMENTS}/d")["metadata"]["generation"] == 2
