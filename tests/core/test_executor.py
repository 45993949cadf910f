"""The pool that bindings run on."""

from __future__ import annotations

import threading

from scheduler_core.executor import KeyedThreadPool


def test_tasks_of_one_key_run_in_order() -> None:
    pool, ran = KeyedThreadPool(threads=4), []
    gate = threading.Event()
    pool.submit("pod", lambda: gate.wait(10.0) and None)
    for number in range(20):
        pool.submit("pod", lambda number=number: ran.append(number))  # type: ignore[misc]
    gate.set()
    pool.shutdown()
    assert ran == list(range(20))


def test_a_task_after_the_shutdown_runs_at_once() -> None:
    pool, ran = KeyedThreadPool(threads=1), []
    pool.shutdown()
    pool.submit("pod", lambda: ran.append(threading.current_thread()))
    assert ran == [threading.current_thread()]


def test_a_quick_task_runs_at_once_where_nothing_of_its_key_is_under_way() -> None:
    pool, ran = KeyedThreadPool(threads=1), []
    pool.submit_quick("pod", lambda: ran.append(threading.current_thread()))
    assert ran == [threading.current_thread()]
    pool.shutdown()


def test_a_quick_task_waits_for_those_of_its_key() -> None:
    pool, ran = KeyedThreadPool(threads=1), []
    gate = threading.Event()

    def slow() -> None:
        gate.wait(10.0)
        ran.append("slow")

    pool.submit("pod", slow)
    pool.submit_quick("pod", lambda: ran.append("quick"))
    assert ran == []
    gate.set()
    pool.shutdown()
    assert ran == ["slow", "quick"]
