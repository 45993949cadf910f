"""A scheduler on a cluster whose network and server fail: every pod ends bound exactly once, no
node is ever asked for more than it has, and memory does not grow."""

from __future__ import annotations

import random
import resource
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kube.proxy import Deed, forward, refusal
from tests.kube.world import ALL, IMPATIENT, PATIENT, Worker, World, opened


@pytest.fixture
def world() -> Iterator[World]:
    with opened() as found:
        yield found


def sometimes(part: float, deed: Deed, matching: str, seed: int = 1) -> Callable[[str], Deed]:
    chance = random.Random(seed)

    def rule(line: str) -> Deed:
        return deed if matching in line and chance.random() < part else "forward"

    return rule


@pytest.mark.parametrize(
    ("part", "deed", "matching"),
    [
        pytest.param(0.4, "lose", "/binding", id="answers to bindings are lost"),
        pytest.param(0.4, "drop", "/binding", id="bindings are cut before they arrive"),
        pytest.param(0.2, "silent", "/binding", id="a server that does not answer bindings"),
        pytest.param(0.3, refusal(409, "Conflict"), "/binding", id="409 that did nothing"),
        # Retry-After is waited for in virtual time (test_binding.py); here all at once is worse.
        pytest.param(0.4, refusal(429, "TooManyRequests", 0), "", id="a storm of 429"),
        pytest.param(0.3, refusal(500, "InternalError"), "/binding", id="500"),
        pytest.param(0.3, "lose", "", id="answers to everything are lost"),
    ],
)
def test_every_pod_ends_bound_once(world: World, part: float, deed: Deed, matching: str) -> None:
    world.proxy.rule = sometimes(part, deed, matching)
    world.worker(timeout=IMPATIENT if deed == "silent" else PATIENT)
    world.add_pods(ALL)
    world.wait_for(ALL)
    world.check(ALL)


def test_watches_are_cut_again_and_again(world: World) -> None:
    world.worker()
    for index in range(8):
        world.add_pods(5, f"r{index}-")
        time.sleep(0.15)
        world.proxy.cut_watches()
    world.wait_for(ALL)
    world.check(ALL)


def test_every_connection_is_cut_again_and_again(world: World) -> None:
    world.worker()
    for index in range(8):
        world.add_pods(5, f"r{index}-")
        time.sleep(0.05)
        world.proxy.cut()
    world.wait_for(ALL)
    world.check(ALL)


def test_410_in_mid_watch(world: World) -> None:
    """Watches are cut, and what happened meanwhile is forgotten by the server."""
    world.worker()
    world.add_pods(20, "a")
    world.wait_for(20)
    expired = refusal(410, "Expired")
    world.proxy.rule = lambda line: expired if "watch=true" in line else "forward"
    world.proxy.cut_watches()
    world.sandbox.delete("Pod", "default", "a0", grace_period_seconds=0)
    world.add_pods(21, "b")
    time.sleep(1.0)
    world.proxy.rule = lambda line: "forward"
    world.wait_for(ALL + 1)
    world.check(ALL + 1)


def test_a_server_that_is_away_and_comes_back(world: World) -> None:
    away = refusal(503, "ServiceUnavailable")
    world.worker()
    world.add_pods(20, "a")
    time.sleep(0.1)
    world.proxy.rule = lambda line: away
    world.proxy.cut_watches()
    world.add_pods(20, "b")
    time.sleep(2.5)  # 30 seconds of it: in virtual time, test_binding.py and test_reflector.py
    asked = len(world.proxy.requests)
    time.sleep(0.5)
    assert len(world.proxy.requests) - asked < 200  # no storm
    world.proxy.rule = lambda line: "forward"
    world.wait_for(ALL)
    world.check(ALL)


def test_a_server_that_stops_answering(world: World) -> None:
    """Also the watches fall silent; connections stay open and nothing comes."""
    world.worker(silence=2.0, timeout=IMPATIENT)
    world.add_pods(20, "a")
    world.wait_for(20)
    world.proxy.rule = lambda line: "silent"
    world.proxy.cut_watches()
    world.add_pods(20, "b")
    time.sleep(2.5)
    world.proxy.rule = lambda line: "forward"
    world.wait_for(ALL)
    world.check(ALL)


def test_two_workers_fight_for_the_lease(world: World) -> None:
    """The first one's renewals hang while its bindings would still get through; the other takes
    over, and at no moment do both lead."""
    first = world.worker("first", timeout=IMPATIENT)
    world.add_pods(10, "a")
    world.wait_for(10)
    second = world.worker("second", world.url, timeout=IMPATIENT)
    with Watching(first, second) as watching:
        world.proxy.rule = lambda line: "silent" if "/leases/" in line else "forward"
        world.add_pods(ALL - 10, "b")
        watching.wait_until(lambda: second.leads)
        bindings = world.bindings_through_the_proxy()
        world.wait_for(ALL)
        world.proxy.rule = forward  # the first one is a candidate again, and stays one
        world.sandbox.delete("Pod", "default", "a0", grace_period_seconds=0)
        world.add_pods(1, "c")
        world.wait_for(ALL + 1)
        time.sleep(1.0)
        assert (first.leads, second.leads) == (False, True)
        assert world.bindings_through_the_proxy() == bindings  # the first one bound nothing more
    assert watching.most == 1
    world.check(ALL + 1)


class Watching:
    """How many led at once, at each moment."""

    def __init__(self, *workers: Worker) -> None:
        self.most = 0
        self._workers = workers
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Watching:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.003):
            self.most = max(self.most, sum(worker.leads for worker in self._workers))

    def wait_until(self, condition: Callable[[], bool], seconds: float = 30.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "it did not happen in time"
            time.sleep(0.02)


@pytest.mark.slow
def test_5000_pods_at_once(world: World) -> None:
    """Ten more than fit: what fits is bound, the others wait, and memory is what pods need."""
    for index in range(50):
        world.add_node(f"big{index}", 99)
    worker = world.worker()
    before = _resident()
    world.add_pods(5000)
    world.wait_for(4990, 120)
    time.sleep(0.5)
    assert world.witness.bound == 4990
    assert all(len(nodes) == 1 for nodes in world.witness.places.values())
    assert world.witness.overcommitted == []
    assert worker.cluster.troubles == {}
    # Server, witness and scheduler are all in this process.
    assert _resident() - before < 300_000_000


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()
