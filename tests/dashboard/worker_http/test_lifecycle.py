"""The server of a loop worker's process: where it listens, and what stops it from doing so."""

from __future__ import annotations

import http.client
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dashboard.health import checks, heartbeat
from dashboard.worker_http import client, lifecycle
from tests.dashboard.worker_http.certificates import Authority


@pytest.fixture(autouse=True)
def runtime_dir(settings: Any) -> Iterator[Path]:
    """Short, as unix sockets must be."""
    with tempfile.TemporaryDirectory(prefix="kw") as folder:
        settings.KUBESCHED_RUNTIME_DIR = Path(folder)
        settings.KUBESCHED_WORKER_LISTEN = None
        yield Path(folder)
        lifecycle.stop()


def test_without_an_address_it_is_there_for_this_machine_alone(runtime_dir: Path) -> None:
    server = lifecycle.start()
    assert lifecycle.start() is server
    assert server.address is None
    path = runtime_dir / f"worker-{os.getpid()}.sock"
    assert client.ask(path, "/livez") == (200, b"ok")
    lifecycle.stop()
    lifecycle.stop()
    assert not path.exists()


def test_at_an_address_probes_are_free_and_the_rest_is_not(settings: Any) -> None:
    settings.KUBESCHED_WORKER_LISTEN = ("127.0.0.1", 0)
    server = lifecycle.start()
    assert server.address is not None
    with closing(http.client.HTTPConnection(*server.address, timeout=10)) as connection:
        for path, status in (("/livez", 200), ("/metrics", 401), ("/extender/1/x/filter", 405)):
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == status, path


def test_the_default_worker_has_probes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    server = lifecycle.start_probes(("127.0.0.1", 0))
    assert server.address is not None
    with closing(http.client.HTTPConnection(*server.address, timeout=10)) as connection:

        def ask(path: str) -> tuple[int, bytes]:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()

        assert ask("/livez?verbose") == (200, b"[+]ping ok\n[+]beat ok\nlivez check passed\n")
        assert ask("/extender/1/x/filter")[0] == 401
        assert ask("/metrics/slis")[0] == 401
        monkeypatch.setattr(heartbeat, "seconds_since", lambda: 61.0)
        monkeypatch.setattr(checks, "broker", lambda: None)
        assert ask("/livez/beat")[0] == 500


def test_beat_that_redis_keeps_from_sending_is_not_to_blame(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    monkeypatch.setattr(heartbeat, "seconds_since", lambda: 61.0)
    assert checks.beat() is None


def test_two_checks_are_left_out(settings: Any) -> None:
    settings.KUBESCHED_WORKER_LISTEN = ("127.0.0.1", 0)
    server = lifecycle.start()
    assert server.address is not None
    with closing(http.client.HTTPConnection(*server.address, timeout=10)) as connection:
        connection.request("GET", "/livez?verbose&exclude=ping&exclude=scheduling-loops")
        assert connection.getresponse().read() == (
            b"[+]ping excluded: ok\n[+]scheduling-loops excluded: ok\nlivez check passed\n"
        )


def test_an_address_that_is_taken_is_named(settings: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        settings.KUBESCHED_WORKER_LISTEN = taken.getsockname()
        with pytest.raises(lifecycle.CannotServe, match="KUBESCHED_WORKER_LISTEN"):
            lifecycle.start()


def test_a_certificate_needs_its_key(settings: Any, runtime_dir: Path) -> None:
    pair = Authority(runtime_dir / "ca").issue("127.0.0.1")
    settings.KUBESCHED_WORKER_LISTEN = ("127.0.0.1", 0)
    settings.KUBESCHED_WORKER_TLS_CERT = str(pair.certificate)
    with pytest.raises(lifecycle.CannotServe, match="belong together"):
        lifecycle.start()
    settings.KUBESCHED_WORKER_TLS_KEY = "/nowhere.key"
    with pytest.raises(lifecycle.CannotServe, match="No such file"):
        lifecycle.start()
    settings.KUBESCHED_WORKER_TLS_KEY = str(pair.key)
    assert lifecycle.start().address is not None
