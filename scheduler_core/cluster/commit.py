"""When a write counts: at once without a journal, else when the batch that holds it is kept."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from scheduler_core.ports import ApiError

from .errors import unavailable
from .journal import FateUnknownError, Journal, Write

__all__ = ["GroupCommit"]

log = logging.getLogger(__name__)

#: how long a batch gathers after the one before it began: few transactions, little waiting
PACE_SECONDS = 0.02
#: writes in one batch; what is left goes into the next one
BATCH_WRITES = 1000


@dataclass(slots=True)
class _Batch:
    """Writes that are kept together, and the future that all wait for who made them."""

    writes: list[Write] = field(default_factory=list)
    done: Future[None] = field(default_factory=Future)


class GroupCommit:
    """One thread that hands accepted writes to the journal in batches.

    A batch is at most `pace` seconds old when it goes to the journal (plus the time that the
    journal takes for the batch before it). A request's writes are never split over batches.
    """

    def __init__(
        self,
        journal: Journal,
        committed: Callable[[Sequence[Write]], None],
        failed: Callable[[], None],
        lost: Callable[[], None],
        lock: threading.RLock,
        pace: float = PACE_SECONDS,
    ) -> None:
        """
        Args:
            committed: called on the thread with each batch that is kept.
            failed: called with `lock` held when the journal failed; nothing that waits was kept.
            lost: called with `lock` held when nobody can tell what was kept; nothing may be added
                any more, since it would be judged against a state that may not be the journal's.
            lock: guards acceptance, so that failing and accepting do not overlap.
        """
        self._journal = journal
        self._committed = committed
        self._failed = failed
        self._lost = lost
        self._pace = pace
        self._changed = threading.Condition(lock)
        #: not handed over yet; only the last one still gathers
        self._waiting: deque[_Batch] = deque()
        self._last: Future[None] | None = None
        self._closed = False
        self._last_fault = ""
        self._thread = threading.Thread(target=self._run, name="sandbox-journal", daemon=True)
        self._thread.start()

    def add(self, writes: Sequence[Write]) -> Future[None]:
        """Queue a request's writes; the future tells when they are kept. With the lock held."""
        batch = self._waiting[-1] if self._waiting else None
        if batch is None or len(batch.writes) + len(writes) > BATCH_WRITES:
            batch = _Batch()
            batch.done.set_running_or_notify_cancel()  # from here on nobody can take it back
            self._waiting.append(batch)
            self._last = batch.done
            self._changed.notify()
        batch.writes += writes
        return batch.done

    @property
    def last(self) -> Future[None] | None:
        """The newest request that may not be kept yet. With the lock held."""
        return self._last

    @property
    def is_own_thread(self) -> bool:
        """Whether the caller is the journal's thread, which must not wait for itself."""
        return threading.current_thread() is self._thread

    def close(self) -> None:
        """Hand over what waits, then end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if not self.is_own_thread:
            self._thread.join()

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self._journal.close()

    def _work(self) -> None:
        began = 0.0
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if not self._waiting:
                    return
                closing = self._closed
            rest = began + self._pace - time.monotonic()
            if rest > 0 and not closing:
                time.sleep(rest)
            began = time.monotonic()
            self._commit(self._take())

    def _take(self) -> _Batch:
        with self._changed:
            return self._waiting.popleft()

    def _commit(self, batch: _Batch) -> None:
        try:
            self._journal.append(batch.writes)
        except FateUnknownError as error:
            log.error("the sandbox takes no more writes: %s", error)
            words = f"whether the sandbox has kept its last writes is unknown: {error}"
            self._refuse(batch, unavailable(words), self._lost)
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits is told
            self._tell(error, len(batch.writes))
            words = f"the sandbox cannot keep its writes: {error}"
            self._refuse(batch, unavailable(words), self._failed)
            return
        self._last_fault = ""
        try:
            self._committed(batch.writes)
        except Exception:
            # It is kept, so it counts; and the next batch needs this thread.
            log.exception("what was kept could not be told to everybody")
        batch.done.set_result(None)

    def _tell(self, error: Exception, writes: int) -> None:
        """With its traceback once; the same again while it lasts in one line."""
        fault = repr(error)
        words = "the journal of the sandbox failed; %d writes are refused: %s"
        log.error(words, writes, fault, exc_info=fault != self._last_fault)
        self._last_fault = fault

    def _refuse(self, batch: _Batch, error: ApiError, drop: Callable[[], None]) -> None:
        with self._changed:
            # What was accepted meanwhile was judged against writes that are no more.
            refused = [batch, *self._waiting]
            self._waiting.clear()
            self._last = None
            drop()
        for waiting in refused:
            waiting.done.set_exception(error)
