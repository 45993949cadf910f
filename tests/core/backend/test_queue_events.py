"""Events that move pods, and events that happen while a pod is in flight (4.3, 4.5)."""

from __future__ import annotations

import pytest

from scheduler_core.framework.events import (
    NODE_ADD,
    NODE_DELETE,
    WILDCARD_EVENT,
    ActionType,
    ClusterEvent,
    EventResource,
    QueueingHint,
)
from scheduler_core.testing.builders import make_node, make_pod
from tests.core.backend.harness import Bench, Gate, always, registered

A, R = ActionType, EventResource
QUEUE, SKIP = always(QueueingHint.QUEUE), always(QueueingHint.SKIP)


class TestMoving:
    @pytest.mark.parametrize(
        "hint, after, place",
        [
            pytest.param(SKIP, 0, "unschedulable", id="skip-stays"),
            pytest.param(QUEUE, 0, "backoff", id="queue-while-backing-off"),
            pytest.param(QUEUE, 2, "active", id="queue-after-backoff"),
        ],
    )
    def test_a_hint_decides(self, hint, after: float, place: str) -> None:  # type: ignore[no-untyped-def]
        bench = Bench({"P": [registered(R.NODE, A.ADD, hint)]})
        bench.rejected("p", "P")
        bench.clock.advance(after)
        bench.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, make_node("n").obj())
        assert bench.place("p") == place

    def test_a_pending_plugin_sends_the_pod_to_activeq_at_once(self) -> None:
        bench = Bench({"P": [registered(R.NODE, A.ADD, QUEUE)]})
        bench.add("p")
        bench.reject(bench.pop(), pending=["P"])
        bench.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
        assert bench.place("p") == "active"

    def test_only_pods_of_interested_plugins_are_asked_about(self) -> None:
        asked = []

        def hint(pod, old, new):  # type: ignore[no-untyped-def]
            asked.append(pod.name)
            return QueueingHint.SKIP

        bench = Bench(
            {"P": [registered(R.NODE, A.ADD, hint)], "Q": [registered(R.NODE, A.DELETE, hint)]}
        )
        bench.rejected("mine", "P")
        bench.rejected("other", "Q")
        bench.rejected("both", "P", "Q")
        bench.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
        assert asked == ["mine", "both"]

    def test_pods_move_in_the_order_in_which_they_came(self) -> None:
        bench = Bench(
            {"P": [registered(R.NODE, A.ADD, QUEUE)], "Q": [registered(R.NODE, A.ADD, QUEUE)]},
            less=lambda a, b: False,
        )
        for name, plugin in (("a", "Q"), ("b", "P"), ("c", "Q")):
            bench.rejected(name, plugin)
        bench.clock.advance(2)
        bench.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
        assert bench.pop_names() == ["a", "b", "c"]

    def test_an_event_that_nobody_registered_moves_nothing(self) -> None:
        bench = Bench({"P": [registered(R.NODE, A.ADD)]})
        bench.rejected("p", "P")
        bench.queue.move_all_to_active_or_backoff_queue(NODE_DELETE)
        assert bench.place("p") == "unschedulable"

    def test_a_wildcard_event_moves_every_pod_that_no_gate_holds(self) -> None:
        bench = Bench({"P": [registered(R.NODE, A.ADD, SKIP)]}, [Gate()])
        bench.rejected("p", "P")
        bench.add("held", labels={"held": "yes"})
        bench.clock.advance(2)
        bench.queue.move_all_to_active_or_backoff_queue(WILDCARD_EVENT)
        assert (bench.place("p"), bench.place("held")) == ("active", "gated")

    def test_the_pre_check_leaves_pods_out(self) -> None:
        bench = Bench({"P": [registered(R.NODE, A.ADD, QUEUE)]})
        bench.rejected("high", "P", priority=9)
        bench.rejected("low", "P", priority=1)
        bench.queue.move_all_to_active_or_backoff_queue(
            NODE_ADD, pre_check=lambda pod: pod.priority <= 5
        )
        assert (bench.place("high"), bench.place("low")) == ("unschedulable", "backoff")

    def test_moves_are_counted_by_event(self) -> None:
        bench = Bench({"P": [registered(R.NODE, A.ADD, QUEUE)]})
        bench.rejected("p", "P")
        bench.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
        assert bench.queue.incoming == {
            ("active", "UnschedulablePodAdd"): 1,
            ("unschedulable", "ScheduleAttemptFailure"): 1,
            ("backoff", "NodeAdd"): 1,
        }


class TestGatedPods:
    @pytest.mark.parametrize(
        "event",
        [
            pytest.param(NODE_ADD, id="of-another-plugin-that-rejected-it"),
            pytest.param(WILDCARD_EVENT, id="wildcard"),
        ],
    )
    def test_an_event_that_the_gate_did_not_register_is_not_for_them(
        self, event: ClusterEvent
    ) -> None:
        gate = Gate()
        bench = Bench(
            {"Gate": [registered(R.NODE, A.DELETE)], "P": [registered(R.NODE, A.ADD)]}, [gate]
        )
        info = bench.rejected("p", "P")
        gate.shut = True
        bench.queue.activate([info.pod])
        assert info.unschedulable_plugins == {"P", "Gate"}
        gate.shut = False
        bench.queue.move_all_to_active_or_backoff_queue(event)
        assert bench.place("p") == "gated"

    def test_an_event_that_the_gate_registered_asks_it_again(self) -> None:
        gate = Gate(shut=True)
        bench = Bench({"Gate": [registered(R.NODE, A.DELETE)]}, [gate])
        bench.add("p")
        bench.queue.move_all_to_active_or_backoff_queue(NODE_DELETE)
        assert bench.place("p") == "gated"
        gate.shut = False
        bench.queue.move_all_to_active_or_backoff_queue(NODE_DELETE)
        assert bench.place("p") == "active"

    def test_a_hint_that_says_skip_spares_the_gate(self) -> None:
        gate = Gate(shut=True)
        bench = Bench({"Gate": [registered(R.NODE, A.DELETE, SKIP)]}, [gate])
        bench.add("p")
        gate.asked.clear()
        bench.queue.move_all_to_active_or_backoff_queue(NODE_DELETE)
        assert gate.asked == []


class TestInFlight:
    """Events while a pod is being scheduled decide where it comes back to."""

    def test_an_event_with_queue_sends_it_to_backoffq(self) -> None:
        bench = Bench({"P": [registered(R.NODE, A.ADD, QUEUE)]})
        bench.add("p")
        info = bench.pop()
        bench.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
        bench.reject(info, "P")
        assert bench.place("p") == "backoff"
        assert bench.queue.incoming["backoff", "ScheduleAttemptFailure"] == 1

    @pytest.mark.parametrize(
        "hint, plugin",
        [
            pytest.param(SKIP, "P", id="hint-skips"),
            pytest.param(QUEUE, "Q", id="another-plugin-rejected-it"),
        ],
    )
    def test_other_events_leave_it_unschedulable(self, hint, plugin: str) -> None:  # type: ignore[no-untyped-def]
        bench = Bench({"P": [registered(R.NODE, A.ADD, hint)]})
        bench.add("p")
        info = bench.pop()
        bench.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
        bench.reject(info, plugin)
        assert bench.place("p") == "unschedulable"

    def test_events_before_the_pop_do_not_count(self) -> None:
        bench = Bench({"P": [registered(R.NODE, A.ADD, QUEUE)]})
        bench.add("first", "p")
        first = bench.pop()
        bench.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
        info = bench.pop()
        bench.reject(info, "P")
        bench.reject(first, "P")
        assert (bench.place("p"), bench.place("first")) == ("unschedulable", "backoff")

    def test_a_pending_plugin_beats_an_earlier_after_backoff(self) -> None:
        bench = Bench(
            {"P": [registered(R.NODE, A.ADD, QUEUE)], "Q": [registered(R.NODE, A.DELETE, QUEUE)]}
        )
        bench.add("p")
        info = bench.pop()
        bench.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
        bench.queue.move_all_to_active_or_backoff_queue(NODE_DELETE)
        bench.reject(info, "P", pending=["Q"])
        assert bench.place("p") == "active"

    def test_an_error_takes_the_error_path_whatever_happened(self) -> None:
        bench = Bench({"P": [registered(R.NODE, A.ADD, SKIP)]})
        bench.add("p")
        info = bench.pop()
        bench.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
        bench.reject(info)
        assert bench.place("p") == "backoff"
        assert bench.queue.pop() is None

    def test_an_update_of_the_pod_counts_by_the_hints(self) -> None:
        bench = Bench({"P": [registered(R.POD, A.UPDATE_POD_LABEL, QUEUE)]})
        [pod] = bench.add("p")
        info = bench.pop()
        changed = make_pod("p").label(a="b").obj()
        bench.queue.update(pod, changed)
        assert len(bench.queue) == 0
        info.pod = changed
        bench.reject(info, "P")
        assert bench.place("p") == "backoff"

    def test_done_ends_the_memory(self) -> None:
        bench = Bench({"P": [registered(R.NODE, A.ADD, QUEUE)]})
        bench.add("p", "q", "r")
        p, q, r = bench.pop(), bench.pop(), bench.pop()
        events = bench.queue._active.in_flight
        for _ in range(3):
            bench.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
        bench.queue.done(q.pod.uid)
        assert events.event_count == 3
        bench.queue.done(p.pod.uid)
        bench.queue.done(p.pod.uid)
        assert events.event_count == 3
        bench.queue.done(r.pod.uid)
        assert (len(events), events.event_count) == (0, 0)

    def test_events_that_only_older_pods_need_are_dropped(self) -> None:
        bench = Bench({"P": [registered(R.NODE, A.ADD, QUEUE)]})
        bench.add("old", "young")
        old = bench.pop()
        bench.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
        young = bench.pop()
        bench.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
        bench.queue.done(old.pod.uid)
        assert bench.queue._active.in_flight.event_count == 1
        bench.reject(young, "P")
        assert bench.place("young") == "backoff"

    def test_nothing_is_remembered_while_nobody_is_in_flight(self) -> None:
        bench = Bench({"P": [registered(R.NODE, A.ADD, QUEUE)]})
        bench.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
        assert bench.queue._active.in_flight.event_count == 0
