from __future__ import annotations

import pytest

from scheduler_core.api import Node
from scheduler_core.backend.node_tree import NodeTree
from scheduler_core.testing.builders import make_node

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"


def node(name: str, zone: str = "", region: str = "") -> Node:
    builder = make_node(name)
    return (builder.zone(zone, region) if zone else builder).obj()


def tree_of(*nodes: Node) -> NodeTree:
    tree = NodeTree()
    for n in nodes:
        tree.put(n)
    return tree


@pytest.mark.parametrize(
    "nodes, order",
    [
        pytest.param([], [], id="empty"),
        pytest.param([("b", ""), ("a", "")], ["b", "a"], id="no-zones-order-of-entry"),
        pytest.param(
            [("a1", "a"), ("a2", "a"), ("b1", "b"), ("c1", "c"), ("b2", "b")],
            ["a1", "b1", "c1", "a2", "b2"],
            id="round-robin-over-zones",
        ),
        pytest.param(
            [("z1", "z"), ("a1", "a")], ["z1", "a1"], id="zones-in-order-first-seen-not-by-name"
        ),
    ],
)
def test_order(nodes: list[tuple[str, str]], order: list[str]) -> None:
    assert tree_of(*(node(name, zone) for name, zone in nodes)).order() == order


def test_the_same_zone_name_in_two_regions_is_two_zones() -> None:
    tree = tree_of(node("e1", "1", "east"), node("e2", "1", "east"), node("w1", "1", "west"))
    assert tree.order() == ["e1", "w1", "e2"]


def test_the_beta_label_wins() -> None:
    old = make_node("n").label({BETA_ZONE: "old", "topology.kubernetes.io/zone": "new"}).obj()
    assert list(tree_of(old).zones) == [":\x00:old"]


def test_a_node_that_changes_zone_goes_to_the_end_of_the_new_one() -> None:
    tree = tree_of(node("a1", "a"), node("a2", "a"), node("b1", "b"), node("b2", "b"))
    tree.put(node("a1", "b"))
    assert tree.order() == ["a2", "b1", "b2", "a1"]


def test_an_emptied_zone_goes_last_when_it_comes_back() -> None:
    tree = tree_of(node("a1", "a"), node("b1", "b"))
    assert tree.remove("a1")
    tree.put(node("a1", "a"))
    assert tree.order() == ["b1", "a1"]


def test_the_version_grows_only_when_the_order_may_change() -> None:
    tree = tree_of(node("a1", "a"))
    version = tree.version
    tree.put(node("a1", "a"))
    assert not tree.remove("unknown")
    assert tree.version == version
    tree.put(node("a1", "b"))
    assert tree.version > version
    assert "a1" in tree
    assert len(tree) == 1
