"""The worker's side of ``permits.decide``: where a run's scheduler finds people's decisions."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import redis
from django.db import Error as DatabaseError
from django.db import connection, transaction
from django.db.models import Max

from dashboard import commits, groups
from dashboard.models import SchedulerRun, WaitingPod
from dashboard.permits_models import Decision
from scheduler_core.records import PermitDecision, Verdict

__all__ = ["DatabasePermitInbox"]

logger = logging.getLogger(__name__)

_DOORBELL_TIMEOUT: Final = 1.0
#: Two processes on one machine may differ by less than this in what they take the time to be.
_CLOCK_MARGIN: Final = 0.1
_WORD: Final = (
    "pk",
    "waiting_pod__uid",
    "verdict",
    "username",
    "comment",
    "at",
    "waiting_pod__since",
)


class DatabasePermitInbox:
    """``PermitInbox`` over the decisions of one run.

    A thread of its own looks at the table when the doorbell rings and every ``interval`` seconds;
    ``poll`` only empties a deque. Each decision is handed out once per inbox: at the start every
    one on a wait that is still open (start it after the waits of the last worker are restored),
    then new ones, in the order in which they were committed.

    Args:
        run_id: whose decisions.
        wake: called, on the inbox's thread, when something has arrived.
        redis_url: where the doorbell is; None for polling alone.
        interval: seconds between two looks without a doorbell.
    """

    def __init__(
        self,
        run_id: int,
        *,
        wake: Callable[[], None] | None = None,
        redis_url: str | None = None,
        interval: float = 0.5,
    ) -> None:
        self._run_id = run_id
        self._wake = wake
        self._url = redis_url
        self._interval = interval
        self._arrived: deque[PermitDecision] = deque()
        self._last: int | None = None
        self._heard_until = float("-inf")
        self._wanted_until = float("-inf")
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to listen and to poll. What was decided before is there when this returns: the
        scheduler must not let a wait run out that was approved in time, nor bind a pod that was
        denied.

        Raises:
            django.db.Error: the decisions cannot be read.
        """
        self.look(confirm=True)
        self._thread = threading.Thread(
            target=self._run, name=f"permits-{self._run_id}", daemon=True
        )
        self._thread.start()

    def poll(self) -> Sequence[PermitDecision]:
        """What has arrived since the last call; never blocks."""
        taken: list[PermitDecision] = []
        while self._arrived:
            taken.append(self._arrived.popleft())
        return taken

    def heard_until(self, now: float) -> float:
        """Up to which moment ``poll`` has handed out, or will with its next call, everything that
        was decided. Where that is before ``now`` the inbox finds out, and wakes the scheduler."""
        heard = self._heard_until
        if heard < now:
            self._wanted_until = max(self._wanted_until, now)
        return heard

    def close(self, timeout: float = 2.0) -> None:
        """Stop the thread. May be called twice."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout)

    def look(self, confirm: bool = False) -> int:
        """Read the table once; how many decisions were new. Called by the inbox's thread.

        ``confirm``: under the run's lock. Who decides takes the lock before looking at the clock,
        so that nothing can come afterwards that was decided before.
        """
        if not confirm:
            return self._take()
        with transaction.atomic():
            # On SQLite the transaction itself is the lock: it begins as a writer.
            SchedulerRun.objects.select_for_update().only("pk").get(pk=self._run_id)
            heard = commits.run_clock(self._run_id) - _CLOCK_MARGIN
            fresh = self._take()
        self._heard_until = max(self._heard_until, heard)
        return fresh

    def _take(self) -> int:
        found = Decision.objects.filter(run=self._run_id).order_by("pk")
        if self._last is None:
            # Those that are left out now were said of waits that have ended: they must not be taken
            # for new ones later.
            last = found.aggregate(last=Max("pk"))["last"] or 0
            fresh = list(found.filter(waiting_pod__state__in=WaitingPod.OPEN).values_list(*_WORD))
        else:
            fresh = list(found.filter(pk__gt=self._last).values_list(*_WORD))
            last = fresh[-1][0] if fresh else self._last
        for pk, uid, verdict, user, comment, at, since in fresh:
            word = PermitDecision(pk, uid, Verdict(verdict), user, comment, at, since)
            self._arrived.append(word)
        self._last = last
        return len(fresh)

    def _look_if_possible(self) -> None:
        wanted = self._wanted_until
        confirm = wanted > self._heard_until
        try:
            fresh = self.look(confirm)
        except SchedulerRun.DoesNotExist:
            return  # the run was deleted; its worker hears of it from the lease
        except DatabaseError as error:
            logger.warning("run %s: decisions cannot be read: %s", self._run_id, error)
            connection.close()
            return
        if self._wake is not None and (fresh or confirm):
            self._wake()

    def _run(self) -> None:
        bell = _Doorbell(self._url, groups.permit_doorbell(self._run_id)) if self._url else None
        try:
            while not self._stop.is_set():
                self._look_if_possible()
                if bell is None or not bell.wait(self._interval):
                    self._stop.wait(self._interval if bell is None else 0.0)
        finally:
            connection.close()
            if bell is not None:
                bell.close()


class _Doorbell:
    """A Redis subscription that may be away for a while."""

    def __init__(self, url: str, channel: str) -> None:
        self._client = redis.Redis.from_url(url, socket_connect_timeout=_DOORBELL_TIMEOUT)
        self._channel = channel
        self._subscription: Any = None

    def wait(self, timeout: float) -> bool:
        """Whether it rang within ``timeout`` seconds."""
        began = time.monotonic()
        try:
            if self._subscription is None:
                self._subscription = self._client.pubsub(ignore_subscribe_messages=True)
                self._subscription.subscribe(self._channel)
                # A message between the last look and this subscription would be missed.
                return True
            return self._drain(began + timeout)
        except (redis.RedisError, OSError):
            self._drop()
            time.sleep(max(0.0, timeout - (time.monotonic() - began)))
            return False

    def _drain(self, until: float) -> bool:
        while (left := until - time.monotonic()) > 0:
            if self._subscription.get_message(timeout=left) is not None:
                return True
        return False

    def _drop(self) -> None:
        if self._subscription is not None:
            self._subscription.close()
        self._subscription = None

    def close(self) -> None:
        """Give the connection back."""
        self._drop()
        self._client.close()
