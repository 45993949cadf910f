"""Made-up clusters of any size."""

from __future__ import annotations

import pytest

from scheduler_core.api.validation import validate
from scheduler_core.workloads.manifests import GPU
from scheduler_core.workloads.streams import Draw
from scheduler_core.workloads.synthetic import (
    PRESETS,
    SyntheticWorkload,
    synthetic_nodes,
    synthetic_pod,
)
from tests.core.workloads.fakes import World


def test_empty_is_empty() -> None:
    world = World(SyntheticWorkload("empty"))
    world.run(100)
    assert world.pods() == []
    assert list(world.cluster.list("Node").items) == []
    assert world.runner.next_deadline() is None


def test_small_has_five_nodes_and_few_pods() -> None:
    world = World(SyntheticWorkload("small"))
    world.run(1800, step=2.0)
    assert len(world.cluster.list("Node").items) == 5
    living = [p for p in world.pods() if p["status"]["phase"] != "Succeeded"]
    assert 3 <= len(living) <= 40


def test_large_has_as_many_nodes_as_the_trace_and_twenty_pods_a_second() -> None:
    world = World(SyntheticWorkload("large"), schedules=False)
    world.run(30)
    nodes = world.cluster.list("Node").items
    assert len(nodes) == 1523
    assert len({n["metadata"]["labels"]["topology.kubernetes.io/zone"] for n in nodes}) == 3
    assert 450 <= len(world.pods()) <= 750


def test_without_a_scheduler_it_stops_at_its_bound() -> None:
    world = World(SyntheticWorkload(PRESETS["small"]), schedules=False)
    world.run(1000)
    assert len(world.pods()) == 40


def test_nodes_are_valid_and_the_same_every_time() -> None:
    nodes = synthetic_nodes(200, zones=4)
    assert [fault for node in nodes for fault in validate(node)] == []
    assert nodes == synthetic_nodes(200, zones=4)
    shapes = {n["status"]["capacity"]["cpu"] for n in nodes}
    assert shapes == {"16", "32", "64", "96"}


def test_an_unknown_preset_is_named() -> None:
    with pytest.raises(ValueError, match="unknown preset 'huge'; there are empty, small, large"):
        SyntheticWorkload("huge")


def test_a_number_of_nodes_that_is_none() -> None:
    with pytest.raises(ValueError, match="cannot make -1 nodes"):
        synthetic_nodes(-1)


def test_where_no_node_has_a_gpu_no_pod_asks_for_one() -> None:
    """Such a pod would never end, and the cluster would fill with them."""
    draw = Draw(1)
    made = [synthetic_pod(f"p{i}", draw, 10, with_gpus=False) for i in range(300)]
    assert not any(GPU in p["spec"]["containers"][0]["resources"]["requests"] for p in made)
    assert not SyntheticWorkload("small")._has_gpus
    assert SyntheticWorkload("large")._has_gpus
