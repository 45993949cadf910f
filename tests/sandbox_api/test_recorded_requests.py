"""The sandbox's API answers the 121 recorded requests as kube-apiserver 1.36 did."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.api.messages import Request
from scheduler_core.cluster.api.server import ApiServer
from scheduler_core.cluster.api.streams import Stream
from scheduler_core.cluster.sandbox import SandboxCluster
from tests.sandbox_api.player import (
    Answered,
    Json,
    Player,
    comparable,
    from_yaml,
    steps,
    without_ages,
)

#: texts of versions and of health checks are not compared
OWN_TEXTS = {"get-version", "get-livez-verbose"}
DISCOVERY = {
    "get-apis", "get-core-v1", "get-apps-v1", "get-batch-v1", "get-policy-v1", "get-storage-v1",
    "get-scheduling-v1", "get-coordination-v1", "get-events-v1", "apis-aggregated",
    "api-aggregated",
}  # fmt: skip
#: the recording server's storage refused this one
NOT_A_MODEL = {"watch-bookmarks"}
#: built in here: the definition of PodGroup
BUILT_IN = {"crd"}
#: after the words compared, the real one appends a diff of its internal Go structs
WITH_A_GO_DIFF = {"pod-change-node"}


class InProcess:
    """Sends requests to an ApiServer, without a socket."""

    def __init__(self) -> None:
        self.clock = VirtualClock(1_800_000_000.0)
        self.api = ApiServer(SandboxCluster(self.clock, rng=random.Random(3)))

    def send(
        self,
        method: str,
        path: str,
        query: dict[str, str],
        headers: dict[str, str],
        body: bytes,
    ) -> Answered:
        lower = {key.lower(): value for key, value in headers.items()}
        answer = self.api.answer(Request(method, path, query, lower, body))
        if isinstance(answer, Stream):
            events: list[Json] = []
            answer.start(lambda event: events.append(json.loads(json.dumps(event))))
            answer.stop()
            return 200, "application/json", {"events": events}, {}
        found: Any = answer.body
        if "json" in answer.content_type:
            found = json.loads(json.dumps(found))
        told = dict(answer.headers)
        if answer.warnings:
            told["Warning"] = " ".join(answer.warnings)
        return answer.status, answer.content_type, found, told


@pytest.fixture(scope="module")
def played() -> dict[str, tuple[Json, Answered]]:
    """Step -> (as recorded, as answered); they build on each other, so they are played once."""
    sender = InProcess()
    player = Player(sender.send)
    return {step["step"]: (step, player.play(step)) for step in steps()}


def entry_name(entry: Json) -> str:
    return str(
        entry.get("name")
        or entry.get("resource")
        or entry.get("subresource")
        or entry.get("version")
        or entry.get("metadata", {}).get("name", "")
    )


def assert_looks_alike(found: Any, recorded: Any, where: str = "") -> None:
    """What is served looks as recorded; groups and resources may be missing, or more."""
    if isinstance(found, dict):
        assert found.keys() == recorded.keys(), where
        for key, part in found.items():
            assert_looks_alike(part, recorded[key], f"{where}.{key}")
    elif isinstance(found, list) and found and isinstance(found[0], dict):
        known = {entry_name(entry): entry for entry in recorded}
        for entry in found:
            name = entry_name(entry)
            if name in known:
                assert_looks_alike(entry, known[name], f"{where}[{name}]")
    else:
        assert found == recorded, where


def test_every_step_is_recorded() -> None:
    assert len(steps()) == 121


@pytest.mark.parametrize("name", [step["step"] for step in steps()])
def test_a_request_is_answered_as_recorded(
    played: dict[str, tuple[Json, Answered]], name: str
) -> None:
    step, (status, content_type, body, headers) = played[name]
    if name in BUILT_IN:
        assert (status, body["reason"]) == (409, "AlreadyExists")
        return
    assert (status, content_type) == (step["status"], step["contentType"])
    recorded, found = comparable(step["response"]), comparable(body)
    if name in DISCOVERY:
        assert_looks_alike(found, recorded)
    elif name in OWN_TEXTS:
        assert found
    elif name in NOT_A_MODEL:
        assert_initial_events(found["events"])
    elif name in WITH_A_GO_DIFF:
        assert_same_but_for_the_diff(found, recorded)
    elif content_type == "application/yaml":
        assert from_yaml(found) == from_yaml(recorded["text"])
    elif content_type.startswith("text/plain"):
        assert found == recorded["text"]
    elif recorded.get("kind") == "Table":
        assert without_ages(found) == without_ages(recorded)
    else:
        assert found == recorded
    for header, value in step.get("responseHeaders", {}).items():
        assert headers[header] in value.replace('\\"', '"')


def assert_initial_events(events: list[Json]) -> None:
    """A right answer: ADDED events, and then a bookmark that says that these were all."""
    *first, last = events
    assert [event["type"] for event in first] == ["ADDED"] * 3
    assert last["type"] == "BOOKMARK"
    assert last["object"]["kind"] == "Node"
    assert last["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def assert_same_but_for_the_diff(found: Json, recorded: Json) -> None:
    for document in (found, recorded):
        document["message"] = document["message"].partition("\n@@")[0]
        for cause in document["details"]["causes"]:
            cause["message"] = cause["message"].partition("\n@@")[0]
    assert found == recorded
