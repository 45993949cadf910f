"""Every adapter of the Cluster port, one after another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.journal import MemoryJournal
from scheduler_core.cluster.remote import RemoteSandbox, SandboxServer
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.ports import Cluster

START = 1_800_000_000.0


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(START)


@pytest.fixture(params=["sandbox", "sandbox-with-journal", "remote"])
def cluster(
    request: pytest.FixtureRequest, clock: VirtualClock, tmp_path: Path
) -> Iterator[Cluster]:
    with ExitStack() as stack:
        journal = None if request.param == "sandbox" else MemoryJournal()
        sandbox = stack.enter_context(SandboxCluster(clock, journal, pace=0.001))
        if request.param != "remote":
            yield sandbox
            return
        folder = tmp_path / "s"
        folder.mkdir(mode=0o700)
        stack.enter_context(SandboxServer(sandbox, folder / "socket"))
        remote = RemoteSandbox(folder / "socket")
        stack.callback(remote.close)
        yield remote
