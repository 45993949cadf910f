"""A kubeconfig outlives a restart: the API comes back on the port that it had."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard.sandbox_api import access
from dashboard.sandbox_api.models import SandboxAccess
from dashboard.sandbox_api.ports import on_the_same_port
from dashboard.sandbox_api.serving import ApiThread, Doors
from dashboard.sandboxes import create_sandbox


def make(port: int) -> ApiThread:
    return ApiThread(Doors(), port=port)


def start_and_end(folder: Path) -> tuple[int, str]:
    """The port and the notice of one start."""
    server, notice = on_the_same_port(folder, make)
    server.start()
    server.stop()
    return server.address[1], notice


def test_the_port_is_the_one_of_before(tmp_path: Path) -> None:
    port, notice = start_and_end(tmp_path)
    assert notice == ""
    assert [start_and_end(tmp_path) for _ in range(2)] == [(port, "")] * 2


def test_a_port_that_is_taken_is_said_and_comes_back(tmp_path: Path) -> None:
    port, _ = start_and_end(tmp_path)
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        another, notice = start_and_end(tmp_path)
    assert another != port
    assert notice == (
        f"Port {port}, which was used before, is taken by another program, so this is port "
        f"{another}: kubeconfigs from before do not reach it. Download a new one."
    )
    assert start_and_end(tmp_path) == (port, "")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"70000", id="out of range"),
        pytest.param(b"-1", id="negative"),
        pytest.param(b"port", id="a word"),
        pytest.param(b"\xff\xfe", id="bytes"),
    ],
)
def test_a_damaged_note_is_written_anew(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "port").write_bytes(text)
    port, notice = start_and_end(tmp_path)
    assert notice == ""
    assert (tmp_path / "port").read_text(encoding="ascii") == f"{port}\n"


@pytest.mark.django_db
def test_the_page_says_what_is_to_know_of_the_address(settings: Any, tmp_path: Path) -> None:
    settings.KUBESCHED_RUNTIME_DIR = tmp_path / "run"
    cluster, *_ = create_sandbox(name="box")
    access.ensure(cluster.pk)
    SandboxAccess.objects.update(url="https://127.0.0.1:4/sandboxes/1", problem="Port 3 is taken.")
    client = Client()
    client.force_login(User.objects.create_user("olga"))
    page = client.get(f"/runs/{cluster.runs.get().pk}/kubernetes/").content.decode()
    assert '<p class="notice">Port 3 is taken.</p>' in page
    assert "not served" not in page
