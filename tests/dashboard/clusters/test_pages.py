"""Adding a real cluster on the page: who may, what is refused and why, what is kept."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.core.serializers import serialize
from django.test import Client

from dashboard.clusters.credentials import access_of
from dashboard.clusters.models import ClusterConnection
from dashboard.models import AuditEntry, Cluster, SchedulerRun
from scheduler_core.kube.access import AccessError
from tests.dashboard.clusters.conftest import TOKEN, Served

pytestmark = pytest.mark.django_db(transaction=True)


def form(served: Served, **fields: Any) -> dict[str, Any]:
    return {
        "name": "staging",
        "method": "kubeconfig",
        "kubeconfig": served.kubeconfig(),
        **fields,
    }


def add(client: Client, fields: dict[str, Any]) -> Any:
    return client.post("/clusters/new/", fields)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="kubeconfig"),
        pytest.param({"context": "one"}, id="kubeconfig and context"),
        pytest.param({"method": "token", "kubeconfig": "", "token": TOKEN}, id="token"),
    ],
)
def test_a_cluster_is_added_with_a_run_that_waits(
    as_keeper: Client, served: Served, fields: dict[str, Any]
) -> None:
    answer = add(as_keeper, form(served, server=served.url, **fields))
    cluster = Cluster.objects.get(name="staging")
    assert answer["location"] == f"/clusters/{cluster.pk}/"
    assert cluster.kind == "kube"
    run = SchedulerRun.objects.get(cluster=cluster)
    assert (run.state, run.desired_state) == ("stopped", "stopped")
    assert "schedulerName: kubesched" in run.config
    page = as_keeper.get(answer["location"]).content.decode()
    assert served.url in page
    assert "v1.36" in page
    assert f"/runs/{run.pk}/" in page


def test_credentials_are_nowhere_in_clear(
    as_keeper: Client, served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    add(as_keeper, form(served))
    row = ClusterConnection.objects.get()
    kept = serialize("json", [row, *AuditEntry.objects.all(), *SchedulerRun.objects.all()])
    page = as_keeper.get(f"/clusters/{row.pk}/").content.decode()
    for text in (kept, page, caplog.text):
        assert TOKEN not in text
    assert TOKEN in access_of(row).text  # type: ignore[union-attr]


def test_another_secret_key_is_said(as_keeper: Client, served: Served, settings: Any) -> None:
    add(as_keeper, form(served))
    row = ClusterConnection.objects.get()
    old, settings.SECRET_KEY = settings.SECRET_KEY, "another" * 10
    with pytest.raises(AccessError, match="SECRET_KEY has changed: give them once more"):
        access_of(row)
    settings.SECRET_KEY_FALLBACKS = [old]
    assert access_of(row)


@pytest.mark.parametrize(
    "fields,message",
    [
        pytest.param({"name": ""}, "Give it a name", id="no name"),
        pytest.param({"name": "No Name"}, "lower-case letters", id="bad name"),
        pytest.param({"kubeconfig": " "}, "Paste a kubeconfig.", id="no kubeconfig"),
        pytest.param({"kubeconfig": "a: ["}, "is not YAML", id="no YAML"),
        pytest.param({"context": "two"}, "no context &quot;two&quot;", id="no such context"),
        pytest.param({"method": "token"}, "Give a token.", id="no token"),
        pytest.param({"method": "fax"}, "fax is not one of", id="no such way"),
        pytest.param(
            {"method": "token", "server": "ftp://x", "token": "t"},
            "must be http(s)://HOST[:PORT]",
            id="no address",
        ),
        pytest.param(
            {"method": "token", "token": "wrong"},
            "does not accept these credentials (401",
            id="wrong token",
        ),
        pytest.param(
            {"method": "token", "server": "http://127.0.0.1:1", "token": "t"},
            "http://127.0.0.1:1 cannot be reached",
            id="nobody is there",
        ),
        pytest.param(
            {"method": "token", "server": "https://127.0.0.1:1", "token": "t", "ca": "x"},
            "certificate authority is not PEM",
            id="no certificate authority",
        ),
        pytest.param({"method": "in_cluster"}, "Service host/port is not set", id="no pod"),
    ],
)
def test_what_is_refused_says_why_and_keeps_nothing(
    as_keeper: Client, served: Served, fields: dict[str, Any], message: str
) -> None:
    answer = add(as_keeper, form(served, **{"server": served.url, **fields}))
    assert answer.status_code == 400
    assert message in answer.content.decode()
    assert TOKEN not in answer.content.decode()
    assert not Cluster.objects.exists()
    assert not AuditEntry.objects.exists()


def test_a_web_pod_without_the_service_account_leaves_the_look_to_the_worker(
    as_keeper: Client, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    answer = add(as_keeper, form(served, method="in_cluster"))
    assert answer.status_code == 302
    connection = ClusterConnection.objects.get()
    assert (connection.method, connection.version, connection.problem) == ("in_cluster", "", "")
    page = as_keeper.get(f"/clusters/{connection.pk}/").content.decode()
    assert "Only the worker’s pod has this service account" in page
    assert "Check now" not in page


def test_a_kubeconfig_runs_no_program_of_the_server(as_keeper: Client, served: Served) -> None:
    text = served.kubeconfig(exec={"command": "touch", "args": ["/tmp/kubesched-was-here"]})
    answer = add(as_keeper, form(served, kubeconfig=text))
    assert "would run a program on this server" in answer.content.decode()


def test_a_name_can_be_had_once(as_keeper: Client, served: Served) -> None:
    add(as_keeper, form(served))
    answer = add(as_keeper, form(served))
    assert "A cluster named &quot;staging&quot; exists already." in answer.content.decode()


def test_several_clusters_side_by_side(as_keeper: Client, served: Served) -> None:
    add(as_keeper, form(served))
    add(as_keeper, form(served, name="production"))
    rows = as_keeper.get("/api/clusters").json()["clusters"]
    assert [(row["name"], row["kind"], row["state"]) for row in rows] == [
        ("production", "kube", "stopped"),
        ("staging", "kube", "stopped"),
    ]
    assert len({row["url"] for row in rows} | {row["page"] for row in rows}) == 4


def test_who_may(as_operator: Client, as_viewer: Client, as_keeper: Client, served: Served) -> None:
    """Whoever may start sandboxes may not have this server connect to anything."""
    assert Client().get("/clusters/new/").status_code == 302
    for client in (as_operator, as_viewer):
        assert client.get("/clusters/new/").status_code == 403
        assert add(client, form(served)).status_code == 403
    add(as_keeper, form(served))
    page = f"/clusters/{Cluster.objects.get().pk}/"
    shown = as_viewer.get(page)
    assert shown.status_code == 200
    assert "Reach it another way" not in shown.content.decode()
    assert as_viewer.post(page, form(served)).status_code == 403
    assert as_viewer.post(f"{page}look/").status_code == 403
    assert as_keeper.get("/clusters/999/").status_code == 404


def test_a_cluster_that_went_away_is_said_and_mended(as_keeper: Client, served: Served) -> None:
    add(as_keeper, form(served))
    row = ClusterConnection.objects.get()
    page = f"/clusters/{row.pk}/"
    as_keeper.post(page, {"method": "token", "server": served.url, "token": "wrong"})
    row.refresh_from_db()
    assert row.method == "kubeconfig"  # what cannot be used is not taken over

    answer = as_keeper.post(page, {"method": "token", "server": served.url, "token": TOKEN})
    assert answer.status_code == 302
    row.refresh_from_db()
    assert (row.method, row.server) == ("token", served.url)
    assert AuditEntry.objects.get(verb="change_cluster").detail["method"] == "token"

    ClusterConnection.objects.update(server="http://127.0.0.1:1")
    as_keeper.post(f"{page}look/")
    assert "cannot be reached" in as_keeper.get(page).content.decode()
    ClusterConnection.objects.update(server=served.url)
    as_keeper.post(f"{page}look/")
    assert "cannot be reached" not in as_keeper.get(page).content.decode()


def test_what_comes_from_people_is_escaped(as_keeper: Client, served: Served) -> None:
    text = served.kubeconfig().replace("one", "'<script>alert(1)</script>'")
    add(as_keeper, form(served, kubeconfig=text))
    page = as_keeper.get(f"/clusters/{Cluster.objects.get().pk}/").content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
