"""Bodies in protobuf, as Go clients send them; the encoder here is the test's own."""

from __future__ import annotations

import random
from typing import Any

import pytest
import yaml

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.api.catalog import Catalog
from scheduler_core.cluster.api.messages import Answer, Request
from scheduler_core.cluster.api.openapi import document
from scheduler_core.cluster.api.protobuf import BadProtobuf, decode_envelope
from scheduler_core.cluster.api.protobuf_numbers import NUMBERS
from scheduler_core.cluster.api.schema import struct
from scheduler_core.cluster.api.server import ApiServer
from scheduler_core.cluster.sandbox import SandboxCluster

PROTOBUF = "application/vnd.kubernetes.protobuf"


def varint(number: int) -> bytes:
    found = b""
    number &= (1 << 64) - 1
    while number > 0x7F:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


def part(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def envelope(version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\0" + part(1, part(1, version) + part(2, kind)) + part(2, raw)


@pytest.fixture
def api() -> ApiServer:
    cluster = SandboxCluster(VirtualClock(1_800_000_000.0), rng=random.Random(3))
    return ApiServer(cluster)


def post(api: ApiServer, path: str, body: bytes) -> Answer:
    accept = f"{PROTOBUF},application/json"
    headers = {"content-type": PROTOBUF, "accept": accept, "user-agent": "kube-scheduler/v1.36.2"}
    answer = api.answer(Request("POST", path, {}, headers, body))
    assert isinstance(answer, Answer)
    return answer


def test_a_binding_of_a_stock_kube_scheduler(api: ApiServer) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    uid = api.cluster.create("Pod", {"kind": "Pod", **pod})["metadata"]["uid"]
    metadata = part(1, "p") + part(3, "default") + part(5, uid)
    raw = part(1, metadata) + part(2, part(1, "Node") + part(3, "n0"))
    answer = post(api, "/api/v1/namespaces/default/pods/p/binding", envelope("v1", "Binding", raw))
    assert (answer.status, answer.content_type) == (201, "application/json")
    assert api.cluster.get("Pod", "default", "p")["spec"]["nodeName"] == "n0"


def test_an_event_with_its_times(api: ApiServer) -> None:
    raw = (
        part(1, part(1, "p.1") + part(3, "default"))
        + part(2, part(1, 1_767_225_600) + part(2, 250_000_000))
        + part(4, "default-scheduler")
        + part(5, "host")
        + part(6, "Binding")
        + part(7, "Scheduled")
        + part(8, part(1, "Pod") + part(2, "default") + part(3, "p"))
        + part(10, "it went well")
        + part(11, "Normal")
    )
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    answer = post(api, path, envelope("events.k8s.io/v1", "Event", raw))
    assert answer.status == 201
    assert answer.object["eventTime"] == "2026-01-01T00:00:00.250000Z"
    assert answer.object["regarding"] == {"kind": "Pod", "namespace": "default", "name": "p"}


def test_maps_lists_and_numbers(api: ApiServer) -> None:
    container = part(1, "c") + part(2, "x") + part(6, part(3, 80) + part(4, "TCP"))
    limits = part(1, part(1, "cpu") + part(2, part(1, "500m")))
    template = part(1, part(11, part(1, "app") + part(2, "d")))
    template += part(2, part(2, container + part(8, limits)) + part(4, -1 + 1))
    surge = part(1, 1) + part(3, "10%")
    spec = part(1, 3) + part(2, part(1, part(1, "app") + part(2, "d"))) + part(3, template)
    spec += part(4, part(1, "RollingUpdate") + part(2, part(2, surge)))
    raw = part(1, part(1, "d")) + part(2, spec)
    path = "/apis/apps/v1/namespaces/default/deployments"
    answer = post(api, path, envelope("apps/v1", "Deployment", raw))
    assert answer.status == 201, answer.body
    found = answer.object["spec"]
    assert found["replicas"] == 3
    assert found["strategy"]["rollingUpdate"]["maxSurge"] == "10%"
    (made,) = found["template"]["spec"]["containers"]
    assert made["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert made["resources"]["limits"] == {"cpu": "500m"}


def test_what_is_not_read_is_said(api: ApiServer) -> None:
    raw = part(1, part(1, "m")) + part(3, part(1, "a") + part(2, b"\x00"))
    path = "/api/v1/namespaces/default/configmaps"
    answer = post(api, path, envelope("v1", "ConfigMap", raw))
    assert answer.status == 400
    assert "field 3 of ConfigMap is not read from protobuf" in answer.object["message"]


@pytest.mark.parametrize("body", [b"", b"k8s\0\x0a\xff", b"json{}", b"k8s\0" + part(2, b"x")[:-1]])
def test_broken_bodies_are_refused(api: ApiServer, body: bytes) -> None:
    answer = post(api, "/api/v1/namespaces/default/configmaps", body)
    assert answer.status == 400
    if body[:4] != b"k8s\0":
        with pytest.raises(BadProtobuf):
            decode_envelope(body)


def test_every_field_with_a_number_is_one_of_the_kind() -> None:
    for name, fields in NUMBERS.items():
        if name in ("VolumeSource",):
            continue  # belongs to Volume
        known = struct(name).fields
        for field in fields.values():
            assert field.startswith("+") or field in known, f"{name}.{field}"


# -- OpenAPI v2 in protobuf ----------------------------------------------------------------------


def fields(raw: bytes) -> list[tuple[int, Any]]:
    """(number, bytes) of a message that has nothing but such fields."""
    found, at = [], 0
    while at < len(raw):
        number, size, shift = 0, 0, 0
        while True:
            number |= (raw[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if not raw[at - 1] & 0x80:
                break
        shift = 0
        while True:
            size |= (raw[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if not raw[at - 1] & 0x80:
                break
        found.append((number >> 3, raw[at : at + size]))
        at += size
    return found


def test_the_protobuf_document_says_what_the_json_one_says() -> None:
    catalog = Catalog()
    media = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    answer = document(catalog, Request("GET", "/openapi/v2", {}, {"accept": media}))
    plain = document(catalog, Request("GET", "/openapi/v2", {}, {"accept": "application/json"}))
    parts = dict(fields(answer.body))
    assert parts[1] == b"2.0"
    named = [dict(fields(entry)) for number, entry in fields(parts[9]) if number == 1]
    definitions = {entry[1].decode(): entry[2] for entry in named}
    expected = plain.object["definitions"]
    assert definitions.keys() == expected.keys()
    pod = "io.k8s.api.core.v1.Pod"
    extensions = [dict(fields(raw)) for number, raw in fields(definitions[pod]) if number == 31]
    told = {e[1].decode(): yaml.safe_load(dict(fields(e[2]))[2]) for e in extensions}
    assert told == {
        key: value for key, value in expected[pod].items() if key.startswith("x-kubernetes")
    }
