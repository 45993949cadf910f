"""The sandbox gives the answers that a real kube-apiserver 1.36 gave (tests/data/api).

The recording is played in order. Only requests that the Cluster port knows are played here: HTTP,
tables, strategic patches and the like belong to the front.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.resources import RESOURCES
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.ports import ApiError

Json = dict[str, Any]
RECORDING = Path(__file__).parents[2] / "data" / "api" / "kube-apiserver-1.36.jsonl"
#: kinds that the front alone knows how to read and fill in
OF_THE_FRONT = {"ConfigMap", "CustomResourceDefinition", "Deployment", "Job", "Lease"}
BY_PATH = {
    (resource.group, resource.plural): resource.kind
    for resource in RESOURCES.values()
    if resource.kind not in OF_THE_FRONT
}

#: what differs from run to run
VARYING = frozenset(
    {
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "lastTransitionTime",
        "managedFields",
        "lastProbeTime",  # always null
    }
)

#: requests that speak of HTTP, or of what the sandbox does not store
NOT_OF_THE_PORT = {
    "pod-unknown-field",
    "pod-unknown-field-warn",
    "pod-dry-run",
    "pod-bad-json",
    "pod-wrong-ns",
    "pod-yaml",
    "pod-406",
    "pod-partial",
    "pod-table",
    "node-table",
    "pg-table",
    "pod-json-patch-test",
    "pod-patch-415",
    "evict-blocked",
    "delete-collection",
    "event-core",
    "list-limit-1",
    "list-limit-2",
    "list-bad-continue",
    "list-exact-missing",
    "event-bad",  # Events are not validated beyond their types
}

#: the port's own words differ on purpose
OTHER_WORDS = {
    "pod-wrong-kind",  # the real one speaks of Go types
    "pod-change-node",  # the real one appends a diff of Go structs
    "node-bad-quantity",  # the real one quotes the whole patched object
}


def steps() -> list[Json]:
    return [json.loads(line) for line in RECORDING.read_text().splitlines()]


class Player:
    """Plays requests of the recording on a sandbox."""

    def __init__(self) -> None:
        self.cluster = SandboxCluster(
            VirtualClock(1_800_000_000.0), rng=random.Random(3), history=10_000
        )
        self.answers: dict[str, Json] = {}

    def play(self, step: Json) -> tuple[int, Json] | None:
        """Status and body; None for a request that is not of the port."""
        call = self._call(step)
        if call is None:
            return None
        try:
            body = call()
        except ApiError as error:
            return error.code, {"message": error.message, "reason": error.reason}
        self.answers[step["step"]] = body
        return (201 if step["method"] == "POST" else 200), body

    def _call(self, step: Json) -> Callable[[], Json] | None:
        found = re.fullmatch(
            r"/(?:api|apis/([^/]+))/(?:v\w+)(?:/namespaces/([^/]+))?/(\w+)(?:/([\w.-]+))?(?:/(\w+))?",
            urlsplit(step["path"]).path,
        )
        if found is None or step["step"] in NOT_OF_THE_PORT:
            return None
        group, namespace, plural, name, subresource = found.groups()
        kind = BY_PATH.get((group or "", plural), BY_PATH.get(("events.k8s.io", plural)))
        if kind is None:
            return None
        query = {k: unquote(v[0]) for k, v in parse_qs(urlsplit(step["path"]).query).items()}
        if "watch" in query:
            return None
        return self._request(step, kind, namespace or "", name or "", subresource or "", query)

    def _request(
        self, step: Json, kind: str, namespace: str, name: str, sub: str, query: dict[str, str]
    ) -> Callable[[], Json] | None:
        cluster, method = self.cluster, step["method"]
        body = self._filled(step.get("body"))
        if method == "GET" and name:
            return lambda: cluster.get(kind, namespace, name)
        if method == "GET":
            return lambda: self._list(kind, namespace, query)
        if method == "POST" and sub == "binding":
            uid = body["metadata"].get("uid", "")
            return lambda: cluster.bind(namespace, name, uid, body["target"].get("name", "")) or {}
        if method == "POST":
            body["metadata"].setdefault("namespace", namespace)
            return lambda: cluster.create(kind, body)
        if method == "PUT" and name:
            body["metadata"].setdefault("namespace", namespace)
            return lambda: cluster.update(kind, body)
        if step["step"] == "pod-json-patch":
            (operation,) = body
            assert operation["op"] == "add"
            annotations = {"metadata": {"annotations": operation["value"]}}
            return lambda: cluster.patch(kind, namespace, name, annotations)
        if method == "PATCH":
            # None of the recording's strategic patches of maps differs from a merge patch, and
            # those of lists set a list that was empty.
            return lambda: cluster.patch(kind, namespace, name, body, subresource=sub)
        if method == "DELETE":
            grace = (body or {}).get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
            uid = (body or {}).get("preconditions", {}).get("uid", "")
            return lambda: self._delete(kind, namespace, name, uid, grace)
        return None

    def _list(self, kind: str, namespace: str, query: dict[str, str]) -> Json:
        found = self.cluster.list(
            kind,
            namespace or None,
            query.get("labelSelector", ""),
            query.get("fieldSelector", ""),
        )
        items = [
            {k: v for k, v in obj.items() if k not in ("kind", "apiVersion")} for obj in found.items
        ]
        return {"items": items}

    def _delete(self, kind: str, namespace: str, name: str, uid: str, grace: Any) -> Json:
        seconds = None if grace is None else int(grace)
        self.cluster.delete(kind, namespace, name, uid=uid, grace_period_seconds=seconds)
        return {}

    def _filled(self, body: Any) -> Any:
        if body is None:
            return None

        def uid_of(match: re.Match[str]) -> str:
            return str(self.answers[match[1]]["metadata"]["uid"])

        return json.loads(re.sub(r"\{uid:([\w-]+)\}", uid_of, json.dumps(body)))


def comparable(found: Any) -> Any:
    """Without what varies from run to run."""
    if isinstance(found, dict):
        return {k: comparable(v) for k, v in found.items() if k not in VARYING}
    if isinstance(found, list):
        return [comparable(v) for v in found]
    return found


def as_the_sandbox_stores_it(expected: Json) -> Json:
    """Where the sandbox leaves something out on purpose, the real answer leaves it out too."""
    text = json.dumps(expected)
    found: Json = json.loads(text)
    for obj in found.get("items", [found]):
        _leave_out(obj)
    return found


def _leave_out(obj: Json) -> None:
    status, spec = obj.get("status"), obj.get("spec", {})
    if isinstance(status, dict):
        for key in ("daemonEndpoints", "nodeInfo"):
            status.pop(key, None)  # empty without a kubelet
        if not status:
            obj.pop("status")
    # No controller would take this taint away again: the sandbox's nodes are ready.
    taints = [t for t in spec.get("taints", []) if t["key"] != "node.kubernetes.io/not-ready"]
    if "taints" in spec:
        spec["taints"] = taints
        if not taints:
            spec.pop("taints")
    for key in [k for k in obj if k.startswith("deprecated")]:
        obj.pop(key)
    generated = obj.get("metadata", {})
    if generated.get("generateName"):
        generated["name"] = "?"


def test_the_recording_is_answered_alike() -> None:
    player = Player()
    compared = 0
    for step in steps():
        answer = player.play(step)
        if answer is None:
            continue
        compared += 1
        label = step["step"]
        status, body = answer
        real = step["response"]
        assert status == step["status"], f"{label}: {body}"
        if status >= 400:
            assert body["reason"] == real.get("reason", ""), label
            if label not in OTHER_WORDS:
                assert without_uids(body["message"]) == without_uids(real["message"]), label
        elif step["method"] != "DELETE" and "binding" not in step["path"]:
            expected = comparable(as_the_sandbox_stores_it(real))
            got = comparable(as_the_sandbox_stores_it(body))
            for volatile in ("apiVersion", "kind", "metadata"):
                if "items" in got:
                    expected.pop(volatile, None)
            assert got == expected, label
    assert compared >= 60


def without_uids(message: str) -> str:
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID", message)


def test_a_watch_tells_what_the_real_one_told() -> None:
    """Steps pods-at to watch-selector of the recording."""
    cluster = SandboxCluster(VirtualClock(1_800_000_000.0))
    version = cluster.resource_version
    cluster.create("Pod", pod_of("pw", {"app": "web"}))
    cluster.patch("Pod", "default", "pw", {"metadata": {"labels": {"app": "db"}}})
    cluster.delete("Pod", "default", "pw", grace_period_seconds=0)

    def told(**selectors: str) -> list[tuple[str, dict[str, str]]]:
        events: list[Any] = []
        cluster.watch_from("Pod", version, events.append, **selectors).stop()
        return [
            (e.type, e.object["metadata"].get("labels", {})) for e in events if e.type != "BOOKMARK"
        ]

    recorded = {
        step["step"]: step["response"]["events"] for step in steps() if "watch" in step["step"]
    }
    for name, selectors in (
        ("watch-from", {}),
        ("watch-selector", {"label_selector": "app=web"}),
    ):
        real = [(e["type"], e["object"]["metadata"]["labels"]) for e in recorded[name]]
        assert told(**selectors) == real, name


def pod_of(name: str, labels: dict[str, str]) -> Json:
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "app:v1"}]},
    }


@pytest.fixture(autouse=True)
def _recording_is_there() -> None:
    assert RECORDING.is_file()
