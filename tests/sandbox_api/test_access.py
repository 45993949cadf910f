"""A sandbox of the product: its address, its token, its kubeconfig, and who may have them."""

from __future__ import annotations

import base64
import random
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
import yaml
from django.contrib.auth.models import Permission, User
from django.test import Client
from requests.adapters import HTTPAdapter

from dashboard import leases
from dashboard.models import AuditEntry, SchedulerRun
from dashboard.sandbox_api import access, lifecycle
from dashboard.sandbox_api.models import SandboxAccess
from dashboard.sandboxes import create_sandbox
from scheduler_core.clock import RealClock
from scheduler_core.cluster.sandbox import SandboxCluster

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(settings: Any, tmp_path: Path) -> SchedulerRun:
    settings.KUBESCHED_RUNTIME_DIR = tmp_path / "run"
    settings.KUBESCHED_DATA_DIR = tmp_path / "data"
    cluster, *_ = create_sandbox(name="box")
    found: SchedulerRun = cluster.runs.get()
    return found


@pytest.fixture
def store() -> Iterator[SandboxCluster]:
    with SandboxCluster(RealClock(), rng=random.Random(3)) as cluster:
        yield cluster


def signed_in(*permissions: str) -> Client:
    user = User.objects.create_user("olga", password="secret")
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def ask(config: Any, path: str) -> int:
    """The status that a client with a kubeconfig gets."""
    (cluster,), (user,) = config["clusters"], config["users"]
    pem = base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode()
    with requests.Session() as session:
        session.mount("https://", _Trusting(pem))
        headers = {"Authorization": f"Bearer {user['user']['token']}"}
        url = cluster["cluster"]["server"] + path
        return session.get(url, headers=headers, timeout=20).status_code


class _Trusting(HTTPAdapter):
    """Trusts one authority, which is in no file."""

    def __init__(self, pem: str) -> None:
        self._context = ssl.create_default_context(cadata=pem)
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, ssl_context=self._context, **kwargs)


def test_a_downloaded_kubeconfig_opens_the_sandbox(
    run: SchedulerRun, store: SandboxCluster
) -> None:
    client = signed_in("add_cluster")
    with lifecycle.served(run.cluster_id, store):
        page = client.get(f"/runs/{run.pk}/kubernetes/").content.decode()
        address = SandboxAccess.objects.get(pk=run.cluster_id).url
        assert address.endswith(f"/sandboxes/{run.cluster_id}")
        assert address in page
        answer = client.post(f"/runs/{run.pk}/kubernetes/kubeconfig")
        assert answer.headers["Content-Disposition"] == 'attachment; filename="kubeconfig.yaml"'
        assert "no-store" in answer.headers["Cache-Control"]
        config = yaml.safe_load(answer.content)
        assert config["current-context"] == "box"
        assert ask(config, "/api/v1/namespaces") == 200
        config["clusters"][0]["cluster"]["server"] = address.rpartition("/")[0] + "/999999"
        assert ask(config, "/api/v1/namespaces") == 404
    entry = AuditEntry.objects.get(verb=AuditEntry.Verb.DOWNLOAD_KUBECONFIG)
    assert (entry.username, entry.target, entry.run) == ("olga", "sandbox box", run)


def test_in_a_cluster_the_page_names_the_pod_that_serves_it(
    run: SchedulerRun, store: SandboxCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases.acquire(leases.sandbox_lease(run.cluster_id), "worker-x2v4q:30:ab", "", 4.0, 1.0)
    client = signed_in("add_cluster")
    with lifecycle.served(run.cluster_id, store):
        where = f"/runs/{run.pk}/kubernetes/"
        port = urlsplit(SandboxAccess.objects.get(pk=run.cluster_id).url).port
        assert "port-forward" not in client.get(where).content.decode()
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
        page = client.get(where).content.decode()
        assert f"kubectl port-forward pod/worker-x2v4q {port}" in page


def test_a_new_token_takes_the_place_of_the_old_one(
    run: SchedulerRun, store: SandboxCluster
) -> None:
    client = signed_in("add_cluster")
    with lifecycle.served(run.cluster_id, store) as opened:
        old = yaml.safe_load(client.post(f"/runs/{run.pk}/kubernetes/kubeconfig").content)
        assert client.post(f"/runs/{run.pk}/kubernetes/token").status_code == 302
        new = yaml.safe_load(client.post(f"/runs/{run.pk}/kubernetes/kubeconfig").content)
        opened.refresh()
        assert ask(old, "/api/v1/namespaces") == 401
        assert ask(new, "/api/v1/namespaces") == 200
    assert AuditEntry.objects.filter(verb=AuditEntry.Verb.NEW_SANDBOX_TOKEN).count() == 1


def test_the_token_is_not_in_the_database_in_clear(run: SchedulerRun) -> None:
    row = access.ensure(run.cluster_id)
    token = access.token_of(row)
    assert token
    assert token not in row.token


@pytest.mark.parametrize("path", ["kubeconfig", "token"])
def test_who_may_only_look_gets_no_token(run: SchedulerRun, path: str) -> None:
    client = signed_in()
    access.ensure(run.cluster_id)
    assert client.post(f"/runs/{run.pk}/kubernetes/{path}").status_code == 403
    assert client.get(f"/runs/{run.pk}/kubernetes/{path}").status_code in (403, 405)
    page = client.get(f"/runs/{run.pk}/kubernetes/").content.decode()
    assert "Download kubeconfig" not in page
    given = (AuditEntry.Verb.DOWNLOAD_KUBECONFIG, AuditEntry.Verb.NEW_SANDBOX_TOKEN)
    assert not AuditEntry.objects.filter(verb__in=given).exists()


def test_a_sandbox_that_does_not_run_has_no_kubeconfig(run: SchedulerRun) -> None:
    client = signed_in("add_cluster")
    answer = client.post(f"/runs/{run.pk}/kubernetes/kubeconfig", follow=True)
    assert "The sandbox is not served now" in answer.content.decode()
    assert not AuditEntry.objects.filter(verb=AuditEntry.Verb.DOWNLOAD_KUBECONFIG).exists()


def test_a_secret_key_that_changed_costs_the_token(
    run: SchedulerRun, settings: Any, store: SandboxCluster
) -> None:
    before = access.token_of(access.ensure(run.cluster_id))
    settings.SECRET_KEY = "another key of the site, long enough for everything that needs one"
    settings.SECRET_KEY_FALLBACKS = []
    row = SandboxAccess.objects.get(pk=run.cluster_id)
    assert access.token_of(row) is None
    with lifecycle.served(run.cluster_id, store):
        assert access.token_of(SandboxAccess.objects.get(pk=run.cluster_id)) not in (None, before)


def test_a_port_that_is_taken_is_said_on_the_page(
    run: SchedulerRun, store: SandboxCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken() -> Any:
        raise OSError(98, "Address already in use")

    monkeypatch.setattr(lifecycle, "_running", taken)
    client = signed_in("add_cluster")
    with lifecycle.served(run.cluster_id, store):
        page = client.get(f"/runs/{run.pk}/kubernetes/").content.decode()
    assert "The API is not served" in page
    assert "Address already in use" in page
