"""Updates and deletions of waiting pods, nominations (4.4, 4.6)."""

from __future__ import annotations

import pytest

from scheduler_core.api import Pod
from scheduler_core.framework.events import ActionType, EventResource, QueueingHint
from scheduler_core.framework.types import NominatingInfo
from scheduler_core.testing.builders import make_pod
from tests.core.backend.harness import Bench, Gate, always, registered

A, R = ActionType, EventResource
QUEUE, SKIP = always(QueueingHint.QUEUE), always(QueueingHint.SKIP)


def labelled(name: str = "p", priority: int = 0) -> Pod:
    return make_pod(name).priority(priority).label(a="b").obj()


@pytest.mark.parametrize(
    "plugins, place",
    [
        pytest.param(None, "active", id="active"),
        pytest.param((), "backoff", id="error-backoff"),
        pytest.param(("P",), "unschedulable", id="unschedulable"),
    ],
)
def test_the_pod_is_replaced_where_it_is(plugins: tuple[str, ...] | None, place: str) -> None:
    bench = Bench()
    if plugins is None:
        bench.add("p")
    else:
        bench.rejected("p", *plugins)
    old = bench.queue.get("default/p")
    assert old is not None
    new = labelled()
    bench.queue.update(old.pod, new)
    assert bench.place("p") == place
    assert old.pod is new


def test_an_update_may_change_the_place_in_activeq() -> None:
    bench = Bench()
    pods = bench.add("a", "b", "c")
    bench.queue.update(pods[2], labelled("c", priority=5))
    assert bench.pop_names() == ["c", "a", "b"]


def test_an_update_may_change_the_place_in_backoffq() -> None:
    bench = Bench({"P": [registered(R.NODE, A.DELETE)]})
    for name in ("a", "b"):
        bench.rejected(name, "P")
    bench.queue.move_all_to_active_or_backoff_queue(registered(R.NODE, A.DELETE).event)
    bench.queue.update(make_pod("b").obj(), labelled("b", priority=5))
    assert bench.pop_names() == ["b", "a"]


def test_an_unknown_pod_is_added() -> None:
    bench = Bench()
    bench.queue.update(make_pod("p").obj(), labelled())
    assert bench.place("p") == "active"
    assert bench.queue.incoming == {("active", "UnschedulablePodUpdate"): 1}


@pytest.mark.parametrize(
    "hints, after, place",
    [
        pytest.param([registered(R.POD, A.UPDATE_POD_LABEL, SKIP)], 0, "unschedulable", id="skip"),
        pytest.param(
            [registered(R.POD, A.UPDATE_POD_LABEL, QUEUE)], 0, "backoff", id="backing-off"
        ),
        pytest.param([registered(R.POD, A.UPDATE_POD_LABEL, QUEUE)], 2, "active", id="queue"),
        pytest.param(
            [registered(R.POD, A.UPDATE_POD_TOLERATION, QUEUE)], 2, "unschedulable", id="other-kind"
        ),
        pytest.param([registered(R.POD, A.UPDATE, QUEUE)], 2, "active", id="any-update"),
        pytest.param(
            [registered(R.UNSCHEDULABLE_POD, A.UPDATE_POD_LABEL, QUEUE)], 2, "active", id="exact"
        ),
        pytest.param(
            [registered(R.ASSIGNED_POD, A.UPDATE_POD_LABEL, QUEUE)],
            2,
            "unschedulable",
            id="bound-pods-only",
        ),
    ],
)
def test_hints_decide_for_an_unschedulable_pod(hints, after: float, place: str) -> None:  # type: ignore[no-untyped-def]
    bench = Bench({"P": hints})
    info = bench.rejected("p", "P")
    bench.clock.advance(after)
    bench.queue.update(info.pod, labelled())
    assert bench.place("p") == place


def test_a_status_update_leaves_an_unschedulable_pod_alone() -> None:
    bench = Bench({"P": [registered(R.POD, A.UPDATE_POD_LABEL)]})
    info = bench.rejected("p", "P")
    bench.clock.advance(2)
    changed = make_pod("p").condition("PodScheduled", "False", "Unschedulable").obj()
    bench.queue.update(info.pod, changed)
    assert bench.place("p") == "unschedulable"


def test_the_first_kind_of_change_that_queues_moves_it_once() -> None:
    bench = Bench({"P": [registered(R.POD, A.UPDATE, QUEUE)]})
    info = bench.rejected("p", "P")
    bench.clock.advance(2)
    bench.queue.update(info.pod, make_pod("p").label(a="b").toleration("t").obj())
    assert bench.place("p") == "active"
    assert bench.queue.incoming["active", "UnschedulablePodUpdatePodLabel"] == 1
    assert bench.queue.incoming["active", "UnschedulablePodUpdatePodToleration"] == 0


class TestGatedPods:
    HINTS = {"Gate": [registered(R.POD, A.UPDATE_POD_LABEL, QUEUE)]}

    def test_the_gate_opens_by_an_update(self) -> None:
        bench = Bench(self.HINTS, [Gate()])
        [pod] = bench.add("p", labels={"held": "yes"})
        bench.queue.update(pod, labelled())
        assert bench.place("p") == "active"
        info = bench.queue.get("default/p")
        assert info is not None
        assert (info.gating_plugin, info.gating_message) == ("", "")

    def test_a_gate_that_stays_shut_keeps_it(self) -> None:
        bench = Bench(self.HINTS, [Gate(shut=True)])
        [pod] = bench.add("p")
        bench.queue.update(pod, labelled())
        assert bench.place("p") == "gated"
        assert bench.queue.depths().gated == 1

    def test_an_update_of_another_kind_does_not_ask_the_gate(self) -> None:
        gate = Gate(shut=True)
        bench = Bench(self.HINTS, [gate])
        [pod] = bench.add("p")
        gate.asked.clear()
        bench.queue.update(pod, make_pod("p").toleration("t").obj())
        assert gate.asked == []


@pytest.mark.parametrize(
    "plugins, gated",
    [
        pytest.param(None, False, id="active"),
        pytest.param((), False, id="backoff"),
        pytest.param(("P",), False, id="unschedulable"),
        pytest.param(None, True, id="gated"),
    ],
)
def test_a_deleted_pod_is_nowhere(plugins: tuple[str, ...] | None, gated: bool) -> None:
    bench = Bench(gates=[Gate(shut=gated)])
    if plugins is None:
        [pod] = bench.add("p")
    else:
        pod = bench.rejected("p", *plugins).pod
    bench.queue.delete(pod)
    assert bench.place("p") == ""
    assert len(bench.queue) == 0
    assert bench.queue.depths().gated == 0


def test_deleting_a_namesake_leaves_the_pod() -> None:
    bench = Bench()
    bench.add("p")
    bench.queue.delete(make_pod("p").uid("another").obj())
    assert bench.place("p") == "active"


def test_a_pod_that_is_deleted_in_flight_stays_so_until_done() -> None:
    bench = Bench()
    [pod] = bench.add("p")
    bench.pop()
    bench.queue.delete(pod)
    assert bench.queue.is_in_flight(pod.uid)


class TestNominations:
    def pod(self, node: str = "", **labels: str) -> Pod:
        builder = make_pod("p").label(labels)
        return (builder.nominated(node) if node else builder).obj()

    def bench(self, pod: Pod, gates: list[Gate] | None = None) -> Bench:
        bench = Bench(gates=gates or [])
        bench.pods.set(pod)
        bench.queue.add(pod)
        return bench

    def nominated(self, bench: Bench) -> str:
        return bench.queue.nominator.nominated_node_for_pod(self.pod())

    def test_a_new_pods_nomination_is_taken_from_its_status(self) -> None:
        assert self.nominated(self.bench(self.pod("n1"))) == "n1"

    def test_a_gated_pod_is_not_nominated(self) -> None:
        assert self.nominated(self.bench(self.pod("n1"), [Gate(shut=True)])) == ""

    def test_an_update_in_the_queue_changes_it(self) -> None:
        bench = self.bench(self.pod("n1"))
        bench.queue.update(self.pod("n1"), self.pod("n2"))
        assert self.nominated(bench) == "n2"

    def test_an_update_without_nomination_keeps_the_one_in_memory(self) -> None:
        bench = self.bench(self.pod())
        bench.queue.nominator.add(self.pod(), NominatingInfo("n1", override=True))
        bench.queue.update(self.pod(), self.pod(a="b"))
        assert self.nominated(bench) == "n1"

    def test_an_update_in_flight_does_not_touch_it(self) -> None:
        bench = self.bench(self.pod("n1"))
        bench.pop()
        bench.queue.update(self.pod("n1"), self.pod("n2"))
        assert self.nominated(bench) == "n1"

    def test_a_deleted_pod_loses_it(self) -> None:
        bench = self.bench(self.pod("n1"))
        bench.queue.delete(self.pod("n1"))
        assert self.nominated(bench) == ""
