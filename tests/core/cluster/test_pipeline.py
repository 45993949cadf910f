"""A scheduler's connection to a sandbox of another process: many bindings, one answer each."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.journal import MemoryJournal
from scheduler_core.cluster.pipeline import SchedulersSandbox
from scheduler_core.cluster.remote import SandboxServer
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.cluster.wire import encode
from scheduler_core.ports import ApiError, AsyncBinder, Conflict, NotFound
from tests.contract.support import eventually, pod

SECONDS = 20.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "socket"


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()


@pytest.fixture
def sandbox(journal: MemoryJournal) -> Iterator[SandboxCluster]:
    with SandboxCluster(VirtualClock(1_800_000_000.0), journal, pace=0.0) as sandbox:
        yield sandbox


def uid(sandbox: SandboxCluster, name: str) -> str:
    return str(sandbox.create("Pod", pod(name))["metadata"]["uid"])


def node_of(sandbox: SandboxCluster, name: str) -> str | None:
    found: str | None = sandbox.get("Pod", "default", name)["spec"].get("nodeName")
    return found


def test_nobody_serves(path: Path) -> None:
    with pytest.raises(ApiError, match="sandbox is not running"):
        SchedulersSandbox(path, actor="scheduler")


def test_bindings_are_made_and_refused_one_by_one(sandbox: SandboxCluster, path: Path) -> None:
    uids = {name: uid(sandbox, name) for name in ("a", "b", "c")}
    sandbox.bind("default", "b", uids["b"], "n0")
    with SandboxServer(sandbox, path):
        client = SchedulersSandbox(path, actor="scheduler")
        assert isinstance(client, AsyncBinder)
        futures = [client.begin_binding("default", n, u, "n1") for n, u in uids.items()]
        futures.append(client.begin_binding("default", "gone", "u", "n1"))
        failures = [future.exception(SECONDS) for future in futures]
        client.close()
    assert [type(failure) for failure in failures] == [type(None), Conflict, type(None), NotFound]
    assert 'pod b is already assigned to node "n0"' in str(failures[1])
    assert [node_of(sandbox, name) for name in "abc"] == ["n1", "n0", "n1"]


def test_a_binding_is_kept_before_it_is_told(
    sandbox: SandboxCluster, path: Path, journal: MemoryJournal
) -> None:
    found = uid(sandbox, "a")
    with SandboxServer(sandbox, path):
        client = SchedulersSandbox(path, actor="scheduler")
        client.begin_binding("default", "a", found, "n1").result(SECONDS)
        assert ("bind", "scheduler") in {(write.verb, write.actor) for write in journal.writes}
        client.close()


def test_what_was_taken_is_answered_when_the_server_ends(
    sandbox: SandboxCluster, path: Path
) -> None:
    uids = [uid(sandbox, f"p{number}") for number in range(50)]
    server = SandboxServer(sandbox, path)
    client = SchedulersSandbox(path, actor="scheduler", lookup=0.1)
    futures = [client.begin_binding("default", f"p{n}", u, "n1") for n, u in enumerate(uids)]
    eventually(lambda: node_of(sandbox, "p49") == "n1")
    server.close()
    assert {future.exception(SECONDS) for future in futures} == {None}
    assert client.gone.wait(SECONDS)
    client.close()


def test_a_scheduler_that_is_killed_with_answers_unread_is_no_fault(
    sandbox: SandboxCluster, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    binds = {"binds": [[1, "default", "a", uid(sandbox, "a"), "n1"]]}
    with SandboxServer(sandbox, path):
        with socket.socket(socket.AF_UNIX) as killed:
            killed.connect(str(path))
            killed.sendall(encode({"op": "pipeline", "actor": "scheduler"}))
            assert killed.recv(1) == b"{"
            killed.sendall(encode(binds))
            eventually(lambda: node_of(sandbox, "a") == "n1")
        # Closed with the rest unread: a reset, as of a process that is killed.
        eventually(lambda: not any(t.name == "sandbox-bindings" for t in threading.enumerate()))
    assert caplog.records == []


def test_events_are_written_without_waiting(sandbox: SandboxCluster, path: Path) -> None:
    sandbox.create("Pod", pod("a"))
    with SandboxServer(sandbox, path):
        client = SchedulersSandbox(path, actor="scheduler")
        client.emit_event(
            sandbox.get("Pod", "default", "a"),
            type="Normal",
            reason="Scheduled",
            action="Binding",
            note="on n1",
            reporting_controller="default-scheduler",
        )
        client.close()
        eventually(lambda: bool(sandbox.list("Event").items))
    (event,) = sandbox.list("Event").items
    assert (event["reason"], event["regarding"]["name"], event["note"]) == (
        "Scheduled", "a", "on n1",
    )  # fmt: skip


def test_it_acts_in_one_name(sandbox: SandboxCluster, path: Path) -> None:
    with SandboxServer(sandbox, path):
        client = SchedulersSandbox(path, actor="scheduler")
        assert client.as_actor("scheduler") is client
        with pytest.raises(ValueError, match="acts as 'scheduler', not as 'page:ada'"):
            client.as_actor("page:ada")
        client.close()


class Silent(SandboxServer):
    """Takes bindings, and ends before it answers."""

    def __init__(self, sandbox: SandboxCluster, path: Path, makes_them: bool) -> None:
        self.heard = threading.Event()
        self.makes_them = makes_them
        super().__init__(sandbox, path)

    def acting(self, request: object) -> object:  # type: ignore[override]
        return _SilentView(self)


class _SilentView:
    def __init__(self, server: Silent) -> None:
        self._server = server

    def begin_binding(self, *binding: str) -> object:
        if self._server.makes_them:
            self._server.cluster.bind(*binding)
        self._server.heard.set()
        time.sleep(0.2)
        raise ConnectionResetError


@pytest.mark.parametrize(
    ("makes_them", "failure"),
    [
        pytest.param(True, "", id="made"),
        pytest.param(False, "the sandbox went away before it was bound", id="not made"),
    ],
)
def test_what_was_under_way_is_looked_up_when_the_sandbox_is_back(
    sandbox: SandboxCluster, path: Path, makes_them: bool, failure: str
) -> None:
    found = uid(sandbox, "a")
    server = Silent(sandbox, path, makes_them)
    with server:
        client = SchedulersSandbox(path, actor="scheduler")
        future = client.begin_binding("default", "a", found, "n1")
        assert server.heard.wait(SECONDS)
    assert client.gone.wait(SECONDS)
    with SandboxServer(sandbox, path):
        told = future.exception(SECONDS)
    assert str(told or "") == failure
    with pytest.raises(ApiError, match="connection to the sandbox broke"):
        client.begin_binding("default", "a", found, "n1").result(SECONDS)
    client.close()


def test_a_sandbox_that_stays_away_fails_what_was_under_way(
    sandbox: SandboxCluster, path: Path
) -> None:
    found = uid(sandbox, "a")
    server = Silent(sandbox, path, makes_them=False)
    with server:
        client = SchedulersSandbox(path, actor="scheduler", lookup=0.1)
        future = client.begin_binding("default", "a", found, "n1")
        assert server.heard.wait(SECONDS)
    assert "sandbox is not running" in str(future.exception(SECONDS))
    client.close()
