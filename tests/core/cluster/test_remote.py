"""The socket: who may use it, what breaks, and how watches heal."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster import remote_server, wire
from scheduler_core.cluster.journal import MemoryJournal
from scheduler_core.cluster.remote import RemoteSandbox, SandboxServer
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.ports import ApiError, NotFound
from tests.contract.support import Recorder, eventually, node, pod


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "s"
    folder.mkdir(mode=0o700)
    return folder / "socket"


@pytest.fixture
def sandbox() -> SandboxCluster:
    return SandboxCluster(VirtualClock(1_800_000_000.0), history=50)


@pytest.fixture
def remote(path: Path) -> Iterator[RemoteSandbox]:
    client = RemoteSandbox(path, actor="page:ada")
    yield client
    client.close()


def test_nobody_serves(remote: RemoteSandbox) -> None:
    with pytest.raises(ApiError, match=r"^sandbox is not running$") as caught:
        remote.list("Node")
    assert (caught.value.code, caught.value.reason) == (503, "ServiceUnavailable")
    with pytest.raises(ApiError, match="sandbox is not running"):
        remote.list_watch("Node", Recorder())


def test_an_event_for_nobody_is_dropped(remote: RemoteSandbox) -> None:
    remote.emit_event(
        {"kind": "Pod", "name": "web"},
        type="Normal",
        reason="a",
        action="b",
        note="c",
        reporting_controller="d",
    )


def test_the_socket_is_for_its_user_alone(sandbox: SandboxCluster, path: Path) -> None:
    with SandboxServer(sandbox, path):
        assert path.stat().st_mode & 0o777 == 0o600
    assert not path.exists()
    path.parent.chmod(0o755)
    with pytest.raises(OSError, match="must be this user's alone"):
        SandboxServer(sandbox, path)


def test_a_folder_is_made(sandbox: SandboxCluster, tmp_path: Path) -> None:
    with SandboxServer(sandbox, tmp_path / "run" / "socket"):
        assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700


def test_two_cannot_serve_at_one_path(sandbox: SandboxCluster, path: Path) -> None:
    with SandboxServer(sandbox, path), pytest.raises(OSError, match="another process serves"):
        SandboxServer(sandbox, path)


def test_a_path_that_is_too_long(sandbox: SandboxCluster, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="longer than 107 bytes"):
        SandboxServer(sandbox, tmp_path / ("x" * 120))


def test_a_socket_left_behind_is_taken_over(
    sandbox: SandboxCluster, path: Path, remote: RemoteSandbox
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(os.fspath(path))
    with SandboxServer(sandbox, path):
        assert list(remote.list("Pod").items) == []


def test_the_actor_is_kept(path: Path, remote: RemoteSandbox) -> None:
    journal = MemoryJournal()
    clock = VirtualClock(1_800_000_000.0)
    with (
        SandboxCluster(clock, journal, pace=0.001) as cluster,
        SandboxServer(cluster, path),
    ):
        remote.create("Node", node("n1"))
        remote.as_actor("user:jun").create_all([node("n2")])
    assert [(w.key, w.actor) for w in journal.writes[-2:]] == [
        ("n1", "page:ada"),
        ("n2", "user:jun"),
    ]


def test_commands_of_the_owner(sandbox: SandboxCluster, path: Path, remote: RemoteSandbox) -> None:
    commands = {"double": lambda arguments: {"is": arguments["number"] * 2}}
    with SandboxServer(sandbox, path, commands=commands):
        assert remote.command("double", number=21) == {"is": 42}
        with pytest.raises(ApiError, match="unknown command 'triple'"):
            remote.command("triple")


def test_a_request_that_breaks_the_server_is_an_error_for_its_client_alone(
    sandbox: SandboxCluster, path: Path, remote: RemoteSandbox, caplog: pytest.LogCaptureFixture
) -> None:
    with SandboxServer(sandbox, path, commands={"break": lambda arguments: 1 / 0}):
        with pytest.raises(ApiError, match="ZeroDivisionError") as caught:
            remote.command("break")
        assert caught.value.code == 500
        assert list(remote.list("Pod").items) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param(b"hello\n", "the line is not JSON", id="no JSON"),
        pytest.param(b"[]\n", "the line is not a JSON object", id="a list"),
        pytest.param(b'{"op":"drop"}\n', "unknown operation 'drop'", id="no such operation"),
        pytest.param(b'{"op":"get","args":{"kind":3}}\n', "kind is not a string", id="a number"),
        pytest.param(b'{"op":"create","args":[]}\n', "args is not a JSON object", id="no names"),
    ],
)
def test_nonsense_is_refused(
    sandbox: SandboxCluster, path: Path, line: bytes, message: str
) -> None:
    with (
        SandboxServer(sandbox, path),
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client,
    ):
        client.connect(os.fspath(path))
        client.sendall(line)
        answer = client.recv(65536).decode()
    assert '"code":400' in answer
    assert message in answer


def test_errors_keep_their_class(
    sandbox: SandboxCluster, path: Path, remote: RemoteSandbox
) -> None:
    with SandboxServer(sandbox, path), pytest.raises(NotFound) as caught:
        remote.get("Pod", "default", "web")
    assert caught.value.message == 'pods "web" not found'


def test_many_clients_at_once(sandbox: SandboxCluster, path: Path) -> None:
    def client(number: int) -> None:
        remote = RemoteSandbox(path)
        for index in range(20):
            remote.create("Pod", pod(f"p{number}-{index}"))
        remote.close()

    with SandboxServer(sandbox, path) as server:
        threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(sandbox.list("Pod").items) == 160
        eventually(lambda: server.clients == 0)


def test_a_client_that_died_is_forgotten(sandbox: SandboxCluster, path: Path) -> None:
    with SandboxServer(sandbox, path) as server:
        remote = RemoteSandbox(path)
        watch = remote.list_watch("Pod", Recorder())
        eventually(lambda: server.clients == 2)
        watch.stop()
        remote.close()
        for index in range(5):
            sandbox.create("Pod", pod(f"p{index}"))
        eventually(lambda: server.clients == 0)


# -- watches heal --------------------------------------------------------------------------------


def test_a_watch_goes_on_where_it_was(
    sandbox: SandboxCluster, path: Path, remote: RemoteSandbox
) -> None:
    sink = Recorder()
    with SandboxServer(sandbox, path):
        sandbox.create("Pod", pod("a"))
        watch = remote.list_watch("Pod", sink)
    sandbox.create("Pod", pod("b"))
    sandbox.delete("Pod", "default", "a")
    with SandboxServer(sandbox, path):
        eventually(lambda: len(sink.seen) >= 5)
        watch.stop()
    assert sink.seen == [
        ("ADDED", "a"),
        ("SYNCED", ""),
        ("ADDED", "b"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
    ]


def test_after_too_much_was_missed_it_tells_the_differences(
    sandbox: SandboxCluster, path: Path, remote: RemoteSandbox
) -> None:
    sink = Recorder()
    with SandboxServer(sandbox, path):
        for name in ("kept", "gone", "changed", "again"):
            sandbox.create("Pod", pod(name))
        watch = remote.list_watch("Pod", sink)
    before = len(sink.events)
    for name in ("gone", "again"):
        sandbox.delete("Pod", "default", name)
    sandbox.create("Pod", pod("again"))
    sandbox.patch("Pod", "default", "changed", {"metadata": {"labels": {"app": "x"}}})
    for index in range(60):  # more than the history holds
        sandbox.create("Node", node(f"n{index}"))
    with SandboxServer(sandbox, path):
        eventually(lambda: sink.seen.count(("SYNCED", "")) == 2)
        watch.stop()
    assert sorted(sink.seen[before:-1]) == [
        ("ADDED", "again"),
        ("DELETED", "again"),
        ("DELETED", "gone"),
        ("MODIFIED", "changed"),
    ]
    assert sink.seen[-1] == ("SYNCED", "")
    assert sink.seen.index(("DELETED", "again")) < sink.seen.index(("ADDED", "again"), before)


def test_another_store_is_noticed(
    sandbox: SandboxCluster, path: Path, remote: RemoteSandbox
) -> None:
    """Its versions look alike, but mean nothing for what was seen before."""
    sink = Recorder()
    with SandboxServer(sandbox, path):
        sandbox.create("Pod", pod("old"))
        watch = remote.list_watch("Pod", sink)
    other = SandboxCluster(VirtualClock(1_800_000_000.0))
    for index in range(10):
        other.create("Node", node(f"n{index}"))
    other.create("Pod", pod("new"))
    with SandboxServer(other, path):
        eventually(lambda: len(sink.seen) == 5)
        watch.stop()
    assert sink.seen[2:] == [("DELETED", "old"), ("ADDED", "new"), ("SYNCED", "")]


def test_a_client_that_does_not_read_is_dropped_and_comes_back(
    sandbox: SandboxCluster, path: Path, remote: RemoteSandbox
) -> None:
    go_on = threading.Event()

    class Slow(Recorder):
        def __call__(self, event: object) -> None:
            super().__call__(event)  # type: ignore[arg-type]
            if len(self.events) == 2:
                assert go_on.wait(10)

    with SandboxServer(sandbox, path) as server:
        server.backlog = 5
        sink = Slow()
        watch = remote.list_watch("Pod", sink)
        big = {"metadata": {"annotations": {"big": "x" * 200_000}}}
        sandbox.create("Pod", pod("a"))
        eventually(lambda: len(sink.events) == 2)
        for index in range(30):
            sandbox.patch("Pod", "default", "a", {**big, "index": index})
            sandbox.patch("Pod", "default", "a", {"metadata": {"labels": {"i": str(index)}}})
        sandbox.create("Pod", pod("last"))
        go_on.set()
        expected = {f"default/{p['metadata']['name']}": p for p in sandbox.list("Pod").items}
        eventually(lambda: sink.objects == expected)
        watch.stop()


def test_a_heartbeat_keeps_a_quiet_watch_young(
    sandbox: SandboxCluster, path: Path, remote: RemoteSandbox
) -> None:
    sink = Recorder()
    with SandboxServer(sandbox, path) as server:
        server.heartbeat = 0.01
        watch = remote.list_watch("Pod", sink)
        sandbox.create("Pod", pod("first"))
        eventually(lambda: len(sink.seen) == 2)
        for index in range(60):
            sandbox.create("Node", node(f"n{index}"))
        version = sandbox.resource_version
        eventually(lambda: watch._version == version)  # type: ignore[attr-defined]
    sandbox.create("Pod", pod())
    with SandboxServer(sandbox, path):
        eventually(lambda: ("ADDED", "web") in sink.seen)
        watch.stop()
    assert sink.seen == [("SYNCED", ""), ("ADDED", "first"), ("ADDED", "web")]


def test_a_list_longer_than_a_line(
    sandbox: SandboxCluster, path: Path, remote: RemoteSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its items come in several lines, whole and in order, and the connection serves on."""
    monkeypatch.setattr(remote_server, "ITEMS_A_LINE", 2)
    sink = Recorder()
    with SandboxServer(sandbox, path):
        for index in range(5):
            sandbox.create("Pod", pod(f"p{index}"))
        assert list(remote.list("Pod").items) == list(sandbox.list("Pod").items)
        assert list(remote.list("PodGroup").items) == []
        assert remote.get("Pod", "default", "p4")["metadata"]["name"] == "p4"
        watch = remote.list_watch("Pod", sink)
        watch.stop()
    assert sink.seen == [*(("ADDED", f"p{index}") for index in range(5)), ("SYNCED", "")]


def test_a_list_that_breaks_off_is_an_error(
    path: Path, remote: RemoteSandbox, sandbox: SandboxCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_server, "ITEMS_A_LINE", 1)

    def encode(document: Any) -> bytes:
        if document.get("items"):
            raise OSError("the owner died")
        return wire.encode(document)

    with SandboxServer(sandbox, path):
        sandbox.create("Pod", pod("a"))
        with monkeypatch.context() as broken:
            broken.setattr(remote_server, "encode", encode)
            with pytest.raises(ApiError, match="the connection to the sandbox broke") as failed:
                remote.list("Pod")
        assert failed.value.code == 503
        assert len(remote.list("Pod").items) == 1


def test_what_was_received_shares_its_equal_parts(
    sandbox: SandboxCluster, path: Path, remote: RemoteSandbox
) -> None:
    sink = Recorder()
    with SandboxServer(sandbox, path):
        for name in "ab":
            sandbox.create("Pod", pod(name))
        one, other = remote.list("Pod").items
        assert one["spec"] is other["spec"]
        watch = remote.list_watch("Pod", sink)
        sandbox.create("Pod", pod("c"))
        eventually(lambda: ("ADDED", "c") in sink.seen)
        watch.stop()
    assert sink.events[-1].object["spec"] is one["spec"]
