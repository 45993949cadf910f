"""Places of the queue, attempts, backoff and time (4.1 to 4.3)."""

from __future__ import annotations

import pytest

from scheduler_core.framework.events import ActionType, EventResource
from scheduler_core.records import QueueDepths
from scheduler_core.testing.builders import make_pod
from tests.core.backend.harness import START, Bench, BrokenGate, Gate, registered

A, R = ActionType, EventResource


class TestActive:
    def test_pods_are_popped_by_priority_then_by_entry(self) -> None:
        bench = Bench()
        bench.add("a", "b")
        bench.add("urgent", priority=5)
        assert bench.pop_names() == ["urgent", "a", "b"]

    def test_an_empty_queue_pops_nothing_and_does_not_block(self) -> None:
        assert Bench().queue.pop() is None

    def test_a_pop_counts_an_attempt_and_puts_the_pod_in_flight(self) -> None:
        bench = Bench()
        [pod] = bench.add("p")
        info = bench.pop()
        assert (info.pod, info.attempts, info.initial_attempt) == (pod, 1, START)
        assert bench.queue.is_in_flight(pod.uid)
        assert bench.place("p") == ""
        assert bench.queue.depths() == QueueDepths(in_flight=1)
        bench.queue.done(pod.uid)
        assert bench.queue.depths() == QueueDepths()

    def test_the_first_attempts_time_stays(self) -> None:
        bench = Bench()
        info = bench.rejected("p")
        bench.clock.advance(5)
        bench.queue.flush()
        assert bench.pop() is info
        assert (info.attempts, info.initial_attempt) == (2, START)

    def test_a_pop_forgets_who_rejected_the_pod(self) -> None:
        bench = Bench()
        info = bench.rejected("p", "P")
        bench.queue.activate([info.pod])
        bench.pop()
        assert (info.unschedulable_plugins, info.pending_plugins) == (set(), set())

    def test_adding_a_pod_again_changes_nothing_while_it_is_in_flight(self) -> None:
        bench = Bench()
        [pod] = bench.add("p")
        bench.pop()
        bench.queue.add(pod)
        assert len(bench.queue) == 0

    def test_a_namesake_replaces_a_pod_whose_deletion_was_not_seen(self) -> None:
        bench = Bench()
        bench.add("p")
        bench.queue.add(make_pod("p").uid("another").obj())
        assert [info.pod.uid for info in bench.queue] == ["another"]


class TestGates:
    def test_a_gated_pod_waits_apart(self) -> None:
        bench = Bench(gates=[Gate(shut=True)])
        bench.add("p")
        assert bench.place("p") == "gated"
        assert bench.queue.depths() == QueueDepths(gated=1)
        info = bench.queue.get("default/p")
        assert info is not None
        assert (info.gating_plugin, info.gating_message) == ("Gate", "Gate is shut")
        assert info.unschedulable_plugins == {"Gate"}
        assert bench.queue.pop() is None

    def test_the_first_gate_that_is_shut_ends_it(self) -> None:
        first, second = Gate("First", shut=True), Gate("Second")
        bench = Bench(gates=[first, second])
        bench.add("p")
        assert (first.asked, second.asked) == (["p"], [])

    def test_the_gate_that_held_it_last_is_asked_first(self) -> None:
        first, second = Gate("First"), Gate("Second", shut=True)
        bench = Bench(gates=[first, second])
        [pod] = bench.add("p")
        first.asked.clear()
        bench.queue.activate([pod])
        assert (first.asked, second.asked) == ([], ["p", "p"])
        assert bench.place("p") == "gated"

    def test_a_gate_that_raises_holds_the_pod_and_says_why(self) -> None:
        bench = Bench(gates=[BrokenGate()])
        bench.add("p")
        assert bench.place("p") == "gated"
        line = bench.queue.list_pods().gated[0]
        assert line.reason == 'running PreEnqueue plugin "Gate": boom'

    def test_gates_are_checked_on_the_way_into_backoffq_and_not_again(self) -> None:
        gate = Gate()
        bench = Bench({"P": [registered(R.NODE, A.DELETE)]}, [gate])
        info = bench.rejected("p", "P")
        gate.asked.clear()
        bench.queue.move_all_to_active_or_backoff_queue(registered(R.NODE, A.DELETE).event)
        assert (bench.place("p"), gate.asked) == ("backoff", ["p"])
        gate.shut = True
        bench.clock.advance(2)
        bench.queue.flush()
        assert (bench.place("p"), gate.asked) == ("active", ["p"])
        assert info.gating_plugin == ""

    def test_a_shut_gate_keeps_a_pod_out_of_backoffq(self) -> None:
        gate = Gate()
        bench = Bench({"P": [registered(R.NODE, A.DELETE)]}, [gate])
        bench.rejected("p", "P")
        gate.shut = True
        bench.queue.move_all_to_active_or_backoff_queue(registered(R.NODE, A.DELETE).event)
        assert bench.place("p") == "gated"

    def test_an_error_is_gated_too(self) -> None:
        gate = Gate()
        bench = Bench(gates=[gate])
        bench.add("p")
        info = bench.pop()
        gate.shut = True
        bench.reject(info)
        assert bench.place("p") == "gated"


class TestFailedAttempts:
    def test_a_rejected_pod_waits_for_an_event(self) -> None:
        bench = Bench({"P": [registered(R.NODE, A.ADD)]})
        info = bench.rejected("p", "P")
        assert bench.place("p") == "unschedulable"
        assert (info.unschedulable_count, info.consecutive_errors) == (1, 0)
        assert not bench.queue.is_in_flight(info.pod.uid)

    def test_an_error_backs_off(self) -> None:
        bench = Bench()
        info = bench.rejected("p")
        assert bench.place("p") == "backoff"
        assert (info.unschedulable_count, info.consecutive_errors) == (0, 1)
        assert info.backoff_until == START + 1

    def test_a_rejection_ends_a_row_of_errors_and_keeps_its_own_count(self) -> None:
        bench = Bench()
        bench.add("p")
        info = bench.pop()
        bench.reject(info, "P")
        counts = []
        for plugins in ((), (), ("P",), ()):
            bench.queue.activate([info.pod])
            bench.pop()
            bench.reject(info, *plugins)
            counts.append((info.unschedulable_count, info.consecutive_errors))
        assert counts == [(1, 1), (1, 2), (2, 0), (2, 1)]

    def test_a_pod_goes_on_before_its_backoff_is_over_four_times_a_second_and_no_more(self) -> None:
        bench = Bench()
        bench.add("p")
        info = bench.pop()
        bench.reject(info, "P")
        activated = 0
        for _ in range(20):
            bench.queue.activate([info.pod])
            if bench.queue.place_of("default/p") == "active":
                activated += 1
                bench.pop()
                bench.reject(info, "P")
        assert activated == 4
        assert bench.queue.place_of("default/p") == "backoff"
        bench.clock.advance(1)
        bench.queue.activate([info.pod])
        assert bench.queue.place_of("default/p") == "active"

    def test_the_timestamp_is_the_re_entry(self) -> None:
        bench = Bench()
        bench.add("p")
        info = bench.pop()
        bench.clock.advance(7)
        bench.reject(info, "P")
        assert info.timestamp == START + 7

    def test_a_pod_whose_name_is_queued_already_does_not_come_back(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        bench = Bench()
        bench.add("p")
        info = bench.pop()
        bench.queue.add(make_pod("p").uid("another").obj())
        assert not bench.queue.add_unschedulable_if_not_present(info)
        assert [i.pod.uid for i in bench.queue] == ["another"]
        assert not bench.queue.is_in_flight(info.pod.uid)
        assert "default/p is in the queue already" in caplog.text

    def test_an_error_that_took_longer_than_its_backoff_goes_to_activeq(self) -> None:
        bench = Bench(initial_backoff=0.0, max_backoff=0.0)
        bench.rejected("p")
        assert bench.place("p") == "active"


class TestPopFromBackoff:
    def test_an_idle_scheduler_takes_a_rejected_pod_early(self) -> None:
        bench = Bench({"P": [registered(R.NODE, A.DELETE)]})
        info = bench.rejected("p", "P")
        bench.queue.move_all_to_active_or_backoff_queue(registered(R.NODE, A.DELETE).event)
        assert bench.place("p") == "backoff"
        assert bench.pop() is info
        assert bench.queue.incoming["active", "PopFromBackoffQ"] == 1

    def test_activeq_comes_first(self) -> None:
        bench = Bench({"P": [registered(R.NODE, A.DELETE)]})
        bench.rejected("backing-off", "P", priority=100)
        bench.queue.move_all_to_active_or_backoff_queue(registered(R.NODE, A.DELETE).event)
        bench.add("active")
        assert bench.pop_names() == ["active", "backing-off"]

    def test_an_error_is_never_taken_early(self) -> None:
        bench = Bench()
        bench.rejected("p")
        assert bench.queue.pop() is None


class TestFlush:
    def test_backoff_ends_on_whole_seconds(self) -> None:
        bench = Bench()
        bench.clock.advance(0.7)
        bench.rejected("p")
        assert bench.queue.next_deadline() == START + 2
        bench.clock.set(START + 1.99)
        bench.queue.flush()
        assert bench.place("p") == "backoff"
        bench.clock.set(START + 2)
        bench.queue.flush()
        assert bench.place("p") == "active"
        assert bench.queue.incoming["active", "BackoffComplete"] == 1

    def test_pods_are_swept_after_five_minutes_at_the_next_30_seconds(self) -> None:
        bench = Bench({"P": [registered(R.NODE, A.ADD)]})
        bench.clock.advance(1)
        bench.rejected("p", "P")
        due = START + 330
        assert bench.queue.next_deadline() == due
        for now in (START + 300, START + 301, due - 0.1):
            bench.clock.set(now)
            bench.queue.flush()
            assert bench.place("p") == "unschedulable"
        bench.clock.set(due)
        bench.queue.flush()
        assert bench.place("p") == "active"
        assert bench.queue.incoming["active", "UnschedulableTimeout"] == 1
        assert bench.queue.next_deadline() is None

    def test_exactly_five_minutes_are_not_too_long(self) -> None:
        bench = Bench()
        bench.rejected("p", "P")
        bench.clock.set(START + 300)
        bench.queue.flush()
        assert bench.place("p") == "unschedulable"
        assert bench.queue.next_deadline() == START + 330

    def test_the_limit_can_be_set(self) -> None:
        bench = Bench(max_in_unschedulable=40.0)
        bench.rejected("p", "P")
        assert bench.queue.next_deadline() == START + 60

    def test_a_gated_pod_is_not_swept_and_sets_no_deadline(self) -> None:
        bench = Bench(gates=[Gate(shut=True)])
        bench.add("p")
        assert bench.queue.next_deadline() is None
        bench.clock.advance(1000)
        bench.queue.flush()
        assert bench.place("p") == "gated"

    def test_a_gate_that_registered_everything_is_asked_again(self) -> None:
        gate = Gate(shut=True)
        bench = Bench({"Gate": [registered(R.WILDCARD, A.ALL)]}, [gate])
        bench.add("p")
        gate.shut = False
        assert bench.queue.next_deadline() == START + 330
        bench.clock.set(START + 330)
        bench.queue.flush()
        assert bench.place("p") == "active"

    def test_the_deadline_is_that_of_the_pod_that_waits_longest(self) -> None:
        bench = Bench()
        first = bench.rejected("first", "P")
        bench.clock.advance(60)
        bench.rejected("second", "P")
        assert bench.queue.next_deadline() == START + 330
        bench.queue.delete(first.pod)
        assert bench.queue.next_deadline() == START + 390

    def test_nothing_waits_no_deadline(self) -> None:
        bench = Bench()
        bench.add("p")
        assert bench.queue.next_deadline() is None


class TestActivate:
    @pytest.mark.parametrize(
        "plugins, place",
        [
            pytest.param(("P",), "unschedulable", id="unschedulable"),
            pytest.param((), "backoff", id="backing-off"),
        ],
    )
    def test_it_goes_to_activeq_past_its_backoff(
        self, plugins: tuple[str, ...], place: str
    ) -> None:
        bench = Bench()
        info = bench.rejected("p", *plugins)
        assert bench.place("p") == place
        bench.queue.activate([info.pod])
        assert (bench.place("p"), info.backoff_until) == ("active", None)
        assert bench.queue.incoming["active", "ForceActivate"] == 1

    def test_gates_still_hold_an_unschedulable_pod(self) -> None:
        gate = Gate()
        bench = Bench(gates=[gate])
        info = bench.rejected("p", "P")
        gate.shut = True
        bench.queue.activate([info.pod])
        assert bench.place("p") == "gated"

    def test_gates_are_not_asked_for_a_pod_from_backoffq(self) -> None:
        gate = Gate()
        bench = Bench(gates=[gate])
        info = bench.rejected("p")
        gate.shut = True
        bench.queue.activate([info.pod])
        assert bench.place("p") == "active"

    def test_an_active_or_unknown_pod_changes_nothing(self) -> None:
        bench = Bench()
        [pod] = bench.add("p")
        bench.queue.activate([pod, make_pod("unknown").obj()])
        assert len(bench.queue) == 1
        assert bench.queue.incoming["active", "ForceActivate"] == 0

    def test_a_pod_in_flight_comes_back_to_backoffq(self) -> None:
        bench = Bench()
        bench.add("p", "q")
        p, q = bench.pop(), bench.pop()
        bench.queue.activate([p.pod])
        bench.reject(p, "P")
        bench.reject(q, "P")
        assert bench.place("p") == "backoff"
        assert bench.place("q") == "unschedulable"


class TestListing:
    def test_every_place_in_its_order_with_its_reason(self) -> None:
        bench = Bench(gates=[Gate()])
        error = bench.rejected("error")
        error.reason, error.reason_plugin = "connection refused", ""
        rejected = bench.rejected("rejected", "P")
        rejected.reason, rejected.reason_plugin = "Insufficient cpu", "NodeResourcesFit"
        bench.add("held", labels={"held": "yes"})
        bench.add("low")
        bench.add("high", priority=9)
        listing = bench.queue.list_pods()
        assert [(p.pod.name, p.position) for p in listing.active] == [("high", 1), ("low", 2)]
        [backoff] = listing.backoff
        assert (backoff.backoff_until, backoff.attempts) == (START + 1, 1)
        assert backoff.reason == "connection refused"
        [waiting] = listing.unschedulable
        assert (waiting.plugin, waiting.reason) == ("NodeResourcesFit", "Insufficient cpu")
        [held] = listing.gated
        assert (held.plugin, held.reason) == ("Gate", "Gate is shut")
        assert listing.depths == QueueDepths(active=2, backoff=1, unschedulable=1, gated=1)
        assert listing.at == START

    def test_a_gang_is_named(self) -> None:
        bench = Bench()
        bench.queue.add(make_pod("p").pod_group("band").obj())
        assert bench.queue.list_pods().active[0].pod_group == "default/band"

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param(lambda b, i: b.add("new"), id="add"),
            pytest.param(lambda b, i: b.queue.update(i.pod, i.pod), id="update"),
            pytest.param(lambda b, i: b.queue.delete(i.pod), id="delete"),
            pytest.param(lambda b, i: b.queue.activate([i.pod]), id="activate"),
            pytest.param(lambda b, i: b.queue.pop(), id="pop"),
            pytest.param(lambda b, i: b.queue.done("x"), id="done"),
            pytest.param(lambda b, i: (b.clock.advance(900), b.queue.flush()), id="flush"),
        ],
    )
    def test_the_version_grows_with_every_change(self, change) -> None:  # type: ignore[no-untyped-def]
        bench = Bench()
        bench.add("other")
        other = bench.pop()
        bench.add("active")
        bench.reject(other, "P")
        version = bench.queue.version
        change(bench, other)
        assert bench.queue.version > version

    def test_looking_does_not_change_the_version(self) -> None:
        bench = Bench()
        bench.rejected("p", "P")
        version = bench.queue.version
        bench.queue.list_pods()
        bench.queue.depths()
        bench.queue.next_deadline()
        bench.queue.flush()
        assert bench.queue.version == version
