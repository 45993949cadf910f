from __future__ import annotations

import pytest

from scheduler_core.backend.queue.backoff_queue import BackoffQueue
from scheduler_core.clock import VirtualClock
from scheduler_core.framework.types import QueuedPodInfo
from scheduler_core.testing.builders import make_pod
from tests.core.backend.harness import priority_sort


def queue_at(now: float, initial: float = 1.0, maximum: float = 10.0) -> BackoffQueue:
    return BackoffQueue(priority_sort, VirtualClock(now), initial, maximum)


def info_of(
    name: str = "p", *, at: float = 0.0, count: int = 0, errors: int = 0, priority: int = 0
) -> QueuedPodInfo:
    info = QueuedPodInfo(make_pod(name).priority(priority).obj(), timestamp=at)
    info.unschedulable_count = count
    info.consecutive_errors = errors
    if not errors:
        info.unschedulable_plugins = {"P"}
    return info


@pytest.mark.parametrize(
    "count, errors, initial, maximum, seconds",
    [
        pytest.param(0, 0, 1, 10, 0, id="never-failed"),
        pytest.param(1, 0, 1, 10, 1, id="first"),
        pytest.param(2, 0, 1, 10, 2, id="second"),
        pytest.param(3, 0, 1, 10, 4, id="third"),
        pytest.param(4, 0, 1, 10, 8, id="fourth"),
        pytest.param(5, 0, 1, 10, 10, id="fifth-is-the-maximum"),
        pytest.param(6, 0, 1, 10, 10, id="sixth"),
        pytest.param(5000, 0, 1, 10, 10, id="no-overflow"),
        pytest.param(9, 1, 1, 10, 1, id="errors-count-instead-of-rejections"),
        pytest.param(1, 3, 1, 10, 4, id="three-errors"),
        pytest.param(1, 0, 20, 10, 10, id="initial-above-the-maximum"),
        pytest.param(2, 0, 5, 10, 10, id="exactly-the-maximum"),
    ],
)
def test_duration(count: int, errors: int, initial: float, maximum: float, seconds: float) -> None:
    queue = queue_at(0.0, initial, maximum)
    assert queue.duration(info_of(count=count, errors=errors)) == seconds


@pytest.mark.parametrize(
    "failed_at, now, backing_off",
    [
        pytest.param(100.0, 100.0, True, id="at-once"),
        pytest.param(100.0, 101.0, True, id="the-second-of-its-end-belongs-to-it"),
        pytest.param(100.0, 101.99, True, id="all-of-that-second"),
        pytest.param(100.0, 102.0, False, id="over"),
        pytest.param(100.9, 101.99, True, id="end-is-cut-to-the-second"),
        pytest.param(100.9, 102.0, False, id="cut-end-over-after-1.1s"),
    ],
)
def test_is_backing_off_after_one_failure(failed_at: float, now: float, backing_off: bool) -> None:
    assert queue_at(now).is_backing_off(info_of(at=failed_at, count=1)) is backing_off


def test_a_pod_that_never_failed_is_not_backing_off() -> None:
    assert not queue_at(0.0).is_backing_off(info_of())


def test_backoffq_is_ordered_by_end_then_as_activeq() -> None:
    queue = queue_at(100.0)
    queue.add(info_of("late", at=105.0, count=1, priority=9))
    queue.add(info_of("low", at=100.1, count=1, priority=1))
    queue.add(info_of("high", at=100.8, count=1, priority=2))
    assert [info.pod.name for info in queue.ordered()] == ["high", "low", "late"]


def test_errors_are_ordered_by_end_alone() -> None:
    queue = queue_at(200.0)
    queue.add(info_of("first", at=100.0, errors=1, priority=1))
    queue.add(info_of("second", at=100.0, errors=1, priority=9))
    assert [info.pod.name for info in queue.pop_completed()] == ["first", "second"]


def test_only_rejected_pods_can_be_had_early() -> None:
    queue = queue_at(100.0)
    queue.add(info_of("error", at=100.0, errors=1))
    assert queue.pop_early() is None
    queue.add(info_of("rejected", at=100.0, count=4))
    popped = queue.pop_early()
    assert popped is not None
    assert (popped.pod.name, popped.backoff_until) == ("rejected", None)
    assert len(queue) == 1


def test_completed_pods_come_out_rejected_ones_first() -> None:
    clock = VirtualClock(100.0)
    queue = BackoffQueue(priority_sort, clock, 1.0, 10.0)
    queue.add(info_of("error", at=100.0, errors=1))
    queue.add(info_of("rejected", at=100.0, count=1))
    queue.add(info_of("longer", at=100.0, count=2))
    assert queue.next_completion() == 102.0
    clock.set(101.9)
    assert queue.pop_completed() == []
    clock.set(102.0)
    assert [info.pod.name for info in queue.pop_completed()] == ["rejected", "error"]
    assert queue.next_completion() == 103.0
    clock.set(103.0)
    assert [info.pod.name for info in queue.pop_completed()] == ["longer"]
    assert queue.next_completion() is None


def test_get_update_and_remove_find_both_kinds() -> None:
    queue = queue_at(100.0)
    queue.add(info_of("error", at=100.0, errors=1))
    queue.add(info_of("rejected", at=100.0, count=1))
    for name in ("error", "rejected"):
        key = f"default/{name}"
        changed = make_pod(name).label(a="b").obj()
        assert queue.update_pod(changed) is queue.get(key)
        assert key in queue
        removed = queue.remove(key)
        assert removed is not None
        assert removed.pod is changed
        assert removed.backoff_until is None
    assert queue.update_pod(make_pod("unknown").obj()) is None
    assert len(queue) == 0
