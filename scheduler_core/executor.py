"""Executors: where binding cycles and status writes run."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

log = logging.getLogger(__name__)

#: Threads of the binding pool, made as they are needed. They wait for the API server most of the
#: time: 64 of them bound 400 pods a second where an answer took 160 ms, and decisions ran ahead.
DEFAULT_THREADS = 256


class InlineExecutor:
    """Runs each task at once on the caller's thread: deterministic, for tests and replays."""

    def submit(self, key: str, task: Callable[[], None]) -> None:
        _run(task)

    def submit_quick(self, key: str, task: Callable[[], None]) -> None:
        _run(task)

    def shutdown(self, wait: bool = True) -> None:
        return


class KeyedThreadPool:
    """A thread pool in which tasks of one key (a pod's uid) run one after another, in order.

    Without that a late "PodScheduled=False" of a failed attempt could overtake the binding that
    followed it. After ``shutdown`` a task runs at once on the caller's thread: what is found out at
    the very end is still written.
    """

    def __init__(self, threads: int = DEFAULT_THREADS) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="binding")
        self._lock = threading.Lock()
        self._queues: dict[str, deque[Callable[[], None]]] = {}
        self._is_shut_down = False

    def submit(self, key: str, task: Callable[[], None]) -> None:
        with self._lock:
            queue = self._queues.get(key)
            if queue is not None:
                queue.append(task)
                return
            if not self._is_shut_down:
                self._queues[key] = deque([task])
                self._pool.submit(self._drain, key)
                return
        _run(task)

    def submit_quick(self, key: str, task: Callable[[], None]) -> None:
        """See ``ports.Executor``. Not to be called for one key by several threads at once."""
        with self._lock:
            queue = self._queues.get(key)
            if queue is not None:
                queue.append(task)
                return
        _run(task)

    def shutdown(self, wait: bool = True) -> None:
        with self._lock:
            self._is_shut_down = True
        self._pool.shutdown(wait=wait, cancel_futures=not wait)

    def _drain(self, key: str) -> None:
        while True:
            with self._lock:
                queue = self._queues[key]
                if not queue:
                    del self._queues[key]
                    return
                task = queue.popleft()
            _run(task)


def _run(task: Callable[[], None]) -> None:
    try:
        task()
    except Exception:
        log.exception("a binding task raised")
