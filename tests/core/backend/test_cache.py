from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduler_core.api import Pod
from scheduler_core.backend.cache import Cache, CacheError
from scheduler_core.backend.snapshot import Snapshot
from scheduler_core.testing.builders import make_node, make_pod, uid_for
from scheduler_core.testing.invariants import validate

UID = uid_for("Pod", "default", "p")
NAME = f"{UID}(default/p)"


@pytest.fixture
def cache() -> Iterator[Cache]:
    cache = Cache()
    cache.add_node(make_node("n1").obj())
    cache.add_node(make_node("n2").obj())
    yield cache
    validate(cache, snapshot=Snapshot())


def pod(node: str = "n1", cpu: str = "1") -> Pod:
    builder = make_pod("p").req(cpu=cpu)
    return (builder.node(node) if node else builder).obj()


def on(cache: Cache, node: str) -> list[str]:
    info = cache.node_info(node)
    return [] if info is None else [p.name for p in info.pods]


def test_an_assumed_pod_counts_on_its_node(cache: Cache) -> None:
    cache.assume_pod(pod())
    assert cache.is_assumed_pod(pod())
    assert (cache.pod_count, cache.assumed_count) == (1, 1)
    assert cache.node_info("n1").requested == {"cpu": 1000}


def test_the_watch_confirms_an_assumed_pod(cache: Cache) -> None:
    cache.assume_pod(pod())
    bound = pod()
    cache.add_pod(bound)
    assert not cache.is_assumed_pod(bound)
    assert cache.get_pod(pod()) is bound
    assert (cache.pod_count, cache.assumed_count) == (1, 0)
    assert on(cache, "n1") == ["p"]


def test_a_pod_bound_elsewhere_than_assumed_is_moved(
    cache: Cache, caplog: pytest.LogCaptureFixture
) -> None:
    cache.assume_pod(pod("n1"))
    cache.add_pod(pod("n2"))
    assert (on(cache, "n1"), on(cache, "n2")) == ([], ["p"])
    assert "assumed on node n1 but bound to node n2" in caplog.text


def test_forgetting_takes_the_pod_off_its_node(cache: Cache) -> None:
    cache.assume_pod(pod())
    cache.forget_pod(pod())
    assert cache.pod_count == 0
    assert on(cache, "n1") == []
    assert cache.node_info("n1").requested == {}


def test_forgetting_a_pod_that_is_gone_is_no_error(cache: Cache) -> None:
    cache.forget_pod(pod())
    assert cache.pod_count == 0


def test_update_replaces_the_pod_and_its_requests(cache: Cache) -> None:
    cache.add_pod(pod(cpu="1"))
    cache.update_pod(pod(cpu="2"))
    assert cache.node_info("n1").requested == {"cpu": 2000}
    assert cache.pod_count == 1


def test_a_pod_may_be_removed_by_a_state_without_node(cache: Cache) -> None:
    cache.add_pod(pod("n1"))
    cache.remove_pod(pod(""))
    assert cache.pod_count == 0


def test_an_assumed_pod_may_be_removed(cache: Cache) -> None:
    cache.assume_pod(pod())
    cache.remove_pod(pod())
    assert (cache.pod_count, cache.assumed_count) == (0, 0)


@pytest.mark.parametrize(
    "before, action, message",
    [
        pytest.param(
            ["add"],
            lambda c: c.assume_pod(pod()),
            f"pod {NAME} is in the cache, so can't be assumed",
            id="assume-a-known-pod",
        ),
        pytest.param(
            ["assume"],
            lambda c: c.assume_pod(pod()),
            f"pod {NAME} is in the cache, so can't be assumed",
            id="assume-twice",
        ),
        pytest.param(
            ["add"],
            lambda c: c.forget_pod(pod()),
            f"pod {NAME} wasn't assumed so cannot be forgotten",
            id="forget-a-bound-pod",
        ),
        pytest.param(
            ["assume"],
            lambda c: c.forget_pod(pod("n2")),
            f"pod {NAME} was assumed on n2 but assigned to n1",
            id="forget-on-another-node",
        ),
        pytest.param(
            ["add"],
            lambda c: c.add_pod(pod()),
            f"pod {NAME} was already in added state",
            id="add-twice",
        ),
        pytest.param(
            [],
            lambda c: c.update_pod(pod()),
            f"pod {NAME} is not added to scheduler cache, so cannot be updated",
            id="update-an-unknown-pod",
        ),
        pytest.param(
            ["assume"],
            lambda c: c.update_pod(pod()),
            f"assumed pod {NAME} should not be updated",
            id="update-an-assumed-pod",
        ),
        pytest.param(
            ["add"],
            lambda c: c.update_pod(pod("n2")),
            f"pod {NAME} was added to n1 but updated on n2",
            id="update-on-another-node",
        ),
        pytest.param(
            [],
            lambda c: c.remove_pod(pod()),
            f"pod {NAME} is not found in scheduler cache, so cannot be removed from it",
            id="remove-an-unknown-pod",
        ),
        pytest.param(
            ["add"],
            lambda c: c.remove_pod(pod("n2")),
            f"pod {NAME} was added to n1 but removed from n2",
            id="remove-from-another-node",
        ),
        pytest.param(
            [],
            lambda c: c.remove_node(make_node("n9").obj()),
            "node n9 is not found",
            id="remove-an-unknown-node",
        ),
    ],
)
def test_what_contradicts_the_cache_is_refused_and_changes_nothing(
    cache: Cache, before: list[str], action, message: str
) -> None:  # type: ignore[no-untyped-def]
    for step in before:
        (cache.add_pod if step == "add" else cache.assume_pod)(pod())
    generation = cache.generation
    with pytest.raises(CacheError) as refused:
        action(cache)
    assert str(refused.value) == message
    assert cache.generation == generation


class TestGhosts:
    """Pods on nodes that are not known."""

    def test_a_pod_on_an_unknown_node_makes_a_ghost(self, cache: Cache) -> None:
        cache.add_pod(pod("n9"))
        assert cache.node_count == 3
        assert cache.node_info("n9").node is None
        assert "n9" not in cache.node_order()

    def test_the_node_takes_over_its_ghost(self, cache: Cache) -> None:
        cache.add_pod(pod("n9"))
        cache.add_node(make_node("n9").obj())
        assert cache.node_order() == ["n1", "n2", "n9"]
        assert on(cache, "n9") == ["p"]

    def test_a_removed_node_stays_a_ghost_until_its_pods_are_gone(self, cache: Cache) -> None:
        cache.add_pod(pod("n1"))
        cache.remove_node(make_node("n1").obj())
        assert cache.node_count == 2
        assert cache.node_order() == ["n2"]
        cache.remove_pod(pod("n1"))
        assert cache.node_count == 1

    def test_a_removed_node_without_pods_is_gone(self, cache: Cache) -> None:
        cache.remove_node(make_node("n1").obj())
        assert cache.node_info("n1") is None

    def test_a_ghost_cannot_be_removed_again(self, cache: Cache) -> None:
        cache.add_pod(pod("n9"))
        with pytest.raises(CacheError, match="node n9 is not found"):
            cache.remove_node(make_node("n9").obj())


def test_an_unknown_node_that_is_updated_is_added(cache: Cache) -> None:
    cache.update_node(make_node("n3").obj())
    assert cache.node_order() == ["n1", "n2", "n3"]


def test_changes_are_told_latest_first_and_only_newer_ones(cache: Cache) -> None:
    seen = cache.generation
    cache.add_pod(pod("n2"))
    cache.update_node(make_node("n1").unschedulable().obj())
    cache.add_pod(make_pod("ghost").node("n9").obj())
    assert [info.name for info in cache.changed_since(seen)] == ["n1", "n2"]
    assert list(cache.changed_since(cache.generation)) == []


class TestImages:
    """Sizes and counts of images (2.10)."""

    def sizes(self, cache: Cache, node: str) -> dict[str, tuple[int, int]]:
        info = cache.node_info(node)
        assert info is not None
        return cache.copy_of(info).image_sizes

    def test_the_first_reporters_size_counts_until_the_image_is_gone(self) -> None:
        cache = Cache()
        cache.add_node(make_node("n1").image("web", size=10).obj())
        cache.add_node(make_node("n2").image("web", size=99).obj())
        assert self.sizes(cache, "n2") == {"web": (10, 2)}
        cache.remove_node(make_node("n1").obj())
        assert self.sizes(cache, "n2") == {"web": (10, 1)}
        cache.update_node(make_node("n2").obj())
        cache.update_node(make_node("n2").image("web", size=99).obj())
        assert self.sizes(cache, "n2") == {"web": (99, 1)}

    def test_every_name_of_an_image_counts(self) -> None:
        cache = Cache()
        cache.add_node(make_node("n1").image("web:1", "web@sha256:1", size=5).obj())
        assert self.sizes(cache, "n1") == {"web:1": (5, 1), "web@sha256:1": (5, 1)}

    def test_the_count_is_frozen_when_a_node_is_copied(self) -> None:
        cache, snapshot = Cache(), Snapshot()
        cache.add_node(make_node("n1").image("web", size=10).obj())
        snapshot.update(cache)
        cache.add_node(make_node("n2").image("web", size=10).obj())
        snapshot.update(cache)
        counts = [info.image_sizes["web"][1] for info in snapshot.nodes]
        assert counts == [1, 2]
        cache.add_pod(pod("n1"))
        snapshot.update(cache)
        assert [info.image_sizes["web"][1] for info in snapshot.nodes] == [2, 2]
