"""Requests other than bindings: rate limit, repetition, statuses of pods, kinds and versions."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from scheduler_core.api import NATIVE_POD_GROUP
from scheduler_core.kube.cluster import KubeCluster
from scheduler_core.kube.fence import READ_ONLY
from scheduler_core.kube.rate_limit import RateLimit
from scheduler_core.kube.statuses import LostAnswer, error_of
from scheduler_core.kube.transport import Answer
from scheduler_core.ports import ApiError, Conflict, PodCondition
from tests.contract.support import Recorder, node, pod
from tests.kube.fake import (
    FakeServer,
    VirtualTiming,
    later,
    lost,
    on,
    status,
    times,
    unsent,
)

FAILED = PodCondition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available")


# -- rate limit ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("qps", "burst", "requests", "seconds"),
    [
        pytest.param(50, 100, 100, 0.0, id="a burst"),
        pytest.param(50, 100, 350, 5.0, id="then so many a second"),
        pytest.param(-1, 1, 5000, 0.0, id="no limit"),
        pytest.param(0, 0, 20, 2.0, id="client-go's defaults"),
    ],
)
def test_qps_and_burst(
    timing: VirtualTiming, qps: float, burst: int, requests: int, seconds: float
) -> None:
    limit, never = RateLimit(qps, burst, timing), threading.Event()
    began = timing.monotonic()
    for _ in range(requests):
        limit.wait(never)
    assert timing.monotonic() - began == pytest.approx(seconds, abs=0.01)


def test_a_rest_fills_the_bucket_and_no_more(timing: VirtualTiming) -> None:
    limit, never = RateLimit(10, 20, timing), threading.Event()
    for _ in range(20):
        limit.wait(never)
    timing.clock.advance(3600)
    began = timing.monotonic()
    for _ in range(30):
        limit.wait(never)
    assert timing.monotonic() - began == pytest.approx(1.0, abs=0.01)


def test_events_do_not_take_the_turns_of_bindings(server: FakeServer) -> None:
    timing = server.timing
    with KubeCluster(server, qps=1, burst=2, clock=timing.clock, timing=timing) as cluster:
        cluster.get("Namespace", "", "default")
        cluster.get("Namespace", "", "default")
        assert timing.waits == []
        cluster.get("Namespace", "", "default")
        assert timing.waits == [pytest.approx(1.0)]


# -- what is sent again ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "tries"),
    [
        pytest.param(later(3), 2, id="429"),
        pytest.param(later(1, 503), 2, id="503 with Retry-After"),
        pytest.param(status(503, "ServiceUnavailable"), 2, id="503"),
        pytest.param(lost(), 2, id="lost"),
        pytest.param(unsent(), 2, id="no connection"),
    ],
)
def test_reading_is_tried_again(
    cluster: KubeCluster, server: FakeServer, fault: Answer | Exception, tries: int
) -> None:
    server.before.append(times(1, on("GET", "/default", fault)))
    assert cluster.get("Namespace", "", "default")["metadata"]["name"] == "default"
    assert len(server.requests) == tries


def test_an_object_is_not_made_twice(cluster: KubeCluster, server: FakeServer) -> None:
    server.after.append(on("POST", "/pods", lost()))
    with pytest.raises(LostAnswer, match="POST /api/v1/namespaces/default/pods: connection reset"):
        cluster.create("Pod", pod())
    assert len(server.requests) == 1


def test_it_is_not_tried_for_ever(
    cluster: KubeCluster, server: FakeServer, timing: VirtualTiming
) -> None:
    server.before.append(lambda _: later(5))
    began = timing.monotonic()
    with pytest.raises(ApiError) as caught:
        cluster.get("Namespace", "", "default")
    assert caught.value.code == 429
    assert timing.monotonic() - began <= 61


def test_a_storm_of_429_passes(
    cluster: KubeCluster, server: FakeServer, timing: VirtualTiming
) -> None:
    uids = [server.sandbox.create("Pod", pod(f"p{n}"))["metadata"]["uid"] for n in range(50)]
    refused = [0]

    def storm(request: Any) -> Answer | None:
        refused[0] += 1
        return later(1) if refused[0] % 4 else None

    server.before.append(storm)
    for number, uid in enumerate(uids):
        cluster.bind("default", f"p{number}", uid, "n1")
    assert all(p["spec"]["nodeName"] == "n1" for p in server.sandbox.list("Pod").items)
    assert refused[0] == 200


def test_a_deletion_names_the_uid(cluster: KubeCluster, server: FakeServer) -> None:
    uid = server.sandbox.create("Pod", pod())["metadata"]["uid"]
    with pytest.raises(Conflict):
        cluster.delete("Pod", "default", "web", uid="other")
    server.before.append(times(1, on("DELETE", "/web", lost())))
    cluster.delete("Pod", "default", "web", uid=uid, grace_period_seconds=0)
    assert server.requests[-1].body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": uid},
        "gracePeriodSeconds": 0,
    }


def test_nothing_is_sent_after_close(server: FakeServer, timing: VirtualTiming) -> None:
    cluster = KubeCluster(server, clock=timing.clock, timing=timing)
    cluster.close()
    cluster.close()
    with pytest.raises(ApiError, match="closed"):
        cluster.get("Namespace", "", "default")
    assert server.requests == []


def test_an_observed_cluster_is_never_written_to(server: FakeServer, timing: VirtualTiming) -> None:
    uid = server.sandbox.create("Pod", pod())["metadata"]["uid"]
    with KubeCluster(server, fence=READ_ONLY, clock=timing.clock, timing=timing) as cluster:
        for write in (
            lambda: cluster.bind("default", "web", uid, "n1"),
            lambda: cluster.delete("Pod", "default", "web"),
            lambda: cluster.create("Node", node()),
            lambda: cluster.patch_pod_status("default", "web", uid, condition=FAILED),
        ):
            with pytest.raises(ApiError, match="only observed: nothing is written"):
                write()
        cluster.emit_event(
            pod(), type="Normal", reason="a", action="b", note="c", reporting_controller="d"
        )
    assert {request.method for request in server.requests} == {"GET"}


# -- statuses --------------------------------------------------------------------------------------


def test_a_refusal_is_told_by_field() -> None:
    causes = [{"reason": "FieldValueRequired", "field": "spec.x", "message": "Required value"}]
    error = error_of(status(422, "Invalid", "bad", details={"causes": causes}))
    assert (error.code, error.reason, error.causes) == (
        422,
        "Invalid",
        (("spec.x", "Required value"),),
    )


@pytest.mark.parametrize(
    ("answer", "reason", "message"),
    [
        pytest.param(Answer(502, b"<html>oops"), "Unknown", "<html>oops", id="a page"),
        pytest.param(Answer(404, b"404 page not found\n"), "NotFound", "404 page", id="text"),
        pytest.param(Answer(503, b""), "ServiceUnavailable", "answered 503", id="nothing"),
        pytest.param(Answer(403, b"[1]"), "Forbidden", "[1]", id="JSON of something else"),
    ],
)
def test_answers_that_are_no_status(answer: Answer, reason: str, message: str) -> None:
    error = error_of(answer)
    assert (error.code, error.reason) == (answer.status, reason)
    assert message in error.message


# -- conditions ------------------------------------------------------------------------------------


def test_a_status_is_patched_by_condition_with_the_uid(
    cluster: KubeCluster, server: FakeServer
) -> None:
    uid = server.sandbox.create("Pod", pod())["metadata"]["uid"]
    cluster.patch_pod_status("default", "web", uid, condition=FAILED, nominated_node_name="n1")
    (patch,) = server.asked("PATCH")
    assert patch.path == "/api/v1/namespaces/default/pods/web/status"
    assert patch.body == {
        "metadata": {"uid": uid},
        "status": {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "0/3 nodes are available",
                    "lastTransitionTime": "2027-01-15T08:00:00Z",
                }
            ],
            "nominatedNodeName": "n1",
        },
    }


def test_conditions_of_others_stay(cluster: KubeCluster, server: FakeServer) -> None:
    uid = server.sandbox.create("Pod", pod())["metadata"]["uid"]
    theirs = {"type": "Ready", "status": "False"}
    body = {"status": {"conditions": [theirs]}}
    server.sandbox.patch("Pod", "default", "web", body, subresource="status")
    cluster.patch_pod_status("default", "web", uid, condition=FAILED)
    found = server.sandbox.get("Pod", "default", "web")["status"]["conditions"]
    assert [c["type"] for c in found] == ["Ready", "PodScheduled"]


def test_a_pod_that_is_watched_is_not_read_again(cluster: KubeCluster, server: FakeServer) -> None:
    uid = server.sandbox.create("Pod", pod())["metadata"]["uid"]
    watch = cluster.list_watch("Pod", Recorder())
    cluster.patch_pod_status("default", "web", uid, condition=FAILED)
    assert not server.asked("GET", "/web")
    assert len(server.asked("PATCH")) == 1
    watch.stop()


# -- kinds -----------------------------------------------------------------------------------------


def test_a_kind_that_nobody_knows(cluster: KubeCluster, server: FakeServer) -> None:
    for call in (
        lambda: cluster.get("Gadget", "", "x"),
        lambda: cluster.list("Gadget"),
        lambda: cluster.list_watch("Gadget", Recorder()),
    ):
        with pytest.raises(ApiError, match="could not find the requested resource"):
            call()
    assert server.requests == []


def test_the_version_that_is_served_is_used(cluster: KubeCluster, server: FakeServer) -> None:
    kind = NATIVE_POD_GROUP
    server.absent.add(kind)
    with pytest.raises(ApiError, match="could not find the requested resource"):
        cluster.list(kind)
    server.absent.clear()
    assert list(cluster.list(kind).items) == []
    before = len(server.requests)
    cluster.list(kind)
    assert len(server.requests) == before + 1


def test_names_are_quoted(cluster: KubeCluster, server: FakeServer) -> None:
    with pytest.raises(ApiError):
        cluster.get("Pod", "default/../../nodes", "x?watch=true")
    assert server.requests[0].path == (
        "/api/v1/namespaces/default%2F..%2F..%2Fnodes/pods/x%3Fwatch%3Dtrue"
    )
