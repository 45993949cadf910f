from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduler_core.kube.cluster import KubeCluster
from tests.kube.fake import FakeServer, VirtualTiming


@pytest.fixture
def timing() -> VirtualTiming:
    return VirtualTiming()


@pytest.fixture
def server(timing: VirtualTiming) -> FakeServer:
    return FakeServer(timing)


@pytest.fixture
def cluster(server: FakeServer, timing: VirtualTiming) -> Iterator[KubeCluster]:
    made = KubeCluster(server, qps=-1, clock=timing.clock, timing=timing, random=lambda: 0.5)
    with made:
        yield made
