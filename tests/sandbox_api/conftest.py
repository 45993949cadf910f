"""A sandbox behind HTTPS, on a thread of the test run."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from dashboard.sandbox_api.certificates import certificates_in
from dashboard.sandbox_api.kubeconfig import kubeconfig
from dashboard.sandbox_api.serving import ApiThread, OneSandbox, Sandbox, token_hash
from dashboard.sandbox_parts import start_controllers
from scheduler_core.clock import RealClock
from scheduler_core.cluster.api.server import ApiServer
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.ports import ApiError, WatchEvent
from tests import servers

TOKEN = "a-token-of-this-test"


@dataclass(frozen=True)
class Served:
    """A running API. `kubeconfig`: a file."""

    cluster: SandboxCluster
    url: str
    ca_pem: Path
    kubeconfig: Path


@contextmanager
def serving(folder: Path, *, controllers: bool) -> Iterator[Served]:
    certificates = certificates_in(folder / "tls")
    with SandboxCluster(RealClock(), rng=random.Random(3)) as cluster:
        door = OneSandbox(Sandbox(ApiServer(cluster), token_hash(TOKEN)))
        server = ApiThread(door, certificate=certificates.certificate, key=certificates.key)
        server.start()
        stop: Callable[[], None] = start_controllers(cluster) if controllers else lambda: None
        config, ca = folder / "kubeconfig", folder / "ca.pem"
        config.write_text(kubeconfig(server.url, TOKEN, "test", certificates.ca_pem))
        ca.write_bytes(certificates.ca_pem)
        try:
            yield Served(cluster, server.url, ca, config)
        finally:
            stop()
            server.stop()


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """An API server alone: nothing changes by itself."""
    with serving(tmp_path_factory.mktemp("api"), controllers=False) as served:
        yield served


@pytest.fixture(scope="module")
def lively(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With kubelet and controllers, and a scheduler that takes the first node."""
    with serving(tmp_path_factory.mktemp("api"), controllers=True) as served:
        stopping = threading.Event()
        due = threading.Event()

        def hear(event: WatchEvent) -> None:
            due.set()

        watches = [served.cluster.list_watch(kind, hear) for kind in ("Pod", "Node")]
        thread = threading.Thread(target=_bind, args=(served.cluster, due, stopping), daemon=True)
        thread.start()
        yield served
        stopping.set()
        due.set()
        thread.join()
        for watch in watches:
            watch.stop()


def _bind(cluster: SandboxCluster, due: threading.Event, stopping: threading.Event) -> None:
    while not stopping.is_set():
        due.wait()
        due.clear()
        nodes = [
            node["metadata"]["name"]
            for node in cluster.list("Node").items
            if not node["spec"].get("unschedulable") and not node["spec"].get("taints")
        ]
        for pod in cluster.list("Pod", field_selector="spec.nodeName=").items if nodes else ():
            metadata = pod["metadata"]
            try:
                cluster.bind(metadata["namespace"], metadata["name"], metadata["uid"], nodes[0])
            except ApiError:
                continue  # it is gone


@pytest.fixture(scope="session")
def kubectl() -> str:
    """The program."""
    found = servers.find_kubectl()
    assert found is not None
    return found
