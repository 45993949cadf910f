"""/metrics and /configz of the site, over a worker's unix socket, and who may read them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from dashboard.metrics import carried
from dashboard.metrics.carried import CarriedRun
from dashboard.recorder import Recorder
from dashboard.redacted import without_secrets
from dashboard.rest import tokens
from dashboard.worker_http import access
from dashboard.worker_http.routes import WorkerRoutes
from dashboard.worker_http.server import WorkerServer
from scheduler_core.testing.builders import make_node, make_pod
from scheduler_core.testing.harness import Harness

pytestmark = pytest.mark.django_db


@pytest.fixture
def worker(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[CarriedRun]]:
    """A worker with two runs, served to this machine."""
    settings.KUBESCHED_RUNTIME_DIR = str(tmp_path)
    runs = []
    for number in (7, 8):
        recorder = Recorder(number, fence=None, clock=lambda: 0.0)
        run = CarriedRun(number, f"run {number}", "sandbox", recorder)
        pod = make_pod(f"p{number}").req(cpu="500m", memory="1Gi")
        h = Harness(nodes=[make_node("n")], pods=[pod], metrics=run.metrics)
        h.settle()
        run.scheduler, run.config = h.scheduler, {"parallelism": number}
        carried.publish(run)
        runs.append(run)
    server = WorkerServer(WorkerRoutes(), tmp_path / "worker-1.sock")
    access.forget()
    yield runs
    server.close()
    for run in runs:
        carried.withdraw(run)


@pytest.fixture
def reader(client: Client) -> Client:
    client.force_login(User.objects.create_user("ann"))
    return client


def value(page: bytes, metric: str, **labels: str) -> float:
    found = [
        sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
        if sample.name == metric and sample.labels == labels
    ]
    assert len(found) == 1, (metric, labels, found)
    return float(found[0])


ATTEMPTS = "scheduler_schedule_attempts_total"
SCHEDULED = {"result": "scheduled", "profile": "default-scheduler"}


def test_all_runs_of_the_machine_add_up(worker: list[CarriedRun], reader: Client) -> None:
    page = reader.get("/metrics").content
    assert value(page, ATTEMPTS, **SCHEDULED) == 2.0
    assert value(page, "kubesched_run_info", run="7", name="run 7", cluster="sandbox") == 1.0
    assert b"process_cpu_seconds_total" in page


def test_one_run_alone(worker: list[CarriedRun], reader: Client) -> None:
    page = reader.get("/metrics/runs/7").content
    assert value(page, ATTEMPTS, **SCHEDULED) == 1.0
    assert b'run="8"' not in page
    assert reader.get("/metrics/runs/9").status_code == 404


def test_openmetrics_where_it_is_asked_for(worker: list[CarriedRun], reader: Client) -> None:
    answer = reader.get("/metrics", headers={"Accept": "application/openmetrics-text"})
    assert answer["Content-Type"].startswith("application/openmetrics-text")
    assert answer.content.endswith(b"# EOF\n")


def test_what_pods_ask_for(worker: list[CarriedRun], reader: Client) -> None:
    page = reader.get("/metrics/resources").content
    pod = {"namespace": "default", "pod": "p7", "node": "n", "priority": "0"}
    pod["scheduler"] = "default-scheduler"
    asked = "kube_pod_resource_request"
    assert value(page, asked, **pod, resource="cpu", unit="cores") == 0.5
    assert value(page, asked, **pod, resource="memory", unit="bytes") == 2**30
    assert b"kube_pod_resource_limit{" not in page


def test_configurations(worker: list[CarriedRun], reader: Client) -> None:
    found = reader.get("/configz").json()["runs"]
    assert [entry["componentconfig"] for entry in found] == [{"parallelism": 7}, {"parallelism": 8}]
    assert reader.get("/configz/runs/8").json() == {"componentconfig": {"parallelism": 8}}
    assert reader.get("/configz/runs/1").status_code == 404


def test_a_worker_that_does_not_answer_is_left_out(
    worker: list[CarriedRun], reader: Client, tmp_path: Path
) -> None:
    (tmp_path / "worker-0.sock").write_text("no socket")
    assert reader.get("/metrics").status_code == 200


# -- who may ---------------------------------------------------------------------------------------


def token_with(*scopes: str) -> str:
    user = User.objects.create_user(f"bot-{'-'.join(scopes)}")
    return tokens.issue(user, name="t", scopes=scopes, days=7, by=user).text


@pytest.mark.parametrize("path", ["/metrics", "/metrics/resources", "/metrics/runs/7", "/configz"])
def test_strangers_are_told_what_is_missing(path: str, client: Client) -> None:
    answer = client.get(path)
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert b"token" in answer.content


def test_an_api_token_that_reads(worker: list[CarriedRun], client: Client) -> None:
    header = f"Bearer {token_with('read')}"
    assert client.get("/metrics", headers={"Authorization": header}).status_code == 200


def test_an_api_token_without_the_scope(worker: list[CarriedRun], client: Client) -> None:
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {token_with('decide')}"})
    assert answer.status_code == 403
    assert answer.content == b'This API token does not have the scope "read".\n'


def test_the_token_of_the_environment(
    worker: list[CarriedRun], client: Client, settings: Any
) -> None:
    settings.KUBESCHED_METRICS_TOKEN = "scrape-me"
    good = {"Authorization": "Bearer scrape-me"}
    assert client.get("/metrics", headers=good).status_code == 200
    bad = {"Authorization": "Bearer scrape-you"}
    assert client.get("/metrics", headers=bad).status_code == 401
    basic = base64.b64encode(b"prometheus:scrape-me").decode()
    assert client.get("/metrics", headers={"Authorization": f"Basic {basic}"}).status_code == 200


def test_nobody_writes_to_metrics(reader: Client) -> None:
    assert reader.post("/metrics").status_code == 405


def test_secrets_are_hidden() -> None:
    config = {
        "extenders": [
            {
                "urlPrefix": "https://user:geheim@host/x",
                "tlsConfig": {"keyData": "S0VZ", "certData": "Q0VSVA=="},
            }
        ]
    }
    shown = json.dumps(without_secrets(config))
    assert "geheim" not in shown and "S0VZ" not in shown
    assert "https://(hidden)@host/x" in shown and "Q0VSVA==" in shown
    assert config["extenders"][0]["tlsConfig"] == {"keyData": "S0VZ", "certData": "Q0VSVA=="}
