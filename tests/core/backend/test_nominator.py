from __future__ import annotations

import pytest

from scheduler_core.api import Pod
from scheduler_core.backend.informers import Informers
from scheduler_core.backend.queue import PodNominator
from scheduler_core.framework.types import NominatingInfo
from scheduler_core.testing.builders import make_pod


def pod(nominated: str = "", node: str = "", **labels: str) -> Pod:
    builder = make_pod("p").label(labels)
    if nominated:
        builder.nominated(nominated)
    return (builder.node(node) if node else builder).obj()


def on(nominator: PodNominator, node: str) -> list[str]:
    return [p.name for p in nominator.nominated_pods_for_node(node)]


@pytest.mark.parametrize(
    "nominated, info, node",
    [
        pytest.param("n1", NominatingInfo(), "n1", id="from-status"),
        pytest.param("", NominatingInfo(), "", id="no-nomination"),
        pytest.param("n1", NominatingInfo("n2", override=True), "n2", id="override"),
        pytest.param("n1", NominatingInfo("", override=True), "", id="override-clears"),
        pytest.param("n1", NominatingInfo("n2"), "n1", id="without-override-status-counts"),
    ],
)
def test_add(nominated: str, info: NominatingInfo, node: str) -> None:
    nominator = PodNominator()
    nominator.add(pod(nominated), info)
    assert nominator.nominated_node_for_pod(pod()) == node
    assert on(nominator, node or "n1") == (["p"] if node else [])


def test_a_pod_is_nominated_to_one_node_only() -> None:
    nominator = PodNominator()
    nominator.add(pod("n1"))
    nominator.add(pod(), NominatingInfo("n2", override=True))
    assert (on(nominator, "n1"), on(nominator, "n2")) == ([], ["p"])
    assert nominator.nominated_nodes() == ["n2"]


def test_pods_of_a_node_come_in_order_of_nomination() -> None:
    nominator = PodNominator()
    for name in ("b", "a"):
        nominator.add(make_pod(name).nominated("n1").obj())
    assert on(nominator, "n1") == ["b", "a"]
    assert len(nominator) == 2


@pytest.mark.parametrize(
    "old, new, node",
    [
        pytest.param("", "", "mem", id="neither-carries-one-memory-stays"),
        pytest.param("", "n2", "n2", id="added"),
        pytest.param("n1", "n2", "n2", id="changed"),
        pytest.param("n1", "", "", id="removed"),
    ],
)
def test_update(old: str, new: str, node: str) -> None:
    nominator = PodNominator()
    nominator.add(pod(), NominatingInfo("mem", override=True))
    changed = pod(new, version="2")
    nominator.update(pod(old), changed)
    assert nominator.nominated_node_for_pod(pod()) == node
    if node:
        assert nominator.nominated_pods_for_node(node) == [changed]


def test_delete_forgets_and_may_be_repeated() -> None:
    nominator = PodNominator()
    nominator.add(pod("n1"))
    nominator.delete(pod())
    nominator.delete(pod())
    assert len(nominator) == 0
    assert nominator.nominated_nodes() == []


@pytest.mark.parametrize(
    "known, nominated",
    [
        pytest.param(None, False, id="gone"),
        pytest.param(pod("n1", node="n1"), False, id="bound"),
        pytest.param(pod("n1"), True, id="pending"),
    ],
)
def test_a_pod_that_is_gone_or_bound_is_not_nominated(known: Pod | None, nominated: bool) -> None:
    pods = Informers().informer("Pod")
    if known is not None:
        pods.set(known)
    nominator = PodNominator(pods)
    nominator.add(pod("n1"))
    assert bool(len(nominator)) is nominated
