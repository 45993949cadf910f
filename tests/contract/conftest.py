"""Every adapter of the Cluster port, one after another; or, with KUBESCHED_TEST_KUBECONFIG naming a
kubeconfig, KubeCluster against that server alone. Whatever else is on it stays as it is: the suite
makes namespaces, nodes and priority classes with names of its own (`apart.py`), and takes them away
again. A scheduler that places pods of `default-scheduler` must not run there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dashboard.sandbox_api.serving import ApiThread, OneSandbox, Sandbox, token_hash
from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.api.server import ApiServer
from scheduler_core.cluster.journal import MemoryJournal
from scheduler_core.cluster.remote import RemoteSandbox, SandboxServer
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.kube.access import Token
from scheduler_core.kube.cluster import KubeCluster
from scheduler_core.kube.connect import connect
from scheduler_core.ports import Cluster
from tests.contract.real import RealServer
from tests.contract.support import TestClock, WaitingClock

TOKEN = "let-me-in"
START = 1_800_000_000.0
KUBECONFIG = os.environ.get("KUBESCHED_TEST_KUBECONFIG", "")
OURS = ("sandbox", "sandbox-with-journal", "remote", "kube")
ADAPTERS = ("real",) if KUBECONFIG else OURS


class StandingClock(VirtualClock):
    start = START
    tolerance = 0.0


@pytest.fixture
def clock() -> TestClock:
    return WaitingClock() if KUBECONFIG else StandingClock(START)


@pytest.fixture
def has_others() -> bool:
    """Whether somebody else may write to the server at any moment."""
    return bool(KUBECONFIG)


@pytest.fixture(scope="session")
def real_server() -> Iterator[RealServer | None]:
    server = RealServer(KUBECONFIG) if KUBECONFIG else None
    yield server
    if server is not None:
        server.close()


@pytest.fixture
def empties_namespaces(real_server: RealServer | None) -> bool:
    """Whether somebody does: in a sandbox itself, else kube-controller-manager."""
    return real_server is None or real_server.has_controllers


@pytest.fixture(params=ADAPTERS)
def cluster(
    request: pytest.FixtureRequest,
    clock: TestClock,
    tmp_path: Path,
    real_server: RealServer | None,
) -> Iterator[Cluster]:
    with ExitStack() as stack:
        if real_server is not None:
            yield stack.enter_context(real_server.corner(clock))
        elif request.param == "kube":
            yield stack.enter_context(_kube(stack, clock))
        else:
            yield _sandbox(stack, request.param, clock, tmp_path)


def _kube(stack: ExitStack, clock: TestClock) -> KubeCluster:
    """Through the sandbox's own HTTP API, with the official client."""
    sandbox = stack.enter_context(SandboxCluster(clock))
    server = ApiThread(OneSandbox(Sandbox(ApiServer(sandbox), token_hash(TOKEN))))
    server.start()
    stack.callback(server.stop)
    return KubeCluster(connect(Token(server.url, TOKEN)), qps=-1, clock=clock)


def _sandbox(stack: ExitStack, which: str, clock: TestClock, tmp_path: Path) -> Cluster:
    journal = None if which == "sandbox" else MemoryJournal()
    sandbox = stack.enter_context(SandboxCluster(clock, journal, pace=0.001))
    if which != "remote":
        return sandbox
    folder = tmp_path / "s"
    folder.mkdir(mode=0o700)
    stack.enter_context(SandboxServer(sandbox, folder / "socket"))
    remote = RemoteSandbox(folder / "socket")
    stack.callback(remote.close)
    return remote
