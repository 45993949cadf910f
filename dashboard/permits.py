"""Approve and deny: a person's click on its way to the scheduler.

``decide`` moves a row from ``waiting`` to ``sent`` by compare-and-set, with the audit row in the
same transaction. The row is the truth; a Redis message is only a doorbell, and the inbox polls the
table as well. What comes of it is written by the recorder.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypedDict

import redis
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from dashboard import audit, commits, frames, groups
from dashboard.models import AuditEntry, SchedulerRun, WaitingPod
from dashboard.publisher import Publisher, get_publisher
from scheduler_core.records import PermitDecision, Verdict

logger = logging.getLogger(__name__)

#: What a verdict is called once it is given.
_GIVEN: Final = {Verdict.APPROVE: "approved", Verdict.DENY: "denied"}
_ENDED: Final = {
    WaitingPod.State.ALLOWED: "was allowed",
    WaitingPod.State.REJECTED: "was rejected",
    WaitingPod.State.TIMED_OUT: "has timed out",
    WaitingPod.State.PREEMPTED: "was preempted",
    WaitingPod.State.REMOVED: "is gone",
}
_DOORBELL_TIMEOUT: Final = 1.0


class UnknownWaitingPod(Exception):
    """Nothing that waits, or waited, was named."""


class DecideResult(TypedDict):
    """What came of a decision for one pod."""

    id: int
    pod: str
    ok: bool
    state: str
    message: str


@dataclass(frozen=True, slots=True)
class DecideOutcome:
    """``decided`` counts the rows that this call changed."""

    results: list[DecideResult]
    decided: int

    @property
    def ok(self) -> bool:
        """At least one pod is decided as asked, now or before."""
        return any(result["ok"] for result in self.results)


def decide(
    run_id: int,
    *,
    user: Any,
    verdict: str,
    comment: str = "",
    ids: Sequence[int] = (),
    pod_group: str = "",
    publisher: Publisher | None = None,
) -> DecideOutcome:
    """Approve or deny pods by ``WaitingPod.id``, or all that wait of a pod group.

    Every pod gets its own result. One that was decided the same way before is ``ok`` too, so that
    a second click does no harm; one that was decided otherwise, or whose wait has ended, is not,
    and its message says who did it, when, or how it ended.

    Raises:
        SchedulerRun.DoesNotExist: there is no such run.
        UnknownWaitingPod: none of the pods, or no open wait of the group, is there.
    """
    word = Verdict(verdict)
    with transaction.atomic():
        run = commits.next_commit(run_id)
        since = commits.last_waiting_commit(run_id)
        rows = list(_chosen(run, ids, pod_group))
        if not rows:
            raise UnknownWaitingPod(
                f'No pod of the group "{pod_group}" waits.'
                if pod_group
                else "No such waiting pod in this run."
            )
        now = commits.run_clock(run_id)
        changed = [row.pk for row in rows if _send(row, run, user, word, comment, now)]
        after = list(WaitingPod.objects.filter(pk__in=[row.pk for row in rows]).order_by("pk"))
        if changed:
            decided = [row for row in after if row.pk in changed]
            frame = frames.waiting_frame(run_id, since, run.commit_seq, now, decided)
            transaction.on_commit(lambda: _announce(run_id, frame, publisher))
    results = [_result(row, row.pk in changed, word, now) for row in after]
    return DecideOutcome(results, len(changed))


def _chosen(run: SchedulerRun, ids: Sequence[int], pod_group: str) -> QuerySet[WaitingPod]:
    rows = WaitingPod.objects.filter(run=run)
    if pod_group:
        return rows.filter(pod_group=pod_group, state__in=WaitingPod.OPEN).order_by("since", "pk")
    return rows.filter(pk__in=ids).order_by("pk")


def _send(
    row: WaitingPod, run: SchedulerRun, user: Any, verdict: Verdict, comment: str, now: float
) -> bool:
    """Compare and set one row, with its audit row. False: somebody or the deadline was first."""
    sent = WaitingPod.objects.filter(
        pk=row.pk, state=WaitingPod.State.WAITING, deadline__gt=now
    ).update(
        state=WaitingPod.State.SENT,
        decision_verdict=verdict.value,
        decision_user=user.get_username(),
        decision_at=now,
        decision_comment=comment,
        commit_seq=run.commit_seq,
    )
    if sent:
        audit.write(
            user,
            AuditEntry.Verb(verdict.value),
            f"{row.namespace}/{row.name}",
            comment=comment,
            outcome=AuditEntry.Outcome.SENT,
            run=run,
            waiting_pod=row,
        )
    return bool(sent)


def _result(row: WaitingPod, changed: bool, verdict: Verdict, now: float) -> DecideResult:
    pod = f"{row.namespace}/{row.name}"
    ok, message = _judge(row, changed, verdict, now)
    return {"id": row.pk, "pod": pod, "ok": ok, "state": str(row.state), "message": message}


def _judge(row: WaitingPod, changed: bool, verdict: Verdict, now: float) -> tuple[bool, str]:
    if changed:
        return True, f"{_GIVEN[verdict].capitalize()}; the scheduler applies it."
    if row.decision_verdict:
        given = _GIVEN[Verdict(row.decision_verdict)]
        same = row.decision_verdict == verdict.value
        ended = f"; it {_ENDED[WaitingPod.State(row.state)]}" if not row.is_open else ""
        return same and row.is_open, (
            f"Already {given} by {row.decision_user} at {_moment(row.decision_at)}{ended}."
        )
    if row.is_open:
        return False, f"Too late: its time ran out at {_moment(row.deadline)}."
    by = f" by {row.resolved_by}" if row.resolved_by else ""
    at = f" at {_moment(row.resolved_at)}" if row.resolved_at is not None else ""
    said = f": {row.message}" if row.message else ""
    return False, f"Too late: the pod {_ENDED[WaitingPod.State(row.state)]}{by}{at}{said}."


def _moment(seconds: float | None) -> str:
    if seconds is None:
        return "an unknown time"
    moment = datetime.fromtimestamp(seconds, tz=timezone.get_current_timezone())
    return f"{moment:%Y-%m-%d %H:%M:%S %Z}"


def _announce(run_id: int, frame: frames.Frame, publisher: Publisher | None) -> None:
    (publisher or get_publisher()).publish(run_id, groups.WAITING, frame)
    ring_doorbell(run_id)


def ring_doorbell(run_id: int, url: str | None = None) -> None:
    """Wake the run's inbox; without Redis it wakes by itself, half a second later."""
    try:
        with redis.Redis.from_url(
            url or settings.REDIS_URL,
            socket_connect_timeout=_DOORBELL_TIMEOUT,
            socket_timeout=_DOORBELL_TIMEOUT,
        ) as client:
            client.publish(groups.permit_doorbell(run_id), b"1")
    except (redis.RedisError, OSError) as error:
        logger.warning("run %s: doorbell does not ring: %s", run_id, error)


# --- the worker's side ----------------------------------------------------------------------


class DatabasePermitInbox:
    """``PermitInbox`` over the waiting rows of one run.

    A thread of its own looks at the table when the doorbell rings and every ``interval`` seconds;
    ``poll`` only empties a deque. Each decision is handed out once per inbox: all that are sent and
    open at the start (start it after the waits of the last worker are restored), then new ones.

    Args:
        run_id: whose decisions.
        wake: called, on the inbox's thread, when a decision has arrived.
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
        self._handed_out: set[int] = set()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to listen and to poll. What was decided before is there when this returns: the
        scheduler must not let a wait run out that was approved in time."""
        self._look_if_possible()
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

    def close(self, timeout: float = 2.0) -> None:
        """Stop the thread. May be called twice."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout)

    def look(self) -> int:
        """Read the table once; how many decisions were new. Called by the inbox's thread."""
        rows = list(
            WaitingPod.objects.filter(run=self._run_id, state=WaitingPod.State.SENT)
            .order_by("decision_at", "pk")
            .only("uid", "decision_verdict", "decision_user", "decision_comment")
        )
        # Rows that are no longer sent cannot come back: forget them.
        self._handed_out &= {row.pk for row in rows}
        fresh = [row for row in rows if row.pk not in self._handed_out]
        for row in fresh:
            self._handed_out.add(row.pk)
            self._arrived.append(
                PermitDecision(
                    decision_id=row.pk,
                    pod_uid=row.uid,
                    verdict=Verdict(row.decision_verdict),
                    user=row.decision_user,
                    comment=row.decision_comment,
                )
            )
        if fresh and self._wake is not None:
            self._wake()
        return len(fresh)

    def _look_if_possible(self) -> None:
        try:
            self.look()
        except DatabaseError as error:
            logger.warning("run %s: decisions cannot be read: %s", self._run_id, error)
            connection.close()

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


def open_waiting(run_id: int) -> list[WaitingPod]:
    """The waits that a restarted worker has to restore, oldest first."""
    return list(
        WaitingPod.objects.filter(run=run_id, state__in=WaitingPod.OPEN).order_by("since", "pk")
    )
