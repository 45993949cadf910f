"""/livez, /readyz and /healthz: what they say, and what they do not."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.test import Client

from dashboard.health import probes as module
from dashboard.health.checks import handlers_synced, loops
from dashboard.health.probes import ProbeAnswer, Probes
from dashboard.health.slis import CATALOG
from dashboard.metrics import carried
from dashboard.metrics.carried import CarriedRun
from dashboard.metrics.exposition import page
from dashboard.recorder import Recorder


def broken() -> None:
    raise OSError("password=geheim is wrong")


def probes(**ready: Any) -> Probes:
    return Probes(live={"ping": lambda: None}, ready=ready)


def ask(found: Probes, path: str, *, verbose: bool = False, exclude: str = "") -> ProbeAnswer:
    return found.answer(path, verbose, {exclude} if exclude else set())


def test_all_is_well() -> None:
    good = probes(database=lambda: None)
    assert ask(good, "/readyz") == ProbeAnswer(200, "ok")
    assert ask(good, "/readyz", verbose=True).text == (
        "[+]ping ok\n[+]database ok\nreadyz check passed\n"
    )


def test_a_failure_names_the_check_and_keeps_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    answer = ask(probes(database=broken), "/readyz")
    assert answer == ProbeAnswer(
        500, "[+]ping ok\n[-]database failed: reason withheld\nreadyz check failed\n"
    )
    assert "health check database failed: OSError: password=geheim is wrong" in caplog.text


def test_what_only_matters_for_readiness_does_not_restart_anything() -> None:
    assert ask(probes(database=broken), "/livez").status == 200
    assert ask(probes(database=broken), "/healthz").status == 200


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        pytest.param("/readyz/ping", 200, "ok", id="well"),
        pytest.param("/readyz/database", 500, "[-]database failed: reason withheld\n", id="failed"),
        pytest.param("/readyz/etcd", 404, "there is no check etcd in readyz\n", id="unknown"),
        pytest.param("/livez/database", 404, "there is no check database in livez\n", id="other"),
    ],
)
def test_one_check(path: str, status: int, text: str) -> None:
    assert ask(probes(database=broken), path) == ProbeAnswer(status, text)


def test_a_check_can_be_left_out() -> None:
    answer = ask(probes(database=broken), "/readyz", verbose=True, exclude="database")
    assert answer.status == 200
    assert "[+]database excluded: ok\n" in answer.text
    strange = ask(probes(), "/readyz", verbose=True, exclude="etcd")
    assert 'cannot be excluded: no matches for "etcd"\n' in strange.text


def test_how_checks_ended_is_counted_as_the_reference_does() -> None:
    found = probes(database=broken)
    for _ in range(2):
        ask(found, "/readyz")
    ask(found, "/livez", exclude="ping")
    ask(found, "/readyz/database")
    text = page(found.slis.samples(), catalog=CATALOG)[0].decode()
    assert "# TYPE kubernetes_healthcheck gauge" in text
    assert "# TYPE kubernetes_healthchecks_total counter" in text
    assert [line for line in text.splitlines() if not line.startswith("#")] == [
        'kubernetes_healthcheck{name="database",type="readyz"} 0.0',
        'kubernetes_healthcheck{name="ping",type="readyz"} 1.0',
        'kubernetes_healthchecks_total{name="database",status="error",type="readyz"} 2.0',
        'kubernetes_healthchecks_total{name="ping",status="success",type="readyz"} 2.0',
    ]


def test_a_check_that_hangs_fails_and_is_not_begun_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.05)
    go, calls = threading.Event(), []

    def slow() -> None:
        calls.append(1)
        go.wait(10)

    hanging = probes(database=slow)
    assert [ask(hanging, "/readyz").status for _ in range(3)] == [500, 500, 500]
    assert len(calls) == 1
    go.set()
    hanging.close()


@pytest.fixture
def run() -> Any:
    recorder = Recorder(3, fence=None, clock=lambda: 0.0)
    run = CarriedRun(3, "night", "sandbox", recorder)
    carried.publish(run)
    yield run
    carried.withdraw(run)


def test_a_loop_that_hangs_is_named(run: CarriedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    assert loops() is None
    monkeypatch.setattr(run.metrics, "seconds_since_turn", lambda: 500.0)
    assert loops() == "no turn for 120 s: night"


def test_a_run_that_has_not_listed_its_cluster_is_not_ready(run: CarriedRun) -> None:
    class Scheduler:
        is_synced = False

    assert handlers_synced() is None
    run.scheduler = Scheduler()  # type: ignore[assignment]
    assert handlers_synced() == "not listed yet: night"


@pytest.mark.parametrize("path", ["/livez", "/healthz", "/livez/ping"])
def test_the_site_answers_without_login_and_over_plain_http(
    path: str, client: Client, settings: Any
) -> None:
    settings.SECURE_SSL_REDIRECT = True
    answer = client.get(path)
    assert (answer.status_code, answer.content) == (200, b"ok")


@pytest.mark.django_db
def test_the_site_is_not_ready_without_its_redis(client: Client, settings: Any) -> None:
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    answer = client.get("/readyz?verbose")
    assert answer.status_code == 500
    assert b"[-]redis failed: reason withheld" in answer.content
    assert b"nowhere" not in answer.content


def test_the_sites_own_are_not_for_everybody(client: Client, settings: Any) -> None:
    settings.KUBESCHED_METRICS_TOKEN = "scraper"
    assert client.get("/metrics/slis").status_code == 401
    client.get("/livez")
    answer = client.get("/metrics/slis", headers={"authorization": "Bearer scraper"})
    assert b'kubernetes_healthcheck{name="ping",type="livez"} 1.0' in answer.content
