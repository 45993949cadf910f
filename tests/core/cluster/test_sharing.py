"""Equal parts of stored objects are one object, and nothing else changes."""

from __future__ import annotations

import copy
import gc
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.clock import VirtualClock
from scheduler_core.cluster.kubelet import SandboxKubelet
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.cluster.sharing import Sharing
from scheduler_core.testing.builders import make_node, make_pod

Json = dict[str, Any]

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=5,
)
_OBJECTS = st.fixed_dictionaries(
    {"kind": st.just("Pod"), "metadata": st.dictionaries(st.text(max_size=2), _VALUES, max_size=3)},
    optional={"spec": _VALUES, "status": _VALUES},
)


@given(objects=st.lists(_OBJECTS, max_size=4))
def test_an_object_says_the_same_as_before(objects: list[Json]) -> None:
    sharing = Sharing(parts=2)
    for obj in objects:
        before = json.dumps(obj)
        assert sharing.of(obj) is obj
        assert json.dumps(obj) == before


def _twins() -> tuple[Json, Json]:
    pod = make_pod("a").label({"app": "web"}).req(cpu="1").toleration("k").raw()
    return pod, copy.deepcopy(pod)


def test_equal_parts_are_one_and_what_is_each_objects_own_is_not() -> None:
    sharing = Sharing()
    one, other = map(sharing.of, _twins())
    assert one is not other
    assert one["metadata"] is not other["metadata"]
    assert one["spec"] is other["spec"]
    assert one["metadata"]["labels"] is other["metadata"]["labels"]


def test_parts_of_unequal_parts_are_shared_too() -> None:
    sharing = Sharing()
    one, other = _twins()
    other["spec"]["priority"] = 1
    sharing.of(one)
    sharing.of(other)
    assert one["spec"] is not other["spec"]
    assert one["spec"]["containers"] is other["spec"]["containers"]


def _thing(number: int) -> Json:
    return {"kind": "X", "metadata": {}, "spec": {"a": [number]}}


def test_one_and_true_are_not_the_same() -> None:
    sharing = Sharing()
    one, other = (_thing(number) for number in (1, True))
    sharing.of(one)
    sharing.of(other)
    assert one["spec"]["a"][0] is not other["spec"]["a"][0]


def test_events_are_left_as_they_are() -> None:
    sharing = Sharing()
    one, other = ({"kind": "Event", "metadata": {}, "regarding": {"name": "p"}} for _ in "ab")
    assert sharing.of(one)["regarding"] is not sharing.of(other)["regarding"]


def _running(count: int) -> SandboxCluster:
    """Pods of one template on one node, all running."""
    clock = VirtualClock(1_800_000_000.0)
    cluster = SandboxCluster(clock)
    kubelet = SandboxKubelet(cluster)
    cluster.create("Node", make_node("n").raw())
    for index in range(count):
        name = f"p{index}"
        cluster.create("Pod", make_pod(name).label({"app": "web"}).req(cpu="1").raw())
        cluster.bind("default", name, "", "n")
    for _ in range(3):
        clock.advance(2.0)
        kubelet.tick(clock.now())
    return cluster


def _dicts(objects: list[Json]) -> int:
    """Different dicts that these objects are made of."""
    seen: dict[int, object] = {}
    waiting: list[object] = list(objects)
    while waiting:
        found = waiting.pop()
        if id(found) not in seen and isinstance(found, dict | list):
            seen[id(found)] = found
            waiting += gc.get_referents(found)
    return sum(isinstance(found, dict) for found in seen.values())


def test_a_running_pod_more_costs_two_dicts() -> None:
    """The object and its metadata. Counted, not weighed: the same on every machine."""
    few, many = (list(_running(count).list("Pod").items) for count in (10, 60))
    assert all(pod["status"]["phase"] == "Running" for pod in many)
    assert _dicts(many) - _dicts(few) == 2 * 50


def test_a_restored_store_shares_as_the_first_did() -> None:
    cluster = _running(20)
    snapshot = cluster.snapshot()
    decoded = copy.deepcopy(snapshot)
    restored = SandboxCluster.restore(decoded, [], cluster.clock)
    assert list(restored.list("Pod").items) == list(cluster.list("Pod").items)
    assert _dicts(list(restored.list("Pod").items)) == _dicts(list(cluster.list("Pod").items))


def test_a_store_that_is_soon_gone_may_do_without() -> None:
    with SandboxCluster(VirtualClock(1_800_000_000.0), share=False) as cluster:
        first, second = (cluster.create("Pod", make_pod(name).raw()) for name in ("a", "b"))
        assert first["spec"] == second["spec"]
        assert first["spec"] is not second["spec"]
