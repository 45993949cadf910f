"""Another scheduler, ours with other weights, places pods while the observer looks on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from time import monotonic
from typing import Any

import pytest

from dashboard.sandbox_api.serving import ApiThread, OneSandbox, Sandbox, token_hash
from scheduler_core.algorithm import SeededRandom, SmallestName
from scheduler_core.clock import RealClock, VirtualClock
from scheduler_core.cluster.api.server import ApiServer
from scheduler_core.cluster.journal import MemoryJournal
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.kube.access import Token
from scheduler_core.kube.cluster import KubeCluster
from scheduler_core.kube.connect import connect
from scheduler_core.kube.transport import JSON, Answer, Query, Stream, Transport
from scheduler_core.observations import AGREEMENTS, PLACED, Observation, Verdict
from scheduler_core.observing import ObservingScheduler
from scheduler_core.ports import Cluster
from scheduler_core.read_only import ReadOnlyCluster, WriteRefused
from scheduler_core.scheduler import Scheduler
from scheduler_core.testing.builders import make_node, make_pod
from tests.core.observing.watching import Notes, configuration

PACKING = {
    "name": "NodeResourcesFit",
    "args": {
        "scoringStrategy": {
            "type": "MostAllocated",
            "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
        }
    },
}
PROFILE = {"schedulerName": "default-scheduler"}
PODS = 8
BLIND = {"plugins": {"filter": {"disabled": [{"name": "TaintToleration"}]}}}


def fill(cluster: Cluster, rng: Random, nodes: int) -> None:
    for i in range(nodes):
        node = make_node(f"n{i}").capacity(cpu=str(rng.choice((4, 8, 16))), memory="32Gi")
        if i % 4 == 0:
            node = node.taint("team", "search")
        cluster.create("Node", node.zone(f"z{i % 3}").raw())


def pods(rng: Random, count: int) -> Iterator[dict[str, Any]]:
    for i in range(count):
        size = rng.choice((1, 2, 3))
        yield make_pod(f"p{i}").req(cpu=str(size), memory=f"{2 * size}Gi").raw()


def watch_one_by_one(theirs: dict[str, Any], seed: int) -> list[Observation]:
    """Pods come one after another; the other scheduler places each, the observer sees it."""
    rng, clock = Random(seed), VirtualClock(1_000_000.0)
    cluster = SandboxCluster(clock)
    fill(cluster, rng, 12)
    other = Scheduler(
        configuration({**PROFILE, **theirs}),
        cluster.as_actor("other"),
        clock=clock,
        tie_breaker=SeededRandom(seed),
    )
    notes = Notes()
    observer = ObservingScheduler(
        configuration(), cluster, clock=clock, observers=[notes], tie_breaker=SmallestName()
    )
    other.start()
    observer.start()
    for pod in pods(rng, 40):
        cluster.create("Pod", pod)
        for scheduler in (other, observer):
            while scheduler.run_once():
                pass
    return notes.all


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_alike_they_agree_on_every_pod(seed: int) -> None:
    words = watch_one_by_one({}, seed)
    placed = [word for word in words if word.verdict in PLACED]
    assert len(placed) > 10
    assert {word.verdict for word in placed} <= AGREEMENTS
    # What the other one does not place does not fit for us either.
    left = {word.pod.key for word in words} - {word.pod.key for word in placed}
    assert all(not word.ours for word in words if word.pod.key in left)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_other_weights_make_differences_which_are_explained(seed: int) -> None:
    words = watch_one_by_one({"pluginConfig": [PACKING]}, seed)
    differing = [word for word in words if word.verdict is Verdict.DIFFERS]
    assert differing
    for word in differing:
        assert word.ours_total is not None
        assert word.actual_total is not None
        gap = word.ours_total - word.actual_total
        assert gap > 0
        assert gap == sum(row.advantage for row in word.comparison)
        assert word.plugin
        assert f"{word.plugin} prefers {word.ours} by" in word.why


def test_another_filter_makes_nodes_that_we_turn_down() -> None:
    words = watch_one_by_one({**BLIND, "pluginConfig": [PACKING]}, 1)
    turned_down = [word for word in words if word.verdict is Verdict.INFEASIBLE]
    assert turned_down
    assert {word.plugin for word in turned_down} == {"TaintToleration"}
    assert "untolerated taint" in turned_down[0].why


# -- nothing is written ----------------------------------------------------------------------------


@dataclass
class Requests:
    """An Endpoint that notes what is asked."""

    real: Any
    asked: list[tuple[str, str]] = field(default_factory=list)

    @property
    def server(self) -> str:
        return str(self.real.server)

    def open(self, connections: int, *, waits: bool = True) -> Transport:
        return _Noting(self.real.open(connections, waits=waits), self.asked)


@dataclass
class _Noting:
    real: Transport
    asked: list[tuple[str, str]]

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: bytes | None = None,
        content_type: str = JSON,
        timeout: float,
    ) -> Answer:
        self.asked.append((method, path))
        return self.real.request(
            method, path, query=query, body=body, content_type=content_type, timeout=timeout
        )

    def stream(self, path: str, query: Query, *, silence: float) -> Stream | Answer:
        self.asked.append(("GET", path))
        return self.real.stream(path, query, silence=silence)

    def close(self) -> None:
        self.real.close()


def test_over_http_it_only_gets() -> None:
    """Through the sandbox's own HTTP API: the other scheduler is in the sandbox's process, the
    observer behind the API. No write carries the observer's name, no request is but a GET."""
    journal = MemoryJournal()
    with SandboxCluster(RealClock(), journal, pace=0.001) as sandbox:
        door = OneSandbox(Sandbox(ApiServer(sandbox), token_hash("t"), "observer"))
        server = ApiThread(door)
        server.start()
        endpoint = Requests(connect(Token(server.url, "t")))
        cluster = KubeCluster(endpoint, qps=-1)
        notes, began = Notes(), monotonic()
        observer = ObservingScheduler(configuration(), cluster, observers=[notes])
        other = Scheduler(
            configuration({**PROFILE, "pluginConfig": [PACKING]}), sandbox.as_actor("other")
        )
        try:
            fill(sandbox, Random(1), 6)
            observer.start()
            other.start()
            observer.run(lambda: observer.is_synced or _is_late(began))
            for i in range(PODS):
                sandbox.create("Pod", make_pod(f"p{i}").req(cpu="1").raw())
            observer.run(lambda: _is_seen(notes) or _is_late(began), lambda: _all(other))
        finally:
            observer.stop()
            other.stop()
            cluster.close()
            server.stop()
    assert _is_seen(notes)
    assert {method for method, _ in endpoint.asked} == {"GET"}
    actors = {write.actor for write in journal.writes}
    assert "other" in actors
    assert "observer" not in actors


def _is_seen(notes: Notes) -> bool:
    return len({note.pod.key for note in notes.all if note.verdict in PLACED}) == PODS


def _is_late(began: float) -> bool:
    """Rather a failure than no end."""
    return monotonic() - began > 60


def _all(scheduler: Scheduler) -> None:
    while scheduler.run_once():
        pass


@pytest.mark.parametrize(
    ("verb", "args"),
    [
        ("create", ("Pod", {})),
        ("update", ("Pod", {})),
        ("patch", ("Pod", "default", "p", {})),
        ("delete", ("Pod", "default", "p")),
        ("bind", ("default", "p", "uid", "n1")),
        ("patch_pod_status", ("default", "p", "uid")),
    ],
)
def test_every_write_is_refused_before_it_leaves(verb: str, args: tuple[Any, ...]) -> None:
    clock = VirtualClock(1_000_000.0)
    cluster = SandboxCluster(clock)
    cluster.create("Pod", make_pod("p").raw())
    before = cluster.list("Pod")
    with pytest.raises(WriteRefused, match=r"only looked at"):
        getattr(ReadOnlyCluster(cluster), verb)(*args)
    assert cluster.list("Pod") == before


def test_events_are_refused_too() -> None:
    cluster = ReadOnlyCluster(SandboxCluster(VirtualClock(1_000_000.0)))
    with pytest.raises(WriteRefused):
        cluster.emit_event(
            {}, type="Normal", reason="r", action="a", note="n", reporting_controller="c"
        )
