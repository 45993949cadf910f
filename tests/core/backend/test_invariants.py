"""The checks find what they are there for, and tell the story."""

from __future__ import annotations

import pytest

from scheduler_core.backend.cache import Cache
from scheduler_core.backend.snapshot import Snapshot
from scheduler_core.testing.builders import make_node, make_pod
from scheduler_core.testing.invariants import InvariantError, validate
from tests.core.backend.harness import Bench


def test_a_sound_state_passes() -> None:
    cache, bench = Cache(), Bench()
    cache.add_node(make_node("n1").obj())
    waiting = make_pod("waiting").node("n1").obj()
    cache.assume_pod(waiting)
    bench.add("queued")
    validate(cache, bench.queue, Snapshot(), [waiting])


def wrong_sum(cache: Cache, bench: Bench) -> None:
    cache.node_info("n1").requested["cpu"] = 7  # type: ignore[union-attr]


def lost_pod(cache: Cache, bench: Bench) -> None:
    cache.node_info("n1").pods.clear()  # type: ignore[union-attr]


def assumed_and_queued(cache: Cache, bench: Bench) -> None:
    cache.assume_pod(make_pod("queued").node("n1").obj())


def two_places(cache: Cache, bench: Bench) -> None:
    info = bench.queue.get("default/queued")
    assert info is not None
    bench.queue._unschedulable.put(info, expires=True)


def queued_and_in_flight(cache: Cache, bench: Bench) -> None:
    info = bench.queue.get("default/queued")
    assert info is not None
    bench.queue._active.in_flight.begin(info.pod.uid)


@pytest.mark.parametrize(
    "break_it, story",
    [
        pytest.param(
            wrong_sum, "node n1: requested is {'cpu': 7}, should be {'cpu': 1000}", id="wrong-sum"
        ),
        pytest.param(lost_pod, "is known 1 times, on nodes 0 times", id="lost-pod"),
        pytest.param(
            assumed_and_queued,
            "pod default/queued is queued and assumed on n1",
            id="assumed-and-queued",
        ),
        pytest.param(two_places, "pod default/queued is in 2 places", id="two-places"),
        pytest.param(
            queued_and_in_flight,
            "pod default/queued is in active and in flight",
            id="queued-and-in-flight",
        ),
    ],
)
def test_a_fault_is_found(break_it, story: str) -> None:  # type: ignore[no-untyped-def]
    cache, bench = Cache(), Bench()
    cache.add_node(make_node("n1").obj())
    cache.add_pod(make_pod("bound").req(cpu="1").node("n1").obj())
    bench.add("queued")
    break_it(cache, bench)
    with pytest.raises(InvariantError) as found:
        validate(cache, bench.queue)
    assert story in str(found.value)


def test_a_stale_snapshot_is_found() -> None:
    cache, snapshot = Cache(), Snapshot()
    cache.add_node(make_node("n1").obj())
    snapshot.update(cache)
    snapshot.nodes.column_requested[0, 0] = 5
    with pytest.raises(InvariantError, match="snapshot: resource cpu"):
        validate(cache, snapshot=snapshot)


def test_a_waiting_pod_must_be_assumed() -> None:
    with pytest.raises(InvariantError, match="default/w waits at Permit but is not assumed"):
        validate(Cache(), Bench().queue, waiting=[make_pod("w").node("n1").obj()])
