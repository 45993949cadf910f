"""The API over HTTPS: tokens, bodies, watches that end, and certificates."""

from __future__ import annotations

import json
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from dashboard.sandbox_api.certificates import certificates_in
from dashboard.sandbox_api.serving import ApiThread, Doors, OneSandbox, Sandbox, token_hash
from scheduler_core.clock import RealClock
from scheduler_core.cluster.api.server import ApiServer
from scheduler_core.cluster.sandbox import SandboxCluster
from tests.sandbox_api.conftest import TOKEN, Served

SECONDS = 30


@pytest.fixture
def session(bare: Served) -> Iterator[requests.Session]:
    with requests.Session() as found:
        found.trust_env = False  # REQUESTS_CA_BUNDLE would win over the next line
        found.verify = str(bare.ca_pem)
        found.headers["Authorization"] = f"Bearer {TOKEN}"
        yield found


def test_the_token_opens_the_door(bare: Served, session: requests.Session) -> None:
    assert session.get(f"{bare.url}/api/v1/namespaces", timeout=SECONDS).status_code == 200
    for header in ("", "Bearer wrong", "Basic abc", f"Bearer  {TOKEN}x"):
        answer = session.get(
            f"{bare.url}/api/v1/namespaces", headers={"Authorization": header}, timeout=SECONDS
        )
        assert answer.status_code == 401
        assert answer.json()["reason"] == "Unauthorized"
    health = session.get(f"{bare.url}/readyz", headers={"Authorization": ""}, timeout=SECONDS)
    assert health.text == "ok"


def test_a_body_that_is_too_large_is_refused(bare: Served, session: requests.Session) -> None:
    url = f"{bare.url}/api/v1/namespaces/default/configmaps"
    answer = session.post(url, data=b" " * (3 * 1024 * 1024 + 1), timeout=SECONDS)
    assert answer.status_code == 413
    assert "limit is 3145728" in answer.json()["message"]


def test_warnings_are_headers(bare: Served, session: requests.Session) -> None:
    url = f"{bare.url}/api/v1/namespaces/default/configmaps?dryRun=All"
    body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "w"}, "dta": {}}
    answer = session.post(url, json=body, timeout=SECONDS)
    assert answer.headers["Warning"] == '299 - "unknown field \\"dta\\""'


def test_a_watch_tells_what_comes_and_ends_in_time(bare: Served, session: requests.Session) -> None:
    url = f"{bare.url}/api/v1/namespaces/default/configmaps"
    answer = session.get(f"{url}?watch=1&timeoutSeconds=2", stream=True, timeout=SECONDS)
    assert answer.status_code == 200
    body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "seen"}}
    with requests.Session() as other:
        other.trust_env = False
        other.verify = session.verify
        other.post(url, json=body, headers=dict(session.headers), timeout=SECONDS)
    events = [json.loads(line) for line in answer.iter_lines() if line]
    assert ("ADDED", "seen") in [(e["type"], e["object"]["metadata"]["name"]) for e in events]


def test_many_watches_are_told_the_same(bare: Served, session: requests.Session) -> None:
    url = f"{bare.url}/api/v1/namespaces/default/configmaps"
    version = session.get(url, timeout=SECONDS).json()["metadata"]["resourceVersion"]
    query = f"{url}?watch=1&resourceVersion={version}&timeoutSeconds=3"
    seen: list[list[Any]] = []

    def watch() -> None:
        with requests.get(
            query,
            stream=True,
            timeout=SECONDS,
            verify=str(bare.ca_pem),
            headers={"Authorization": f"Bearer {TOKEN}"},
        ) as answer:
            seen.append([json.loads(line) for line in answer.iter_lines() if line])

    threads = [threading.Thread(target=watch) for _ in range(5)]
    for thread in threads:
        thread.start()
    for number in range(20):
        body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": f"many-{number}"}}
        assert session.post(url, json=body, timeout=SECONDS).status_code == 201
    for thread in threads:
        thread.join()
    assert all(events == seen[0] for events in seen)
    assert len(seen[0]) == 20


def test_doors_lead_to_sandboxes_of_their_own() -> None:
    with SandboxCluster(RealClock()) as one, SandboxCluster(RealClock()) as other:
        doors = Doors()
        doors.open(1, Sandbox(ApiServer(one), token_hash("first")))
        doors.open(2, Sandbox(ApiServer(other), token_hash("second")))
        server = ApiThread(doors)
        server.start()
        try:
            for path, token, status in (
                ("/sandboxes/1/api", "first", 200),
                ("/sandboxes/2/api", "second", 200),
                ("/sandboxes/2/api", "first", 401),
                ("/sandboxes/3/api", "first", 404),
                ("/api", "first", 404),
            ):
                headers = {"Authorization": f"Bearer {token}"}
                answer = requests.get(server.url + path, headers=headers, timeout=SECONDS)
                assert answer.status_code == status, path
        finally:
            server.stop()


def test_a_sandbox_that_ends_ends_its_watches_alone() -> None:
    with SandboxCluster(RealClock()) as one, SandboxCluster(RealClock()) as other:
        doors, first = Doors(), Sandbox(ApiServer(one), token_hash("t"))
        doors.open(1, first)
        doors.open(2, Sandbox(ApiServer(other), token_hash("t")))
        server = ApiThread(doors)
        server.start()
        headers = {"Authorization": "Bearer t"}
        path = "api/v1/namespaces?watch=1&timeoutSeconds=3"
        try:
            with (
                requests.get(
                    f"{server.url}/sandboxes/1/{path}00",
                    headers=headers,
                    stream=True,
                    timeout=SECONDS,
                ) as ends,
                requests.get(
                    f"{server.url}/sandboxes/2/{path}",
                    headers=headers,
                    stream=True,
                    timeout=SECONDS,
                ) as stays,
            ):
                doors.close(1)
                server.end_watches(first)
                assert len(list(ends.iter_lines())) <= 2
                assert len(list(stays.iter_lines())) == 2
        finally:
            server.stop()


def test_a_server_that_stops_ends_its_watches() -> None:
    with SandboxCluster(RealClock()) as cluster:
        server = ApiThread(OneSandbox(Sandbox(ApiServer(cluster), token_hash("t"))))
        server.start()
        url = f"{server.url}/api/v1/namespaces?watch=1"
        headers = {"Authorization": "Bearer t"}
        with requests.get(url, headers=headers, stream=True, timeout=SECONDS) as answer:
            lines = answer.iter_lines()
            next(lines)
            server.stop()
            assert len(list(lines)) <= 2


def test_certificates_are_kept_and_keys_are_private(tmp_path: Path) -> None:
    first = certificates_in(tmp_path / "tls", ["box.example"])
    before = first.certificate.read_bytes()
    again = certificates_in(tmp_path / "tls", ["box.example"])
    assert (again.ca_pem, again.certificate.read_bytes()) == (first.ca_pem, before)
    assert stat.S_IMODE(first.key.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "tls" / "ca.key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "tls").stat().st_mode) == 0o700
    other = certificates_in(tmp_path / "tls", ["other.example"])
    assert other.ca_pem == first.ca_pem
    assert other.certificate.read_bytes() != before
