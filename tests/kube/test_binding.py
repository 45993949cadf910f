"""A binding under every answer that a server and a network give."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scheduler_core.kube.cluster import KubeCluster
from scheduler_core.kube.statuses import LostAnswer
from scheduler_core.kube.transport import Answer
from scheduler_core.ports import ApiError, Conflict, Gone, NotFound
from tests.contract.support import pod
from tests.kube.fake import (
    FakeServer,
    Fault,
    Request,
    VirtualTiming,
    later,
    lost,
    on,
    sequence,
    status,
    times,
    unsent,
)

BIND = "/binding"


def made(server: FakeServer) -> str:
    return str(server.sandbox.create("Pod", pod())["metadata"]["uid"])


def node_of(server: FakeServer) -> str:
    return str(server.sandbox.get("Pod", "default", "web")["spec"].get("nodeName", ""))


def test_the_request_names_pod_uid_and_node(cluster: KubeCluster, server: FakeServer) -> None:
    uid = made(server)
    cluster.bind("default", "web", uid, "n1")
    (request,) = server.requests
    assert str(request) == "POST /api/v1/namespaces/default/pods/web/binding"
    assert request.body == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "web", "namespace": "default", "uid": uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    }


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        pytest.param(status(404, "NotFound", 'pods "web" not found'), NotFound, id="404"),
        pytest.param(status(409, "Conflict", "assigned already"), Conflict, id="409"),
        pytest.param(status(410, "Gone", "gone"), Gone, id="410"),
        pytest.param(status(422, "Invalid", "target.name"), ApiError, id="422"),
        pytest.param(status(403, "Forbidden", "no right"), ApiError, id="403"),
        pytest.param(status(401, "Unauthorized"), ApiError, id="401"),
        pytest.param(Answer(400, b"<html>bad"), ApiError, id="400 of a proxy"),
    ],
)
def test_a_refusal_is_final(
    cluster: KubeCluster, server: FakeServer, answer: Answer, error: type[ApiError]
) -> None:
    uid = made(server)
    server.before.append(on("POST", BIND, answer))
    with pytest.raises(error) as caught:
        cluster.bind("default", "web", uid, "n1")
    assert caught.value.code == answer.status
    assert len(server.requests) == 1
    assert node_of(server) == ""


@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [
        pytest.param([later(7)], [], ["POST", "POST"], id="429 with Retry-After"),
        pytest.param([later(1)] * 5, [], ["POST"] * 6, id="429 five times"),
        pytest.param([later(2, 503)], [], ["POST", "GET", "POST"], id="503 with Retry-After"),
        pytest.param([status(502, "x")], [], ["POST", "GET", "POST"], id="502"),
        pytest.param([status(504, "Timeout")], [], ["POST", "GET", "POST"], id="504"),
        pytest.param([unsent()] * 3, [], ["POST"] * 4, id="no connection three times"),
        pytest.param([lost()], [], ["POST", "GET", "POST"], id="lost, not carried out"),
        pytest.param([], [lost()], ["POST", "GET"], id="carried out, answer lost"),
        pytest.param([], [status(504, "x")], ["POST", "GET"], id="carried out, then 504"),
        pytest.param([], [status(500, "x")], ["POST", "GET"], id="carried out, then 500"),
    ],
)
def test_it_ends_bound_once(
    cluster: KubeCluster,
    server: FakeServer,
    before: list[Answer | Exception],
    after: list[Answer | Exception],
    asked: list[str],
) -> None:
    uid = made(server)
    server.before.append(sequence([on("POST", BIND, answer) for answer in before]))
    server.after.append(sequence([on("POST", BIND, answer) for answer in after]))
    cluster.bind("default", "web", uid, "n1")
    assert node_of(server) == "n1"
    assert [request.verb for request in server.requests] == asked


def test_retry_after_is_waited_for(
    cluster: KubeCluster, server: FakeServer, timing: VirtualTiming
) -> None:
    uid = made(server)
    server.before.append(times(1, on("POST", BIND, later(7))))
    cluster.bind("default", "web", uid, "n1")
    first, second = server.asked("POST", BIND)
    assert 7.0 <= second.at - first.at <= 9.0


def test_500_that_did_nothing_is_final(cluster: KubeCluster, server: FakeServer) -> None:
    uid = made(server)
    server.before.append(on("POST", BIND, status(500, "InternalError", "no")))
    with pytest.raises(ApiError, match="no"):
        cluster.bind("default", "web", uid, "n1")
    assert [r.verb for r in server.requests] == ["POST", "GET"]


def test_500_after_which_the_pod_cannot_be_seen(cluster: KubeCluster, server: FakeServer) -> None:
    """It was carried out: to give up would free the room that it takes."""
    uid = server.sandbox.create("Pod", pod())["metadata"]["uid"]
    broken = status(500, "InternalError")
    server.after.append(times(1, on("POST", "/binding", broken)))
    server.before.append(times(1, on("GET", "/web", broken)))
    cluster.bind("default", "web", uid, "n1")
    assert server.sandbox.get("Pod", "default", "web")["spec"]["nodeName"] == "n1"
    assert [str(r).rpartition("/")[2] for r in server.requests] == [
        "binding",
        "web",
        "binding",
        "web",
    ]


def test_30_seconds_of_503(cluster: KubeCluster, server: FakeServer, timing: VirtualTiming) -> None:
    uid = made(server)
    end = timing.monotonic() + 30
    server.before.append(lambda _: status(503, "x") if timing.monotonic() < end else None)
    cluster.bind("default", "web", uid, "n1")
    assert node_of(server) == "n1"
    assert timing.monotonic() - end < 10


# -- while the answer was lost something else happened ---------------------------------------------


def bound_elsewhere(server: FakeServer) -> None:
    server.sandbox.bind("default", "web", "", "n2")


def made_anew(server: FakeServer) -> None:
    server.sandbox.delete("Pod", "default", "web")
    server.sandbox.create("Pod", pod())


def gone(server: FakeServer) -> None:
    server.sandbox.delete("Pod", "default", "web")


@pytest.mark.parametrize(
    ("happened", "error", "text"),
    [
        pytest.param(bound_elsewhere, Conflict, 'already assigned to node "n2"', id="elsewhere"),
        pytest.param(made_anew, Conflict, "was made anew", id="made anew"),
        pytest.param(gone, NotFound, "not found", id="gone"),
    ],
)
def test_a_lost_answer_and_then(
    cluster: KubeCluster,
    server: FakeServer,
    happened: Callable[[FakeServer], None],
    error: type[ApiError],
    text: str,
) -> None:
    uid = made(server)

    def fault(request: Request) -> Answer | None:
        if request.verb == "POST":
            happened(server)
            raise lost()
        return None

    server.before.append(fault)
    with pytest.raises(error, match=text):
        cluster.bind("default", "web", uid, "n1")
    assert len(server.asked("POST", BIND)) == 1


def test_a_request_that_arrives_late_meets_its_own_repetition(
    cluster: KubeCluster, server: FakeServer
) -> None:
    """The first is carried out after the look and before the second, which then conflicts."""
    uid = made(server)
    server.before.append(_late(server))
    cluster.bind("default", "web", uid, "n1")
    assert node_of(server) == "n1"
    assert [r.verb for r in server.requests] == ["POST", "GET", "POST", "GET"]


def _late(server: FakeServer) -> Fault:
    posts = []

    def fault(request: Request) -> Answer | None:
        if request.verb != "POST":
            return None
        posts.append(request)
        if len(posts) == 1:
            raise lost()
        server.sandbox.bind("default", "web", "", "n1")
        return None

    return fault


def test_a_server_that_stops_answering_is_asked_until_no_request_can_be_under_way(
    cluster: KubeCluster, server: FakeServer, timing: VirtualTiming
) -> None:
    uid = made(server)

    def silent(request: Request) -> Answer | None:
        timing.clock.advance(30)
        raise lost()

    server.before.append(silent)
    began = timing.monotonic()
    with pytest.raises(LostAnswer):
        cluster.bind("default", "web", uid, "n1")
    last = server.asked("POST", BIND)[-1].at
    assert timing.monotonic() - began > 120
    assert timing.monotonic() - last >= 30


def test_before_the_end_nothing_is_tried_again(
    cluster: KubeCluster, server: FakeServer, timing: VirtualTiming
) -> None:
    uid = made(server)
    server.before.append(on("POST", BIND, lost()))
    cluster.hurry()
    with pytest.raises(LostAnswer):
        cluster.bind("default", "web", uid, "n1")
    assert timing.waits == []
    server.before.clear()
    cluster.bind("default", "web", uid, "n1")
    assert node_of(server) == "n1"


def test_no_storm_while_nobody_answers(
    cluster: KubeCluster, server: FakeServer, timing: VirtualTiming
) -> None:
    uid = made(server)
    server.before.append(on("POST", BIND, unsent()))
    with pytest.raises(LostAnswer):
        cluster.bind("default", "web", uid, "n1")
    assert len(server.requests) < 45
