"""A scheduler that asks this one over HTTP, with the client that was compared with
kube-scheduler's: both ends of the API prove each other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User

from dashboard.extender_service.service import answer
from dashboard.health.probes import Probes
from dashboard.models import AuditEntry
from dashboard.rest import tokens
from dashboard.rest.models import ApiToken
from dashboard.worker_http import access
from dashboard.worker_http.messages import Request
from dashboard.worker_http.routes import WorkerRoutes
from dashboard.worker_http.server import TLSFiles, WorkerServer
from scheduler_core.testing.builders import PodBuilder, make_pod
from scheduler_core.testing.harness import Harness
from tests.dashboard.extender_service.conftest import PROFILE, RUN, ServedRun
from tests.dashboard.worker_http.certificates import Authority

ROUTES = WorkerRoutes(Probes({}, {}), {"extender": answer})


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WorkerServer]:
    made = WorkerServer(ROUTES, tmp_path / "w.sock", ("127.0.0.1", 0))
    access.forget()
    yield made
    made.close()


def prefix(server: WorkerServer, scheme: str = "http", user: str = "") -> str:
    assert server.address is not None
    host, port = server.address
    return f"{scheme}://{user}{host}:{port}/extender/{RUN}/{PROFILE}"


def stock(served: ServedRun, url: str, **extender: Any) -> Harness:
    """Another scheduler of the same cluster; none of its own plugins would find a difference."""
    names = ["NodeResourcesFit", "NodeResourcesBalancedAllocation", "NodeUnschedulable"]
    plugins = {"multiPoint": {"disabled": [{"name": name} for name in names]}}
    config = {
        "extenders": [
            {
                "urlPrefix": url,
                "filterVerb": "filter",
                "prioritizeVerb": "prioritize",
                "preemptVerb": "preempt",
                "weight": 1,
                **extender,
            }
        ]
    }
    profile = {"schedulerName": "stock", "plugins": plugins}
    return Harness(cluster=served.harness.cluster, profile=profile, config=config)


def asking() -> PodBuilder:
    return make_pod("p").req(cpu=1).scheduler_name("stock")


def token(*scopes: str) -> str:
    user = User.objects.create_user("kube-scheduler")
    user.user_permissions.set(Permission.objects.filter(codename="extend_run"))
    user = User.objects.get(pk=user.pk)  # permissions are kept on the object
    return tokens.issue(user, name="t", scopes=scopes, days=7, by=user).text


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("by_name", [True, False], ids=["names", "whole nodes"])
def test_the_other_scheduler_places_its_pod_where_this_one_would(
    served: ServedRun, server: WorkerServer, by_name: bool
) -> None:
    url = prefix(server, user=f"kubesched:{token('extend')}@")
    h = stock(served, url, nodeCacheCapable=by_name)
    record = h.schedule(asking())
    assert record.node == "c"  # a is full, b half full, d closed; only this side knows
    reasons = {r.reason for r in record.rejections}
    assert reasons == {"Insufficient cpu", "node(s) were unschedulable"}
    assert [r.message.split(", ")[1] for r in served.records] == [
        "filter: 2 of 4 nodes pass",
        "prioritize: 2 nodes scored",
    ]


@pytest.mark.django_db(transaction=True)
def test_bind_by_the_extender(served: ServedRun, server: WorkerServer) -> None:
    h = stock(
        served, prefix(server, user=f"x:{token('extend')}@"), nodeCacheCapable=True, bindVerb="bind"
    )
    h.schedule(asking())
    assert served.harness.node_of("p") == "c"
    assert served.records[-1].message == "asked as an extender, bind: bound to c"
    entry = AuditEntry.objects.get(verb="bind")
    assert (entry.username, entry.target, entry.outcome) == (
        "kube-scheduler", "default/p", "applied",
    )  # fmt: skip
    assert entry.detail["node"] == "c"
    assert entry.detail["token"] == ApiToken.objects.get().prefix


@pytest.mark.django_db(transaction=True)
def test_strangers_get_no_decision(served: ServedRun, server: WorkerServer) -> None:
    record = stock(served, prefix(server), nodeCacheCapable=True).schedule(asking())
    assert record.node == ""
    assert "code 401" in record.message
    assert served.records == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("given", "why"),
    [
        pytest.param(lambda: "kst_wrong", "KubeSched: ", id="no such token"),
        pytest.param(
            lambda: token("read"),
            'KubeSched: This API token does not have the scope "extend".',
            id="a token that only reads",
        ),
    ],
)
def test_a_token_that_may_not_ask_is_told_so_and_not_shown_to_others(
    served: ServedRun, server: WorkerServer, given: Callable[[], str], why: str
) -> None:
    # Of any status but 200 kube-scheduler writes the whole address into the pod's events.
    text = given()
    h = stock(served, prefix(server, user=f"x:{text}@"), nodeCacheCapable=True)
    record = h.schedule(asking())
    assert why in record.message
    assert text not in record.message
    assert served.records == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param(
            lambda user: user.user_permissions.clear(), "dashboard.extend_run", id="permission"
        ),
        pytest.param(
            lambda user: User.objects.filter(pk=user.pk).update(is_active=False),
            "is not active",
            id="account",
        ),
    ],
)
def test_who_loses_the_right_binds_nothing_from_that_moment(
    served: ServedRun, change: Any, text: str
) -> None:
    access.forget()
    headers = {"authorization": f"Bearer {token('extend')}"}
    served.harness.cluster.create("Pod", make_pod("new").scheduler_name("stock").raw())
    fields = {
        "PodName": "new",
        "PodNamespace": "default",
        "PodUID": served.uid("new"),
        "Node": "c",
    }

    def call(verb: str) -> tuple[int, str]:
        path = f"/extender/{RUN}/{PROFILE}/{verb}"
        found = ROUTES(Request("POST", path, {}, headers, json.dumps(fields).encode()))
        return found.status, found.body.decode()

    assert call("filter")[0] == 200  # and so the token is remembered
    change(User.objects.get())
    status, body = call("bind")
    assert status == 200 and text in body
    status, body = call("filter")
    assert status == 200 and text in body
    assert served.harness.node_of("new") == ""


@pytest.mark.django_db(transaction=True)
def test_a_person_without_the_permission_gets_no_token_for_it() -> None:
    viewer = User.objects.create_user("viewer")
    with pytest.raises(tokens.NotPermitted, match=r"needs the permission dashboard\.extend_run"):
        tokens.issue(viewer, name="t", scopes=["read", "extend"], days=7, by=viewer)
    assert not ApiToken.objects.exists()


def test_mutual_tls_needs_no_token(served: ServedRun, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    own, friend = authority.issue("127.0.0.1"), authority.issue("kube-scheduler")
    files = TLSFiles(str(own.certificate), str(own.key), str(authority.certificate))
    server = WorkerServer(ROUTES, tmp_path / "w.sock", ("127.0.0.1", 0), files)
    try:
        h = stock(
            served,
            prefix(server, "https"),
            nodeCacheCapable=True,
            enableHTTPS=True,
            tlsConfig={
                "caFile": str(authority.certificate),
                "certFile": str(friend.certificate),
                "keyFile": str(friend.key),
            },
        )
        assert h.schedule(asking()).node == "c"
    finally:
        server.close()


@pytest.mark.parametrize(
    ("path", "method", "status", "text"),
    [
        pytest.param(f"/extender/{RUN}/{PROFILE}/filter", "GET", 405, "by POST", id="GET"),
        pytest.param(f"/extender/{RUN}/{PROFILE}/guess", "POST", 404, "VERB: filter,", id="verb"),
        pytest.param("/extender/7", "POST", 404, "/extender/RUN/PROFILE/VERB", id="too short"),
    ],
)
def test_paths_and_methods_that_are_none(
    served: ServedRun, path: str, method: str, status: int, text: str
) -> None:
    found = ROUTES(Request(method, path, {}, {}, b"{}", trusted=True))
    assert found.status == status
    assert text in found.body.decode()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param(f"{RUN}/other", f"run {RUN} has no profile other", id="profile"),
        pytest.param(f"99/{PROFILE}", "this worker does not carry a run 99", id="run"),
        pytest.param(f"x/{PROFILE}", "this worker does not carry a run x", id="no number"),
    ],
)
@pytest.mark.parametrize(
    ("verb", "status"), [("filter", 200), ("bind", 200), ("prioritize", 404), ("preempt", 404)]
)
def test_who_is_not_there_is_named_in_the_verbs_own_answer(
    served: ServedRun, path: str, text: str, verb: str, status: int
) -> None:
    found = ROUTES(Request("POST", f"/extender/{path}/{verb}", {}, {}, b"{}", trusted=True))
    assert (found.status, json.loads(found.body)["Error"]) == (status, f"KubeSched: {text}")


@pytest.mark.django_db(transaction=True)
def test_strangers_do_not_learn_which_runs_there_are(served: ServedRun) -> None:
    for run in (RUN, 99):
        request = Request("POST", f"/extender/{run}/{PROFILE}/filter", {}, {}, b"{}")
        assert ROUTES(request).status == 401


@pytest.mark.django_db(transaction=True)
def test_a_body_that_is_too_large_is_an_error_that_people_can_read(
    served: ServedRun, server: WorkerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.worker_http.server.MAX_BODY", 100)
    h = stock(served, prefix(server, user=f"x:{token('extend')}@"), nodeCacheCapable=True)
    assert "the request cannot be read: The body is larger than" in h.schedule(asking()).message
